"""Leases over real SSH: who has the testbed, for how long, and what becomes of what he left running."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from ssh_server import needs_sshd, sshd_of
from waiting import is_running, wait_until

from lossratio.errors import NodeError, ReservationError
from lossratio.testbed.reservation.lease import Claim, ReservationLostError, TestbedReservedError, clear, holder_of

pytestmark = needs_sshd
# In a PID namespace, $$ is another number.
LONG = 3600.0
"""Seconds of a lease whose holder writes no heartbeat into its file before the test is over."""
SLEEP = "read -r pid rest < /proc/self/stat; echo $pid; exec sleep 60"


def test_only_one_has_the_testbed_and_the_other_gets_the_name_of_the_holder(lab):
    lab.take("alice@ci3", purpose="the nightly")
    with pytest.raises(TestbedReservedError, match=r"reserved for alice@ci3 \(process \d+\) for the nightly") as error:
        lab.take("bob@desk")
    assert re.search(r"ends with the connection of that process\. 'lossratio run' can wait", str(error.value))


def test_a_released_testbed_is_free(lab):
    lab.take("alice@ci3").release()
    assert holder_of(lab.session(), lab.claim()) is None
    lab.take("bob@desk")


def test_a_waiting_run_gets_the_testbed_when_it_is_released(lab):
    first = lab.take("alice@ci3")
    threading.Timer(0.5, first.release).start()
    began = time.monotonic()
    lab.take("bob@desk", wait=20)
    assert time.monotonic() - began >= 0.4


def test_waiting_in_vain_is_an_error_with_the_length_of_the_wait(lab):
    lab.take("alice@ci3")
    with pytest.raises(TestbedReservedError, match=r"0\.3 s were not enough"):
        lab.take("bob@desk", wait=0.3)


def test_a_lease_is_kept_for_longer_than_it_lasts(lab):
    lease = lab.take(seconds=2.0)
    time.sleep(3.0)
    lease.check()
    with pytest.raises(TestbedReservedError):
        lab.take("bob@desk")


def test_the_testbed_of_one_who_died_is_free_and_the_next_one_says_whose_it_was(lab, caplog):
    session = lab.session()
    lab.take("alice@ci3", seconds=LONG, session=session)
    os.kill(sshd_of(session), signal.SIGKILL)
    wait_until(lambda: holder_of(lab.session(), lab.claim()) is None)
    with caplog.at_level(logging.WARNING):
        lab.take("bob@desk")
    assert "ended without releasing it: alice@ci3" in caplog.text


def test_one_who_waits_is_told_for_whom_and_gets_the_testbed_when_the_session_is_killed(lab, caplog):
    session = lab.session()
    lab.take("alice@ci3", seconds=LONG, session=session, purpose="the nightly")
    taken = threading.Thread(target=lab.take, args=("bob@desk",), kwargs={"wait": 300.0})
    taken.start()
    told = r"waiting for the testbed, which is reserved for alice@ci3 \(process \d+\) for the nightly, since 20\S+Z\."
    wait_until(lambda: re.search(told, caplog.text))
    os.kill(sshd_of(session), signal.SIGKILL)
    taken.join()
    assert holder_of(lab.session(), lab.claim()).owner == "bob@desk"


def test_a_lease_that_was_left_stays_for_its_time_and_says_how_long(lab):
    lab.take("alice@ci3", seconds=LONG).leave()
    with pytest.raises(TestbedReservedError, match=r"alice@ci3 .*The reservation ends in (1 h|59 min)"):
        lab.take("bob@desk")
    lab.change_lease(expires=0.0)
    lab.take("bob@desk")


def test_a_run_that_borrows_a_lease_that_was_left_has_it_although_its_time_is_over(lab):
    lease = lab.take("alice@ci3", seconds=LONG)
    lease.leave()
    borrowed = lab.take("alice@ci3", token=lease.token)
    lab.change_lease(expires=0.0)
    with pytest.raises(TestbedReservedError):
        lab.take("bob@desk")
    borrowed.release()
    wait_until(lambda: holder_of(lab.session(), lab.claim()) is None)


def test_a_lease_lives_as_long_as_one_of_those_who_share_it(lab):
    session = lab.session()
    lease = lab.take("alice@ci3", session=session)
    borrowed = lab.take("alice@ci3", token=lease.token)
    os.kill(sshd_of(session), signal.SIGKILL)
    wait_until(lambda: len(lab.tickets()) == 1)
    borrowed.confirm()
    with pytest.raises(TestbedReservedError):
        lab.take("bob@desk")


@pytest.mark.parametrize("token", ["0" * 32, "", None])
def test_a_lease_is_not_taken_over_with_another_token_than_its_own(lab, token):
    lab.take("alice@ci3", seconds=LONG)
    kept = lab.record()["lease"]["token"]
    with pytest.raises(TestbedReservedError):
        lab.take("alice@ci3", token=token)
    assert lab.record()["lease"]["token"] == kept


def test_after_a_new_log_in_the_lease_goes_on(lab):
    session = lab.session()
    lease = lab.take(session=session)
    os.kill(sshd_of(session), signal.SIGKILL)
    time.sleep(0.1)
    session.restore()
    lease.confirm()
    lease.check()
    with pytest.raises(TestbedReservedError, match="alice@here"):
        lab.take("bob@desk")


def test_a_token_borrows_a_lease_and_leaves_it_to_its_owner(lab):
    owner = lab.take("alice@ci3")
    borrowed = lab.take("alice@ci3", token=owner.token)
    borrowed.release()
    owner.confirm()


def test_a_token_of_a_lease_that_is_gone_is_a_claim_like_any_other(lab):
    lease = lab.take("alice@ci3")
    lease.release()
    assert lab.take("alice@ci3", token=lease.token).token != lease.token


def test_forced_release_names_the_owner_and_ends_what_he_started(lab):
    session = lab.session()
    lease = lab.take("alice@ci3", session=session)
    traffic = session.start("sh", "-c", SLEEP)
    pid = int(traffic.read_line(60.0))
    bystander = lab.session().start("sh", "-c", SLEEP)
    other = int(bystander.read_line(60.0))
    assert clear(lab.session(), lab.claim("bob@desk"), force=True).owner == "alice@ci3"
    wait_until(lambda: not is_running(pid))
    assert is_running(other)
    os.kill(other, signal.SIGKILL)
    with pytest.raises(ReservationLostError, match="somebody has released it"):
        lease.confirm()


def test_without_force_only_the_owner_releases(lab):
    lab.take("alice@ci3")
    with pytest.raises(TestbedReservedError, match="alice@ci3"):
        clear(lab.session(), lab.claim("bob@desk"), force=False)
    assert clear(lab.session(), lab.claim("alice@ci3"), force=False).owner == "alice@ci3"
    assert holder_of(lab.session(), lab.claim()) is None


def test_a_lost_lease_is_reported_with_the_name_of_the_new_holder(lab):
    session = lab.session()
    lease = lab.take("alice@ci3", seconds=LONG, session=session)
    os.kill(sshd_of(session), signal.SIGKILL)
    lab.take("bob@desk", wait=60)
    session.restore()
    with pytest.raises(ReservationLostError, match="its holder is now bob@desk"):
        lease.confirm()


def test_a_python_that_is_not_there_is_one_error_with_node_and_path(lab, tmp_path):
    lab.python = str(tmp_path / "python3.12")
    way_out = r"If the node has no Python '/.+/python3\.12', set the generator's 'python' in the topology file"
    with pytest.raises(NodeError, match=rf"^Node \w+: its reservation does not answer\. .*{way_out}"):
        lab.take()
    (tmp_path / "python3.12").write_text("#!/nowhere/python3.12\n")
    with pytest.raises(NodeError, match=way_out):
        lab.take()


def test_a_directory_that_cannot_be_written_is_one_clear_error(lab, tmp_path):
    lab.directory = tmp_path / "file" / "below"
    (tmp_path / "file").write_text("")
    with pytest.raises(
        ReservationError, match=r"the testbed cannot be reserved: .*/file/below/testbed: Not a directory"
    ):
        lab.take()


@pytest.mark.parametrize(
    ("options", "why"), [("rw,nr_inodes=1", r"No space left on device"), ("ro", r"Read-only file system")]
)
def test_a_disk_that_takes_no_record_is_named_with_the_ways_out(tmp_path, options, why):
    request = Claim(str(tmp_path / "testbed"), "python3", 5.0, "alice@ci3").take()
    keeper = "from lossratio.testbed.reservation.keeper.main import main; main()"
    script = f"mount -t tmpfs -o {options} none '{tmp_path}' && exec {sys.executable} -c '{keeper}'"
    asked = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in asked.stderr or "mount:" in asked.stderr:
        pytest.skip("no file systems of our own here")
    said = json.loads(asked.stdout)
    assert said["event"] == "error"
    assert re.search(rf"/testbed: {why}\. To keep it elsewhere.*\{{directory: /dev/shm/lossratio\}}", said["message"])


def test_after_a_file_was_removed_there_are_never_two_holders(lab):
    first = lab.take("alice@ci3")
    lab.file.unlink()
    lab.take("bob@desk")
    with pytest.raises(ReservationLostError):
        first.confirm()
