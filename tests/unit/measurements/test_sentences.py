"""The sentence of a search: what is forwarded, how sharply it is known, and nothing that its trials do not show."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from report_examples import counted_trial, dropping_trial, stalled_trial, throughput, throughput_of

from lossratio.measurements.throughput import failed_search
from lossratio.measurements.throughput.extra_trials import LongerTrial
from lossratio.measurements.throughput.lines import terms
from lossratio.measurements.throughput.sentence import sentences
from lossratio.mlrsearch import NDR, PDR
from lossratio.results import LossPattern, LossPlaces, describe_trials, in_trials_without_loss, message, rate_in_words
from lossratio.simulation import SmoothKnee
from lossratio.simulation.constant_capacity import SharpKnee
from lossratio.trials import DirectionCounters, JournalEntry, StreamFrames, TrialInput, TrialOutput, TrialResult


@pytest.mark.whole
def test_a_clean_limit_is_forwarded_without_loss_and_has_its_sharpness():
    result = throughput(SharpKnee(capacity=200_000.0))
    ndr, pdr = sentences(result)
    (lower, upper) = (bound.per_interface_fps for bound in result.goals[0].bounds)
    gap = 100 * (1 - lower / upper)
    assert ndr == (
        f"NDR: forwards {lower:,.0f} frames/s of 64 B each way without loss "
        f"in trials of 1 s; the limit is proved to within {gap:.2g} %."
    )
    assert pdr.startswith("PDR (at most 0.5 % may be lost): forwards ")
    assert " when offered " in pdr


def test_a_limit_is_proved_no_sharper_than_one_frame():
    # A trial of 1 s has 12 frames at 11.99 fps, and 13 at 12.04 fps: the limit may be 12.5 fps.
    trials = [*[counted_trial(11.99)] * 21, *[counted_trial(12.04, lost=1)] * 21]
    (told,) = sentences(throughput_of(trials))
    assert told.endswith("without loss in trials of 1 s; the limit is proved to within 7.7 %.")


@pytest.mark.whole
def test_the_share_that_is_lost_fits_the_two_rates():
    result = throughput(SharpKnee(capacity=200_000.0))
    (report,) = (report for report in result.goals if report.goal.loss_ratio > 0)
    sentence = [*sentences(result)][-1]
    forwarded, offered, share = re.search(
        r"forwards ([\d,]+) .*when offered ([\d,]+) \(([\d.]+ % lost|none lost)\)", sentence
    ).groups()
    forwarded, offered = (float(number.replace(",", "")) for number in (forwarded, offered))
    if share == "none lost":
        assert forwarded == offered
    else:
        assert float(share.split()[0]) == pytest.approx(100 * (1 - forwarded / offered), rel=0.06)
    assert offered == pytest.approx(report.bounds[0].per_interface_fps, abs=1)


@pytest.mark.whole
def test_a_load_at_which_some_trials_lost_frames_is_not_without_loss():
    result = throughput(SmoothKnee(200_000.0, 3_000.0))
    ndr = next(sentences(result))
    lower = result.goals[0].bounds[0].per_interface_fps
    here = [trial for trial in result.trials if trial.is_evidence and trial.load_per_interface_fps == lower]
    lossy = sum(trial.missing.lost_by_sut > 0 for trial in here)
    assert lossy, "the example has such trials"
    assert f"without loss in {len(here) - lossy} of {len(here)} trials" in ndr


def test_a_goal_that_allows_loss_says_in_how_many_trials_nothing_was_lost():
    at_bound = [*[counted_trial(100_000.0)] * 20, counted_trial(100_000.0, lost=100)]
    result = throughput_of([*at_bound, *[counted_trial(100_400.0, lost=4_000)] * 21], goals=(PDR,))
    (sentence,) = sentences(result)
    assert "when offered 100,000 (none lost in 20 of 21 trials)" in sentence


def test_frames_that_were_not_sent_are_no_loss_of_the_device():
    result = throughput(SharpKnee(capacity=200_000.0))
    lower = result.goals[0].bounds[0].per_interface_fps
    trials = [
        trial.model_copy(update={"unsent_frames": 3, "lost_frames": 0, "directions": ()})
        if trial.load_per_interface_fps == lower
        else trial
        for trial in result.trials
    ]
    told = next(sentences(result.model_copy(update={"trials": tuple(trials)})))
    assert "each way without loss in trials of 1 s;" in told


@pytest.mark.parametrize(
    ("lost", "unsent", "late", "said"),
    [
        (400, 0, 0, "(0.4 % lost)"),
        (100, 300, 0, "(0.4 % missing; of 8,400 missing frames: 6,300 frames unsent)"),
        (399, 1, 0, "(0.4 % missing; of 8,400 missing frames: 21 frames unsent)"),
        (400, 0, 100, "(0.4 % missing; of 8,400 missing frames: 2,100 frames only late)"),
        (0, 400, 0, "(0.4 % missing; of 8,400 missing frames: 8,400 frames unsent)"),
        (400, 0, 400, "(0.4 % missing; of 8,400 missing frames: 8,400 frames only late)"),
        (300, 100, 300, "(0.4 % missing; of 8,400 missing frames: 2,100 frames unsent, 6,300 frames only late)"),
    ],
)
def test_frames_that_were_late_or_not_sent_are_not_lost_where_a_goal_allows_loss(lost, unsent, late, said):
    counted = counted_trial(100_000.0, lost=lost, unsent=unsent)
    at_bound = [replace(counted, output=replace(counted.output, late_frames=late))] * 21
    result = throughput_of([*at_bound, *[counted_trial(100_400.0, lost=4_000)] * 21], goals=(PDR,))
    (sentence,) = sentences(result)
    assert f"when offered 100,000 {said}" in sentence


def test_a_goal_that_allows_nearly_all_loss_has_no_exponent_in_its_sentence():
    goal = replace(PDR, loss_ratio=0.999, width=0.9995, name="hardly any")
    at_bound = [counted_trial(100_000.0, lost=99_700)] * 21
    (told,) = sentences(throughput_of([*at_bound, *[counted_trial(150_000.0, lost=149_990)] * 21], goals=(goal,)))
    assert "when offered 100,000 (more than 99 % lost)" in told


def test_one_trial_is_no_trials():
    lossy = describe_trials([JournalEntry.of(counted_trial(100_000.0, lost=3))])
    assert in_trials_without_loss(lossy) == " in 0 of 1 trial"


def of_voice(lost):
    streams = (StreamFrames("voice", 5_000, 5_000 - lost), StreamFrames("data", 15_000, 15_000))
    return stalled_trial(20_000.0, lost=lost, stall=0.0, streams=streams)


@pytest.mark.parametrize(
    ("lossy", "words"), [(0, "loses no frame when"), (5, "loses no frame in 16 of 21 trials when")]
)
def test_a_stream_that_lost_frames_in_some_trials_is_not_without_loss(lossy, words):
    at_lower = [*[of_voice(lost=3)] * lossy, *[of_voice(lost=0)] * (21 - lossy)]
    at_upper = [replace(of_voice(lost=40), input=TrialInput(1.0, 20_050.0))] * 21
    (told,) = sentences(throughput_of([*at_lower, *at_upper], goals=(replace(NDR, stream="voice"),)))
    assert words in told


@pytest.mark.parametrize("exceed_ratio", [0.0, 0.5])
def test_ndr_is_only_called_without_loss_if_the_goal_allows_no_lossy_trials(exceed_ratio):
    goals = tuple(replace(goal, exceed_ratio=exceed_ratio) for goal in (NDR, PDR))
    result = throughput_of([*[counted_trial(100_000.0)] * 21, *[counted_trial(100_400.0, lost=3000)] * 21], goals=goals)
    ndr, pdr = terms(result)
    allowed = ", except in as many trials as the goal allows (exceed ratio)" if exceed_ratio else ""
    assert ndr == f"NDR is the non-drop rate: the most that is forwarded without loss{allowed}."
    assert pdr.endswith(f"while a small share may be lost{allowed}.")


def test_a_goal_that_is_called_ndr_and_allows_loss_is_not_called_without_loss():
    goals = (replace(NDR, name="MY_NDR", loss_ratio=0.001),)
    result = throughput_of([counted_trial(100_000.0)] * 21, goals=goals)
    assert list(terms(result)) == []


def test_what_the_generator_limited_is_not_proved():
    trials = [*[counted_trial(100_000.0)] * 21, *[counted_trial(100_400.0, unsent=300)] * 21]
    (told,) = sentences(throughput_of(trials))
    assert told.endswith(
        "without loss in trials of 1 s; the SUT may forward more: unsent frames, not lost ones, made the upper bound."
    )


@pytest.mark.parametrize(("trials", "said"), [(21, "more, but less than 150,000"), (5, "more")])
def test_a_load_at_which_the_device_itself_loses_frames_bounds_what_the_generator_limited(trials, said):
    sent = [*[counted_trial(100_000.0)] * 21, *[counted_trial(100_400.0, unsent=300)] * 21]
    overload = [counted_trial(150_000.0, lost=40_000, unsent=10)] * trials
    (told,) = sentences(throughput_of([*sent, *overload]))
    assert told.endswith(
        f"without loss "
        f"in trials of 1 s; the SUT may forward {said}: unsent frames, not lost ones, made the upper bound."
    )


def test_what_bursts_may_have_limited_is_not_proved_and_what_they_cannot_have_lost_bounds_it():
    passed = [counted_trial(100_000.0)] * 21
    overload = [stalled_trial(load, lost=lost, stall=0.003) for load, lost in ((100_400.0, 301), (101_000.0, 304))]
    (told,) = sentences(throughput_of([*passed, *overload * 21]))
    assert told.endswith(
        "without loss in trials of 1 s; the SUT may forward more, but less than 101,000: bursts after stalls of the "
        "generator may have made the upper bound; a quieter machine would tell."
    )


def places(kind):
    """The places of losses with a pattern of a kind."""
    way = {"direction": None, "sentence": "a", "explained_ratio": 1.0, "chance": 0.0, "trials": 9}
    return LossPlaces(located_frames=9, trials=9, looked_at=1, patterns=(LossPattern(kind=kind, **way),))


def one_way_trial(load, *, lost, name="port1>port0"):
    """A trial in which one of two directions lost frames."""
    sent = round(load)
    ways = tuple(
        DirectionCounters(each, sent, sent, sent - lost * (each == name)) for each in ("port0>port1", "port1>port0")
    )
    output = TrialOutput(lost / sent / 2, sent_frames=2 * sent, lost_frames=lost, unsent_frames=0, directions=ways)
    return TrialResult(TrialInput(1.0, load), output)


@pytest.mark.parametrize(("kind", "asks"), [("end", True), ("direction", False)])
def test_one_longer_trial_at_the_lowest_bound_follows_only_if_losses_begin_inside_of_trials(monkeypatch, kind, asks):
    asked = []

    def longer(testbed, request, goal, load):
        asked.append((str(goal), load))
        return LongerTrial(load_per_interface_fps=1.0, duration_s=10.0, loss_ratio=0.0)

    monkeypatch.setattr(failed_search, "measure_longer", longer)
    result = throughput_of([*[counted_trial(100_000.0)] * 21, *[counted_trial(100_400.0, lost=3000)] * 21])
    made = failed_search.longer_after(result.model_copy(update={"loss_places": places(kind)}), None, None, [NDR])
    assert asked == [("NDR", 100_000.0)] * asks
    assert (made is not None) is asks


def test_a_longer_trial_says_what_the_device_passes_in_the_long_run():
    passed = [counted_trial(100_000.0)] * 21
    result = throughput_of([*passed, *[counted_trial(100_400.0, lost=3000)] * 21])
    for lost, others, said in (
        (0.0147, 0.0, "it forwards only 98,530 frames/s (1.47 % lost)."),
        (0.0, 0.0, "it loses no frame."),
        (0.0, 0.01, "it loses no frame; 1 % were late or dropped by the generator."),
    ):
        trial = LongerTrial(load_per_interface_fps=100e3, duration_s=10.0, loss_ratio=lost, other_ratio=others)
        *_, told = sentences(result.model_copy(update={"longer_trial": trial}))
        assert told == (f"Losses begin within the trials. In 10 s at 100,000 frames/s of 64 B each way, {said}")
    starved = trial.model_copy(update={"loss_ratio": 0.1, "offered_per_interface_fps": 30e3, "other_ratio": 0.0})
    *_, told = sentences(result.model_copy(update={"longer_trial": starved}))
    assert "In 10 s at about 30,000 frames/s of 64 B each way (100,000 asked), it forwards only 27,000" in told


@pytest.mark.parametrize(
    ("others", "is_named"), [((), True), ((one_way_trial(150_000.0, lost=9, name="port0>port1"),), False)]
)
def test_a_direction_made_a_bound_only_if_it_lost_most_in_every_trial(others, is_named):
    passed = [counted_trial(100_000.0)] * 21
    (told,) = sentences(throughput_of([*passed, *[one_way_trial(100_400.0, lost=3)] * 21, *others]))
    assert told.endswith("is proved to within 0.4 %" + (", by port1>port0 alone." if is_named else "."))


def test_chance_takes_all_of_the_few_losses_from_one_direction_now_and_then():
    """Of two directions, one loses in each of seven trials by chance in 1 of 64 devices."""
    goal = replace(NDR, duration_sum=5.0)
    passed = [counted_trial(100_000.0)] * 6
    for lossy, is_named in ((7, False), (8, True)):
        result = throughput_of([*passed, *[one_way_trial(100_400.0, lost=3)] * lossy], (goal,))
        assert [" alone" in told for told in sentences(result)] == [is_named]


def test_a_stream_that_alone_made_a_bound_is_named():
    passed = [counted_trial(100_000.0)] * 21
    lossy = one_way_trial(100_400.0, lost=3)
    parts = tuple(StreamFrames(name, 50_200, 50_200 - lost) for name, lost in (("voice", 3), ("data", 0)))
    ways = tuple(replace(way, received_frames=way.sent_frames - 3, by_stream=parts) for way in lossy.output.directions)
    both = replace(lossy, output=replace(lossy.output, directions=ways, lost_frames=6))
    (told,) = sentences(throughput_of([*passed, *[both] * 21]))
    assert told.endswith("is proved to within 0.4 %, by stream voice alone.")


def test_the_maximum_load_is_no_limit_of_the_device():
    result = throughput(SharpKnee(capacity=1e9))
    ndr, pdr = sentences(result)
    assert "that is the maximum load, and the SUT may forward more." in ndr
    assert "that is the maximum load, and the SUT may forward more." in pdr


def test_a_message_begins_with_the_sentences_and_a_failed_result_has_none():
    result = throughput(SharpKnee(capacity=200_000.0))
    first = [*sentences(result)]
    assert message(result).splitlines()[: len(first)] == first
    assert message(result).splitlines()[len(first)].startswith(f"{NDR.name} (loss ratio at most 0 %)")
    assert PDR.name in first[1]


def test_a_printed_result_and_its_table_have_its_doubts():
    passed = [counted_trial(100_000.0)] * 21
    lossy = dropping_trial(101_000.0, lost=300, dropped=0)
    (way,) = lossy.output.directions
    stalled = replace(lossy, output=replace(lossy.output, directions=(replace(way, lateness_s=0.01),)))
    result = throughput_of([*passed, *[stalled] * 21])
    first, doubt = " ".join(str(result).split()).split("Doubt: generator stalls: ")
    assert first.startswith("NDR: forwards")
    assert doubt.startswith("in 21 trials the generator was stalled for up to 10 ms")
    assert "Doubt: generator stalls: in 21 trials " in result._repr_html_()
    assert "Doubt" not in throughput_of([*passed, *[lossy] * 21])._repr_html_()


def test_low_rates_are_not_rounded_to_whole_frames():
    trials = [*[counted_trial(5.97)] * 21, *[counted_trial(6.4, lost=1)] * 21]
    (told,) = sentences(throughput_of(trials))
    assert told.startswith("NDR: forwards 5.97 frames/s of 64 B each way without loss")
    assert rate_in_words(1.0, "frames/s of 64 B each way") == "1 frame/s of 64 B each way"
    assert rate_in_words(1.4, "connections/s") == "1.4 connections/s"
    assert rate_in_words(0.4) == "0.4"


@pytest.mark.parametrize(("faulty", "is_told"), [(40, True), (0, False), (20, False)])
def test_frames_with_a_fault_that_alone_made_the_limit_are_named(faulty, is_told):
    way = DirectionCounters("port0>port1", 20_000, 20_000, 19_960, corrupted_frames=faulty)
    lossy = TrialResult(TrialInput(1.0, 20_000.0), TrialOutput(40 / 20_000, 20_000, 40, 0, directions=(way,)))
    (told,) = sentences(throughput_of([*[counted_trial(19_950.0)] * 21, *[lossy] * 21]))
    assert told.endswith(" %, by frames with a fault alone.") is is_told
