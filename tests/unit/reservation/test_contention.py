"""Many who want one testbed, each over an SSH session of its own or as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from ssh_server import needs_sshd
from waiting import wait_until

from lossratio.testbed.reservation.lease import Lease, TestbedReservedError, holder_of

pytestmark = needs_sshd
LIBRARIES = Path(__file__).parents[3] / "libraries"
CONTENDERS = 12


def test_they_are_served_one_at_a_time_and_in_the_order_in_which_they_came(lab):
    first = lab.take("first")
    inside, order, threads = [], [], []
    session = [lab.session() for _ in range(2)]

    def contend(number):
        wait = 0.2 if number in (3, 4) else 300
        try:
            lease = lab.take(str(number), wait=wait, session=session[number % 2])
        except TestbedReservedError:
            return
        inside.append(number)
        assert inside == [number]
        order.append(number)
        time.sleep(0.01)
        inside.remove(number)
        lease.release()

    for number in range(CONTENDERS):
        before = lab.tickets()
        threads.append(threading.Thread(target=contend, args=(number,)))
        threads[-1].start()
        wait_until(lambda before=before: lab.tickets() - before)
    first.release()
    for thread in threads:
        thread.join()
    assert order == [number for number in range(CONTENDERS) if number not in (3, 4)]


def test_a_request_that_does_not_wait_does_not_jump_the_queue(lab):
    first = lab.take("first")
    done = threading.Event()
    session = lab.session()

    def wait_for_turn():
        lab.take("second", wait=300, session=session)
        done.set()

    threading.Thread(target=wait_for_turn, daemon=True).start()
    wait_until(lambda: len(lab.tickets()) == 2)
    first.release()
    with pytest.raises(TestbedReservedError):
        lab.take("hasty")
    assert done.wait(300)


def test_who_waits_for_several_testbeds_gets_the_first_free_one_and_leaves_the_other_queue(lab):
    first = lab.take("first")
    claims = [lab.claim("many"), replace(lab.claim("many"), file=f"{lab.file}2")]
    other = Lease.take((lab.session(), replace(lab.claim("first"), file=f"{lab.file}2")))
    threading.Timer(0.3, other.release).start()
    with Lease.take(*((lab.session(), claim) for claim in claims), wait=300) as lease:
        assert holder_of(lab.session(), claims[1]).owner == "many"
        wait_until(lambda: len(lab.tickets()) == 1)
        lease.confirm()
    first.release()
    lab.take("second")


def test_processes_that_are_killed_while_they_wait_or_hold_keep_nobody_out(lab, tmp_path):
    node = lab.server.node().model_dump_json(exclude_none=True)

    def contender(owner, hold, seconds=8.0):
        arguments = (node, str(tmp_path), owner, str(hold), str(seconds))
        environment = {**os.environ, "PYTHONPATH": str(LIBRARIES)}
        script = Path(__file__).with_name("contender.py")
        return subprocess.Popen([sys.executable, str(script), *arguments], env=environment)

    visits = tmp_path / "visits"
    holder = contender("holder", hold=300)
    wait_until(visits.exists)
    waiter = contender("waiter", hold=300)
    wait_until(lambda: len(lab.tickets()) == 2)
    survivors = [contender(f"survivor{number}", hold=0.05) for number in range(2)]
    wait_until(lambda: len(lab.tickets()) == 4)
    waiter.kill()
    waiter.wait()
    assert holder_of(lab.session(), lab.claim()).owner == "holder"
    holder.kill()
    holder.wait()
    (tmp_path / "inside").unlink()
    assert [survivor.wait(240) for survivor in survivors] == [0, 0]
    owners = [json.loads(line) for line in visits.read_text().splitlines()]
    assert sorted(owners) == ["holder", "survivor0", "survivor1"]


def test_a_clock_of_the_node_that_jumps_by_an_hour_changes_no_lease(lab, tmp_path):
    lab.take("alice@ci3", seconds=600.0).leave()
    wrong = tmp_path / "python"
    wrong.write_text(
        f"#!/bin/sh\nshift 3\nexec {sys.executable} -I -S -c 'import sys, time\n"
        "times = (time.time, time.clock_gettime)\n"
        "time.time = lambda: times[0]() + 3600\n"
        "time.clock_gettime = lambda clock: times[1](clock) + (3600 if clock == time.CLOCK_REALTIME else 0)\n"
        'exec(sys.argv.pop(1))\' "$@"\n'
    )
    wrong.chmod(0o755)
    lab.python = str(wrong)
    with pytest.raises(TestbedReservedError, match=r"alice@ci3.*that share only the TG need reservations of different"):
        lab.take("bob@desk")
