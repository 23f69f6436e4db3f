"""A program that was written for MLRsearch 1.2.1, as FD.io CSIT was, works with another import only."""

from __future__ import annotations

import random

import pytest
from at_least_one import at_least_one
from robot.libraries.BuiltIn import BuiltIn

from lossratio.errors import SearchError
from lossratio.mlrsearch import csit

CAPACITY = 12_345_678.0


@pytest.fixture
def theirs():
    """Loaded by the process that runs these tests alone: it looks up the source of each frame of the stack."""
    return pytest.importorskip("MLRsearch")


@pytest.fixture(params=["theirs", "ours"])
def package(request):
    return csit if request.param == "ours" else request.getfixturevalue("theirs")


class Generator:
    """A traffic generator as CSIT's is: it measures, and sets more than the package knows on its results."""

    def __init__(self, package, capacity=CAPACITY, jitter=0.0, unsent=0, overhead=0.5):
        self.package, self.capacity, self.jitter = package, capacity, jitter
        self.unsent, self.overhead = unsent, overhead
        self.random = random.Random(1)
        self.trials = []

    def measure(self, intended_duration, intended_load):
        attempts = round(intended_duration * intended_load)
        offered = attempts - self.unsent
        capacity = self.capacity * (1.0 - self.jitter * self.random.random())
        self.trials.append((intended_duration, intended_load))
        result = self.package.MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=offered,
            loss_count=max(0, offered - round(capacity * intended_duration)),
            offered_duration=intended_duration,
            duration_with_overheads=intended_duration + self.overhead,
            intended_count=attempts,
        )
        result.latency = ["-1/-1/-1/"]
        return result


def perform_optimized_ndrpdr_search(package, generator, debug=None, **changed):
    """The call of CSIT's TrafficGenerator.py: goals, a configuration that is filled afterwards, results by goal."""
    goals = [
        package.SearchGoal(
            loss_ratio=loss_ratio,
            exceed_ratio=0.5,
            relative_width=0.005,
            initial_trial_duration=1.0,
            final_trial_duration=1.0,
            duration_sum=21.0,
            preceding_targets=2,
            expansion_coefficient=4,
            fail_fast=True,
        )
        for loss_ratio in (0.0, 0.005)
    ]
    config = package.Config()
    config.goals = goals
    config.min_load = 9001.0
    config.max_load = 18_750_000.0
    config.search_duration_max = 1200.0
    config.warmup_duration = 0.0
    for name, value in changed.items():
        setattr(config, name, value)
    algorithm = package.MultipleLossRatioSearch(config)
    results = algorithm.search(measurer=generator, debug=debug)
    return [results[goal] for goal in goals]


@pytest.mark.whole
@pytest.mark.parametrize("jitter", [0.0, 0.02])
def test_both_find_the_bounds_of_the_same_device(package, jitter):
    lines = []
    ndr, pdr = perform_optimized_ndrpdr_search(package, Generator(package, jitter=jitter), debug=lines.append)
    assert len(lines) > 10
    for result, truth in ((ndr, CAPACITY), (pdr, CAPACITY / 0.995)):
        low, high = (
            BuiltIn().convert_to_number(bound) for bound in (result.relevant_lower_bound, result.relevant_upper_bound)
        )
        assert (high - low) / high <= 0.005 + 1e-9
        assert low <= truth
        assert high >= truth * (1.0 - jitter)
        assert float(result.conditional_throughput) == pytest.approx(low, rel=0.006 + jitter)


def test_both_choose_from_the_same_loads(theirs):
    known, found = (perform_optimized_ndrpdr_search(package, Generator(package)) for package in (theirs, csit))
    for each, other in at_least_one(zip(known, found, strict=True)):
        assert other.relevant_lower_bound == pytest.approx(float(each.relevant_lower_bound), rel=1e-12)
        assert other.relevant_upper_bound == pytest.approx(float(each.relevant_upper_bound), rel=1e-12)
        assert other.conditional_throughput == pytest.approx(float(each.conditional_throughput), rel=1e-12)


def test_overheads_count_towards_the_duration_sum_in_both(theirs):
    generators = [Generator(package, overhead=0.5) for package in (theirs, csit)]
    for generator in generators:
        perform_optimized_ndrpdr_search(generator.package, generator)
    assert {len(generator.trials) for generator in generators} == {25}


def test_a_device_that_passes_all_has_no_upper_bound(package):
    ndr, _ = perform_optimized_ndrpdr_search(package, Generator(package, capacity=1e9))
    assert ndr.relevant_upper_bound is None
    assert float(ndr.relevant_lower_bound) == pytest.approx(18_750_000.0)


def test_a_dead_device_and_time_that_is_over_are_errors(package):
    with pytest.raises(RuntimeError):
        perform_optimized_ndrpdr_search(package, Generator(package, capacity=0.0))


def test_time_is_that_of_the_trials_with_their_overheads():
    with pytest.raises(RuntimeError, match=r"not finished after 1\d\.\d s of trials"):
        perform_optimized_ndrpdr_search(csit, Generator(csit), search_duration_max=10.0)


def test_without_fail_fast_a_dead_device_has_no_lower_bound():
    config = csit.Config(goals=[csit.SearchGoal(fail_fast=False)], warmup_duration=None)
    (result,) = csit.MultipleLossRatioSearch(config).search(Generator(csit, capacity=0.0)).values()
    assert (result.relevant_lower_bound, result.conditional_throughput) == (None, None)


@pytest.mark.parametrize(
    "counts",
    [
        {"offered_count": 100, "loss_count": 10},
        {"offered_count": 90, "loss_count": 10, "intended_count": 100},
        {"forwarding_count": 90, "loss_count": 10},
        {"offered_count": 100, "forwarding_count": 93},
    ],
)
def test_frames_that_were_lost_or_not_sent_count_alike(package, counts):
    lost = 0.1 if "loss_count" in counts else 0.07
    expected = 0.2 if "intended_count" in counts else lost
    assert package.MeasurementResult(1.0, 100.0, **counts).loss_ratio == pytest.approx(expected)


def test_a_trial_without_a_frame_proves_nothing():
    assert csit.MeasurementResult(1.0, 100.0, offered_count=0, loss_count=0).loss_ratio == 1.0


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(SearchError):
        csit.MultipleLossRatioSearch(csit.Config(goals=[])).search(Generator(csit))
