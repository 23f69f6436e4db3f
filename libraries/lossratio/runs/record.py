"""The request and the conditions of a run, kept beside its output, so that the run can be resumed."""

import hashlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from lossratio.errors import LossRatioError, storing
from lossratio.input_file import MOST_RECORDED_BYTES, read_input_file
from lossratio.records import Record
from lossratio.results import write_whole
from lossratio.runs.assignment import Assignment
from lossratio.runs.robot_run import RunRequest
from lossratio.version import __version__

_FILE = "run.json"
_SOURCES = (".robot", ".resource", ".yaml", ".yml", ".py")


class ResumeError(LossRatioError):
    """A run cannot be resumed."""


class RunRecord(Record):
    """The file ``run.json`` in the directory of a run."""

    format: Literal["lossratio-run/1"] = "lossratio-run/1"
    version: str
    """Version of lossratio."""
    topology_file: str
    """The topology file, as an absolute path."""
    topology: dict[str, Any]
    """The content of the topology file."""
    suites: tuple[str, ...]
    """Files and directories of the suites, as absolute paths; none if there is a job."""
    job: str | None
    """The job file, as an absolute path."""
    sources: dict[str, str]
    """SHA-256 of each file of the suites, and of the job file."""
    include: tuple[str, ...]
    """Tag patterns that select tests."""
    robot_options: tuple[str, ...]
    """More options for Robot Framework."""
    kernels: dict[str, str | None]
    """The kernel of each node of a lab."""
    forced: tuple[str, ...] = ()
    """The differences when the run was resumed by force."""

    def request(self) -> RunRequest:
        """The request of the run, for the testbed that it got."""
        return RunRequest(
            (Path(self.topology_file),),
            tuple(Path(suite) for suite in self.suites),
            self.include,
            self.robot_options,
            job=None if self.job is None else Path(self.job),
        )

    def write(self, directory: Path) -> None:
        """Writes the record into the directory of a run."""
        way_out = "Nothing was measured; make room, or choose another directory: -- --outputdir DIR"
        with storing(f"write {directory / _FILE}", way_out):
            directory.mkdir(parents=True, exist_ok=True)
            write_whole(directory / _FILE, self.model_dump_json(indent=1).encode() + b"\n")

    def differences(self, now: "RunRecord") -> tuple[str, ...]:
        """The conditions that have changed since, in words. A resumed run repeats the command line of this record."""
        names = ("version", "topology", "sources", "kernels")
        return tuple(chain(*(_differences(name, getattr(self, name), getattr(now, name)) for name in names)))


def make_record(request: RunRequest, assignment: Assignment, kernels: dict[str, str | None]) -> RunRecord:
    """The record of a run that begins now."""
    inputs = (*assignment.suites, *(() if request.job is None else (request.job,)))
    files = (file for path in inputs for file in _files(path))
    return RunRecord(
        version=__version__,
        topology_file=str(assignment.file.resolve()),
        topology=assignment.topology.model_dump(mode="json"),
        suites=tuple(str(suite.resolve()) for suite in request.suites),
        job=None if request.job is None else str(request.job.resolve()),
        sources={str(file.resolve()): hashlib.sha256(file.read_bytes()).hexdigest() for file in files},
        include=request.include,
        robot_options=request.robot_options,
        kernels=kernels,
    )


def read_record(directory: Path) -> RunRecord:
    """Reads the record of a run."""
    file = directory / _FILE
    try:
        return RunRecord.model_validate_json(read_input_file(file, ResumeError, MOST_RECORDED_BYTES))
    except ResumeError as error:
        raise ResumeError(f"{error} Only runs that 'lossratio run' began can be resumed.") from error
    except ValidationError as error:
        raise ResumeError(f"{file} is not the record of a run: {error.errors()[0]['msg']}.") from error


def _files(suite: Path) -> Iterator[Path]:
    if suite.is_file():
        yield suite
    elif suite.is_dir():
        yield from (file for file in sorted(suite.rglob("*")) if file.suffix in _SOURCES)


def _differences(name: str, before: Any, now: Any) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted(before.keys() | now.keys()):
            yield from _differences(f"{name}.{key}", before.get(key), now.get(key))
    elif before != now:
        yield f"{name} was {before!r}, now {now!r}"
