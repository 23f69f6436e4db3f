import pytest

from lossratio.errors import SearchError
from lossratio.simulation import CapacityStep, ConstantLoss, PerformanceSpectrum, Policer, SharpKnee, SimulatedMeasurer
from lossratio.trials.counters import contradictions
from lossratio.trials.trial_input import TrialInput
from lossratio_study.families import FAMILIES
from lossratio_study.study import NO_OVERHEAD

ONE_SECOND = TrialInput(duration=1.0, load=100_000.0)


def test_one_seed_repeats_everything():
    sut = PerformanceSpectrum(capacity=1e5, jitter=0.01, tail_share=0.1)
    runs = []
    for seed in (5, 5, 6):
        measurer = SimulatedMeasurer(sut, seed=seed, directions=2)
        runs.append([measurer.measure(ONE_SECOND) for _ in range(5)])
    assert runs[0] == runs[1] != runs[2]


def test_the_output_has_every_counter():
    output = SimulatedMeasurer(SharpKnee(capacity=80_000), seed=1).measure(ONE_SECOND)
    (direction,) = output.directions
    assert (direction.intended_frames, direction.sent_frames, direction.received_frames) == (100_000, 100_000, 80_000)
    assert (direction.name, direction.unsent_frames, direction.elapsed_s) == ("port0>port1", 0, 1.0)
    assert (output.sent_frames, output.lost_frames, output.unsent_frames) == (100_000, 20_000, 0)
    assert output.loss_ratio == 0.2


def test_the_virtual_clock_adds_up_durations_settling_and_overheads():
    measurer = SimulatedMeasurer(ConstantLoss(), seed=1, overhead=0.5, settle=0.25)
    outputs = [measurer.measure(TrialInput(duration=duration, load=10.0)) for duration in (1.0, 60.0)]
    assert [output.elapsed for output in outputs] == [1.75, 60.75]
    assert measurer.now == 62.5


@pytest.mark.parametrize(("counted", "effective"), [(False, None), (True, 1.5)])
def test_the_overhead_may_count_in_the_effective_duration(counted, effective):
    measurer = SimulatedMeasurer(ConstantLoss(), seed=1, overhead=0.5, count_overhead=counted, settle=0.1)
    assert measurer.measure(ONE_SECOND).effective_duration == effective


def test_the_sut_sees_the_clock():
    measurer = SimulatedMeasurer(CapacityStep(before=2e5, after=5e4, at=2.0), seed=1, overhead=1.0)
    assert [measurer.measure(ONE_SECOND).loss_ratio for _ in range(3)] == [0.0, 0.5, 0.5]


def test_frames_that_the_generator_cannot_send_are_unsent_not_lost():
    output = SimulatedMeasurer(ConstantLoss(), seed=1, max_rate=60_000).measure(ONE_SECOND)
    assert (output.sent_frames, output.lost_frames, output.unsent_frames) == (60_000, 0, 39_999)
    assert output.directions[0].intended_frames == 100_000
    assert output.loss_ratio == pytest.approx(0.4, abs=1e-5)


def test_a_generator_below_its_limit_sends_everything():
    assert SimulatedMeasurer(ConstantLoss(), seed=1, max_rate=1e5).measure(ONE_SECOND).loss_ratio == 0.0


@pytest.mark.parametrize("load", [1.0, 10.5, 99_999.7, 1e8 / 3])
@pytest.mark.parametrize("duration", [0.1, 1.0, 4.58])
def test_a_fraction_of_a_frame_is_never_loss(load, duration):
    assert SimulatedMeasurer(ConstantLoss(), seed=1).measure(TrialInput(duration, load)).loss_ratio == 0.0


def test_two_directions_through_one_sut_share_its_capacity():
    output = SimulatedMeasurer(SharpKnee(capacity=150_000), seed=1, directions=2).measure(ONE_SECOND)
    assert output.lost_frames == 50_000
    assert [direction.name for direction in output.directions] == ["port0>port1", "port1>port0"]
    assert output.directions[0].received_frames == pytest.approx(75_000, abs=1000)


def test_two_directions_may_have_a_sut_each():
    suts = [SharpKnee(capacity=150_000), SharpKnee(capacity=50_000)]
    output = SimulatedMeasurer(suts, seed=1).measure(ONE_SECOND)
    assert [direction.received_frames for direction in output.directions] == [100_000, 50_000]


@pytest.mark.parametrize(("loss_ratio", "lost"), [(0.0, 0), (1.0, 300_000)])
def test_a_shared_sut_never_loses_more_of_a_direction_than_it_sent(loss_ratio, lost):
    output = SimulatedMeasurer(ConstantLoss(loss_ratio=loss_ratio), seed=1, directions=3).measure(ONE_SECOND)
    assert output.lost_frames == lost


def test_settling_gives_a_policer_its_burst_back():
    rested, tired = (
        SimulatedMeasurer(Policer(rate=50_000, burst=1000), seed=1, settle=settle) for settle in (0.02, 0.0)
    )
    for measurer in (rested, tired):
        measurer.measure(ONE_SECOND)
    just = TrialInput(duration=1.0, load=51_000.0)
    assert rested.measure(just).lost_frames == 0
    assert tired.measure(just).lost_frames == 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"overhead": -0.1}, "overhead"),
        ({"settle": -0.1}, "settle"),
        ({"max_rate": 0.0}, "max_rate"),
        ({"directions": 0}, "directions"),
    ],
)
def test_values_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(SearchError, match=message):
        SimulatedMeasurer(ConstantLoss(), seed=1, **arguments)


def test_suts_must_match_the_directions():
    with pytest.raises(SearchError, match="2 SUTs do not fit 3 directions"):
        SimulatedMeasurer([ConstantLoss(), ConstantLoss()], seed=1, directions=3)


WATCHED = TrialInput(duration=1.0, load=100_000.0, certain_above=0.005)


def test_a_watched_trial_ends_when_its_verdict_is_certain_and_says_how_much_was_lost_at_least():
    measurer = SimulatedMeasurer(SharpKnee(capacity=90_000), seed=1, overhead=0.5)
    output = measurer.measure(WATCHED)
    # 10 % of 5,000 frames are no more than 0.5 % of 100,000; of 10,000 they are.
    assert output.decided_after == pytest.approx(0.1)
    assert (output.sent_frames, output.lost_frames, output.unsent_frames) == (10_000, 1_000, 0)
    assert (output.loss_ratio, output.forwarding_rate) == (0.01, pytest.approx(90_000))
    assert (output.elapsed, output.effective_duration) == (pytest.approx(0.6), None)
    assert measurer.now == pytest.approx(0.6)
    assert output.directions[0].intended_frames == 100_000
    assert list(contradictions(output)) == []


def test_a_watched_trial_that_is_never_certain_is_as_any_other():
    (watched, plain) = (
        SimulatedMeasurer(Policer(rate=99_900, burst=10), seed=1).measure(trial) for trial in (WATCHED, ONE_SECOND)
    )
    assert (watched.decided_after, watched.loss_ratio) == (None, plain.loss_ratio)


def test_one_trial_has_one_capacity_however_often_it_is_looked_at():
    sut = PerformanceSpectrum(capacity=1e5, jitter=0.05)
    for seed in range(40):
        whole, watched = (SimulatedMeasurer(sut, seed=seed).measure(trial) for trial in (ONE_SECOND, WATCHED))
        assert (watched.loss_ratio > 0.005) == (whole.loss_ratio > 0.005)


def test_loss_that_may_be_the_generators_ends_no_trial():
    output = SimulatedMeasurer(SharpKnee(capacity=10_000), seed=1, max_rate=60_000).measure(WATCHED)
    assert output.decided_after is None
    assert output.unsent_frames > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_an_early_verdict_is_that_of_the_same_trial_when_it_goes_on(family):
    subject = FAMILIES[family].subject(5)
    early = 0
    for step in range(60):
        load = subject.max_load * 0.97**step
        # Looked at in the same way, the trial with the higher limit goes on where the other one ends.
        ended, whole = (
            subject.measurer(NO_OVERHEAD, step, 0).measure(TrialInput(2.0, load, certain_above=limit))
            for limit in (0.0, 0.999_999)
        )
        assert (ended.loss_ratio > 0.0) == (whole.loss_ratio > 0.0)
        early += ended.decided_after is not None
    assert early > 0
