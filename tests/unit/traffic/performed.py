"""Plans that a generator of the agent performs without a controller, and its answers as the library reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from lossratio.agent.core.generator import Generator
from lossratio.agent.core.plan import Answer, Exchange, Plan
from lossratio.traffic.answers import Answer as ReadAnswer, read_answer
from lossratio.trials import Exchange as ExchangeOfTrial


def nothing(*_: int) -> None:
    """The controller is there, and wants no notes."""


def perform(made: Generator, load: float, duration: float, check: Callable[[], None] = nothing, **more: Any) -> Answer:
    """Performs a trial; `more` are other fields of its plan."""
    return made.run(Plan(((load, duration),), **more), check, nothing)


def latency(made: Generator, load: float, duration: float, names: Sequence[str]) -> ReadAnswer:
    """Performs a trial that measures latency."""
    plan = Plan(((load, duration),), latency=True)
    return read_answer(asdict(made.run(plan, nothing, nothing)), names, plan)


def connect(made: Generator, load: float, count: int, exchange: ExchangeOfTrial) -> Answer:
    """Opens connections."""
    plan = Plan(((load, count / load),), exchange=Exchange(**asdict(exchange)), connections=count)
    return made.run(plan, nothing, nothing)


def hold(made: Generator, load: float) -> None:
    """Begins traffic that lasts until it is stopped."""
    made.hold(Plan(((load, None),)))
