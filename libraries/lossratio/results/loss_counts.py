"""Finds sizes that alone lose frames, if the generator counts the frames of each size once per trial.

These counts do not say when in a trial frames were lost. All losses of a trial may be one burst, which hits each size
as often as it is sent. So a trial counts once, however many frames it lost.
"""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from lossratio.results.losses import LEVEL, LossPattern, LossPlaces
from lossratio.results.trials import Trial
from lossratio.units import format_ratio


def counted_places(trials: Sequence[Trial]) -> LossPlaces | None:
    """The sizes that alone lose frames; None: there are none, or sizes are not counted.

    Only trials that are evidence count, except those with late frames, which were not lost.

    Args:
        trials: The trials of a measurement.
    """
    lost: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    chance = Fraction(1)
    lossy = 0
    for trial in trials:
        own_lost, own_sent = _by_size(trial)
        if not own_lost or not trial.is_evidence or trial.late_frames:
            continue
        lossy += 1
        lost += own_lost
        sent += own_sent
        # A burst hits these sizes, and no others, as often as they occur among the frames.
        chance *= Fraction(sum(own_sent[size] for size in own_lost), sum(own_sent.values()))

    sets = 2 ** len(sent) - 2
    chance = min(Fraction(1), chance * max(1, sets))
    if not lossy or len(lost) == len(sent) or chance >= LEVEL:
        return None

    sizes = " and ".join(f"{size:,} B" for size in sorted(lost))
    share = format_ratio(lost.total() / sum(sent[size] for size in lost))
    pattern = LossPattern(
        kind="sizes",
        direction=None,
        sentence=f"All lost frames are of {sizes}; these lose {share} of their frames, all others none",
        explained_ratio=1.0,
        chance=float(chance),
        trials=lossy,
    )
    return LossPlaces(
        located_frames=lost.total(), trials=lossy, looked_at=sets, patterns=(pattern,)
    )


def _by_size(trial: Trial) -> tuple[Counter[int], Counter[int]]:
    """Lost and sent frames of each size; no lost frames if copies hide them."""
    lost: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    for direction in trial.directions:
        for stream in direction.streams:
            if stream.duplicated_frames:
                return Counter(), sent
            size = stream.frame_size_bytes
            sent[size] += stream.sent_frames
            lost[size] += max(0, stream.sent_frames - stream.received_frames)
    return +lost, sent
