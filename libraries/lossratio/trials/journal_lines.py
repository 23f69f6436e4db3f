"""The lines of a journal: the header, trials, and additions, as JSON with a digest, written and read back strictly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, dataclass, fields
from datetime import datetime, timezone
from typing import Any, TypeVar

from lossratio.errors import SearchError
from lossratio.input_file import parse_json
from lossratio.trials.counters import contradictions
from lossratio.trials.digest import DigestError, DigestMismatchError, take_digest
from lossratio.trials.timeline import Outage, Silence, Step, StepCounters, Timeline
from lossratio.trials.trial import DirectionCounters, Incident, StreamCounters, TrialInput, TrialOutput, TrialResult

T = TypeVar("T")

FORMAT = "lossratio-journal/4"
"""Format of the journals that this version writes. The number 3 is left out: one flipped bit makes it 1 or 2."""

WITHOUT_ADDITIONS = "lossratio-journal/2"
"""Format of the journals of earlier versions, which end with the last trial of the search."""

WITHOUT_DIGESTS = "lossratio-journal/1"
"""Format of the journals of still earlier versions; their lines have no digests."""

_KNOWN = (FORMAT, WITHOUT_ADDITIONS, WITHOUT_DIGESTS)


_FAMILY = FORMAT.rpartition("/")[0] + "/"


class UnknownFormatError(ValueError):
    """A header is intact, but cannot be read here: it is of a newer version, or not of a journal."""


@dataclass(frozen=True)
class JournalEntry:
    """One line of a journal.

    Attributes:
        result: The trial's result.
        purpose: Why the trial was chosen, in words; None: the controller gave no purpose.
        rule: Name of the controller's rule that chose the trial; None: the controller has no rules, or is of an earlier
            version.
    """

    result: TrialResult
    purpose: str | None = None
    rule: str | None = None


@dataclass(frozen=True)
class Addition:
    """A measurement after the last trial of a search, which belongs to the search's result.

    Attributes:
        part: The field of the result that it is in: ``latency`` or ``telemetry``.
        measurement: Number of the measurement that it belongs to, among those of this part, from 1.
        request: What was asked for, as JSON data.
        found: What was measured, as JSON data in the form of result files.
    """

    part: str
    measurement: int
    request: Mapping[str, Any]
    found: Mapping[str, Any]


def describe_search(search: Mapping[str, Any], version: str, about: Mapping[str, Any] | None) -> dict[str, Any]:
    """The header, without its digest."""
    return {"format": version, "created": _now(), "search": search, **({} if about is None else {"about": about})}


def describe_addition(addition: Addition) -> dict[str, Any]:
    """The line of an addition, without its digest."""
    return {"addition": asdict(addition), "time": _now()}


def describe_trial(entry: JournalEntry) -> dict[str, Any]:
    """The line of a trial, without its digest."""
    reasons = _given({"purpose": entry.purpose, "rule": entry.rule})
    trial, output = _given(asdict(entry.result.input)), _given(asdict(entry.result.output))
    return {"input": trial, "output": output, **reasons, "time": _now()}


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are neither None nor an empty tuple."""
    empty = {name for name, value in values.items() if value is None or (isinstance(value, tuple) and not value)}
    return {name: value for name, value in values.items() if name not in empty}


def read_header(line: bytes) -> tuple[dict[str, Any], str | None]:
    """Reads the header.

    Returns:
        Its ``search`` and ``created``, and its digest; None: lines of this journal have no digests.

    Raises:
        UnknownFormatError: If it is intact, and its format is unknown here.
        ValueError: If it is damaged.
    """
    try:
        data = parse_json(line)
    except ValueError as error:
        raise ValueError(f"not JSON ({error})") from error
    given = data.get("format") if isinstance(data, dict) else None
    if given not in _KNOWN:
        problem = f"this is not a journal of format {' or '.join(map(repr, _KNOWN))}: its format is {given!r}"
        raise ValueError(problem) if _was_known(data, given, line) else UnknownFormatError(problem)
    digest = None if given == WITHOUT_DIGESTS else take_digest(line)[1]
    if not isinstance(data.get("search"), dict) or not isinstance(data.setdefault("created", ""), str):
        raise ValueError("it does not describe the search")
    return data, digest


def _was_known(data: Any, given: Any, line: bytes) -> bool:
    """Whether the header of an unknown format had a known one before it was damaged."""
    try:
        take_digest(line)
    except DigestMismatchError:
        return True
    except DigestError:
        # A journal without digests, or not a journal.
        is_newer = isinstance(given, str) and given.startswith(_FAMILY) and given.removeprefix(_FAMILY).isdecimal()
        return isinstance(data, dict) and "search" in data and not is_newer
    return False


def read_line(line: bytes, before: str | None) -> tuple[JournalEntry | Addition, str | None]:
    """Reads a line after the header.

    Args:
        line: The line, without its end.
        before: Digest of the line before; None: lines of this journal have no digests.

    Returns:
        The trial or the addition, and the digest of its line.

    Raises:
        ValueError: If the line is damaged, or does not follow the line before.
    """
    text, digest = (line, None) if before is None else take_digest(line, before)
    try:
        data = parse_json(text)
        if isinstance(data, dict) and "addition" in data:
            return _made(_AdditionLine, data, "the line").addition, digest
        read = _made(_Line, data, "the line")
    except (ValueError, OverflowError, SearchError) as error:
        raise ValueError(f"not a trial ({error})") from error
    for problem in contradictions(read.output):
        raise ValueError(problem)
    return JournalEntry(TrialResult(read.input, read.output), read.purpose, read.rule), digest


def is_whole(line: bytes) -> bool:
    """Whether the last line of a journal was written to its end, although the newline is missing.

    A line that was cut off is an incomplete JSON object. If only the last byte is wrong, the line was damaged later.
    """
    try:
        parse_json(line[:-1])
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class _Line:
    input: TrialInput
    output: TrialOutput
    purpose: str | None = None
    rule: str | None = None
    time: str = ""


@dataclass(frozen=True)
class _AdditionLine:
    addition: Addition
    time: str = ""


_RECORDS: Mapping[str, type] = {
    record.__name__: record
    for record in (
        *(TrialInput, Step, TrialOutput, DirectionCounters, StreamCounters),
        *(Incident, Timeline, StepCounters, Outage, Silence, Addition),
    )
}


def _made(kind: type[T], data: Any, name: str) -> T:
    """Makes a dataclass from JSON data. Unknown and missing fields and values of another type are refused."""
    if not isinstance(data, dict):
        raise ValueError(f"{name} is not a JSON object")
    known: dict[str, Field[Any]] = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    missing = [field.name for field in known.values() if field.default is MISSING and field.name not in data]
    for problem, names in (("unknown", data.keys() - known.keys()), ("missing", missing)):
        if names:
            raise ValueError(f"{', '.join(sorted(names))} in {name}: {problem}")
    return kind(**{field: _value(str(known[field].type), value, field) for field, value in data.items()})


def _value(kind: str, value: Any, name: str) -> Any:
    """The value of a field, whose type is written as in its dataclass, e.g. ``int | None``."""
    whole, _, optional = kind.partition(" | ")
    if value is None and optional:
        return None
    if whole in _RECORDS:
        return _made(_RECORDS[whole], value, name)
    if whole.startswith("tuple["):
        if not isinstance(value, list):
            raise ValueError(f"{name} is not a list")
        part = whole.removeprefix("tuple[").partition(",")[0]
        return tuple(_value(part, item, f"{name}[{place}]") for place, item in enumerate(value))
    if whole.startswith("Mapping[") and isinstance(value, dict):
        return value
    # To Python, a bool is an int. Here it is not.
    if whole == "float" and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if (whole == "int" and type(value) is int) or (whole == "str" and type(value) is str):
        return value
    wanted = {"float": "a finite number", "int": "a whole number", "str": "text"}.get(whole, "a JSON object")
    raise ValueError(f"{name} is {value!r}, not {wanted}")


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
