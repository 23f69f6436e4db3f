"""Doubts about a measurement: reasons not to trust its numbers yet, which the numbers do not show.

All doubts are computed from the trials in result files, also from those of earlier runs.
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby, pairwise, takewhile
from statistics import NormalDist, fmean, pstdev

from lossratio.results.trials import Trial, foreign_frames_of
from lossratio.trials import most_lost_in_bursts
from lossratio.units import format_frame_rate, format_ratio, trials_counted

TIME_SIGNIFICANCE = 0.001
"""Time matters if the probability that trials of a constant SUT look like this, over all loads, is below this value."""
ORDER_LEAST_TRIALS, DRIFT_LEAST_TRIALS = 3, 8
"""Minimum number of trials at a load to examine their order, and minimum total number of such trials."""
STOPPED_LEAST_TRIALS = 3
"""Minimum number of trials without any frame, at the end, that show that the SUT no longer forwards."""
BANDS_LEAST_TRIALS = 8
"""Minimum number of trials at a load for finding two bands."""
BANDS_LEAST_SHARE = 0.2
"""Minimum share of the trials in the smaller band. Fewer trials are outliers."""
BANDS_LEAST_GAP_RATIO = 0.01
"""Minimum gap between two bands, relative to the lower edge of the higher band."""
BANDS_GAP_OVER_RANGE = 3.0
"""Minimum ratio of the gap between two bands to the width of the wider band."""

_ROUNDING = 1e-6
"""Share by which a change may exceed a resolution by rounding alone."""


class DoubtKind(str, Enum):
    """Kinds of doubts; a trend follows doubts as well as rates."""

    DRIFT = "drift"
    """Later trials at the same load differ from earlier ones: the SUT throttles, heats up, or fills a table."""
    TWO_BANDS = "two bands"
    """Forwarding rates at one load are in two groups, e.g. because workers share the traffic unevenly."""
    SPELLS = "spells"
    """Successive trials at a load are alike: the SUT has slow spells, a changing clock, or a memory."""
    MRR_BELOW_PDR = "MRR below PDR"
    """The forwarding rate at maximum load is lower than at a smaller load: the SUT degrades under overload."""
    LATE_FRAMES = "late frames"
    """Frames came back after the wait for frames in flight; they count as lost."""
    GENERATOR_DROPS = "generator drops"
    """The generator itself dropped frames that came back; the SUT did not lose them."""
    FULL_RINGS = "full rings"
    """A ring of the testbed had no room for frames on their way to the SUT; they count as unsent."""
    GENERATOR_STALLS = "generator stalls"
    """The generator stalled and then sent a burst. Without that burst, a trial may have met its goal."""
    UNSENT = "unsent frames"
    """The generator left so many frames unsent that the load was not offered; the value may describe the generator."""
    CONTRADICTED = "contradicted by a later trial"
    """A trial after the search, at a load that met a goal, lost far more than the goal allows."""
    INTEGRITY = "frame integrity"
    """Frames came back more than once, changed, truncated, padded or misdelivered; they do not count as received."""
    MEMORY = "memory of the device"
    """The device forwards less right after a trial or a loss than after a rest, and the rests between trials are too
    short."""
    LOSS_AT_ANY_LOAD = "loss at any load"
    """Trials at small and large loads lose the same, so the load is not the cause."""
    CHANCE = "zone of chance"
    """Over more than a goal's width, chance decides whether trials are lossy: another search may end elsewhere."""
    LOSS_BESIDE_RESET = "loss beside the reset"
    """Frames were lost before a reset, or after it outside of its longest outage; they are not in the reset time."""
    UNEVEN = "uneven load"
    """One worker or receive queue of the SUT takes far more frames than its share; its limit is not the SUT's."""
    FOREIGN_FRAMES = "foreign frames"
    """Frames that belong to no trial came out of the testbed: they take capacity, and may hide losses."""
    UNSTEADY = "unsteady times"
    """Repetitions took very different times, so that their median means little."""
    TESTBED_CHANGED = "testbed changed"
    """A node was suspended, starved or paused around a trial that still counts."""


LOOK_FOR_DECLINE = "Look for throttling, and for tables that fill up"
"""What to do if the SUT gets slower."""
LOOK_FOR_GAIN = "Look for a clock frequency that rises, and for work that ended"
"""What to do if the SUT gets faster."""


@dataclass(frozen=True)
class Doubt:
    """A doubt about one result."""

    kind: DoubtKind
    """Kind of the doubt."""
    reason: str
    """The observation, and what to do about it or look for, in words without a full stop at the end."""

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.reason}"


def stopped_forwarding_in(trials: Sequence[Trial]) -> Doubt | None:
    """Finds that the SUT lost every frame from some trial on, although it forwarded frames at such a load before."""
    dead = list(takewhile(_lost_everything, reversed(trials)))
    if len(dead) < STOPPED_LEAST_TRIALS:
        return None

    least = min(trial.load_per_interface_fps for trial in dead)
    before = trials[: len(trials) - len(dead)]
    if not any(trial.load_per_interface_fps >= least and _rate(trial) > 0.0 for trial in before):
        return None
    return Doubt(
        DoubtKind.DRIFT,
        f"from trial {dead[-1].number} on, all {len(dead)} trials lost every frame, although frames passed at such a "
        "load before: the SUT, or a link to it, stopped working during the measurement. Look for a crash of the SUT or "
        "a broken link, and measure again",
    )


def _lost_everything(trial: Trial) -> bool:
    """Whether the SUT lost every frame of a trial."""
    return bool(trial.sent_frames) and trial.missing.lost_by_sut == trial.sent_frames


def time_dependence_in(trials: Sequence[Trial]) -> Doubt | None:
    """Finds that the outcome at a load depends on its time: the SUT drifts, or has spells.

    Trials at one load are compared by the ranks of their forwarding rates: with their order (Kendall's rank
    correlation), and with the previous trial at that load (serial rank correlation). If time does not matter, all
    orders are equally probable. The mean and the variance of the sums over all loads follow from this, and there is a
    doubt if the sums' probability is below `TIME_SIGNIFICANCE`. Frames that the tester left out can also create an
    order. So the order must appear both in the measured forwarding rates, and in the rates that would have been
    measured if the tester had sent and counted all frames.
    """
    measured = _time_dependence(trials)
    if measured is None or not _tester_took_part(trials):
        return measured
    offered = _time_dependence([_as_offered(trial) for trial in trials])
    if offered is not None and _alike(measured, offered):
        return measured
    return None


def _alike(one: Doubt, other: Doubt) -> bool:
    """Whether two doubts say the same, apart from the size."""
    return one.kind is other.kind and (" less " in one.reason) == (" less " in other.reason)


def _time_dependence(trials: Sequence[Trial]) -> Doubt | None:
    groups = [
        group
        for group in _repeated(trials, ORDER_LEAST_TRIALS)
        if len(set(map(_passed, group))) > 1
    ]
    if sum(map(len, groups)) < DRIFT_LEAST_TRIALS:
        return None

    trend, spell = _deviation(groups, _trend), _deviation(groups, _spells)
    least = NormalDist().inv_cdf(1.0 - TIME_SIGNIFICANCE / 3.0)
    if abs(trend) < least:
        if spell < least:
            return None

        group = max(groups, key=lambda group: _spells(_scores(group))[0])
        loads = "1 load" if len(groups) == 1 else f"{len(groups)} loads"
        return Doubt(
            DoubtKind.SPELLS,
            f"at {loads}, trials forward about as much as the previous trial at the same load, "
            f"for example at {format_frame_rate(group[0].load_per_interface_fps)} per interface: "
            "the SUT has spells that outlast trials, and the result depends on when each load was "
            "measured. Look for a clock frequency that changes, and for other work on the SUT",
        )

    group = max(groups, key=lambda group: math.copysign(1.0, trend) * _trend(_scores(group))[0])
    third = max(1, len(group) // 3)
    first, last = (sum(map(_rate, part)) / len(part) for part in (group[:third], group[-third:]))
    change = format_ratio(abs(last - first) / first) if first else "all"

    return Doubt(
        DoubtKind.DRIFT,
        f"the last third of {len(group)} trials at {format_frame_rate(group[0].load_per_interface_fps)} per interface "
        f"forwards {change} {'more' if trend > 0.0 else 'less'} than the first third. "
        f"{LOOK_FOR_GAIN if trend > 0.0 else LOOK_FOR_DECLINE}",
    )


def two_bands_in(trials: Sequence[Trial]) -> Doubt | None:
    """Finds two bands of forwarding rates at one load: the highest load that shows them.

    The widest gap between neighbouring rates separates the bands; the gap must be wide compared with both bands. Frames
    that the tester left out can also create bands at a load: see `time_dependence_in`.
    """
    # The forwarding rates of trials that ended early are for other lengths of time.
    whole = (trial for trial in trials if trial.decided_after_s is None)
    for group in _repeated(whole, BANDS_LEAST_TRIALS):
        measured = _two_bands(group)
        if measured is None:
            continue
        if not _tester_took_part(group) or _two_bands(list(map(_as_offered, group))) is not None:
            return measured
    return None


def _two_bands(group: Sequence[Trial]) -> Doubt | None:
    """Two bands of forwarding rates in the trials at one load."""
    rates = sorted(_rate(trial) for trial in group)
    cut = max(range(1, len(rates)), key=lambda index: rates[index] - rates[index - 1])
    low = rates[:cut]
    high = rates[cut:]

    gap = high[0] - low[-1]
    widest = max(low[-1] - low[0], high[-1] - high[0])
    enough = min(len(low), len(high)) >= BANDS_LEAST_SHARE * len(rates)
    if not enough or gap < BANDS_LEAST_GAP_RATIO * high[0] or gap < BANDS_GAP_OVER_RANGE * widest:
        return None
    return Doubt(
        DoubtKind.TWO_BANDS,
        f"at {format_frame_rate(group[0].load_per_interface_fps)} per interface, "
        f"{len(low)} trials forward at most {format_frame_rate(low[-1])}, and {len(high)} "
        f"trials at least {format_frame_rate(high[0])}. Look for workers that share the traffic unevenly",
    )


def late_frames(trials: Sequence[Trial]) -> Doubt | None:
    """Reports frames that count as lost but that the SUT did not lose because they came back after the wait."""
    counts = [trial.missing.late for trial in trials]
    missing = sum(trial.missing.total for trial in trials)
    return only_late(counts, missing, "")


def only_late(counts: Sequence[int], missing: int, which: str) -> Doubt | None:
    """The doubt that the missing frames of some trials were only late; None: none was late.

    Args:
        counts: The late frames of each trial.
        missing: The missing frames of all trials.
        which: The words that say which trials these are, after a blank; empty: all.
    """
    late = sum(counts)
    if not late:
        return None
    affected = f"{trials_counted(sum(count > 0 for count in counts))}{which}"
    return Doubt(
        DoubtKind.LATE_FRAMES,
        f"{late:,} of the {missing:,} missing frames were only late: in {affected}, they came "
        "back after the wait for frames in flight. They count as lost although the SUT did not "
        "lose them. With a longer wait (settle of the generator) they might count as received",
    )


def doubts_about_frames(trials: Sequence[Trial]) -> Iterator[Doubt]:
    """Doubts about frames that belong to no trial, or did not pass the testbed itself."""
    for kind, counts, text in (
        (
            DoubtKind.FOREIGN_FRAMES,
            (sum(map(foreign_frames_of, trial.directions)) for trial in trials),
            "in {trials}, the generator's ports received {frames} frames that belong to no trial: "
            "they come from other senders, have a foreign payload, or are copies of earlier "
            "frames. They use capacity, and if the generator counts all frames of a port, they "
            "hide the loss of as many frames. Look for other senders on these links, and for the "
            "device's own frames",
        ),
        (
            DoubtKind.FULL_RINGS,
            (sum(way.refused_frames for way in trial.directions) for trial in trials),
            "the generator's port, or the ring of 256 frames of a veth link behind it, had no "
            "room for {frames} frames in {trials}. They never reached the SUT and count as "
            "unsent; the SUT may forward more. Stop other work on the testbed's machine",
        ),
        (
            DoubtKind.GENERATOR_DROPS,
            (trial.missing.generator_drops for trial in trials),
            "the generator dropped {frames} frames that came back in {trials}: the SUT did not "
            "lose them, and may forward more. Look at the rings, the CPUs and the interrupts of the TG",
        ),
    ):
        some = [count for count in counts if count]

        if some:
            yield Doubt(
                kind, text.format(frames=f"{sum(some):,}", trials=trials_counted(len(some)))
            )


def generator_stalls(trials: Iterable[Trial], allowed: Sequence[float]) -> Doubt | None:
    """Reports stalls of the generator that may have decided a trial: without the burst, the loss may have met a goal.

    Args:
        trials: The trials of the result.
        allowed: The loss ratio that each goal allows.
    """
    stalls = [stall for trial in trials if (stall := _deciding_stall(trial, allowed))]
    if not stalls:
        return None
    return Doubt(
        DoubtKind.GENERATOR_STALLS,
        f"in {trials_counted(len(stalls))} the generator was stalled for up to "
        f"{max(stalls) * 1e3:.3g} ms, and then sent too fast, to catch up. That burst alone "
        "explains the loss beyond what is allowed; the SUT may forward more at a constant load. Stop other work on the "
        "generator's machine",
    )


def testbed_changed(trials: Iterable[Trial]) -> Doubt | None:
    """Reports changes of the testbed around trials that still count."""
    standing = [
        (trial.number, incident)
        for trial in trials
        for incident in trial.incidents
        # A shortage at a DUT did no harm if the DUT forwarded all frames in time.
        if incident.done == "stands" and (incident.guilty != "DUT" or _may_be_of_dut(trial))
    ]
    if not standing:
        return None

    number, first = standing[0]
    affected = len({number for number, _ in standing})
    statement = (
        f"{affected} trials count although the testbed changed around them, beginning with trial "
        f"{number}"
    )
    if affected == 1:
        statement = f"trial {number} counts although the testbed changed around it"

    return Doubt(
        DoubtKind.TESTBED_CHANGED,
        f"{statement}: {first.change}. Measure again while nothing disturbs the testbed",
    )


def _may_be_of_dut(trial: Trial) -> bool:
    """Whether some frames were lost or late, and this was not the tester's fault."""
    return trial.lost_frames is None or trial.missing.without_tester > 0


def _deciding_stall(trial: Trial, allowed: Sequence[float]) -> float:
    """Seconds of a stall that may have decided the trial; 0: none.

    Without the burst after such a stall, the trial may have lost no more than a goal allows.
    """
    is_early = trial.decided_after_s is not None
    whole = sum(
        direction.intended_frames if is_early else direction.sent_frames
        for direction in trial.directions
    )
    lost = sum(direction.lost for direction in trial.directions)
    in_bursts = most_lost_in_bursts(trial.directions, trial.duration_s)
    if any(lost - in_bursts <= ratio * whole < lost for ratio in allowed):
        return trial.lateness_s
    return 0.0


def _repeated(trials: Iterable[Trial], least: int) -> list[list[Trial]]:
    """Groups of trials with the same load and duration, if large enough, from the highest load."""
    groups: dict[tuple[float, float], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.load_per_interface_fps, trial.duration_s), []).append(trial)
    return [groups[key] for key in sorted(groups, reverse=True) if len(groups[key]) >= least]


def _deviation(
    groups: Iterable[Sequence[Trial]],
    measure: Callable[[Sequence[float]], tuple[float, float, float]],
) -> float:
    """How far a sum over all loads is from its mean over all orders, in standard deviations."""
    totals, means, variances = zip(*(measure(_scores(group)) for group in groups), strict=True)
    return float((sum(totals) - sum(means)) / math.sqrt(sum(variances)))


def _scores(group: Sequence[Trial]) -> list[float]:
    """The ranks of trials by how much they forwarded, with a mean of 0 and a variance of 1."""
    passed = [_passed(trial) for trial in group]
    in_order = sorted(passed)
    ranks = [bisect_left(in_order, trial) + bisect_right(in_order, trial) for trial in passed]
    mean, spread = fmean(ranks), pstdev(ranks)
    return [(rank - mean) / spread for rank in ranks]


def _trend(scores: Sequence[float]) -> tuple[float, float, float]:
    """The number of rising minus falling pairs (M. G. Kendall, 1938); the mean and the variance over all orders."""
    before: list[float] = []
    rising = 0
    for score in scores:
        rising += bisect_left(before, score) - (len(before) - bisect_right(before, score))
        insort(before, score)
    alike = (len([*run]) for _, run in groupby(before))
    pairs = [count * (count - 1) * (2 * count + 5) for count in (len(scores), *alike)]
    return float(rising), 0.0, (pairs[0] - sum(pairs[1:])) / 18.0


def _spells(scores: Sequence[float]) -> tuple[float, float, float]:
    """The sum of products of neighbouring scores; its mean and variance over all orders."""
    count = len(scores)
    fourth = math.fsum(score**4 for score in scores)
    pairs = count * (count - 1)
    same = (count**2 - fourth) / pairs
    shared = (2.0 * fourth - count**2) / (pairs * (count - 2))
    apart = (3.0 * count**2 - 6.0 * fourth) / (pairs * (count - 2) * max(1, count - 3))
    square = (count - 1) * same + 2 * (count - 2) * shared + (count - 2) * (count - 3) * apart
    return sum(one * other for one, other in pairwise(scores)), -1.0, square - 1.0


def _passed(trial: Trial) -> tuple[float, float]:
    """How much a trial forwarded: the sooner its verdict was certain, the less."""
    early = trial.decided_after_s
    if early is None:
        return (math.inf, _rate(trial))
    return (early, 0.0)


def _rate(trial: Trial) -> float:
    return trial.forwarding_rate_per_interface_fps


def _tester_took_part(trials: Iterable[Trial]) -> bool:
    """Whether frames are missing that the SUT did not lose."""
    return any(trial.missing.total > trial.missing.lost_by_sut for trial in trials)


def _as_offered(trial: Trial) -> Trial:
    """The trial as if the SUT had been offered the whole load, and had lost the same share of it."""
    if not trial.sent_frames:
        return trial
    passed = 1.0 - trial.missing.lost_by_sut / trial.sent_frames
    return trial.model_copy(
        update={"forwarding_rate_per_interface_fps": passed * trial.load_per_interface_fps}
    )


def least_news(wanted: float, resolution: float | None) -> float:
    """The minimum relative change of a value to report: the requested change, or more if the goal is wider.

    Two searches on an unchanged SUT may end one width apart.

    Args:
        wanted: The requested change, relative to the earlier value.
        resolution: The width of the goal, relative to the upper bound; None: there is no goal.
    """
    if resolution is None:
        return wanted
    # A width is relative to the upper bound, but a change is relative to the lower bound. The rest is a margin for
    # rounding.
    return max(wanted, resolution / (1.0 - resolution) * (1.0 + _ROUNDING))
