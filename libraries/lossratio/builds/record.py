"""The measurements so far: on disk before the next build is set up, so that a comparison that was cut off continues."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossratio.errors import JobError
from lossratio.input_file import MOST_RECORDED_BYTES, parse_json, read_input_file

FORMAT = "lossratio-builds/1"
_FILE = "measurements.jsonl"


@dataclass(frozen=True)
class BuildMeasurement:
    """One build, measured once.

    Attributes:
        build: Which build: ``A``, ``B`` or a revision.
        values: Aggregate throughput in frames per second, by test and quantity (``<full name> <quantity>``); None: the
            build could not be set up, and is left out.
        directory: The directory of its run, relative to that of the record.
    """

    build: str
    values: Mapping[str, float] | None
    directory: str


class BuildRecord:
    """The measurements in a directory, one JSON object per line, behind a header with the request.

    Attributes:
        directory: The directory; the run of each measurement has a directory of its own below it.
        measurements: The measurements, in order.
    """

    def __init__(self, directory: Path, asked: Mapping[str, Any]) -> None:
        """Begins a record, or continues the record in the directory.

        Args:
            directory: The directory; it is made if need be.
            asked: The request, as JSON data.

        Raises:
            JobError: If the record there has another request, or cannot be read.
        """
        self.directory = directory
        self._path = directory / _FILE
        header = {"format": FORMAT, "asked": json.loads(json.dumps(asked))}
        directory.mkdir(parents=True, exist_ok=True)
        self.measurements: list[BuildMeasurement] = []
        if self._path.exists():
            self._read(header)
        else:
            self._append(header)

    def next_directory(self, build: str) -> Path:
        """The directory for the run of the next measurement."""
        return self.directory / f"{len(self.measurements) + 1:03}-{build[:12].replace('/', '_')}"

    def add(self, build: str, values: Mapping[str, float] | None, directory: Path) -> BuildMeasurement:
        """Adds a measurement, and waits until it is on disk."""
        measurement = BuildMeasurement(build, values, directory.name)
        self._append({"build": build, "values": values, "directory": directory.name})
        self.measurements.append(measurement)
        return measurement

    def _read(self, header: Mapping[str, Any]) -> None:
        whole, _, _ = read_input_file(self._path, JobError, MOST_RECORDED_BYTES).rpartition(b"\n")
        try:
            first, *lines = [parse_json(line) for line in whole.splitlines()]
            self.measurements = [BuildMeasurement(**line) for line in lines]
        except (ValueError, TypeError) as error:
            raise JobError(f"{self._path} cannot be read ({error}). Give another --output to begin anew.") from error
        if not isinstance(first, dict):
            raise JobError(f"{self._path} is no record of measurements. Give another --output to begin anew.")
        if first != header:
            raise JobError(
                f"{self._path} has another request: it was {first.get('asked')}, and now is {header['asked']}. "
                f"Give another --output, or repeat the earlier request to continue it."
            )

    def _append(self, line: Mapping[str, Any]) -> None:
        with self._path.open("ab") as file:
            # A line that an interrupted write left unfinished is cut off.
            file.truncate(_whole_lines(self._path))
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _whole_lines(path: Path) -> int:
    whole, newline, _ = path.read_bytes().rpartition(b"\n")
    return len(whole) + len(newline)
