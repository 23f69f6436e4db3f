"""A verdict holds for the values as they are, and for the values had the frames passed that the SUT did not lose."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from history_examples import series, with_columns
from report_examples import LINK_LIMIT, mrr_result, run, throughput

from lossratio.report import Verdict
from lossratio.report.comparison import compare
from lossratio.report.history.entries import entries_of
from lossratio.report.history.trend import TrendRules, trends_of
from lossratio.report.history.trend_words import describe_trend
from lossratio.report.run import Run
from lossratio.results import LoadOrigin, ends_of, findings_of, stored_ends
from lossratio.simulation.constant_capacity import SharpKnee
from lossratio.trials.journal_lines import JournalEntry
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput

LOAD = 20_000.0


def trial(received, *, unsent=0.0, dropped=0.0, later=0.0):
    """A second at the load: shares of its frames that came back, were unsent, dropped by the generator, or late."""
    sent = round(LOAD * (1.0 - unsent))
    counters = {"unsent_frames": round(LOAD) - sent, "generator_drop_frames": round(LOAD * dropped), "elapsed_s": 1.0}
    came = round(LOAD * received)
    directions = tuple(
        DirectionCounters(name, round(LOAD), sent, came, **counters) for name in ("port0>port1", "port1>port0")
    )
    missing = sent - came + counters["unsent_frames"]
    output = TrialOutput(
        missing / LOAD,
        sent_frames=2 * sent,
        lost_frames=2 * (sent - came),
        unsent_frames=2 * counters["unsent_frames"],
        late_frames=2 * round(LOAD * later) or None,
        forwarding_rate=came,
        directions=directions,
    )
    return TrialResult(TrialInput(1.0, LOAD), output)


def measured(*received, **causes):
    test_run = run("64B-1c-eth-l2bdbase-mrr")
    entries = [JournalEntry.of(trial(one, **causes)) for one in received]
    maximum = test_run.conditions.max_load(LOAD, LoadOrigin.GENERATOR, link_limit=LINK_LIMIT)
    return mrr_result(test_run, maximum, entries)


def runs(*made):
    return [Run(Path(f"run-{number}"), (result,)) for number, result in enumerate(made)]


def compared(before, after):
    (quantity,) = compare(runs(*before), runs(*after)).quantities
    return quantity


GOOD = [measured(0.9), measured(0.901), measured(0.899)]


def test_a_generator_that_stands_still_four_fifths_of_the_time_makes_no_regression():
    # Senders that are stopped for 80 of 100 ms: the SUT forwards all that it gets, or 36 to 65 % are unsent.
    starved = [measured(0.64, unsent=0.36), measured(0.35, unsent=0.65), measured(0.48, unsent=0.52)]
    for before, after in ((GOOD, starved), (starved, GOOD)):
        quantity = compared(before, after)
        assert quantity.verdict is Verdict.NOT_COMPARABLE
        assert "up to 65 % of the frames at one load were unsent, late or dropped by the generator" in quantity.note


@pytest.mark.parametrize("cause", ["unsent", "dropped", "later"])
def test_frames_that_the_sut_did_not_lose_make_no_regression_whatever_their_cause(cause):
    # The SUT forwards as much as before.
    quantity = compared(GOOD, [measured(0.9 - share, **{cause: share}) for share in (0.2, 0.21, 0.22)])
    assert quantity.verdict is not Verdict.REGRESSION
    assert quantity.verdict is not Verdict.UNCHANGED
    assert "B: up to 22 % of the frames" in quantity.note


def test_a_slower_sut_behind_a_starved_generator_is_a_regression_by_the_smaller_change():
    quantity = compared(GOOD, [measured(received, unsent=0.2) for received in (0.4, 0.402, 0.398)])
    assert quantity.verdict is Verdict.REGRESSION
    assert quantity.difference.change == pytest.approx(0.6 / 0.9 - 1.0, abs=1e-3)
    assert quantity.note == (
        "B: up to 20 % of the frames at one load were unsent, late or dropped by the generator; -55.56 % as measured, "
        "-33.33 % if these frames had passed"
    )


@pytest.mark.parametrize("count", [3, 20])
@pytest.mark.parametrize(
    ("late", "verdict", "change"), [(0.985, Verdict.NOT_COMPARABLE, -0.005), (0.4, Verdict.REGRESSION, -0.596)]
)
def test_a_sut_that_passes_none_in_time_is_judged_by_what_it_may_have_passed(count, late, verdict, change):
    before = [measured(0.99 + 0.0001 * (number % 3)) for number in range(count)]
    after = [measured(0.0, later=late + 0.0001 * (number % 3)) for number in range(count)]
    quantity = compared(before, after)
    assert quantity.verdict is verdict
    assert quantity.difference.change == pytest.approx(change, abs=2e-3)
    assert f"B: up to {100 * late:.2g}" in quantity.note
    assert "-100.00 % as measured" in quantity.note
    (finding,) = findings_of([after[0]])
    assert (ends_of(finding).least, ends_of(finding).most) == pytest.approx((0.0, LOAD * late))


def test_a_regression_needs_both_lists_to_be_significant():
    # As they are all values of B are lower; at their most they scatter around those of A.
    after = [measured(0.7, unsent=0.1), measured(0.7, unsent=0.3), measured(0.7, unsent=0.02)]
    assert compared(GOOD, after).verdict is Verdict.NOT_COMPARABLE
    # As they are they are the same, and at its most A is far higher: nobody knows.
    assert compared([measured(one, unsent=0.05) for one in (0.9, 0.901, 0.899)], GOOD).verdict is Verdict.NOT_COMPARABLE


def test_frames_that_the_generator_dropped_are_no_spread_of_values_that_are_equal():
    before = [measured(*[0.5] * count) for count in (1, 2, 3)]
    after = [measured(0.25, dropped=share) for share in (0.05, 0.051, 0.052)]
    quantity = compared(before, after)
    assert quantity.verdict is Verdict.SEEMS_WORSE
    assert "-50.00 % as measured, -39.80 % if these frames had passed" in quantity.note
    assert compared(after, before).verdict is Verdict.SEEMS_BETTER


def test_the_share_is_named_whatever_the_verdict_is():
    one = compared([measured(0.9)], [measured(0.7, unsent=0.2)])
    assert one.verdict is Verdict.TOO_FEW
    assert one.note == "B: up to 20 % of the frames at one load were unsent, late or dropped by the generator"
    same = compared(*[[measured(one, unsent=0.03) for one in (0.9, 0.901, 0.899)]] * 2)
    assert same.note.startswith("A: up to 3 % of the frames")


@pytest.mark.whole
def test_a_change_of_one_width_of_the_goal_is_none():
    def searched(factor):
        made = []
        for seed in range(3):
            result = throughput(SharpKnee(capacity=3e5 * factor), seed=seed)
            goals = [report.model_copy(update={"goal": wide(report.goal)}) for report in result.goals]
            made.append(result.model_copy(update={"goals": tuple(goals)}))
        return made

    def wide(goal):
        return goal.model_copy(update={"width_ratio": 0.03})

    # The simulated searches of each side find the same values.
    for factor, verdict in ((0.98, Verdict.UNCHANGED), (0.95, Verdict.SEEMS_WORSE)):
        comparison = compare(runs(*searched(1.0)), runs(*searched(factor)))
        assert [quantity.verdict for quantity in comparison.quantities] == [verdict] * 2


def test_the_history_keeps_what_a_value_is_at_its_most():
    (finding,) = findings_of([measured(0.4, unsent=0.2)])
    assert ends_of(finding).most == pytest.approx(1.5 * ends_of(finding).least)
    (entry,) = entries_of(Run(Path("run"), (measured(0.4, unsent=0.2),)))
    assert (entry["value"], entry["most"], entry["unsent_share"]) == pytest.approx((16e3, 24e3, 0.2))
    assert stored_ends(16e3, 0.2, None).most == pytest.approx(20e3)
    assert stored_ends(16e3, 1.0, None).most == float("inf")
    assert stored_ends(16e3, None, None) == (16e3, 16e3, 0.0)


STEADY = [100e3 + 100 * (night % 3) for night in range(12)]


def trend(values, shares, most=None, **rules):
    (found,) = trends_of(
        [with_columns(series(values), unsent_share=shares, most=most or [None] * len(values))], (), TrendRules(**rules)
    )
    return found


def test_a_trend_is_a_regression_only_if_it_is_one_at_its_most():
    fallen = [42e3, 44e3, 40e3]
    starved = trend([*STEADY, *fallen], [0.0] * 12 + [0.5] * 3, [*STEADY, 92e3, 99e3, 105e3])
    assert (starved.verdict, starved.is_alarm) == (Verdict.NOT_OFFERED, False)
    assert "recently, up to 50 % of the frames at one load were unsent" in describe_trend(starved)
    slower = trend([*STEADY, *fallen], [0.0] * 12 + [0.3] * 3, [*STEADY, 72e3, 74e3, 70e3])
    assert slower.verdict is Verdict.REGRESSION
    assert slower.change.ratio == pytest.approx(-0.28, abs=0.01)
    assert "(-58.0" in describe_trend(slower)
    assert "% as measured, -28.0" in describe_trend(slower)
    assert "% if these frames had passed) since" in describe_trend(slower)
    assert "recently, up to 30 % of the frames at one load were unsent" in describe_trend(slower)


def test_a_trend_is_no_progression_because_the_generator_sends_again():
    values = [*[50e3 + 100 * (night % 3) for night in range(12)], 100e3, 100.1e3, 99.9e3]
    recovered = trend(values, [0.5] * 12 + [0.0] * 3)
    assert recovered.verdict is Verdict.NOT_OFFERED
    assert "before the change, up to 50 % of the frames" in describe_trend(recovered)
    assert trend(values, [0.0] * 15).verdict is Verdict.PROGRESSION


def test_an_open_regression_of_a_starved_generator_is_no_alarm_later_either():
    fallen = [42e3 + 100 * (night % 3) for night in range(12)]
    shares = [0.0] * 12 + [0.6] * 12
    assert not trend([*STEADY, *fallen], shares).is_alarm
    assert trend([*STEADY, *fallen], [0.0] * 24).is_alarm
    slower = trend([*STEADY, *fallen], shares, [*STEADY, *[one + 30e3 for one in fallen]])
    assert slower.is_alarm
    assert slower.change.ratio == pytest.approx(-0.28, abs=0.01)


def test_the_share_of_a_trend_is_that_of_the_fresh_results():
    values, shares = [*STEADY, *[42e3] * 6], [0.0] * 12 + [0.7, 0.6, 0.6, 0.55, 0.56, 0.58]
    for fresh, largest in ((4, "60"), (6, "70")):
        assert f"recently, up to {largest} % of the frames" in describe_trend(trend(values, shares, fresh=fresh))


def test_a_series_with_bands_is_judged_at_its_most_too():
    randomness = np.random.default_rng(1)
    states = randomness.random(40) < 0.5
    values = 100e3 * np.where(states, 1.0, 0.9) * (1.0 + 0.002 * randomness.standard_normal(40))
    values[-4:] *= 0.5
    shares = [0.0] * 36 + [0.5] * 4
    starved = trend(list(values), shares)
    assert starved.bands is not None
    assert starved.verdict is Verdict.NOT_OFFERED
    assert trend(list(values), [0.0] * 40).verdict is Verdict.REGRESSION
    assert replace(starved, verdict=Verdict.REGRESSION).change.ratio == pytest.approx(-0.5, abs=0.02)
