"""Exports results for FD.io CSIT's dashboards, if their numbers mean the same there.

Rates are aggregates, bandwidths those of layer 1, and ``lower`` is the conditional throughput, as in CSIT's own files.
A result that would mean something else there, or could not be shown, is refused with the reason.

Names are checked, as the names in CSIT's dashboards are derived from them. A suite is called
``[1n1l-|2n1l-]{nic}-[driver-]{suite}-{type}``, as in ``2n1l-100ge2p1e810cq-avf-ethip4-ip4base-mrr``; a test
``{frame size}-{cores}c-{suite}-{type}``, e.g. ``64B-1c-ethip4-ip4base-ndrpdr``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, JsonValue, SerializeAsAny

from lossratio.errors import ReportError
from lossratio.measurements import CsitExportError, CsitRecord
from lossratio.results import Conditions, TestIdentity, TestResult, view_of, write_whole

TEST_TYPES = ("ndrpdr", "mrr", "soak", "reconf")
"""Types of CSIT's tests, as at the end of names."""

_SUITE = re.compile(r"(?:[12]n1l-)?(?:\d+ge\d+p\d+)(?P<nic>[a-z0-9]+)-(?P<rest>.+)-(?P<type>[a-z]+)")
_TEST = re.compile(r"(?P<size>\d+b|imix(?:_v4_1)?)-(?P<cores>\d+)c-(?P<short>.+)-(?P<type>[a-z]+)")
_THREADS = re.compile(r"(?P<threads>\d+)t(?P<cores>\d+)c")


class CsitNameError(ReportError):
    """A name cannot be mapped to a name of CSIT; the message has that name and the expected form."""


@dataclass(frozen=True)
class CsitNames:
    """The names of a test in CSIT's results.

    Attributes:
        test_id: Suite and test in lower case, with ``_`` for spaces.
        name_short: The suite without NIC, driver and type, e.g. ``ethip4-ip4base``.
        name_long: NIC, frame size, threads and cores, and the short name, e.g. ``e810cq-64b-2t1c-ethip4-ip4base``.
        test_type: ``ndrpdr``, ``mrr``, ``soak`` or ``reconf``.
        path: Path of the file: the suite's path, and the test's name.
    """

    test_id: str
    name_short: str
    name_long: str
    test_type: str
    path: str


def csit_names(test: TestIdentity) -> CsitNames:
    """Derives the names of a test in CSIT's results.

    Raises:
        CsitNameError: If the test's suite, name or tags do not have CSIT's form.
    """
    suites = [part.replace(" ", "_") for part in test.suite.lower().split(".")]
    name = test.name.lower().replace(" ", "_")
    suite = _SUITE.fullmatch(suites[-1])
    if suite is None:
        raise CsitNameError(
            f"The suite {suites[-1]!r} has no name like CSIT's, e.g. '2n1l-100ge2p1e810cq-avf-ethip4-ip4base-ndrpdr'."
        )
    parts = _TEST.fullmatch(name)
    if parts is None:
        raise CsitNameError(f"The test {test.name!r} has no name like CSIT's, e.g. '64B-1c-ethip4-ip4base-ndrpdr'.")
    short = parts["short"]
    if suite["rest"] != short and not suite["rest"].endswith(f"-{short}"):
        raise CsitNameError(f"The test {test.name!r} does not have the name of its suite {suites[-1]!r} in it.")
    if parts["type"] not in TEST_TYPES or parts["type"] != suite["type"]:
        raise CsitNameError(
            f"The names of {test.full_name} do not end with one of CSIT's types: {', '.join(TEST_TYPES)}."
        )
    return CsitNames(
        test_id=".".join((*suites, name)),
        name_short=short,
        name_long=f"{suite['nic']}-{parts['size']}-{_threads(test, parts['cores'])}-{short}",
        test_type=parts["type"],
        path="/".join((*suites, f"{name}.info.json")),
    )


def _threads(test: TestIdentity, cores: str) -> str:
    """The tag with the number of worker threads and the number of cores."""
    for tag in test.tags:
        match = _THREADS.fullmatch(tag.lower())
        if match is not None and match["cores"] == cores:
            return match[0]
    raise CsitNameError(f"{test.full_name} has no tag like 2T{cores}C, which says how many worker threads there were.")


class CsitTestCase(CsitRecord):
    """A test case of FD.io CSIT's model 1.5.1, with the fields that our results can fill."""

    version: Literal["1.5.1"] = "1.5.1"
    start_time: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
    end_time: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
    duration: float
    passed: bool
    message: str
    hosts: tuple[str, ...] = Field(min_length=1)
    dut_type: str
    dut_version: str
    tg_type: str
    tg_version: str
    tags: tuple[str, ...]
    telemetry: tuple[JsonValue, ...]
    test_documentation: str
    test_id: str
    test_name_short: str
    test_name_long: str
    test_type: str
    result: SerializeAsAny[BaseModel]


@dataclass(frozen=True)
class CsitExport:
    """A result as a file for CSIT.

    Attributes:
        path: Path of the file, below the folder of a run.
        case: Contents of the file.
    """

    path: str
    case: CsitTestCase

    def write(self, folder: Path) -> Path:
        """Writes the file below a folder.

        Raises:
            ReportError: If the file cannot be written.
        """
        path = folder / self.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, self.case.model_dump_json(indent=2, exclude_none=True).encode() + b"\n")
        except OSError as error:
            raise ReportError(f"Cannot write {path}: {error.strerror}.") from error
        return path


def csit_export(result: TestResult) -> CsitExport:
    """Converts a result for CSIT.

    Raises:
        ReportError: If the result cannot be exported; the message names the reason.
    """
    names = csit_names(result.test)
    if result.error is not None:
        raise CsitExportError(f"{result.test.full_name} failed, so there is no result to export: {result.error}")
    view = view_of(result)
    if view.csit_type not in (None, names.test_type):
        raise CsitExportError(
            f"{result.test.full_name} is called {names.test_type}, and its result is {view.csit_type}."
        )
    case = CsitTestCase(
        start_time=_time(result.started),
        end_time=_time(result.ended),
        duration=(result.ended - result.started).total_seconds(),
        passed=True,
        message="",
        hosts=_hosts(result.conditions),
        dut_type=_dut(result)[0],
        dut_version=_dut(result)[1],
        tg_type=_generator(result)[0],
        tg_version=_generator(result)[1],
        tags=result.test.tags,
        telemetry=tuple(trial.model_dump(mode="json") for trial in view.telemetry(result)),
        test_documentation=result.test.documentation,
        test_id=names.test_id,
        test_name_short=names.name_short,
        test_name_long=names.name_long,
        test_type=names.test_type,
        result=view.csit(result),
    )
    return CsitExport(names.path, case)


def _hosts(conditions: Conditions) -> tuple[str, ...]:
    """The addresses of the nodes; a node on this machine appears with its name."""
    nodes = conditions.testbed.topology.get("nodes")
    described = nodes if isinstance(nodes, Mapping) else {}
    hosts = {str((node or {}).get("host") or name) for name, node in described.items() if isinstance(node, Mapping)}
    return tuple(sorted(hosts)) or tuple(sorted(conditions.nodes))


def _dut(result: TestResult) -> tuple[str, str]:
    """Kind and version of the DUT; a DUT that is Linux itself has the kernel's version."""
    conditions = result.conditions
    for name, dut in conditions.duts.items():
        kind = str(dut.get("kind") or "")
        node = conditions.nodes.get(str(dut.get("node") or name))
        version = dut.get("version") or (None if node is None else node.kernel)
        if kind and version:
            return kind.upper(), str(version)
    raise CsitExportError(f"{result.test.full_name} does not say what kind and version its DUT was.")


def _generator(result: TestResult) -> tuple[str, str]:
    """Kind and version of the generator; lossratio's own generators have the version of lossratio."""
    generator = result.conditions.generator
    kind = str(generator.get("kind") or "")
    version = generator.get("version") or (None if kind == "trex" else result.conditions.controller.lossratio_version)
    if not (kind and version):
        raise CsitExportError(f"{result.test.full_name} does not say what kind and version its generator was.")
    return kind.upper(), str(version)


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"
