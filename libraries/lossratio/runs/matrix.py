"""The matrix of a nightly for CI systems: one job for each testbed."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lossratio.errors import JobError
from lossratio.input_file import MOST_RECORDED_BYTES, read_input_file, shown_name
from lossratio.runs.job import load_job
from lossratio.shipped import TOPOLOGIES
from lossratio.topology import load_topology


def matrix(places: Iterable[Path], kinds: Iterable[str] = ()) -> dict[str, Any]:
    """The jobs of a nightly for CI systems, one per testbed: ``{"include": [{"testbed": …, "topology": …}, …]}``.

    The kinds are those of `Topology.testbed`; no kinds mean all.

    Raises:
        JobError: If there is no testbed, or two have the same name.
        TopologyError: If a topology cannot be used.
    """
    places = tuple(places)
    wanted = frozenset(kinds)
    include = [job for place in places for job in _jobs(place, wanted)]
    if not include:
        shown = ", ".join(map(shown_name, places))
        raise JobError(
            f"No testbed in {shown}. Name topology files, job files, or folders with such files."
        )

    files: dict[str, str] = {}
    for job in include:
        name = job["testbed"]
        file = job.get("job", job["topology"])
        if name in files:
            raise JobError(
                f"Two testbeds have the same name, which must distinguish their results: {name} of {files[name]} and "
                f"of {file}. Rename one of them, or leave out one of the files."
            )
        files[name] = file
    return {"include": include}


def _jobs(place: Path, kinds: frozenset[str]) -> list[dict[str, str]]:
    """The jobs of a file or a folder on testbeds of some kinds; no kinds mean all."""
    # Unlike Path, os.path has an answer for a name that is too long for a file.
    if os.path.isdir(place):
        jobs = [job for file in sorted(place.glob("*.yaml")) for job in _jobs(file, kinds)]
        # The topology of a job is no job of its own.
        named = {os.path.realpath(job["topology"]) for job in jobs if "job" in job}
        return [
            job for job in jobs if "job" in job or os.path.realpath(job["topology"]) not in named
        ]
    if _is_job(place):
        job = load_job(place)
        return [
            {
                "testbed": testbed.topology.name,
                "topology": TOPOLOGIES.name(testbed.file),
                "job": str(place),
            }
            for testbed in job.testbeds
            if not kinds or testbed.topology.testbed in kinds
        ]

    topology = load_topology(place)
    if not kinds or topology.testbed in kinds:
        return [{"testbed": topology.name, "topology": str(place)}]
    return []


def _is_job(file: Path) -> bool:
    try:
        return b"lossratio-job/" in read_input_file(file, JobError, MOST_RECORDED_BYTES)
    except JobError:
        return False
