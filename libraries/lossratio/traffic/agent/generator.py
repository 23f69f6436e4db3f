"""What the agent asks of a generator, and how it gets one by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Mapping

from .protocol import AgentError, Message


@dataclass(frozen=True)
class Direction:
    """One direction of the traffic.

    Attributes:
        name: What the controller calls it, e.g. ``port0>port1``.
        transmit: Interface that its frames leave from.
        receive: Interface that they come back to.
        destination_mac: Destination MAC address of its frames; None: the receiving interface's own.
        frames: Description of its frames; see `lossratio.traffic.agent.frames.FramesSpec`.
    """

    name: str
    transmit: str
    receive: str
    destination_mac: str | None
    frames: Mapping[str, Any]


@dataclass(frozen=True)
class Configuration:
    """What a generator is made for.

    Attributes:
        ports: Its interfaces.
        directions: The directions that it transmits in.
        settle_time: Seconds to wait, after the traffic, for frames still in flight.
    """

    ports: tuple[str, ...]
    directions: tuple[Direction, ...]
    settle_time: float


class Generator:
    """Sends and counts test traffic. One is made for each configuration; its constructor takes the ports."""

    def facts(self) -> Message:
        """What the controller may want to tell about the generator and its ports."""
        raise NotImplementedError

    def trial(self, load: float, duration: float, check: Callable[[], None]) -> list[Message]:
        """Performs a trial, and returns the counters of each direction.

        Args:
            load: Frames per second in each direction.
            duration: Seconds of traffic.
            check: To be called every now and then; what it raises ends the trial.

        Raises:
            AgentError: If the counters would not be worth anything.
        """
        raise NotImplementedError

    def start(self, load: float) -> None:
        """Begins traffic of a constant load, in frames per second in each direction, until `stop`."""
        raise NotImplementedError

    def stop(self, check: Callable[[], None]) -> list[Message]:
        """Ends the traffic that `start` began, and returns the counters of each direction."""
        raise NotImplementedError

    def close(self) -> None:
        """Stops all traffic at once, and releases the ports."""
        raise NotImplementedError


def read_configuration(request: Message) -> Configuration:
    """Reads a `configure` request.

    Raises:
        AgentError: Of kind ``bad_request``.
    """
    try:
        configuration = Configuration(
            ports=tuple(str(port) for port in request["ports"]),
            directions=tuple(Direction(**direction) for direction in request["directions"]),
            settle_time=float(request["settle_time"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise AgentError("bad_request", f"The configuration cannot be read: {error!r}.") from error
    used = {port for each in configuration.directions for port in (each.transmit, each.receive)}
    if not configuration.directions or used - set(configuration.ports) or not configuration.settle_time >= 0:
        raise AgentError("bad_request", "The configuration needs a direction, whose ports it has, and a settle_time.")
    return configuration


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
