# SPDX-License-Identifier: Apache-2.0
"""The methods that every generator has on the node, and how the agent makes one by its name."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Iterable, Mapping, Protocol

from .configuration import Configuration
from .frames_spec import DIRECTIONS, FramesSpec, TagPlace
from .pacing import BATCH
from .packets import Wire
from .plan import Answer, Control, Plan
from .protocol import AgentError, Message, unsupported


class Generator(Protocol):
    """Sends and counts test traffic. Each configuration gets a generator of its own, whose constructor takes the ports.

    Times are in seconds.

    The module that makes a generator has ``SENDS_BROADCASTS = True`` if the generator sends broadcast frames among a
    direction's frames.
    """

    def facts(self) -> Message:
        """Facts about the generator and its ports. Results state all of them but ``can``.

        ``can`` lists what it can do, by `lossratio_agent.core.plan.ABILITIES`: it gets no plan that needs more. Its
        ``integrity`` has ``checked`` and ``not_checked``, lists of properties of received frames, and ``in_trials``:
        whether they are checked in trials, or with latency frames only. ``way_out``, if there is one, says what helps
        against a refusal.
        """

    def run(self, plan: Plan, control: Control) -> Answer:
        """Performs a plan, and returns what it counted and observed.

        Counters are read when the traffic has stopped and its last frames have had the settle time to come back. If
        the plan ends early, the counters are checked at least every 50 ms, and `wait_for_held_frames` waits for frames
        that come back late. If the plan wants notes, `control` gets them now and then.

        Traffic without an end stops when `control` wants it, and by itself if nobody asks any more. If its losses are
        located, links to the ports may go down meanwhile, because the device under test may be reset.

        If the other end of a direction is elsewhere, which `facts` may say that it can have, the counters have the
        fields of the end that is here: what left, or what came back.

        A connection counts as received if all frames over it arrived, and the answers arrived at the address and port
        that opened it. The counters then have ``unanswered_frames``: frames that arrived but whose answer did not come
        back.

        Raises:
            AgentError: If the counters cannot be trusted; of kind ``unsupported`` if the generator cannot do this.
        """

    def close(self) -> None:
        """Stops all traffic at once, and releases the ports."""


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
        return {"in_trials": False, "checked": [], "not_checked": ["everything, because no check was requested"]}
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
            "Only sequence numbers show when frames are lost, but frames of this profile have no "
            "room for them. Use larger frames."
        )


def unknown_latency(name: str, resolution_us: float, error: str | None = None) -> Message:
    """The latency of a direction before anything is known about it; see `Answer`."""
    return {
        "direction": name,
        **dict.fromkeys(("sent_frames", "received_frames", "out_of_order_frames", "duplicate_frames"), 0),
        **dict.fromkeys(("least_us", "mean_us", "most_us", "jitter_us", "hdr")),
        "histogram": [],
        "resolution_us": resolution_us,
        "error": error,
    }


def counted_course(began: float, counters: Message) -> Message:
    """The ``course`` of a burst whose losses were only counted: see `Answer`.

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
            module = _own_package(name)
            if module is None or not hasattr(module, "make_generator"):
                raise unsupported(
                    f"The agent has no program for a generator {name!r}. If the generator comes from another package, "
                    "its class must name its program: see 'program' in docs/how-to/add-a-generator.md."
                )
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
            f"The generator {name} needs a Python module that is not installed: {error}. Install it on this node, "
            "or name another Python in the topology file.",
        ) from error

    return made


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
