"""Results in words: the message of a Robot test.

Every number has its unit and the name of its quantity beside it, so that each line can be read alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from lossratio.records import Rate
from lossratio.results.conditions import MaxLoad
from lossratio.results.frame_integrity import integrity_lines
from lossratio.results.kinds import view_of
from lossratio.results.model import TestResult
from lossratio.results.trials import STALL, dropped_by_generator
from lossratio.units import Unit, format_bit_rate, format_frame_rate

LABEL_WIDTH = len("conditional throughput")
"""Width of the label before a number, so that the numbers are below each other."""


def message(result: TestResult) -> str:
    """The message of a Robot test: a few lines of plain text with the result and its caveats."""
    return "\n".join((*view_of(result).lines(result), *_closing_lines(result)))


def format_frames_per_second(rate: float) -> str:
    """Formats a frame rate to the last digit that matters, without a unit prefix, e.g. ``14,880,952 fps``."""
    return f"{rate:,.{0 if rate >= 10_000 else 2}f} fps"


def format_interval(lower: float | None, upper: float | None) -> str:
    """Formats the interval between two bounds.

    Examples are ``149.77 to 150.52 kfps``, ``from 200.00 kfps`` and ``below 9.0010 kfps``.

    Args:
        lower: The lower bound, in frames per second; None: no bound.
        upper: The upper bound, in frames per second; None, or not above the lower bound: no bound.
    """
    if lower is not None and upper is not None and lower < upper:
        low, high = format_frame_rate(lower), format_frame_rate(upper)
        return f"{low.split()[0] if low.split()[1] == high.split()[1] else low} to {high}"
    if lower is not None:
        return f"from {format_frame_rate(lower)}"
    return "no bounds" if upper is None else f"below {format_frame_rate(upper)}"


def rate_line(label: str, rate: Rate | None) -> str:
    """Formats a line with a rate in all its units, aligned with other such lines."""
    return f"  {label:<{LABEL_WIDTH}}  {'none' if rate is None else _rate(rate)}"


def value_line(label: str, value: float | None, unit: Unit) -> str:
    """Formats a line with a value that is no rate, aligned with lines of rates."""
    return f"  {label:<{LABEL_WIDTH}}  {'none' if value is None else unit.format(value)}"


def load_per_interface(load: MaxLoad) -> str:
    """Formats a maximum load, e.g. ``400,000 fps per interface``."""
    return f"{format_frames_per_second(load.rate.per_interface_fps)} per interface"


def _closing_lines(result: TestResult) -> Iterator[str]:
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


def _rate(rate: Rate) -> str:
    return (
        f"{format_frames_per_second(rate.per_interface_fps):>14} per interface"
        f"  {format_frames_per_second(rate.aggregate_fps):>14} aggregate"
        f"  {format_bit_rate(rate.aggregate_l1_bps):>14} aggregate L1 bandwidth"
    )
