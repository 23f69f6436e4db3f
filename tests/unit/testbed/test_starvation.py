"""A program that waited for a CPU while its ring overflowed is not told as a slow device; no clock decides here."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from fingerprint_examples import GOOD, NOW, WAY, later, waiting, with_node, without_node

from lossratio.errors import DutError
from lossratio.testbed.changes import STARVED
from lossratio.testbed.repair import RepairingMeasurer
from lossratio.testbed.starvation import RingReader, Unfetched, starved_in
from lossratio.testbed.testbed import Recovery
from lossratio.testbed.watch import Watch
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, Incident, TrialOutput

TRIAL = TrialInput(0.5, 20_000.0)
HOLDS = 0.16


def output_of(lost, *, drops=0, elapsed=None):
    """10,000 frames each way, of which some are lost eastward, or dropped by the generator."""
    east = DirectionCounters(
        "port0>port1", 10_000, 10_000, 10_000 - lost - drops, generator_drop_frames=drops, elapsed_s=elapsed
    )
    west = DirectionCounters("port1>port0", 10_000, 10_000, 10_000)
    return TrialOutput((lost + drops) / 20_000, sent_frames=20_000, lost_frames=lost + drops, directions=(east, west))


def starved(waited, unfetched, output, **sides):
    looks = (GOOD, with_node(NOW, "DUT1", threads=waiting(waited)))
    return list(starved_in(TRIAL, output, looks, [Unfetched("DUT1", HOLDS, {"west": unfetched, **sides})]))


def test_a_wait_that_explains_the_loss_is_told_with_its_evidence():
    # The ring is full after .16 s, and 2,800 frames come in .14 s.
    (change,) = starved(0.3, 2800, output_of(2800))
    assert change.rule is STARVED
    assert change.rule.act == "note"
    assert str(change) == (
        "the ring in front of the DUT's program on DUT1 overflowed while its thread vpp_wk_0 waited for a CPU for "
        "0.3 s (2,800 frames found no room; it holds 0.16 s)"
    )
    assert change.incident("stands") == Incident("DUT", "DUT1", None, str(change), "stands", 2800)


@pytest.mark.parametrize(
    ("waited", "unfetched", "output"),
    [
        pytest.param(0.0, 2800, output_of(2800), id="it had its CPU: the device is slow"),
        pytest.param(0.15, 2800, output_of(2800), id="the ring bridged the wait"),
        pytest.param(0.25, 2800, output_of(2800), id="it waited for a part of the loss only"),
        pytest.param(0.3, 0, output_of(2800), id="all frames were lost behind the ring"),
        pytest.param(0.3, 1000, output_of(2800), id="most frames were lost behind the ring"),
        pytest.param(0.3, 0, output_of(0), id="none was lost"),
    ],
)
def test_any_other_loss_is_the_devices(waited, unfetched, output):
    assert starved(waited, unfetched, output) == []


def test_both_rings_are_full_at_the_same_time():
    assert [change.explained_frames for change in starved(0.3, 2800, output_of(5600), east=2800)] == [5600]


def test_two_devices_in_a_row_explain_a_loss_together():
    looks = (GOOD, with_node(NOW, "DUT1", threads=waiting(0.3)))
    rings = [Unfetched("DUT1", HOLDS, {"west": 900}), Unfetched("DUT1", HOLDS, {"west": 0, "east": 900})]
    assert [change.explained_frames for change in starved_in(TRIAL, output_of(2000), looks, rings)] == [900, 900]
    assert list(starved_in(TRIAL, output_of(2000), looks, rings[:1])) == []


def test_frames_of_earlier_traffic_explain_no_more_than_the_trial_has_lost():
    assert [change.explained_frames for change in starved(0.4, 2800, output_of(400))] == [400]


def test_a_trial_that_ended_early_had_the_rate_of_its_own_time():
    assert starved(0.2, 2800, output_of(2800)) == []
    assert len(starved(0.2, 2800, output_of(2800, elapsed=0.2))) == 1


def test_a_node_that_did_not_answer_is_not_judged():
    rings = [Unfetched("DUT1", HOLDS, {"west": 2800})]
    assert list(starved_in(TRIAL, output_of(2800), (GOOD, without_node(NOW, "DUT1")), rings)) == []


class Rings:
    """A DUT's program, whose counters are given one after the other."""

    hop = SimpleNamespace(node_name="DUT1")

    def __init__(self, *counts, holds=HOLDS):
        self.hold_time = holds
        self._counts = list(counts)

    def unfetched_frames(self):
        count = self._counts.pop(0)
        if isinstance(count, Exception):
            raise count
        return {"west": count}


def test_frames_are_counted_since_the_last_reading_and_a_new_program_counts_from_zero():
    reader = RingReader([Rings(holds=None), Rings(5, 7, 0)])
    reader.begin()
    assert [[ring.frames for ring in reader.read()] for _ in range(2)] == [[{"west": 2}], [{"west": 0}]]


def test_frames_that_a_program_takes_after_its_trial_hide_none_of_the_next_one():
    # 100 of the 300 frames only waited: the next trial begins with 210, and loses 50.
    dut = Rings(10, 310, 210, 260)
    reader = RingReader([dut])
    watch = Watch(Looks(0.0), WAY, lambda: None, lambda: 0.0, reader)
    watch.begin()
    found = []
    for _ in range(2):
        watch.begin_trial()
        watch.begin_attempt()
        found += [ring.frames for ring in reader.read()]
    assert found == [{"west": 300}, {"west": 50}]


class Looks:
    """A testbed whose thread waits for some seconds more between two looks."""

    def __init__(self, *waits):
        self._waits = [0.0, *waits]

    def read(self):
        return with_node(later(GOOD), "DUT1", threads=waiting(self._waits.pop(0)))


class Outputs:
    """Measures trials as given; one that was repeated begins as often."""

    def __init__(self, watch, *outputs):
        self._watch = watch
        self._outputs = list(outputs)

    def measure(self, trial):
        output = self._outputs.pop(0)
        for _ in range(output.repeats + 1):
            self._watch.begin_attempt()
        return output


def measured(dut, *outputs, waits):
    watch = Watch(Looks(*waits), WAY, lambda: None, lambda: 0.0, RingReader([dut]))
    watch.begin()
    one = RepairingMeasurer(
        Outputs(watch, *outputs), repair=lambda: None, check=lambda: None, watch=watch, recovery=Recovery((0.0,))
    )
    return [one.measure(TRIAL) for _ in outputs]


def test_only_a_lossy_trial_costs_a_question_and_has_the_incident():
    # The same thread waits in the second and in the third trial, but there the ring has room.
    dut = Rings(10, 2810, 2810, 2810)
    outputs = [output_of(0), output_of(2800), output_of(2800), output_of(0, drops=5)]
    trials = measured(dut, *outputs, waits=(0.3, 0.6, 0.9, 1.2))
    assert [[each.explained_frames for each in trial.incidents] for trial in trials] == [[], [2800], [], []]


@pytest.mark.parametrize(("waited", "explained"), [(0.6, []), (0.9, [2800])])
def test_what_a_program_lacked_in_an_earlier_attempt_does_not_explain_a_loss(waited, explained):
    # In the first attempt, it lost 5,000 frames and waited for .6 s.
    output = replace(output_of(2800), repeats=1)
    (trial,) = measured(Rings(0, 5000, 7800), output, waits=(0.6, waited))
    assert [each.explained_frames for each in trial.incidents] == explained


def test_a_program_that_died_in_a_trial_ends_the_measurement():
    died = DutError("DUT1: vpp has died.")
    with pytest.raises(DutError, match=r"^DUT1: vpp has died\.$"):
        measured(Rings(0, died), output_of(10), waits=(0.0,))
