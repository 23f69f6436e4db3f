"""What a device under test is to everything else: something to check, set up, describe, count on, and tear down.

A DUT forwards what comes in on its west interface to its east one, and back. West and east are as seen from the path:
the west interface faces the TG's first port.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from lossratio.errors import DutError
from lossratio.nodes import CommandRunner
from lossratio.topology import Hop

EASTWARD = "west>east"
"""Name of the direction from the west interface to the east one."""

WESTWARD = "east>west"
"""Name of the direction from the east interface to the west one."""


class DutOptions(BaseModel):
    """What a suite may ask of a kind of DUT. Each kind has a class of its own; its fields are the options' names."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    reset: bool = False
    """Whether what trials leave behind (such as a policer's empty bucket) is brought back before each trial."""

    def modelled_as(self) -> dict[str, Any] | None:
        """Data of the simulation model with the same truth; None: the DUT has no truth that is known beforehand."""
        return None

    @property
    def recovery_time(self) -> float:
        """Idle seconds after which the DUT does not remember the trial before any more."""
        return 0.0

    @property
    def encapsulation_overhead(self) -> int:
        """Bytes that are added to each frame on its way to the next DUT, e.g. by a tunnel between DUTs."""
        return 0


OptionsT_co = TypeVar("OptionsT_co", bound=DutOptions, covariant=True)


@dataclass(frozen=True)
class DestinationMacs:
    """What frames must carry as destination MAC address when they enter the DUT.

    Attributes:
        from_west: Of frames that enter on the west interface.
        from_east: Of frames that enter on the east interface.
    """

    from_west: str
    from_east: str


@dataclass(frozen=True)
class DutCounters:
    """Frames that a DUT has counted so far, or (see `since`) between two readings.

    Attributes:
        received: Frames that came in, by side (``west``, ``east``).
        transmitted: Frames that went out, by side, the DUT's own ones among them.
        dropped: Frames that were dropped, by the name of the place. No frame is in two places.
        details: What else the DUT can tell, by name.
    """

    received: Mapping[str, int]
    transmitted: Mapping[str, int]
    dropped: Mapping[str, int]
    details: Mapping[str, int] = field(default_factory=dict)

    def since(self, earlier: DutCounters) -> DutCounters:
        """What was counted after an earlier reading."""
        return DutCounters(
            _difference(self.received, earlier.received),
            _difference(self.transmitted, earlier.transmitted),
            _difference(self.dropped, earlier.dropped),
            _difference(self.details, earlier.details),
        )

    @property
    def unaccounted(self) -> int:
        """Frames received that were neither transmitted nor dropped at a named place; 0 when all are accounted for.

        Negative if the DUT transmitted frames of its own.
        """
        return sum(self.received.values()) - sum(self.transmitted.values()) - sum(self.dropped.values())


class Dut(ABC, Generic[OptionsT_co]):
    """A device under test on the path of the traffic.

    A kind of DUT is a subclass that says its `kind` and its `options_type`. The order of calls is `check`, `set_up`,
    then any of the others, `tear_down`. A DUT is talked to between two trials only; `reconfigure` is the exception.

    Attributes:
        session: Runs commands on the DUT's node.
        hop: The two interfaces to set up a path between.
        options: What the suite asks for.
    """

    kind: ClassVar[str]
    """Name that suites and topologies use."""
    options_type: ClassVar[type[DutOptions]]
    """Class of the options."""

    def __init__(self, session: CommandRunner, hop: Hop, options: OptionsT_co) -> None:
        self.session = session
        self.hop = hop
        self.options = options

    @abstractmethod
    def check(self) -> None:
        """Checks whether the DUT can be set up here, and touches nothing.

        Raises:
            DutError: If something is missing, or an interface is needed for something else; says what to do.
        """

    @abstractmethod
    def set_up(self, west_mac: str, east_mac: str) -> None:
        """Sets up the path; a set-up that fails is undone. Where it is set up already, nothing changes.

        Args:
            west_mac: MAC address of what is at the other end of the west link (the TG's port, or another DUT's).
            east_mac: The same of the east link.

        Raises:
            DutError: If it cannot be set up, or somebody else has set up one of the interfaces.
            LinkError: If a link does not come up, be it for its other end or the cable.
        """

    @abstractmethod
    def verify(self) -> None:
        """Checks that the DUT is still as it was set up.

        Raises:
            DutError: If it is not: rebooted, an interface down, configuration gone.
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The configuration as JSON data, for the test report."""

    @abstractmethod
    def read_counters(self) -> DutCounters:
        """Reads the DUT's counters, to see around a trial of its own where frames were lost."""

    @abstractmethod
    def tear_down(self) -> None:
        """Brings back exactly what was there before `set_up`; where nothing is set up, nothing changes.

        Raises:
            DutError: If something could not be brought back; all the rest is.
            NodeError: If the node cannot be reached; calling this again goes on where it stopped.
        """

    @abstractmethod
    def destination_macs(self, west_mac: str, east_mac: str) -> DestinationMacs:
        """What frames must carry as destination MAC address to be forwarded.

        Args:
            west_mac: MAC address of what is at the other end of the west link.
            east_mac: The same of the east link.
        """

    @property
    @abstractmethod
    def settle_time(self) -> float:
        """Seconds for which frames may stay in flight inside the DUT after the traffic has stopped."""

    @property
    def recovery_time(self) -> float:
        """Idle seconds after which the DUT does not remember the trial before any more."""
        return self.options.recovery_time

    def reset(self) -> None:
        """Brings state that trials leave behind (such as a policer's bucket) back to how it was after the set-up."""
        return

    def reconfigure(self, entries: int) -> None:
        """Adds so many entries to what the DUT forwards by, e.g. routes, while traffic passes.

        None of them is of concern to test traffic. Tear-down takes them away with the rest.

        Args:
            entries: How many.

        Raises:
            DutError: If this kind has nothing to add them to, or refuses them.
        """
        raise DutError(f"{self.hop.node_name}: a {self.kind} has nothing that {entries} entries could be added to.")

    @contextmanager
    def telemetry(self) -> Iterator[dict[str, Any]]:
        """Observes the DUT while traffic passes in the ``with`` block.

        Yields:
            What it tells about that traffic, as JSON data by topic; filled when the block ends.
        """
        yield {}

    def modelled_as(self) -> dict[str, Any] | None:
        """Data of the simulation model with the same truth; None: the DUT has no truth that is known beforehand."""
        return self.options.modelled_as()


def _difference(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    return {name: count - before.get(name, 0) for name, count in now.items()}
