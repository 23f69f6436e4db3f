"""The record of a comparison of builds: its measurements, in a file of a directory.

A measurement is on disk before the next build is set up, so that an interrupted comparison can continue.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lossratio.errors import BuildError, JobError
from lossratio.files import MOST_RECORDED_BYTES, parse_json, read_input_file
from lossratio.runs.builds.measuring import Measure, Measured
from lossratio.values import ExitStatus, first_problem, shown_value

FORMAT = "lossratio-builds/3"
"""Format of the record."""
_FILE = "measurements.jsonl"


@dataclass(frozen=True)
class BuildMeasurement:
    """One build, measured once."""

    build: str
    """The build: ``A``, ``B`` or a revision."""
    directory: str
    """The directory of its run, relative to the directory of the record."""
    measured: Measured | None
    """The result; None: the build could not be set up, and is left out."""

    @classmethod
    def read(cls, line: object) -> "BuildMeasurement":
        """The measurement of a line of the record.

        Raises:
            ValueError: If it is not a measurement.
        """
        try:
            return TypeAdapter(cls).validate_python(line)
        except ValidationError as error:
            raise ValueError(first_problem(error)) from error


def _differences(then: object, now: Mapping[str, Any]) -> str:
    """How a request differs from the one that a record was begun for."""
    if not isinstance(then, Mapping):
        return "it does not say which one"
    names = [name for name in {**now, **then} if then.get(name) != now.get(name)]
    return "; ".join(
        f"{name} was {shown_value(then.get(name))}, and is now {shown_value(now.get(name))}"
        for name in names
    )


class BuildRecord:
    """The measurements in a directory, one JSON object per line, after a header with the request."""

    def __init__(self, directory: Path, asked: Mapping[str, Any]) -> None:
        """Begins a record, or continues it.

        Args:
            directory: The directory.
            asked: The request.

        Raises:
            JobError: If it has measurements of another request, or cannot be read.
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

    def measurement(self, step: int, build: str, measure: Measure) -> BuildMeasurement:
        """The measurement of a step of a comparison; if it is not in the record, it is measured and written to disk.

        Raises:
            BuildError: If it was measured on a different device from the earlier ones. The record does not accept it.
            JobError: If the record has another build for this step.
        """
        if step == len(self.measurements):
            directory = f"{step + 1:03}-{build[:12].replace('/', '_')}"
            measured = measure(build, self.directory / directory)
            measurement = BuildMeasurement(build, directory, measured)
            if measured is not None:
                self._require_one_device(build, measured)
            self._append(asdict(measurement))
            self.measurements.append(measurement)

        known = self.measurements[step]
        if known.build != build:
            raise JobError(
                f"{self._path}, line {step + 2}, belongs to build {shown_value(known.build)}, but {shown_value(build)} "
                "was to be measured there. The file was changed. To start over, use another --output."
            )
        return known

    def _require_one_device(self, build: str, measured: Measured) -> None:
        known = [(one.build, one.measured.devices) for one in self.measurements if one.measured]
        for name, device in measured.devices.items():
            first, wanted = next(
                ((first, devices[name]) for first, devices in known if name in devices),
                (build, device),
            )
            if wanted != device:
                raise BuildError(
                    f"{name} was measured on two devices: {first[:12]} on {wanted}, and {build[:12]} on "
                    f"{device}. Only builds of one device can be compared. Keep the options of the device, and let "
                    "the set-up command change only the build.",
                    ExitStatus.BAD_INPUT,
                )

    def _read(self, header: Mapping[str, Any]) -> None:
        whole, _, _ = read_input_file(self._path, JobError, MOST_RECORDED_BYTES).rpartition(b"\n")
        lines = whole.splitlines() or [b"null"]
        read: list[Any] = []
        for number, line in enumerate(lines, start=1):
            try:
                parsed = parse_json(line)
                read.append(BuildMeasurement.read(parsed) if read else parsed)
            except ValueError as error:
                raise JobError(
                    f"{self._path}, line {number}, cannot be read: {error}. To start over, use another --output."
                ) from error

        first, *self.measurements = read
        if not isinstance(first, dict):
            raise JobError(
                f"{self._path} is not a record of measurements. To start over, use another --output."
            )
        if first.get("format") != FORMAT:
            raise JobError(
                f"{self._path} was started by another version of lossratio and cannot be continued. To start over, "
                "use another --output."
            )
        if first != header and not self.measurements and not any(self.directory.glob("001-*")):
            # Nothing was measured, for example because of a mistake in the request, which is corrected now.
            self._path.unlink()
            self._append(header)
        elif first != header:
            raise JobError(
                f"{self._path} belongs to another request: {_differences(first.get('asked'), header['asked'])}. Use "
                "another --output, or repeat the earlier request to continue it."
            )

    def _append(self, line: Mapping[str, Any]) -> None:
        with self._path.open("ab") as file:
            # A line that an interrupted write left unfinished is cut off.
            file.truncate(self._path.read_bytes().rfind(b"\n") + 1)
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
