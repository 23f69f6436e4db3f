from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from lossratio.errors import DutError
from lossratio.trials.counters import (
    CountersError,
    Examination,
    IntegrityError,
    check_integrity,
    faults_in_words,
    output_from_counters,
    with_examination,
)
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters

TRIAL = TrialInput(duration=1.0, load=1000.0)
NOTHING = Examination(
    examined=0, duplicated=0, reordered=0, corrupted=0, readdressed=0, wrong_length=0, wrong_mac=0, strayed=0
)


def arrived(count, sent=1000, **faults):
    counters = DirectionCounters("port0>port1", intended_frames=1000, sent_frames=sent, received_frames=count)
    return with_examination(counters, replace(NOTHING, **{"examined": count, **faults}))


def test_intact_frames_are_received():
    counters = arrived(998)
    assert (counters.received_frames, counters.examined_frames, counters.faulty) == (998, 998, 0)


def test_a_copy_never_makes_up_for_a_lost_frame():
    counters = arrived(1000, duplicated=10)
    assert (counters.received_frames, counters.duplicated_frames) == (990, 10)
    assert output_from_counters(TRIAL, [counters]).loss_ratio == 0.01


def test_damaged_frames_are_not_received_ones_and_are_counted_apart():
    counters = arrived(1000, corrupted=3, readdressed=5, wrong_length=7, wrong_mac=11)
    assert (counters.corrupted_frames, counters.wrong_length_frames, counters.misdelivered_frames) == (3, 7, 16)
    assert output_from_counters(TRIAL, [counters]).lost_frames == 26


def test_reordered_frames_are_received_ones():
    counters = arrived(1000, reordered=20)
    assert (counters.received_frames, counters.reordered_frames, counters.faulty) == (1000, 20, 0)


def test_frames_of_another_direction_are_misdelivered_and_take_nothing_from_this_one():
    counters = arrived(1000, strayed=4)
    assert (counters.received_frames, counters.misdelivered_frames) == (1000, 4)


def test_frames_of_another_direction_do_not_make_an_examination_of_all_frames_a_sample():
    counters = arrived(996, strayed=4)
    assert counters.examined_frames == counters.received_frames + counters.faulty == 1000
    assert faults_in_words(counters) == "4 misdelivered"
    assert faults_in_words(arrived(0, strayed=4)) == "4 misdelivered"


def test_the_faults_in_a_sample_are_scaled_up_to_all_frames():
    counters = arrived(1000, examined=100, duplicated=1, corrupted=2, reordered=3, wrong_length=5)
    assert (counters.duplicated_frames, counters.corrupted_frames, counters.reordered_frames) == (10, 20, 30)
    assert (counters.wrong_length_frames, counters.received_frames) == (5, 965)


def test_more_frames_than_were_sent_are_copies_even_if_the_sample_has_none():
    counters = arrived(1003, examined=100)
    assert (counters.received_frames, counters.duplicated_frames) == (1000, 3)
    assert output_from_counters(TRIAL, [counters]).loss_ratio == 0.0


@given(
    st.integers(0, 2000),
    st.integers(0, 2000),
    st.fixed_dictionaries({name: st.integers(0, 300) for name in vars(NOTHING) if name != "has_foreign"}),
)
def test_no_more_is_received_than_was_sent_or_arrived_and_nothing_is_counted_twice(count, sent, faults):
    counters = arrived(count, sent, **faults)
    assert 0 <= counters.received_frames <= min(sent, count)
    if counters.received_frames:
        assert counters.received_frames + counters.faulty - faults["strayed"] == count


def test_a_fault_is_named_with_its_size_and_its_direction():
    check_integrity([arrived(1000, reordered=5)], "at 1 kfps")
    with pytest.raises(IntegrityError, match=r"at 1 kfps: port0>port1: 10 duplicated, 2 corrupted\. "):
        check_integrity([arrived(1000), arrived(1000, duplicated=10, corrupted=2)], "at 1 kfps")
    assert issubclass(IntegrityError, DutError)


def test_copies_alone_are_not_called_changes():
    with pytest.raises(
        IntegrityError, match=r"came back more than once, at 1 kfps: .* duplicated\. Look for a loop"
    ) as caught:
        check_integrity([arrived(1000), arrived(1000, duplicated=10)], "at 1 kfps")
    assert "changed" not in str(caught.value)
    assert caught.value.is_explained


@pytest.mark.parametrize("fault", ["duplicated", "corrupted", "wrong_length", "strayed", "wrong_mac"])
def test_each_fault_alone_fails_a_test_that_checks_integrity(fault):
    with pytest.raises(IntegrityError, match=r"at 1 kfps: port0>port1: (about )?1 "):
        check_integrity([arrived(1000, **{fault: 1})], "at 1 kfps")


def test_a_fault_of_a_sample_is_named_as_an_estimate():
    words = faults_in_words(arrived(1000, examined=100, corrupted=2, wrong_length=5))
    assert words == "5 truncated or padded, about 20 corrupted (estimated from 100 frames examined)"
    assert faults_in_words(arrived(1000, examined=0, wrong_length=5)) == "5 truncated or padded"


def test_copies_of_latency_frames_are_all_known_and_scale_nothing():
    counters = arrived(1010, examined=100, corrupted=2, latency_copies=10)
    assert (
        counters.corrupted_frames,
        counters.duplicated_frames,
        counters.received_frames,
        counters.examined_frames,
    ) == (20, 10, 980, 100)


@pytest.mark.parametrize(
    "field",
    [
        "examined_frames",
        "duplicated_frames",
        "reordered_frames",
        "corrupted_frames",
        "wrong_length_frames",
        "misdelivered_frames",
    ],
)
def test_a_negative_count_is_an_error(field):
    counters = DirectionCounters("a>b", intended_frames=1000, sent_frames=1000, received_frames=1000, **{field: -1})
    with pytest.raises(CountersError, match="negative"):
        output_from_counters(TRIAL, [counters])
