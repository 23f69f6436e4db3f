"""Results in words: the message of a Robot test.

Every number stands next to its unit and next to what it is a rate of, so the lines can be read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

from lossratio.records import Rate
from lossratio.results.conditions import MaxLoad
from lossratio.results.frame_integrity import integrity_lines
from lossratio.results.latency_text import latency_lines
from lossratio.results.model import (
    FrameLossResult,
    GoalReport,
    LatencyResult,
    MrrResult,
    ReconfigurationResult,
    Result,
    SoakResult,
    TestResult,
    ThroughputResult,
)
from lossratio.results.mrr import Mrr
from lossratio.results.spread import spread_lines
from lossratio.results.trials import STALL
from lossratio.results.verdict import dropped_by_generator
from lossratio.units import format_bit_rate, format_frame_rate, format_ratio

_LABEL_WIDTH = len("conditional throughput")


def message(result: Result) -> str:
    """The message of a Robot test: a few lines of plain text that say what was found, and what it is worth."""
    return "\n".join((*_lines(result), *_closing_lines(result)))


def format_frames_per_second(rate: float) -> str:
    """A frame rate to the last digit that matters, without a prefix, e.g. ``14,880,952 fps``."""
    return f"{rate:,.{0 if rate >= 10_000 else 2}f} fps"


def format_interval(lower: float | None, upper: float | None) -> str:
    """The interval between two bounds, e.g. ``149.77 to 150.52 kfps``, ``from 200.00 kfps`` or ``below 9.0010 kfps``.

    Args:
        lower: The lower bound, in frames per second; None: there is none.
        upper: The upper bound, in frames per second; None: there is none. Not above the lower one: the same.
    """
    if lower is not None and upper is not None and lower < upper:
        low, high = format_frame_rate(lower), format_frame_rate(upper)
        return f"{low.split()[0] if low.split()[1] == high.split()[1] else low} to {high}"
    if lower is not None:
        return f"from {format_frame_rate(lower)}"
    return "no bounds" if upper is None else f"below {format_frame_rate(upper)}"


def format_regularity(report: GoalReport) -> str:
    """``regular``, ``irregular: why``, or ``failed`` where there is no goal result at all."""
    if report.result is None:
        return "failed: no result"
    return "regular" if report.result.regular else f"irregular: {report.result.reason}"


def _lines(result: Result) -> Iterator[str]:
    if isinstance(result, ThroughputResult):
        return _throughput_lines(result)
    if isinstance(result, MrrResult):
        return _mrr_lines(result)
    if isinstance(result, FrameLossResult):
        return _frame_loss_lines(result)
    if isinstance(result, LatencyResult):
        return latency_lines(result.latency)
    return _soak_lines(result) if isinstance(result, SoakResult) else _reconfiguration_lines(result)


def _throughput_lines(result: ThroughputResult) -> Iterator[str]:
    if result.error is not None:
        yield from _failure(result)
        return
    for report in result.goals:
        allowed = f"loss ratio at most {format_ratio(report.goal.loss_ratio)}"
        yield f"{report.goal.name} ({allowed}): {format_regularity(report)}"
        if report.result is not None:
            yield _bound_line("relevant lower bound", report.result.relevant_lower_bound, result)
            yield _bound_line("relevant upper bound", report.result.relevant_upper_bound, result)
            yield _rate_line("conditional throughput", report.result.conditional_throughput)
    yield from latency_lines(result.latency)
    yield from spread_lines(result.spread)


def _mrr_lines(result: MrrResult) -> Iterator[str]:
    if result.mrr is None:
        yield from _failure(result)
        return
    trials = f"{len(result.mrr.values)} trials at maximum load, {_per_interface(result.max_load)}"
    yield f"MRR ({trials}): frames forwarded over the time really spent"
    yield _rate_line("mean", result.mrr.mean)
    yield _rate_line("standard deviation", result.mrr.stdev)
    values = " ".join(f"{value.forwarding_rate.per_interface_fps:,.0f}" for value in result.mrr.values)
    yield f"  {'values':<{_LABEL_WIDTH}}  {values} fps per interface"
    yield f"  {'loss':<{_LABEL_WIDTH}}  {_loss(result.mrr)}"


def _frame_loss_lines(result: FrameLossResult) -> Iterator[str]:
    if result.frame_loss is None:
        yield from _failure(result)
        return
    yield f"frame loss rate, from the maximum load downwards ({_per_interface(result.max_load)})"
    for each in result.frame_loss.loads:
        share = format_ratio(each.share_of_max_load_ratio)
        unsent = f", {each.unsent_frames:,} unsent" if each.unsent_frames else ""
        load = f"{each.load.per_interface_fps:>12,.0f} fps per interface"
        yield f"  {share:<{_LABEL_WIDTH}}  {load}  loss {format_ratio(each.frame_loss_ratio)}{unsent}"


def _soak_lines(result: SoakResult) -> Iterator[str]:
    found = result.critical_load
    if found is None:
        yield from _failure(result)
        return
    state = "regular" if found.reason is None else f"irregular: {found.reason}"
    yield f"critical load (loss ratio {format_ratio(result.target_loss_ratio)} in the long run): {state}"
    yield _rate_line("mean", found.mean)
    yield _rate_line("standard deviation", found.stdev)
    yield _rate_line("95 % interval, from", found.least_95)
    yield _rate_line("95 % interval, to", found.most_95)
    if found.ended_by is not None:
        yield f"  {'ended by':<{_LABEL_WIDTH}}  {found.ended_by}"


def _reconfiguration_lines(result: ReconfigurationResult) -> Iterator[str]:
    if result.loss is None:
        yield from _failure(result)
        return
    lost = result.loss
    yield f"reconfiguration: {lost.lost_frames:,} frames lost, all that is sent in {lost.lost_time_s:.6g} s"
    yield _rate_line("load", lost.load)


def _failure(result: TestResult) -> Iterator[str]:
    yield f"failed, no result: {result.error}"


def _closing_lines(result: Result) -> Iterator[str]:
    load = result.conditions.load
    elapsed = sum(trial.elapsed_s for trial in result.trials)
    links = result.conditions.testbed.links
    over = f" over {links} parallel links" if links > 1 else ""
    yield (
        f"Aggregate is per interface x {load.aggregate_factor:g} ({load.directions_in_words}){over}; "
        f"frames of {result.conditions.traffic.average_frame_size_bytes:.6g} bytes on average; "
        f"{len(result.trials)} trials in {elapsed:.1f} s."
    )
    if result.max_load.limits:
        yield f"Maximum load from: {result.max_load.origin.value}. Limits: {'; '.join(result.max_load.limits)}."
    short = [trial.unsent_frames for trial in result.trials if trial.unsent_frames]
    if short:
        yield f"The generator could not send {sum(short):,} frames in {len(short)} of the trials."
    dropped = [frames for trial in result.trials if (frames := dropped_by_generator(trial.as_result().output))]
    if dropped:
        yield (
            f"The generator dropped {sum(dropped):,} frames that came back, in {len(dropped)} of the trials: they "
            "count as lost, and are no evidence about the SUT."
        )
    reasons = [trial.set_aside for trial in result.trials if trial.set_aside is not None]
    if reasons:
        yield (
            f"Set aside, and no evidence about the SUT: {len(reasons)} of the trials (the last of them because "
            f"{reasons[-1]})."
        )
    stalled = [trial.lateness_s for trial in result.trials if trial.lateness_s > STALL]
    if stalled:
        yield (
            f"The generator was stalled for up to {max(stalled) * 1e3:.3g} ms, in {len(stalled)} of the trials; "
            "what it made up for was a burst."
        )
    if stalled and short:
        yield "With less other work on its machine, or a larger catch_up in its topology file, it would send all."
    yield from integrity_lines(result)
    repeats = sum(trial.repeats for trial in result.trials)
    if repeats:
        yield f"Attempts that were measured again, because the generator faltered or miscounted: {repeats}."
    repairs = sum(len(trial.repairs) for trial in result.trials)
    if repairs:
        yield f"Attempts that were measured again after a repair of the infrastructure: {repairs}."
    for remark in result.remarks:
        yield f"Note: {remark}"


def _bound_line(label: str, bound: Rate | None, result: ThroughputResult) -> str:
    line = _rate_line(label, bound)
    if bound == result.max_load.rate:
        return f"{line} (the maximum load)"
    return f"{line} (the minimum load)" if bound == result.min_load else line


def _rate_line(label: str, rate: Rate | None) -> str:
    return f"  {label:<{_LABEL_WIDTH}}  {'none' if rate is None else _rate(rate)}"


def _rate(rate: Rate) -> str:
    return (
        f"{format_frames_per_second(rate.per_interface_fps):>14} per interface"
        f"  {format_frames_per_second(rate.aggregate_fps):>14} aggregate"
        f"  {format_bit_rate(rate.aggregate_l1_bps):>14} aggregate L1 bandwidth"
    )


def _per_interface(load: MaxLoad) -> str:
    return f"{format_frames_per_second(load.rate.per_interface_fps)} per interface"


def _loss(mrr: Mrr) -> str:
    if mrr.loss_ratio_of_sent is None:
        return "not counted"
    unsent = "" if mrr.unsent_frames is None else f"; {mrr.unsent_frames:,} frames unsent, which is no loss"
    return f"{format_ratio(mrr.loss_ratio_of_sent)} of the frames sent{unsent}"
