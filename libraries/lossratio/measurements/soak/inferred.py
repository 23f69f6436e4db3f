"""Everything that a soak test inferred, in words: one table of fields with their words and units."""

from collections.abc import Iterator, Mapping
from typing import Any

from lossratio.drawing import xml_text
from lossratio.measurements.soak.result import CriticalLoad, SoakResult
from lossratio.plrsearch import OPEN_TAILS, GuardStatement, Verdict
from lossratio.units import format_frame_rate

_OF_FUNCTIONS: Mapping[str, tuple[str, str, str]] = {
    "weight": ("weight by evidence or as chosen", "", ".4g"),
    "log_evidence": ("ln of the evidence", "", ".2f"),
    "mean": ("mean critical load", "fps", ",.1f"),
    "stdev": ("standard deviation", "fps", ",.4g"),
    "mrr_per_interface_fps": ("m, forwarding rate", "fps", ",.1f"),
    "spread_per_interface_fps": ("a, width of the knee", "fps", ",.4g"),
    "capacity_stdev_per_interface_fps": ("s, standard deviation of the capacity", "fps", ",.4g"),
    "at_min_ratio": ("probability at the minimum load or less", "", ".3g"),
    "at_max_ratio": ("probability at the maximum load or more", "", ".3g"),
}
"""Fields of each fitting function: words, unit, format."""
_OF_FIT: Mapping[str, tuple[str, str, str]] = {
    "replicates_chi_squared": (
        "chi-squared per degree of freedom of trials at equal loads",
        "(by chance: 1)",
        ".3g",
    ),
    "replicates_freedom": ("degrees of freedom of trials at equal loads", "", "d"),
    "described_below_fps": (
        "trials are described below",
        "fps only: neither function fits all of them",
        ",.1f",
    ),
    "chi_squared_per_trial": (
        "chi-squared per trial around the best Poisson curve",
        "(about 1: counts scatter by chance only; more: the shape is another)",
        ".3g",
    ),
    "function_distance_stdevs": ("distance of the functions", "standard deviations", ".3g"),
    "drift_ratio": ("drift from the first to the last trial, share of the capacity", "", "+.2g"),
    "drift_stdev_ratio": ("standard deviation of the drift", "", ".2g"),
    "heavy_tails_ratio": ("probability of heavier tails than a normal distribution's", "", ".2g"),
}
"""Fields of the fit, likewise."""


def limit_in_words(guard: GuardStatement, stated_fps: float) -> str:
    """The verdict, the load that it is about, and what it leaves open, in a few words: they go beside the number."""
    if guard.unseen_burst_trials:
        rare = f" losses in fewer than one of {guard.unseen_burst_trials:.2g} trials"
    else:
        rare = ""

    if guard.verdict is Verdict.EXTRAPOLATED:
        line = "extrapolated: the frames or trials at the critical load do not verify it"
        if rare:
            return f"{line}, and{rare} are open"
        return line

    line = f"{guard.verdict.value} at {format_frame_rate(guard.load_per_interface_fps)}"
    if guard.load_per_interface_fps < stated_fps:
        line += (
            f" ({100.0 - 100.0 * guard.load_per_interface_fps / stated_fps:.2g} % below the number)"
        )

    if guard.largest_burst_frames is None or not rare:
        return line
    return f"{line}, but for{rare}"


def in_words(result: SoakResult, critical_load: CriticalLoad) -> Iterator[tuple[str, str]]:
    """What is said in words, and of what: on the console, and in the table."""
    if critical_load.guard is not None:
        yield "at and just below it", str(critical_load.guard)
    weights = ", ".join(
        f"{function.name} {function.weight:.3g}" for function in critical_load.functions
    )
    yield "functions", f"{weights} ({result.settings.get('likelihood', 'unknown')} likelihood)"
    if critical_load.csit is not None:
        yield "as CSIT computes it", str(critical_load.csit)
    if critical_load.variation is not None:
        yield "order of the trials", str(critical_load.variation)
    heavy = critical_load.fit.heavy_tails_ratio or 0.0
    if heavy >= OPEN_TAILS:
        yield (
            "tails",
            f"heavier than a normal distribution's with probability {heavy:.2g}: the interval counts them in",
        )

    if critical_load.ended_by is not None:
        wider = critical_load.stopping_factor
        if wider == 1.0:
            note = ""
        else:
            note = f" (the interval is {wider:.3g} times as wide for that)"

        yield "ended by", f"{critical_load.ended_by}{note}"


def fit_table(result: SoakResult, critical_load: CriticalLoad) -> str:
    """Everything that was inferred, as an HTML table with units."""
    functions = critical_load.functions
    of_fit = (
        (words, f"{_shown(getattr(critical_load.fit, name), form)} {unit}".rstrip())
        for name, (words, unit, form) in _OF_FIT.items()
    )
    rows = [_row("", *(function.name for function in functions), "unit", head=True)]
    rows += [
        _row(words, *(_shown(getattr(function, name), form) for function in functions), unit)
        for name, (words, unit, form) in _OF_FUNCTIONS.items()
    ]
    rows += [
        f"<tr><td>{xml_text(name)}</td><td colspan='{len(functions) + 1}'>{xml_text(value)}</td></tr>"
        for name, value in (*of_fit, *in_words(result, critical_load))
    ]

    return f"<table>{''.join(rows)}</table>"


def _row(*cells: str, head: bool = False) -> str:
    tag = "th" if head else "td"
    return "<tr>" + "".join(f"<{tag}>{xml_text(cell)}</{tag}>" for cell in cells) + "</tr>"


def _shown(value: Any, form: str) -> str:
    if value is None:
        return "\u2013"
    return format(getattr(value, "per_interface_fps", value), form)
