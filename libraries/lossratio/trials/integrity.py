"""Frame integrity: each frame comes back as it was sent, and once (RFC 2544, section 10).

A receiver counts all frames, and examines some or all of them. This module turns both into counters, for every
generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from lossratio.errors import DutError
from lossratio.trials.trial import DirectionCounters


class Integrity(str, Enum):
    """The policy for a DUT that duplicates, corrupts, truncates, pads or misdelivers frames.

    Such frames never count as received, unless the policy is ``off``.
    """

    DOUBT = "doubt"
    """The result stands, and carries the doubt with its size."""
    FAIL = "fail"
    """The measurement fails: it is a fault of the DUT."""
    OFF = "off"
    """Frames are not examined: for a DUT that changes them on purpose, such as one that translates addresses."""


class IntegrityError(DutError):
    """A DUT duplicates, corrupts, truncates, pads or misdelivers frames, and the policy is ``fail``."""


@dataclass(frozen=True)
class Examination:
    """The frames that the receiver of a direction examined in one trial, and the faults among them.

    Attributes:
        examined: Frames that were examined byte by byte: all that arrived, or those of a sample of sequence numbers.
        duplicated: Further copies, among the examined ones.
        latency_copies: Further copies of latency frames, among all that arrived: these frames are counted by their
            numbers, and not examined.
        reordered: Frames with a lower sequence number than one before them, among the examined ones.
        corrupted: Frames with other contents, among the examined ones.
        readdressed: Frames with other IP addresses, among the examined ones.
        wrong_length: Frames of another length, among all that arrived.
        wrong_mac: Frames with another destination MAC address, among all that arrived.
        strayed: Frames of other directions that arrived here. They are not part of the frames that arrived.
    """

    examined: int
    duplicated: int = 0
    latency_copies: int = 0
    reordered: int = 0
    corrupted: int = 0
    readdressed: int = 0
    wrong_length: int = 0
    wrong_mac: int = 0
    strayed: int = 0


def with_examination(counters: DirectionCounters, examination: Examination) -> DirectionCounters:
    """The counters of a direction without the frames that must not count as received.

    Where a sample was examined, its faults are scaled up to all frames, and rounded up. Frames beyond those that were
    sent are copies in any case, as all of them carry the trial's tag.

    Args:
        counters: The counters; ``received`` is all frames of this trial that arrived in time, faulty ones among them.
        examination: The faults among these frames.
    """
    arrived, examined = counters.received, examination.examined

    def of_all(faults: int) -> int:
        return -(-faults * max(arrived - examination.latency_copies, examined) // examined) if examined else faults

    counted = replace(
        counters,
        examined=examined,
        duplicated=of_all(examination.duplicated) + examination.latency_copies,
        reordered=of_all(examination.reordered),
        corrupted=of_all(examination.corrupted),
        wrong_length=examination.wrong_length,
        misdelivered=of_all(examination.readdressed) + examination.wrong_mac,
    )
    intact = max(0, arrived - counted.faulty)
    surplus = max(0, intact - counters.sent)
    return replace(
        counted,
        received=intact - surplus,
        duplicated=counted.duplicated + surplus,
        misdelivered=counted.misdelivered + examination.strayed,
    )


def check_integrity(directions: Sequence[DirectionCounters], where: str) -> None:
    """Checks that each frame came back as it was sent, and once.

    Args:
        directions: The counters of each direction.
        where: The trial, in words, for the message.

    Raises:
        IntegrityError: If frames came back with faults.
    """
    faulty = [f"{direction.name}: {faults_in_words(direction)}" for direction in directions if direction.faulty]
    if faulty:
        raise IntegrityError(
            f"Frames did not come back as they were sent, {where}: {'; '.join(faulty)}. Look at the DUT; if it changes "
            "frames on purpose, measure with 'integrity=off'."
        )


def faults_in_words(counters: DirectionCounters) -> str:
    """The faults of a direction's frames in words, e.g. ``31 duplicated, 4 corrupted``.

    Where a sample was examined: ``about 31 duplicated, about 4 corrupted (estimated from 16,384 frames examined)``.
    """
    is_sample = 0 < (counters.examined or 0) < counters.received + counters.faulty
    faults = {
        "duplicated": counters.duplicated,
        "corrupted": counters.corrupted,
        "misdelivered": counters.misdelivered,
    }
    examined = ", ".join(f"{'about ' * is_sample}{count:,} {fault}" for fault, count in faults.items() if count)
    estimate = f" (estimated from {counters.examined:,} frames examined)" if is_sample and examined else ""
    known = f"{counters.wrong_length:,} truncated or padded" if counters.wrong_length else ""
    return ", ".join(part for part in (known, examined + estimate) if part)
