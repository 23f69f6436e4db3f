"""What the agent asks of a generator, and how it gets one by name."""

from __future__ import annotations

from typing import Callable, Protocol

from .configuration import Configuration
from .protocol import AgentError, Message


class Generator(Protocol):
    """Sends and counts test traffic. One is made for each configuration; its constructor takes the ports."""

    def facts(self) -> Message:
        """What the controller may want to tell about the generator and its ports."""

    def trial(self, load: float, duration: float, check: Callable[[], None]) -> list[Message]:
        """Performs a trial, and returns the counters of each direction.

        Args:
            load: Frames per second in each direction.
            duration: Seconds of traffic.
            check: To be called every now and then; what it raises ends the trial.

        Raises:
            AgentError: If the counters would not be worth anything.
        """

    def start(self, load: float) -> None:
        """Begins traffic of a constant load, in frames per second in each direction, until `stop`."""

    def stop(self, check: Callable[[], None]) -> list[Message]:
        """Ends the traffic that `start` began, and returns the counters of each direction."""

    def close(self) -> None:
        """Stops all traffic at once, and releases the ports."""


def make_generator(name: str, configuration: Configuration) -> Generator:
    """Makes a generator by its name.

    Raises:
        AgentError: If there is none of that name, or it cannot be had on this node, or its ports cannot.
    """
    makers: dict[str, Callable[[Configuration], Generator]] = {"afpacket": _afpacket}
    if name not in makers:
        raise AgentError("unsupported", f"There is no generator {name!r}; there are {', '.join(makers)}.")
    return makers[name](configuration)


def _afpacket(configuration: Configuration) -> Generator:
    try:
        from .afpacket import AfPacketGenerator
    except ImportError as error:
        raise AgentError(
            "missing_module",
            f"The generator afpacket needs a Python module that is not there: {error}. "
            "Install it on this node (Debian: apt install python3-numpy), or name another Python in the topology file.",
        ) from error
    return AfPacketGenerator(configuration)
