"""Frames that a receive queue of a real device dropped are exactly those that a trial lost."""

from __future__ import annotations

import shutil
import threading

import pytest
from local_testbeds import local_topology, needs_testbed, own_state
from measurement_examples import PROFILE, place

from lossratio.bpf import why_impossible
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.results.findings import message
from lossratio.testbed.opening import open_testbed

NO_BPF = why_impossible()
pytestmark = [
    pytest.mark.netns,
    needs_testbed,
    pytest.mark.skipif(shutil.which("dpdk-testpmd") is None, reason="DPDK is not installed (Debian package dpdk)"),
    pytest.mark.skipif(NO_BPF is not None, reason=f"no BPF here: {NO_BPF}"),
]
REQUEST = MrrRequest(profile=PROFILE, max_load=20e3, trials=2, trial_duration=1.0)


@pytest.fixture(scope="module")
def testbed(tmp_path_factory):
    """A testbed whose device forwards with AF_XDP sockets: veth counts what finds no room in their rings."""
    with own_state():
        file = local_topology(tmp_path_factory.mktemp("topology"), "queues")
        # AF_XDP takes frames of a page of memory, and a busy machine stalls the generator for longer than users allow.
        text = file.read_text().replace("catch_up: 5 ms", "catch_up: 400 ms")
        file.write_text(text.replace("nodes:", "mtu: 3400\nnodes:", 1))
        with open_testbed(file, dut="testpmd", options={"sockets": "af_xdp"}) as testbed:
            yield testbed


def stopped(testbed, seconds, stop):
    """Stops the device's program again and again, for so long each time."""
    (dut,) = testbed.duts
    (daemon,) = dut.daemons
    once = f'sleep .4; kill -STOP "$1"; sleep {seconds}; kill -CONT "$1"'
    pid = dut.node.run("cat", f"{daemon.directory}/{daemon.name}.pid").split()[0]
    while not stop.is_set():
        dut.node.run("sh", "-c", once, "stop", pid)


def test_the_queues_of_a_program_that_pauses_dropped_all_lost_frames(testbed, tmp_path):
    stop = threading.Event()
    pauses = threading.Thread(target=stopped, args=(testbed, 0.3, stop))
    pauses.start()
    try:
        result = measure_mrr(testbed, REQUEST, place(tmp_path))
    finally:
        stop.set()
        pauses.join()

    drops = result.queue_drops
    assert drops.lost_frames > 1000
    assert sum(queue.dropped_frames for queue in drops.queues) == drops.lost_frames
    assert (drops.unexplained_frames, drops.surplus_frames) == (0, 0)
    assert {(queue.node, queue.interface, queue.queue) for queue in drops.queues} == {
        ("DUT1", "dut0", 0),
        ("DUT1", "dut1", 0),
    }
    assert f"dropped all {drops.lost_frames:,} lost frames" in message(result)
    # Frames that the program takes from its ring only after the trial are late, not lost.
    dropped = [sum(queue.dropped_frames for queue in trial.queues) for trial in result.trials]
    assert dropped == [trial.missing.lost_by_sut for trial in result.trials]


def test_no_queue_is_named_where_no_frame_is_lost(testbed, tmp_path):
    result = measure_mrr(testbed, REQUEST.but(max_load=1000.0, trials=1, trial_duration=0.2), place(tmp_path))
    assert sum(trial.missing.lost_by_sut for trial in result.trials) == 0
    assert result.queue_drops is None
    assert "Receive queues" not in message(result)
