"""What cannot be true of a result: whatever is derived in its file is computed again, and compared.

So a result whose numbers were changed is refused, also where its file has no digest (`lossratio.trials.digest`). A
critical load takes too long to be computed again; of it only what is cheap is compared. Histograms take long to decode,
and are compared only where there is no digest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import singledispatch
from itertools import pairwise
from typing import Any

from lossratio.errors import LossRatioError
from lossratio.mlrsearch import IrregularReason, goal_result
from lossratio.records import Rate, Record
from lossratio.results.bounds import search_goal
from lossratio.results.frame_loss import frame_loss
from lossratio.results.histograms import Histogram
from lossratio.results.latency import LatencyAtLoad, percentiles_of
from lossratio.results.model import (
    WITHOUT_DIGEST,
    FrameLossResult,
    GoalOutcome,
    GoalReport,
    LatencyResult,
    MrrResult,
    ReconfigurationResult,
    Result,
    SoakResult,
    ThroughputResult,
)
from lossratio.results.mrr import maximum_receive_rate
from lossratio.results.reconfiguration import reconfiguration_loss
from lossratio.results.soak import CriticalLoad
from lossratio.results.verdict import judge
from lossratio.trials import TrialResult, contradictions

ALGORITHM = "MLRsearch"
"""The search algorithm whose bounds follow from the trials alone, as RFC 9971 defines them."""

_ROUNDING = 1e-9
"""Numbers that differ by no more than this, relatively, are the same: versions of Python add up differently."""

_MIXED_ROUNDING = 1e-6
"""The same for a mixture, whose standard deviation may be a millionth of its mean."""

_LEAST = 1e-15
"""Numbers below this are none: what is left of a rounding error."""


def contradictions_of(result: Result) -> Iterator[str]:
    """Finds what contradicts itself in a result.

    Args:
        result: The result, as it was read from a file.

    Returns:
        What is wrong, in words that begin with the place in the file; nothing where all numbers fit each other.
    """
    try:
        yield from _contradictions(result)
    # Whatever is computed with numbers that cannot be true may fail.
    except (LossRatioError, ValueError, ArithmeticError) as error:
        yield str(error)


@singledispatch
def warm_ups_of(result: Any) -> int:
    """How many of a result's first trials are a warm-up, which is no evidence."""
    return 0


@warm_ups_of.register
def _search_warm_ups(result: ThroughputResult) -> int:
    return 0 if result.settings.get("warm_up_duration_s") is None else 1


def _contradictions(result: Result) -> Iterator[str]:
    trials = [trial.as_result() for trial in result.trials]
    yield from _trials(result, trials)
    yield from _rates(result)
    yield from _evidence(result, trials)
    yield from _of_kind(result, trials)


@singledispatch
def _of_kind(result: Any, trials: Sequence[TrialResult]) -> Iterator[str]:
    """What contradicts itself in what only results of one kind have; nothing in those that have no more than trials."""
    yield from ()


@_of_kind.register
def _mrr(result: MrrResult, trials: Sequence[TrialResult]) -> Iterator[str]:
    if result.mrr is not None:
        yield from _differences(result.mrr, maximum_receive_rate(trials, result.conditions), "mrr")


@_of_kind.register
def _frame_loss(result: FrameLossResult, trials: Sequence[TrialResult]) -> Iterator[str]:
    if result.frame_loss is not None:
        most = result.max_load.rate.per_interface_fps
        yield from _differences(result.frame_loss, frame_loss(trials, most, result.conditions), "frame_loss")


@_of_kind.register
def _reconfiguration(result: ReconfigurationResult, trials: Sequence[TrialResult]) -> Iterator[str]:
    if result.loss is not None:
        made = reconfiguration_loss(result.loss.load, result.loss.lost_frames)
        yield from _differences(result.loss, made, "loss")


def _trials(result: Result, trials: Sequence[TrialResult]) -> Iterator[str]:
    for place, (trial, known) in enumerate(zip(result.trials, trials, strict=True), start=1):
        if trial.number != place:
            yield f"trials: the one in place {place} has number {trial.number}; some are missing, doubled or swapped"
            return
        for problem in contradictions(known.output):
            yield f"trial {place}: {problem}"
        forwarded = known.load * (1.0 - known.loss_ratio)
        if trial.directions and not _same(trial.forwarding_rate_per_interface_fps, forwarded):
            yield (
                f"trial {place}: forwarding_rate_per_interface_fps is {trial.forwarding_rate_per_interface_fps!r}, and "
                f"load and loss ratio make {forwarded!r}"
            )


@singledispatch
def _evidence(result: Any, trials: Sequence[TrialResult]) -> Iterator[str]:
    """Trials that count and must not, or the other way round."""
    warm_ups = warm_ups_of(result)
    if any(each.is_evidence != (each.number > warm_ups) or each.set_aside is not None for each in result.trials):
        yield f"trials: is_evidence or set_aside is wrong, as the warm-up is {warm_ups} trials long"


@_evidence.register
def _soak_evidence(result: SoakResult, trials: Sequence[TrialResult]) -> Iterator[str]:
    if result.format == WITHOUT_DIGEST:
        return
    # Imported here because scipy takes a while, and the other results need none of it.
    from lossratio.plrsearch import why_set_aside

    for trial, known in zip(result.trials, trials, strict=True):
        made = why_set_aside(known)
        if trial.set_aside != made or trial.is_evidence != (made is None):
            yield f"trial {trial.number}: set_aside is {trial.set_aside!r}, and its counters make {made!r}"


def _rates(result: Result) -> Iterator[str]:
    """Rates whose units contradict each other; trials and conditions have none."""
    for name in sorted(type(result).model_fields.keys() - {"conditions", "trials"}):
        for place, rate in _rates_in(getattr(result, name), name):
            yield from _differences(rate, result.conditions.rate(rate.per_interface_fps), place)


def _rates_in(value: object, name: str) -> Iterator[tuple[str, Rate]]:
    if isinstance(value, Rate):
        yield name, value
    elif isinstance(value, Record):
        for each in type(value).model_fields:
            yield from _rates_in(getattr(value, each), f"{name}.{each}")
    elif isinstance(value, tuple):
        for place, each in enumerate(value):
            yield from _rates_in(each, f"{name}[{place}]")


@_of_kind.register
def _search(result: ThroughputResult, trials: Sequence[TrialResult]) -> Iterator[str]:
    least, most = result.min_load.per_interface_fps, result.max_load.rate.per_interface_fps
    for place, trial in enumerate(trials, start=1):
        if not least * (1.0 - _ROUNDING) <= trial.load <= most * (1.0 + _ROUNDING):
            yield f"trial {place}: its load of {trial.load!r} is outside of the search's {least!r} to {most!r}"
    warm_ups = warm_ups_of(result)
    for report in result.goals:
        if report.result is not None and result.algorithm == ALGORITHM:
            yield from _goal(report, report.result, result, trials[warm_ups:])
    for spread in result.spread:
        own = next((each.result for each in result.goals if each.goal.name == spread.goal), None)
        found = None if own is None or own.conditional_throughput is None else own.conditional_throughput
        if not _same(spread.values_fps[-1], None if found is None else found.per_interface_fps):
            yield f"spread of {spread.goal}: its last value is not the conditional throughput that was found"
    for place, each in enumerate(result.latency):
        yield from _latency(each, f"latency[{place}]", with_histograms=result.format == WITHOUT_DIGEST)


def _goal(
    report: GoalReport, said: GoalOutcome, result: ThroughputResult, evidence: Sequence[TrialResult]
) -> Iterator[str]:
    least, most = result.min_load.per_interface_fps, result.max_load.rate.per_interface_fps
    made = goal_result(search_goal(report.goal), evidence, min_load=least, max_load=most)
    for name in ("relevant_lower_bound", "relevant_upper_bound", "conditional_throughput"):
        rate, load = getattr(said, name), getattr(made, name)
        given = None if rate is None else rate.per_interface_fps
        if not _same(given, load):
            yield f"goal {report.goal.name}: {name}.per_interface_fps is {given!r}, and the trials make {load!r}"
    verdict = judge(made, evidence, max_load_origin=result.max_load.origin)
    if said.regular != verdict.regular:
        yield f"goal {report.goal.name}: regular is {said.regular}, and the trials make it {not said.regular}"
    # Why a search ended early is not in its trials.
    elif made.reason is not IrregularReason.STOPPED_EARLY and said.reason != verdict.reason:
        yield f"goal {report.goal.name}: reason is {said.reason!r}, and the trials make {verdict.reason!r}"


@_of_kind.register
def _latency_trials(result: LatencyResult, trials: Sequence[TrialResult]) -> Iterator[str]:
    measured = [each for each in result.latency if each.error is None]
    if len(measured) != len(trials):
        yield f"latency: there are {len(measured)} loads and {len(trials)} trials"
        return
    for place, (each, trial) in enumerate(zip(measured, trials, strict=True)):
        if each.loss_ratio != trial.loss_ratio or not _same(each.load.per_interface_fps, trial.load):
            yield f"latency[{place}]: load or loss ratio are not those of trial {place + 1}"
        yield from _latency(each, f"latency[{place}]", with_histograms=result.format == WITHOUT_DIGEST)


def _latency(latency: LatencyAtLoad, name: str, *, with_histograms: bool) -> Iterator[str]:
    for each in latency.directions:
        place = f"{name} of {each.direction}"
        values = [each.least_us, each.mean_us, each.most_us]
        known = [value for value in values if value is not None]
        if any(value > larger * (1.0 + _ROUNDING) for value, larger in pairwise(known)):
            yield f"{place}: least, mean and largest latency are out of order: {known}"
        if each.histogram is not None and with_histograms:
            made = percentiles_of(Histogram.decode(each.histogram, each.histogram_unit_us), each.most_us)
            if each.percentiles_us.keys() != made.keys() or not all(
                _same(value, made[percent]) for percent, value in each.percentiles_us.items()
            ):
                yield f"{place}: percentiles_us is {each.percentiles_us}, and the histogram makes {made}"


@_of_kind.register
def _soak(result: SoakResult, trials: Sequence[TrialResult]) -> Iterator[str]:
    if result.critical_load is not None:
        yield from _critical_load(result.critical_load)


def _critical_load(said: CriticalLoad) -> Iterator[str]:
    """The mean and standard deviation are those of the functions, mixed by their weights."""
    parts = [(each.weight, each.mean.per_interface_fps, each.stdev.per_interface_fps) for each in said.functions]
    mean = sum(weight * own for weight, own, _ in parts)
    variance = sum(weight * (stdev**2 + (own - mean) ** 2) for weight, own, stdev in parts)
    for name, rate, made in (("mean", said.mean, mean), ("stdev", said.stdev, math.sqrt(variance))):
        # Weights are at most 1 each; what was cut off of one there is no more than a rounding error of the sum.
        if not math.isclose(rate.per_interface_fps, made, rel_tol=_MIXED_ROUNDING, abs_tol=_MIXED_ROUNDING * mean):
            yield f"critical_load.{name} is {rate.per_interface_fps!r}, and the functions make {made!r}"
    if said.least_95.per_interface_fps > said.most_95.per_interface_fps:
        yield "critical_load: least_95 is above most_95"


def _differences(said: Record, made: Record, name: str) -> Iterator[str]:
    """Where a record is not what its source makes of it."""
    if said != made:
        yield from _unequal(said.model_dump(), made.model_dump(), name)


def _unequal(said: Any, made: Any, name: str) -> Iterator[str]:
    if isinstance(made, dict) and isinstance(said, dict) and said.keys() == made.keys():
        for key in made:
            yield from _unequal(said[key], made[key], f"{name}.{key}")
    elif isinstance(made, tuple) and isinstance(said, tuple) and len(said) == len(made):
        for place, (one, other) in enumerate(zip(said, made, strict=True)):
            yield from _unequal(one, other, f"{name}[{place}]")
    elif not _same(said, made):
        yield f"{name} is {said!r}, and what was measured makes {made!r}"


def _same(said: Any, made: Any) -> bool:
    if isinstance(said, float) and isinstance(made, float):
        return math.isclose(said, made, rel_tol=_ROUNDING, abs_tol=_LEAST)
    return bool(said == made)
