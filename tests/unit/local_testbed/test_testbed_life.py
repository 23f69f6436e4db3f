"""Whatever ends a testbed, nothing of it is left."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from testbed_probes import (
    Caller,
    alive,
    make_topology,
    namespaces_of,
    processes_in,
    processes_with,
    running,
    start_building,
)
from waiting import wait_until

from lossratio.errors import TopologyError
from lossratio.nodes import NodeSession
from lossratio.testbed.local import LocalTestbed, find, state, status

pytestmark = pytest.mark.netns


def entries(state_home):
    root = state_home / "lossratio" / "testbeds"
    return [path.name for path in root.iterdir() if path.name != ".lock"] if root.exists() else []


def host_state():
    interfaces = sorted(os.listdir("/sys/class/net"))
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return interfaces, mounts, sorted(os.listdir("/run"))


def test_a_testbed_that_was_taken_down_has_left_nothing(state_home):
    before = host_state()
    with LocalTestbed.up(make_topology()) as testbed:
        namespaces = namespaces_of(testbed)
        assert len(namespaces) == 7, "net, mnt and ipc of two nodes, and one pid for both"
        processes = processes_in(namespaces)
        assert len(processes) >= 3, "init and two nodes"
        assert host_state() == before
        assert entries(state_home) == [testbed.directory.name]
    assert alive(processes) == set()
    assert entries(state_home) == []
    assert host_state() == before


@pytest.mark.smoke
def test_killing_the_run_leaves_nothing(user, state_home):
    with running(user, state_home) as run:
        run.process.kill()
        wait_until(run.is_gone)


def test_killing_the_holder_leaves_nothing_but_a_directory_that_the_next_look_removes(user, state_home):
    with running(user, state_home) as run:
        os.kill(run.holder, signal.SIGKILL)
        wait_until(lambda: not alive(run.processes))
        assert run.directory.exists()
        assert user.run(state_home, "from lossratio.testbed.local import status; print(len(status()))") == 0
        assert not run.directory.exists()


@pytest.mark.parametrize("victim", ["init", "node"])
def test_killing_any_process_it_rests_on_ends_all_of_it(user, state_home, victim):
    with running(user, state_home) as run:
        os.kill(getattr(run, victim)(), signal.SIGKILL)
        wait_until(lambda: not run.directory.exists())
        run.process.kill()
        run.process.wait()
        wait_until(run.is_gone)


def test_interrupting_the_run_takes_the_testbed_down(user, state_home):
    with running(user, state_home) as run:
        run.process.send_signal(signal.SIGINT)
        assert run.process.stdout.readline() == "interrupted\n"
        assert run.process.wait(20) == 0
        assert run.is_gone()


def test_interrupting_the_building_of_one_that_is_to_stay_leaves_nothing(state_home):
    process = start_building(Caller(), state_home, arguments=", keep=True")
    time.sleep(random.uniform(0.0, 0.5))
    process.send_signal(signal.SIGINT)
    # Either it was interrupted before it was there to stay, or it is there as if it had not been interrupted.
    output, _ = process.communicate(timeout=240)
    assert output == "interrupted\n"
    wait_until(lambda: not processes_with(str(state_home)) or status())
    for stays in status():
        stays.down()
    wait_until(lambda: not processes_with(str(state_home)))
    assert entries(state_home) == []


@pytest.mark.parametrize(
    ("kind", "delay"),
    [(signal.SIGINT, 0.02), (signal.SIGINT, 0.1), (signal.SIGINT, 0.3), (signal.SIGKILL, 0.05), (signal.SIGKILL, 0.2)],
)
def test_ending_the_run_at_any_moment_of_the_building_leaves_nothing(state_home, kind, delay):
    process = start_building(Caller(), state_home)
    time.sleep(delay * random.uniform(0.5, 1.5))
    process.send_signal(kind)
    process.communicate(timeout=240)
    wait_until(lambda: not processes_with(str(state_home)))
    assert status() == []
    assert entries(state_home) == []


def test_a_testbed_outlives_the_thread_that_built_it():
    built = []
    thread = threading.Thread(target=lambda: built.append(LocalTestbed.up(make_topology())))
    thread.start()
    thread.join()
    with built[0] as testbed, NodeSession.connect("TG", testbed.topology.nodes["TG"]) as session:
        assert session.run("echo", "alive").stdout == "alive\n"
    assert not testbed.is_up


def test_taking_down_twice_is_no_error():
    testbed = LocalTestbed.up(make_topology())
    testbed.down()
    testbed.down()
    assert not testbed.is_up


def test_a_testbed_that_cannot_be_built_leaves_nothing(state_home):
    nodes = make_topology().model_dump(mode="json")["nodes"]
    nodes["DUT1"]["interfaces"]["west"]["name"] = "lo"
    with pytest.raises(TopologyError, match=r"Testbed probe cannot be built: .*File exists"):
        LocalTestbed.up(make_topology(nodes=nodes))
    assert entries(state_home) == []
    assert processes_with(str(state_home)) == set()


def test_a_directory_that_a_killed_run_left_is_removed_by_the_next_one(state_home):
    abandoned, lock = state.create_directory("probe")
    (abandoned / "id_ed25519").write_text("an old key")
    os.close(lock)
    with LocalTestbed.up(make_topology()) as testbed:
        assert entries(state_home) == [testbed.directory.name]


class TestTestbedsThatStay:
    def test_one_outlives_the_process_that_built_it_and_is_found_by_others(self, user, state_home):
        probes = "import json\nfrom testbed_probes import make_topology, namespaces_of\n"
        probes += "from lossratio.testbed.local import LocalTestbed, find, status\n"
        up = "t = LocalTestbed.up(make_topology('stays'), keep=True); print(json.dumps(sorted(namespaces_of(t))))"
        namespaces = user.run(state_home, probes + up)
        processes = processes_in(set(namespaces))
        assert processes
        others = """
with LocalTestbed.use(make_topology('stays')) as joined:
    namespaces = sorted(namespaces_of(joined))
(seen,) = status()
find('stays').down()
print(json.dumps([namespaces, seen.name, seen.keep, seen.pid == joined.pid, seen.is_up]))
"""
        assert user.run(state_home, probes + others) == [namespaces, "stays", True, True, False]
        assert alive(processes) == set()
        assert entries(state_home) == []

    def test_a_second_one_of_the_same_name_is_refused(self):
        stays = LocalTestbed.up(make_topology(), keep=True)
        try:
            with pytest.raises(TopologyError, match="already up"):
                LocalTestbed.up(make_topology(), keep=True)
            stays.release()
            assert stays.is_up
            assert find("probe").pid == stays.pid
        finally:
            stays.down()
        assert find("probe") is None

    def test_one_that_was_built_from_another_file_is_not_joined(self):
        stays = LocalTestbed.up(make_topology(), keep=True)
        try:
            with pytest.raises(TopologyError, match="its file has changed since it was built"):
                LocalTestbed.use(make_topology(duts=2))
        finally:
            stays.down()

    def test_where_none_stays_one_is_built_for_the_run(self):
        with LocalTestbed.use(make_topology()) as testbed:
            assert not testbed.keep
            assert find("probe") is None
        assert not testbed.is_up


def test_a_testbed_is_found_whatever_the_encoding_of_the_locale(tmp_path):
    state_of = """
import os
from pathlib import Path
from lossratio.testbed.local import state
from lossratio.topology import load_topology

topology = load_topology("local").model_copy(update={"description": "M\\N{LATIN SMALL LETTER U WITH DIAERESIS}nchen"})
directory, lock = state.create_directory("probe")
state.write_state(directory, state.State(topology=topology, pid=1, keep=True, username="me", nodes={}))
((_, known),) = state.running()
print(ascii(known.topology.description))
"""
    # Python's own encoding would be UTF-8 in this locale, as in most others.
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", state_of], env={**os.environ, **ascii_only}, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == (r"'M\xfcnchen'", "")
