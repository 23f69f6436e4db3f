"""Plans that a generator of the agent performs without a controller, and its answers as the library reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from lossratio.agent.core.generator import Generator
from lossratio.agent.core.plan import Answer, Control, Exchange, Plan
from lossratio.traffic.answers import Answer as ReadAnswer, read_answer
from lossratio.trials import Exchange as ExchangeOfTrial


class Controller(Control):
    """A controller that does what a test gives it."""

    def __init__(
        self,
        check: Callable[[], None] | None = None,
        note: Callable[[int, int], None] | None = None,
        while_held: Iterable[object] = (),
    ) -> None:
        self.check = check or super().check
        self.note = note or super().note
        self._while_held = iter(while_held)

    def wants_end(self) -> bool:
        return next(self._while_held, self) is self


def perform(
    made: Generator, load: float, duration: float, check: Callable[[], None] | None = None, **more: Any
) -> Answer:
    """Performs a trial; `more` are other fields of its plan."""
    return made.run(Plan(((load, duration),), **more), Controller(check))


def latency(made: Generator, load: float, duration: float, names: Sequence[str]) -> ReadAnswer:
    """Performs a trial that measures latency."""
    plan = Plan(((load, duration),), latency=True)
    return read_answer(asdict(made.run(plan, Controller())), names, plan)


def connect(made: Generator, load: float, count: int, exchange: ExchangeOfTrial) -> Answer:
    """Opens connections."""
    plan = Plan(((load, count / load),), exchange=Exchange(**asdict(exchange)), connections=count)
    return made.run(plan, Controller())


def hold(made: Generator, load: float, while_held: Iterable[object] = ()) -> Answer:
    """Performs traffic that lasts until the iterator has ended: it is asked now and then."""
    return made.run(Plan(((load, None),)), Controller(while_held=while_held))


def late(made: Generator) -> dict[str, list[int]]:
    """Late frames since the last traffic."""
    answer = made.run(Plan(()), Controller())
    assert answer.late is not None
    return answer.late
