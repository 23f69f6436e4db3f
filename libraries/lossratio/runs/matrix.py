"""The jobs of a nightly for CI systems: one for each testbed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lossratio.errors import JobError
from lossratio.input_file import MOST_RECORDED_BYTES, read_input_file
from lossratio.runs.job import load_job
from lossratio.topology import TestbedKind, load_topology


def matrix(places: Iterable[Path], kinds: Iterable[TestbedKind] = ()) -> dict[str, Any]:
    """What GitHub's and GitLab's matrix jobs take: ``{"include": [{"testbed": …, "topology": …}, …]}``.

    Args:
        places: Topology files, directories of them, and job files (their testbeds are taken, with the job).
        kinds: Only testbeds of these kinds; none: all.

    Raises:
        JobError: If nothing is found, or two testbeds have the same name.
        TopologyError: If a topology cannot be used.
    """
    wanted = set(kinds) or set(TestbedKind)
    include: list[dict[str, str]] = []
    for place in places:
        include += _jobs(place, wanted)
    names = [each["testbed"] for each in include]
    if not include:
        raise JobError(f"No testbed in {', '.join(map(str, places))}.")
    if len(set(names)) < len(names):
        raise JobError(f"Two testbeds have the same name, and results are told apart by it: {', '.join(names)}.")
    return {"include": include}


def _jobs(place: Path, wanted: set[TestbedKind]) -> list[dict[str, str]]:
    # Unlike that of Path, this function has an answer for a name that is too long for a file.
    if os.path.isdir(place):
        return [job for file in sorted(place.glob("*.yaml")) for job in _jobs(file, wanted)]
    if _is_job(place):
        job = load_job(place)
        return [
            {"testbed": each.topology.name, "topology": str(each.file), "job": str(place)}
            for each in job.testbeds
            if each.topology.testbed in wanted
        ]
    topology = load_topology(place)
    return [{"testbed": topology.name, "topology": str(place)}] if topology.testbed in wanted else []


def _is_job(file: Path) -> bool:
    try:
        return b"lossratio-job/" in read_input_file(file, JobError, MOST_RECORDED_BYTES)
    except JobError:
        return False
