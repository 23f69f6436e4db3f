"""Trials in which the generator could send every frame: a busy machine may keep a sender waiting, but not each time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from lossratio.agent import Plan
from lossratio.traffic import AgentClient, Answer, connecting
from lossratio.trials import DirectionCounters, Exchange

Output = TypeVar("Output")

PATIENCE = 60.0
"""Seconds for which a trial is measured again."""


def whole(measure: Callable[..., Output], *arguments: Any, **options: Any) -> Output:
    """What a trial gives in which no frame is unsent.

    As a measurer does, it measures a trial again that the machine disturbed. The law holds for each of them: all frames
    were sent or are unsent, and no more came back than were sent.

    Args:
        measure: The trial, e.g. `run_trial`: it gives counters of directions, or what has them as ``directions``.
        arguments: Its arguments.
        options: Its named arguments.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        output = measure(*arguments, **options)
        directions, has_early_end = getattr(output, "directions", output), getattr(output, "ended", False)
        for direction in directions:
            due = direction.sent_frames + direction.unsent_frames
            assert due < direction.intended_frames if has_early_end else due == direction.intended_frames, direction
            assert direction.received_frames <= direction.sent_frames, direction
        if not any(direction.unsent_frames for direction in directions):
            return output
        assert time.monotonic() < deadline, f"not once in {PATIENCE:g} s could all frames be sent: {directions}"


def run_trial(agent: AgentClient, load: float, duration: float, **more: Any) -> tuple[DirectionCounters, ...]:
    """The counters of a trial; `more` are other fields of its plan."""
    return agent.run(Plan(((load, duration),), **more)).directions


def run_watched(agent: AgentClient, load: float, duration: float, **watch: Any) -> Answer:
    """A trial that ends when its loss ratio is certain to be above a limit; `watch` are fields of its plan."""
    return agent.run(Plan(((load, duration),), **watch))


def run_latency(agent: AgentClient, load: float, duration: float) -> Answer:
    """A trial that measures latency."""
    return agent.run(Plan(((load, duration),), latency=True))


def run_connections(agent: AgentClient, load: float, count: int, exchange: Exchange) -> tuple[DirectionCounters, ...]:
    """The counters of connections, and of an exchange over each."""
    return agent.run(connecting(load, count, exchange)).directions


def run_timed(agent: AgentClient, *steps: tuple[float, float], is_burst: bool = False) -> Answer:
    """Steps of load, or a burst, whose losses are located in time."""
    return agent.run(Plan(steps, is_burst=is_burst, locates=True))


def hold_load(agent: AgentClient, load: float, *, watch: bool = False) -> None:
    """Begins traffic that lasts until it is stopped."""
    agent.hold(Plan(((load, None),), locates=watch))
