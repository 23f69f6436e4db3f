from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from report_examples import counted_trial, throughput, throughput_of, throughput_results

from lossratio.drawing.plot import Axis
from lossratio.measurements.throughput.bounds import bounds_history
from lossratio.measurements.throughput.result import describe_goal
from lossratio.measurements.throughput.search_picture import draw_loss
from lossratio.measurements.throughput.spectra import draw_spectra, spectra_of, spectrum_at
from lossratio.mlrsearch import NDR, PDR, SearchGoal
from lossratio.results.trials import describe_trials
from lossratio.simulation.constant_capacity import SmoothKnee
from lossratio.trials.journal_lines import JournalEntry

SVG = "{http://www.w3.org/2000/svg}"
ANY = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def hints(picture):
    root = ElementTree.fromstring(picture)  # noqa: S314 (our own)
    return [title.text for title in root.iter(f"{SVG}title")]


def texts(picture):
    root = ElementTree.fromstring(picture)  # noqa: S314 (our own)
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


@pytest.mark.whole
@ANY
@given(throughput_results())
def test_any_result_has_pictures(result):
    for picture in (draw_loss(result, bounds_history(result)), draw_spectra(result)):
        assert picture == "" or ElementTree.fromstring(picture).tag == f"{SVG}svg"  # noqa: S314 (our own)


def test_trials_of_equal_load_and_loss_are_one_mark_with_their_number():
    result = throughput_of([counted_trial(50_000.0)] * 21 + [counted_trial(60_000.0, lost=6)])
    hint = hints(draw_loss(result, bounds_history(result)))
    assert [progress for progress in hint if "no" not in progress][1:] == [
        "21 trials like trial 1: 50.000 kfps for 1 s, loss 0 %",
        "trial 22: 60.000 kfps for 1 s, loss 0.01 %",
    ]


def test_the_losses_that_goals_allow_are_in_the_picture():
    labels = texts(draw_loss(throughput(), bounds_history(throughput())))
    assert {"NDR: allowed loss, bounds", "PDR: allowed loss, bounds", "none", "100 %"} <= set(labels)


def test_a_spectrum_weighs_forwarding_rates_by_the_trials_time():
    trials = describe_trials(
        [
            JournalEntry(counted)
            for counted in (
                counted_trial(1000.0, duration=3.0),
                counted_trial(1000.0, lost=100),
                counted_trial(1000.0, lost=50, duration=0.5),
                counted_trial(2000.0),
            )
        ]
    )
    goal = describe_goal(SearchGoal(0.0, 0.5, 1.0, 3.0, 0.005))
    levels = spectrum_at(trials, 1000.0, goal)
    assert [(level.forwarding_rate, level.share, level.trials) for level in levels] == [
        (1000.0, 0.75, 1),
        (pytest.approx(900.0), 0.25, 1),
    ]
    assert spectrum_at(trials, 3000.0, goal) == ()


def test_time_that_was_not_measured_is_left_out_of_the_shares():
    trials = describe_trials([JournalEntry(counted_trial(1000.0))] * 11)
    (level,) = spectrum_at(trials, 1000.0, describe_goal(NDR))
    assert level.share == pytest.approx(11 / 21)


@pytest.mark.whole
def test_the_conditional_throughput_is_a_quantile_of_the_spectrum_at_the_lower_bound():
    result = throughput(SmoothKnee(mrr=300_000.0, spread=20_000.0))
    spectra = spectra_of(result)
    assert [(spectrum.report.goal.name, spectrum.bound) for spectrum in spectra] == [
        ("NDR", "lower bound"),
        ("NDR", "upper bound"),
        ("PDR", "lower bound"),
        ("PDR", "upper bound"),
    ]
    for spectrum, goal in ((spectra[0], NDR), (spectra[2], PDR)):
        throughput_found = spectrum.report.result.conditional_throughput.per_interface_fps
        above = sum(level.share for level in spectrum.levels if level.forwarding_rate >= throughput_found - 1e-6)
        more = sum(level.share for level in spectrum.levels if level.forwarding_rate > throughput_found + 1e-6)
        assert more <= 1.0 - goal.exceed_ratio <= above + 1e-9


def test_spectra_are_named_after_goal_and_bound():
    labels = texts(draw_spectra(throughput()))
    assert labels.count("NDR") == labels.count("PDR") == 2
    assert {"lower bound 149.77 kfps", "upper bound 151.28 kfps", "11 trials; kfps"} <= set(labels)


def test_a_spectrum_of_one_trial_has_one_trial():
    goal = replace(NDR, duration_sum=1.0)
    labels = texts(draw_spectra(throughput_of([counted_trial(100_000.0), counted_trial(100_400.0, lost=3)], (goal,))))
    assert labels.count("1 trial; kfps") == 2


def test_names_of_spectra_do_not_reach_into_each_other():
    result = throughput()
    report = result.goals[0]
    named = report.model_copy(update={"goal": report.goal.model_copy(update={"name": "n" * 100})})
    labels = texts(draw_spectra(result.model_copy(update={"goals": (named,)})))
    # At the size of this text a panel has room for so many letters.
    assert max(map(len, labels)) <= 30


def test_a_search_without_bounds_has_no_spectrum():
    assert draw_spectra(throughput(error="agent lost", trials=4)) == ""


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (Axis(0.0, 1.0, 0, 100), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (Axis(149_000.0, 151_000.0, 0, 100), [149_000.0, 149_500.0, 150_000.0, 150_500.0, 151_000.0]),
        (Axis(9.0, 1100.0, 0, 100, is_logarithmic=True), [10.0, 30.0, 100.0, 300.0, 1000.0]),
    ],
)
def test_ticks_are_round_numbers(axis, ticks):
    assert axis.ticks(5) == pytest.approx(ticks)


def test_places_on_an_axis():
    linear, logarithmic = Axis(10.0, 20.0, 0, 100), Axis(1.0, 100.0, 100, 0, is_logarithmic=True)
    assert [linear.place(value) for value in (5, 10, 15, 20, 25)] == [0, 0, 50, 100, 100]
    assert [logarithmic.place(value) for value in (1, 10, 100)] == [100, 50, 0]
