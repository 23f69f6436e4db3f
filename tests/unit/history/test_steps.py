import jumpavg
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lossratio.report.history.steps import group_starts


def jumpavg_starts(values):
    starts = [0]
    for group in jumpavg.classify(values):
        starts.append(starts[-1] + len(group))
    return starts[:-1]


levels = st.lists(st.tuples(st.floats(1.0, 1e8), st.floats(0.0, 0.1), st.integers(1, 12)), min_size=1, max_size=5)


@st.composite
def stepping(draw):
    """Values that stay around one for a while, then around another."""
    randomness = np.random.default_rng(draw(st.integers(0, 1000)))
    parts = [np.abs(randomness.normal(mean, mean * spread, size)) for mean, spread, size in draw(levels)]
    return np.concatenate(parts)


@pytest.mark.whole
@settings(max_examples=150, deadline=None)
@given(stepping())
def test_groups_are_those_of_jumpavg(values):
    assert group_starts(values) == jumpavg_starts(values.tolist())


@pytest.mark.parametrize(
    "values", [[5.0], [5.0] * 9, [0.0, 0.0, 5.0], [1.0, 1.0, 2.0, 2.0], [0.0, 0.0, 0.0, 1.0], [3.0, 0.0]]
)
def test_groups_of_few_or_equal_values_are_those_of_jumpavg(values):
    assert group_starts(np.array(values)) == jumpavg_starts(values)


def test_zeros_are_one_group_where_jumpavg_gives_up():
    with pytest.raises(ValueError, match="Invalid max value"):
        jumpavg.classify([0.0, 0.0, 0.0])
    assert (group_starts(np.zeros(3)), group_starts(np.array([]))) == ([0], [])
