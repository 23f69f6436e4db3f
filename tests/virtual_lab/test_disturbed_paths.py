"""A kernel that disturbs the path in a known way (netem): what it loses, repeats and delays is told as that."""

from __future__ import annotations

import math
from contextlib import contextmanager

from layouts import topologies
from measuring import FRAMES, PATIENTLY, count_frames, place

from lossratio import load_profile
from lossratio.measurements.latency.measure import LatencyRequest, measure_latency
from lossratio.results import doubts_of
from lossratio.testbed import open_testbed

EAST = 1
"""The card of the DUT behind which frames from the west leave."""


@contextmanager
def disturbed(machine, *how):
    """Disturbs what leaves a machine to the east."""
    interface = machine.interface(EAST)
    machine.run("tc", "qdisc", "replace", "dev", interface, "root", "netem", "limit", "100000", *how)
    try:
        yield
    finally:
        machine.run("tc", "qdisc", "delete", "dev", interface, "root")


def measured(lab, tmp_path, *how):
    """The directions of a trial over a bridge that disturbs frames to the east: eastward, westward."""
    # A DUT that changes after its set-up is an error.
    with disturbed(lab["DUT1"], *how):
        result = count_frames(topologies(lab)["vmxnet3"], tmp_path, "linux_bridge")
    (trial,) = result.trials
    return result, *trial.directions


def test_frames_that_the_path_loses_are_lost_that_way_and_no_other(lab, tmp_path):
    result, eastward, westward = measured(lab, tmp_path, "loss", "25%")
    assert (eastward.sent_frames, westward.sent_frames) == (FRAMES, FRAMES)
    lost = eastward.sent_frames - eastward.received_frames
    assert abs(lost - 0.25 * FRAMES) <= 5.0 * math.sqrt(0.25 * 0.75 * FRAMES)
    assert westward.received_frames == FRAMES
    assert result.trials[0].missing.lost_by_sut == lost


def test_frames_that_the_path_repeats_count_once_and_are_named(lab, tmp_path):
    result, eastward, westward = measured(lab, tmp_path, "duplicate", "100%")
    assert eastward.received_frames == westward.received_frames == FRAMES
    assert result.trials[0].missing.lost_by_sut == 0
    ((doubt, *_),) = doubts_of([result])
    assert f": {FRAMES} duplicated" in str(doubt)


def test_frames_that_the_path_delays_are_late_and_not_lost(lab, tmp_path):
    result, eastward, westward = measured(lab, tmp_path, "delay", "700ms")
    assert eastward.received_frames == westward.received_frames == FRAMES
    assert result.trials[0].missing.lost_by_sut == 0


def test_frames_that_overtake_others_are_received_and_counted(lab, tmp_path):
    """Each fifth frame leaves at once. It overtakes the four before it, which wait for longer than those take."""
    result, eastward, westward = measured(lab, tmp_path, "delay", "700ms", "reorder", "100%", "gap", "5")
    assert eastward.received_frames == westward.received_frames == FRAMES
    assert result.trials[0].missing.lost_by_sut == 0
    # The first and the last fifth frame need not be those of the trial.
    assert FRAMES * 4 // 5 - 5 <= eastward.reordered_frames <= FRAMES * 4 // 5 + 1
    assert westward.reordered_frames == 0


def test_a_delay_is_in_the_latencies_of_its_direction_and_no_other(lab, tmp_path):
    delay, load, seconds = 0.4, 50.0, 8.0
    request = LatencyRequest(profile=load_profile("ethip4-udp", frame_size=128), points=(load,), duration=seconds)
    with (
        disturbed(lab["DUT1"], "delay", f"{delay:g}s"),
        open_testbed(topologies(lab)["vmxnet3"], dut="linux_bridge", recovery=PATIENTLY) as testbed,
    ):
        result = measure_latency(testbed, request, place(tmp_path))
    eastward, westward = result.latency[0].directions
    assert eastward.least_us >= delay * 1e6
    assert westward.mean_us < eastward.least_us
