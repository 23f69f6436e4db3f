"""What the suites of FD.io CSIT set up, and what ours set up, in the same words.

The words are in ``csit_setups.yaml``: facts about CSIT's keywords, and about options of our set-up.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot.api import get_model
from robot.errors import DataError
from robot.parsing.model import KeywordSection, SettingSection, VariableSection
from robot.running import TestCase, Var
from robot.variables import Variables

from lossratio.dut import parse_options
from lossratio.errors import JobError
from lossratio.files import load_yaml_file
from lossratio.keywords import twin_tags
from lossratio.runs import words_of
from lossratio.traffic import Headers, ProfileFile, read_profile
from lossratio.trials import Exchange
from lossratio.values import FileModel, shown_value

_AGAIN = "Get the file from CSIT's repository again."
_SETUPS = Path(__file__).with_name("csit_setups.yaml")
_NAME = re.compile(r"(?:(?P<nodes>\d)n\dl-)?[^-]+-(?P<suite>.+)-ndrpdr")
_NODES_UNLESS_NAMED = 3
_PREPOSITION = re.compile(r"(?:given|when|then|and|but) ", re.IGNORECASE)
_VALUE = re.compile(r"\$\{(?P<value>[^{}$]*)\}")
_VARIABLE = re.compile(r"\$\{(?P<name>\w+)\}")
_OF_TESTBED_OR_KIND = re.compile(
    r"NIC_|DRV_|RXQ_SIZE|TXQ_SIZE|HW_ENV|\dNUMA|\d_NODE|TG_DRV|N2N|PERFTEST|NDRPDR", re.IGNORECASE
)
"""Tags that the testbed, the NIC or the kind of test decides."""
_DECLARED = "Differs From CSIT"
_KEEPS_SESSIONS = frozenset({"nat", "det44_hosts", "sfdp"})
"""Options with which connections are open before each trial, unless the trial opens them."""
_NOT_OF_THE_DUT = frozenset({"duts", "nic", "links"})

_PRODUCT = re.compile(r"(\d+)([*/])(\d+)")
_SHORT = {
    "source MAC addresses": "MAC src",
    "destination MAC addresses": "MAC dst",
    "source addresses": "src",
    "destination addresses": "dst",
    "source ports": "sport",
    "destination ports": "dport",
    "inner source addresses": "inner src",
    "inner destination addresses": "inner dst",
    "network identifiers": "vni",
}

_Key = tuple[str, int, str]
"""A kind of DUT, the number of nodes, and the name of a suite."""
Setup = Mapping[str, str]
"""Aspects of a set-up, such as ``forwarding``, and what is set up there."""


class _Words(FileModel):
    profiles: dict[str, str]
    keywords: dict[str, Setup]
    variables: dict[str, Setup]
    options: dict[str, Setup]
    values: dict[str, str]


@dataclass(frozen=True)
class Described:
    """What a test is about: its frames, its set-up and its tags."""

    frames: str
    """What is sent, in the words of ``csit_setups.yaml``; CSIT's profile if these do not have it."""
    ports: int
    """Ports of the TG."""
    setup: Setup
    """What is set up on the devices."""
    tags: frozenset[str]
    """CSIT's tags, in lower case and without ``_``, except those that the testbed or the kind of test decides."""
    declared: frozenset[str] = frozenset()
    """The aspects in which the suite says that it differs from CSIT's."""

    def differences(self, other: "Described") -> dict[str, tuple[str, str]]:
        """The aspects in which CSIT's test (`self`) and our test (`other`) differ, with both values."""
        mine = {"frames": self.frames, "ports": str(self.ports), **self.setup}
        theirs = {"frames": other.frames, "ports": str(other.ports), **other.setup}
        found = {
            aspect: (mine.get(aspect, "no"), theirs.get(aspect, "no"))
            for aspect in {**mine, **theirs}
            if mine.get(aspect, "no") != theirs.get(aspect, "no")
        }

        missing = self.tags - other.tags
        if missing:
            found["tags"] = (" ".join(sorted(missing)), "no")
        return found


class CsitSuites:
    """The suites in a clone of CSIT's repository, read when they are asked for.

    Args:
        root: The clone.
    """

    def __init__(self, root: Path) -> None:
        tests = root / "tests"
        self._files = {key: path for path in sorted(tests.glob("**/*.robot")) if (key := _key(path.relative_to(tests)))}
        self._words = load_yaml_file(_SETUPS, _Words, JobError)
        self._described: dict[_Key, Described] = {}

    def __bool__(self) -> bool:
        return bool(self._files)

    def of(self, dut: str, nodes: int, suite: str) -> Described | None:
        """What a suite of CSIT for a kind of DUT is about; None if there is no such suite.

        Raises:
            JobError: If Robot Framework cannot read the suite.
        """
        key = (dut, nodes, suite)
        if key not in self._files:
            return None
        if key not in self._described:
            self._described[key] = self._read(self._files[key], nodes)
        return self._described[key]

    def ours(self, test: TestCase, nodes: int) -> Described:
        """What an expanded test of ours is about, on a path with this many nodes."""
        given = _given(test)
        arguments = dict(_named(_arguments(test)))
        profile = read_profile(arguments.get("profile", "ethip4-udp"))
        parts = test.parent.metadata.get(_DECLARED, "").split(",")
        declared = frozenset(part.strip() for part in parts if part.strip())
        options = {name: value for name, value in given.items() if name not in _NOT_OF_THE_DUT}
        cores_aside = {name: value for name, value in options.items() if name != "cores"}
        setup: dict[str, str] = {}
        if nodes > 1:
            setup = self._said(self._words.options, cores_aside, nodes)
            setup["overhead"] = str(_overhead(options) + profile.headroom)
            setup["nodes"] = str(nodes_of(test) or nodes)
            connects = test.template == "Find Connection Rate"
            if connects:
                exchange = Exchange(data_frames=int(arguments.get("data_frames", 0)), closing=arguments.get("closing"))
                setup["frames of a connection"] = str(exchange.passes(is_tcp=profile.tcp is not None))
            opens = connects and "established" not in arguments
            if _KEEPS_SESSIONS & options.keys() and not opens:
                setup["before the first trial"] = "all connections are open"

        return Described(
            frames_in_words(profile),
            2 * int(given.get("links", 1)),
            setup,
            _plain(test.tags if nodes > 1 else _of_twin(test.tags)),
            declared,
        )

    def _read(self, path: Path, nodes: int) -> Described:
        try:
            model = get_model(path)
        except DataError as error:
            raise JobError(f"{path} is not a suite of Robot Framework: {words_of(error)}") from error

        tags: list[str] = []
        keywords: list[str] = []
        variables: dict[str, str] = {}
        for section in model.sections:
            if isinstance(section, SettingSection):
                tags += _tags_of(section)
            elif isinstance(section, VariableSection):
                variables |= _variables_of(section)
            elif isinstance(section, KeywordSection):
                for name, arguments in _calls_of(section):
                    keywords.append(name)
                    variables |= dict(_named(_resolved(value, variables) for value in arguments))

        ports = variables.get("nic_pfs", "")
        if not ports.isdecimal():
            raise JobError(f"{path}: the variable 'nic_pfs' must be a whole number, not {shown_value(ports)}. {_AGAIN}")
        try:
            return Described(
                self._frames(variables["traffic_profile"]),
                int(ports),
                self._set_up(keywords, variables, nodes),
                _plain(tag for tag in tags if not _OF_TESTBED_OR_KIND.match(tag)),
            )
        except KeyError as error:
            raise JobError(f"{path} does not set the variable {error}, as suites of CSIT do. {_AGAIN}") from error

    def _set_up(self, keywords: Sequence[str], variables: Mapping[str, str], nodes: int) -> Setup:
        """What a suite of CSIT sets up; nothing if the TG tests itself."""
        if nodes == 1:
            return {}

        setup: dict[str, str] = {"nodes": str(nodes), "overhead": variables["overhead"]}
        known = {name.lower(): said for name, said in self._words.keywords.items()}
        for name in keywords:
            said = known.get(name.lower(), {f"keyword {name}": "unknown"})
            setup |= {aspect: self._told(text, variables, nodes) for aspect, text in said.items()}

        listed = self._words.variables
        options = {name: value for name, value in variables.items() if _entries(listed, name, value)}
        return {**setup, **self._said(listed, options, nodes, variables)}

    def _frames(self, profile: str) -> str:
        for pattern, words in self._words.profiles.items():
            if match := re.fullmatch(pattern, profile):
                return _PRODUCT.sub(_multiplied, match.expand(words))
        return profile

    def _said(
        self,
        table: Mapping[str, Setup],
        options: Mapping[str, str],
        nodes: int,
        variables: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """What options set up. An entry for a value takes precedence over an entry for all values."""
        general: dict[str, str] = {}
        special: dict[str, str] = {}
        for name, value in options.items():
            known = {**(variables or options), "value": value}
            if not _entries(table, name, value):
                special[f"option {name}"] = value
            for found, key in ((general, name), (special, f"{name}={value}")):
                found |= {aspect: self._told(text, known, nodes) for aspect, text in table.get(key, {}).items()}
        return {**general, **special}

    def _told(self, text: str, variables: Mapping[str, str], nodes: int) -> str:
        place = "the DUT" if nodes == 2 else "DUT1"
        return self._same(text.format_map({**variables, "dut": place}))

    def _same(self, value: str) -> str:
        return self._words.values.get(value, value)


def frames_in_words(profile: ProfileFile) -> str:
    """What a profile of ours sends: its protocols, and the fields that change from frame to frame, each way.

    Addresses and ports are others than CSIT's. What counts is how many there are, their distance and order, and how
    many frames differ.
    """
    way = _way_in_words(profile)
    if not profile.bidirectional:
        return f"one way {way}"
    back = profile.reverse.headers
    back_in_words = way if back is None else _way_in_words(back)
    if back_in_words == way:
        return way
    return f"{way}; back {back_in_words}"


def _way_in_words(headers: Headers) -> str:
    packets = [headers] if headers.tunnel is None else [headers, headers.tunnel.inner]
    protocols = []
    for packet in packets:
        protocols += [f"VLAN {vlan}" for vlan in packet.vlans if vlan is not None]
        protocols.append(f"IPv{packet.ip.version} {packet.protocol}")

    if headers.geneve is not None:
        protocols.insert(1, "checksum")

    changes = []
    for name, values in headers.ranges():
        step = f" by {values.step}" if values.step else ""
        order = " at random" if values.order == "random" else ""
        if values.count > 1:
            changes.append(f"{values.count} {_SHORT.get(name, name)}{step}{order}")
    if len(changes) > 1:
        changes.append(f"{headers.flows} flows")
    return f"{', '.join(protocols)}: {', '.join(changes) or 'one flow'}"


def _multiplied(product: re.Match[str]) -> str:
    first, sign, second = product.groups()
    if sign == "*":
        return str(int(first) * int(second))
    return str(int(first) // int(second))


def nodes_of(test: TestCase) -> int | None:
    """The number of nodes on the path that an expanded test of ours requires; None: any number."""
    duts = _given(test).get("duts", "")
    if duts.isdecimal():
        return int(duts) + 1
    return None


def _given(test: TestCase) -> dict[str, str]:
    """The named arguments of the set-up of a test's suite."""
    return dict(_named(test.parent.setup.args)) if test.parent.has_setup else {}


def _overhead(options: Mapping[str, str]) -> int:
    """Maximum number of bytes by which our devices lengthen frames on one of their links."""
    kind = parse_options(options["dut"], {name: value for name, value in options.items() if name != "dut"})
    return max(kind.encapsulation_overhead, *kind.growth)


def _key(path: Path) -> _Key | None:
    """The key of a suite below CSIT's folder of tests. Two kinds of DUT may have suites with the same name."""
    match = _NAME.fullmatch(path.stem)
    if match is None:
        return None
    return path.parts[0], int(match["nodes"] or _NODES_UNLESS_NAMED), match["suite"]


def _entries(table: Mapping[str, Setup], name: str, value: str) -> bool:
    """Whether a table says what an option means. An option that is off needs no entry."""
    return name in table or f"{name}={value}" in table or value == "False"


def _tags_of(section: SettingSection) -> Iterator[str]:
    for statement in section.body:
        if statement.type in ("FORCE TAGS", "TEST TAGS"):
            yield from statement.values


def _variables_of(section: VariableSection) -> dict[str, str]:
    found: dict[str, str] = {}
    for statement in section.body:
        if statement.type == "VARIABLE":
            name = statement.name.strip("$@&{}= ")
            found[name] = ", ".join(_resolved(value, found) for value in statement.value)
    return found


def _calls_of(section: KeywordSection) -> Iterator[tuple[str, tuple[str, ...]]]:
    for keyword in section.body:
        for statement in keyword.body:
            if statement.type == "KEYWORD":
                yield _PREPOSITION.sub("", statement.keyword, count=1), statement.args


def _resolved(text: str, variables: Mapping[str, str]) -> str:
    """A value with the variables of its suite: ``${4}`` is 4."""
    text = _VARIABLE.sub(lambda match: variables.get(match["name"], match[0]), text)
    return _VALUE.sub(lambda match: match["value"], text)


def _named(arguments: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for argument in arguments:
        name, sign, value = str(argument).partition("=")
        if sign:
            yield name, value


def _arguments(test: TestCase) -> Iterator[str]:
    """Arguments of a test's keyword, with the variables that the expansion has set before it."""
    variables = Variables()
    for item in test.body:
        if isinstance(item, Var):
            variables[item.name] = item.value[0]
        else:
            yield from (str(variables.replace_string(str(one), ignore_errors=True)) for one in item.args)


def _of_twin(tags: Iterable[Any]) -> Iterator[str]:
    """Possible tags of a test without DUTs, as `lossratio.keywords.Catalogue` sets them: any tag may name the suite."""
    for tag in tags:
        yield str(tag)
        yield from twin_tags(str(tag))


def _plain(tags: Iterable[Any]) -> frozenset[str]:
    return frozenset(str(tag).lower().replace("_", "").replace(" ", "") for tag in tags)
