"""The state that the keywords of one suite share."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from robot.api import logger
from robot.api.deco import library
from robot.libraries.BuiltIn import BuiltIn

from lossratio import results
from lossratio.errors import DoubtError, LossRatioError, SearchError
from lossratio.files import shown_name
from lossratio.keywords.arguments import to_member_of
from lossratio.measurements import Span, TestPlace
from lossratio.measurements.throughput import (
    GoalSet,
    SearchRequest,
    ThroughputResult,
    goal_set_from,
)
from lossratio.traffic import TrafficProfile

if TYPE_CHECKING:
    from lossratio.testbed import RunningTraffic, Testbed

NOTHING_MEASURED = (
    "Nothing has been measured in this suite yet. First call a keyword such as 'Find NDR And PDR'."
)
"""The error of keywords that need a result."""


@library(scope="GLOBAL", auto_keywords=False)
class Claims:
    """The tests that this run measures: no other suite or process writes their files until the run ends."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self) -> None:
        # Robot Framework closes the listener of a global library at the end of the outermost suite.
        self.ROBOT_LIBRARY_LISTENER = self
        self._owners: dict[str, object] = {}
        self._claims: list[results.Claim] = []

    @classmethod
    def of_this_run(cls) -> "Claims":
        """The claims of Robot Framework's current run."""
        robot = BuiltIn()
        name = f"{cls.__module__}.{cls.__qualname__}"
        robot.import_library(name)
        return cast("Claims", robot.get_library_instance(name))

    def add(self, identity: str, owner: object, directory: results.RunDirectory) -> None:
        """Claims a test for its owner, the session of its suite.

        Raises:
            SearchError: If another suite of the run has a test with this identity, or another process measures it into
                the same directory, where it would overwrite the results.
            StorageError: If the claim cannot be written.
        """
        if identity not in self._owners:
            self._claims.append(directory.claim(identity))
            self._owners[identity] = owner
        if self._owners[identity] is not owner:
            raise SearchError(
                f"This run already measured the test {identity} in another suite: both would write the same files. "
                "Run the suite once, or give one of the suites its own name: Metadata    Id    NAME."
            )

    def close(self) -> None:
        """Releases all tests. Robot Framework calls this method."""
        for claim in self._claims:
            claim.release()
        self._claims.clear()
        self._owners.clear()


class Doubts(Enum):
    """What doubts about a result do to its test."""

    WARN = "warn"
    """Each doubt is a warning on the console and in the log, and a tag of the test."""
    FAIL = "fail"
    """The test also fails."""


@dataclass(frozen=True)
class Search:
    """A search of this suite."""

    result: ThroughputResult
    """Its result."""
    request: SearchRequest
    """The request, and the traffic."""
    place: TestPlace
    """The test that it belongs to."""
    test_name: str
    """Name of the test that was running when the search was made."""


@dataclass
class Session:
    """The state of a suite."""

    _goals: GoalSet | str
    _resume: Path | None
    _doubts: str | None = None
    measures_latency: bool = False
    """Whether latency is measured after a search for NDR and PDR, unless a keyword says otherwise."""
    collects_telemetry: bool = False
    """Whether telemetry is collected after a search for NDR and PDR, unless a keyword says otherwise."""
    search_defaults: dict[str, Any] = field(default_factory=dict)
    """Other arguments of searches, unless a keyword says otherwise."""
    testbed: "Testbed | None" = None
    """The testbed that is set up; None if there is none."""
    traffic: "RunningTraffic | None" = None
    """Traffic that flows until a keyword stops it; None if there is none."""
    reservation: ExitStack | None = None
    """Ends the reservation that outlasts the set-up of the testbed; None if there is none."""
    last_search: Search | None = None
    """The last search for throughput since the testbed was set up; None if there was none."""
    directory: results.RunDirectory | None = None
    """Where the files of measurements go; None if no measurement has begun."""
    _last_result: results.TestResult | None = None
    _results: dict[str, results.TestResult] = field(default_factory=dict)
    _said: set[tuple[str, str]] = field(default_factory=set)
    messages: dict[str, str] = field(default_factory=dict)
    """What the results of the running test, or of the suite's set-up, say in short, by their full names."""
    _measurements: Counter[str] = field(default_factory=Counter)

    @property
    def goals(self) -> GoalSet:
        """The goals of searches for NDR and PDR, unless a keyword says otherwise."""
        # Wrong goals are an error only here: if the import failed instead, the suite would have no keywords.
        if isinstance(self._goals, str):
            return goal_set_from(self._goals)
        return self._goals

    @property
    def doubts(self) -> Doubts:
        """What doubts do, as the import or the run says; a keyword can override it.

        Raises:
            SearchError: If there is no such policy.
        """
        said = self._doubts or BuiltIn().get_variable_value("${DOUBTS}") or Doubts.WARN.value
        try:
            return to_member_of(Doubts)(str(said))
        except ValueError as error:
            raise SearchError(f"The policy for doubts: {error}") from None

    def check_settings(self) -> None:
        """Checks the goals and the policy for doubts, before a node is touched.

        Raises:
            LossRatioError: If they are not known.
        """
        _ = self.goals, self.doubts

    def ready_testbed(self) -> "Testbed":
        """The testbed.

        Raises:
            LossRatioError: If no testbed is set up.
        """
        if self.testbed is None:
            raise LossRatioError(
                "No testbed is set up. First call the keyword 'Set Up Testbed', for example as Suite Setup."
            )
        return self.testbed

    @property
    def last_result(self) -> results.TestResult:
        """The last result of this suite.

        Raises:
            SearchError: If nothing was measured yet.
        """
        if self._last_result is None:
            raise SearchError(NOTHING_MEASURED)
        return self._last_result

    @last_result.setter
    def last_result(self, result: results.TestResult) -> None:
        self._last_result = result
        self._results[result.test.full_name] = result

    @property
    def last_with_goals(self) -> results.TestResult:
        """The last result of a search for goals in this suite; if there is none, the last result of any kind.

        Raises:
            SearchError: If nothing was measured yet.
        """
        searches = (result for result in self._results.values() if result.has_goals)
        return max(searches, key=attrgetter("started"), default=self.last_result)

    def last_of_kinds(self, kinds: Collection[str]) -> results.TestResult:
        """The last result of one of these kinds in this suite; if there is none, the last result of any kind.

        Raises:
            SearchError: If nothing was measured yet.
        """
        of_kinds = (result for result in self._results.values() if result.kind in kinds)
        return max(of_kinds, key=attrgetter("started"), default=self.last_result)

    def not_said(self, name: str, lines: Iterable[str]) -> list[str]:
        """Those lines about a result, by its full name, that this session has not said yet; from now on, it has."""
        new = [line for line in lines if (name, line) not in self._said]
        self._said.update((name, line) for line in new)
        return new

    @property
    def test_name(self) -> str:
        """Name of the running test; ``Suite Setup`` during the suite's set-up."""
        return str(BuiltIn().get_variable_value("${TEST NAME}") or "Suite Setup")

    def throughput_of(self, traffic: TrafficProfile) -> float | None:
        """The throughput without loss of the last search with this traffic, frames/s per interface; None: not known."""
        search = self.last_search
        if search is None or search.request.profile.described() != traffic.described():
            return None
        for report in search.result.goals:
            if report.goal.loss_ratio == 0.0 and report.throughput is not None:
                return report.throughput.per_interface_fps
        return None

    def remember_search(
        self, result: ThroughputResult, request: SearchRequest, place: TestPlace
    ) -> None:
        """Keeps a search for later keywords of its test."""
        self.last_result = result
        self.last_search = Search(result, request, place, self.test_name)

    def add_to(
        self,
        search: Search,
        what: str,
        measure: "Callable[[Testbed, TestPlace, ThroughputResult], ThroughputResult]",
    ) -> ThroughputResult:
        """Measures something after a search. If this fails, the search's result says so, and gives the reason."""
        span = Span()
        try:
            result = measure(self.ready_testbed(), search.place, search.result)
        except LossRatioError as error:
            # After a SearchError, nothing was tried.
            if not isinstance(error, SearchError):
                not_measured = f"{what} was not measured after the search: {error}"
                remarks = (*search.result.remarks, results.noted(not_measured))
                ended = span.later_than(search.result.ended)
                failed = search.result.model_copy(update={"remarks": remarks, "ended": ended})
                search.place.directory.write(failed)
                self.remember_search(failed, search.request, search.place)

            raise

        self.remember_search(result, search.request, search.place)
        return result

    def warn_once(self, result: results.TestResult, text: str) -> bool:
        """Warns of something about a result, and returns whether nobody was warned of it before."""
        name = result.test.full_name
        new = self.not_said(name, [text])
        if new:
            logger.warn(f"{name}: {text}")
        return bool(new)

    def notes_shown(self, result: results.TestResult) -> tuple[results.Note, ...]:
        """What a result says; warns once of irregular values, limits and doubts, and tags the test with doubts."""
        for finding in results.view_of(result).quantities(result):
            if finding.outcome is results.Outcome.IRREGULAR and not finding.is_as_before:
                self.warn_once(result, f"{finding.quantity} is {finding.outcome_in_words}")
        notes = results.notes_of(result, [*self._results.values()], *results.SHOWN)
        is_in_test = BuiltIn().get_variable_value("${TEST NAME}") is not None
        for note in notes:
            if note.weight is results.Weight.DOUBT:
                is_new = self.warn_once(result, f"doubt: {note}")
                if is_new and is_in_test:
                    BuiltIn().set_tags(_tag_of(note.kind))
            elif note.kind is results.NoteKind.ABOVE_LIMIT:
                self.warn_once(result, note.text)
        return notes

    def judge(self, measured: Iterable[results.TestResult], policy: Doubts | None) -> None:
        """Applies a policy for doubts (None: the suite's) to the results of a keyword.

        Raises:
            DoubtError: If there are doubts, and the policy is to fail such tests.
        """
        if (policy or self.doubts) is Doubts.WARN:
            return
        known = [*self._results.values()]
        doubts = [
            str(doubt)
            for result in measured
            for doubt in results.notes_of(result, known, results.Weight.DOUBT)
        ]
        if doubts:
            begin = "There is a doubt"
            if len(doubts) > 1:
                begin = f"There are {len(doubts)} doubts"
            raise DoubtError(f"{begin} about what was measured: {'; '.join(doubts)}")

    def place(self, resume: Path | None) -> TestPlace:
        """The place of the measurement that begins now: the running test, or the suite during its set-up.

        Raises:
            SearchError: If `resume` has no run that can be continued, or a test in another file has this identity: both
                would be one series.
        """
        earlier = resume or self._resume
        _require_run(earlier)

        variables = BuiltIn().get_variables(no_decoration=True)
        test = self.test_name
        self._measurements[test] += 1
        suite = results.suite_identity(
            variables["SUITE SOURCE"], variables["SUITE METADATA"], variables["SUITE NAME"]
        )
        if results.ID not in {str(key).title() for key in variables["SUITE METADATA"]}:
            _require_one_of_a_name(variables["SUITE SOURCE"], suite, test)
        name = results.result_name(test, self._measurements[test])
        directory = results.RunDirectory(Path(variables["OUTPUT DIR"]))
        Claims.of_this_run().add(f"{suite}.{test}", self, directory)
        # Doubts concern an earlier measurement of the test, and are not part of its identity.
        tags = tuple(tag for tag in variables.get("TEST TAGS", ()) if tag not in _TAGS)
        identity = results.TestIdentity(
            name=name,
            suite=suite,
            long_name=f"{variables['SUITE NAME']}.{name}",
            documentation=variables.get("TEST DOCUMENTATION") or variables["SUITE DOCUMENTATION"],
            tags=tags,
        )
        self.directory = directory
        from lossratio.report import RunReport

        RunReport.require_page()
        if earlier is None or earlier.resolve() != self.directory.path.resolve():
            # Otherwise an earlier run's files of this test could be mistaken for this run's.
            self.directory.keep_earlier(identity.full_name)

        forced = variables.get("RESUME_FORCED") or None
        return TestPlace(
            identity,
            self.directory,
            None if earlier is None else results.RunDirectory(earlier),
            forced,
        )


def _require_run(earlier: Path | None) -> None:
    """Checks that there is a run to continue: a misspelt directory must not cost everything that was measured.

    Raises:
        SearchError: If there is none.
    """
    if earlier is not None and not earlier.is_dir():
        raise SearchError(
            f"There is no run to continue in {shown_name(earlier)}. Correct 'resume', or leave it out."
        )


def _require_one_of_a_name(source: str, suite: str, test: str) -> None:
    """Checks that no other file of the project has a test with the same identity.

    Raises:
        SearchError: If another file has such a test.
    """
    for other in results.namesakes_of(Path(source)) if source else ():
        # Suites are expanded over frame sizes and cores, which come first in the names of their tests.
        names = (
            f"(?:.*-)?{results.with_any_values(name)}" for name in results.names_of_tests_in(other)
        )
        if any(re.fullmatch(name, test) for name in names):
            raise SearchError(
                f"{source} and {other} both have the test {suite}.{test}. They would share a series, "
                "because capitals and leading numbers in file names do not count. Rename a file, or give "
                "one its own name: Metadata    Id    NAME."
            )


def _tag_of(kind: results.NoteKind) -> str:
    """The tag of tests that have a kind of doubt, e.g. ``doubt-late-frames``."""
    return f"doubt-{kind.value.replace(' ', '-')}"


_TAGS = frozenset(map(_tag_of, results.NoteKind))
