"""The lines of a journal: a header with what the search was, then one line per trial, each with its digest."""

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
from lossratio.trials.trial import DirectionCounters, Incident, TrialInput, TrialOutput, TrialResult

T = TypeVar("T")

FORMAT = "lossratio-journal/2"
"""Format of the journals that this version begins."""

WITHOUT_DIGESTS = "lossratio-journal/1"
"""Format of the journals that versions before began; their lines have no digests."""


_FAMILY = FORMAT.rpartition("/")[0] + "/"


class UnknownFormatError(ValueError):
    """A header is not damaged, and still none that can be read here: of a newer version, or no journal's at all."""


@dataclass(frozen=True)
class JournalEntry:
    """One line of a journal.

    Attributes:
        result: What was measured.
        purpose: Why the trial was chosen, in words; None: the controller did not say.
        rule: Name of the controller's rule that chose it; None: the controller has none, or is of an earlier version.
    """

    result: TrialResult
    purpose: str | None = None
    rule: str | None = None


def describe_search(search: Mapping[str, Any], version: str) -> dict[str, Any]:
    """The header, without its digest."""
    return {"format": version, "created": _now(), "search": search}


def describe_trial(entry: JournalEntry) -> dict[str, Any]:
    """The line of a trial, without its digest."""
    said = asdict(entry.result.output)
    empty = {name for name, value in said.items() if value is None or (isinstance(value, tuple) and not value)}
    output = {name: value for name, value in said.items() if name not in empty}
    reasons = {"purpose": entry.purpose, "rule": entry.rule}
    given = {name: value for name, value in reasons.items() if value is not None}
    return {"input": asdict(entry.result.input), "output": output, **given, "time": _now()}


def read_header(line: bytes) -> tuple[dict[str, Any], str | None]:
    """Reads the header.

    Returns:
        Its ``search`` and ``created``, and its digest; None: lines of this journal have none.

    Raises:
        UnknownFormatError: If it is whole, and of no format that is known here.
        ValueError: If it is damaged.
    """
    try:
        data = parse_json(line)
    except ValueError as error:
        raise ValueError(f"not JSON ({error})") from error
    given = data.get("format") if isinstance(data, dict) else None
    if given not in (FORMAT, WITHOUT_DIGESTS):
        problem = f"this is not a journal of format {FORMAT!r} or {WITHOUT_DIGESTS!r}: its format is {given!r}"
        raise ValueError(problem) if _was_known(data, given, line) else UnknownFormatError(problem)
    digest = None if given == WITHOUT_DIGESTS else take_digest(line)[1]
    if not isinstance(data.get("search"), dict) or not isinstance(data.setdefault("created", ""), str):
        raise ValueError("it does not say what the search was")
    return data, digest


def _was_known(data: Any, given: Any, line: bytes) -> bool:
    """Whether the header of an unknown format had a known one before it was damaged."""
    try:
        take_digest(line)
    except DigestMismatchError:
        return True
    except DigestError:
        # Of a journal without digests, or no journal.
        is_newer = isinstance(given, str) and given.startswith(_FAMILY) and given.removeprefix(_FAMILY).isdecimal()
        return isinstance(data, dict) and "search" in data and not is_newer
    return False


def read_trial(line: bytes, before: str | None) -> tuple[JournalEntry, str | None]:
    """Reads the line of a trial.

    Args:
        line: The line, without its end.
        before: Digest of the line before; None: lines of this journal have none.

    Returns:
        The trial, and the digest of its line.

    Raises:
        ValueError: If the line is damaged, or does not belong behind the one before.
    """
    text, digest = (line, None) if before is None else take_digest(line, before)
    try:
        read = _made(_Line, parse_json(text), "the line")
    except (ValueError, OverflowError, SearchError) as error:
        raise ValueError(f"not a trial ({error})") from error
    for problem in contradictions(read.output):
        raise ValueError(problem)
    return JournalEntry(TrialResult(read.input, read.output), read.purpose, read.rule), digest


def is_whole(line: bytes) -> bool:
    """Whether the last line of a journal was written to its end, although its end is not there as it was written.

    A line that was cut off is an incomplete JSON object. So one that is complete but for its last byte was damaged.
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


_RECORDS: Mapping[str, type] = {each.__name__: each for each in (TrialInput, TrialOutput, DirectionCounters, Incident)}


def _made(kind: type[T], data: Any, name: str) -> T:
    """Makes a dataclass from JSON data: nothing is unknown, missing, or taken for something else."""
    if not isinstance(data, dict):
        raise ValueError(f"{name} is not a JSON object")
    known: dict[str, Field[Any]] = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    missing = [each.name for each in known.values() if each.default is MISSING and each.name not in data]
    for problem, names in (("unknown", data.keys() - known.keys()), ("missing", missing)):
        if names:
            raise ValueError(f"{', '.join(sorted(names))} in {name}: {problem}")
    return kind(**{each: _value(str(known[each].type), value, each) for each, value in data.items()})


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
        return tuple(_value(part, each, f"{name}[{place}]") for place, each in enumerate(value))
    # A bool is an int to Python, and must not be one here.
    if whole == "float" and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if (whole == "int" and type(value) is int) or (whole == "str" and type(value) is str):
        return value
    wanted = {"float": "a finite number", "int": "a whole number", "str": "text"}[whole]
    raise ValueError(f"{name} is {value!r}, not {wanted}")


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
