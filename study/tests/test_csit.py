import pytest

from lossratio.mlrsearch import NDR, PDR, Bound, IrregularReason, classify
from lossratio.simulation import ConstantLoss, SharpKnee, SimulatedMeasurer
from lossratio.trials import DirectionCounters, TrialInput, TrialOutput, TrialResult, run_search
from lossratio.trials.counters import output_from_counters
from lossratio_study import csit


def trials(count, loss_ratio, effective_duration):
    output = TrialOutput(loss_ratio, effective_duration=effective_duration)
    return [TrialResult(TrialInput(1.0, 1e6), output)] * count


@pytest.mark.parametrize(
    ("effective_duration", "loss_ratio", "needed", "bound"),
    [
        (1.0 + csit.TRIAL_OVERHEAD, 0.0, 7, Bound.LOWER),
        # Seven times 1.5 s is exactly half of 21 s, which the exceed ratio still allows.
        (1.0 + csit.TRIAL_OVERHEAD, 0.1, 8, Bound.UPPER),
        (1.0, 0.0, 11, Bound.LOWER),
        (1.0, 0.1, 11, Bound.UPPER),
    ],
)
def test_seven_trials_prove_a_lower_bound_because_their_overhead_counts(effective_duration, loss_ratio, needed, bound):
    assert csit.GOALS
    for goal in csit.GOALS:
        assert classify(goal, trials(needed - 1, loss_ratio, effective_duration)) is Bound.UNDECIDED
        assert classify(goal, trials(needed, loss_ratio, effective_duration)) is bound


def test_the_measurer_spends_and_counts_half_a_second_around_each_trial():
    measurer = SimulatedMeasurer(ConstantLoss(), seed=1, **csit.MEASURER_ARGUMENTS)
    output = measurer.measure(TrialInput(1.0, 1e6))
    assert (output.effective_duration, output.elapsed) == (1.5, 1.5)


def test_the_first_trial_is_a_warm_up_at_max_load_that_counts_for_nothing():
    search = csit.controller(1e6)
    first = search.next_trial()
    assert first == TrialInput(1.0, 1e6)
    search.record(TrialResult(first, TrialOutput(0.0)))
    assert search.evidence == ()
    assert search.next_trial() == first


def test_loads_go_down_to_9001_frames_per_second_and_ndr_failing_there_ends_the_search():
    measurer = SimulatedMeasurer(ConstantLoss(loss_ratio=0.004), seed=1, **csit.MEASURER_ARGUMENTS)
    seen = []
    result = run_search(csit.controller(1e6), measurer, on_trial=seen.append)
    assert min(trial.load for trial in seen) == 9001.0
    assert result[NDR].reason is IrregularReason.MIN_LOAD_IS_UPPER_BOUND
    assert not result[PDR].regular


def test_a_search_finds_both_rates_of_a_sut_with_a_known_capacity():
    measurer = SimulatedMeasurer(SharpKnee(capacity=5e5), seed=1, **csit.MEASURER_ARGUMENTS)
    result = run_search(csit.controller(1e6), measurer)
    assert result[NDR].relevant_lower_bound <= 5e5 < result[NDR].relevant_upper_bound
    assert result[PDR].relevant_lower_bound <= 5e5 / 0.995 < result[PDR].relevant_upper_bound
    assert result[NDR].regular
    assert result[PDR].regular


def test_a_search_is_given_up_after_twenty_minutes():
    search = csit.controller(1e6)
    search.record(TrialResult(search.next_trial(), TrialOutput(0.5, elapsed=1200.0)))
    assert search.next_trial() is None
    assert not search.result().finished


def test_negative_loss_counts_as_loss():
    direction = DirectionCounters("port0>port1", intended_frames=1000, sent_frames=1000, received_frames=1010)
    output = output_from_counters(TrialInput(1.0, 1000.0), [direction], negative_loss=csit.NEGATIVE_LOSS)
    assert output.loss_ratio == 0.01
