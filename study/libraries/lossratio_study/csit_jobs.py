"""FD.io CSIT's job files, expanded to the tests of each job.

CSIT describes its jobs in a directory of YAML files: jobs name test sets, test sets name test groups, and each may set
frame sizes, cores, NICs and drivers. The innermost setting counts.
"""

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import Field

from lossratio.errors import JobError
from lossratio.files import load_yaml_file
from lossratio.values import ForeignPart, names_near

_UNNAMED_DRIVERS = frozenset({"vfio-pci", "oct-vfio-pci", "tap", "vhost", "-"})
_DRIVER_NAMES = {"rdma-core": "rdma", "mlx5_core": "mlx5"}

_FrameSizes = tuple[int | str | dict[int | str, tuple[int, ...]], ...]
_Infrastructure = dict[str, tuple[str, ...]]


class _Parameters(ForeignPart):
    """What jobs, test sets and entries for test groups may set."""

    frame_sizes: _FrameSizes | None = Field(None, alias="framesize")
    cores: tuple[int | str, ...] | None = Field(None, alias="core")
    infrastructure: _Infrastructure | None = Field(None, alias="infra")


class _Job(_Parameters):
    test_type: str = Field("mrr", alias="test-type")
    testbeds: tuple[str | dict[str, str], ...] = Field((), alias="node-arch")
    streams: tuple[str, ...] = Field((), alias="stream")


class _TestSet(_Parameters):
    groups: tuple[str | dict[str, _Parameters], ...] = Field(alias="tests")


class _File(ForeignPart):
    jobs: dict[str, _Job] = Field({})
    test_sets: dict[str, _TestSet] = Field({}, alias="test-sets")
    test_groups: dict[str, tuple[str, ...]] = Field({}, alias="test-groups")


@dataclass(frozen=True, order=True)
class CsitTest:
    """One test of a job of CSIT: an instance."""

    dut: str
    """The kind of DUT, which is the tag of its suites: ``vpp``, ``dpdk`` or ``trex``."""
    nic: str
    """CSIT's code of the NIC, e.g. ``100ge2p1e810cq``."""
    driver: str
    """The driver of the NIC, or ``-``."""
    suite: str
    """CSIT's name of the suite, e.g. ``eth-l2bdbasemaclrn``."""
    test_type: str
    """What is measured: ``ndrpdr``, ``mrr`` or ``soak``."""
    frame_size: str
    """Frame size in bytes, or ``imix``."""
    cores: str
    """Physical cores of the DUT, or ``-``."""

    @property
    def size(self) -> str:
        """The frame size as in names of tests, e.g. ``64b`` or ``imix``."""
        if self.frame_size == "imix":
            return self.frame_size
        return f"{self.frame_size}b"

    @property
    def id(self) -> str:
        """CSIT's id of the test, without directory and number of nodes."""
        if self.driver in _UNNAMED_DRIVERS:
            driver = ""
        else:
            driver = f"{_DRIVER_NAMES.get(self.driver, self.driver)}-"

        cores = "" if self.cores == "-" else f"{self.cores}c"
        name = f"{driver if cores else ''}{self.suite}-{self.test_type}"
        return f"{self.nic}-{driver}{self.suite}-{self.test_type}.{self.size}-{cores}-{name}"


def csit_jobs(specifications: Path, pattern: str) -> dict[str, tuple[CsitTest, ...]]:
    """Expands CSIT's jobs: the tests by name of the job.

    Jobs without a test set run on request; they are left out.

    Args:
        specifications: The directory with CSIT's job files.
        pattern: Only jobs of this name; ``*`` stands for any characters.

    Raises:
        JobError: If files are not job files of CSIT, or name a test set or group that does not exist; if no job
            matches.
    """
    files = [load_yaml_file(path, _File, JobError) for path in sorted(specifications.glob("*.yaml"))]
    sets = ChainMap(*(dict(file.test_sets) for file in files))
    groups = ChainMap(*(dict(file.test_groups) for file in files))
    named = dict(entry for file in files for template, job in file.jobs.items() for entry in _named(template, job))
    if not named:
        raise JobError(f"{specifications} has no job of CSIT. Name its directory with jobs.yaml and test_groups.yaml.")

    jobs = {
        name: tuple(sorted(_tests(name, job, _found(sets, test_set, name), groups)))
        for name, (job, test_set) in sorted(named.items())
        if fnmatchcase(name, pattern)
    }
    if not jobs:
        raise JobError(f"No job is called {pattern}. The jobs are {names_near(pattern, named)}")
    return jobs


def _named(template: str, job: _Job) -> Iterator[tuple[str, tuple[_Job, str]]]:
    """The jobs of a template that have a test set: one for each testbed, and for each stream if it has streams."""
    for testbeds, stream in product(job.testbeds, job.streams or ("",)):
        for testbed, test_set in () if isinstance(testbeds, str) else testbeds.items():
            yield (template.replace("{node-arch}", testbed).replace("{stream}", stream), (job, test_set))


def _found(table: Mapping[str, Any], name: str, user: str) -> Any:
    if name not in table:
        raise JobError(f"{user} needs {name}, which no file describes. The files describe {names_near(name, table)}")
    return table[name]


def _tests(name: str, job: _Job, test_set: _TestSet, groups: Mapping[str, tuple[str, ...]]) -> set[CsitTest]:
    """The tests of a job. A NIC whose driver a later group repeats has that group's sizes and cores, as in CSIT."""
    found: dict[tuple[str, str, str], set[CsitTest]] = {}
    # A job is called "csit-dpdk-...", or "vpp-csit-..." if a change to VPP starts it.
    dut = name.removeprefix("csit-").partition("-")[0]
    entries = ({entry: _Parameters()} if isinstance(entry, str) else entry for entry in test_set.groups)

    for group, inner in (item for entry in entries for item in entry.items()):
        fields = ("frame_sizes", "cores", "infrastructure")
        levels = (inner, test_set, job)
        sizes, cores, infrastructure = (_innermost(name, group, field, levels) for field in fields)
        points = [
            (str(size), str(count))
            for item in sizes
            for size, counts in (item.items() if isinstance(item, dict) else [(item, cores)])
            for count in counts
        ]

        for suite, nic in product(_found(groups, group, name), infrastructure):
            for driver in infrastructure[nic]:
                found[suite, nic, driver] = {CsitTest(dut, nic, driver, suite, job.test_type, *one) for one in points}

    return {test for tests in found.values() for test in tests}


def _innermost(job: str, group: str, field: str, levels: Sequence[_Parameters]) -> Any:
    for level in levels:
        if (value := getattr(level, field)) is not None:
            return value
    raise JobError(f"{job}: test group {group} has no {_Parameters.model_fields[field].alias}, nor has its set or job.")
