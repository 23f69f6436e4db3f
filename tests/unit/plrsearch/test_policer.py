"""A SUT with memory: a policer lets a burst pass in each trial, so its capacity depends on the trial's duration."""

from dataclasses import dataclass

import pytest

from lossratio.plrsearch import PLRsearch
from lossratio.simulation import SimulatedMeasurer
from lossratio.trials import run_search

RATE = 18e6
DURATION = 2.0


@dataclass(frozen=True)
class Policer:
    burst: float

    def start(self, rng):
        def lost_frames(traffic):
            return max(0, round(traffic.frames * (1.0 - RATE / traffic.load) - self.burst))

        return lost_frames

    def truth(self, *, loss_ratio, duration, exceed_ratio):
        return RATE + self.burst / duration


@pytest.mark.parametrize(
    ("likelihood", "burst"),
    [("varying", 0.0), ("varying", 1e3), ("varying", 1e5), ("poisson", 0.0), ("poisson", 1e3), ("poisson", 1e5)],
)
def test_the_interval_contains_what_the_policer_lets_pass_in_a_trial(likelihood, burst):
    search = PLRsearch(1e-7, 1e4, 30e6, timeout=45.0, likelihood=likelihood, initial_duration=DURATION)
    trials = []
    search_result = run_search(search, SimulatedMeasurer(Policer(burst), seed=1, overhead=0.5), on_trial=trials.append)
    low, high = search_result.interval(0.95)
    assert {trial.duration for trial in trials} == {DURATION}
    assert low <= (RATE + burst / DURATION) * (1.0 + 1e-7) <= high
    # Without a function for the whole curve only loads near the knee tell.
    assert high - low < (0.02 if likelihood == "varying" else 1e-4) * RATE
