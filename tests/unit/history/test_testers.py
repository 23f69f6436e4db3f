"""What changed with the tester's own test, which has no device, is the tester's: one line, and no regression."""

import re
from datetime import timedelta

import numpy as np
import pytest
from history_examples import START, entry

from lossratio.report import Verdict
from lossratio.report.history.analysis import TrendRequest, analyse, explain_alarms
from lossratio.report.history.store import History
from lossratio.report.history.trend_formats import trend_cases, trend_text

pytestmark = pytest.mark.whole

A, B = "S.64B-1c-eth-a-ndrpdr", "S.64B-1c-eth-b-ndrpdr"
TWIN, TWIN_OF_B = "S.64B-1c-eth-a-tg-ndrpdr", "S.64B-1c-eth-b-tg-ndrpdr"
LAST = "S.64B-1c-eth-a-ndrpdr-tg"
NIGHTS = 24
USUAL = {A: 1e6, B: 2e6, TWIN: 3e6, TWIN_OF_B: 3e6, LAST: 3e6}


@pytest.fixture
def history(tmp_path):
    """Makes a history of tests that fall: by test the night, and the share that is left."""

    def made(falls, minutes=0):
        randomness = np.random.default_rng(5)
        history = History(tmp_path / "history")
        entries = []
        for night in range(NIGHTS):
            for place, (test, (first, left)) in enumerate(falls.items()):
                value = USUAL[test] * randomness.normal(1.0, 0.004) * (1.0 if night < first or left is None else left)
                is_missing = left is None and night >= first
                one = entry(
                    night, None if is_missing else value, test=test, outcome="failed" if is_missing else "measured"
                )
                started = one["started"] + timedelta(minutes=minutes * place)
                entries.append({**one, "started": started, "has_device": test in (A, B)})
        history.add(entries)
        return history

    return made


def verdicts(analysis):
    return {trend.series.key.test: trend.verdict.value for trend in analysis.trends}


@pytest.mark.parametrize("twin", [TWIN, LAST])
@pytest.mark.parametrize("minutes", [0, 30])
def test_two_tests_that_fall_with_the_testers_twin_are_one_line(history, twin, minutes):
    analysis = analyse(history({A: (20, 0.93), twin: (20, 0.93), B: (20, 0.93)}, minutes), TrendRequest())
    assert set(verdicts(analysis).values()) == {"the tester's"}
    assert analysis.alarms == ()
    sentence, first, *others = trend_text(analysis).splitlines()
    assert sentence == "No alarm is open, but 3 of 3 series got worse when the tester's own test did."
    assert first.startswith(f"the tester's: {twin}, NDR, on lab-1: 3.0")
    assert "this test has no device; at the same time" in first
    assert re.search(rf"at the same time {A}, NDR, changed by -[67]\.\d\d %, and {B}, NDR, changed by -", first)
    assert [line for line in others if A in line or B in line] == []
    assert [case.state for case in trend_cases(analysis)] == ["skipped"] * 3


def test_one_test_that_falls_alone_is_a_regression(history):
    analysis = analyse(history({A: (20, 0.93), TWIN: (99, 1.0), B: (99, 1.0)}), TrendRequest())
    assert verdicts(analysis) == {A: "regression", TWIN: "steady", B: "steady"}
    assert "no device" not in trend_text(analysis)


@pytest.mark.parametrize(("night", "minutes"), [(19, 0), (21, 0), (18, 30), (21, 30)])
def test_a_fall_in_another_night_is_a_regression(history, night, minutes):
    analysis = analyse(history({A: (20, 0.93), TWIN: (night, 0.93)}, minutes), TrendRequest())
    assert verdicts(analysis) == {A: "regression", TWIN: "the tester's"}


def test_a_fall_that_is_much_larger_than_the_testers_is_a_regression_that_names_it(history):
    analysis = analyse(history({A: (20, 0.7), TWIN: (20, 0.93)}), TrendRequest())
    assert verdicts(analysis) == {A: "regression", TWIN: "the tester's"}
    sentence, line, *_ = trend_text(analysis).splitlines()
    assert sentence.startswith(f"1 of 2 series got worse and did not recover: {A}, NDR, on lab-1, fell by ")
    assert line.startswith(f"regression: {A}")
    assert f"; {TWIN}, NDR, changed by -" in line
    assert line.endswith("% at the same time, and has no device")


def test_a_test_is_compared_with_its_own_twin(history):
    falls = {A: (20, 0.93), TWIN: (99, 1.0), B: (20, 0.93), TWIN_OF_B: (20, 0.93)}
    analysis = analyse(history(falls), TrendRequest())
    assert verdicts(analysis) == {A: "regression", TWIN: "steady", B: "the tester's", TWIN_OF_B: "the tester's"}


def test_a_tester_that_has_no_value_any_more_explains_tests_without_one(history):
    analysis = analyse(history({A: (22, None), TWIN: (22, None), B: (99, 1.0)}), TrendRequest())
    assert verdicts(analysis) == {A: "the tester's", TWIN: "the tester's", B: "steady"}
    assert f"at the same time {A}, NDR, no longer has a value" in trend_text(analysis)


def test_the_twin_is_asked_also_if_only_another_test_is_chosen(history):
    made = history({A: (20, 0.93), TWIN: (20, 0.93)})
    analysis = analyse(made, TrendRequest(test=A))
    assert verdicts(analysis) == {A: "the tester's"}
    assert f"{TWIN}, NDR, changed by -" in trend_text(analysis)


def test_it_is_news_once_and_an_explanation_ends_it(history):
    made = history({A: (20, 0.93), TWIN: (20, 0.93), B: (20, 0.93)})
    news = [trend for trend in analyse(made, TrendRequest()).trends if trend.is_news]
    assert [trend.series.key.test for trend in news] == [TWIN]
    assert len(explain_alarms(made, TrendRequest(), "a new driver", "ann")) == 3
    assert {trend.verdict for trend in analyse(made, TrendRequest()).trends} == {Verdict.EXPLAINED}


def test_a_tester_that_recovered_explains_nothing_any_more(history):
    made = history({A: (14, 0.93), TWIN: (14, 0.93)})
    later = [
        {**entry(0, value, test=test), "started": START + timedelta(days=NIGHTS + night)}
        for night in range(4)
        for test, value in ((A, 0.93e6), (TWIN, 3e6))
    ]
    made.add(later)
    assert verdicts(analyse(made, TrendRequest()))[A] == "regression"


def test_trend_ends_with_4_if_the_tester_changed_and_with_3_if_a_device_did(history, lossratio):
    made = history({A: (20, 0.93), TWIN: (20, 0.93), B: (20, 0.5)})
    assert lossratio("trend", made.path, "--test", "*-a-*").status == 4
    assert lossratio("trend", made.path).status == 3


def falling(tmp_path, tests):
    """The verdicts on tests that all fall by 7 %; of each, its quantity and whether it has a device."""
    history = History(tmp_path / "history")
    randomness = np.random.default_rng(5)
    history.add(
        {
            **entry(
                night, 1e6 * randomness.normal(1.0, 0.004) * (1.0 if night < 20 else 0.93), test=test, quantity=name
            ),
            "has_device": has_device,
        }
        for night in range(NIGHTS)
        for test, (name, has_device) in tests.items()
    )
    return verdicts(analyse(history, TrendRequest()))


def test_a_device_is_none_although_the_name_of_its_test_is_that_of_a_twin(tmp_path):
    names = "S.64B-1c-wifi-tg-ndrpdr", "S.vpn-tg"
    fallen = falling(tmp_path, dict.fromkeys(names, ("NDR", True)))
    assert fallen == dict.fromkeys(names, "regression")


@pytest.mark.parametrize("quantity", ["NDR", "tester"])
def test_a_test_of_the_tester_has_any_name_and_goal(tmp_path, quantity):
    tests = {"S.64B-1c-eth-a-ndrpdr": ("NDR", True), "Cable.How fast is the tester": (quantity, False)}
    assert set(falling(tmp_path, tests).values()) == {"the tester's"}
