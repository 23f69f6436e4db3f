# SPDX-License-Identifier: Apache-2.0
"""What both sides know of traffic: the plan of what is sent and observed, and the answer. Sent as JSON, by `asdict`."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import Optional, Sequence, Tuple

from .protocol import AgentError, Message

RAMP_STEPS = 20
"""Steps in which a ramp grows to the load."""
Step = Tuple[float, Optional[float]]
"""Frames or connections per second in each direction, and seconds; None: it lasts until it is stopped."""
FRAMES, CONNECTIONS = "frames", "connections"
LATENCY, VERDICTS = "latency", "verdicts"
BURSTS, SCHEDULES, PLACES = "bursts", "schedules", "places"
HOLDS = "holds"
TWO_NODES = "two nodes"
ABILITIES = {
    FRAMES: "send frames while it opens connections",
    CONNECTIONS: "open connections",
    LATENCY: "measure latency",
    VERDICTS: "watch the counters of a running trial",
    BURSTS: "send bursts",
    SCHEDULES: "send schedules, and tell when they lose frames",
    PLACES: "tell when running traffic loses frames",
    HOLDS: "send until it is stopped",
    TWO_NODES: "have its ends on two nodes",
}
"""What plans need of generators, with the words for a generator that cannot do it."""


@dataclass(frozen=True)
class Exchange:
    """Traffic over each connection that frames have opened: `lossratio.trials.Exchange`, as this program reads it."""

    answer_ratio: float
    data_frames: int
    closing: str | None
    established: bool
    is_complete: bool
    answers: str

    def __post_init__(self) -> None:
        if not 0.0 < self.answer_ratio < math.inf:
            raise ValueError(f"the answer_ratio must be a positive, finite number, not {self.answer_ratio!r}")
        if self.data_frames < 0:
            raise ValueError(f"data_frames must be 0 or more, not {self.data_frames!r}")
        if self.closing not in (None, "fin", "rst"):
            raise ValueError(f"closing must be 'fin', 'rst' or None, not {self.closing!r}")
        if self.answers not in ("opened", "again", "unasked"):
            raise ValueError(f"answers must be 'opened', 'again' or 'unasked', not {self.answers!r}")


@dataclass(frozen=True)
class Plan:
    """What is sent, for how long, until what, and what is observed besides the counters."""

    steps: tuple[Step, ...]
    """The loads, which follow each other without a gap. The direction with the largest share has the whole load.
    Without any, late frames of earlier traffic are counted."""
    wait: float = 0.0
    """Seconds that pass before that."""
    ramp: float = 0.0
    """Seconds of growing traffic right before them, which is not counted."""
    is_burst: bool = False
    """Whether every frame must leave, however late."""
    exchange: Exchange | None = None
    """What follows over each connection that a frame of the first step opens; None: frames open none."""
    connections: int = 0
    """How many are opened."""
    above: float | None = None
    """The loss ratio above which the verdict on the whole trial is certain, so that it ends; None: it never is."""
    ends: bool = True
    """Whether it then ends. Otherwise, only the time is noted."""
    in_flight: float = 0.0
    """Seconds of traffic that may be in flight, and do not count as lost yet."""
    notes: bool = False
    """Whether the counters are also reported while the trial runs."""
    latency: bool = False
    """Whether some of its frames measure their latency."""
    locates: bool = False
    """Whether losses are located in time, so that each direction's answer has a ``course``."""

    def __post_init__(self) -> None:
        for number, (load, duration) in enumerate(self.steps, 1):
            check_positive("load", load)
            if duration is not None or number < len(self.steps):
                check_positive("duration", duration)
        for name in ("wait", "ramp", "in_flight", "above"):
            value = getattr(self, name)
            if value is not None and (value != 0 or isinstance(value, bool)):
                check_positive(name, value)
        if self.connections < 0:
            raise ValueError(f"the number of connections must be 0 or more, not {self.connections}")
        if sum((self.exchange is not None, self.is_watched, self.latency, self.locates)) > 1:
            raise ValueError(
                "it can observe only one of these at a time: connections, a running trial, latency, or places of losses"
            )
        if self.is_endless and (self.is_burst or self.is_watched or self.latency or self.exchange is not None):
            raise ValueError("a plan without an end cannot be a burst, and can observe nothing but places of losses")

    @property
    def load(self) -> float:
        """The largest load, in frames or connections per second."""
        return max((load for load, _ in self.steps), default=0.0)

    @property
    def ramp_steps(self) -> list[tuple[float, float]]:
        """The loads of the ramp, which grow from nothing to the first step's load, and the seconds of each."""
        if not self.ramp:
            return []
        load, _ = self.steps[0]
        return [(load * part / (RAMP_STEPS + 1), self.ramp / RAMP_STEPS) for part in range(1, RAMP_STEPS + 1)]

    @property
    def duration(self) -> float:
        """Seconds of the steps; infinite if there is no end."""
        return sum(math.inf if duration is None else duration for _, duration in self.steps)

    @property
    def is_endless(self) -> bool:
        """Whether it lasts until it is stopped."""
        return self.duration == math.inf

    @property
    def is_watched(self) -> bool:
        """Whether the counters are read while the trial runs."""
        return self.notes or self.above is not None

    @property
    def notes_places(self) -> bool:
        """Whether lost frames are located in time; those of a burst are only counted."""
        return self.locates and not self.is_burst

    @property
    def may_note(self) -> bool:
        """Whether its counters can also be reported while it runs."""
        return bool(self.steps) and not (self.latency or self.locates or self.exchange)

    @property
    def needs(self) -> Sequence[str]:
        """What a generator must be able to do: some of the `ABILITIES`."""
        if not self.steps:
            return ()
        if self.exchange is not None:
            return (CONNECTIONS,)
        if self.is_burst:
            timed = BURSTS
        else:
            timed = PLACES if self.is_endless else SCHEDULES
        wanted = (
            (LATENCY, self.latency),
            (VERDICTS, self.above is not None),
            (timed, self.locates or self.is_burst),
            (HOLDS, self.is_endless),
        )
        return (FRAMES, *(ability for ability, is_wanted in wanted if is_wanted))


def check_positive(name: str, value: object) -> None:
    """Makes sure that a field is a positive, finite number.

    Raises:
        ValueError: If it is not.
    """
    # A whole number of JSON may be larger than any float.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= sys.float_info.max:
        raise ValueError(f"the {name} must be a positive, finite number, not {value!r}")


class Control:
    """The controller, for a generator that performs a plan. This one is always there, and wants to know nothing."""

    def check(self) -> None:
        """Raises an exception, which ends the traffic, if the controller is gone; called several times a second."""

    def note(self, sent: int, received: int) -> None:
        """Tells it the frames that a running trial has sent and received so far, over all directions."""

    def has_begun(self) -> None:
        """Tells it that traffic without an end flows."""

    def wants_end(self) -> bool:
        """Whether it stops traffic without an end; called several times a second after `has_begun`."""
        return True

    def exchange(self, said: Message) -> Message:
        """Sends a message to the agent at the other end of the path; returns that agent's message.

        Raises:
            AgentError: If there is none, or it cannot continue.
        """
        raise AgentError("other_end", "The agent at the other end of the path cannot continue. Measure again.")


@dataclass(frozen=True)
class Answer:
    """What a generator counted and observed; null: it was not wanted, or the generator cannot."""

    directions: list[Message]
    """For each direction, the fields of `lossratio.trials.DirectionCounters`, and

    - ``examination``: the fields of `lossratio.trials.Examination`, or null if frames are only counted;
      ``received_frames`` are all frames that came back, intact or not.
    - ``course``, if losses were to be located: the fields of `lossratio.trials.Timeline`, except ``name`` and
      ``clock_error``. Its ``began`` is in seconds of this node's `time.monotonic`, and ``lost`` of a step is null if
      losses were only counted.
    """
    latency: list[Message] | None = None
    """For each direction, the fields of `lossratio.trials.LatencyCounters`."""
    certain_after: float | None = None
    """Seconds of traffic until its loss was certain to be above the limit; None: it never was."""
    ended: bool = False
    """Whether the traffic then ended. ``intended_frames`` covers the whole duration nevertheless, and ``unsent_frames``
    are only frames that were due until then."""
    most_missing: dict[str, int] = field(default_factory=dict)
    """For each direction, the maximum number of frames that were in flight or lost at a check of a watched trial."""
    late: dict[str, list[int]] | None = None
    """For each direction, if the plan has no steps: how many frames of the latest traffic came back too late, and of
    earlier traffic after it. Frames that were already in counters or in an earlier answer are not counted again. A
    generator that distinguishes earlier traffic also has ``earlier_late_frames`` in its counters."""
