"""Requests for runs of suites; runs Robot Framework in this process, and reports the verdict of each test."""

import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

from robot.api import SuiteVisitor, logger
from robot.conf import RobotSettings
from robot.errors import FRAMEWORK_ERROR, STOPPED_BY_USER, DataError, Information
from robot.model import ModelModifier
from robot.output import LOGGER
from robot.run import RobotFramework
from robot.running import Keyword, TestCase, TestSuite, TestSuiteBuilder
from robot.utils import normalize, secs_to_timestr, timestr_to_secs

from lossratio.errors import FREE_SPACE, LossRatioError, ReportError, StorageError, TopologyError
from lossratio.files import shell_word
from lossratio.keywords import LossRatio, problem_with_variable, value_of
from lossratio.report import PAGE, PAGE_VARIABLE, write_reports
from lossratio.results import identity_of
from lossratio.runs.console import OWN_CONSOLE, Console, wants_own_console
from lossratio.runs.verdicts import TestVerdict, VerdictListener
from lossratio.topology import Topology
from lossratio.values import and_more, did_you_mean

_SYSTEM_ERROR = re.compile(r"\w+Error: \[Errno \d+\] (.+): '[^']*'$")
"""The end of a message of Robot Framework about a file, with Python's name of the error and once more the file."""
_NO_TEXT = re.compile(r"UnicodeDecodeError: 'utf-8' codec .* position (\d+).*", re.DOTALL)
_NO_SUITE = re.compile(r"Creating 'robot\.running\.TestSuite' object .*", re.DOTALL)
"""The end of a message of Robot Framework about a file in JSON, which names Python's classes."""
_NAME_THE_OUTPUT = ("output", "timestampoutputs")
"""Options of Robot Framework that give its output another name."""
_NOTHING_TO_RUN = "Expected at least 1 argument"
"""The beginning of Robot Framework's message if no suite is left."""
_MOST_NAMES = 12
_NO_VALUE = "it has no value; write NAME:VALUE, e.g. FRAME_SIZE:64B"
_SETS_UP = normalize("Set Up Testbed")


class Timeouts:
    """Gives each test a timeout, unless it has a shorter one; a listener of Robot Framework.

    Robot Framework's timeouts stop a test even within a keyword.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def start_suite(self, data: Any, result: Any) -> None:
        """Shortens the timeouts of the tests of a suite."""
        for test in data.tests:
            # The value of the variable, with which the author of the test set a limit, is not known yet.
            with suppress(ValueError):
                own = float(timestr_to_secs(test.timeout)) if test.timeout else math.inf
                test.timeout = secs_to_timestr(min(self._seconds, own))


class RobotOptionsError(LossRatioError):
    """The options for Robot Framework are wrong."""


@dataclass(frozen=True)
class RunRequest:
    """A run of suites on one testbed."""

    topologies: tuple[Path, ...]
    """Topology files of equal testbeds. The first free testbed is taken."""
    suites: tuple[Path, ...]
    """Files and directories with suites; none: the job's suites."""
    include: tuple[str, ...] = ()
    """Tag patterns that select tests; none: all tests."""
    robot_options: tuple[str, ...] = ()
    """More options for Robot Framework, as on its command line."""
    wait: float = 0.0
    """Maximum time to wait for a testbed, in seconds."""
    purpose: str = ""
    """The reason, shown to other users of the testbed."""
    job: Path | None = None
    """The job file with the tests for the testbed; None: there is no job."""
    test_timeout: float | None = None
    """Seconds for each test, without its tear-down; None: there is no limit."""
    name: str = ""
    """Name of its directory in ``results``; empty: the testbed's name and the time."""

    def variable(self, name: str) -> str | None:
        """The value of a variable among the options, argument files included; None: it is not there.

        Raises:
            RobotOptionsError: As `robot_command`.
        """
        options, _ = self.robot_command([Path()])
        return value_of(name, options.get("variable", ()))

    def robot_command(self, suites: Sequence[Path]) -> tuple[dict[str, Any], list[str]]:
        """Options by long name without dashes, as `robot.run` takes them, argument files included; and the suites.

        Raises:
            RobotOptionsError: If Robot Framework does not accept the options, they run nothing or name the output, or
                no suite can read the value of a variable.
        """
        included = [argument for pattern in self.include for argument in ("--include", pattern)]
        try:
            options, sources = RobotFramework().parse_arguments(
                [*included, *self.robot_options, *map(str, suites)]
            )
            if len(sources) < len(suites):
                # The last option has taken the first suite for its value.
                raise DataError(_NOTHING_TO_RUN)
        except Information as error:
            raise RobotOptionsError(
                "Use robot itself for --help and --version: they do not run anything."
            ) from error
        except DataError as error:
            said = error.message
            if self.robot_options and said.startswith(_NOTHING_TO_RUN):
                said = f"{self.robot_options[-1]} has no value. Write one after it."
            raise RobotOptionsError(f"The options for Robot Framework are wrong: {said}") from error

        given = {name: value for name, value in options.items() if value not in (None, [], "")}
        for name in _NAME_THE_OUTPUT:
            if name in given:
                raise RobotOptionsError(
                    f"Robot Framework's option --{name} cannot be used here, because reports and --resume read "
                    "output.xml. Leave it out, also in argument files and in the environment variable ROBOT_OPTIONS."
                )
        for variable in given.get("variable", ()):
            name, colon, value = variable.partition(":")
            problem: str | None = _NO_VALUE
            if colon:
                problem = problem_with_variable(name, value)
            if problem:
                raise RobotOptionsError(f"--variable {variable}: {problem}")
        return given, list(map(str, sources))


def selected(
    options: Mapping[str, Any],
    suites: Sequence[str],
    modifiers: Sequence[SuiteVisitor],
    variables: Mapping[str, object],
) -> TestSuite:
    """The tests of suites that a run would run, as the modifiers and the options leave them.

    Args:
        options: The options for Robot Framework.
        suites: The suites.
        modifiers: The modifiers that change the suites before they run.
        variables: Variables that the suites get in addition to the variables of the options.

    Raises:
        RobotOptionsError: If Robot Framework cannot read the suites, or no test is selected, or none has one of the
            tags, and the options do not allow that.
        SuiteError: If a suite has a wrong value.
    """
    given = [f"{name}:{value}" for name, value in variables.items()]
    known = ""
    try:
        settings = RobotSettings(
            {**options, "variable": [*given, *_listed(options.get("variable"))]}
        )
        root = TestSuiteBuilder(
            included_extensions=settings.extension,
            included_files=settings.parse_include,
            custom_parsers=settings.parsers,
            lang=settings.languages,
            allow_empty_suite=settings.run_empty_suite,
        ).build(*suites)
        root.visit(ModelModifier(settings.pre_run_modifiers, settings.run_empty_suite, LOGGER))

        # Robot Framework would only show their errors, and run the suites unexpanded.
        for modifier in modifiers:
            root.visit(modifier)
        known = _to_choose_from(root, settings)
        if not settings.run_empty_suite:
            _check_tags(settings.include or (), [*root.all_tests])
        root.configure(**settings.suite_config)
    except DataError as error:
        raise RobotOptionsError(f"Nothing was run: {words_of(error)}{known}") from error
    return root


def _to_choose_from(root: TestSuite, settings: RobotSettings) -> str:
    """What the options choose from, as a sentence with a space before it: tags, or names; empty if neither."""
    if settings.include:
        return tags_near(settings.include, root.all_tests)
    if settings.suite_config["include_tests"]:
        names = list(dict.fromkeys(test.name for test in root.all_tests))
        some = ", ".join(names[:_MOST_NAMES]) + and_more(len(names[_MOST_NAMES:]))
        return f" Their names are: {some}." if names else ""
    return ""


def _check_tags(asked: Sequence[str], tests: Sequence[TestCase]) -> None:
    """Checks that each pattern of tags selects a test; if none does, Robot Framework refuses the run itself."""
    without = without_tests(asked, tests)
    if without and len(without) < len(asked):
        raise RobotOptionsError(
            f"Nothing was run: no test matches --include {without[0]}. Correct it, or leave it out."
            f"{tags_near(without, tests)}"
        )


def without_tests(patterns: Sequence[str], tests: Iterable[TestCase]) -> list[str]:
    """The patterns of tags that match none of the tests."""
    left = [*patterns]
    for test in tests:
        left = [pattern for pattern in left if not test.tags.match(pattern)]
    return left


def tags_near(asked: Iterable[str], tests: Iterable[TestCase]) -> str:
    """The tags that tests have, and the one that was meant, as sentences after a blank; empty if they have none."""
    tags = sorted({str(tag) for test in tests for tag in test.tags})
    if not tags:
        return ""
    near = next(filter(None, (did_you_mean(tag, tags) for tag in asked)), "")
    some = ", ".join(tags[:_MOST_NAMES]) + and_more(len(tags[_MOST_NAMES:]))
    return f" Their tags are: {some}.{near}"


def check_identities(root: TestSuite) -> None:
    """Checks that no two suites would write the results of the same test.

    Raises:
        RobotOptionsError: If two suites have the same test.
    """
    suites: dict[str, TestSuite] = {}
    for test in filter(_measures, root.all_tests):
        identity = identity_of(test)
        other = suites.setdefault(identity, test.parent)
        if other is test.parent:
            continue

        one, two = (suite.source or suite.full_name for suite in (other, test.parent))
        if one == two:
            raise RobotOptionsError(
                f"Nothing was run: the suite {one} is selected twice, and its test {identity} would write the same "
                "files again. Name the suite, and folders with it, only once."
            )
        raise RobotOptionsError(
            f"Nothing was run: {one} and {two} have the same test {identity}, and would write the same files. Select "
            "one of them, or give it a name of its own: Metadata    Id    NAME."
        )


class CheckModels(SuiteVisitor):  # type: ignore[misc]
    """Checks that a testbed can have the NIC models that suites ask for, before a node is touched."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology

    def start_keyword(self, keyword: Keyword) -> None:
        """Checks the argument `nic` of a set-up of the testbed.

        Raises:
            TopologyError: If no port can be of this model; the message has the line of the suite.
        """
        if normalize(str(keyword.name).rpartition(".")[2], ignore="_") != _SETS_UP:
            return

        for word in map(str, keyword.args):
            # The value of a variable is known only when the test runs.
            if word.startswith("nic=") and "{" not in word:
                try:
                    self._topology.check_model(word.removeprefix("nic="))
                except TopologyError as error:
                    raise TopologyError(f"{keyword.source}:{keyword.lineno}: {error}") from error


def words_of(error: DataError) -> str:
    """An error of Robot Framework without the names that Python gives to errors of the system."""
    words = _SYSTEM_ERROR.sub(r"\1.", str(error.message))
    words = _NO_TEXT.sub(r"byte \1 is not valid UTF-8.", words)
    return _NO_SUITE.sub("it is not a suite of Robot Framework in JSON.", words)


@cache
def _measuring_keywords() -> frozenset[str]:
    """The keywords that send traffic, by their names as Robot Framework compares them."""
    keywords = [getattr(LossRatio, name) for name in dir(LossRatio)]
    return frozenset(
        normalize(keyword.robot_name or keyword.__name__, ignore="_")
        for keyword in keywords
        if hasattr(keyword, "robot_name") and "profile" in signature(keyword).parameters
    )


def _measures(test: TestCase) -> bool:
    """Whether a test measures, as far as it shows; it does not look into user keywords."""
    words = (str(keyword.name or "") for keyword in _keywords_in([test.setup, *test.body]))
    names = {normalize(word.rpartition(".")[2], ignore="_") for word in words}
    return not names.isdisjoint(_measuring_keywords())


def _keywords_in(steps: Iterable[Any]) -> Iterator[Keyword]:
    """The keywords of a test or a block, including its inner blocks."""
    for step in steps:
        if isinstance(step, Keyword):
            yield step
        else:
            yield from _keywords_in(getattr(step, "body", ()))


def run_robot(
    options: Mapping[str, Any],
    suites: Sequence[str],
    *,
    variables: Mapping[str, object],
    directory: Path,
    test_timeout: float | None,
    modifiers: Sequence[object],
    listeners: Sequence[object] = (),
) -> tuple[int, tuple[TestVerdict, ...], tuple[str, ...]]:
    """Runs suites. Robot Framework handles Ctrl-C: the first Ctrl-C ends the run properly.

    Returns its return code, the verdict of each test that was begun, and messages about files that could not be
    written.

    Raises:
        StorageError: If Robot Framework's output cannot be written. All trials are kept.
    """
    verdicts = VerdictListener(directory)
    # The page is written below, after Robot Framework has ended.
    ours = {**variables, PAGE_VARIABLE: "lossratio run"}
    own_listeners = [*listeners, verdicts]
    if test_timeout is not None:
        own_listeners.append(Timeouts(test_timeout))
    is_page_shown = options.get("console") != "none"
    if wants_own_console(options):
        ours[OWN_CONSOLE] = "yes"
        own_listeners.append(Console())
        options = {**options, "console": "none"}

    given = [f"{name}:{value}" for name, value in ours.items()]
    options = {
        **options,
        "variable": [*given, *_listed(options.get("variable"))],
        "outputdir": str(directory),
        "listener": [*_listed(options.get("listener")), *own_listeners],
        "prerunmodifier": [*_listed(options.get("prerunmodifier")), *modifiers],
    }
    robot = _Robot()

    try:
        return_code = robot.execute(*suites, **options)
    except (OSError, ValueError):
        # Robot Framework closes its output a second time, which also fails.
        if robot.failure is None:
            raise
        return_code = FRAMEWORK_ERROR

    if robot.failure is not None:
        raise StorageError(
            f"Robot Framework cannot write its files in {directory}: {robot.failure.strerror}. All trials are kept. "
            f"{way_to_continue(directory)}"
        ) from robot.failure

    if return_code == STOPPED_BY_USER:
        verdicts.cut_off()
    page = _write_page(directory, is_shown=is_page_shown)
    return return_code, verdicts.verdicts, (*verdicts.troubles, *page)


def way_to_continue(directory: Path) -> str:
    """What to do after the disk was full when a run wrote its files: a sentence without a full stop."""
    return f"{FREE_SPACE}, and continue with: lossratio run --resume {shell_word(directory)}"


def _write_page(directory: Path, *, is_shown: bool) -> Iterator[str]:
    """Writes the page of the run; damaged files go to standard error.

    Yields:
        A message if the page cannot be written.
    """
    try:
        for path in write_reports(directory, [PAGE]):
            if is_shown:
                with suppress(OSError):
                    logger.console(f"The page: {path}")
    except StorageError as error:
        yield str(error)
    except ReportError as error:
        print(f"The run has no report. {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(
            "The run was stopped before its report was written. To write it: lossratio report "
            f"{shell_word(directory)}",
            file=sys.stderr,
        )


class _Robot(RobotFramework):  # type: ignore[misc]
    """Robot Framework without a traceback if a disk is full."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: OSError | None = None

    def main(self, datasources: Any, **options: Any) -> int:
        try:
            return int(super().main(datasources, **options))
        except OSError as error:
            self.failure = error
            return int(FRAMEWORK_ERROR)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    return list(value)
