"""Everything that a soak test inferred, in words and as a table with units."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lossratio.drawing import xml_text
from lossratio.measurements.soak.result import (
    Averaging,
    CapacityVariation,
    CriticalLoad,
    CsitCriticalLoad,
    FittedFunction,
    GuardStatement,
    SoakResult,
)
from lossratio.units import format_frame_rate

EXTRAPOLATED = "extrapolated"
"""The verdict that frames at the critical load are too few to verify it."""
_LEAST_WEIGHT = 0.01
"""Weight of a shape that the console shows."""


def guard_in_words(guard: GuardStatement) -> str:
    """What frames at and just below the critical load say, in one line: also which losses they leave open."""
    if not guard.trials:
        return f"{guard.verdict}: no frames were sent there"
    line = (
        f"{guard.verdict}: {guard.lost_frames:,} of {guard.frames:,} frames were lost at "
        f"{format_frame_rate(guard.load_per_interface_fps)}"
    )
    if guard.highest_load_per_interface_fps > guard.load_per_interface_fps:
        line += f" to {format_frame_rate(guard.highest_load_per_interface_fps)}"
    line += f", a ratio of {guard.least_loss_ratio:.2g} to {guard.most_loss_ratio:.2g}"
    if guard.extrapolation_factor > 1.0 and guard.verdict == EXTRAPOLATED:
        line += f" ({guard.extrapolation_factor:.2g} times the target)"
    if guard.largest_burst_frames is not None and guard.unseen_burst_trials is not None:
        line += (
            f", unless more than {guard.largest_burst_frames:,.0f} frames are lost at a time in fewer than one of "
            f"{guard.unseen_burst_trials:.2g} trials"
        )
    elif guard.verdict == EXTRAPOLATED and guard.unseen_burst_trials is not None:
        line += (
            f"; losses that come in fewer than one of {guard.unseen_burst_trials:.2g} trials may be in none of these"
        )
        if _rests_on_tail(guard):
            line += ", and are to be expected where some trials are much slower than others"
    if guard.missing_frames is not None and guard.missing_s is not None:
        trials = f" in {guard.missing_trials} trials or more" if guard.missing_trials else ""
        line += f"; {guard.missing_frames:.2g} frames more{trials}, {guard.missing_s / 3600.0:.2g} h, would verify it"
    return line


def limit_in_words(guard: GuardStatement, mean_fps: float) -> str:
    """The verdict, the load that it is about, and what it leaves open, in a few words: they go beside the number.

    Args:
        guard: The verdict.
        mean_fps: Mean critical load per interface, in frames per second.
    """
    if _rests_on_tail(guard):
        return "extrapolated by the shape of the capacity's tail, which trials at that load are too few to show"
    if guard.verdict == EXTRAPOLATED:
        return "extrapolated: the frames at the critical load are too few to verify it"
    line = f"{guard.verdict} at {format_frame_rate(guard.load_per_interface_fps)}"
    if guard.load_per_interface_fps < mean_fps:
        line += f" ({100.0 - 100.0 * guard.load_per_interface_fps / mean_fps:.2g} % below the mean)"
    if guard.largest_burst_frames is None or guard.unseen_burst_trials is None:
        return line
    return f"{line}, but for losses in fewer than one of {guard.unseen_burst_trials:.2g} trials"


def _rests_on_tail(guard: GuardStatement) -> bool:
    """Whether only losses that are rarer than trials are left open, by a slow tail that other trials show."""
    return guard.verdict == EXTRAPOLATED and guard.extrapolation_factor <= 1.0 and guard.missing_frames is None


def variation_in_words(variation: CapacityVariation) -> str:
    """How the capacity varies, in one line."""
    parts = [f"{shape.name} {shape.weight:.3g}" for shape in variation.shapes if shape.weight >= _LEAST_WEIGHT]
    if variation.correlation:
        parts.append(
            f"successive trials are alike (correlation {variation.correlation:.2f}, as much as "
            f"{variation.independent_trials:.3g} independent trials)"
        )
    if variation.drift_ratio:
        rate = "" if variation.drift_per_hour_ratio is None else f", {variation.drift_per_hour_ratio:+.3%} in an hour"
        parts.append(
            f"drift of {variation.drift_ratio:+.3%} (standard deviation {variation.drift_stdev_ratio:.2%}{rate}): the "
            "critical load is that at the end"
        )
    return ", ".join(parts)


def _shapes_in_words(variation: CapacityVariation) -> Iterator[tuple[str, str]]:
    """Each shape of the capacity's distribution, with everything that was inferred about it."""
    for shape in variation.shapes:
        parameters = ", ".join(
            f"{name.removesuffix('_ratio').removesuffix('_per_interface_fps').replace('_', ' ')} {value:,.4g}"
            f"{' fps' if name.endswith('_fps') else ''}"
            for name, value in shape.parameters.items()
        )
        yield (
            f"capacities: {shape.name}",
            f"weight {shape.weight:.3g}, critical load {shape.mean.per_interface_fps:,.1f} fps, standard deviation "
            f"{shape.stdev.per_interface_fps:,.4g} fps; {parameters}",
        )


def _csit_in_words(csit: CsitCriticalLoad) -> str:
    return (
        f"{csit.mean.per_interface_fps:,.1f} fps, standard deviation {csit.stdev.per_interface_fps:,.4g} fps (stretch "
        f"{csit.stretch_mean.per_interface_fps:,.1f}, erf {csit.erf_mean.per_interface_fps:,.1f}; {csit.trials} "
        f"trials, {csit.samples:,} samples)"
    )


def averaging_in_words(averaging: Averaging) -> str:
    """How long trials should be, and why."""
    deviations = ", ".join(f"{point.deviation_ratio:.2g} over {point.seconds:.3g} s" for point in averaging.allan)
    if not averaging.correlation_time_s:
        seen = "successive trials are independent: they are long enough"
    else:
        seen = (
            f"capacities are alike for {averaging.correlation_time_s:.3g} s: trials of "
            f"{averaging.recommended_duration_s:.3g} s would show more each"
        )
    return f"{seen} (Allan deviation as a share of the capacity: {deviations})"


def functions_in_words(result: SoakResult, critical_load: CriticalLoad) -> str:
    """Weights of the functions, and the likelihood."""
    weights = ", ".join(f"{function.name} {function.weight:.3g}" for function in critical_load.functions)
    return f"{weights} ({result.settings.get('likelihood', 'unknown')} likelihood)"


def fit_table(result: SoakResult, critical_load: CriticalLoad) -> str:
    """Everything that was inferred, as an HTML table with units."""
    rows = [_row("", *(function.name for function in critical_load.functions), "unit", head=True)]

    def per_function(name: str, unit: str, value: Callable[[FittedFunction], str]) -> None:
        rows.append(_row(name, *(value(function) for function in critical_load.functions), unit))

    per_function("weight by evidence or as chosen", "", lambda function: f"{function.weight:.4g}")
    per_function("ln of the evidence", "", lambda function: _or_dash(function.log_evidence, ".2f"))
    per_function("mean critical load", "fps", lambda function: f"{function.mean.per_interface_fps:,.1f}")
    per_function("standard deviation", "fps", lambda function: f"{function.stdev.per_interface_fps:,.4g}")
    per_function("m, forwarding rate", "fps", lambda function: _or_dash(function.mrr_per_interface_fps, ",.1f"))
    per_function("a, width of the knee", "fps", lambda function: _or_dash(function.spread_per_interface_fps, ",.4g"))
    per_function(
        "s, standard deviation of the capacity",
        "fps",
        lambda function: _or_dash(function.capacity_stdev_per_interface_fps, ",.4g"),
    )
    per_function("probability at the minimum load or less", "", lambda function: _or_dash(function.at_min_ratio, ".3g"))
    per_function("probability at the maximum load or more", "", lambda function: _or_dash(function.at_max_ratio, ".3g"))
    fit = critical_load.fit
    drift = _or_dash(fit.drift_ratio, "+.2g")
    if fit.drift_stdev_ratio is not None:
        drift += f" with standard deviation {fit.drift_stdev_ratio:.2g}"
    both = [
        ("likelihood", str(result.settings.get("likelihood", "unknown"))),
        *(
            (
                f"both functions, {combination.weighting} weights",
                f"{combination.mean.per_interface_fps:,.1f} fps, standard deviation "
                f"{combination.stdev.per_interface_fps:,.4g} fps",
            )
            for combination in critical_load.combinations
        ),
        (
            "chi-squared per trial around the best Poisson curve",
            f"{_or_dash(fit.chi_squared_per_trial, '.3g')} (about 1: counts scatter by chance only; more: the "
            "capacity varies, or the shape is another)",
        ),
        ("distance of the functions", f"{fit.function_distance_stdevs:.3g} standard deviations"),
        ("drift from the first to the last trial, share of the capacity", drift),
        ("correlation of the capacities of successive trials", _or_dash(fit.capacity_correlation, "+.2f")),
    ]
    if critical_load.csit is not None:
        both.append(("as FD.io CSIT computes it", _csit_in_words(critical_load.csit)))
    if critical_load.variation is not None:
        both += [("capacity", variation_in_words(critical_load.variation)), *_shapes_in_words(critical_load.variation)]
    if critical_load.averaging is not None:
        both.append(("duration of trials", averaging_in_words(critical_load.averaging)))
    if critical_load.stopping_factor != 1.0:
        both.append(
            (
                "widening of the 95 % interval",
                f"{critical_load.stopping_factor:.3g} times, as a narrow interval could end the search",
            )
        )
    if critical_load.guard is not None:
        both.append(("frames at and just below the critical load", guard_in_words(critical_load.guard)))
    columns = len(critical_load.functions) + 1
    rows += [
        f"<tr><td>{xml_text(name)}</td><td colspan='{columns}'>{xml_text(value)}</td></tr>" for name, value in both
    ]
    return f"<table>{''.join(rows)}</table>"


def _row(*cells: str, head: bool = False) -> str:
    tag = "th" if head else "td"
    return "<tr>" + "".join(f"<{tag}>{xml_text(cell)}</{tag}>" for cell in cells) + "</tr>"


def _or_dash(value: float | None, form: str) -> str:
    return "\u2013" if value is None else format(value, form)
