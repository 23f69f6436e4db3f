import re
from datetime import timedelta
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from at_least_one import at_least_one
from history_examples import START, series, with_columns

from lossratio.errors import ReportError
from lossratio.report import Verdict
from lossratio.report.history.annotations import KnownChange, load_known_changes
from lossratio.report.history.page_of_trends import draw_trend
from lossratio.report.history.series import series_of
from lossratio.report.history.trend import TrendRules, trends_of
from lossratio.report.history.trend_words import describe_trend

STEADY = [100e3, 100.2e3, 99.9e3, 100.1e3, 99.8e3, 100.0e3, 100.1e3, 99.9e3]


def trend(values, known=(), kinds=None, **options):
    (trend,) = trends_of([series(values, kinds)], known, TrendRules(**options))
    return trend


@pytest.mark.parametrize(
    ("newest", "verdict"),
    [
        ([100.1e3], Verdict.STEADY),
        ([90e3], Verdict.UNCONFIRMED),
        ([90e3, 90.2e3], Verdict.REGRESSION),
        ([90e3, 100.1e3, 89.9e3], Verdict.REGRESSION),
        ([90e3, 100.1e3, 99.9e3, 89.9e3], Verdict.UNCONFIRMED),
        ([90e3, 90.2e3, 89.9e3], Verdict.REGRESSION),
        ([110e3, 110.2e3, 109.9e3], Verdict.PROGRESSION),
        ([90e3, 90.1e3] * 20, Verdict.REGRESSION),
        ([90e3, 90.1e3] * 20 + [100e3], Verdict.REGRESSION),
        ([90e3, 90.1e3] * 20 + [100e3, 99.9e3], Verdict.PROGRESSION),
        ([90e3, 90.1e3] * 4 + [100.1e3, 99.9e3] * 4, Verdict.STEADY),
        ([90e3, 90.1e3] * 4 + [95e3, 95.1e3] * 4, Verdict.REGRESSION),
        ([90e3, 90.1e3] * 4 + [None, 90e3], Verdict.REGRESSION),
        ([110e3, *STEADY], Verdict.STEADY),
        ([110e3, 110.2e3, *STEADY], Verdict.STEADY),
        ([50e3, 100.1e3, 100e3], Verdict.STEADY),
        ([50e3, 90.1e3, 90e3, 90.2e3], Verdict.REGRESSION),
        ([None], Verdict.NO_VALUE),
        ([None, 100e3], Verdict.STEADY),
    ],
)
def test_verdicts(newest, verdict):
    assert trend(STEADY + newest).verdict is verdict


def test_a_regression_says_since_when_and_how_much():
    newest = trend([*STEADY, 90e3, 90.2e3, 89.8e3])
    assert newest.change.ratio == pytest.approx(-0.1, abs=1e-3)
    assert newest.change.began == START + timedelta(days=8)
    assert describe_trend(newest) == (
        "regression: Suite.64B-ndrpdr, NDR, on lab-1: 100.00 kfps to 90.000 kfps (-10.00 %) since 2026-01-09 03:00 UTC"
    )


def test_one_bad_result_is_an_alarm_where_no_other_one_must_confirm_it():
    one = [*STEADY, 90e3]
    assert not trend(one).is_alarm
    assert describe_trend(trend(one)).startswith("one bad result: Suite.64B-ndrpdr, NDR, on lab-1: 100.00 kfps to")
    assert trend(one, confirm=1).verdict is Verdict.REGRESSION
    assert trend([*STEADY, 90e3, 90.1e3], confirm=3).verdict is Verdict.UNCONFIRMED
    assert trend([*STEADY, 90e3, 90.1e3, 90.2e3], confirm=3).verdict is Verdict.REGRESSION


def test_a_value_that_was_zero_and_grows_is_judged_too():
    def newest(*values):
        zeros = with_columns(series([0.0] * 8 + list(values)), unit=["s"] * 9, lower_is_better=[True] * 9)
        return trends_of([zeros])[0].verdict

    assert newest(0.5, 0.51) is Verdict.REGRESSION
    assert newest(0.5) is Verdict.UNCONFIRMED


def test_a_steady_trend_still_has_its_last_change_with_its_date():
    old = trend([*STEADY, *[110e3] * 40])
    assert (old.verdict, old.change) == (Verdict.STEADY, None)
    assert old.last_change.ratio == pytest.approx(0.1, abs=1e-3)
    assert old.last_change.began == START + timedelta(days=len(STEADY))
    assert trend(STEADY).last_change is None


def test_a_small_step_raises_no_alarm_unless_asked_for():
    values = [100e3] * 8 + [99.5e3] * 4
    assert trend(values).verdict is Verdict.STEADY
    assert trend(values, least_change=0.001).verdict is Verdict.REGRESSION


@pytest.mark.parametrize(
    ("values", "verdict"),
    [([80e3, 50e3, 50e3, 80e3, 80e3], Verdict.STEADY), ([80e3, 100e3, 100e3, 80e3, 80e3], Verdict.REGRESSION)],
)
def test_a_first_result_that_stands_alone_is_no_step_that_anything_begins_from(values, verdict):
    assert trend(values).verdict is verdict


def test_too_few_results_have_no_verdict():
    assert trend([100e3, 50e3, 50e3]).verdict is Verdict.TOO_FEW


def test_a_series_of_zeros_or_of_failures_is_no_trouble():
    assert trend([0.0] * 6).verdict is Verdict.STEADY
    assert trend([None] * 6).verdict is Verdict.TOO_FEW


def test_a_known_change_explains_a_step_of_that_day_and_series_only():
    values = [*STEADY, 90e3, 90.2e3, 89.8e3]
    day = (START + timedelta(days=8)).date()
    assert trend(values, [KnownChange(date=day, note="new kernel")]).verdict is Verdict.EXPLAINED
    for other in (
        KnownChange(date=day, note="new kernel", testbed="lab-2"),
        KnownChange(date=day, note="new kernel", quantity="PDR"),
        KnownChange(date=day - timedelta(days=3), note="new kernel"),
    ):
        assert trend(values, [other]).verdict is Verdict.REGRESSION


def test_a_regression_stays_open_since_its_date_until_its_own_step_is_explained():
    values = [*STEADY, *[90e3, 90.1e3] * 6, *[81e3, 81.1e3] * 6]
    first, second = ((START + timedelta(days=day)).date() for day in (8, 20))
    still_open = trend(values)
    assert (still_open.verdict, still_open.change.began.date()) == (Verdict.REGRESSION, first)
    assert still_open.change.ratio == pytest.approx(-0.19, abs=2e-3)
    other = trend(values, [KnownChange(date=second, note="new kernel")])
    assert (other.verdict, other.change.began.date()) == (Verdict.REGRESSION, first)
    assert other.change.ratio == pytest.approx(-0.1, abs=2e-3)
    assert trend([*values, *[90e3, 90.1e3] * 6], [KnownChange(date=second, note="new kernel")]).verdict is (
        Verdict.STEADY
    )
    known = [KnownChange(date=day, note="new kernel", by="ann") for day in (first, second)]
    assert trend(values, known[:1]).change.began.date() == second
    assert trend(values, known).verdict is Verdict.STEADY


def test_a_missing_value_that_is_explained_is_no_alarm_until_another_one_is_missing():
    known = [KnownChange(date=(START + timedelta(days=8)).date(), note="the card is away", by="ann")]
    missing = trend([*STEADY, None, None, None], known)
    assert (missing.verdict, missing.is_alarm) == (Verdict.EXPLAINED, False)
    assert "known: the card is away (ann)" in describe_trend(missing)
    assert trend([*STEADY, None, 100e3, 100e3, None], known).verdict is Verdict.NO_VALUE


def test_a_new_doubt_is_a_change_of_kind_and_not_of_mean():
    usual = [frozenset()] * 7
    newest = trend(STEADY, kinds=[*usual, frozenset({"two bands"})])
    assert (newest.verdict, newest.new_kinds) == (Verdict.STEADY, ("two bands",))
    assert "change of kind: two bands" in describe_trend(newest)
    assert trend(STEADY, kinds=[frozenset({"two bands"})] * 8).new_kinds == ()


def test_the_first_result_of_a_series_is_no_change_of_kind():
    first = trend([100e3], kinds=[frozenset({"two bands"})])
    assert (first.verdict, first.new_kinds) == (Verdict.TOO_FEW, ())
    assert trend([100e3] * 2, kinds=[frozenset(), frozenset({"two bands"})]).new_kinds == ("two bands",)


def test_a_picture_has_every_result_and_the_known_changes_of_its_series():
    known = [
        KnownChange(date=START.date() + timedelta(days=8), note="new kernel"),
        KnownChange(date=START.date() + timedelta(days=8), note="elsewhere", testbed="lab-2"),
    ]
    picture = draw_trend(trend([*STEADY, 90e3, 90.2e3, None], known), known)
    root = ElementTree.fromstring(picture)  # noqa: S314 (our own)
    hints = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "2026-01-09 03:00: 90.000 kfps" in hints
    assert "2026-01-11 03:00: no value: agent lost, failed" in hints
    assert len(hints) == 12
    assert "new kernel" in picture
    assert "elsewhere" not in picture


@pytest.mark.parametrize("values", [[5.0], [None], [0.0, 0.0], [7.0] * 300])
def test_any_series_can_be_drawn(values):
    assert draw_trend(trend(values), ()).startswith("<svg ")


def test_known_changes_are_read_from_yaml(tmp_path):
    path = tmp_path / "annotations.yaml"
    path.write_text("changes:\n- {date: 2026-08-01, note: new BIOS, testbed: lab-*}\n")
    (change,) = load_known_changes(path).changes
    assert (str(change.date), change.note, change.testbed, change.test) == ("2026-08-01", "new BIOS", "lab-*", "*")
    path.write_text("changes:\n- {date: someday, note: new BIOS}\n")
    with pytest.raises(ReportError, match=r"annotations\.yaml.*2.*date"):
        load_known_changes(path)


def read_back(made):
    """A series as it is read from a table of entries."""
    columns = {"device": [None] * len(made.times), "generator": [None] * len(made.times), **made.columns}
    names = {name: [getattr(made.key, name)] * len(made.times) for name in ("testbed", "test", "quantity")}
    return list(series_of(pa.table({**columns, **names}), 99))


def test_results_of_another_generator_are_left_out_and_reported_if_it_is_known():
    # Three times as fast a generator is no progress of the device.
    values = [1e6] * 8 + [3e6] * 6
    mixed = with_columns(series(values), generator=[*["afpacket"] * 8, *["xdp"] * 6])
    (trend,) = trends_of(read_back(mixed))
    assert trend.series.left_out == 8
    assert "left out: 8 earlier results with other traffic" in describe_trend(trend)
    assert "another generator" in describe_trend(trend)
    (trend,) = trends_of(read_back(with_columns(mixed, generator=[None] * 14)))
    assert trend.series.left_out == 0


def test_results_that_mean_something_else_are_left_out_and_reported():
    quick, csit = ["quick"] * 8, ["csit"] * 4
    made = series([*STEADY, 50e3, 50.1e3, 49.9e3, 50e3], measured_as=quick + csit)
    (trend,) = trends_of(read_back(made))
    assert trend.verdict is Verdict.STEADY
    assert trend.series.left_out == 8
    assert "left out: 8 earlier results with other traffic" in describe_trend(trend)


def test_a_quantity_without_values_is_an_alarm_when_it_fails_for_the_first_time():
    latency = [frozenset(), frozenset(), frozenset({"failed"})]
    assert trend([None] * 3, kinds=latency).verdict is Verdict.NO_VALUE
    assert trend([None] * 3, kinds=latency[::-1]).verdict is Verdict.TOO_FEW
    assert "3 results, none of them with a value" in describe_trend(trend([None] * 3, kinds=latency[::-1]))


def flipping(low, high, states, noise=0.003, seed=1):
    """Values of a SUT that is in its upper (1) or lower (0) state."""
    randomness = np.random.default_rng(seed)
    levels = np.where([state == "1" for state in states], high, low)
    return list(levels * (1.0 + noise * randomness.standard_normal(len(states))))


STATES = "1011010010111010010110010111010010"


@pytest.mark.whole
def test_two_bands_are_no_steps():
    for night in range(20, len(STATES) + 1):
        banded = trend(flipping(95e3, 100e3, STATES[:night]))
        assert banded.verdict is Verdict.STEADY
        assert banded.bands is not None
    assert len(banded.steps) == 1
    assert banded.bands.low == pytest.approx(95e3, rel=2e-3)
    assert banded.bands.high == pytest.approx(100e3, rel=2e-3)
    assert list(banded.bands.in_upper) == [state == "1" for state in STATES]
    described = describe_trend(banded)
    assert described.startswith("steady: Suite.64B-ndrpdr, NDR, on lab-1: two bands: 95.0")
    assert described.endswith("kfps in 16 results and 99.956 kfps (+5.15 %) in 18, 23 switches")


@pytest.mark.parametrize(("ratio", "verdict"), [(0.97, Verdict.REGRESSION), (1.03, Verdict.PROGRESSION)])
def test_a_real_step_of_two_bands_is_found_by_its_own_size(ratio, verdict):
    values = flipping(95e3, 100e3, STATES)
    stepped = trend([*values[:-3], *(ratio * value for value in values[-3:])])
    assert stepped.verdict is verdict
    assert stepped.change.ratio == pytest.approx(ratio - 1.0, abs=3e-3)
    assert stepped.change.began == START + timedelta(days=len(STATES) - 3)


def test_a_fall_by_as_much_as_the_bands_are_apart_is_found_when_the_new_lower_band_shows():
    values = flipping(95e3, 100e3, STATES + "10100")
    fallen = [*values[: len(STATES)], *(0.95 * value for value in values[len(STATES) :])]
    assert trend(fallen).verdict is Verdict.REGRESSION
    assert trend(fallen).change.ratio == pytest.approx(-0.05, abs=3e-3)


def test_one_bad_night_of_two_bands_is_no_alarm():
    values = flipping(95e3, 100e3, STATES)
    assert trend([*values, 80e3]).verdict is Verdict.UNCONFIRMED
    assert trend([*values, 80e3, 95.1e3]).verdict is not Verdict.REGRESSION


@pytest.mark.parametrize(
    "states",
    [
        "1" * 20 + "0" * 5,
        "1" * 10 + "0" * 6 + "1" * 10 + "0" * 3,
        "1" * 10 + "0" * 4 + "1" * 10 + "0" * 4 + "1" * 4,
        "1" * 9 + "0" + "1" * 14 + "0" + "1" * 9,
    ],
    ids=["a fall", "a fall, its repair, and the same fall", "two falls and repairs", "two bad nights"],
)
def test_few_changes_are_steps_and_no_bands(states):
    assert trend(flipping(95e3, 100e3, states)).bands is None


@pytest.mark.whole
def test_noise_is_no_bands():
    randomness = np.random.default_rng(2)
    for noise in (0.001, 0.01, 0.05):
        for values in at_least_one(1e5 * (1.0 + noise * randomness.standard_normal((20, 40)))):
            assert trend(list(values)).bands is None


def test_bands_that_ended_are_forgotten():
    values = flipping(95e3, 100e3, STATES + "1" * 20)
    assert trend(values).bands is None
    assert trend([*values, 95e3, 95.1e3]).verdict is Verdict.REGRESSION


def test_bands_with_a_zero_among_their_values_stay_bands():
    values = flipping(95e3, 100e3, STATES)
    banded = trend([*values[:10], 0.0, *values[10:]])
    assert (banded.verdict, banded.bands is None) == (Verdict.STEADY, False)


def test_bands_are_looked_for_in_the_newest_values_only():
    values = [*[50e3] * 100, *flipping(95e3, 100e3, STATES * 3)]
    banded = trend(values)
    assert banded.bands.looked_at == 80
    assert banded.bands.low == pytest.approx(95e3, rel=2e-3)
    assert not banded.bands.in_upper[:120].any()


def test_a_picture_has_a_line_for_each_band():
    plain, banded = draw_trend(trend(STEADY), ()), draw_trend(trend(flipping(95e3, 100e3, STATES)), ())
    (lines,), (one,) = (re.findall(r'<path d="([^"]*)"[^>]*stroke="#D55E00"', picture) for picture in (banded, plain))
    assert (lines.count("M"), one.count("M")) == (2, 1)
    assert "two bands" in banded
