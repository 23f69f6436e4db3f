"""Everything that a lease started ends with the lease, at every end of it; and nobody goes on whose lease is gone."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from processes import children_of
from ssh_server import needs_sshd, sshd_of
from waiting import is_running, wait_until

from lossratio.testbed.reservation.keeper.fence import has_guard
from lossratio.testbed.reservation.keeper.record import ReservationFile
from lossratio.testbed.reservation.lease import ReservationLostError, clear

pytestmark = needs_sshd
# In a PID namespace, $$ is another number.
PROGRAM = """
sleep 300 < /dev/null > /dev/null 2>&1 & env -i setsid sleep 300 < /dev/null > /dev/null 2>&1 &
read -r pid rest < /proc/self/stat; echo $pid; exec sleep 300
"""


def started(session):
    """Ids of what a lease's holder runs: a program, its child, and one without any environment."""
    program = int(session.start("sh", "-c", PROGRAM).read_line(60.0))
    pids = {program}
    wait_until(lambda: len(pids.union(children_of(program))) == 3)
    return pids.union(children_of(program))


def keeper_of(lab):
    """Id of the process that keeps the lease."""
    lease = lab.record()["lease"]
    others = (lease["guard"][0], lease["inside"])
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(descriptor) == str(lab.file) and int(descriptor.parts[2]) not in others:
                return int(descriptor.parts[2])
        except OSError:
            continue
    raise AssertionError("nobody keeps the lease")


def lost(lease):
    try:
        lease.check()
    except ReservationLostError as error:
        return str(error)
    return ""


def release(lab, lease, session):
    lease.release()


def force(lab, lease, session):
    clear(lab.session(), lab.claim("bob@desk"), force=True)


def controller_dies(lab, lease, session):
    os.kill(sshd_of(session), signal.SIGKILL)


def keeper_freezes(lab, lease, session):
    keeper = keeper_of(lab)
    os.kill(keeper, signal.SIGSTOP)
    wait_until(lambda: not is_running(lab.record()["lease"]["guard"][0]))
    os.kill(keeper, signal.SIGKILL)


def guard_dies(lab, lease, session):
    os.kill(lab.record()["lease"]["guard"][0], signal.SIGKILL)


def file_is_removed(lab, lease, session):
    lab.file.unlink()


ENDS = [release, force, controller_dies, keeper_freezes, guard_dies, file_is_removed]


@pytest.mark.parametrize("end", ENDS)
def test_nothing_of_a_lease_outlives_it_although_it_is_frozen(lab, end):
    session = lab.session()
    lease = lab.take(session=session, seconds=4.0)
    pids = started(session)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    end(lab, lease, session)
    wait_until(lambda: not any(is_running(pid) for pid in pids))


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


@pytest.mark.parametrize("damage", [removed, replaced, moved_away, overwritten, emptied])
def test_a_holder_whose_file_was_damaged_notices_at_once_stops_and_says_so(lab, damage):
    session = lab.session()
    # The next heartbeat comes in 150 s, which is longer than the test waits.
    lease = lab.take(session=session, seconds=600.0)
    pids = started(session)
    damage(lab)
    wait_until(lambda: lost(lease))
    wait_until(lambda: not any(is_running(pid) for pid in pids))
    assert str(lab.file) in lost(lease) or "released" in lost(lease)


@pytest.mark.parametrize("damage", [removed, replaced, moved_away, emptied])
def test_the_next_holder_begins_when_the_old_holder_has_ended(lab, damage):
    first, second = lab.session(), lab.session()
    lab.take("alice@ci3", session=first, seconds=60.0)
    pids = started(first)
    damage(lab)
    if damage is replaced:
        # A copy of the record says that the lease is there, and its holder is none any more.
        clear(second, lab.claim(), force=True)
    lab.take("bob@desk", session=second)
    assert not any(is_running(pid) for pid in pids)


def test_a_record_that_was_overwritten_while_held_is_repaired_by_its_holder(lab):
    lease = lab.take("alice@ci3", seconds=60.0)
    overwritten(lab)
    wait_until(lambda: lost(lease))
    assert "overwrote" in lost(lease)
    lab.take("bob@desk")


def test_a_guard_that_died_is_replaced_at_the_next_heartbeat(lab):
    session = lab.session()
    lease = lab.take(session=session, seconds=60.0)
    guard_dies(lab, lease, session)
    wait_until(lambda: not is_running(lab.record()["lease"]["inside"]))
    lease.confirm()
    pids = started(session)
    lease.release()
    wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_a_guard_shows_that_it_is_there_as_soon_as_the_one_before_has_ended(lab):
    lab.take("alice@ci3", seconds=60.0)
    earlier = lab.record()["lease"]
    os.kill(keeper_of(lab), signal.SIGKILL)
    os.kill(earlier["guard"][0], signal.SIGSTOP)
    lab.file.unlink()
    lab.take("bob@desk", seconds=60.0)
    os.kill(earlier["guard"][0], signal.SIGKILL)
    wait_until(lambda: not any(is_running(pid) for pid in (earlier["guard"][0], earlier["inside"]) if pid is not None))
    file = ReservationFile(str(lab.directory), lab.file.name)
    wait_until(lambda: has_guard(file))
