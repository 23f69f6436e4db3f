"""Reads journals and results of a run for itself: digests, proofs, counters, doubts and blame.

It shares no code with the library. So a mistake that the library makes both when it writes and when it reads is seen.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

RATE, BURST = 10_000, 1000
"""Frames per second that the bridge lets through, and frames that it lets through at once."""

TOLERANCE = 0.005
"""What trials and bounds may be off by: a busy machine's stalls, and the frame at either end of a trial."""

UNSENT = 0.01
"""Share of unsent frames from which on a result must have a doubt."""

HOST = re.compile("waited for a CPU|of a CPU|stood still|suspended|had no room")
"""A change that other programs on this machine makes."""

FAULTS_OF_FRAMES = ("duplicated", "corrupted", "wrong_length", "misdelivered")


@dataclass(frozen=True)
class Truth:
    """What the DUT does to frames."""

    kind: str = "policer"
    """The policer of the bridge, or the fault of `faulty_device`."""
    counter: str | None = None
    """The counter of a direction in which each `EVERY`-th frame to the east is."""
    is_lost: bool = False
    """Whether that frame is lost."""


EVERY = 50

BAD_DUTS = (
    Truth("none"),
    Truth("route"),
    Truth("lose and duplicate", "duplicated", True),
    Truth("corrupt", "corrupted", True),
    Truth("zero", "corrupted", True),
    Truth("renumber", "corrupted", True),
    Truth("checksum", "corrupted", True),
    Truth("last byte", "corrupted", True),
    Truth("class", "corrupted", True),
    Truth("addresses", "misdelivered", True),
    Truth("mac", "misdelivered", True),
    Truth("truncate", "wrong_length", True),
    Truth("pad", "wrong_length", True),
    Truth("reorder", "reordered"),
    Truth("foreign payload", "foreign", True),
    Truth("add payload", "foreign"),
    Truth("arp", "foreign"),
)


def chain(lines: Sequence[bytes]) -> Iterator[str]:
    """Lines whose digest does not cover what is before it."""
    before = b""
    for number, line in enumerate(lines, start=1):
        start, _, end = line.rpartition(b', "digest": "')
        digest = hashlib.sha256(before + start).hexdigest()[:32].encode()
        if end != digest + b'"}':
            yield f"line {number} of the journal has a digest that does not fit"
        before = digest


def proved(lines: Sequence[bytes]) -> list[bytes]:
    """The lines of a journal, its header among them, up to the last one that says that the DUTs were looked at."""
    proofs = [number for number, line in enumerate(lines) if _is_proof(json.loads(line))]
    return list(lines[: max(proofs, default=0) + 1])


def _is_proof(line: dict[str, Any]) -> bool:
    return "input" not in line or line.get("verified") is True


def trials_of(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """The trials among the lines of a journal."""
    return [line for line in map(json.loads, lines) if "input" in line]


def wrong_trials(trials: Iterable[dict[str, Any]], truth: Truth) -> Iterator[str]:
    """Trials whose counters contradict each other, or what the DUT does to frames."""
    for number, trial in enumerate(trials, start=1):
        load, duration, output = trial["input"]["load"], trial["input"]["duration"], trial["output"]
        name = f"trial {number} of {duration} s at {load:.0f} fps"
        ways = output["directions"]
        sent, lost = (sum(counts) for counts in zip(*((way["sent_frames"], _lost(way)) for way in ways), strict=True))
        if (output["sent_frames"], output["lost_frames"]) != (sent, lost):
            yield f"{name} has {output['lost_frames']} of {output['sent_frames']} lost; directions: {lost} of {sent}"
        unsent = sum(way.get("unsent_frames", 0) for way in ways)
        # Without evidence that the DUT forwards them, unsent frames count against the load.
        ratio = (lost + unsent) / (sent + unsent)
        if output.get("decided_after") is not None:
            ratio = lost / sum(way["intended_frames"] for way in ways)
        if abs(output["loss_ratio"] - ratio) > 1e-9:
            yield f"{name} has a loss ratio of {output['loss_ratio']}, with {lost} of {sent} lost, {unsent} unsent"
        if truth.kind == "policer":
            yield from _wrongly_policed(name, load, duration, output)
        else:
            yield from _wrongly_counted(name, ways, truth)


def _lost(way: dict[str, Any]) -> int:
    return abs(int(way["sent_frames"]) - int(way["received_frames"]))


def _wrongly_policed(name: str, load: float, duration: float, output: dict[str, Any]) -> Iterator[str]:
    unsent = output["unsent_frames"] / max(1, output["sent_frames"] + output["unsent_frames"])
    offered, loss_ratio = load * (1.0 - unsent), output["lost_frames"] / max(1, output["sent_frames"])
    if output.get("decided_after") is not None:
        return
    took = max(duration, *(way.get("elapsed_s") or 0.0 for way in output["directions"]))
    true = max(0.0, 1.0 - (RATE * took + BURST) / (offered * duration)) if offered else 0.0
    # While the sender stands still, the policer's bucket may be full, and take no more.
    stall = max(way.get("lateness_s") or 0.0 for way in output["directions"]) + duration * unsent
    if not -TOLERANCE <= loss_ratio - true <= TOLERANCE + stall / duration:
        yield f"{name} lost {loss_ratio:.3%}, and should {true:.3%} ({unsent:.1%} unsent)"
    for way in output["directions"]:
        if counted := {fault: way[f"{fault}_frames"] for fault in FAULTS_OF_FRAMES if way.get(f"{fault}_frames")}:
            yield f"{name} has frames with faults that the bridge does not make: {counted}"


def _wrongly_counted(name: str, ways: Sequence[dict[str, Any]], truth: Truth) -> Iterator[str]:
    east, west = ways
    hit = east["sent_frames"] / EVERY if truth.counter else 0.0
    counted = {fault: east.get(f"{fault}_frames") or 0 for fault in (*FAULTS_OF_FRAMES, "reordered", "foreign")}
    for fault, frames in counted.items():
        wanted = hit if fault == truth.counter else 0.0
        if abs(frames - wanted) > 1.0 + (fault == "foreign" and 10):
            yield f"{name} counted {frames} frames as {fault} to the east, and should {wanted:.0f}"
    missing = hit * truth.is_lost
    if abs(_lost(east) - missing) > 1.0 or _lost(west):
        yield f"{name} lost {_lost(east)} frames to the east, {_lost(west)} to the west, and should {missing:.0f} and 0"


def wrong_result(text: bytes, trials: Sequence[dict[str, Any]], doubts: set[str], truth: Truth) -> Iterator[str]:
    """What is wrong with a result file, given the trials of its journal and the doubts that were reported."""
    yield from (f"the result: {problem}" for problem in chain([text.rstrip(b"\n")]))
    result = json.loads(text)
    recorded = [(trial["load_per_interface_fps"], trial["loss_ratio"]) for trial in result["trials"]]
    journaled = [(trial["input"]["load"], trial["output"]["loss_ratio"]) for trial in trials]
    if recorded != journaled:
        yield f"the result has {len(recorded)} trials that are not the {len(journaled)} of the journal"
    for goal in result.get("goals", ()) if truth.kind == "policer" else ():
        yield from _wrong_bounds(goal["result"], RATE + BURST / goal["goal"]["final_trial_duration_s"])
    yield from _wrong_doubts(result, trials, doubts, truth)


def _wrong_bounds(goal: dict[str, Any], truth: float) -> Iterator[str]:
    if not goal["regular"]:
        yield f"the result is not regular: {goal['reason']}"
        return
    low, high = (goal[f"relevant_{which}_bound"]["per_interface_fps"] for which in ("lower", "upper"))
    if not low * (1 - TOLERANCE) <= truth <= high * (1 + TOLERANCE):
        yield f"the bounds {low:.0f} to {high:.0f} do not enclose {truth:.0f}"


def _wrong_doubts(
    result: dict[str, Any], trials: Sequence[dict[str, Any]], doubts: set[str], truth: Truth
) -> Iterator[str]:
    totals: dict[float, list[int]] = {}
    for trial in trials:
        total = totals.setdefault(trial["input"]["load"], [0, 0])
        total[0] += trial["output"]["unsent_frames"]
        total[1] += trial["output"]["sent_frames"] + trial["output"]["unsent_frames"]
    share = max(unsent / planned for unsent, planned in totals.values())
    if (share > UNSENT and "goals" not in result) != ("unsent frames" in doubts) and (share <= UNSENT or not doubts):
        yield f"{share:.1%} of the frames are unsent, and the doubts are {doubts or 'none'}"
    ways = [way for trial in trials for way in trial["output"]["directions"]]
    has_faults = any(way.get(f"{fault}_frames") for way in ways for fault in FAULTS_OF_FRAMES)
    if has_faults and "frame integrity" not in doubts:
        yield f"frames have faults, and the doubts are {doubts or 'none'}"
    if truth.counter == "foreign" and "foreign frames" not in doubts:
        yield f"there are foreign frames, and the doubts are {doubts or 'none'}"
    if truth.counter is None and doubts & {"frame integrity", "foreign frames"}:
        yield f"the device does nothing wrong, and the doubts are {doubts}"
    stands = [
        incident
        for trial in trials
        for incident in trial["output"].get("incidents", ())
        if incident["done"] == "stands" and incident["guilty"] != "DUT"
    ]
    if stands and "testbed changed" not in doubts:
        yield f"{stands[0]['change']}, and the doubts are {doubts or 'none'}"


def wrong_blame(log: str, trials: Iterable[dict[str, Any]], guilty: set[str]) -> Iterator[str]:
    """Sides that an error or a trial blames, although nothing struck them."""
    for side, sentence in set(re.findall(r"The (TG|wire|DUT|controller) is to blame: ([^\n]*)", log)):
        if side not in guilty and not HOST.search(sentence):
            yield f"wrong blame: the {side}: {sentence}"
    for trial in trials:
        for incident in trial["output"].get("incidents", ()):
            if incident["guilty"] not in guilty and not HOST.search(incident["change"]):
                yield f"wrong blame in a trial: the {incident['guilty']}: {incident['change']}"
