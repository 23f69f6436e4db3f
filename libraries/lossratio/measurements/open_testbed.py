"""An open testbed with a method for each kind of measurement: for notebooks, and for scripts of a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lossratio.measurements.frame_loss import FrameLossRequest, FrameLossResult, measure_frame_loss_rate
from lossratio.measurements.measure import Request
from lossratio.measurements.measurement import TestPlace
from lossratio.measurements.mrr import MrrRequest, MrrResult, measure_mrr
from lossratio.measurements.progress import OnProgress
from lossratio.measurements.soak import SoakRequest, SoakResult, find_critical_load
from lossratio.measurements.throughput import (
    SearchRequest,
    ThroughputResult,
    find_conditional_throughput,
    goal_from,
    goal_set_from,
)
from lossratio.mlrsearch import SearchGoal
from lossratio.results import RunDirectory, TestIdentity, TestResult, result_name
from lossratio.trials import Integrity
from lossratio.units import parse_frame_rate

if TYPE_CHECKING:
    from lossratio.dut import AnyOptions, Dut, DutOptions
    from lossratio.nodes import Credentials
    from lossratio.testbed import Ready, Recovery, Testbed, TestbedRequest
    from lossratio.traffic import TrafficProfile

RequestT = TypeVar("RequestT", bound=Request)
ResultT = TypeVar("ResultT", bound=TestResult)

Goals = str | SearchGoal | tuple[str | SearchGoal, ...]
"""Search goals: a set by name (``csit``, ``quick``), presets by name, goals, or a file of goals."""


class OpenTestbed:
    """A testbed that measures; a `lossratio.testbed.Testbed`, too. Open it with `open_testbed`.

    A measurement may name another kind of DUT than the testbed has: the testbed is closed then, and opened with it.

    Args:
        file: The topology file.
        results: Directory of the results.
        dut: Kind of the DUTs; None: they stay as they are.
        options: The kind's options.
        settings: The other arguments of `lossratio.testbed.open_testbed`.
    """

    def __init__(
        self, file: Path, results: Path, dut: str | None, options: AnyOptions, settings: Mapping[str, Any]
    ) -> None:
        self._file = file
        self._settings = settings
        self._directory = RunDirectory(results)
        self._measurements: Counter[str] = Counter()
        self._results: list[TestResult] = []
        self._dut = (dut, dict(options))
        self._testbed = self._opened()

    def ndr_pdr(
        self,
        frame_size: str | int,
        profile: str = "ethip4-udp",
        *,
        goals: Goals = "csit",
        dut: str | None = None,
        options: AnyOptions | None = None,
        bidirectional: bool | None = None,
        min_load: str | float | None = None,
        max_load: str | float | None = None,
        timeout: float | None = None,
        name: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> ThroughputResult:
        """Searches for the non-drop rate and the partial drop rate at once, or for any other goals.

        Args:
            frame_size: Bytes with FCS (``64B`` or 64), or the name of a mix of sizes.
            profile: The traffic profile, by name or file.
            goals: The search goals.
            dut: Kind of the DUTs; None: as the testbed is.
            options: The kind's options by name, e.g. ``{"police": "50 kfps"}``.
            bidirectional: Whether both ports send; None: as the profile says.
            min_load: Smallest load per interface, in frames per second or with a unit (``10 kfps``); None: the default.
            max_load: Largest load per interface, likewise.
            timeout: Seconds of trials after which the search ends; None: 1200.
            name: Name of the test in results; None: the frame size and the goals.
            on_progress: Called after each trial.

        Raises:
            LossRatioError: If an argument makes no sense, or the measurement fails.
        """
        wanted = _goals(goals)
        request = SearchRequest(wanted, self._profile(frame_size, profile, bidirectional), *_loads(min_load, max_load))
        if timeout is not None:
            request = SearchRequest(wanted, request.profile, request.min_load, request.max_load, timeout)
        test = name or f"{frame_size} {', '.join(goal.name or str(goal) for goal in wanted)}"
        testbed = self._with(dut, options)
        return self._kept(find_conditional_throughput(testbed, request, self._place(test), on_progress))

    def mrr(
        self,
        frame_size: str | int,
        profile: str = "ethip4-udp",
        *,
        dut: str | None = None,
        options: AnyOptions | None = None,
        bidirectional: bool | None = None,
        max_load: str | float | None = None,
        name: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> MrrResult:
        """Measures the maximum receive rate: what comes back at maximum load. Arguments are those of `ndr_pdr`.

        Raises:
            LossRatioError: If an argument makes no sense, or the measurement fails.
        """
        request = MrrRequest(self._profile(frame_size, profile, bidirectional), _load(max_load))
        place = self._place(name or f"{frame_size} MRR")
        return self._kept(measure_mrr(self._with(dut, options), request, place, on_progress))

    def frame_loss(
        self,
        frame_size: str | int,
        profile: str = "ethip4-udp",
        *,
        dut: str | None = None,
        options: AnyOptions | None = None,
        bidirectional: bool | None = None,
        max_load: str | float | None = None,
        name: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> FrameLossResult:
        """Measures which share of the frames is lost at each load (RFC 2544). Arguments are those of `ndr_pdr`.

        Raises:
            LossRatioError: If an argument makes no sense, or the measurement fails.
        """
        request = FrameLossRequest(self._profile(frame_size, profile, bidirectional), _load(max_load))
        place = self._place(name or f"{frame_size} frame loss rate")
        return self._kept(measure_frame_loss_rate(self._with(dut, options), request, place, on_progress))

    def critical_load(
        self,
        frame_size: str | int,
        profile: str = "ethip4-udp",
        *,
        target_loss_ratio: float = 1e-7,
        timeout: float = 1800.0,
        dut: str | None = None,
        options: AnyOptions | None = None,
        bidirectional: bool | None = None,
        min_load: str | float | None = None,
        max_load: str | float | None = None,
        name: str | None = None,
    ) -> SoakResult:
        """Searches for the critical load with PLRsearch, in trials of so many seconds (``timeout``) together.

        ``target_loss_ratio`` is the loss ratio at the critical load. Further arguments are those of `ndr_pdr`.

        Raises:
            LossRatioError: If an argument makes no sense, or the measurement fails.
        """
        profile_ = self._profile(frame_size, profile, bidirectional)
        request = SoakRequest(profile_, target_loss_ratio, *_loads(min_load, max_load), timeout)
        place = self._place(name or f"{frame_size} critical load")
        return self._kept(find_critical_load(self._with(dut, options), request, place))

    @property
    def results(self) -> tuple[TestResult, ...]:
        """The results of its methods so far, in their order."""
        return tuple(self._results)

    @property
    def request(self) -> TestbedRequest:
        """The request that it was opened with."""
        return self._testbed.request

    @property
    def duts(self) -> tuple[Dut[DutOptions], ...]:
        """The DUTs that were set up."""
        return self._testbed.duts

    @property
    def generator_limit(self) -> float | None:
        """The most frames per second that the generator can send, per interface; None: not known."""
        return self._testbed.generator_limit

    def ready_for(
        self,
        profile: TrafficProfile,
        *,
        ramp: float = 0.0,
        rest: float = 0.0,
        integrity: Integrity = Integrity.DOUBT,
    ) -> AbstractContextManager[Ready]:
        """Makes the testbed ready for a traffic profile; see `lossratio.testbed.Testbed`."""
        return self._testbed.ready_for(profile, ramp=ramp, rest=rest, integrity=integrity)

    def watch_trials(self, see: Callable[[int, int], None] | None) -> None:
        """Shows running trials; see `lossratio.testbed.Testbed`."""
        self._testbed.watch_trials(see)

    def close(self) -> None:
        """Stops all traffic, and puts the nodes back to their earlier state."""
        self._testbed.close()

    def __enter__(self) -> OpenTestbed:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def __repr__(self) -> str:
        dut, options = self._dut
        shown = "" if dut is None else f", {dut}" + "".join(f" {name}={value}" for name, value in options.items())
        return f"<testbed {self.request.topology.name}{shown}>"

    def _opened(self) -> Testbed:
        # Imported here because paramiko takes a while, and reports of results need none of it.
        from lossratio.testbed import open_testbed as open_plain

        dut, options = self._dut
        return open_plain(self._file, dut=dut, options=options, **self._settings)

    def _with(self, dut: str | None, options: AnyOptions | None) -> Testbed:
        """The testbed with this kind of DUT, which is set up unless it is there already."""
        wanted = (dut, dict(options or {}))
        if wanted == (None, {}) or wanted == self._dut:
            return self._testbed
        from lossratio.testbed import dut_request

        # A wrong option is an error before the testbed is closed.
        dut_request(*wanted)
        self._testbed.close()
        self._dut = wanted
        self._testbed = self._opened()
        return self._testbed

    def _kept(self, result: ResultT) -> ResultT:
        self._results.append(result)
        return result

    def _place(self, name: str) -> TestPlace:
        self._measurements[name] += 1
        test = TestIdentity(name=result_name(name, self._measurements[name]), suite=self.request.topology.name)
        return TestPlace(test, self._directory)

    def _profile(self, frame_size: str | int, profile: str, bidirectional: bool | None) -> TrafficProfile:
        from lossratio.traffic import load_profile, parse_frame_size

        return load_profile(profile, frame_size=parse_frame_size(frame_size), bidirectional=bidirectional)


def open_testbed(
    topology: str | Path,
    *,
    dut: str | None = None,
    options: AnyOptions | None = None,
    results: str | Path = "results",
    duts: int | None = None,
    nic: str | None = None,
    links: int = 1,
    credentials: Credentials | None = None,
    recovery: Recovery | None = None,
) -> OpenTestbed:
    """Opens a testbed, sets up its DUTs, and measures on it; close it in the end, best by a ``with`` block.

    Args:
        topology: The topology file.
        dut: Kind of the DUTs, e.g. ``linux_bridge``; None: the DUTs stay as they are.
        options: The kind's options by name, e.g. ``{"police": "50 kfps"}``.
        results: Directory of the results of the methods that measure.
        duts: How many DUTs are on the path, in the order of the file; None: all.
        nic: NIC model that the DUTs' ports on the path must have, e.g. ``Intel-E810CQ``; None: any.
        links: Number of parallel paths that the traffic takes at once.
        credentials: What to log in with on all nodes; None: keys, and the environment.
        recovery: How often and how long faults of the infrastructure are repaired; None: as usual.

    Raises:
        LossRatioError: If the file, the kind or an option is wrong (before anything is touched), or the testbed cannot
            be set up (changes made until then are undone).
    """
    settings: dict[str, Any] = {"duts": duts, "nic": nic, "links": links}
    settings |= {} if credentials is None else {"credentials": credentials}
    settings |= {} if recovery is None else {"recovery": recovery}
    return OpenTestbed(Path(topology), Path(results), dut, options or {}, settings)


def _goals(goals: Goals) -> tuple[SearchGoal, ...]:
    if isinstance(goals, str):
        return tuple(goal_set_from(goals).goals)
    return tuple(
        goal_from(goal) if isinstance(goal, str) else goal for goal in (goals if isinstance(goals, tuple) else (goals,))
    )


def _load(load: str | float | None) -> float | None:
    return None if load is None else parse_frame_rate(load)


def _loads(min_load: str | float | None, max_load: str | float | None) -> tuple[float | None, float | None]:
    return _load(min_load), _load(max_load)
