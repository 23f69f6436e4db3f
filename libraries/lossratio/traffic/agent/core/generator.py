# SPDX-License-Identifier: Apache-2.0
"""The methods that every generator has on the node, and how the agent makes one by its name."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Callable, Iterable, Mapping, Protocol, Sequence

from .configuration import Configuration
from .early_verdict import Watch
from .frames_spec import DIRECTIONS, FramesSpec, TagPlace
from .meeting import Meeting
from .pacing import BATCH
from .packets import Wire
from .protocol import AgentError, Check, Message, unsupported


class Generator(Protocol):
    """Sends and counts test traffic. Each configuration gets a generator of its own, whose constructor takes the ports.

    Loads are in frames per second in each direction, and times in seconds. An exception from `check` ends the traffic.

    The module that makes a generator has ``SENDS_BROADCASTS = True`` if the generator sends broadcast frames among a
    direction's frames.
    """

    def facts(self) -> Message:
        """Facts about the generator and its ports, which results state.

        Its ``integrity`` has ``checked`` and ``not_checked``, lists of properties of received frames, and
        ``in_trials``: whether they are checked in trials, or with latency frames only.
        """

    def trial(self, load: float, duration: float, ramp: float, check: Check) -> list[Message]:
        """Performs a trial, and returns the counters of each direction: fields of `lossratio.trials.DirectionCounters`.

        Counters are read when the traffic has stopped and its last frames have had the settle time to come back. Each
        direction also has ``examination``: the fields of `lossratio.trials.Examination`, or null if frames are only
        counted; ``received_frames`` are all frames that came back, intact or not.

        The ramp is growing traffic right before the duration, which is not counted; 0: the trial starts at once.

        Raises:
            AgentError: If the counters cannot be trusted; of kind ``unsupported`` if the generator cannot do this.
        """

    def latency(self, load: float, duration: float, check: Check) -> Message:
        """Performs a trial in which some of the load's frames measure their latency; raises errors as `trial` does.

        The answer has ``directions``, the counters of each direction as `trial` returns them, with all frames in them;
        and ``latency``, the fields of `lossratio.trials.LatencyCounters` for each direction.
        """

    def start(self, load: float) -> None:
        """Begins traffic of a constant load until `stop`."""

    def renew(self) -> None:
        """Renews the traffic that `start` began; called several times a second."""

    def stop(self, late_wait: float, check: Check) -> list[Message]:
        """Ends the traffic that `start` began, and keeps waiting for some seconds after the settle time.

        The counters are as `trial` returns them, with ``late`` in each direction: frames that came back only in that
        wait.
        """

    def late(self, wait: float, check: Check) -> dict[str, int]:
        """Frames of the last trial that came back too late, by direction; the next trial does not count them again.

        It waits for them for some seconds, after the settle time.
        """

    def close(self) -> None:
        """Stops all traffic at once, and releases the ports."""


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


class DistinguishingGenerator(Protocol):
    """A generator that counts the late frames of several trials separately.

    A generator's program need not inherit from this class: it only needs the method. If it has the method,
    `Generator.trial` also answers with ``earlier_late_frames``: late frames of the traffic before the previous traffic,
    of the traffic before that, and so on.
    """

    def late_of_earlier(self) -> dict[str, list[int]]:
        """Late frames of earlier traffic by direction, newest traffic first, without the latest traffic.

        Frames that were already in counters or in an earlier answer are not counted again.
        """


class ConnectingGenerator(Protocol):
    """A generator that opens connections, and answers over them (RFC 9693)."""

    def connect(self, load: float, count: int, exchange: Exchange, check: Check) -> list[Message]:
        """Opens connections in its only direction, and answers over each connection that arrives.

        A connection counts as received if all frames over it arrived, and the answers arrived at the address and port
        that opened it. TCP connections have a handshake. The load is the number of connections opened per second, until
        there are `count`.

        The counters are as `Generator.trial` returns them, with ``unanswered_frames``: frames that arrived but whose
        answer did not come back.
        """


class WatchingGenerator(Generator, Protocol):
    """A generator that watches its counters in a trial, and can end it early.

    A generator's program need not inherit from this class: it only needs the method.
    """

    def watched_trial(self, load: float, duration: float, ramp: float, watch: Watch, check: Check) -> Message:
        """Performs a trial as `trial` does, with its errors, and checks its counters at least every 50 ms.

        As soon as `lossratio.traffic.agent.core.early_verdict.is_certain`, the traffic ends on all ports, if requested.
        Then `wait_for_held_frames` waits for frames that come back late.

        The answer has ``directions``, the counters as `trial` returns them. Even if the trial ended early,
        ``intended_frames`` covers the whole duration, and ``unsent_frames`` are only frames that were due until then.
        ``certain_after``: seconds of traffic until its loss was certain to be above the limit; null: it never was.
        ``ended``: whether it then ended. ``most_missing``: for each direction, the maximum number of frames that were
        in flight or lost at a check.
        """


class TimedGenerator(Generator, Protocol):
    """A generator that sends bursts and schedules, and locates losses in time.

    A generator's program need not inherit from this class: it only needs the methods.
    """

    def schedule(self, steps: Sequence[tuple[float, float]], is_burst: bool, check: Check) -> list[Message]:
        """Performs a trial of steps, each a load and a duration, that follow each other without a gap; or a burst.

        A burst is one step of which every frame must leave, however late. Its losses are only counted.

        The counters are those of `trial`, and each direction also has its ``course``. A course has the fields of the
        controller's `lossratio.trials.Timeline`, except ``name`` and ``clock_error``. Its ``began`` is in seconds of
        this node's `time.monotonic`. ``lost`` of a step is null if losses are only counted.

        The errors are those of `trial`.
        """

    def start_watched(self, load: float) -> None:
        """Begins traffic as `start` does; `stop` then returns a ``course`` in each direction.

        Links to the ports may go down meanwhile, because the device under test may be reset.
        """


class MeetingGenerator(WatchingGenerator, Protocol):
    """A generator that may have one end of a direction, while the agent of another node has the other end.

    A generator's program need not inherit from this class: it only needs the method. If the other end of a direction is
    elsewhere, its counters have the fields of the end that is here: what left, or what came back.
    """

    def join(self, meeting: Meeting, first_tag: int) -> None:
        """Meets the other agent in all traffic from now on; both begin with the same tag."""


class AbleGenerator(ConnectingGenerator, WatchingGenerator, TimedGenerator, Protocol):
    """A generator that has all of these methods."""


class Tags:
    """The tags of a generator's trials. Their lowest bits distinguish directions, or streams."""

    def __init__(self, first: int | None = None) -> None:
        # A random beginning, so that no other agent's frames are mistaken for this one's.
        self.last = (int.from_bytes(os.urandom(4), "big") if first is None else first) & ~DIRECTIONS

    def next(self) -> int:
        """The tag of the first direction's frames; the others follow."""
        self.last = (self.last + DIRECTIONS + 1) & 0xFFFFFFFF
        return self.last


def late_and_copies(arrived: int, missing: int | None) -> tuple[int, int, int | None]:
    """How many of the frames that came back after a trial are late or further copies, and how many are still missing.

    No more frames can be late than were missing. If the trial failed, the number of missing frames is not known (None).
    """
    if missing is None:
        return arrived, 0, None
    late = min(arrived, missing)
    return late, arrived - late, missing - late


def integrity_of(configuration: Configuration, **more: Any) -> Message:
    """The ``integrity`` of a generator that examines the frames of trials; see `Generator.facts`.

    There are `more` facts if frames have sequence numbers.
    """
    if not configuration.examines:
        return {"in_trials": False, "checked": [], "not_checked": ["anything: this was not requested"]}
    of_all = ["length", "destination MAC address", "direction"]
    of_numbered = ["contents", "IP addresses", "duplicates", "order"]
    if all(direction.frames.is_numbered for direction in configuration.directions):
        return {"in_trials": True, "checked": [*of_all, *of_numbered], "not_checked": [], **more}
    left_out = [f"{checked} (no room for sequence numbers)" for checked in of_numbered]
    return {"in_trials": True, "checked": of_all, "not_checked": left_out}


def check_numbered(frames: Iterable[FramesSpec | TagPlace]) -> None:
    """Makes sure that losses among frames can be located in time, by their numbers."""
    if not all(each.is_numbered for each in frames):
        raise unsupported(
            "Losses can only be located in time by sequence numbers, but frames of this profile have no room for "
            "them. Use larger frames."
        )


def unknown_latency(name: str, resolution_us: float, error: str | None = None) -> Message:
    """The latency of a direction before anything is known about it; see `Generator.latency`."""
    return {
        "direction": name,
        **dict.fromkeys(("sent_frames", "received_frames", "out_of_order_frames", "duplicate_frames"), 0),
        **dict.fromkeys(("least_us", "mean_us", "most_us", "jitter_us", "hdr")),
        "histogram": [],
        "resolution_us": resolution_us,
        "error": error,
    }


def counted_course(began: float, counters: Message) -> Message:
    """The ``course`` of a burst whose losses were only counted: see `TimedGenerator.schedule`.

    Its counters have ``last``: seconds from its first frame (`began`) to its last one.
    """
    sent, last = counters["sent_frames"], counters["last"]
    step = {"elapsed": counters["elapsed_s"], "intended": counters["intended_frames"], "sent": sent}
    return {
        "began": began,
        "resolution": BATCH,
        "rate": (sent - 1) / last if sent > 1 and last > 0 else None,
        "steps": [{**step, "start": 0.0, "lost": None, "last_lost": None}],
    }


def make_generator(
    name: str, configuration: Configuration, options: Message, program: Mapping[str, str] | None = None
) -> Generator:
    """Makes a generator by its name, with its options.

    `program` has the sources of its program, by the names of its modules; None: the agent already has it.

    Raises:
        AgentError: If it, or its ports, cannot be used on this node.
    """
    try:
        if program is None:
            module = _own_program(name)
        else:
            # The code that starts the agent imports its modules from these sources: `lossratio.nodes.program`.
            vars(sys.modules["__main__"])["SOURCES"].update(program)
            module = import_module(program_module(name))

        has_broadcasts = any(direction.broadcast_share for direction in configuration.directions)
        if has_broadcasts and not getattr(module, "SENDS_BROADCASTS", False):
            raise unsupported(f"The generator {name} cannot mix broadcast frames with others. Use 'kind: afpacket'.")
        made: Generator = module.make_generator(configuration, options)
    except AgentError:
        raise
    # Other people's code may raise anything.
    except Exception as error:
        if program is not None:
            text = f"The program of generator {name} cannot be used on this node: {type(error).__name__}: {error}."
            raise AgentError("program", text) from error
        if not isinstance(error, ImportError):
            raise
        raise AgentError(
            "missing_module",
            f"The generator {name} needs a Python module that is not installed: {error}. Install it on this node "
            "(Debian: apt install python3-numpy), or name another Python in the topology file.",
        ) from error

    return made


def _own_program(name: str) -> ModuleType:
    """The agent's package with the program of a generator; raises AgentError if none has its name."""
    package = _own_package(name)
    if package is None or not hasattr(package, "make_generator"):
        raise unsupported(
            f"The agent has no program for a generator {name!r}. The class of a generator of another package "
            "names its own program: see 'program' in docs/how-to/add-a-generator.md."
        )
    return package


def _own_package(name: str) -> ModuleType | None:
    """A package of the agent; None: it has none with this name.

    Raises:
        ImportError: If the package needs a missing module.
    """
    spec = find_spec(f"..{name}", __package__) if name.isidentifier() else None
    is_package = spec is not None and spec.submodule_search_locations is not None
    if is_package:
        return import_module(f"..{name}", __package__)
    return None


def made_with_keywords(kind: Callable[..., Generator]) -> Callable[[Configuration, Message], Generator]:
    """A ``make_generator`` whose options are the keyword arguments of a class of generators."""
    return lambda configuration, options: kind(configuration, **options)


def open_cards(name: str, options: Message) -> Wire:
    """Opens the cards that a generator has taken from the kernel, for single frames; raises AgentError if it cannot."""
    opened = getattr(_own_package(name), "open_wire", None)
    if opened is None:
        raise unsupported(f"The generator {name!r} has no cards.")
    wire: Wire = opened(options)
    return wire


def program_module(kind: str) -> str:
    """Name of the module or package of an added generator's program on the node."""
    return f"lossratio_agent_{kind}"
