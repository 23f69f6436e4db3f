import math

import pytest
from hypothesis import given, strategies as st

from lossratio.trials.counters import CountersError, NegativeLossError, output_from_counters
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters

ONE_SECOND = TrialInput(duration=1.0, load=100_000.0)


def direction(sent, received, name="port0>port1", **counters):
    return DirectionCounters(name=name, intended_frames=sent, sent_frames=sent, received_frames=received, **counters)


def test_frames_that_did_not_come_back_are_lost():
    output = output_from_counters(ONE_SECOND, [direction(100_000, 99_000)])
    assert output.loss_ratio == pytest.approx(0.01)
    assert (output.sent_frames, output.lost_frames, output.unsent_frames) == (100_000, 1_000, 0)


def test_frames_that_could_not_be_sent_count_in_the_loss_ratio_but_not_as_lost():
    output = output_from_counters(ONE_SECOND, [direction(90_000, 90_000)])
    assert output.loss_ratio == pytest.approx(9_999 / 99_999)
    assert (output.lost_frames, output.unsent_frames) == (0, 9_999)


@pytest.mark.parametrize(("sent", "unsent"), [(100_000, 0), (99_999, 0), (99_998, 1)])
def test_ten_microseconds_of_traffic_may_be_missing(sent, unsent):
    assert output_from_counters(ONE_SECOND, [direction(sent, sent)]).unsent_frames == unsent


def test_a_direction_is_expected_to_send_its_share_of_the_load():
    small = DirectionCounters(
        "port1>port0", intended_frames=25_000, sent_frames=25_000, received_frames=24_000, load_ratio=0.25
    )
    output = output_from_counters(ONE_SECOND, [direction(100_000, 100_000), small])
    assert (output.loss_ratio, output.unsent_frames) == (1_000 / 125_000, 0)
    slow = DirectionCounters(
        "port1>port0", intended_frames=25_000, sent_frames=20_000, received_frames=20_000, load_ratio=0.25
    )
    assert output_from_counters(ONE_SECOND, [slow]).unsent_frames == 5_000


def test_a_generator_that_took_longer_should_have_sent_for_as_long():
    slow = DirectionCounters(
        "port0>port1", intended_frames=104_000, sent_frames=100_000, received_frames=100_000, elapsed_s=1.04
    )
    output = output_from_counters(ONE_SECOND, [slow])
    assert output.unsent_frames == pytest.approx(4_000, abs=2)
    assert output.loss_ratio == pytest.approx(4 / 104, rel=1e-3)


@pytest.mark.whole
@given(load=st.floats(1.0, 1e6), duration=st.floats(1e-3, 100.0), share=st.floats(0.1, 1.0))
def test_intended_frames_change_nothing_for_a_generator_that_took_no_longer(load, duration, share):
    def unsent(intended):
        counters = DirectionCounters("a>b", intended, sent_frames=1, received_frames=1, load_ratio=share)
        return output_from_counters(TrialInput(duration, load), [counters]).unsent_frames

    assert unsent(math.ceil(load * share * duration)) == unsent(1)


def test_the_tolerance_can_be_chosen():
    output = output_from_counters(ONE_SECOND, [direction(99_900, 99_900)], tolerance=1e-3)
    assert output.loss_ratio == 0.0


def test_a_frame_more_than_asked_for_is_expected_back():
    assert output_from_counters(ONE_SECOND, [direction(100_001, 100_000)]).loss_ratio == 1 / 100_001


@pytest.mark.parametrize(("intended", "sent"), [(100_000, 105_001), (20, 31)])
def test_far_more_frames_than_asked_for_are_another_load(intended, sent):
    counters = DirectionCounters("port0>port1", intended, sent_frames=sent, received_frames=sent)
    with pytest.raises(CountersError, match=f"was to send {intended} frames in direction port0>port1 but sent {sent}"):
        output_from_counters(ONE_SECOND, [counters])


@pytest.mark.parametrize(("intended", "sent"), [(100_000, 105_000), (20, 30)])
def test_a_few_frames_more_than_asked_for_are_none(intended, sent):
    trial = TrialInput(duration=1.0, load=float(intended))
    assert (
        output_from_counters(trial, [DirectionCounters("a>b", intended, sent, received_frames=sent)]).loss_ratio == 0.0
    )


def test_a_fraction_of_a_frame_is_expected_as_a_whole_one():
    trial = TrialInput(duration=1.0, load=10.5)
    assert output_from_counters(trial, [direction(10, 10)]).unsent_frames == 1


@given(st.integers(1, 10**9), st.integers(1, 600))
def test_sending_all_but_the_tolerance_is_never_unsent(load, duration):
    sent = load * duration - load // 100_000
    trial = TrialInput(duration=float(duration), load=float(load))
    assert output_from_counters(trial, [direction(sent, sent)]).unsent_frames == 0


def test_directions_are_summed_after_each_was_computed():
    output = output_from_counters(
        ONE_SECOND, [direction(100_000, 99_000), direction(90_000, 90_000, name="port1>port0")], tolerance=0.0
    )
    assert output.loss_ratio == pytest.approx(11_000 / 200_000)
    assert [one.unsent_frames for one in output.directions] == [0, 10_000]


def test_a_surplus_is_refused_with_its_counters():
    with pytest.raises(NegativeLossError, match=r"port0>port1: sent 100000, received 100005"):
        output_from_counters(ONE_SECOND, [direction(100_000, 100_005)])


def test_a_surplus_never_hides_the_loss_of_the_other_direction():
    counters = [direction(100_000, 99_000), direction(100_000, 101_000, name="port1>port0")]
    with pytest.raises(NegativeLossError):
        output_from_counters(ONE_SECOND, counters)
    output = output_from_counters(ONE_SECOND, counters, negative_loss="csit")
    assert output.lost_frames == 2_000
    assert output.loss_ratio == pytest.approx(0.01)


def test_csit_refuses_only_less_than_nothing_forwarded():
    assert output_from_counters(ONE_SECOND, [direction(100_000, 200_000)], negative_loss="csit").loss_ratio == 1.0
    with pytest.raises(NegativeLossError):
        output_from_counters(ONE_SECOND, [direction(100_000, 200_001)], negative_loss="csit")


def test_no_frames_expected_is_an_error_not_no_loss():
    with pytest.raises(CountersError, match="Direction port0>port1 has no loss ratio because no frames were expected"):
        output_from_counters(TrialInput(duration=5e-6, load=1000.0), [direction(0, 0)])


def test_no_direction_is_an_error():
    with pytest.raises(CountersError, match="no counters"):
        output_from_counters(ONE_SECOND, [])


def test_a_black_hole_loses_everything():
    assert output_from_counters(ONE_SECOND, [direction(100_000, 0)]).loss_ratio == 1.0


def test_a_generator_that_sent_nothing_is_all_loss_and_all_unsent():
    output = output_from_counters(ONE_SECOND, [direction(0, 0)], tolerance=0.0)
    assert (output.loss_ratio, output.lost_frames, output.unsent_frames) == (1.0, 0, 100_000)


@pytest.mark.parametrize(
    ("counted", "named"),
    [
        (direction(-1, 0), "intended_frames is -1, sent_frames is -1"),
        (direction(10, -1), "received_frames is -1"),
        (direction(100_000, 100_000, generator_drop_frames=-1), "generator_drop_frames is -1"),
        (direction(100_000, 100_000, late_frames=-1, corrupted_frames=-2), "late_frames is -1, corrupted_frames is -2"),
    ],
)
def test_a_negative_count_is_an_error_that_names_it(counted, named):
    with pytest.raises(CountersError, match=f"negative: {named}. "):
        output_from_counters(ONE_SECOND, [counted])


def test_an_unknown_policy_is_refused():
    with pytest.raises(ValueError, match="retry, csit"):
        output_from_counters(ONE_SECOND, [direction(1, 1)], negative_loss="ignore")


def test_times_and_other_counters_are_handed_on():
    output = output_from_counters(
        ONE_SECOND,
        [direction(100_000, 99_000, generator_drop_frames=7, late_frames=3)],
        effective_duration=1.5,
        elapsed=1.6,
    )
    assert (output.effective_duration, output.elapsed) == (1.5, 1.6)
    assert (output.directions[0].generator_drop_frames, output.directions[0].late_frames) == (7, 3)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=4))
def test_the_loss_ratio_is_always_a_ratio_and_recomputable_from_the_output(counts):
    try:
        output = output_from_counters(ONE_SECOND, [direction(*row) for row in counts], negative_loss="csit")
    except NegativeLossError:
        assert any(received > sent for sent, received in counts)
        return
    expected = sum(one.sent_frames + one.unsent_frames for one in output.directions)
    assert output.loss_ratio == (output.lost_frames + output.unsent_frames) / expected
