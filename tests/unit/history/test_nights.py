import pytest
from history_examples import nightly

from lossratio.history import History, TrendRequest, TrendVerdict, analyse, trend_json, trend_text

LOAD = 12e6
CHANCE = 1e-4
"""Standard deviation of a night by chance."""
# Fixed numbers with mean 0 and a standard deviation of about 1, in the order of nights.
SCATTER = (0.6, -1.1, 0.3, 1.4, -0.5, -0.9, 1.0, -1.3, 0.2, 0.9, -0.7, 0.1)


def night(day, away, **changes):
    """A soak test of a night whose estimate is off by a share of the load; the verified load is lower."""
    estimate = LOAD * (1.0 + away)
    of_soak = {"estimate": estimate, "estimate_chance": CHANCE, "estimate_shared": 1e-5, **changes}
    return {**nightly(day, 0.98 * LOAD, quantity="critical load"), **of_soak}


def trends(tmp_path, nights, **request):
    """The trends of the stated load, and of the estimates of all nights."""
    history = History(tmp_path)
    history.add(nights)
    return analyse(history, TrendRequest(**request)).trends


def constant(days=range(12)):
    return [night(day, CHANCE * SCATTER[day % len(SCATTER)]) for day in days]


@pytest.mark.whole
def test_nights_together_are_known_better_than_one_night(tmp_path):
    of_value, of_nights = trends(tmp_path, constant())
    assert of_value.nights is None
    together = of_nights.nights
    assert together.nights == 12
    assert together.least_95 < LOAD < together.most_95
    # A night alone is known to 4 * 1e-4, and twelve nights to a third of that, or a bit less.
    assert 2e-5 < together.most_95 / together.least_95 - 1.0 < 1.6e-4
    assert together.nights_for_step <= 3


@pytest.mark.whole
def test_what_all_nights_share_stays_uncertain(tmp_path):
    nights = [{**one, "estimate_shared": 1e-3} for one in constant()]
    together = trends(tmp_path, nights)[1].nights
    assert together.most_95 / together.least_95 - 1.0 == pytest.approx(2 * 1.96e-3, rel=0.02)


@pytest.mark.whole
def test_a_night_that_is_hardly_known_does_not_make_the_others_uncertain(tmp_path):
    alone = trends(tmp_path / "alone", constant())[1].nights
    # Nothing shows which part of such a night's uncertainty is shared, so that each part is all of it.
    vague = night(12, 3e-3, estimate_chance=3e-3, estimate_shared=3e-3)
    together = trends(tmp_path / "together", [*constant(), vague])[1].nights
    assert together.nights == 13
    assert together.most_95 / together.least_95 - 1.0 < 1.1 * (alone.most_95 / alone.least_95 - 1.0)


@pytest.mark.whole
def test_nights_that_differ_by_more_than_chance_are_known_less_well(tmp_path):
    nights = [night(day, 10 * CHANCE * SCATTER[day]) for day in range(12)]
    together = trends(tmp_path, nights)[1].nights
    assert together.most_95 / together.least_95 - 1.0 > 8e-4
    assert 5e-4 < together.between_ratio < 2e-3
    assert together.nights_for_step > 5


@pytest.mark.whole
def test_irregular_nights_and_other_versions_do_not_take_part(tmp_path):
    nights = constant()
    nights[2] = {**nights[2], "outcome": "irregular", "reason": "no load is verified"}
    nights[:2] = [{**one, "build": "vpp 23.10"} for one in nights[:2]]
    of_value, of_nights = trends(tmp_path, nights)
    assert len(of_value.series.times) == 12
    assert len(of_nights.series.times) == 11
    assert of_nights.nights.nights == 9


@pytest.mark.whole
def test_a_step_of_half_a_thousandth_is_an_alarm_within_three_nights(tmp_path):
    nights = constant() + [night(day, -5e-4 + CHANCE * SCATTER[day - 12]) for day in range(12, 15)]
    history = History(tmp_path)
    history.add(nights)
    analysis = analyse(history, TrendRequest())
    of_value, of_nights = analysis.trends
    assert of_value.verdict is TrendVerdict.STEADY
    assert of_nights.verdict is TrendVerdict.REGRESSION
    assert of_nights.change.ratio == pytest.approx(-5e-4, abs=1e-4)
    assert of_nights.began == nights[12]["started"]
    assert of_nights.nights.nights == 3
    assert "regression: Suite.64B-ndrpdr, critical load of all nights, on lab-1: " in trend_text(analysis)
    assert '"nights_for_step"' in trend_json(analysis)


@pytest.mark.whole
def test_one_night_that_is_far_off_is_no_step_and_does_not_take_part(tmp_path):
    nights = [*constant(), night(12, -0.05), *constant(range(13, 16))]
    together = trends(tmp_path, nights)[1]
    assert together.verdict is TrendVerdict.STEADY
    assert together.nights.nights == 15


def test_entries_without_estimates_have_no_series_of_nights(tmp_path):
    assert len(trends(tmp_path, [nightly(day, LOAD, quantity="critical load") for day in range(5)])) == 1
