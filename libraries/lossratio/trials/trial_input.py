"""What a measurer is asked for: a trial's input, and the exchanges of stateful traffic."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from lossratio.errors import SearchError
from lossratio.trials.record import Observed
from lossratio.trials.timeline import Step, check_traffic
from lossratio.values import NotNegative, checked, is_number


def sendable(load: float, step: float) -> float:
    """The nearest load that a generator can send.

    Args:
        load: Frames per second.
        step: The generator sends multiples of this load, in frames per second; 0: any load.
    """
    if step:
        return max(1, round(load / step)) * step
    return load


_ANSWERS = ("opened", "again", "unasked")


@dataclass(frozen=True)
class Exchange:
    """The traffic over each connection that a frame has opened: answers, data, and an end.

    Raises:
        SearchError: If a value makes no sense.
    """

    answer_ratio: float = 1.0
    """Rate of all frames but the first ones, as a multiple of the load (RFC 9693, alpha)."""
    data_frames: int = 0
    """Number of further frames in each direction, one after the other."""
    closing: str | None = None
    """How TCP connections end: ``fin`` or ``rst``; None: they stay open."""
    established: bool = False
    """Whether devices already have all of these connections and keep them, so that their throughput is measured."""
    is_complete: bool = False
    """Whether all are opened and answered, however late, because their number matters, and not their rate."""
    answers: str = "opened"
    """What is answered: connections that are opened first; or none are opened, and the first answer is sent ``again``
    over the connections of the previous exchange, or comes ``unasked``, from ports to which no connection was
    opened."""

    def __post_init__(self) -> None:
        if not is_number(self.answer_ratio) or not 0.0 < self.answer_ratio < math.inf:
            raise SearchError(
                f"The answer_ratio must be a positive, finite number, not {self.answer_ratio!r}."
            )
        if type(self.data_frames) is not int or self.data_frames < 0:
            raise SearchError(
                f"data_frames must be a whole number, at least 0, not {self.data_frames!r}."
            )
        if self.closing not in (None, "fin", "rst"):
            raise SearchError(f"closing must be 'fin', 'rst' or None, not {self.closing!r}.")

        if type(self.established) is not bool or type(self.is_complete) is not bool:
            raise SearchError(
                "established and is_complete must be True or False, not "
                f"{self.established!r} or {self.is_complete!r}."
            )
        if self.answers not in _ANSWERS:
            raise SearchError(
                f"answers must be 'opened', 'again' or 'unasked', not {self.answers!r}."
            )

    @property
    def end_of_tcp(self) -> Literal["established", "time_wait", "close"]:
        """The state of TCP connections afterwards, as the kernel names it."""
        if self.closing is None:
            return "established"
        if self.closing == "fin":
            return "time_wait"
        return "close"

    def passes(self, *, is_tcp: bool) -> int:
        """How often a frame goes over each connection."""
        fin = 4 - bool(self.data_frames)
        ending = {None: 0, "rst": 1, "fin": fin}[self.closing] if is_tcp else 0
        return 2 + is_tcp + 2 * self.data_frames + ending

    def rounds(self, *, is_tcp: bool) -> float:
        """The time that all frames together take, as a multiple of the time for the first frames."""
        return 1.0 + (self.passes(is_tcp=is_tcp) - 1) / self.answer_ratio


@checked(SearchError)
@dataclass(frozen=True)
class TrialInput(Observed):
    """One trial that a controller requests (RFC 9971, RFC 2544 section 23).

    A trial is one load for a duration, unless it is a `burst` or a `schedule`. These two have timelines in their
    output.

    Raises:
        SearchError: If a value is not a positive, finite number, `certain_above` is not a ratio below 1, or they
            contradict each other.
    """

    duration: float
    """Intended duration of the traffic, in seconds."""
    load: float
    """Intended constant load per transmitting interface, in frames per second. In a schedule, the mean load."""
    frames: int | None = None
    """Frames of a burst per transmitting interface; all of them are sent. None: the trial is not a burst."""
    steps: tuple[Step, ...] = ()
    """The steps of a schedule, which follow each other without a gap. Empty: the trial is not a schedule."""
    certain_above: float | None = None
    """The trial may end as soon as its loss ratio is certain to be above this one (an early verdict); None: it takes
    its whole duration. A measurer may ignore it."""
    rest: NotNegative = 0.0
    """Minimum seconds without traffic before the trial, in addition to the testbed's; they are part of the trial's
    time."""
    exchange: Exchange | None = None
    """If given, each frame opens a connection, over which this exchange follows; None: frames are not answered."""
    keeps_unsent: bool = False
    """Whether frames that the generator leaves unsent are no reason to repeat the trial, because its answer does not
    depend on a few frames. They are counted in any case."""

    def __post_init__(self) -> None:
        check_traffic("A trial", self.duration, self.load)
        if self.certain_above is not None and not (
            0.0 <= self.certain_above < 1.0 and not self.has_timelines
        ):
            raise SearchError(
                f"certain_above must be at least 0 and below 1, not {self.certain_above!r}. Leave it out for a burst "
                "or a schedule."
            )

        sums = [] if self.frames is None else [float(self.frames)]
        if self.steps:
            sums.append(sum(step.duration * step.load for step in self.steps))
        if len(sums) == 2 or any(
            not math.isclose(total, self.duration * self.load, rel_tol=1e-9) for total in sums
        ):
            raise SearchError(
                f"A trial of {self.duration:.10g} s at {self.load:.10g} frames/s cannot have frames={self.frames} and "
                f"steps={self.steps}. Use TrialInput.burst or TrialInput.schedule, which calculate the rest."
            )

    @classmethod
    @checked(SearchError)
    def burst(cls, frames: int, load: float) -> "TrialInput":
        """Frames of a burst at a load (RFC 9004), each per transmitting interface.

        Args:
            frames: Number of frames.
            load: Frames per second.

        Raises:
            SearchError: If one of them is not positive.
        """
        if frames < 1:
            raise SearchError(f"A burst needs at least one frame, not {frames}.")
        return cls(frames / load if load > 0 else math.nan, load, frames=frames)

    @classmethod
    @checked(SearchError)
    def schedule(cls, *steps: Step) -> "TrialInput":
        """Steps of load that follow each other without a gap.

        Raises:
            SearchError: If there are none.
        """
        if not steps:
            raise SearchError("A schedule needs at least one step.")
        duration = sum(step.duration for step in steps)
        return cls(
            duration, sum(step.duration * step.load for step in steps) / duration, steps=steps
        )

    @checked(SearchError)
    def sendable(self, step: NotNegative) -> "TrialInput":
        """The same trial with the nearest loads that a generator can send; see the function `sendable`.

        Args:
            step: The generator sends multiples of this load, in frames per second; 0: any load.

        Raises:
            SearchError: If the step is not a number, or is negative.
        """
        if not step:
            return self
        if self.steps:
            return TrialInput.schedule(
                *(replace(each, load=sendable(each.load, step)) for each in self.steps)
            )
        load = sendable(self.load, step)
        return replace(
            self, load=load, duration=self.duration if self.frames is None else self.frames / load
        )

    @property
    def parts(self) -> tuple[Step, ...]:
        """The steps of a schedule; any other trial is a single step."""
        return self.steps or (Step(self.duration, self.load),)

    @property
    def has_timelines(self) -> bool:
        """Whether the trial is a burst or a schedule, whose losses are located in time."""
        return self.frames is not None or bool(self.steps)
