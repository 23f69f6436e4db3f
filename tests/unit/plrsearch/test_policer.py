"""A SUT with memory: a policer lets a burst pass in each trial, so its capacity depends on the trial's duration."""

from dataclasses import dataclass, replace

import pytest

from lossratio.plrsearch import PLRsearch
from lossratio.simulation import SimulatedMeasurer
from lossratio.trials import TrialResult, run_search

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


@pytest.mark.whole
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


@pytest.mark.whole
def test_a_trial_in_overload_that_does_not_count_is_repeated():
    """A busy generator cannot send all frames of the first trials of each kind."""
    controller = PLRsearch(1e-7, 1e4, 30e6, timeout=60.0)
    measurer = SimulatedMeasurer(Policer(1e5), seed=1, overhead=0.5)
    spoilt = set()
    repeated = 0
    while (wanted := controller.next_trial()) is not None:
        kind = controller.purpose, wanted.duration
        output = measurer.measure(wanted)
        is_new = "overload" in controller.purpose and kind not in spoilt
        repeated += "shorter" in controller.purpose and not is_new
        if is_new:
            spoilt.add(kind)
            output = replace(output, unsent_frames=output.sent_frames)
        controller.record(TrialResult(wanted, output))
    assert repeated == 1
    assert any("as with a bucket or a buffer of" in sentence for sentence in controller.result().sentences)
