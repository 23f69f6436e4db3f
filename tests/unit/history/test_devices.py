"""A series is of one device with its options: another device or option begins a new one, and neither is lost."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from history_examples import nightly

from lossratio.commands.trend import ack, trend
from lossratio.report.history.analysis import TrendRequest, analyse
from lossratio.report.history.store import History
from lossratio.report.history.trend_formats import trend_cases

SLOW = "linux_router, police=50000"
FAST = "linux_router, police=60000"
TEST = "Suite.64B-ndrpdr"


def said(*arguments, command=trend):
    return CliRunner().invoke(command, [*map(str, arguments)])


def filled(path, nights, value=lambda night: 100e3, hours=0.0, **more):
    """A history with a result of each of some nights."""
    more = {"build": "linux_router 6.1", **more}
    history = History(path)
    history.add([nightly(night + hours / 24.0, value(night) + night % 3, **more) for night in nights])
    return history


@pytest.mark.whole
def test_another_option_begins_a_new_series_and_says_so_once(tmp_path):
    filled(tmp_path, range(20), device=SLOW)
    filled(tmp_path, range(20, 40), lambda _: 80e3, device=FAST)
    answer = said(tmp_path)
    assert answer.exit_code == 0, answer.output
    assert answer.output.count("starts again") == 1
    assert "police 50000 -> 60000" in answer.output
    assert "1 series of 20 results: 1 steady" in answer.output


@pytest.mark.whole
def test_many_tests_that_begin_anew_for_one_reason_are_one_line(tmp_path):
    for test in ("Suite.64B-ndrpdr", "Suite.IMIX-ndrpdr", "Suite.1518B-ndrpdr"):
        filled(tmp_path, range(10), device=SLOW, test=test)
        filled(tmp_path, range(10, 20), device=FAST, test=test)
    answer = said(tmp_path)
    assert answer.output.count("starts again") == 1
    assert "3 of these series" in answer.output


@pytest.mark.whole
def test_the_first_night_with_another_option_is_no_alarm(tmp_path):
    filled(tmp_path, range(20), device=SLOW)
    filled(tmp_path, [20], lambda _: 10e3, device=FAST)
    answer = said(tmp_path)
    assert "regression" not in answer.output
    assert answer.output.count("starts again") == 1


@pytest.mark.whole
def test_several_regressions_are_counted_in_the_plural(tmp_path):
    for hours, device in ((0.5, SLOW), (1.0, FAST)):
        filled(tmp_path, range(20), lambda night: 50e3 if night < 17 else 40e3, hours, device=device)
    assert "2 series of 40 results: 2 regressions. " in said(tmp_path).output


@pytest.mark.whole
@pytest.mark.parametrize("hours", [0.5, 12.0])
def test_two_devices_in_turns_are_two_series_and_an_alarm_is_of_one_of_them(tmp_path, hours):
    filled(tmp_path, range(40), device=SLOW)
    filled(tmp_path, range(40), lambda night: 50e3 if night < 37 else 40e3, hours, device=FAST)
    answer = said(tmp_path)
    assert "2 series of 80 results: 1 regression, 1 steady" in answer.output
    assert f"NDR ({FAST}), on lab-1: 50" in answer.output
    assert said(tmp_path, "a new compiler", "--by=ann", command=ack).exit_code == 0
    assert said(tmp_path).exit_code == 0
    (change,) = analyse(History(tmp_path), TrendRequest()).known
    assert change.device == FAST


@pytest.mark.whole
def test_a_second_job_of_the_night_does_not_hide_the_alarm_of_the_first(tmp_path):
    filled(tmp_path, range(40), lambda night: 100e3 if night < 36 else 80e3, device=SLOW)
    filled(tmp_path, [39], hours=2.0, device=FAST)
    answer = said(tmp_path)
    assert answer.exit_code == 3
    assert "2 series of 41 results" in answer.output


def lengths(path):
    """The number of results of each device's series, by device."""
    return {one.series.key.device: len(one.series.times) for one in analyse(History(path), TrendRequest()).trends}


def test_a_device_that_replaces_another_one_has_a_series_of_its_own(tmp_path):
    filled(tmp_path, range(6), device=SLOW)
    filled(tmp_path, range(6, 12), device=FAST)
    assert lengths(tmp_path) == {FAST: 6}


def test_devices_in_turns_replace_each_other_never(tmp_path):
    filled(tmp_path, range(6), device=SLOW)
    filled(tmp_path, range(6), hours=12.0, device=FAST)
    assert lengths(tmp_path) == {SLOW: 6, FAST: 6}


@pytest.mark.whole
def test_a_device_that_comes_back_goes_on_with_its_series(tmp_path):
    filled(tmp_path, [*range(10), *range(20, 30)], device=SLOW)
    filled(tmp_path, range(10, 20), lambda _: 50e3, device=FAST)
    assert lengths(tmp_path) == {SLOW: 20, FAST: 10}


@pytest.mark.whole
def test_another_goal_by_turns_is_a_series_of_its_own(tmp_path):
    filled(tmp_path, range(20), device=SLOW, measured_as="quick")
    filled(tmp_path, range(20), lambda _: 50e3, 1.0, device=SLOW, measured_as="csit")
    trends = analyse(History(tmp_path), TrendRequest()).trends
    assert [len(one.series.times) for one in trends] == [20, 20]
    assert len({str(one.series) for one in trends}) == 2


@pytest.mark.whole
def test_forty_nights_with_renames_and_a_change_of_an_option_between(tmp_path):
    named = {"test": "Tests.Ip4.64B-ndrpdr", "long_name": "Night.Ip4.64B-ndrpdr", "device": SLOW}
    filled(tmp_path, range(10, 20), lambda night: 100e3 if night < 16 else 80e3, **named)
    answer = said(tmp_path)
    assert answer.exit_code == 3
    assert "1 series of 10 results: 1 regression" in answer.output
    assert said(tmp_path, "a new compiler", "--by=ann", command=ack).exit_code == 0
    moved = {**named, "test": "Tests.Core.Ip4.64B-ndrpdr"}
    filled(tmp_path, range(20, 30), lambda _: 80e3, **moved)
    line = "same:\n  - [Tests.Ip4.64B-ndrpdr, Tests.Core.Ip4.64B-ndrpdr]\n"
    annotations = tmp_path / "annotations.yaml"
    annotations.write_text(line + annotations.read_text())
    answer = said(tmp_path)
    assert answer.exit_code == 0, answer.output
    assert "1 series of 20 results" in answer.output
    filled(tmp_path, range(30, 40), lambda _: 90e3, **{**moved, "device": FAST})
    answer = said(tmp_path)
    assert answer.exit_code == 0, answer.output
    assert answer.output.count("starts again") == 1
    assert "1 series of 10 results: 1 steady" in answer.output


@pytest.mark.whole
def test_two_series_of_a_test_are_two_cases_for_a_host(tmp_path):
    filled(tmp_path, range(10), device=SLOW)
    filled(tmp_path, range(10), hours=1.0, device=FAST)
    cases = trend_cases(analyse(History(tmp_path), TrendRequest()))
    assert [case.name for case in cases] == [f"NDR ({SLOW})", f"NDR ({FAST})"]


@pytest.mark.whole
def test_readings_of_two_devices_are_series_of_their_own(tmp_path):
    filled(tmp_path, range(10), device=SLOW)
    filled(tmp_path, range(10), hours=1.0, device=FAST)
    readings = analyse(History(tmp_path), TrendRequest(readings=True)).readings
    assert {one.series.key.device for one in readings} == {SLOW, FAST}
    assert {len(one.series.times) for one in readings} == {10}
