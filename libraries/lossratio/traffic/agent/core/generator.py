"""The methods that every generator has on the node, and how the agent makes one by its name."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Callable, Mapping, Protocol, Sequence

from .configuration import Configuration
from .early_verdict import Watch
from .pacing import BATCH
from .packets import Wire
from .protocol import AgentError, Message

_OWN = ("afpacket", "trex", "xdp")


class Generator(Protocol):
    """Sends and counts test traffic. One is made for each configuration; its constructor takes the ports."""

    def facts(self) -> Message:
        """Facts about the generator and its ports, which results state.

        Its ``integrity`` has ``checked`` and ``not_checked``, lists of properties of received frames, and
        ``in_trials``: whether they are checked in trials, or with latency frames only.
        """

    def trial(self, load: float, duration: float, ramp: float, check: Callable[[], None]) -> list[Message]:
        """Performs a trial, and returns the counters of each direction.

        Counters are read when the traffic has stopped and its last frames have had the settle time to come back. Each
        direction's ``examination`` has the attributes of `lossratio.trials.Examination`, and is null where frames
        are counted only; ``received`` are all frames that came back, intact or not.

        Args:
            load: Frames per second in each direction.
            duration: Seconds of traffic.
            ramp: Seconds of growing traffic right before it, which is not counted; 0: it starts at once.
            check: To be called several times a second; an exception from it ends the trial.

        Raises:
            AgentError: If the counters cannot be trusted; of kind ``unsupported`` if the generator cannot do this.
        """

    def latency(self, load: float, duration: float, check: Callable[[], None]) -> Message:
        """Performs a trial in which some of the load's frames measure their latency.

        Returns:
            ``directions``, the counters of each direction as `trial` returns them, with all frames in them; and
            ``latency``, a list with an object for each direction: ``name``; ``sent``, ``received``, ``out_of_order``
            and ``duplicates`` of its latency frames; ``min_us``, ``average_us``, ``max_us``, ``jitter_us`` and
            ``resolution_us`` in microseconds; ``hdr``, an HdrHistogram of microseconds, compressed and in base64, or
            null; ``histogram``, a list of pairs of a lower edge in microseconds and a count, empty if there is an
            ``hdr``; ``error``, null, or why this direction's latency is not known (then the latencies are null). It may
            have ``middle_us``, the latency of the first frame that was sent after the middle of the stream and came
            back.

        Raises:
            AgentError: As `trial` does.
        """

    def start(self, load: float) -> None:
        """Begins traffic of a constant load, in frames per second in each direction, until `stop`."""

    def renew(self) -> None:
        """Renews the traffic that `start` began; called several times a second."""

    def stop(self, late_wait: float, check: Callable[[], None]) -> list[Message]:
        """Ends the traffic that `start` began, and returns the counters of each direction.

        Args:
            late_wait: Seconds to wait on after the settle time.
            check: To be called several times a second.

        Returns:
            The counters as `trial` returns them, and in each direction ``late``: frames that came back only in that
            wait.
        """

    def late(self, wait: float, check: Callable[[], None]) -> dict[str, int]:
        """Frames of the last trial that came back too late, by direction; the next trial does not count them again.

        Args:
            wait: Seconds to wait for them, after the settle time.
            check: To be called several times a second.
        """

    def close(self) -> None:
        """Stops all traffic at once, and releases the ports."""


class WatchingGenerator(Generator, Protocol):
    """A generator that watches its counters in a trial, and can end it early.

    The program of a generator need not be one: it has the method, or it has not.
    """

    def watched_trial(
        self, load: float, duration: float, ramp: float, watch: Watch, check: Callable[[], None]
    ) -> Message:
        """Performs a trial as `trial` does, and looks at its counters every 50 ms at least.

        As soon as `lossratio.traffic.agent.core.early_verdict.is_certain`, the traffic ends on all ports, if it should.

        Args:
            load: Frames per second in each direction.
            duration: Seconds of traffic.
            ramp: As for `trial`.
            watch: What to look for.
            check: To be called several times a second; an exception from it ends the trial.

        Returns:
            ``directions``, the counters as `trial` returns them. If the trial ended early, ``intended`` is of the whole
            duration all the same, and ``unsent`` are only frames that were due until then. ``certain_after``: seconds
            of traffic until its loss was certain to be above the limit; null: it never was. ``ended``: whether it
            ended then. ``most_missing``: for each direction the most frames that were on their way, or lost, when
            somebody looked.

        Raises:
            AgentError: As `trial` does.
        """


class TimedGenerator(Generator, Protocol):
    """A generator that sends bursts and schedules, and locates losses in time.

    The program of a generator need not be one: it has the methods, or it has not.
    """

    def schedule(
        self, steps: Sequence[tuple[float, float]], is_burst: bool, check: Callable[[], None]
    ) -> list[Message]:
        """Performs a trial of steps that follow each other without a gap, or a burst.

        Args:
            steps: The load of each step in frames per second, and its duration in seconds.
            is_burst: Whether it is one step of which every frame must leave, however late. Its losses are counted only.
            check: To be called several times a second; an exception from it ends the trial.

        Returns:
            The counters as `trial` returns them, and in each direction its ``course``: ``began``, seconds of this
            node's clock that cannot be set (`time.monotonic`) when the first frame left, all other times are seconds
            after that; ``resolution``, seconds by which send times may be wrong; ``rate``, frames per second from the
            first frame to the last, or null; ``steps``, an object for each with ``start``, ``elapsed``, ``intended``,
            ``sent``, ``lost`` (null: counted only) and ``last_lost``, the send time of its last lost frame or null;
            ``outages``, the longest runs of lost frames: lists of the number of frames, the send times of the first
            and the last one, and the times of receipt before and after them, or null; ``outage_count`` of all of them;
            ``silences``, the longest times without any frame: lists of the times of receipt before and after.

        Raises:
            AgentError: As `trial` does; of kind ``unsupported`` if this generator cannot do this.
        """

    def start_watched(self, load: float) -> None:
        """Begins traffic as `start` does; `stop` then returns a ``course`` in each direction.

        Links to the ports may go down meanwhile, as the device under test may be reset.
        """


def counted_course(began: float, counters: Message) -> Message:
    """The ``course`` of a burst whose losses were counted only: see `TimedGenerator.schedule`.

    Args:
        began: When its first frame left, in seconds of this node's clock that cannot be set.
        counters: Its counters, with ``last``: seconds from then until the last frame left.
    """
    sent, last = counters["sent"], counters["last"]
    step = {name: counters[name] for name in ("elapsed", "intended", "sent")}
    return {
        "began": began,
        "resolution": BATCH,
        "rate": (sent - 1) / last if sent > 1 and last > 0 else None,
        "steps": [{**step, "start": 0.0, "lost": None, "last_lost": None}],
        "outages": [],
        "outage_count": 0,
        "silences": [],
    }


def make_generator(
    name: str, configuration: Configuration, options: Message, program: Mapping[str, str] | None = None
) -> Generator:
    """Makes a generator by its name.

    Args:
        name: Its name.
        configuration: Ports, directions and frames, the same for every generator.
        options: Options of this generator in particular.
        program: Sources of its program, by the names of its modules; None: the agent has the program.

    Raises:
        AgentError: If there is none of that name, or it cannot be had on this node, or its ports cannot.
    """
    if name != "afpacket" and any(direction.broadcast_share for direction in configuration.directions):
        raise AgentError(
            "unsupported",
            f"The generator {name} cannot send broadcast frames among those of a direction. Use 'kind: afpacket'.",
        )
    if program is not None:
        return _added(name, configuration, options, program)
    if name not in _OWN:
        raise AgentError("unsupported", f"There is no generator {name!r}; there are {', '.join(_OWN)}.")
    try:
        own = import_module(f"..{name}", __package__)
    except ImportError as error:
        raise AgentError(
            "missing_module",
            f"The generator {name} needs a Python module that is not there: {error}. Install it on this node "
            "(Debian: apt install python3-numpy), or name another Python in the topology file.",
        ) from error
    made: Generator = own.make_generator(configuration, options)
    return made


def open_cards(name: str, options: Message) -> Wire:
    """Opens the cards that a generator has taken from the kernel, for single frames.

    Args:
        name: The generator's name.
        options: Its options.

    Raises:
        AgentError: If they cannot be had, e.g. as its server is gone.
    """
    wire: Wire = import_module(f"..{name}", __package__).open_wire(options)
    return wire


def program_module(kind: str) -> str:
    """Name of the module or package that an added generator's program is on the node."""
    return f"lossratio_agent_{kind}"


def _added(name: str, configuration: Configuration, options: Message, program: Mapping[str, str]) -> Generator:
    # The start of the agent imports what it was sent from there: `lossratio.nodes.program`.
    vars(sys.modules["__main__"])["SOURCES"].update(program)
    try:
        made: Generator = import_module(program_module(name)).make_generator(configuration, options)
    except AgentError:
        raise
    # Somebody else's code may raise anything.
    except Exception as error:
        raise AgentError(
            "program", f"The program of generator {name} cannot be used on this node: {type(error).__name__}: {error}."
        ) from error
    return made
