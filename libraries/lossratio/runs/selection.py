"""Which tests of a run are left out: before the run, or when their suite begins."""

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from robot.api import SuiteVisitor
from robot.errors import RobotError
from robot.libraries.BuiltIn import BuiltIn

from lossratio.results import identity_of, may_have_result, suite_identity_of


class OnlySome(SuiteVisitor):  # type: ignore[misc]
    """Leaves tests out. Robot Framework calls it before a run."""

    def __init__(self, is_chosen: Callable[[Any], bool]) -> None:
        self._is_chosen = is_chosen

    def start_suite(self, suite: Any) -> None:
        """Leaves out tests of a suite."""
        suite.tests = [test for test in suite.tests if self._is_chosen(test)]

    def end_suite(self, suite: Any) -> None:
        """Leaves out suites without tests."""
        suite.suites = [child for child in suite.suites if child.has_tests]

    def visit_test(self, test: Any) -> None:
        """Changes nothing, because tests stay as they are."""


class OnlyRest:
    """Leaves out finished tests when their suite begins; a Robot Framework listener.

    From then on, variables in the names of tests and in the ``Id`` of a suite have their values.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, finished: Iterable[str]) -> None:
        self._finished = frozenset(finished)

    def start_suite(self, data: Any, result: Any) -> None:
        """Leaves out finished tests of a suite."""
        suite = suite_identity_of(result)
        data.tests = [
            test for test in data.tests if f"{suite}.{_resolved(test.name)}" not in self._finished
        ]


def _resolved(name: str) -> str:
    """A name with the values of its variables."""
    try:
        return str(BuiltIn().replace_variables(name))
    except RobotError:
        # The set-up of the suite gives the variable its value; otherwise, the name stays as it is.
        return name


def only(names: Sequence[str]) -> list[SuiteVisitor]:
    """Modifiers that leave out all tests except those that may have these results; without names, no modifiers."""

    def is_chosen(test: Any) -> bool:
        return any(may_have_result(test, name) for name in names)

    if not names:
        return []
    return [OnlySome(is_chosen)]


def all_but(finished: Container[str]) -> SuiteVisitor:
    """The modifier that leaves out finished tests."""

    def is_left(test: Any) -> bool:
        return identity_of(test) not in finished

    return OnlySome(is_left)
