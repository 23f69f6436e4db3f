"""The record of a run: what was requested, and the conditions that must be the same when the run is resumed."""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from lossratio.errors import FREE_SPACE, LossRatioError, storing
from lossratio.files import (
    MOST_RECORDED_BYTES,
    parse_json,
    read_input_file,
    said_if_newer,
    shell_word,
)
from lossratio.report import RECORD
from lossratio.results import write_whole
from lossratio.runs.assignments import Assignment
from lossratio.runs.robot_run import RunRequest
from lossratio.values import Record, first_problem
from lossratio.version import __version__

MAKE_ROOM = f"Nothing that was measured is lost. {FREE_SPACE}, and repeat the command."
"""The way out if a run cannot write to its directory."""
_CONDITIONS = ("version", "topology", "sources", "kernels")
"""The fields of a record that must be the same when the run is resumed."""
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
        """The request of the run, for the testbed that it was given."""
        job = None
        if self.job is not None:
            job = Path(self.job)

        return RunRequest(
            (Path(self.topology_file),),
            tuple(Path(suite) for suite in self.suites),
            self.include,
            self.robot_options,
            job=job,
        )

    def write(self, directory: Path) -> None:
        """Writes the record into the directory of a run."""
        with storing(f"write {directory / RECORD}", MAKE_ROOM):
            write_whole(directory / RECORD, self.model_dump_json(indent=1).encode() + b"\n")

    def differences(self, now: "RunRecord") -> tuple[str, ...]:
        """The conditions that have changed since, in words. A resumed run repeats the command line of this record."""
        return tuple(
            difference
            for name in _CONDITIONS
            for difference in _differences(name, getattr(self, name), getattr(now, name))
        )


def make_record(
    request: RunRequest, assignment: Assignment, kernels: dict[str, str | None]
) -> RunRecord:
    """The record of a run that begins now."""
    inputs = [*assignment.suites]
    job = None
    if request.job is not None:
        inputs.append(request.job)
        job = str(request.job.resolve())

    files = (file for path in inputs for file in _files(path))
    sources = {str(file.resolve()): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    # Record: what must be the same in a later attempt.
    return RunRecord(
        version=__version__,
        topology_file=str(assignment.file.resolve()),
        topology=assignment.topology.model_dump(mode="json"),
        suites=tuple(str(suite.resolve()) for suite in request.suites),
        job=job,
        sources=sources,
        include=request.include,
        robot_options=request.robot_options,
        kernels=kernels,
    )


def read_record(directory: Path) -> RunRecord:
    """Reads the record of a run.

    Raises:
        ResumeError: If there is no record, it is damaged, or a newer version wrote it.
    """
    file = directory / RECORD
    data = b""

    try:
        data = read_input_file(file, ResumeError, MOST_RECORDED_BYTES)
        return RunRecord.model_validate_json(data)
    except ResumeError as error:
        raise ResumeError(
            f"{error} Only runs that 'lossratio run' began can be resumed."
        ) from error
    except ValidationError as error:
        with suppress(ValueError):
            newer = said_if_newer(file, RunRecord.model_fields["format"].default, parse_json(data))
            if newer is not None:
                raise ResumeError(newer) from error
        raise ResumeError(
            f"{file} is damaged, or not the record of a run: {_problem(error)}. Start the run again with its own "
            f"suites and options; with --variable RESUME:{shell_word(directory)}, it uses the trials in this directory."
        ) from error


def _problem(error: ValidationError) -> str:
    """The first problem of a record, with its place."""
    if error.errors()[0]["type"] == "json_invalid":
        return "it is not JSON"
    return first_problem(error)


def _files(suite: Path) -> Iterator[Path]:
    """The files that a suite is made of, or the file itself."""
    if suite.is_file():
        yield suite
    elif suite.is_dir():
        yield from (file for file in sorted(suite.rglob("*")) if file.suffix in _SOURCES)


def _differences(name: str, before: Any, now: Any) -> Iterator[str]:
    """Where two values with a name differ, in words."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted(before.keys() | now.keys()):
            yield from _differences(f"{name}.{key}", before.get(key), now.get(key))
    elif before != now:
        yield f"{name} was {before!r}, now {now!r}"
