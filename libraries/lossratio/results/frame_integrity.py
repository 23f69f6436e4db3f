"""Whether frames came back as they were sent: what a result can say about it, and how surely."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from lossratio.results.model import TestResult
from lossratio.results.trials import Direction, counters_of, describe_direction
from lossratio.trials import DirectionCounters
from lossratio.units import format_ratio

_SAFETY = 0.95


@dataclass(frozen=True)
class FrameIntegrity:
    """What all trials of a test together show about frames that came back.

    Attributes:
        arrived: Frames that came back, whatever they were.
        examined: How many of them were looked at byte by byte.
        duplicated: Further copies of received frames.
        corrupted: Frames with other contents.
        wrong_length: Frames that were truncated or padded.
        misdelivered: Frames with other addresses, or of other directions.
        reordered: Received frames that came after one that was sent later.
        before_trials: Whether these were frames of a check before the first trial, and in trials frames were counted
            only: then copies may have made up for lost ones.
    """

    arrived: int
    examined: int
    duplicated: int
    corrupted: int
    wrong_length: int
    misdelivered: int
    reordered: int
    before_trials: bool = False

    @property
    def is_sample(self) -> bool:
        """Whether there were others that were not examined."""
        return self.before_trials or self.examined < self.arrived

    @property
    def faults(self) -> dict[str, int]:
        """The faults that there are, in words, each with how many frames have it."""
        counts = {
            "duplicated": self.duplicated,
            "corrupted": self.corrupted,
            "truncated or padded": self.wrong_length,
            "misdelivered": self.misdelivered,
        }
        return {fault: count for fault, count in counts.items() if count}

    def most(self, count: int) -> float:
        """The largest share of all frames that may have a fault, at a confidence of 95 %.

        That of a Poisson distribution, which is 3 of the examined frames where none was found (rule of three).

        Args:
            count: How many frames have it, as far as is known.
        """
        if not self.examined:
            return 1.0
        if not self.is_sample:
            return count / self.arrived
        if not count:
            return min(1.0, 3.0 / self.examined)
        # Imported here because it takes a while, and most runs never get here.
        from scipy.stats import chi2

        found = count * self.examined / self.arrived
        return min(1.0, float(chi2.ppf(_SAFETY, 2.0 * (found + 1.0))) / 2.0 / self.examined)


def integrity_of(result: TestResult) -> FrameIntegrity | None:
    """What a result's trials, or the check before them, show; None if nobody looked at a frame."""
    looked_at = [each for trial in result.trials for each in trial.directions if each.examined_frames is not None]
    checked = [describe_direction(each) for each in low_rate_check(result.conditions.generator)]
    looked_at = looked_at or checked
    if not looked_at:
        return None
    return FrameIntegrity(
        arrived=sum(_arrived(each) for each in looked_at),
        examined=sum(each.examined_frames or 0 for each in looked_at),
        duplicated=sum(each.duplicated_frames for each in looked_at),
        corrupted=sum(each.corrupted_frames for each in looked_at),
        wrong_length=sum(each.wrong_length_frames for each in looked_at),
        misdelivered=sum(each.misdelivered_frames for each in looked_at),
        reordered=sum(each.reordered_frames for each in looked_at),
        before_trials=looked_at is checked,
    )


def integrity_lines(result: TestResult) -> Iterator[str]:
    """What was seen of frames that came back, and what was not looked at."""
    seen = integrity_of(result)
    if seen is not None and seen.examined:
        among = "before the first trial" if seen.before_trials else f"of {seen.arrived:,} that came back"
        yield f"Frames examined: {seen.examined:,} {among}. {_finding(seen)}"
    if seen is not None and seen.reordered:
        share = format_ratio(seen.reordered / seen.arrived)
        yield f"Frames that came after one sent later (RFC 4737): {seen.reordered:,} ({share})."
    facts = result.conditions.generator.get("integrity")
    left_out = facts.get("not_checked") if isinstance(facts, dict) else None
    if isinstance(left_out, list) and left_out:
        yield f"Not checked of frames that came back: {', '.join(map(str, left_out))}."


def faults_with_sizes(seen: FrameIntegrity) -> str:
    """Faults with counts, shares, and how large these may be, e.g. ``12 duplicated (about 0.1 %, at most 0.2 %)``."""
    return ", ".join(f"{count:,} {fault} ({_share(seen, count)})" for fault, count in seen.faults.items())


def low_rate_check(generator: Mapping[str, JsonValue]) -> Sequence[DirectionCounters]:
    """What a generator that only counts the frames of trials saw of some before them, by direction.

    Args:
        generator: What a result says about it.
    """
    facts = generator.get("integrity")
    checked: Any = facts.get("low_rate_check", []) if isinstance(facts, dict) else []
    return tuple(DirectionCounters(**each) for each in checked)


def _finding(seen: FrameIntegrity) -> str:
    if seen.faults:
        effect = (
            "in trials they may make up for lost frames" if seen.before_trials else "none of these count as received"
        )
        return f"{faults_with_sizes(seen)}: {effect}."
    if not seen.is_sample:
        return "Each of them was as it was sent, and came once."
    return f"Each of them was as it was sent, and came once: fewer than {format_ratio(seen.most(0))} of all are not."


def _share(seen: FrameIntegrity, count: int) -> str:
    share = format_ratio(count / seen.arrived) if seen.arrived else "all"
    return f"about {share}, at most {format_ratio(seen.most(count))}" if seen.is_sample else share


def _arrived(direction: Direction) -> int:
    return direction.received_frames + counters_of(direction).faulty
