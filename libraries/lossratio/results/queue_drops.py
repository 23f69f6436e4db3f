"""How many of the lost frames the receive queues of the DUTs dropped, by the devices' counters."""

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from pydantic import Field

from lossratio.results.trials import Trial
from lossratio.values import FrameCount, Record, format_ratio

UNEVEN_TIMES = 1.5
"""A share is uneven if it is this many times the even share."""
LEAST_FRAMES_EACH = 1000
"""Shares are stated only if there are at least this many frames per worker or queue."""
_MOST_NAMED = 3
"""Maximum number of queues that a sentence names."""


class DroppingQueue(Record):
    """A receive queue of a DUT, over all trials that count and lost frames."""

    node: str
    """The DUT."""
    interface: str
    """The interface."""
    queue: int
    """Number of the queue."""
    frames: FrameCount
    """Frames that came in through it, with those that it dropped."""
    dropped_frames: FrameCount
    """Frames that it dropped."""
    dropped_ratio: float = Field(ge=0.0)
    """These frames as a share of all frames that the SUT lost. It can be above 1, because a device counts frames of
    other senders, too."""


class QueueDrops(Record):
    """The frames that the receive queues of the DUTs dropped, over all trials that count and lost frames."""

    lost_frames: FrameCount
    """Frames that the SUT lost in these trials."""
    unexplained_frames: FrameCount
    """Lost frames of these trials that no queue dropped."""
    surplus_frames: FrameCount
    """Frames that queues dropped in these trials, beyond those that were lost in the same trial: they came from other
    senders, or a device counts frames twice."""
    queues: tuple[DroppingQueue, ...]
    """The queues."""

    @property
    def sentence(self) -> str | None:
        """Which queues dropped the lost frames, as far as the counters prove it; None: they prove nothing."""
        dropping = [queue for queue in self.queues if queue.dropped_frames]
        if not dropping or not self.lost_frames:
            return None

        dropping.sort(key=attrgetter("dropped_frames"), reverse=True)
        dropped = sum(queue.dropped_frames for queue in dropping)
        if self.surplus_frames:
            what = (
                f"{dropped:,} frames, {self.surplus_frames:,} more than were lost in their trials"
            )
        elif self.unexplained_frames:
            what = f"{dropped:,} of {self.lost_frames:,} lost frames"
        else:
            what = f"all {dropped:,} lost frames"

        if len(dropping) > 1:
            said = f"{_in_words(dropping, dropped)} dropped {what}"
        else:
            said = f"{_name(dropping[0])} dropped {what}{self._beside(dropping[0])}"
        if self.unexplained_frames:
            said += f"; {self.unexplained_frames:,} are in no queue's counter"
        return said

    def _beside(self, dropping: DroppingQueue) -> str:
        """What the other queues of the interface did, beside the only one that dropped frames."""
        alike = [
            queue
            for queue in self.queues
            if (queue.node, queue.interface) == (dropping.node, dropping.interface)
        ]
        if len(alike) == 1:
            return ""
        words = ", the other one none"
        if len(alike) > 2:
            words = f", the other {len(alike) - 1} none"

        frames = sum(queue.frames for queue in alike)
        times = dropping.frames * len(alike) / max(1, frames)
        if frames < LEAST_FRAMES_EACH * len(alike) or times < UNEVEN_TIMES:
            return words
        return (
            f"{words}; {format_ratio(dropping.frames / frames)} of the frames came in through it, "
            f"{times:.2g} times its even share"
        )


def queue_drops_in(trials: Iterable[Trial]) -> QueueDrops | None:
    """What receive queues dropped in trials; None: no frame was lost, or the devices do not count this by queue.

    Args:
        trials: The trials of a measurement. Trials that are no evidence do not count.
    """
    lossy = [trial for trial in trials if trial.is_evidence and trial.missing.lost_by_sut]
    if not any(trial.queues for trial in lossy):
        return None

    lost = unexplained = surplus = 0
    frames: dict[tuple[str, str, int], int] = {}
    drops: dict[tuple[str, str, int], int] = {}
    for trial in lossy:
        own = trial.missing.lost_by_sut
        dropped = sum(queue.dropped_frames for queue in trial.queues)
        lost += own
        unexplained += max(0, own - dropped)
        surplus += max(0, dropped - own)
        for queue in trial.queues:
            place = (queue.node, queue.interface, queue.queue)
            frames[place] = frames.get(place, 0) + queue.frames
            drops[place] = drops.get(place, 0) + queue.dropped_frames

    # Record: what is known about the queues.
    return QueueDrops(
        lost_frames=lost,
        unexplained_frames=unexplained,
        surplus_frames=surplus,
        queues=tuple(_queues(frames, drops, lost)),
    )


def _queues(
    frames: dict[tuple[str, str, int], int], drops: dict[tuple[str, str, int], int], lost: int
) -> Iterator[DroppingQueue]:
    for place in sorted(frames):
        node, interface, number = place
        yield DroppingQueue(
            node=node,
            interface=interface,
            queue=number,
            frames=frames[place],
            dropped_frames=drops[place],
            dropped_ratio=drops[place] / lost,
        )


def _in_words(dropping: Sequence[DroppingQueue], dropped: int) -> str:
    """Several queues with their shares of the dropped frames."""
    named = [
        f"{_name(queue)} ({format_ratio(queue.dropped_frames / dropped)})"
        for queue in dropping[:_MOST_NAMED]
    ]
    others = len(dropping) - len(named)
    if others:
        named.append(f"{others} more")
    return f"{', '.join(named[:-1])} and {named[-1]}"


def _name(queue: DroppingQueue) -> str:
    return f"queue {queue.queue} of {queue.interface} ({queue.node})"
