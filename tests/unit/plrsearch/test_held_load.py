"""The load that the search by counts holds goes down when it fails, and keeps what its losses have shown."""

import numpy as np
import pytest

from lossratio.plrsearch.counting import Evidence
from lossratio.plrsearch.held_load import HeldLoad

TARGET = 1e-7
LOAD = 18e6
OVERLOAD = 19.8e6


def held(load=LOAD):
    """A load that is held, with trials of 2 s and of 20 s."""
    return HeldLoad(clamped=float, lengths=(2.0, 20.0), highest=30e6, load=load)


def trials(load, lost, seconds=2.0):
    """Trials at a load that lost so many frames each."""
    return [(load, seconds, float(frames), 0.0, seconds) for frames in lost]


def test_a_bucket_is_not_forgotten_when_a_lower_load_fails():
    one = held()
    rows = [*trials(OVERLOAD, [3.58e6] * 3), *trials(LOAD, [0] * 5), *trials(LOAD, [900e3, 905e3], 20.0)]
    lower = one.next_load(Evidence.of(rows, TARGET, reference=OVERLOAD), 90.0)
    seen = one.bucket
    assert seen is not None
    assert lower == one.highest == seen.free_load < LOAD
    rows += trials(lower, [0, 0, 5000])
    assert one.next_load(Evidence.of(rows, TARGET, reference=OVERLOAD), 90.0) < lower
    assert one.bucket == seen
    assert one.highest == seen.free_load


@pytest.mark.parametrize("lost", [[0, 0, 0, 2000], [40, 35, 50, 45]])
def test_a_step_down_is_one_of_four_hundredths(lost):
    lower = held().next_load(Evidence.of(trials(LOAD, lost), TARGET), 90.0)
    assert lower == pytest.approx(0.96 * LOAD)


@pytest.mark.parametrize(("left", "share"), [(5.0, 0.96), (90.0, 1.0)])
def test_a_load_that_there_is_no_time_to_verify_is_left(left, share):
    some = Evidence.of(trials(LOAD, [4, 5, 3, 4, 6, 4]), TARGET)
    assert some.at(LOAD).least < TARGET < some.at(LOAD).ratio
    assert held().next_load(some, left) == pytest.approx(share * LOAD)


def test_a_verified_load_above_one_that_fails_is_not_held():
    rows = [*trials(1.02 * LOAD, [0] * 30), *trials(LOAD, [2000, 0, 2000]), *trials(0.9 * LOAD, [0] * 90)]
    one = held()
    lower = one.next_load(Evidence.of(rows, TARGET), 90.0)
    assert lower == pytest.approx(0.96 * LOAD)


@pytest.mark.parametrize(("scatter", "is_capped"), [(0.0, False), (9e3, False), (200e3, True)])
def test_the_first_held_load_is_capped_only_if_the_rates_in_overload_differ(scatter, is_capped):
    in_overload = [3.6e6, 3.6e6 + scatter, 3.6e6 - scatter]
    rows = [*trials(OVERLOAD, in_overload), *trials(1.002 * LOAD, [72e3]), *trials(LOAD, [0])]
    one = held(load=0.0)
    evidence = Evidence.of(rows, TARGET, reference=OVERLOAD)
    one.hold_first(evidence)
    one.next_load(evidence, 90.0)
    assert (one.load < LOAD) is is_capped
    assert one.highest == (one.load if is_capped else 30e6)


@pytest.mark.parametrize("scatter", [200e3, 2e6])
def test_scatter_lowers_the_load_by_five_deviations_but_at_most_by_a_tenth(scatter):
    in_overload = [3.6e6 + scatter * share for share in (-1.5, -1.0, -0.5, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.5)]
    one = held()
    one.next_load(Evidence.of(trials(OVERLOAD, in_overload), TARGET, reference=OVERLOAD), 90.0)
    # Frames per second; the upper bound (90 %) of the deviation is 1.47 times that of ten trials.
    deviation = 1.47 * np.std(in_overload, ddof=1) / 2.0
    assert one.highest == pytest.approx(max(LOAD - 5.0 * deviation, 0.9 * LOAD), rel=1e-3)
    assert one.load == one.highest
