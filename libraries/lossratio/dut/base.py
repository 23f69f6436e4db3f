"""The interface of a device under test: check, set up, describe, read counters, tear down.

A DUT forwards frames from its west interface to its east one, and back. West and east follow the path: the west
interface faces the TG's first port.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import BeforeValidator, model_validator

from lossratio.dut.connection_table import ConnectionTable
from lossratio.errors import DutError
from lossratio.nodes import CommandRunner
from lossratio.topology import Hop
from lossratio.values import FileModel, parse_duration

EASTWARD = "west>east"
"""Name of the direction from the west interface to the east one."""
WESTWARD = "east>west"
"""Name of the direction from the east interface to the west one."""
SIDES = ("west", "east")
"""Names of the sides of a DUT."""

DurationOption = Annotated[
    float,
    BeforeValidator(lambda value: 0.0 if str(value) in ("0", "0.0") else parse_duration(value)),
]
"""A duration in seconds, also read from text such as ``2 s``. 0 means none."""


OptionRule = tuple[str, str, str]
"""Options, other options (each list with spaces), and the error, in which ``{given}`` stands for the first options that
are given, and ``{other}`` for the first one of the others.

An option is given if it differs from its default, and ``forwarding=filter`` if the option has this value.
"""


class DutOptions(FileModel):
    """The options of a kind of DUT. Each kind has a class of its own, whose fields are the options."""

    is_router: ClassVar[bool | None] = None
    """Whether frames are routed; None: it is not known."""
    is_kernel: ClassVar[bool] = False
    """Whether the device runs on the CPUs on which frames arrive, as the kernel does, and not on CPUs of its own."""
    reset: bool = False
    """Whether state that trials leave behind, such as a policer's empty bucket, is reset before each trial. This costs
    a command on each DUT. Otherwise, lossratio waits until the DUT has recovered by itself. How long it waits follows
    from the kind of DUT (for a policer: burst / rate), from the option ``rest`` of a ``black_box``, or from the
    argument ``rest`` of a measurement."""

    requires: ClassVar[tuple[OptionRule, ...]] = ()
    """Options that each need one of other options. A subclass adds its own."""
    excludes: ClassVar[tuple[OptionRule, ...]] = ()
    """Options that go with none of other options. A subclass adds its own."""
    filter_option: ClassVar[str] = ""
    """The option with the number of rules that each frame passes; empty: there are none."""

    @model_validator(mode="after")
    def _go_together(self) -> "DutOptions":
        for problem in self.conflicts():
            raise ValueError(problem)
        return self

    def conflicts(self) -> Iterator[str]:
        """Why its options do not go together. A subclass with further reasons extends this."""
        for is_needed, name in ((True, "requires"), (False, "excludes")):
            for kind in type(self).__mro__:
                for options, others, error in vars(kind).get(name, ()):
                    given = [option for option in options.split() if self._has(option)]
                    there = [option for option in others.split() if self._has(option)]
                    if given and bool(there) != is_needed:
                        yield error.format(given=", ".join(given), other="".join(there[:1]))

    def _has(self, option: str) -> bool:
        """Whether an option is given, in the words of an `OptionRule`."""
        name, is_value, value = option.partition("=")
        given = getattr(self, name, None)
        if is_value:
            return str(given) == value
        return name in type(self).model_fields and given != type(self).model_fields[name].default

    @property
    def filters(self) -> int:
        """Number of rules that each frame passes."""
        if self.filter_option:
            return getattr(self, self.filter_option) or 0
        return 0

    @property
    def kernel_cpus(self) -> tuple[int, ...]:
        """CPUs on which the kernel has to forward frames; empty: the CPUs on which they arrive."""
        return ()

    def modelled_as(self) -> dict[str, Any] | None:
        """Data of the simulation model with the same truth; None: the DUT's truth is not known beforehand."""
        return None

    @property
    def recovery_time(self) -> float:
        """Idle seconds after which the previous trial no longer affects the DUT."""
        return 0.0

    @property
    def encapsulation_overhead(self) -> int:
        """Bytes that are added to each frame on its way to the next DUT, e.g. by a tunnel between DUTs."""
        return 0

    @property
    def growth(self) -> tuple[int, int]:
        """Bytes by which frames are longer behind the last DUT than before the first: eastward, and westward.

        The headers come between the Ethernet header and the packet. A number below 0 means that they are removed.
        """
        return 0, 0


def from_environment(name: str, default: str) -> Callable[[], str]:
    """Reads the default of an option from an environment variable of the machine that runs the suite."""

    def value() -> str:
        return os.environ.get(name, default)

    return value


OptionsT_co = TypeVar("OptionsT_co", bound=DutOptions, covariant=True)


@dataclass(frozen=True)
class Tool:
    """A program that must be on a node."""

    program: str
    """Name or path of the program."""
    package: str
    """The Debian packages that contain it; empty: no package does."""
    version: str | None = "--version"
    """The option that prints its version; None: it has none, and its path is printed."""
    title: str = ""
    """Name for people, for software that not every Linux has."""
    home: str = ""
    """Environment variable with a directory above the program; empty: the program is in the path."""
    how: str = ""
    """How to get it, in a sentence, if no Debian package has it."""

    @property
    def ask_version(self) -> tuple[str, ...]:
        """The command that prints its version, or its path."""
        if self.version:
            return (self.program, self.version)
        return ("sh", "-c", 'command -v "$1"', "which", self.program)


@dataclass(frozen=True)
class DestinationMacs:
    """The destination MAC addresses with which frames must enter the DUT."""

    from_west: str
    """For frames that enter on the west interface."""
    from_east: str
    """For frames that enter on the east interface."""


@dataclass(frozen=True)
class DutCounters:
    """Frames that a DUT has counted so far, or (see `since`) between two readings."""

    received: Mapping[str, int]
    """Frames received, by side (``west``, ``east``)."""
    transmitted: Mapping[str, int]
    """Frames transmitted, by side, including the DUT's own frames."""
    dropped: Mapping[str, int]
    """Frames that were dropped, by the name of the place. No frame is counted in two places."""
    details: Mapping[str, int] = field(default_factory=dict)
    """Further counters of the DUT, by name."""

    def since(self, earlier: "DutCounters") -> "DutCounters":
        """The counts since an earlier reading."""
        readings = zip(vars(self).values(), vars(earlier).values(), strict=True)
        return DutCounters(
            *(
                {name: count - old.get(name, 0) for name, count in new.items()}
                for new, old in readings
            )
        )

    @property
    def unaccounted(self) -> int:
        """Frames received but neither transmitted nor dropped at a named place; below 0: it sent frames of its own."""
        return (
            sum(self.received.values())
            - sum(self.transmitted.values())
            - sum(self.dropped.values())
        )


class Dut(ABC, Generic[OptionsT_co]):
    """A device under test on the path of the traffic.

    A kind of DUT is a subclass that has a `kind` and an `options_type`. The order of calls is `check`, `set_up`, then
    any of the others, `tear_down`. All calls are made between trials, except for `reconfigure`.
    """

    kind: ClassVar[str]
    """Name that suites and topologies use."""
    options_type: ClassVar[type[DutOptions]]
    """Class of the options."""
    csit_type: ClassVar[str | None] = None
    """FD.io CSIT's name for its type; None: the kind."""
    software: ClassVar[Tool | None] = None
    """The program that forwards, which a Linux node may lack; None: no program forwards."""
    tools: ClassVar[tuple[Tool, ...]] = ()
    """Programs that it needs on the node, besides this one and the programs that every DUT needs."""
    is_managed: ClassVar[bool] = True
    """Whether lossratio sets it up, by commands on its node."""
    lab_addresses: ClassVar[bool] = False
    """Whether it forwards traffic with the lab's own addresses (``addresses: lab`` in the topology file). A kind that
    sets up routes or tables of its own sets them up for the benchmarking addresses."""

    def __init__(self, session: CommandRunner, hop: Hop, options: OptionsT_co) -> None:
        self.session = session
        self.hop = hop
        self.options = options
        self.chain: tuple[Dut[Any], ...] = (self,)
        """All DUTs of its path, from west to east, including itself."""

    @classmethod
    def all_options(cls) -> type[DutOptions]:
        """The class of its options, with the options that other packages add to `options_type`."""
        return cls.options_type

    @classmethod
    def identity(cls, options: DutOptions) -> dict[str, Any]:
        """Kind, type in CSIT, and whether it routes, as JSON data for results."""
        csit_type = cls.csit_type or cls.kind.lower().replace("-", "_")
        return {"kind": cls.kind, "csit_type": csit_type, "is_router": options.is_router}

    @abstractmethod
    def check(self) -> None:
        """Checks, without changing anything, that it can be set up.

        Raises:
            DutError: If something is missing, in use or wrong; the message says what to do.
            NotMeasuredHereError: If the node has too few CPUs for its options.
            NodeError: If the node cannot be reached.
        """

    def check_frames(self, largest: int) -> None:
        """Checks that it takes frames of these bytes, with FCS, if its own limit is known.

        Raises:
            DutError: If they are too large; the message has the limit.
        """

    @abstractmethod
    def set_up(self, west_mac: str, east_mac: str) -> None:
        """Sets up the path. A set-up that fails is undone. If the path is set up already, nothing changes.

        The MAC addresses are the neighbours': the TG's port, or another DUT's, at the other end of each link.

        Raises:
            DutError: If it cannot be set up, or another run has set up one of the interfaces.
            LinkError: If a link does not come up, because of its other end or the cable.
            NodeError: If the node cannot be reached.
        """

    @abstractmethod
    def verify(self) -> None:
        """Checks that the DUT is still as it was set up.

        Raises:
            DutError: If it is not: the node was rebooted, an interface or configuration has gone,
                or a program has died.
            NodeError: If the node cannot be reached.
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The configuration as JSON data, for the test report.

        Raises:
            DutError: If it does not answer, or is not set up.
        """

    def described(self) -> dict[str, Any]:
        """The description with the identity, for results.

        Raises:
            DutError: As `describe`.
        """
        return {**self.identity(self.options), **self.describe()}

    @property
    def has_counters(self) -> bool:
        """Whether its counters can be read."""
        return True

    @abstractmethod
    def read_counters(self) -> DutCounters:
        """Reads the DUT's counters. Read before and after a trial, they show where frames were lost.

        Raises:
            DutError: If it does not answer, or its counters are unusable.
            NodeError: If the node cannot be reached.
        """

    @property
    def wakeful_time(self) -> float:
        """Seconds for which its program still keeps a CPU busy because it was asked something.

        Other programs on this CPU have to wait meanwhile, such as that of the next DUT. So traffic begins afterwards.
        """
        return 0.0

    def read_queues(self) -> Sequence[Mapping[str, Any]]:
        """The counters of its receive queues so far: ``interface``, ``queue``, ``frames`` and ``dropped_frames``.

        Empty: the device does not count the frames that each queue drops.

        Raises:
            NodeError: If the node cannot be reached.
        """
        return ()

    @abstractmethod
    def tear_down(self) -> None:
        """Restores exactly the state before `set_up`. If nothing is set up, nothing changes.

        Raises:
            DutError: If a part of the state could not be restored; all other parts are.
            NodeError: If the node cannot be reached. The next call continues where this one stopped.
        """

    @abstractmethod
    def destination_macs(self, west_mac: str, east_mac: str) -> DestinationMacs:
        """The destination MAC addresses with which frames are forwarded."""

    @property
    @abstractmethod
    def settle_time(self) -> float:
        """Seconds for which frames may stay inside the DUT after the traffic has stopped."""

    @property
    def recovery_time(self) -> float:
        """Idle seconds after which the previous trial no longer affects the DUT."""
        return self.options.recovery_time

    @property
    def program_files(self) -> tuple[str, ...]:
        """Files on the node that begin with the ids of the processes that forward; none if the kernel forwards."""
        return ()

    @property
    def resets(self) -> bool:
        """Whether it is reset before each trial."""
        return self.options.reset

    @property
    def connections(self) -> ConnectionTable | None:
        """Its table of connections, which is empty before each trial and then filled; None: it has no table."""
        return None

    @property
    def translates(self) -> bool:
        """Whether it translates addresses, so that frames do not come back as they were sent."""
        return self.connections is not None and self.connections.translates

    def check_reconfigure(self, entries: int) -> None:
        """Checks, before anything is measured, that the DUT can be reconfigured.

        Raises:
            DutError: If it cannot.
        """
        if type(self).reconfigure is Dut.reconfigure:
            self.reconfigure(entries)

    def reset(self) -> None:
        """Resets state that trials leave behind, such as a policer's bucket, to the state after the set-up.

        Raises:
            DutError: If it refuses the reset.
        """
        return

    def reconfigure(self, entries: int) -> None:
        """Adds entries to the DUT's forwarding table, e.g. routes, while traffic passes.

        No entry concerns test traffic. The tear-down removes the entries.

        Raises:
            DutError: If its kind has no such table, or it refuses them.
        """
        raise DutError(
            f"{self.hop.node_name}: a {self.kind} has no table for {entries} new entries. Give a keyword that "
            "reconfigures the device."
        )

    def restart(self) -> None:
        """Resets it by software during traffic (RFC 6201, section 4.2), and returns when it forwards again.

        Raises:
            DutError: If its kind has nothing to restart, or it does not forward again in time.
        """
        raise DutError(
            f"{self.hop.node_name}: a {self.kind} has nothing to restart. Give a command or a keyword that resets the "
            "device."
        )

    @contextmanager
    def telemetry(self) -> Iterator[dict[str, Any]]:
        """Observes the DUT while traffic passes in the ``with`` block: reports by topic, filled when the block ends.

        They are JSON data. The topic ``statistics`` is a list of numbers, each with ``place`` (such as a thread),
        ``name``, ``value``, ``unit`` and, if it has any, ``labels``. ``workers`` is a list of the threads that forward,
        each with ``worker`` (its name), ``frames`` and, if known, ``busy`` (a share of its time) and ``queues``
        (names). ``queues`` is a list of receive queues, each with ``interface``, ``queue`` (a number), ``frames`` and,
        if the device counts them, ``dropped_frames``.
        ``cpus`` is a list of the kernel's CPUs, each with ``cpu``, ``frames`` and ``softirq`` (a share of its time).
        """
        yield {}

    def probes(self) -> Sequence[str]:
        """Names of further observations, each of which needs its own trial because it costs the DUT time."""
        return ()

    @contextmanager
    def probe(self, name: str) -> Iterator[dict[str, Any]]:
        """Makes one of the observations of `probes` while traffic passes in the ``with`` block, as `telemetry` does."""
        yield {}
