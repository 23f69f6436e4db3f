"""Frame integrity: whether frames came back unchanged, as far as a result shows it, and with what confidence."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from lossratio.results.model import TestResult
from lossratio.trials import ChangedField, DirectionCounters, read_record
from lossratio.values import format_most, format_ratio

_SAFETY = 0.95


@dataclass(frozen=True)
class FrameIntegrity:
    """The frames that came back in all trials of a test, and their faults."""

    arrived: int
    """Frames that came back, with and without faults."""
    examined: int
    """How many of these frames were examined byte by byte."""
    duplicated: int
    """Further copies of received frames."""
    corrupted: int
    """Frames with other contents."""
    wrong_length: int
    """Frames that were truncated or padded."""
    misdelivered: int
    """Frames with other addresses, or of another direction."""
    reordered: int
    """Received frames that came after a frame that had been sent later."""
    before_trials: bool = False
    """Whether these are frames of a check before the first trial. In the trials, frames were then only counted, so
    copies may hide lost frames."""

    @property
    def is_sample(self) -> bool:
        """Whether only a part of the frames was examined."""
        return self.before_trials or self.examined < self.arrived

    @property
    def faults(self) -> dict[str, int]:
        """The faults that occurred, in words, each with its number of frames."""
        counts = {
            "duplicated": self.duplicated,
            "corrupted": self.corrupted,
            "truncated or padded": self.wrong_length,
            "misdelivered": self.misdelivered,
        }
        return {fault: count for fault, count in counts.items() if count}

    def most(self, count: int) -> float:
        """The upper limit of the share of frames with a fault, at a confidence of 95 %.

        This is the limit of a Poisson distribution. If no examined frame has the fault, it is 3 / examined frames (the
        rule of three).
        """
        if not self.examined:
            return 1.0
        if not self.is_sample:
            return count / self.arrived
        if not count:
            return min(1.0, 3.0 / self.examined)
        # Imported here because the import is slow, and most runs do not need it.
        from scipy.special import chdtri

        examined_count = count * self.examined / self.arrived
        return min(
            1.0, float(chdtri(2.0 * (examined_count + 1.0), 1.0 - _SAFETY)) / 2.0 / self.examined
        )


def integrity_of(result: TestResult) -> FrameIntegrity | None:
    """Frame integrity from a result's trials, or from the check before them; None if no frame was examined."""
    examined = [
        way
        for trial in result.trials
        for way in trial.directions
        if way.examined_frames is not None
    ]
    checked = list(low_rate_check(result.conditions.generator))
    examined = examined or checked
    if not examined:
        return None

    names = ("duplicated", "corrupted", "wrong_length", "misdelivered", "reordered")
    counts = {name: sum(getattr(way, f"{name}_frames") for way in examined) for name in names}
    arrived = [way.received_frames + way.faulty for way in examined]

    return FrameIntegrity(
        arrived=sum(arrived),
        examined=sum(way.examined_frames or 0 for way in examined),
        **counts,
        before_trials=examined is checked,
    )


def out_of_order(result: TestResult) -> Iterator[str]:
    """A line about frames that arrived in another order; nothing if there are none."""
    integrity = integrity_of(result)
    if integrity is not None and integrity.reordered:
        share = format_ratio(integrity.reordered / integrity.arrived)
        yield f"Frames that arrived after a frame sent later (RFC 4737): {integrity.reordered:,} ({share})."


def integrity_lines(result: TestResult) -> Iterator[str]:
    """Lines about how frames without faults were examined, and about faults that were not checked."""
    integrity = integrity_of(result)
    if integrity is not None and integrity.examined and not integrity.faults:
        among = f"of {integrity.arrived:,} that came back"
        if integrity.before_trials:
            among = "before the first trial"
        found = "Each came back once and unchanged"
        if integrity.is_sample:
            least = _rounded_up(integrity.most(0))
            found += f"; the share of all frames with a fault is below {least}"
        yield f"Frames examined: {integrity.examined:,} {among}. {found}."

    facts = result.conditions.generator.get("integrity")
    left_out = facts.get("not_checked") if isinstance(facts, dict) else None
    if isinstance(left_out, list) and left_out:
        yield f"Not checked in frames that came back: {', '.join(map(str, left_out))}."


def changed_fields_in(result: TestResult) -> Mapping[str, Sequence[ChangedField]]:
    """Which fields of single frames differ, by direction; empty: not known."""
    changes: dict[str, Sequence[ChangedField]] = {}
    for trial in result.trials:
        for way in trial.directions:
            if way.changed_fields:
                changes.setdefault(way.name, way.changed_fields)
    return changes


def faults_with_sizes(seen: FrameIntegrity) -> str:
    """Faults with counts, shares and the limits of the shares, e.g. ``12 duplicated (about 0.1 %, at most 0.2 %)``."""
    faults = []
    for fault, count in seen.faults.items():
        share = format_ratio(count / seen.arrived) if seen.arrived else "all"
        share = (
            f"about {share}, at most {_rounded_up(seen.most(count))}" if seen.is_sample else share
        )
        faults.append(f"{count:,} {fault} ({share})")
    return ", ".join(faults)


def _rounded_up(most: float) -> str:
    """An upper limit of a share, in per cent."""
    return f"{format_most(100.0 * most)} %"


def low_rate_check(generator: Mapping[str, JsonValue]) -> Sequence[DirectionCounters]:
    """Counters by direction of the check before the first trial, if the generator only counts frames in trials."""
    facts = generator.get("integrity")
    checked: Any = facts.get("low_rate_check", []) if isinstance(facts, dict) else []
    return tuple(read_record(DirectionCounters, json.dumps(counters)) for counters in checked)
