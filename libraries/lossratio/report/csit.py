"""Exports results for FD.io CSIT's dashboards, if their numbers mean the same there.

Rates are aggregates, bandwidths refer to layer 1, and ``lower`` is the conditional throughput, as in CSIT's own files.
A result that would mean something else there, or could not be shown, is refused with the reason.

The dashboards derive most of what they show from names. A suite is called
``[1n1l-|2n1l-]{nic}-[driver-]{body}-{type}``, as in
``2n1l-100ge2p1e810cq-avf-ethip4-ip4base-mrr``, and a test ``{size}-{cores}c-[driver-]{body}-{type}``. Our tests have
frame size, cores, body and type in their names. The result has the rest: the number of nodes, the NIC, its driver and
the kind of DUT. A suite whose name already has CSIT's form keeps it.

Files lie where CSIT's upload puts them, below ``JOB/BUILD``: ``tests/.../TEST.info.json.gz`` for each test, and
``tests/suite.info.json.gz`` for the run as a whole.
"""

import base64
import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lossratio.errors import ReportError, storing
from lossratio.measurements import CsitExportError
from lossratio.report.metrics import device_metrics
from lossratio.results import Conditions, TestResult, view_of, write_whole
from lossratio.topology import NIC_MODELS

TEST_TYPES = ("ndrpdr", "mrr", "soak", "reconf")
"""Types of CSIT's tests, as at the end of names."""

_SUITE = re.compile(
    r"(?P<links>(?:[12]n1l-)?)\d+ge\d+p\d(?P<nic>[a-z0-9]+)-(?P<body>[^.]+)-(?P<type>[a-z]+)"
)
_TEST = re.compile(
    r"(?P<size>\d+b|imix)(?:_v4_1)?-(?P<cores>(?:\d+c)?)-(?P<body>[^.]+)-(?P<type>[a-z]+)"
)
_JOB = re.compile(r"csit-[^-/\s]+-perf-[^/\s]+")
_NODES = {"1n1l-": "1n", "2n1l-": "2n", "": "3n"}
"""The nodes of a testbed, by the links in a suite's name."""
_DRIVERS = {
    "avf": "avf",
    "iavf": "avf",
    "rdma-core": "rdma",
    "mlx5_core": "mlx5",
    "af_xdp": "af-xdp",
}
_NIC_CODES = {
    "intel-x710": "10ge2p1x710",
    "intel-xl710": "40ge2p1xl710",
    "intel-xxv710": "25ge2p1xxv710",
    "intel-e810xxv": "25ge2p1e810xxv",
    "intel-e822cq": "25ge2p1e822cq",
    "intel-e823c": "25ge2p1e823c",
    "intel-e810cq": "100ge2p1e810cq",
    "amazon-nitro-50g": "50ge1p1ena",
    "amazon-nitro-100g": "100ge1p1ena",
    "amazon-nitro-200g": "200ge1p1ena",
    "mellanox-cx556a": "100ge2p1cx556a",
    "mellanox-cx6dx": "100ge2p1cx6dx",
    "mellanox-cx7veat": "200ge2p1cx7veat",
    "cavium-a063-100g": "100ge2p1a063",
    "virtual": "1ge1p82540em",
}
_AREAS = {"vxlan": "ip4_tunnels", "l2": "l2", "ip6": "ip6"}
"""The areas of tests, by a part of their body."""


@dataclass(frozen=True)
class CsitExport:
    """A result as a file for CSIT."""

    job: str
    """A name for the job that measured the result, with all parts that CSIT's dashboards read from it. Everything after
    the part ``x`` is the testbed: the dashboards know this form for testbeds outside FD.io's lab."""
    case: Mapping[str, Any]
    """The test case of CSIT's model 1.5.1, with the fields that our results can fill."""

    @property
    def path(self) -> str:
        """Path of the file below the folder of a build: the suite's path, and the test's name."""
        return f"{self.case['test_id'].replace('.', '/')}.info.json.gz"


def _names(result: TestResult) -> tuple[dict[str, str], str]:
    """The fields of a test case with the names of the test, and the nodes of its testbed, as in the names of jobs.

    Raises:
        CsitExportError: If the names of test and suite contradict each other, or lack a part that the result does not
            have either.
    """
    test = result.test
    parts = _TEST.fullmatch(test.name.lower().replace(" ", "_"))
    if parts is None:
        raise CsitExportError(
            f"CSIT cannot read the name of the test {test.name!r}. Name it like this: "
            "'64B-1c-ethip4-ip4base-ndrpdr'."
        )
    if parts["type"] not in TEST_TYPES:
        raise CsitExportError(
            f"The name of {test.full_name} must end with one of CSIT's types: {', '.join(TEST_TYPES)}."
        )

    folders = test.suite.lower().replace(" ", "_").split(".")
    if not _SUITE.fullmatch(folders[-1]):
        folders = _derived_suite(result, parts)
    suite = _SUITE.fullmatch(folders[-1])
    if suite is None:
        raise CsitExportError(
            f"CSIT's names begin with the NIC of the DUT, but the result of {test.full_name} lacks it. Add model: and "
            "speed: to the DUT's interfaces in the topology file."
        )

    body = suite["body"]
    if body != parts["body"] and not body.endswith(f"-{parts['body']}"):
        raise CsitExportError(
            f"The test {test.name!r} and its suite {folders[-1]!r} name different features. Rename one of them."
        )
    if suite["type"] != parts["type"]:
        raise CsitExportError(
            f"The suite of {test.full_name} has the type {suite['type']}, but the test has the type {parts['type']}. "
            "Rename one of them."
        )

    # The tag with the numbers of worker threads and cores, or else the cores alone, which CSIT also accepts.
    tags = (tag.lower() for tag in test.tags)
    threads = next(
        (tag for tag in tags if re.fullmatch(rf"\d+t{parts['cores']}", tag)), parts["cores"]
    )
    name = f"{parts['size']}-{parts['cores']}-{body}-{parts['type']}"
    long_name = filter(None, (suite["nic"], parts["size"], threads, body))
    names = {
        "test_id": ".".join((*folders, name)),
        "test_name_long": "-".join(long_name),
        "test_name_short": body,
        "test_type": parts["type"],
    }
    return names, _NODES[suite["links"]]


def _derived_suite(result: TestResult, parts: re.Match[str]) -> list[str]:
    """The folders and the name of a suite as CSIT would name it.

    Args:
        result: The result of the test.
        parts: The parts of the test's name.
    """
    conditions = result.conditions
    body = parts["body"]
    driver = _driver(conditions)
    if driver and not body.startswith(f"{driver}-"):
        body = f"{driver}-{body}"

    in_path = {end.partition(".")[0] for end in conditions.testbed.path}
    devices = sum((_nodes(conditions).get(node) or {}).get("type") == "DUT" for node in in_path)
    links = {0: "1n1l-", 1: "2n1l-"}.get(devices, "")
    kind = _dut_kind(result)
    folders = ["tests", kind, "perf"]
    if kind != "dpdk":
        folders.append(_area(body))
    return [*folders, f"{links}{_nic_code(conditions)}-{body}-{parts['type']}"]


def _driver(conditions: Conditions) -> str:
    """CSIT's name of the driver of all the DUTs' interfaces; empty: it has none, as for vfio-pci."""
    drivers = {
        _DRIVERS.get(str(described.get("driver")), "") for described, _ in _interfaces(conditions)
    }
    if len(drivers) == 1:
        return drivers.pop()
    return ""


def _area(body: str) -> str:
    """The area of a test, which is the last folder above its suite in the dashboards, except for DPDK's tests."""
    for part, area in _AREAS.items():
        if part in body:
            return area
    return "ip4"


def _nodes(conditions: Conditions) -> Mapping[str, Any]:
    nodes = conditions.testbed.topology.get("nodes")
    if isinstance(nodes, dict):
        return nodes
    return {}


def _interfaces(conditions: Conditions) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The DUTs' interfaces on the path, as in the topology, and the facts that the DUT reported."""
    for end in conditions.testbed.path:
        node, _, port = end.partition(".")
        described = _nodes(conditions).get(node) or {}
        if described.get("type") == "DUT":
            interface = (described.get("interfaces") or {}).get(port) or {}
            facts = conditions.duts.get(node, {}).get("interfaces")
            if isinstance(facts, dict):
                reported = facts.get(str(interface.get("name")))
            else:
                reported = None

            yield interface, reported if isinstance(reported, dict) else {}


def _nic_code(conditions: Conditions) -> str:
    """Speed in Gbit/s, ports, cards and model of the DUT's NIC, e.g. ``100ge2p1e810cq``; empty: it is not known."""
    for described, facts in _interfaces(conditions):
        model = str(
            described.get("model") or facts.get("kind") or facts.get("driver") or ""
        ).lower()
        if model in _NIC_CODES:
            return _NIC_CODES[model]

        limits = NIC_MODELS.get(model)
        reported = str(facts.get("speed_mbps") or "")
        speed = described.get("speed") or (limits.max_bit_rate if limits else None)
        if not speed and reported.isdigit():
            speed = int(reported) * 1e6
        if model and speed:
            return f"{max(1, round(float(speed) / 1e9))}ge2p1{re.sub(r'[^a-z0-9]', '', model)}"
    return ""


def csit_export(result: TestResult) -> CsitExport:
    """Converts a result for CSIT. A failed test keeps its message, and has a result of type ``unknown``.

    Raises:
        ReportError: If the result cannot be exported; the message names the reason.
        CsitExportError: If it lacks the version of generator or DUT, or its type differs from the type in its name.
    """
    names, nodes = _names(result)
    view = view_of(result)
    if view.csit_type not in (None, names["test_type"]):
        raise CsitExportError(
            f"{result.test.full_name} is named {names['test_type']}, but its result is "
            f"{view.csit_type}. Rename the test."
        )

    generator = result.conditions.generator
    kind = str(generator.get("kind") or "")
    # A generator without a version of its own has lossratio's version.
    version = generator.get("version", result.conditions.controller.lossratio_version)
    if not (kind and version):
        raise CsitExportError(
            f"CSIT's files need the kind and version of the generator, but the result of {result.test.full_name} does "
            "not have both."
        )

    dut_kind = _dut_kind(result)
    dut_version = next((version for _, version in result.conditions.dut_versions()), None)
    if dut_version is None:
        raise CsitExportError(
            f"CSIT's files need the version of the DUT, but the result of {result.test.full_name} lacks it. Make "
            "the black box's hook 'describe' return a version, and measure again."
        )

    # A node on this machine appears with its name.
    hosts = {
        str((node or {}).get("host") or name) for name, node in _nodes(result.conditions).items()
    }
    telemetry = []
    measured: Mapping[str, Any] = {"type": "unknown"}
    if result.error is None:
        measured = view.csit(result)
        metrics = "\n".join(line.csit() for line in device_metrics(result))
        if metrics:
            telemetry.append(base64.b64encode(zlib.compress(metrics.encode(), 9)).decode())

    # Record: the fields of CSIT's model, in its order.
    case = {
        "version": "1.5.1",
        "start_time": _time(result.started),
        "end_time": _time(result.ended),
        "duration": result.took_s,
        "dut_type": dut_kind,
        "dut_version": dut_version,
        "hosts": sorted(hosts or result.conditions.nodes),
        "message": result.error or "",
        "passed": result.error is None,
        "result": measured,
        "tags": result.test.tags,
        "test_documentation": result.test.documentation,
        **names,
        "tg_type": kind.lower(),
        "tg_version": str(version),
        "telemetry": telemetry,
    }
    testbed = re.sub(r"[^a-z0-9-]+", "_", result.conditions.testbed.name.lower())
    job = f"csit-{dut_kind}-perf-{names['test_type']}-daily-master-x-{nodes}-{testbed}"
    return CsitExport(job, case)


def write_csit(
    folder: Path, exports: Sequence[CsitExport], *, job: str | None = None, build: int
) -> list[Path]:
    """Writes the files of a run below ``JOB/BUILD`` in a folder, or none of them if one cannot be named.

    Args:
        folder: The folder.
        exports: The results of the run.
        job: The name of the job; None: each type of test has its own job.
        build: The number of the build.

    Returns:
        The files of the tests.

    Raises:
        CsitExportError: If the job has no name like CSIT's, or two results would have the same file.
        ReportError: If a file cannot be written.
    """
    if job is not None and not _JOB.fullmatch(job):
        raise CsitExportError(
            f"CSIT's dashboards cannot read the name of the job {job!r}. Name it like this: "
            "'csit-vpp-perf-ndrpdr-daily-master-x-2n-lab'."
        )

    files: dict[Path, Mapping[str, Any]] = {}
    jobs: dict[str, list[Mapping[str, Any]]] = {}
    for export in exports:
        name = job or export.job
        path = folder / name / str(build) / export.path
        if path in files:
            raise CsitExportError(
                f"Two results have CSIT's name {export.case['test_id']}, and would overwrite each "
                f"other: {path}. Export these runs or suites to separate builds or jobs."
            )

        files[path] = export.case
        jobs.setdefault(name, []).append(export.case)

    for path, case in files.items():
        _write(path, case)
    for name, cases in jobs.items():
        start = min(case["start_time"] for case in cases)
        end = max(case["end_time"] for case in cases)
        started, ended = (datetime.fromisoformat(text.removesuffix("Z")) for text in (start, end))
        # The file for the whole run, from which CSIT's dashboards take the time and duration of a build.
        whole = {
            "version": cases[0]["version"],
            "start_time": start,
            "end_time": end,
            "duration": (ended - started).total_seconds(),
            "hosts": sorted({host for case in cases for host in case["hosts"]}),
            "setup_telemetry": [],
            "suite_documentation": "",
            "suite_name": "Tests",
            "teardown_telemetry": [],
        }
        _write(folder / name / str(build) / "tests" / "suite.info.json.gz", whole)

    return list(files)


def _write(path: Path, fields: Mapping[str, Any]) -> None:
    with storing(f"write {path}", error=ReportError):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without the time in the archive's header, a result always gives the same file.
        write_whole(path, gzip.compress(json.dumps(fields, indent=1).encode() + b"\n", mtime=0))


def _dut_kind(result: TestResult) -> str:
    duts = result.conditions.duts
    kind = next(
        (str(dut.get("csit_type", dut["kind"])) for dut in duts.values() if dut.get("kind")), ""
    )
    if not kind:
        raise CsitExportError(
            f"CSIT's files need the kind of the DUT, but the result of {result.test.full_name} lacks it. Set up the "
            "testbed with a kind of DUT, and measure again."
        )
    return kind


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"
