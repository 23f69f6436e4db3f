import numpy as np
import pytest
from hypothesis import given, strategies as st
from plrsearch_known_answers import KNOWN

from lossratio.plrsearch.model import CriticalLoadQuestion, Curves, critical_load
from lossratio.plrsearch.model.functions import ERF, FUNCTIONS, STRETCH

each_function = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
mrrs = st.floats(1e3, 1e9)
knees = st.floats(41.0, 1e5)


def columns(*values):
    return [np.array([value], dtype=float) for value in values]


@each_function
@pytest.mark.parametrize("row", KNOWN["fitting_functions"], ids=lambda row: f"{row['load']:g} {row['spread']:g}")
def test_log_loss_rates_agree_with_sixty_digit_arithmetic(function, row):
    point = columns(row["load"], row["mrr"], row["spread"])
    expected = row[f"log_loss_rate_{function.name}"]
    assert function.log_loss_rate(*point)[0] == pytest.approx(expected, rel=1e-14)
    assert function.log_loss(*point).log_rate[0] == pytest.approx(expected, rel=1e-14)


@each_function
@given(mrr=mrrs, knee=knees, share=st.floats(0.01, 3.0))
def test_loss_increases_is_convex_and_stays_below_the_load(function, mrr, knee, share):
    spread = max(mrr / knee, 1.0)
    loads = share * mrr * np.array([0.999, 1.0, 1.001])
    log_rate = function.log_loss_rate(loads, np.array(mrr), np.array(spread))
    # Relative to the largest, as a rate may be below the smallest float of full precision.
    rate = np.exp(log_rate - log_rate[2])
    assert np.all(np.diff(log_rate) > 0)
    assert np.all(log_rate < np.log(loads))
    assert rate[2] - rate[1] >= (rate[1] - rate[0]) * (1 - 1e-9)


@pytest.mark.whole
@each_function
@given(mrr=mrrs, knee=st.floats(1.0, 1e5), share=st.floats(1e-4, 3.0))
def test_slopes_are_the_derivatives(function, mrr, knee, share):
    spread = max(mrr / knee, 1.0)
    load = share * mrr
    point = columns(load, mrr, spread)
    step = min(1e-4 * spread, 1e-4 * load)
    by_mrr = function.log_loss_rate(*columns(load, mrr + step, spread)) - function.log_loss_rate(
        *columns(load, mrr - step, spread)
    )
    by_load = function.log_loss_rate(*columns(load + step, mrr, spread)) - function.log_loss_rate(
        *columns(load - step, mrr, spread)
    )
    noise = 1e-13 * abs(function.log_loss_rate(*point)[0]) / step + 1e-9 / load
    assert function.log_loss(*point).slope[0] == pytest.approx(by_mrr[0] / (2 * step), rel=1e-5, abs=noise)
    assert function.load_slope(*point)[0] == pytest.approx(by_load[0] / (2 * step), rel=1e-5, abs=noise)


@each_function
@given(mrr=mrrs, knee=knees, distance=st.floats(-20.0, 20.0))
def test_the_explaining_mrr_gives_the_loss_back(function, mrr, knee, distance):
    spread = max(mrr / knee, 1.0)
    load = mrr + distance * spread
    log_rate = function.log_loss_rate(*columns(load, mrr, spread))
    explaining = function.explaining_mrr(np.array([load]), log_rate, np.array([spread]))
    assert explaining[0] == pytest.approx(mrr, abs=0.01 * spread)


def test_nothing_overflows_anywhere():
    load, mrr, spread = np.meshgrid(
        np.geomspace(1e-3, 1e15, 40), np.geomspace(1.0, 1e15, 40), np.geomspace(1, 1e15, 40)
    )
    inside = spread <= mrr
    for function in (STRETCH, ERF):
        loss = function.log_loss(load[inside], mrr[inside], spread[inside])
        assert np.all(np.isfinite(loss.log_rate))
        assert np.all(loss.slope <= 0)


def test_where_more_than_the_target_is_lost_at_the_minimum_load_the_critical_load_is_that():
    """A capacity that varies by so much loses more than the target below some load, and again above a larger one."""
    question = CriticalLoadQuestion(1e-6, 24.0, 8e4)
    curves = Curves(STRETCH, np.array([20017.0]), np.array([1.107]), np.array([4000.0]))
    assert critical_load(curves, question) == 24.0
