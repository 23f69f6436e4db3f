"""Everything that a lease started ends with the lease, at every end of it; and nobody goes on whose lease is gone."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest
from processes import children_of
from ssh_server import needs_sshd, sshd_of
from waiting import is_running, wait_until

from lossratio.errors import ReservationError
from lossratio.testbed.reservation.keeper.record import VERSION, ReservationFile, boot, clock, left_of
from lossratio.testbed.reservation.lease import ReservationLostError, TestbedReservedError, clear

pytestmark = needs_sshd
PROGRAM = (
    "sleep 300 < /dev/null > /dev/null 2>&1 & setsid sleep 300 < /dev/null > /dev/null 2>&1 & echo $$; exec sleep 300"
)


def started(session):
    """Ids of what a lease's holder runs: a program, its child, and one with a session of its own."""
    program = int(session.start("sh", "-c", PROGRAM).read_line(60.0))
    pids = {program}
    wait_until(lambda: len(pids.union(children_of(program))) == 3)
    return pids.union(children_of(program))


def keeper_of(lab):
    """Id of the process that holds the lease."""
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(descriptor) == str(lab.file):
                return int(descriptor.parts[2])
        except OSError:
            continue
    raise AssertionError("nobody keeps the lease")


def lost(lease):
    try:
        lease.confirm()
    except ReservationLostError as error:
        return str(error)
    return ""


def release(lab, lease, session):
    lease.release()


def force(lab, lease, session):
    clear(lab.session(), lab.claim("bob@desk"), force=True)


def controller_dies(lab, lease, session):
    os.kill(sshd_of(session), signal.SIGKILL)


def file_is_removed(lab, lease, session):
    lab.file.unlink()
    with pytest.raises(ReservationLostError):
        lease.confirm()


@pytest.mark.parametrize("end", [release, force, controller_dies, file_is_removed])
def test_nothing_of_a_lease_outlives_it_although_it_is_frozen(lab, end):
    session = lab.session()
    lease = lab.take(session=session, seconds=60.0)
    pids = started(session)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    end(lab, lease, session)
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_a_holder_that_is_silent_for_too_long_loses_lease_and_processes(lab):
    session = lab.session()
    lease = lab.take("alice@ci3", session=session, seconds=1.0)
    pids = started(session)
    # As if the machine of the holder were cut off: nothing is heard of it, and its connection stays open.
    lease._pulse.stop()
    wait_until(lambda: not any(is_running(pid) for pid in pids))
    lab.take("bob@desk")
    assert "its holder is now bob@desk" in lost(lease)


def test_a_keeper_that_was_killed_is_replaced_at_the_next_confirmation(lab):
    session = lab.session()
    lease = lab.take("alice@ci3", session=session, seconds=60.0)
    pids = started(session)
    os.kill(keeper_of(lab), signal.SIGKILL)
    lease.confirm()
    assert all(is_running(pid) for pid in pids)
    with pytest.raises(TestbedReservedError, match="alice@ci3"):
        lab.take("bob@desk")
    lease.release()
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_a_heartbeat_whose_keeper_does_not_answer_starts_another_one_on_the_same_session(lab, monkeypatch):
    session = lab.session()
    lease = lab.take("alice@ci3", session=session, seconds=60.0)
    pids = started(session)
    silent, frozen = lease._keeper._process, keeper_of(lab)
    os.kill(frozen, signal.SIGSTOP)
    # Only the silent keeper is given up so early: a busy machine takes a while to start another one.
    monkeypatch.setattr(silent, "read_line", lambda _: type(silent).read_line(silent, 0.2))
    lease._pulse._beat()
    assert lease._keeper._process is not silent
    os.kill(frozen, signal.SIGCONT)
    wait_until(lambda: not is_running(frozen))
    lease.confirm()
    assert all(is_running(pid) for pid in pids)
    with pytest.raises(TestbedReservedError, match="alice@ci3"):
        lab.take("bob@desk")


def ends_slowly(file, other):
    file.lock(7)
    other.send(file.is_only({"ticket": 7}))
    other.recv()


def test_the_last_of_two_keepers_that_end_together_is_the_only_one(tmp_path):
    file = ReservationFile(str(tmp_path / "testbed"))
    file.lock(7)
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    process = fork.Process(target=ends_slowly, args=(file, there), daemon=True)
    process.start()
    assert not here.recv()
    assert file.is_only({"ticket": 7})
    here.send(None)
    process.join()


def test_a_keeper_ends_what_another_user_could_not_kill_long_before_its_holder_asks_again(lab):
    session = lab.session()
    lab.take("alice@ci3", session=session, seconds=600.0)
    pids = started(session)
    with ReservationFile(str(lab.file)).mutex() as record:
        record["lease"] = None
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_a_lease_that_was_left_ends_when_the_node_boots():
    left = {"version": VERSION, "boot": boot(), "expires": clock() + 60.0}
    assert 0.0 < left_of(left) <= 60.0
    assert left_of({**left, "boot": "an earlier one"}) == 0.0


def test_force_ends_the_lease_of_a_keeper_that_is_frozen(lab):
    session = lab.session()
    lab.take("alice@ci3", session=session, seconds=60.0)
    pids = started(session)
    keeper = keeper_of(lab)
    os.kill(keeper, signal.SIGSTOP)
    assert clear(lab.session(), lab.claim("bob@desk"), force=True).owner == "alice@ci3"
    lab.take("bob@desk")
    assert not any(is_running(pid) for pid in pids)
    os.kill(keeper, signal.SIGKILL)


def removed(lab):
    lab.file.unlink()


def replaced(lab):
    other = lab.file.with_name("other")
    other.write_bytes(lab.file.read_bytes())
    other.rename(lab.file)


def moved_away(lab):
    lab.file.rename(lab.file.with_name("other"))


def overwritten(lab):
    with lab.file.open("r+b") as file:
        file.write(b"{}")


def emptied(lab):
    os.truncate(lab.file, 0)


@pytest.mark.parametrize("damage", [removed, moved_away, overwritten, emptied])
def test_what_a_holder_runs_ends_at_the_next_heartbeat_if_the_file_was_damaged(lab, damage):
    session = lab.session()
    lease = lab.take(session=session, seconds=600.0)
    pids = started(session)
    damage(lab)
    with pytest.raises(ReservationError, match=r"released it, or removed its file|the record is damaged"):
        lease.confirm()
    wait_until(lambda: not any(is_running(pid) for pid in pids))


@pytest.mark.parametrize("damage", [removed, replaced, moved_away, emptied])
def test_the_next_holder_begins_when_the_old_holder_has_ended(lab, damage):
    first, second = lab.session(), lab.session()
    lab.take("alice@ci3", session=first, seconds=8.0)
    pids = started(first)
    damage(lab)
    if damage is replaced:
        # A copy of the record says that the lease is there, and its holder is none any more.
        clear(second, lab.claim(), force=True)
    lab.take("bob@desk", session=second, wait=60.0)
    assert not any(is_running(pid) for pid in pids)


def test_a_copy_in_place_of_the_file_changes_nothing_for_its_holder(lab):
    lease = lab.take("alice@ci3", seconds=600.0)
    replaced(lab)
    lease.confirm()
    with pytest.raises(TestbedReservedError, match="alice@ci3"):
        lab.take("bob@desk")
