import numpy as np
import pytest
from hypothesis import given, strategies as st
from plrsearch_known_answers import KNOWN

from lossratio.plrsearch.functions import FUNCTIONS

each_function = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)


@each_function
@pytest.mark.parametrize("row", KNOWN["fitting_functions"], ids=lambda row: f"{row['load']:g} {row['spread']:g}")
def test_log_loss_rates_agree_with_sixty_digit_arithmetic(function, row):
    point = (np.array([row[name]], dtype=float) for name in ("load", "mrr", "spread"))
    assert function.log_loss_rate(*point)[0] == pytest.approx(row[f"log_loss_rate_{function.name}"], rel=1e-14)


@each_function
@given(mrr=st.floats(1e3, 1e9), knee=st.floats(41.0, 1e5), share=st.floats(0.01, 3.0))
def test_loss_increases_is_convex_and_stays_below_the_load(function, mrr, knee, share):
    spread = max(mrr / knee, 1.0)
    loads = share * mrr * np.array([0.999, 1.0, 1.001])
    log_rate = function.log_loss_rate(loads, np.array(mrr), np.array(spread))
    # Relative to the largest, as a rate may be below the smallest float of full precision.
    rate = np.exp(log_rate - log_rate[2])
    assert np.all(np.diff(log_rate) > 0)
    assert np.all(log_rate < np.log(loads))
    assert rate[2] - rate[1] >= (rate[1] - rate[0]) * (1 - 1e-9)


def test_nothing_overflows_anywhere():
    load, mrr, spread = np.meshgrid(
        np.geomspace(1e-3, 1e15, 40), np.geomspace(1.0, 1e15, 40), np.geomspace(1, 1e15, 40)
    )
    inside = spread <= mrr
    for function in FUNCTIONS:
        assert np.all(np.isfinite(function.log_loss_rate(load[inside], mrr[inside], spread[inside])))
