"""The interface that all testbeds have, and the request that opens one."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, TypeVar

from lossratio.dut import Dut, DutOptions, load_kind, parse_options
from lossratio.errors import DutError, TopologyError
from lossratio.files import describe_problem
from lossratio.nodes import NO_CREDENTIALS, Credentials
from lossratio.results import Conditions, Device, options_that_count
from lossratio.topology import GeneratorSettings, Topology, TrafficPath
from lossratio.traffic import Answer, TrafficProfile
from lossratio.trials import (
    Integrity,
    LateFrames,
    LatencyOutput,
    Measurer,
    TrialOutput,
    with_late_frames,
)

TestbedT = TypeVar("TestbedT", bound="Testbed")
_FINEST = 1000
"""Shares of the load are multiples of a fraction whose denominator is at most this."""


@dataclass(frozen=True)
class DutRequest:
    """Kind and options of a testbed's DUTs. Make it with `dut_request`."""

    kind: str
    """Kind of the DUTs."""
    options: DutOptions
    """Options of this kind."""

    def to_json(self) -> dict[str, Any]:
        """The request as JSON data, with all defaults."""
        return {
            **load_kind(self.kind).identity(self.options),
            "options": self.options.model_dump(mode="json"),
        }

    @property
    def device(self) -> Device:
        """The device of the series of results."""
        return Device(kind=self.kind, options=options_that_count(self.options))


def dut_request(kind: str | None, options: Mapping[str, Any]) -> DutRequest | None:
    """Checks kind and options of the DUTs, which stay as they are if no kind is given.

    Raises:
        DutError: If there is no such kind, options are wrong, or there are options without a kind.
    """
    if kind is not None:
        return DutRequest(kind, parse_options(kind, options))
    if options:
        raise DutError(
            f"The options {', '.join(options)} belong to a kind of DUT. Name the kind, for example linux_bridge."
        )
    return None


@dataclass(frozen=True)
class Recovery:
    """How often and how long faults of the infrastructure are repaired."""

    pauses: tuple[float, ...] = (1.0, 5.0, 20.0)
    """Seconds before each attempt to repair the fault of a trial. There are as many attempts as pauses."""
    most: int = 10
    """The maximum number of repairs in one measurement."""
    patience: float | None = None
    """Seconds after the end of a trial within which the agent must answer: the watchdog of every trial; None: the
    generator's ``answer_timeout`` in the topology file."""


DEFAULT_RECOVERY = Recovery()
"""The default. It outlasts the restart of a service, but not a broken cable."""


@dataclass(frozen=True)
class TestbedRequest:
    """The testbed to measure on, and the kind of its DUTs: the arguments of `open_testbed`, and the file."""

    __test__ = False

    topology: Topology
    """The topology, as in its file."""
    file: Path
    """The topology file."""
    dut: DutRequest | None = None
    """The kind of DUT to set up, with its options; None: the DUTs are measured as others set them up."""
    credentials: Credentials = NO_CREDENTIALS
    """Secrets of nodes that the topology file does not hold."""
    duts: int | None = None
    """Number of DUTs on the path; None: all DUTs of the topology."""
    nic: str | None = None
    """Model of the cards on the path; None: any."""
    recovery: Recovery = DEFAULT_RECOVERY
    """What is done about nodes and generators that fail during a measurement."""
    links: int = 1
    """Number of parallel links between each pair of neighbours."""

    @property
    def paths(self) -> tuple[TrafficPath, ...]:
        """Parallel paths of test traffic.

        Raises:
            NotMeasuredHereError: If the testbed has no such paths, or too few.
            TopologyError: If facts about the TG's ports are missing, or the request is misspelt.
        """
        try:
            paths = self.topology.paths(self.links, duts=self.duts, nic=self.nic)
        except TopologyError as error:
            # The error for a testbed that is too small for a test is passed on.
            raise type(error)(describe_problem(self.file, ("nodes",), str(error))) from error
        ends = [port for path in paths for port in path.tg_ports]
        problems = list(self.topology.generator_problems(ends, len(paths)))
        if problems:
            raise TopologyError(
                "\n".join(describe_problem(self.file, where, text) for where, text in problems)
            )
        return paths

    @property
    def device(self) -> Device:
        """The device in series of results; its kind is empty if somebody else has set it up."""
        if self.dut is None:
            return Device(kind="")
        return self.dut.device

    @property
    def encapsulation_overhead(self) -> int:
        """Bytes that encapsulation adds to each frame between two DUTs."""
        if self.dut is None:
            return 0
        return self.dut.options.encapsulation_overhead

    @property
    def growth(self) -> tuple[int, int]:
        """Bytes by which frames are longer behind the DUTs than in front of them, eastward and westward."""
        if self.dut is None:
            return (0, 0)
        return self.dut.options.growth

    def growth_of(self, profile: TrafficProfile) -> tuple[int, int]:
        """Bytes by which a profile's frames are longer when they come back, including other headers there."""
        if self.paths[0].is_reflected:
            return self.growth
        (east, west), (east_headers, west_headers) = self.growth, profile.growth
        return east + east_headers, west + west_headers


class TrafficSource(Protocol):
    """Latency trials, and traffic that runs outside of trials; `lossratio.traffic.TrafficMeasurer` implements it.

    All methods raise `TrafficError` if they fail.
    """

    def latency(self, load: float, duration: float, /) -> LatencyOutput:
        """Performs a trial that measures the latency of frames.

        Args:
            load: Frames per second per interface.
            duration: Seconds.
        """

    def now(self) -> float:
        """Seconds of the controller's monotonic clock; on a simulated testbed, of the virtual clock."""

    def wait(self, seconds: float, /) -> None:
        """Waits for this many seconds on that clock, while started traffic flows."""

    def start_traffic(self, load: float, /, watch: bool = False) -> None:
        """Begins traffic of a constant load until `stop_traffic`.

        Args:
            load: Frames per second per interface.
            watch: Whether losses are located in time, so that the answer of `stop_traffic` has timelines. Links of the
                DUT may go down meanwhile.
        """

    def stop_traffic(self, late_wait: float, /) -> Answer:
        """Ends the traffic, waits for late frames after those in flight, and returns its counters.

        Args:
            late_wait: Seconds in which late frames are counted, after those in flight.
        """


@dataclass(frozen=True)
class TrialSettings:
    """How trials are made, besides their load and duration."""

    ramp: float = 0.0
    """Seconds before each trial in which the load grows from 0, and nothing is counted."""
    rest: float = 0.0
    """Minimum seconds without traffic before each trial; a DUT's own time to recover may be longer."""
    integrity: Integrity = Integrity.DOUBT
    """Whether the generator examines the frames that come back, as far as it can; ``off``: it does not."""
    connects: bool = False
    """Whether all trials open connections."""
    watches: bool = False
    """Whether losses of running traffic are located in time."""


USUAL_TRIALS = TrialSettings()
"""Trials without a ramp and a rest, whose frames are examined."""


@dataclass(frozen=True)
class Ready:
    """A testbed that is ready to measure with one traffic profile."""

    measurer: Measurer
    """Performs trials."""
    source: TrafficSource
    """Measures latency, and sends running traffic."""
    conditions: Conditions
    """The conditions of the trials, for test reports."""
    late_frames: LateFrames = field(default_factory=LateFrames)
    """Where late frames are reported, with the traffic that they belong to."""
    wait_for_late_frames: Callable[[], None] = lambda: None
    """Waits for late frames of the last trial, and reports them."""
    is_verified: Callable[[], bool] = lambda: True
    """Returns whether the DUTs were found as they were set up after the last trial."""
    verify_within: Callable[[float], bool] = lambda _: False
    """Verifies the DUTs if that would be due within this many seconds; returns whether it found them as set up."""
    verify_often: Callable[[], None] = lambda: None
    """Has the DUTs verified more often, because the run was cut off before their trials were proved."""

    def with_late_frames(self, output: TrialOutput) -> TrialOutput:
        """Waits for late frames of the latest traffic, and returns its output with them, which is in no journal."""
        late: list[int] = []
        self.late_frames.keep(output.lost_frames or 0, late.append)
        self.wait_for_late_frames()
        return with_late_frames(output, sum(late))


class Testbed(ABC):
    """A testbed with its DUTs set up. Used as a context manager, it is closed at the end of the block."""

    request: TestbedRequest
    """The request that it was opened with."""
    duts: tuple[Dut[DutOptions], ...] = ()
    """The DUTs that were set up, link by link, from west to east; empty if none were, or the testbed is simulated."""
    generator: GeneratorSettings
    """The settings of the generator."""
    _see: Callable[[int, int], None] | None = None

    @abstractmethod
    def ready_for(
        self, profile: TrafficProfile, settings: TrialSettings = USUAL_TRIALS
    ) -> AbstractContextManager[Ready]:
        """Makes the testbed ready for a traffic profile, checks that frames get through, and leaves no traffic running.

        Args:
            profile: The traffic.
            settings: How its trials are made.

        Raises:
            LossRatioError: If the traffic cannot be generated, or does not get through; or if the testbed is in use.
        """

    def load_step(self, profile: TrafficProfile) -> float:
        """The load of which all loads with a traffic profile are multiples, in frames per second; 0: any load.

        Directions that send only a share of the load are taken into account.
        """
        shares = (Fraction(direction.load_share) for direction in profile.directions)
        return self.generator.load_step * math.lcm(
            *(share.limit_denominator(_FINEST).denominator for share in shares)
        )

    def exchange(self) -> None:
        """Restarts the DUTs with another build of their programs.

        Raises:
            DutError: If a DUT has nothing to restart, or does not forward again.
        """
        for dut in self.duts:
            dut.restart()

    def watch_trials(self, see: Callable[[int, int], None] | None) -> None:
        """Shows running trials from the next measurement on, if the generator supports it. Trials do not change.

        About twice a second, `see` is called with the frames that the trial has sent and received so far, over all
        directions. None ends this.
        """
        self._see = see

    def close(self) -> None:  # noqa: B027  (a simulated testbed has nothing to put back)
        """Stops all traffic, and restores the nodes. A second call does nothing.

        Raises:
            LossRatioError: If a node cannot be restored.
        """

    def __enter__(self: TestbedT) -> TestbedT:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()
