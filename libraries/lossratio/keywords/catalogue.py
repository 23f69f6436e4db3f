"""Expands suites: each test becomes one test per frame size, number of cores and NIC model."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from robot.api import SuiteVisitor
from robot.errors import DataError
from robot.run import RobotFramework
from robot.running import TestCase, TestSuite, Var
from robot.utils import eq
from robot.variables import Variables

from lossratio.errors import LossRatioError, TopologyError
from lossratio.results import VARIATION
from lossratio.topology import NicModel, Topology, TrafficPath, load_topology
from lossratio.traffic import RFC2544_FRAME_SIZES, parse_frame_size
from lossratio.values import names_near, shortened, shown_value

FRAME_SIZES = (*(f"{size}B" for size in RFC2544_FRAME_SIZES), "IMIX")
"""Frame sizes of suites that do not name any."""
_FRAME_SIZE = "${FRAME_SIZE}"
_CORES = "${CORES}"
_TOPOLOGY = "${TOPOLOGY}"
_DUTS = "${DUTS}"
_VARIANT = "${VARIANT}"
_KEPT = re.compile(r"(?!\w+=)|(nic|links)=")
"""Arguments of a set-up that are not about DUTs."""
_ARGUMENTS = ("topology", "frame_sizes", "cores", "duts", "nic")
_LINKS = {1: "single", 2: "double"}


class SuiteError(LossRatioError):
    """A suite cannot be expanded: its metadata or an argument of its set-up is wrong."""


@dataclass(frozen=True)
class _Setting:
    name: str = ""
    """What distinguishes this setting from the others; empty if it is the only one."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values of variables, by their names."""
    tags: tuple[str, ...] = ()
    """Tags of its tests."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The variables that the suite's metadata lists."""
    arguments: tuple[str, ...] = ()
    """Arguments of its set-up, which replace arguments of the same names."""
    place: str = ""
    """The part of the name that describes the testbed: the NIC model."""


class Catalogue(SuiteVisitor):  # type: ignore[misc]
    """Expands performance suites before Robot Framework selects tests by tags.

    Use it as ``robot --prerunmodifier lossratio.keywords.Catalogue:topologies/lab.yaml tests/performance``.

    A test whose name has ``${FRAME_SIZE}`` in it becomes one test for each frame size in the suite's metadata
    ``Frame Sizes``, or `FRAME_SIZES`. A suite with the metadata ``Cores`` is made once for each number of cores
    (``${CORES}``); other suites have ``1``. If other metadata is a variable in the names of the tests, such as
    ``Tunnels`` (``${TUNNELS}``), the suite is made once for each of its values. With a topology, the suite is made for
    each NIC model of the DUTs on the path, with as many parallel links as its set-up requests (``links=2``). Then
    ``${NIC}``, ``${DUTS}`` and ``${TOPOLOGY}`` are set, and tests get FD.io CSIT's tags for topology and NIC. If a
    suite is made more than once, each copy becomes a child suite.

    Metadata such as ``Variant 20k`` lists tags and arguments of the set-up: the suite is made for each such name
    (``${VARIANT}``), and the listed arguments replace the set-up's own, e.g. ``scale routes=20000``.
    ``Algorithms none`` does the same for a value of ``Algorithms``. On a path without DUTs (``duts=0``), suites measure
    the TG alone, with ``-tg`` in their names and the tag ``trex``, as in CSIT.

    Variables in names, tags and the arguments of the suite's set-up are replaced as Robot Framework itself replaces
    them. So a suite also runs without this modifier: once, with the variables' values. If the command line of Robot
    Framework sets ``FRAME_SIZE`` or ``CORES``, these values replace the suites' own.

    A wrong argument, or a wrong value in a suite, is one error, and no test runs. Otherwise, Robot Framework would run
    the suites unexpanded.
    """

    def __init__(self, *arguments: str) -> None:
        """Takes the arguments from the command line. Robot Framework would drop an argument that is given twice.

        Args:
            arguments: Up to five texts, each with its name, e.g. ``cores=1,2``, or in this order: `topology` (the
                topology file), `frame_sizes` and `cores` (values that replace the suites' own, separated by commas),
                `duts` (how many DUTs the path goes through; by default all), and `nic` (the NIC model; by default all
                models that have a path).
        """
        self._expander: SuiteExpander | None = None
        self._problem = ""
        try:
            given = {**_of_command_line(), **_by_name(list(map(str, arguments)))}
            _check_values(given)
            self._expander = SuiteExpander(**given)
        except (LossRatioError, ValueError) as error:
            self._problem = str(error)

    def start_suite(self, suite: TestSuite) -> bool | None:
        """Expands a suite's tests. If something is wrong, it raises DataError, and leaves no test in any suite."""
        problem = self._problem
        if self._expander is not None:
            try:
                return self._expander.start_suite(suite)
            except SuiteError as error:
                problem = str(error)

        while suite.parent is not None:
            suite = suite.parent
        suite.tests.clear()
        suite.suites.clear()
        raise DataError(problem)


def value_of(name: str, variables: Sequence[str]) -> str | None:
    """The value of a variable among those of a command line, e.g. ``FRAME_SIZE:64B``; None: it is not there."""
    given = [word.partition(":") for word in variables]
    same = [value for word, _, value in given if eq(word, name, ignore="_")]
    return same[-1] if same else None


def _of_command_line() -> dict[str, str]:
    """The arguments that variables on the command line of Robot Framework mean; none if another program runs it."""
    if "robot" not in Path(sys.argv[0]).parts[-2:]:
        return {}
    options, _ = RobotFramework().parse_arguments(sys.argv[1:])
    values = {
        argument: value_of(name, options.get("variable", ()))
        for name, argument in (("FRAME_SIZE", "frame_sizes"), ("CORES", "cores"))
    }
    return {argument: value for argument, value in values.items() if value is not None}


def _by_name(arguments: Sequence[str]) -> dict[str, str]:
    """The values of arguments by their names; an argument without a name has the name of its place.

    Raises:
        ValueError: If an argument does not exist, is given twice, or has no name after one that has.
    """
    given: dict[str, str] = {}
    names = list(_ARGUMENTS)
    for argument in arguments:
        name, sign, value = argument.partition("=")
        if not (sign and name.isidentifier()) or Path(argument).exists():
            if not names:
                raise ValueError(
                    f"The argument {shown_value(argument)} has no name. Write it like cores=1,2. "
                    f"The names are {', '.join(_ARGUMENTS)}."
                )
            name = names.pop(0)
            value = argument
        else:
            names = []

        if name not in _ARGUMENTS:
            raise ValueError(
                f"There is no argument {shown_value(name)}. The arguments are {names_near(name, _ARGUMENTS)}"
            )
        if name in given:
            raise ValueError(
                f"The argument {name} is given twice: {shown_value(given[name])} and {shown_value(value)}. Leave one "
                "of them out, or separate values with a comma."
            )
        given[name] = value
    return given


def _check_values(given: Mapping[str, str]) -> None:
    """Checks the values of arguments.

    Raises:
        LossRatioError: If a frame size is none.
        ValueError: If a number is none.
    """
    for size in _listed(given.get("frame_sizes")):
        parse_frame_size(size)
    for number in _listed(given.get("cores")):
        _check_cores(number, f"cores={shortened(number)}")
    duts = given.get("duts")
    if duts is not None and not duts.isdecimal():
        raise ValueError(
            f"duts={shortened(duts)}: {shown_value(duts)} is not a whole number; write it like 1."
        )


def _check_cores(number: str, place: str) -> None:
    if not (number.isascii() and number.isdecimal() and int(number)):
        raise ValueError(
            f"{place}: {shown_value(number)} is not a whole number above 0; write it like 1."
        )


class SuiteExpander(SuiteVisitor):  # type: ignore[misc]
    """The expansion that `Catalogue` makes; it raises errors at once.

    Raises:
        TopologyError: If the file does not describe a usable testbed, or has no such path.
        SuiteError: If a suite that it visits has a wrong value.
    """

    def __init__(
        self,
        topology: str | None = None,
        frame_sizes: str | None = None,
        cores: str | None = None,
        duts: str | None = None,
        nic: str | None = None,
    ) -> None:
        self._frame_sizes = _listed(frame_sizes)
        self._cores = _listed(cores)
        self._file = None if topology is None else Path(topology)
        self._topology = None if topology is None else load_topology(topology)
        self._duts = None if duts is None else int(duts)
        self._nic = nic
        if self._topology is not None:
            self._topology.path(duts=self._duts, nic=nic)

    def start_suite(self, suite: TestSuite) -> bool | None:
        """Expands a suite, if it has tests to expand."""
        if not any(_depends_on(test.name, _FRAME_SIZE) for test in suite.tests):
            return None

        settings = self._settings(suite)
        if len(settings) == 1:
            self._expand(suite, settings[0])
            return None

        # The suite is copied through its data, because a deep copy would also copy all parents.
        suites = [
            TestSuite.from_dict({**suite.to_dict(), "name": setting.name}) for setting in settings
        ]
        for copy, setting in zip(suites, settings, strict=True):
            self._expand(copy, setting)
        _distinguish(suites, settings)
        suite.tests.clear()
        suite.resource.imports.clear()
        suite.setup = suite.teardown = None
        suite.suites.extend(suites)

        return False

    def _settings(self, suite: TestSuite) -> list[_Setting]:
        _check_metadata(suite)
        counts = self._cores or _listed_by(suite, "Cores") or ("1",)
        settings = []
        for place, values, cores in product(self._places(suite), _variants(suite), counts):
            in_name = f"{cores}c" if len(counts) > 1 else ""
            words = _words(suite, values)
            name = " ".join(filter(None, (place.name, *values.values(), in_name)))
            variables = {**place.variables, **values, _CORES: cores}
            tags = (*place.tags, *(word for word in words if "=" not in word))
            options = tuple(word for word in words if "=" in word)
            settings.append(_Setting(name, variables, tags, values, options, place.name))
        return settings

    def _places(self, suite: TestSuite) -> tuple[_Setting, ...]:
        """The paths that the suite can be made for, or else a single place that has only the topology file."""
        if self._topology is None or self._file is None:
            return (_Setting(),)

        asked = _number_in_set_up(suite, "duts")
        duts = self._duts if asked is None or self._duts == 0 else asked
        models: tuple[str | None, ...] = (self._nic,)
        if self._nic is None:
            models = _models_with_a_path(self._topology, duts)

        several = len(models) > 1
        links = _number_in_set_up(suite, "links") or 1
        found = [(model, _paths(self._topology, duts, model, links)) for model in models]
        places = [
            _place(self._file, paths, self._topology, model, several=several)
            for model, paths in found
            if paths
        ]

        return (*places,) or (_Setting(variables={_TOPOLOGY: str(self._file)}),)

    def _expand(self, suite: TestSuite, setting: _Setting) -> None:
        if suite.has_setup:
            names = {argument.partition("=")[0] for argument in setting.arguments}
            kept = (arg for arg in suite.setup.args if str(arg).partition("=")[0] not in names)
            suite.setup.args = (*kept, *setting.arguments)
            if setting.variables.get(_DUTS) == "0":
                # Its loopback twin: the same traffic without a DUT.
                kind = _literal_argument(suite, "dut")
                suite.setup.args = (
                    *(arg for arg in suite.setup.args if _KEPT.match(str(arg))),
                    "duts=0",
                    "dut=none",
                )
                for test in suite.tests:
                    old = test.name.rpartition("-")[0].partition(f"{_CORES}c-")[2]
                    test.name = "-tg-".join(test.name.rsplit("-", 1))
                    tags = [tag for tag in test.tags if tag not in (kind, old)]
                    test.tags = [*tags, *twin_tags(old)]

            variables = _variables(setting.variables)
            suite.setup.args = tuple(_replaced(arg, variables) for arg in suite.setup.args)

        sizes = self._frame_sizes or _listed_by(suite, "Frame Sizes") or FRAME_SIZES
        suite.tests = [copy for test in suite.tests for copy in _copies(test, sizes, setting)]


def twin_tags(name: str) -> tuple[str, ...]:
    """Tags of a suite's twin without DUTs, by the suite's name, such as ``ethip4-ip4scale20k``.

    As in CSIT, a part of the name (``ip4scale20k``) is a tag of the twin only: the suite itself has ``fib_20k``.
    """
    addresses = (word for word in name.split("-")[1:2] if word.startswith(("ip4", "ip6")))
    return ("trex", f"{name}-tg", *addresses)


def _distinguish(suites: Sequence[TestSuite], settings: Sequence[_Setting]) -> None:
    """Gives the suites of one file distinct identities, which do not depend on the number of suites."""
    names = [
        (setting.place, test.name)
        for suite, setting in zip(suites, settings, strict=True)
        for test in suite.tests
    ]
    # Apart from the NIC, names of tests usually contain everything that distinguishes their suites.
    are_told_by_names = len(set(names)) == len(names)
    for suite, setting in zip(suites, settings, strict=True):
        variation = setting.place if are_told_by_names else setting.name
        if variation:
            suite.metadata[VARIATION] = variation


def _copies(test: TestCase, sizes: Sequence[str], setting: _Setting) -> Iterable[TestCase]:
    if not _depends_on(test.name, _FRAME_SIZE):
        yield test
        return
    for size in sizes:
        variables = _variables({**setting.variables, _FRAME_SIZE: size})
        tags = [*(_replaced(tag, variables) for tag in test.tags), *setting.tags]
        copy = TestCase.from_dict(
            {**test.to_dict(), "name": _replaced(test.name, variables), "tags": tags}
        )
        for name, value in {_FRAME_SIZE: size, **setting.values}.items():
            copy.body.insert(0, Var(name, (value,), lineno=test.lineno))
        yield copy


def _variants(suite: TestSuite) -> list[dict[str, str]]:
    """Every combination of variable values that a suite is made for, besides the usual variables.

    The variables are the suite's variants, and metadata whose names are variables in the names of its tests.
    """
    lists: dict[str, dict[str, None]] = {}
    for name in map(str, suite.metadata):
        word, _, value = name.partition(" ")
        variable = f"${{{word.upper()}}}"
        if variable == _VARIANT or _is_in_names(suite, variable):
            values = (value,) if value else _listed_by(suite, name)
            lists.setdefault(variable, {}).update(dict.fromkeys(values))

    return [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]


def _is_in_names(suite: TestSuite, variable: str) -> bool:
    return variable != _CORES and any(_depends_on(test.name, variable) for test in suite.tests)


def _words(suite: TestSuite, values: Mapping[str, str]) -> tuple[str, ...]:
    """The tags and arguments in the metadata of a variant or of another value."""
    return tuple(
        word
        for variable, value in values.items()
        for word in _listed_by(suite, f"{variable[2:-1]} {value}")
    )


def _place(
    file: Path, paths: Sequence[TrafficPath], topology: Topology, nic: str | None, *, several: bool
) -> _Setting:
    duts = len(paths[0].hops)
    variables = {_TOPOLOGY: str(file), _DUTS: str(duts), **({} if nic is None else {"${NIC}": nic})}
    tags = [f"{duts + 1}_node_{_LINKS.get(len(paths), len(paths))}_link_topo"]
    if topology.testbed == "lab":
        tags.append("hw_env")
    if nic is not None:
        tags.append(NicModel(nic, None, None).tag)
    return _Setting(nic or "" if several else "", variables, tuple(tags))


def _models_with_a_path(topology: Topology, duts: int | None) -> tuple[str | None, ...]:
    """The NIC models of DUT ports that have a path. If the topology names no models, None is the only one."""
    ports = (
        port
        for ends in topology.links().values()
        for port in ends
        if port.node_name not in topology.tg_names
    )
    models = dict.fromkeys(
        port.interface.model for port in ports if port.interface.model is not None
    )
    return tuple(model for model in models if _paths(topology, duts, model)) or (None,)


def _paths(
    topology: Topology, duts: int | None, nic: str | None, links: int = 1
) -> Sequence[TrafficPath]:
    """The parallel paths, or no path if there are too few."""
    try:
        return topology.paths(links, duts=duts, nic=nic)
    except TopologyError:
        return ()


def _listed(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    return (*dict.fromkeys(part.strip() for part in text.split(",") if part.strip()),)


def _literal_argument(suite: TestSuite, name: str) -> str | None:
    """An argument of the suite's set-up that contains no variable; None: there is none."""
    args = suite.setup.args if suite.has_setup else ()
    values = (str(arg).partition("=") for arg in args)

    return next((value for key, _, value in values if key == name and "{" not in value), None)


def _listed_by(suite: TestSuite, name: str) -> tuple[str, ...]:
    return (*dict.fromkeys(str(suite.metadata.get(name, "")).split()),)


def _check_metadata(suite: TestSuite) -> None:
    """Checks the frame sizes and numbers of cores that a suite lists."""
    for name in ("Frame Sizes", "Cores"):
        for value in _listed_by(suite, name):
            place = f"{suite.source or suite.name}: Metadata {name}"
            if "," in value:
                raise SuiteError(
                    f"{place}: {shown_value(value)} has a comma. Separate the values with spaces."
                )

            try:
                if name == "Cores":
                    _check_cores(value, place)
                else:
                    parse_frame_size(value)
            except ValueError as error:
                raise SuiteError(f"{place}: {str(error).removeprefix(f'{place}: ')}") from error


def _number_in_set_up(suite: TestSuite, name: str) -> int | None:
    """A number among the arguments of the suite's set-up; None: there is none, or a variable has it."""
    value = _literal_argument(suite, name)
    if value is None:
        return None
    if not value.isdecimal():
        raise SuiteError(
            f"{suite.source or suite.name}: Suite Setup: {name}={shortened(value)}: {shown_value(value)} is not a "
            "whole number; write it like 1."
        )
    return int(value)


def _depends_on(text: str, variable: str) -> bool:
    return _replaced(text, _variables({variable: "1"})) != text


def _variables(values: Mapping[str, str]) -> Variables:
    variables = Variables()
    for name, value in values.items():
        variables[name] = value
    return variables


def _replaced(text: str, variables: Variables) -> str:
    """Replaces known variables, and leaves the others to Robot Framework."""
    return str(variables.replace_string(text, ignore_errors=True))
