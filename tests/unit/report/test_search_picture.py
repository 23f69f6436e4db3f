import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from report_examples import counted_trial, throughput, throughput_of, throughput_results

from lossratio.drawing.plot import LOSSLESS, LOSSY, MARKS, NOT_LOST, WARM_UP, mark_of
from lossratio.measurements.throughput.bounds import bounds_history
from lossratio.measurements.throughput.limits import MAX_LOAD_OF_GENERATOR
from lossratio.measurements.throughput.search_picture import draw_loss, draw_search, windows_of
from lossratio.mlrsearch import RelevantBounds
from lossratio.results.trials import describe_trials
from lossratio.simulation.constant_capacity import SharpKnee, SmoothKnee
from lossratio.trials.journal_lines import JournalEntry

DRAWING = settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
SVG = "{http://www.w3.org/2000/svg}"


def search_picture(result):
    return draw_search(result, bounds_history(result))


@pytest.fixture(scope="module")
def picture():
    return search_picture(throughput())


def parsed(picture):
    return ElementTree.fromstring(picture)  # noqa: S314 (our own)


def described(*results, warm_ups=0):
    return describe_trials([JournalEntry.of(result) for result in results], warm_ups=warm_ups)


def test_a_picture_can_stand_in_a_page_as_it_is(picture):
    assert picture.startswith("<svg ")
    assert picture.endswith("</svg>")
    for unwanted in ("<?xml", "<!DOCTYPE", "<script", "<style", "<metadata", "<image"):
        assert unwanted not in picture
    assert set(re.findall(r"https?://[^\"' ]*", picture)) == {"http://www.w3.org/2000/svg"}


def test_a_picture_has_no_names_that_another_one_in_the_page_could_have(picture):
    assert not re.findall(r' id="|href=|url\(', picture)


def test_the_same_search_gives_the_same_picture(picture):
    assert search_picture(throughput()) == picture


@pytest.mark.whole
def test_a_picture_of_a_hundred_trials_is_small():
    result = throughput(SmoothKnee(mrr=300_000.0, spread=25_000.0))
    assert len(result.trials) >= 50
    hundred = result.model_copy(update={"trials": (2 * result.trials)[:100]})
    assert len(search_picture(hundred).encode()) < 60_000


@pytest.mark.whole
def test_every_trial_is_in_the_picture_with_what_it_was(picture):
    result = throughput()
    hints = [title.text for title in parsed(picture).iter(f"{SVG}title")]
    for trial in result.trials:
        assert any(hint.startswith(f"trial {trial.number}: ") for hint in hints)
    assert "trial 1: 400.00 kfps for 1 s, loss 62.5 %" in hints


def test_a_picture_has_a_text_for_readers_who_cannot_see_it(picture):
    title = parsed(picture).find(f"{SVG}title").text
    assert title.endswith("trials. NDR regular; PDR regular.")


def texts(picture):
    return " ".join("".join(text.itertext()) for text in parsed(picture).iter(f"{SVG}text"))


def test_the_colours_of_goals_are_named(picture):
    labels = texts(picture)
    assert "NDR" in labels
    assert "PDR" in labels


def test_a_picture_shows_which_rule_chose_each_trial_and_none_where_that_is_not_known():
    trials = [counted_trial(1e5)] * 3
    entries = [
        JournalEntry.of(trial, "NDR: search", rule)
        for trial, rule in zip(trials, ("look", "look", "proof"), strict=True)
    ]
    ruled = throughput().model_copy(update={"trials": describe_trials(entries)})
    picture = search_picture(ruled)
    hints = [title.text for title in parsed(picture).iter(f"{SVG}title")]
    assert any(hint.startswith("trial 3: ") and hint.endswith(", rule: proof") for hint in hints)
    assert "rule" not in search_picture(ruled.model_copy(update={"trials": described(*trials)}))


def test_an_irregular_result_is_called_so_for_readers_who_cannot_see_the_picture():
    title = parsed(search_picture(throughput(SharpKnee(capacity=1e7)))).find(f"{SVG}title").text
    assert title.count(f"irregular: {MAX_LOAD_OF_GENERATOR}") == 2


@pytest.mark.parametrize("trials", [0, 1, 4])
def test_a_failed_search_is_drawn_as_far_as_it_came(trials):
    picture = search_picture(throughput(error="agent lost", trials=trials))
    assert parsed(picture).find(f"{SVG}title").text.count("failed: no result") == 2
    hints = {title.text for title in parsed(picture).iter(f"{SVG}title")}
    assert len({hint for hint in hints if hint.startswith("trial ")}) == trials


@pytest.mark.whole
@DRAWING
@given(throughput_results())
def test_any_result_can_be_drawn(result):
    root = parsed(search_picture(result))
    assert root.tag == f"{SVG}svg"


def test_marks_distinguish_loss_from_no_loss_by_shape_and_by_colour():
    lossy = [mark for _, mark in LOSSY]
    assert {mark.shape for mark in lossy} & {LOSSLESS.shape, NOT_LOST.shape, WARM_UP.shape} == set()
    assert len({mark.colour for mark in MARKS}) == len(MARKS)


def luminance(colour):
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2


def test_more_loss_is_darker_so_that_no_colour_needs_to_be_seen():
    shades = [luminance(mark.colour) for _, mark in LOSSY]
    assert shades == sorted(shades, reverse=True)
    assert all(light > 1.6 * dark for light, dark in pairwise(shades))


def test_each_trial_has_the_mark_of_its_loss():
    trials = described(
        counted_trial(1e6),
        counted_trial(1e6, lost=1),
        counted_trial(1e6, lost=5_000),
        counted_trial(1e6, lost=50_000),
        counted_trial(1e6, lost=500_000),
        counted_trial(1e6, unsent=500_000),
        counted_trial(1e6, lost=1, unsent=500),
    )
    names = [mark_of(trial).name for trial in trials]
    assert names == ["lossless", "loss-1", "loss-2", "loss-3", "loss-4", "not-lost", "loss-1"]
    assert mark_of(described(counted_trial(1e6), warm_ups=1)[0]) is WARM_UP


def test_a_mark_shows_what_the_sut_lost_and_not_what_the_tester_did():
    late = described(counted_trial(1e6, lost=50_000))[0].model_copy(update={"late_frames": 50_000})
    half_late = late.model_copy(update={"late_frames": 49_500})
    few_lost = described(counted_trial(1e6, lost=1, unsent=500_000))[0]
    assert [mark_of(trial).name for trial in (late, half_late, few_lost)] == ["not-lost", "loss-1", "loss-1"]


def windows(result):
    return windows_of(result, bounds_history(result))


@pytest.mark.whole
def test_goals_that_lie_close_share_a_close_up_and_distant_ones_do_not():
    overview, close_up = windows(throughput())
    assert (overview.goals, sorted(close_up.goals)) == ((), [0, 1])
    far_apart = windows(throughput(SmoothKnee(mrr=300_000.0, spread=20_000.0)))
    assert [window.goals for window in far_apart] == [(), (1,), (0,)]


def test_a_search_that_stayed_in_one_place_needs_no_overview():
    assert [window.goals for window in windows(throughput_of([counted_trial(50_000.0)] * 21))] == [(0,)]


@pytest.mark.whole
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(throughput_results())
def test_every_trial_is_in_a_window_and_every_goal_in_one(result):
    shown = windows(result)
    for trial in result.trials:
        assert any(window.holds(trial.load_per_interface_fps) for window in shown)
    assert sorted(index for window in shown for index in window.goals) == list(range(len(result.goals)))


def test_a_legend_that_is_longer_than_the_picture_has_more_lines():
    result = throughput()
    goals = [
        report.model_copy(update={"goal": report.goal.model_copy(update={"name": "n" * 60})}) for report in result.goals
    ]
    drawn = parsed(draw_loss(result.model_copy(update={"goals": tuple(goals * 2)}), {}))
    labels = [text for text in drawn.iter(f"{SVG}text") if text.text and "allowed loss" in text.text]
    lines = {float(label.get("y")) for label in labels}
    assert len(labels) == 4
    assert len(lines) == 4
    assert max(lines) < float(drawn.get("viewBox").split()[3])


def test_a_close_up_is_around_the_bounds_that_are_proved():
    result, history = throughput(), bounds_history(throughput())
    last = history[max(history)]
    proved = [bound for bounds in last for bound in bounds.proved]
    assert None not in proved
    away = tuple(replace(bounds, leaning=RelevantBounds(1000.0, 2000.0)) for bounds in last)
    close_ups = [window for window in windows_of(result, history | {max(history): away}) if window.goals]
    assert all(any(window.holds(bound) for window in close_ups) for bound in proved)
