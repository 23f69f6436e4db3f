"""The state that the keywords of one suite share: the testbed, the last result, the running test."""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from robot.libraries.BuiltIn import BuiltIn

from lossratio.errors import LossRatioError, SearchError
from lossratio.measurements import TestPlace
from lossratio.measurements.throughput import GoalSet, ThroughputResult, goal_set_from
from lossratio.report import RunReport
from lossratio.results import RunDirectory, TestIdentity, TestResult, result_name
from lossratio.testbed import RunningTraffic, Testbed
from lossratio.traffic import TrafficProfile


@dataclass(frozen=True)
class Search:
    """A search of this suite."""

    result: ThroughputResult
    """Its result."""
    profile: TrafficProfile
    """What the traffic was."""
    place: TestPlace
    """Which test it belongs to."""
    test_name: str
    """Name of the running test when it was made."""


class Session:
    """The state of a suite.

    Attributes:
        measures_latency: Whether latency is measured after a search for NDR and PDR, unless a keyword says otherwise.
        collects_telemetry: Whether telemetry is collected after such a search, unless a keyword says otherwise.
        testbed: The testbed that is set up; None if none is.
        traffic: Traffic that flows until it is stopped; None if there is none.
        reservation: Ends the reservation that outlasts the testbed's set-up; None if there is none.
        last_search: The last search for throughput on the testbed that is set up; None if there was none.
        directory: Where the files of measurements go; None if none has begun.
    """

    def __init__(
        self,
        goals: GoalSet | str,
        resume: Path | None,
        *,
        measures_latency: bool = False,
        collects_telemetry: bool = False,
    ) -> None:
        self._goals = goals
        self.measures_latency = measures_latency
        self.collects_telemetry = collects_telemetry
        self.testbed: Testbed | None = None
        self.traffic: RunningTraffic | None = None
        self.reservation: ExitStack | None = None
        self.last_search: Search | None = None
        self.directory: RunDirectory | None = None
        self._resume = resume
        self._last_result: TestResult | None = None
        self._measurements: Counter[str] = Counter()

    @property
    def goals(self) -> GoalSet:
        """The goals that NDR and PDR are searched with, unless a keyword says otherwise."""
        # Wrong goals are an error here, as a library that cannot be imported would leave the suite without keywords.
        return goal_set_from(self._goals) if isinstance(self._goals, str) else self._goals

    def ready_testbed(self) -> Testbed:
        """The testbed; an error if none is set up."""
        if self.testbed is None:
            raise LossRatioError("No testbed is set up. Call the keyword 'Set Up Testbed' first, e.g. as Suite Setup.")
        return self.testbed

    @property
    def last_result(self) -> TestResult:
        """The last result of this suite; an error if nothing was measured yet."""
        if self._last_result is None:
            raise SearchError("Nothing has been measured yet in this suite. Call e.g. 'Find NDR And PDR' first.")
        return self._last_result

    @last_result.setter
    def last_result(self, result: TestResult) -> None:
        self._last_result = result

    @property
    def test_name(self) -> str:
        """Name of the running test; in the suite's set-up ``Suite Setup``."""
        return str(BuiltIn().get_variable_value("${TEST NAME}") or "Suite Setup")

    def throughput_of(self, traffic: TrafficProfile) -> float | None:
        """The throughput without loss of the last search with this traffic, frames/s per interface; None: not known."""
        search = self.last_search
        if search is None or search.profile.described() != traffic.described():
            return None
        for report in search.result.goals:
            if report.goal.loss_ratio == 0.0 and report.throughput is not None:
                return report.throughput.per_interface_fps
        return None

    def remember_search(self, result: ThroughputResult, profile: TrafficProfile, place: TestPlace) -> None:
        """Keeps a search for later keywords of its test."""
        self.last_result = result
        self.last_search = Search(result, profile, place, self.test_name)

    def add_to(
        self, search: Search, what: str, measure: Callable[[Testbed, TestPlace, ThroughputResult], ThroughputResult]
    ) -> ThroughputResult:
        """Measures something after a search: if it fails, the result of the search says so, and why."""
        try:
            result = measure(self.ready_testbed(), search.place, search.result)
        except LossRatioError as error:
            # After a SearchError, nothing was tried.
            if not isinstance(error, SearchError):
                remarks = (*search.result.remarks, f"{what} was not measured after the search: {error}")
                failed = search.result.model_copy(update={"remarks": remarks})
                search.place.directory.write(failed)
                self.remember_search(failed, search.profile, search.place)
            raise
        self.remember_search(result, search.profile, search.place)
        return result

    def place(self, resume: Path | None) -> TestPlace:
        """The place of the measurement that begins now: the running test, or the suite in its set-up."""
        # A misspelt directory must not cost all that was measured.
        earlier = resume or self._resume
        if earlier is not None and not earlier.is_dir():
            raise SearchError(f"There is no run to be continued in {earlier}. Correct 'resume', or leave it out.")
        variables = BuiltIn().get_variables(no_decoration=True)
        test = self.test_name
        self._measurements[test] += 1
        identity = TestIdentity(
            name=result_name(test, self._measurements[test]),
            suite=variables["SUITE NAME"],
            documentation=variables.get("TEST DOCUMENTATION") or variables["SUITE DOCUMENTATION"],
            tags=tuple(variables.get("TEST TAGS", ())),
        )
        self.directory = RunDirectory(Path(variables["OUTPUT DIR"]))
        RunReport.require_page()
        if earlier is None or earlier.resolve() != self.directory.path.resolve():
            # So that nobody takes an earlier run's files of this test for this run's.
            self.directory.discard(identity.full_name)
        forced = variables.get("RESUME_FORCED") or None
        return TestPlace(identity, self.directory, None if earlier is None else RunDirectory(earlier), forced)


class Keywords:
    """The base of every group of keywords, with the suite's session."""

    def __init__(self, session: Session) -> None:
        self.session = session
