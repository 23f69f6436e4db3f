"""How much a TRex that sleeps is behind while it sends: by the counters of its interfaces, with a known truth."""

import math
import time
from dataclasses import asdict

import pytest
from hypothesis import given, settings, strategies as st
from trex_lab import PAIR

from lossratio.agent.core.configuration import PARTS, Configuration
from lossratio.agent.core.protocol import read_record
from lossratio.agent.trex.pace import BATCH, LOOK_SECONDS, Pace, transmitted
from lossratio.traffic import load_profile, make_configuration

LOAD, DURATION = 10_000.0, 0.5
DUE = {"east": 5000, "west": 5000}


def directions(frame_size="64B"):
    configuration = make_configuration(load_profile("ethip4-udp", frame_size=frame_size), [PAIR], settle_time=0.005)
    return read_record(Configuration, asdict(configuration), PARTS).directions


def looked_at(stalls, began=1.0, slow=0.0):
    """The lateness of a sender that begins at a time and stands still at some times, for some seconds each."""
    now = [began - 0.01]

    def sent():
        """What was due when the last stall began, or is due now where none lasts."""
        now[0] += slow
        due = now[0]
        for start, seconds in stalls:
            if began + start <= now[0] < began + start + seconds:
                due = min(due, began + start)
        flowed = min(due - began, DURATION)
        count = round(LOAD * BATCH * math.floor(flowed / BATCH + 1e-6)) + 1 if flowed >= 0 else 0
        return {"east": 500 + count, "west": 500 + count, "lo": 0}

    pace = Pace(directions(), LOAD, DURATION, DUE, clock=lambda: now[0], read=sent)
    while now[0] < began + DURATION:
        now[0] += LOOK_SECONDS
        pace.look()
    return pace.lateness("east")


@pytest.mark.parametrize("late_frames", [0, 60])
def test_a_port_that_begins_before_the_answer_to_the_start_takes_no_longer_by_that(late_frames):
    """The answer comes 40 looks after the request, and the first frames 10 looks after it: each look takes 0.5 ms."""
    looks = [0]

    def sent():
        looks[0] += 1
        due = max(0, 5 * (looks[0] - 10))
        if due > 2500:
            due = min(DUE["east"], max(2500, due - late_frames))
        return {"east": due, "west": due}

    pace = Pace(directions(), LOAD, DURATION, DUE, clock=lambda: 0.5e-3 * looks[0], read=sent)
    with pace.beside():
        while looks[0] < 40:
            time.sleep(1e-3)

    while not pace.has_ended():
        assert looks[0] < 1100
    assert pace.stretch == pytest.approx(late_frames / LOAD, abs=2e-3)
    assert pace.is_kept is (late_frames == 0)


@pytest.mark.whole
@settings(max_examples=50, deadline=None)
@given(st.floats(0.0, 0.4), st.floats(0.0, 0.09))
def test_a_stall_at_any_time_is_seen_but_for_a_look_and_a_batch(start, seconds):
    assert seconds - LOOK_SECONDS - 2 * BATCH <= looked_at([(start, seconds)]) <= seconds + BATCH


def test_a_stall_right_at_the_begin_is_seen_as_frames_leave_faster_than_they_may():
    assert looked_at([(0.0, 0.03)]) == pytest.approx(0.03, abs=0.004)


def test_one_that_is_in_time_is_not_late_and_the_longest_of_several_stalls_counts():
    assert looked_at([]) < 0.5e-3
    assert looked_at([(0.1, 0.01), (0.2, 0.04), (0.3, 0.02)]) == pytest.approx(0.04, abs=0.004)


def test_a_look_that_waited_for_a_cpu_says_nothing():
    assert looked_at([(0.2, 0.04)], slow=0.001) == 0.0


@pytest.mark.whole
@settings(max_examples=50, deadline=None)
@given(st.floats(-0.05, 0.05), st.lists(st.floats(1e-4, 0.02), min_size=60, max_size=60))
def test_by_how_much_traffic_took_longer_is_never_underestimated(longer, steps):
    """Looks come at any times; traffic takes longer or shorter by a known time."""
    now, seconds = [0.0], DURATION + longer

    def sent():
        flowed = now[0] - 0.1
        return dict.fromkeys(DUE, 0 if flowed < 0 else min(5000, 1 + int(flowed / seconds * 4999)))

    pace = Pace(directions(), LOAD, DURATION, DUE, clock=lambda: now[0], read=sent)
    while not pace.has_ended():
        now[0] += steps[int(now[0] * 1000) % 60]
    assert max(0.0, longer) - 1e-9 <= pace.stretch <= max(0.0, longer + 2 * max(steps)) + 1e-9


def test_traffic_begins_with_the_first_frame_and_ends_with_the_last_one_of_all_ports():
    now = [0.0]
    counts = {"east": 0, "west": 0}
    pace = Pace(directions(), LOAD, DURATION, DUE, clock=lambda: now[0], read=lambda: dict(counts))
    assert not pace.has_begun()
    for seconds, east, west, has_begun, has_ended in (
        (1.0, 1, 0, False, False),
        (1.001, 11, 1, True, False),
        (1.501, 5000, 4999, True, False),
        (1.504, 5001, 5000, True, True),
    ):
        assert math.isinf(pace.stretch)
        now[0], counts["east"], counts["west"] = seconds, east, west
        assert pace.has_begun() == has_begun
        assert pace.has_ended() == has_ended
    # East was last seen silent at 0.0 s.
    assert pace.stretch == pytest.approx(1.501 - DURATION)


@pytest.mark.parametrize(
    ("stall", "step", "stretch"),
    [
        (0.0, 0.25e-3, 1.2e-3),
        # A server that stands still after its first frame may have begun at any time.
        (20e-3, 0.25e-3, 5.6e-3),
        # A single look may be one at which the server is late.
        (0.0, 0.5, 6e-3),
    ],
)
def test_frames_after_the_begin_show_when_it_was_unless_they_are_late_or_seldom_looked_at(stall, step, stretch):
    """The agent looks 5.5 ms before traffic begins, and then 0.5 ms after that."""
    now = [0.9945]

    def sent():
        flowed = now[0] - 1.0
        if flowed < 0.0:
            return dict.fromkeys(DUE, 0)
        return dict.fromkeys(DUE, 1 if flowed < stall else min(5000, 1 + int(flowed * LOAD)))

    pace = Pace(directions(), LOAD, DURATION, DUE, clock=lambda: now[0], read=sent)
    now[0] = 1.0005
    while not pace.has_ended():
        now[0] += step
    assert pace.stretch == pytest.approx(stretch, abs=0.3e-3)


def test_traffic_that_is_over_is_not_late():
    counts = iter([0, 1000, 5001, 5001])
    now = iter([0.0, 0.1, 0.1, 0.5, 0.5, 0.8, 0.8])
    pace = Pace(
        directions(),
        LOAD,
        DURATION,
        DUE,
        clock=lambda: next(now),
        read=lambda: dict.fromkeys(("east", "west"), next(counts)),
    )
    for _ in range(3):
        pace.look()
    assert pace.lateness("west") == 0.0


def test_the_streams_of_a_mix_send_their_first_frames_at_once():
    now = iter([0.9, 1.0, 1.0, 1.1, 1.1])
    counts = iter([0, 3, 1003])
    pace = Pace(
        directions("IMIX_v4_1"),
        LOAD,
        DURATION,
        DUE,
        clock=lambda: next(now),
        read=lambda: dict.fromkeys(("east", "west"), next(counts)),
    )
    pace.look()
    pace.look()
    assert pace.lateness("east") == 0.0


def test_the_kernel_counts_the_frames_of_its_interfaces():
    assert transmitted()["lo"] >= 0
