"""Doubts about a measurement: reasons not to trust its numbers yet, which the numbers do not show.

All doubts are computed from the trials in result files, also from those of earlier runs.
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise, takewhile
from operator import attrgetter
from statistics import NormalDist, fmean, pstdev
from typing import NamedTuple

from lossratio.results.model import TestResult
from lossratio.results.note import NoteKind, Rule, doubt
from lossratio.results.offered import against_stalls
from lossratio.results.trials import Trial, foreign_frames_of
from lossratio.results.wording import per_interface
from lossratio.trials import MissingFrames, most_lost_in_bursts
from lossratio.values import Rate, format_ratio, trials_counted

TIME_SIGNIFICANCE = 0.001
"""Time matters if the probability that trials of a constant SUT look like this, over all loads, is below this value."""
ORDER_LEAST_TRIALS, DRIFT_LEAST_TRIALS = 3, 8
"""Minimum number of trials at a load to examine their order, and minimum total number of such trials."""
STOPPED_LEAST_TRIALS = 3
"""Minimum number of trials without any frame, at the end, that show that the SUT no longer forwards."""

_ROUNDING = 1e-6
"""Share by which a change may exceed a resolution by rounding alone."""


class TimeDependence(NamedTuple):
    """That the outcome at a load depends on its time."""

    kind: NoteKind
    """Drift or spells."""
    text: str
    """The observation."""


def stopped_forwarding_in(trials: Sequence[Trial]) -> str | None:
    """Finds that the SUT lost every frame from some trial on, although it forwarded frames at such a load before."""
    dead = list(takewhile(attrgetter("is_all_lost"), reversed(trials)))
    if len(dead) < STOPPED_LEAST_TRIALS:
        return None

    least = min(trial.load_per_interface_fps for trial in dead)
    before = trials[: len(trials) - len(dead)]
    if not any(trial.load_per_interface_fps >= least and _rate(trial) > 0.0 for trial in before):
        return None
    return (
        f"from trial {dead[-1].number} on, all {len(dead)} trials lost every frame, although frames passed at such a "
        "load before: the SUT, or a link to it, stopped working during the measurement"
    )


def time_dependence_in(
    trials: Sequence[Trial], written: Callable[[float], str] = per_interface
) -> TimeDependence | None:
    """Finds that the outcome at a load depends on its time: the SUT drifts, or has spells.

    Trials at one load are compared by the ranks of their forwarding rates: with their order (Kendall's rank
    correlation), and with the previous trial at that load (serial rank correlation). If time does not matter, all
    orders are equally probable. The mean and the variance of the sums over all loads follow from this, and there is a
    doubt if the sums' probability is below `TIME_SIGNIFICANCE`. Frames that the tester left out can also create an
    order. So the order must appear both in the measured forwarding rates, and in the rates that would have been
    measured if the tester had sent and counted all frames.

    Args:
        trials: The trials that count.
        written: Writes a load in frames per second per interface.
    """
    measured = _time_dependence(trials, written)
    if measured is None or not _tester_took_part(trials):
        return measured
    offered = _time_dependence([_as_offered(trial) for trial in trials], written)
    if offered is not None and _alike(measured, offered):
        return measured
    return None


def _alike(one: TimeDependence, other: TimeDependence) -> bool:
    """Whether both say the same, apart from the size."""
    return one.kind is other.kind and (" less " in one.text) == (" less " in other.text)


def _time_dependence(
    trials: Sequence[Trial], written: Callable[[float], str]
) -> TimeDependence | None:
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
        return TimeDependence(
            NoteKind.SPELLS,
            f"at {loads}, trials forward about as much as the previous trial at the same load, "
            f"for example at {written(group[0].load_per_interface_fps)}: "
            "the SUT has good and bad phases that last longer than a trial, and the result depends on "
            "when each load was measured",
        )

    group = max(groups, key=lambda group: math.copysign(1.0, trend) * _trend(_scores(group))[0])
    third = max(1, len(group) // 3)
    first, last = (sum(map(_rate, part)) / len(part) for part in (group[:third], group[-third:]))
    change = format_ratio(abs(last - first) / first) if first else "all"

    return TimeDependence(
        NoteKind.DRIFT,
        f"the last third of {len(group)} trials at {written(group[0].load_per_interface_fps)} "
        f"forwards {change} {'more' if trend > 0.0 else 'less'} than the first third",
    )


def _only_late(of_trials: Iterable[MissingFrames], which: str = "") -> Iterator[str]:
    """Says that missing frames of some trials were only late; nothing if none was late."""
    frames = list(of_trials)
    missing = sum(frames, MissingFrames())
    if missing.late:
        affected = f"{trials_counted(sum(one.late > 0 for one in frames))}{which}"
        yield (
            f"{missing.late:,} of the {missing.total:,} missing frames were only late: in {affected}, they came "
            "back after the wait for frames in flight. They count as lost although the SUT did not "
            "lose them. With a longer wait (settle of the generator) they might count as received"
        )


def stalls_that_decided(trials: Iterable[Trial], allowed: Sequence[float]) -> Iterator[str]:
    """Says which stalls of the generator may have decided a trial: without the burst, the loss may have met a goal.

    Args:
        trials: The trials of the result.
        allowed: The loss ratio that each goal allows.
    """
    stalled = [(trial, stall) for trial in trials if (stall := _deciding_stall(trial, allowed))]
    stalls = [stall for _, stall in stalled]
    if stalls:
        help_it = against_stalls(trial for trial, _ in stalled)
        yield (
            f"in {trials_counted(len(stalls))} the generator was stalled for up to "
            f"{max(stalls) * 1e3:.3g} ms, and then sent too fast, to catch up. That burst alone "
            "explains the loss beyond what is allowed; the SUT may forward more at a constant load. "
            f"{help_it[0].upper()}{help_it[1:]}"
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


@doubt(
    NoteKind.DRIFT,
    f"In {DRIFT_LEAST_TRIALS} or more trials at repeated loads, the forwarding rates rise or fall (Kendall's rank "
    f"correlation), as happens with a steady SUT in fewer than one in {1.0 / TIME_SIGNIFICANCE:,.0f} measurements. "
    f"Or the last {STOPPED_LEAST_TRIALS} trials forwarded no frame.",
)
def drift(result: TestResult) -> Iterator[str]:
    """The SUT changes over time. A device that stops is not said to drift as well."""
    stopped = stopped_forwarding_in(result.evidence)
    if stopped is not None:
        yield stopped
        return
    found = time_dependence_in(result.evidence, result.written)
    if found is not None and found.kind is NoteKind.DRIFT:
        yield found.text


@doubt(
    NoteKind.SPELLS,
    f"In {DRIFT_LEAST_TRIALS} or more trials at repeated loads, each is compared with the previous one at its load "
    "(serial rank correlation). With a steady SUT, this is as rare as drift.",
)
def spells(result: TestResult) -> Iterator[str]:
    """The SUT is slow for some trials in a row."""
    found = time_dependence_in(result.evidence, result.written)
    if found is not None and found.kind is NoteKind.SPELLS:
        yield found.text


@doubt(NoteKind.LATE_FRAMES, "Frames that came back after the wait are counted. One is enough.")
def late_frames(result: TestResult) -> Iterator[str]:
    """Frames count as lost that the SUT did not lose because they came back after the wait."""
    yield from _only_late(trial.missing for trial in result.evidence)
    yield from _only_late((one.missing for one in result.view().after(result)), " after the search")


def _counted(kind: NoteKind, evidence: str, frames_in: Callable[[Trial], int], text: str) -> Rule:
    """A rule for frames of trials that are counted, whose text says in how many trials there were how many frames."""

    def find(result: TestResult) -> Iterator[str]:
        some = [frames for trial in result.evidence if (frames := frames_in(trial))]
        if some:
            yield text.format(frames=f"{sum(some):,}", trials=trials_counted(len(some)))

    return doubt(kind, evidence)(find)


foreign_frames = _counted(
    NoteKind.FOREIGN_FRAMES,
    "The generator counts more foreign frames than devices send to find each other.",
    lambda trial: sum(map(foreign_frames_of, trial.directions)),
    "in {trials}, the generator's ports received {frames} frames that belong to no trial: "
    "they come from other senders, have a foreign payload, or are copies of earlier "
    "frames. They use capacity, and if the generator counts all frames of a port, they "
    "hide the loss of as many frames. Look for other senders on these links, and for the "
    "device's own frames",
)
full_rings = _counted(
    NoteKind.FULL_RINGS,
    "The generator counts frames for which a ring had no room. One is enough.",
    lambda trial: sum(way.refused_frames for way in trial.directions),
    "the generator's port, or the ring of 256 frames of a veth link behind it, had no "
    "room for {frames} frames in {trials}. They never reached the SUT and count as "
    "unsent; the SUT may forward more",
)
generator_drops = _counted(
    NoteKind.GENERATOR_DROPS,
    "The generator counts its own drops. One is enough.",
    lambda trial: trial.missing.generator_drops,
    "the generator dropped {frames} frames that came back in {trials}: the SUT did not "
    "lose them, and may forward more",
)
OF_STALLS = (
    "The burst after the generator's longest delay in a trial has at least as many frames as were lost: it alone may "
    "have caused the loss."
)
"""The test for stalls."""


@doubt(NoteKind.GENERATOR_STALLS, OF_STALLS)
def generator_stalls(result: TestResult) -> Iterator[str]:
    """Stalls decided a trial of a measurement in which any loss counts."""
    yield from stalls_that_decided(result.evidence, [0.0])


@doubt(
    NoteKind.TESTBED_CHANGED,
    "The state of a node changed in a trial: clocks, starvation, PAUSE frames or other senders.",
)
def testbed_changed(result: TestResult) -> Iterator[str]:
    """The testbed changed around trials that still count."""
    standing = [
        (trial.number, incident)
        for trial in result.evidence
        for incident in trial.incidents
        # A shortage at a DUT did no harm if the DUT forwarded all frames in time.
        if incident.done == "stands"
        and not incident.way_out
        and (incident.guilty != "DUT" or _may_be_of_dut(trial))
    ]
    if not standing:
        return

    number, first = standing[0]
    affected = len({number for number, _ in standing})
    statement = (
        f"{affected} trials count although the testbed changed around them, beginning with trial "
        f"{number}"
    )
    if affected == 1:
        statement = f"trial {number} counts although the testbed changed around it"
    yield f"{statement}: {first.change}. Measure again while nothing disturbs the testbed"


@doubt(
    NoteKind.OUTSIDE,
    "In a trial with missing frames, up to the bounds, counters of the TG's or the DUTs' machines moved: "
    "PAUSE and PFC frames, ring overruns, cloud allowances, CPU quotas, backlog drops, or CPU time that other programs "
    "took.",
)
def outside(result: TestResult) -> Iterator[str]:
    """Counters name a cause outside of the device for missing frames."""
    bounds = (finding.upper_bound for finding in result.view().findings(result))
    loads = [bound.per_interface_fps for bound in bounds if isinstance(bound, Rate)]
    # In a heavy overload, rings overflow and neighbours are paused, whatever made the bounds.
    most = max(loads, default=math.inf)
    seen: dict[tuple[str, str | None, str], list[tuple[int, str]]] = {}
    for trial in result.evidence:
        for incident in trial.incidents:
            if incident.way_out and trial.load_per_interface_fps <= most:
                key = (incident.node, incident.interface, incident.way_out)
                seen.setdefault(key, []).append((trial.number, incident.change))
    for (_, _, way_out), found in seen.items():
        number, change = found[0]
        numbers = {each for each, _ in found}
        trials = f"trial {number}"
        if len(numbers) > 1:
            trials = f"{trials_counted(len(numbers))}, beginning with trial {number}"
        yield f"frames are missing in {trials}, and meanwhile {change}. {way_out.removesuffix('.')}"
