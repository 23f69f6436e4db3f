"""The lines of a journal, as JSON with a digest, read strictly.

They are the header, trials, late frames, verifications, withdrawals and additions.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, TypeAlias

from lossratio.errors import SearchError
from lossratio.files import parse_json
from lossratio.trials.counters import contradictions
from lossratio.trials.digest import DigestError, DigestMismatchError, take_digest
from lossratio.trials.late import Late
from lossratio.trials.record import Observed, read_record, write_record
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput

FORMAT = "lossratio-journal/7"
"""Format of the journals."""


class UnknownFormatError(ValueError):
    """A header is intact, but cannot be read here: it has another version, or does not belong to a journal."""


@dataclass(frozen=True)
class JournalEntry(Observed):
    """One trial of a journal, as its line has it."""

    input: TrialInput
    """What was asked of the trial."""
    output: TrialOutput
    """What it found."""
    purpose: str | None = None
    """Why the trial was chosen, in words; None: the controller gave no purpose."""
    rule: str | None = None
    """Name of the controller's rule that chose the trial; None: the controller has no rules."""
    verified: bool = False
    """Whether the DUTs were found as they were set up after this trial. That also proves all earlier trials."""
    time: str = field(default="", compare=False)
    """When the line was written, RFC 3339, UTC; empty: it was not written."""

    @classmethod
    def of(
        cls,
        result: TrialResult,
        purpose: str | None = None,
        rule: str | None = None,
        verified: bool = False,
    ) -> "JournalEntry":
        """The entry of a trial."""
        return cls(result.input, result.output, purpose, rule, verified)

    @property
    def result(self) -> TrialResult:
        """The trial as controllers receive it."""
        return TrialResult(self.input, self.output)


@dataclass(frozen=True)
class Verification(Observed):
    """The DUTs were found as they were set up, which proves all earlier trials."""

    time: str
    """Time of the verification, RFC 3339, UTC."""


@dataclass(frozen=True)
class Withdrawal(Observed):
    """The last trials before this line are kept, but not used."""

    trials: int
    """Number of these trials, without those that had already been withdrawn."""
    reason: str
    """Why they are no evidence, in words."""

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise SearchError(f"A withdrawal needs at least one trial, not {self.trials}.")


@dataclass(frozen=True)
class WithdrawnTrial:
    """A trial that was measured but is not used."""

    entry: JournalEntry
    """The trial."""
    reason: str
    """Why it is not used, in words."""


@dataclass(frozen=True)
class Addition(Observed):
    """A measurement after the last trial of a search, which belongs to the search's result."""

    part: str
    """The field of the result that contains it: ``latency`` or ``telemetry``."""
    measurement: int
    """Number of the measurement that it belongs to, among the measurements of this part, from 1."""
    request: Mapping[str, Any]
    """The request, as JSON data."""
    found: Mapping[str, Any]
    """The measurement, as JSON data in the form of result files."""


Line: TypeAlias = JournalEntry | Late | Verification | Withdrawal | Addition
"""The contents of a line after the header."""


def describe_search(search: Mapping[str, Any], about: Mapping[str, Any] | None) -> bytes:
    """The header, without its digest."""
    header = {
        "format": FORMAT,
        "created": now(),
        "search": search,
        **({} if about is None else {"about": about}),
    }
    return json.dumps(header).encode()


def describe_line(line: Line) -> bytes:
    """A line after the header, without its digest."""
    if isinstance(line, JournalEntry):
        return write_record(replace(line, time=now()))
    if isinstance(line, Addition):
        # Any JSON data: pydantic would write null in place of a number that JSON does not have.
        return json.dumps({"addition": asdict(line), "time": now()}).encode()

    fields: dict[str, Any] = {_FIELDS[type(line)]: line}
    if not isinstance(line, Verification):
        fields["time"] = now()
    return write_record(_BesideTrials(**fields))


def read_header(line: bytes) -> tuple[dict[str, Any], str]:
    """Reads the header: the search, its beginning, and the header's digest.

    Raises:
        UnknownFormatError: If it is intact but has an unknown format.
        ValueError: If it is damaged.
    """
    try:
        data = parse_json(line)
    except ValueError as error:
        raise ValueError(f"not JSON ({error})") from error

    given = data.get("format") if isinstance(data, dict) else None
    if given != FORMAT:
        problem = f"this is not a journal of format {FORMAT!r}: its format is {given!r}"
        try:
            take_digest(line)
        except DigestMismatchError as error:
            # It had a known format before it was damaged.
            raise ValueError(problem) from error
        except DigestError:
            pass

        raise UnknownFormatError(problem)

    _, digest = take_digest(line)
    if not isinstance(data.get("search"), dict) or not isinstance(
        data.setdefault("created", ""), str
    ):
        raise ValueError("it does not describe the search")
    return data, digest


def read_line(line: bytes, before: str) -> tuple[Line, str]:
    """Reads the contents of a line after the header, and its digest.

    Raises:
        ValueError: If it is damaged, or out of turn.
    """
    try:
        text, digest = take_digest(line, before)
    except DigestMismatchError as error:
        raise ValueError(
            f"{error}: the line was changed after it was written, or lines before it are missing, repeated or out of "
            "order"
        ) from error

    try:
        data = parse_json(text)
        if not isinstance(data, dict):
            raise ValueError("the line is not a JSON object")
        if not data.keys().isdisjoint(_FIELDS.values()):
            beside = read_record(_BesideTrials, text)
            (found,) = (part for name in _FIELDS.values() if (part := getattr(beside, name)))
            return found, digest
        entry = read_record(JournalEntry, text)
    except (ValueError, OverflowError, SearchError) as error:
        raise ValueError(f"not a trial ({error})") from error

    for problem in contradictions(entry.output):
        raise ValueError(problem)
    return entry, digest


def is_whole(line: bytes) -> bool:
    """Whether the last line of a journal was written completely, although the newline is missing.

    A line that was cut off is an incomplete JSON object. If only the last byte is wrong, the line was damaged later.
    """
    try:
        parse_json(line[:-1])
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class _BesideTrials(Observed):
    """A line that has no trial: exactly one of its fields is given, besides the time."""

    addition: Addition | None = None
    verification: Verification | None = None
    late: Late | None = None
    withdrawal: Withdrawal | None = None
    time: str = ""


_FIELDS: Mapping[type, str] = {
    Addition: "addition",
    Verification: "verification",
    Late: "late",
    Withdrawal: "withdrawal",
}
"""The field of a line, by the class of its contents."""


def now() -> str:
    """The present time, as in RFC 3339, UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
