"""DUTs whose program waited for a CPU for so long that frames found no room in the ring in front of the program."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lossratio.dut import Dut
from lossratio.testbed.changes import STARVED, Change, longest_wait
from lossratio.testbed.fingerprint import Fingerprint
from lossratio.trials import TrialInput, TrialOutput

LEAST_SHARE = 0.9
"""The share of the time that explains the loss for which a thread must have waited. A ring that the thread begins to
empty is full for some milliseconds more."""


@dataclass(frozen=True)
class Unfetched:
    """Frames that a DUT's program never took from the rings in front of it, between two readings."""

    node: str
    """The DUT's node."""
    holds_s: float
    """Seconds of traffic that a ring holds."""
    frames: Mapping[str, int]
    """These frames, by the side of the DUT."""


class RingReader:
    """Reads how many frames found no room in the rings of the DUTs that have such counters."""

    def __init__(self, duts: Sequence[Dut[Any]]) -> None:
        self._duts = [dut for dut in duts if dut.hold_time is not None]
        self._before: list[Mapping[str, int]] = []
        self.may_still_wait = False
        """Whether frames may have waited in a ring at the last reading.

        A program that had no CPU may take these frames only after the trial. They would hide as many of the next trial.
        """

    def begin(self) -> None:
        """Takes the present counters as the first ones."""
        self._before = [dut.unfetched_frames() for dut in self._duts]
        self.may_still_wait = False

    def read(self) -> tuple[Unfetched, ...]:
        """The frames since the last reading.

        Raises:
            DutError: If a DUT does not answer.
            NodeError: If a node cannot be reached.
        """
        before = self._before
        self.begin()
        found = []

        for dut, then, now in zip(self._duts, before, self._before, strict=True):
            # A program that was started again counts from zero.
            frames = {side: max(0, count - then.get(side, 0)) for side, count in now.items()}
            found.append(Unfetched(dut.hop.node_name, dut.hold_time or 0.0, frames))
            self.may_still_wait = self.may_still_wait or any(frames.values())
        return tuple(found)


def lost_frames(output: TrialOutput) -> int:
    """Frames of a trial that the generator neither dropped nor left unsent."""
    return sum(
        max(0, each.sent_frames - each.received_frames - each.generator_drop_frames)
        for each in output.directions
    )


def starved_in(
    trial: TrialInput,
    output: TrialOutput,
    looks: tuple[Fingerprint, Fingerprint],
    rings: Sequence[Unfetched],
) -> Iterator[Change]:
    """The DUTs whose wait for a CPU explains most of a trial's lost frames.

    A ring that nobody empties is full after `Unfetched.holds_s`, and then loses all frames. So a wait explains a loss
    only if it was as long as this time and the time in which the lost frames came.
    """
    lost = lost_frames(output)
    rate = max(each.sent_frames / (each.elapsed_s or trial.duration) for each in output.directions)
    found = [_starved(ring, looks, rate) for ring in rings]
    changes = [change for change in found if change is not None]

    # Frames that waited until the trial was over count as lost, too. Others than the trial's own have no part in it.
    if 2 * sum(change.explained_frames for change in changes) < lost:
        return
    for change in changes:
        explained = min(change.explained_frames, lost)
        lost -= explained
        yield replace(change, explained_frames=explained)


def _starved(ring: Unfetched, looks: tuple[Fingerprint, Fingerprint], rate: float) -> Change | None:
    """The wait of a DUT's thread that explains the frames that found no room; None: there is no such wait."""
    before, after = (look.nodes.get(ring.node) for look in looks)
    unfetched = sum(ring.frames.values())
    if before is None or after is None or not unfetched:
        return None

    waited, thread = longest_wait(before, after)
    if waited < LEAST_SHARE * (ring.holds_s + max(ring.frames.values()) / rate):
        return None
    what = f"{waited:.2g} s ({unfetched:,} frames found no room; it holds {ring.holds_s:g} s)"
    return Change(STARVED, ring.node, None, thread, what, unfetched)
