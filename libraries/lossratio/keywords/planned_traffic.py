"""The traffic of tests that have not begun: the traffic profiles that their keywords name, as far as suites show it.

So what a profile needs from the generator is checked before any machine is touched.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from robot.errors import DataError
from robot.running import Keyword, TestCase
from robot.utils import normalize

from lossratio.errors import ProfileError
from lossratio.topology import Topology
from lossratio.traffic import check_sends_streams, read_profile

_PROFILE = "profile"
_NAMED = (_PROFILE, "warm_up_profile")
_LIST_VARIABLE = "@{"


@dataclass(frozen=True)
class NamedProfile:
    """A traffic profile that a test will use."""

    test: str
    """Full name of the test."""
    profile: str
    """The profile's name or file as the test has it, perhaps with variables."""


def named_profiles(library: type, tests: Iterable[TestCase]) -> Iterator[NamedProfile]:
    """Finds the profiles that tests name in the arguments of a library's keywords; it does not look into user keywords.

    Args:
        library: The class of the keywords.
        tests: The tests, as they are before they run.
    """
    places = dict(_places_of_profiles(library))
    for test in tests:
        for keyword in _keywords_in([test.setup, *test.body]):
            _, _, name = (keyword.name or "").rpartition(".")
            place = places.get(normalize(name, ignore="_"))
            if place is not None:
                for profile in _profiles_in(keyword.args, place):
                    yield NamedProfile(test.full_name, profile)


def measuring(library: type, tests: Iterable[TestCase]) -> Iterator[TestCase]:
    """The tests that measure with a library's keywords; it does not look into user keywords.

    Args:
        library: The class of the keywords.
        tests: The tests, as they are before they run.
    """
    names = {name for name, _ in _places_of_profiles(library)}
    for test in tests:
        words = (str(keyword.name or "") for keyword in _keywords_in([test.setup, *test.body]))
        if any(normalize(word.rpartition(".")[2], ignore="_") in names for word in words):
            yield test


def check_planned_streams(
    named: Iterable[NamedProfile], topology: Topology, replaced: Callable[[str], object]
) -> None:
    """Makes sure that a generator can send the streams of the profiles that tests will use.

    If a profile is not known yet or cannot be read, its test reports that.

    Args:
        named: The profiles.
        topology: The topology with the generator.
        replaced: Replaces variables by their values; raises DataError if a variable has no value yet.

    Raises:
        ProfileError: If the generator cannot send some of the streams.
    """
    checked: set[str] = set()
    for each in named:
        try:
            profile = str(replaced(each.profile))
        except DataError:
            continue
        if profile in checked:
            continue
        checked.add(profile)

        try:
            described = read_profile(profile)
        except ProfileError:
            continue
        try:
            check_sends_streams(topology, described)
        except ProfileError as error:
            raise ProfileError(f"Test {each.test}: {error}") from error


def _places_of_profiles(library: type) -> Iterator[tuple[str, int]]:
    """The keywords with a profile, and its position; an argument that must be named comes after all others."""
    for method_name in dir(library):
        method = getattr(library, method_name)
        if not hasattr(method, "robot_name"):
            continue
        _, *parameters = inspect.signature(method).parameters.values()
        names = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
        has_profile = any(each.name == _PROFILE for each in parameters)
        if has_profile:
            place = names.index(_PROFILE) if _PROFILE in names else len(parameters)
            yield normalize(method.robot_name or method_name, ignore="_"), place


def _keywords_in(steps: Iterable[Any]) -> Iterator[Keyword]:
    """The keywords of a test or a block, including its inner blocks."""
    for step in steps:
        if isinstance(step, Keyword):
            yield step
        else:
            yield from _keywords_in(getattr(step, "body", ()))


def _profiles_in(arguments: Iterable[Any], place: int) -> Iterator[str]:
    """The profiles among the arguments of a keyword, if known.

    Args:
        arguments: The arguments.
        place: How many positional arguments come before the profile.
    """
    unnamed = []
    for argument in map(str, arguments):
        name, is_named, value = argument.partition("=")
        if is_named and name in _NAMED:
            yield value
        elif not (is_named and name.isidentifier()):
            unnamed.append(argument)

    before = unnamed[:place]
    are_places_known = not any(argument.startswith(_LIST_VARIABLE) for argument in before)
    if are_places_known and len(unnamed) > place:
        yield unnamed[place]
