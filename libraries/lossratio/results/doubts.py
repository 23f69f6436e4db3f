"""Doubts about a measurement that its numbers do not show: what a reader should look into before trusting them.

All of them are computed from the trials in result files, so results of any age get them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from lossratio.results.trials import STALL, Trial, dropped_by_generator
from lossratio.units import format_frame_rate, format_ratio

DRIFT_SIGNIFICANCE = 0.001
"""How improbable a trend of unchanging trials must be, over all loads of a test together, to be called a drift."""

DRIFT_LEAST_TRIALS = 8
"""Fewer trials at a load are not looked at for a drift."""

BANDS_LEAST_TRIALS = 8
"""Fewer trials at a load are not looked at for two bands."""

BANDS_LEAST_SHARE = 0.2
"""Share of the trials that the smaller band must have; fewer are outliers."""

BANDS_LEAST_GAP_RATIO = 0.01
"""Gap between two bands, relative to the higher one's lower edge, that there must be at least."""

BANDS_GAP_OVER_RANGE = 3.0
"""How many times as wide as the wider band the gap between two bands must be."""


class DoubtKind(str, Enum):
    """Kinds of doubts; a trend follows them as it follows rates."""

    DRIFT = "drift"
    """Later trials at the same load differ from earlier ones: the SUT throttles, heats up, or fills a table."""
    TWO_BANDS = "two bands"
    """Forwarding rates at one load are in two groups: e.g. workers that share the traffic unevenly."""
    MRR_BELOW_PDR = "MRR below PDR"
    """Less is forwarded at maximum load than at a smaller one: the SUT degrades under overload."""
    LATE_FRAMES = "late frames"
    """Frames came back after the wait for frames in flight, and count as lost."""
    GENERATOR_DROPS = "generator drops"
    """Frames came back and were dropped inside the generator, and count as lost."""
    GENERATOR_STALLS = "generator stalls"
    """No more frames were lost beyond what a goal allows than the generator sent in a burst, to make up for a stall."""
    INTEGRITY = "frame integrity"
    """Frames came back more than once, changed, truncated, padded or elsewhere; they do not count as received."""
    TESTBED_CHANGED = "testbed changed"
    """A node was suspended, starved or paused around a trial that stands all the same."""


@dataclass(frozen=True)
class Doubt:
    """A doubt about one result.

    Attributes:
        kind: What kind of doubt.
        reason: What was seen, in words.
    """

    kind: DoubtKind
    reason: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.reason}"


def drift_in(trials: Sequence[Trial]) -> Doubt | None:
    """The clearest drift of the forwarding rate over the trials at one load.

    Kendall's rank correlation of trial number and forwarding rate, at each load and duration with enough trials that
    are not all equal; the smallest probability counts, multiplied by the number of such loads (Bonferroni).
    """
    candidates = [group for group in _repeated(trials, DRIFT_LEAST_TRIALS) if len({_rate(each) for each in group}) > 1]
    if not candidates:
        return None
    probability, group = min(((_trend_probability(group), group) for group in candidates), key=lambda each: each[0])
    if probability * len(candidates) >= DRIFT_SIGNIFICANCE:
        return None
    third = max(1, len(group) // 3)
    first, last = _mean_rate(group[:third]), _mean_rate(group[-third:])
    change = format_ratio(abs(last - first) / first) if first else "all"
    return Doubt(
        DoubtKind.DRIFT,
        f"of {len(group)} trials at {format_frame_rate(group[0].load_per_interface_fps)} per interface the last third "
        f"forwards {change} {'more' if last > first else 'less'} than the first",
    )


def two_bands_in(trials: Sequence[Trial]) -> Doubt | None:
    """Two bands of forwarding rates at one load: the first load, from the highest, that shows them.

    The widest gap between neighbouring rates separates the bands; it must be wide against either band.
    """
    for group in _repeated(trials, BANDS_LEAST_TRIALS):
        rates = sorted(_rate(each) for each in group)
        cut = max(range(1, len(rates)), key=lambda index: rates[index] - rates[index - 1])
        low, high = rates[:cut], rates[cut:]
        gap = high[0] - low[-1]
        widest = max(low[-1] - low[0], high[-1] - high[0])
        enough = min(len(low), len(high)) >= BANDS_LEAST_SHARE * len(rates)
        if enough and gap >= BANDS_LEAST_GAP_RATIO * high[0] and gap >= BANDS_GAP_OVER_RANGE * widest:
            return Doubt(
                DoubtKind.TWO_BANDS,
                f"at {format_frame_rate(group[0].load_per_interface_fps)} per interface, {len(low)} trials forward "
                f"{format_frame_rate(low[-1])} at most, and {len(high)} trials {format_frame_rate(high[0])} at least",
            )
    return None


def late_frames(trials: Iterable[Trial], of_last: int) -> Doubt | None:
    """Frames that came back too late.

    Args:
        trials: The trials that count.
        of_last: Such frames of the last trial, which no trial after it counted.
    """
    of_others = (sum(each.late_frames for each in trial.directions) for trial in trials)
    late = [frames for frames in (*of_others, of_last) if frames]
    if not late:
        return None
    return Doubt(
        DoubtKind.LATE_FRAMES,
        f"{sum(late):,} frames in {len(late)} trials came back too late and count as lost; wait longer after trials",
    )


def generator_drops(trials: Iterable[Trial]) -> Doubt | None:
    """Frames that came back and were dropped inside the generator."""
    dropped = [frames for trial in trials if (frames := dropped_by_generator(trial.as_result().output))]
    if not dropped:
        return None
    return Doubt(
        DoubtKind.GENERATOR_DROPS,
        f"{sum(dropped):,} frames in {len(dropped)} trials came back, were dropped inside the generator, and count as "
        "lost; the SUT may forward more",
    )


def generator_stalls(trials: Iterable[Trial], allowed: Sequence[float]) -> Doubt | None:
    """Stalls of the generator without whose bursts trials may have lost no more than a goal allows.

    Args:
        trials: The trials that count.
        allowed: Loss ratios that goals allow.
    """
    stalls = [stall for trial in trials if (stall := _deciding_stall(trial, allowed))]
    if not stalls:
        return None
    return Doubt(
        DoubtKind.GENERATOR_STALLS,
        f"in {len(stalls)} trials the generator was stalled for up to {max(stalls) * 1e3:.3g} ms, and no more frames "
        "were lost beyond what is allowed than it then sent in a burst; the SUT may forward more at a constant load",
    )


def testbed_changed(trials: Iterable[Trial]) -> Doubt | None:
    """Changes of the testbed around trials that stand all the same."""
    standing = [(trial.number, each) for trial in trials for each in trial.incidents if each.done == "stands"]
    if not standing:
        return None
    number, first = standing[0]
    affected = len({number for number, _ in standing})
    told = f"trial {number} stands although the testbed changed around it"
    if affected > 1:
        told = f"{affected} trials stand although the testbed changed around them, the first of them trial {number}"
    return Doubt(DoubtKind.TESTBED_CHANGED, f"{told}: {first.change}")


def _deciding_stall(trial: Trial, allowed: Sequence[float]) -> float:
    """Seconds of a stall without whose burst the trial may have lost no more than a goal allows; 0: there was none."""
    stalled = [each for each in trial.directions if (each.lateness_s or 0.0) > STALL]
    sent = sum(each.sent_frames for each in trial.directions)
    lost = sum(each.sent_frames - each.received_frames for each in trial.directions)
    in_bursts = sum(
        min(each.sent_frames - each.received_frames, (each.lateness_s or 0.0) * each.intended_frames / trial.duration_s)
        for each in stalled
    )
    decides = any(lost - in_bursts <= ratio * sent < lost for ratio in allowed)
    return trial.lateness_s if decides else 0.0


def _repeated(trials: Iterable[Trial], least: int) -> list[list[Trial]]:
    """Trials of the same load and duration, where there are enough, from the highest load."""
    groups: dict[tuple[float, float], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.load_per_interface_fps, trial.duration_s), []).append(trial)
    return [groups[key] for key in sorted(groups, reverse=True) if len(groups[key]) >= least]


def _trend_probability(group: Sequence[Trial]) -> float:
    # Imported here because it takes a while, and most runs never get here.
    from scipy.stats import kendalltau

    return float(kendalltau([each.number for each in group], [_rate(each) for each in group]).pvalue)


def _rate(trial: Trial) -> float:
    return trial.forwarding_rate_per_interface_fps


def _mean_rate(trials: Sequence[Trial]) -> float:
    return sum(_rate(trial) for trial in trials) / len(trials)
