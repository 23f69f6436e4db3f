"""Trials with TRex that are watched while they run, and end when their verdict is certain."""

from dataclasses import asdict

import pytest
from performed import nothing
from trex_lab import BOTH_WAYS, generator, loss_ratio, still_there
from trex_stand_in import Server

from lossratio.agent.core.plan import Plan
from lossratio.agent.core.protocol import AgentError
from lossratio.traffic.answers import read_answer

PLAN = Plan(((10_000.0, 1.0),), above=0.01, in_flight=1e-3)


def watched(server, **settings):
    trex = generator(server, uses_linux=True, **settings)
    return read_answer(asdict(trex.run(PLAN, still_there, nothing)), BOTH_WAYS, PLAN)


def test_a_watched_trial_ends_when_its_loss_is_certain(no_links):
    server = Server(lost=(0.5, 0.0))
    trial_ = watched(server)
    assert trial_.ended
    assert 0.02 < trial_.certain_after < 0.15
    west, east = trial_.directions
    assert west.intended_frames == east.intended_frames == 10_000
    assert west.sent_frames < 2_000
    assert [direction.unsent_frames for direction in trial_.directions] == [0, 0]
    assert server.now < 1.0


def test_a_watched_trial_without_loss_takes_its_whole_duration(no_links):
    trial_ = watched(Server())
    assert (trial_.ended, trial_.certain_after) == (False, None)
    assert loss_ratio(trial_.directions) == 0.0


def test_frames_that_the_device_held_back_take_an_early_verdict_back(no_links):
    trial_ = watched(Server(late=(500, 0.08)), settle_time=0.005)
    assert trial_.ended
    assert [direction.received_frames for direction in trial_.directions] == [
        each.sent_frames for each in trial_.directions
    ]
    assert trial_.were_in_flight > 400


def test_nothing_is_certain_while_the_server_sends_too_slowly(no_links):
    trial_ = watched(Server(lost=(0.5, 0.5), capacity=2_000.0))
    assert not trial_.ended
    assert trial_.directions[0].unsent_frames > 5_000


def test_frames_that_trex_dropped_itself_make_nothing_certain(no_links):
    trial_ = watched(Server(lost=(0.2, 0.0), errors={"ierrors": 2_000}))
    assert not trial_.ended


@pytest.mark.parametrize("modes", [{}, {"flow_statistics": True}])
def test_a_trial_that_is_shown_at_a_terminal_is_the_same_with_cards_and_with_flow_statistics(modes):
    """Without a verdict nothing depends on counters that are late."""
    seen = []
    plan = Plan(((10_000.0, 2.0),), notes=True)
    trex = generator(Server(lost=(0.1, 0.0)), modes=modes)
    answer = trex.run(plan, still_there, lambda *frames: seen.append(frames))
    west, _ = read_answer(asdict(answer), BOTH_WAYS, plan).directions
    assert west.sent_frames - west.received_frames == pytest.approx(2000, abs=1)
    assert answer.ended is False
    if not modes:
        assert len(seen) == 3
        assert all(0.9 < received / sent < 1.0 for sent, received in seen)


def test_cards_may_count_late_so_they_are_not_watched():
    with pytest.raises(AgentError, match="may count frames late") as raised:
        generator(Server()).run(PLAN, still_there, nothing)
    assert raised.value.kind == "unsupported"
