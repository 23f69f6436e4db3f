"""Devices that remember trials: what a search looks for before it begins."""

from __future__ import annotations

from dataclasses import replace

import pytest
from measurement_examples import PROFILE, place
from perfect_sut import PerfectTestbed, two_frames, unsent

from lossratio.measurements.look_for_memory import remarks_on_memory
from lossratio.measurements.throughput import SearchRequest, find_conditional_throughput
from lossratio.mlrsearch import NDR, PDR
from lossratio.results.findings import doubts_of
from lossratio.results.note import NoteKind, Weight
from lossratio.testbed.opening import open_testbed

REQUEST = SearchRequest(goals=(NDR, PDR), profile=PROFILE)
BUCKET = """
format: lossratio-topology/1
name: box
testbed: simulated
nodes:
  TG:
    type: TG
    generator: {kind: simulated, max_rate: 40 kfps}
    interfaces: {p0: {link: l0}, p1: {link: l1}}
  DUT1:
    type: DUT
    sut: {model: policer, rate: 8400, burst: 8400}
    interfaces: {p0: {link: l0}, p1: {link: l1}}
"""


@pytest.mark.whole
@pytest.mark.parametrize(("rest", "remembers"), [(0.0, True), (2.0, False)])
def test_a_black_box_that_remembers_trials_is_found_before_the_search(tmp_path, rest, remembers):
    file = tmp_path / "box.yaml"
    file.write_text(BUCKET)
    box = open_testbed(file, dut="black_box")
    request = REQUEST.but(rest=rest, min_load=100.0)
    result = find_conditional_throughput(box, request, place(tmp_path))
    (remark,) = (remark for remark in result.remarks if "in trials of 0.5 s at 40.000 kfps" in remark.text)
    assert (remark.weight is Weight.DOUBT) is remembers
    doubts = [doubt.kind for doubt in doubts_of([result])[0]]
    assert (NoteKind.MEMORY in doubts) is remembers
    if remembers:
        # The bucket is full again after one second.
        assert "rest=1 s helps" in remark.text
    by_option = open_testbed(file, dut="black_box", options={"rest": "2 s"})
    same = find_conditional_throughput(by_option, request.but(rest=0.0), place(tmp_path, "by option"))
    assert not any(remark.weight is Weight.DOUBT for remark in same.remarks)


def remarks_on_a_perfect_box(tmp_path, injector):
    """What the look for memory says of a black box that loses nothing, behind a tester that an injector spoils."""
    box = PerfectTestbed(tmp_path, injector, dut="black_box")
    remarks = (note.text for note in remarks_on_memory(box, REQUEST, 1e5))
    return [remark for remark in remarks if "in trials of 0.5 s" in remark]


def test_a_box_is_not_blamed_for_frames_that_were_not_sent_right_after_a_trial(tmp_path):
    def tired(moment, counters):
        return counters if moment.trial.rest or moment.number <= 2 else unsent(counters, 0.3)

    (remark,) = remarks_on_a_perfect_box(tmp_path, tired)
    assert remark == (
        "it is not known whether the device remembers trials: in trials of 0.5 s at 100.00 kfps per interface up to "
        "29,998 frames were unsent, late or dropped by the generator"
    )


def half_lost(counters):
    return replace(counters, received_frames=counters.sent_frames // 2)


@pytest.mark.parametrize("good", [1, 2])
def test_a_box_that_gets_slower_for_good_during_the_look_for_memory_does_not_remember(tmp_path, good):
    def used_up(moment, counters):
        return counters if moment.number <= good else half_lost(counters)

    (remark,) = remarks_on_a_perfect_box(tmp_path, used_up)
    assert remark == (
        "it is not known whether the device remembers trials: in trials of 0.5 s at 100.00 kfps per interface it "
        "forwarded 100,000 frames after 4 s of rest, and 50,000 after 0 s, but 50,000 after another 4 s of rest: it "
        "has changed since, or it remembers for more than 4 s"
    )


@pytest.mark.parametrize(
    ("loses", "said"),
    [
        (lambda number: False, ", and lost none"),
        (lambda number: number > 2, ", and only then lost some"),
        (lambda number: number % 2 == 0, None),
    ],
    ids=["nothing", "from then on", "now and then"],
)
def test_what_a_box_passed_before_it_lost_frames(tmp_path, loses, said):
    def box(moment, counters):
        return half_lost(counters) if loses(moment.number) else counters

    testbed = PerfectTestbed(tmp_path, box, dut="black_box")
    notes = [note.text for note in remarks_on_memory(testbed, REQUEST, 1e5) if note.kind is NoteKind.PASSED]
    assert [note.partition(" per interface")[2] for note in notes] == ([] if said is None else [said])


def test_a_box_that_is_faster_without_a_rest_is_not_said_to_remember_nothing(tmp_path):
    def slow_to_begin(moment, counters):
        return half_lost(counters) if moment.number == 1 else counters

    (remark,) = remarks_on_a_perfect_box(tmp_path, slow_to_begin)
    assert remark == (
        "it is not known whether the device remembers trials: in trials of 0.5 s at 100.00 kfps per interface it "
        "forwarded 50,000 frames after 4 s of rest, and 100,000 after 0 s; it may be slow to start"
    )


@pytest.mark.parametrize("passed", [12_000.0, 25_000.0, 40_000.0])
def test_a_generator_that_cannot_send_the_load_looks_for_memory_at_a_smaller_one(tmp_path, passed):
    def sends_30_kfps_to_a_policer(_, counters):
        seconds = counters.elapsed_s or 1.0
        sent = min(counters.sent_frames, round(30_000 * seconds))
        unsent_frames = counters.sent_frames - sent
        passing = min(sent, round(passed * seconds))
        return replace(counters, sent_frames=sent, unsent_frames=unsent_frames, received_frames=passing)

    (remark,) = remarks_on_a_perfect_box(tmp_path, sends_30_kfps_to_a_policer)
    assert "in trials of 0.5 s at 27.00" in remark


def test_a_few_unsent_frames_are_no_reason_to_know_nothing_about_a_box_or_to_rest_again(tmp_path):
    rests = []

    def a_few_unsent(moment, counters):
        rests.append(moment.trial.rest)
        return two_frames(moment, counters)

    (remark,) = remarks_on_a_perfect_box(tmp_path, a_few_unsent)
    assert remark.startswith("the device does not seem to remember trials")
    directions = 2
    assert rests == [rest for rest in (4.0, 0.0, 0.0, 0.0, 4.0) for _ in range(directions)]
