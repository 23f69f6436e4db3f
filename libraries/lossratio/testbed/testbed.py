"""What a measurement needs of a testbed, whatever is behind it; and what a testbed's devices are asked to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lossratio.dut import Dut, DutOptions, parse_options
from lossratio.errors import DutError, TopologyError
from lossratio.nodes import NO_CREDENTIALS, Credentials
from lossratio.results import Conditions
from lossratio.topology import Topology, TrafficPath, generator_problems
from lossratio.traffic import ANSWER_SECONDS, StoppedTraffic, TrafficProfile
from lossratio.trials import Integrity, LatencyOutput, Measurer
from lossratio.yaml_file import describe_problem


@dataclass(frozen=True)
class DutRequest:
    """What the DUTs of a testbed are to be. Make it with `dut_request`.

    Attributes:
        kind: Kind of the DUTs.
        options: What they are asked for.
    """

    kind: str
    options: DutOptions

    def to_json(self) -> dict[str, Any]:
        """The request as JSON data, with all defaults."""
        return {"kind": self.kind, "options": self.options.model_dump(mode="json")}


def dut_request(kind: str | None, options: Mapping[str, Any]) -> DutRequest | None:
    """Checks what the DUTs are asked to be; None: they stay as they are.

    Raises:
        DutError: If the kind or an option is unknown, or has a value that it cannot have.
    """
    if kind is not None:
        return DutRequest(kind, parse_options(kind, options))
    if options:
        raise DutError(f"The options {', '.join(options)} belong to a kind of DUT; say which one, e.g. linux_bridge.")
    return None


@dataclass(frozen=True)
class Recovery:
    """How much is done to go on after a fault.

    Attributes:
        pauses: Seconds before each attempt to repair what a trial failed of; as many attempts as there are pauses.
        most: Repairs of one measurement at most.
        patience: Seconds after a trial's end within which its answer must be there: the watchdog of every trial.
    """

    pauses: tuple[float, ...] = (1.0, 5.0, 20.0)
    most: int = 10
    patience: float = ANSWER_SECONDS


DEFAULT_RECOVERY = Recovery()
"""What is done unless said otherwise: it outlasts the restart of a service, not a broken cable."""


@dataclass(frozen=True)
class TestbedRequest:
    """What testbed to measure on, and what its devices are to be.

    Attributes:
        topology: The topology, as its file has it.
        file: The file.
        dut: What the DUTs are to be; None: they stay as they are.
        credentials: What to log in with on all nodes, where keys are not enough.
        duts: Through how many DUTs the path goes, in the order of the file; None: through all.
        nic: NIC model that the DUTs' ports on the path must have; None: any.
        recovery: How much is done to go on after a fault of the infrastructure.
        links: How many parallel paths the traffic takes at once.
    """

    __test__ = False

    topology: Topology
    file: Path
    dut: DutRequest | None = None
    credentials: Credentials = NO_CREDENTIALS
    duts: int | None = None
    nic: str | None = None
    recovery: Recovery = DEFAULT_RECOVERY
    links: int = 1

    @property
    def paths(self) -> tuple[TrafficPath, ...]:
        """The parallel ways of the test traffic.

        Raises:
            TopologyError: If the topology does not have them, or says too little about the TG's ports on them.
        """
        try:
            paths = self.topology.paths(self.links, duts=self.duts, nic=self.nic)
        except TopologyError as error:
            raise TopologyError(describe_problem(self.file, ("nodes",), str(error))) from error
        ends = [port for path in paths for port in (path.west, path.east)]
        problems = list(generator_problems(self.topology, ends, len(paths)))
        if problems:
            raise TopologyError("\n".join(describe_problem(self.file, where, text) for where, text in problems))
        return paths

    @property
    def encapsulation_overhead(self) -> int:
        """Bytes that encapsulation adds to each frame between two DUTs."""
        return 0 if self.dut is None else self.dut.options.encapsulation_overhead


class TrafficSource(Protocol):
    """What can be done with traffic besides measuring loss; `lossratio.traffic.TrafficMeasurer` is one."""

    def latency(self, load: float, duration: float, /) -> LatencyOutput:
        """Performs a trial whose frames say how long they took.

        Args:
            load: Frames per second, per interface.
            duration: Seconds.

        Raises:
            TrafficError: If that is not possible.
        """

    def start_traffic(self, load: float, /) -> None:
        """Begins traffic of a constant load, in frames per second per interface, until `stop_traffic`.

        Raises:
            TrafficError: If that is not possible.
        """

    def stop_traffic(self, late_wait: float, /) -> StoppedTraffic:
        """Ends it, and returns what was counted.

        Args:
            late_wait: Seconds to wait on after the wait for frames in flight, for late ones.

        Raises:
            TrafficError: If there was no traffic, or there are no counters worth anything.
        """


@dataclass(frozen=True)
class Ready:
    """A testbed that is ready to measure with one kind of traffic.

    Attributes:
        measurer: Performs trials.
        source: Measures latency, and sends traffic apart from trials.
        conditions: Everything that a test report states about them.
        late_frames: Waits, and says how many frames of the trial before came back too late, over all directions; None:
            not known.
    """

    measurer: Measurer
    source: TrafficSource
    conditions: Conditions
    late_frames: Callable[[], int | None]
    known_good: Callable[[], int] = lambda: 0


class Testbed(Protocol):
    """Something to measure on, with its DUTs set up; as a context manager it is closed at the end."""

    @property
    def request(self) -> TestbedRequest:
        """What it was opened for."""

    @property
    def duts(self) -> tuple[Dut[DutOptions], ...]:
        """The DUTs that were set up, from west to east; none where that was not asked for, or nothing is real."""

    @property
    def generator_limit(self) -> float | None:
        """The most frames per second that the generator can send, per interface; None: not known."""

    def ready_for(
        self, profile: TrafficProfile, *, ramp: float = 0.0, integrity: Integrity = Integrity.DOUBT
    ) -> AbstractContextManager[Ready]:
        """Makes it ready for a traffic profile, and checks that this gets through; afterwards no traffic is left.

        Args:
            profile: What the traffic is.
            ramp: Seconds before each trial in which the load grows from nothing, and nothing is counted.
            integrity: Whether frames that come back are looked at: unless it is ``off``, as far as the generator can.

        Raises:
            LossRatioError: If the traffic cannot be generated, or does not get through; or the testbed is in use.
        """

    def close(self) -> None:
        """Stops all traffic and puts back how the nodes were; doing it again changes nothing.

        Raises:
            LossRatioError: If something could not be put back.
        """

    def __enter__(self) -> Testbed:
        """Returns the testbed."""

    def __exit__(self, *failure: object) -> None:
        """Closes it."""
