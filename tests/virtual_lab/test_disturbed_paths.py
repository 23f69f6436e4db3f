"""A kernel that disturbs the path in a known way (netem): what it loses, repeats and delays is told as that."""

from __future__ import annotations

import math
from contextlib import contextmanager

from layouts import topologies

from lossratio import RunDirectory, TestIdentity, TestPlace, load_profile
from lossratio.measurements.measure import measure
from lossratio.measurements.mrr import MrrRequest
from lossratio.results import doubts_of
from lossratio.results.kinds import kind_of
from lossratio.testbed import open_testbed

LOAD, SECONDS = 50.0, 4.0
FRAMES = round(LOAD * SECONDS)
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
    request = MrrRequest(
        profile=load_profile("ethip4-udp", frame_size=64), max_load=LOAD, trials=1, trial_duration=SECONDS
    )
    place = TestPlace(TestIdentity(name="linux_bridge", suite="virtual lab"), RunDirectory(tmp_path))
    # A DUT that changes after its set-up is an error.
    with disturbed(lab["DUT1"], *how), open_testbed(topologies(lab)["vmxnet3"], dut="linux_bridge") as testbed:
        result = measure(kind_of("mrr"), testbed, request, place)
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
