"""Everything that a soak test inferred, in words: one table of fields with their words and units."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lossratio.drawing import xml_text
from lossratio.measurements.soak.result import CriticalLoad, SoakResult
from lossratio.plrsearch import LONG, OVERLOAD, TIME_FOR_RARE, GuardStatement, Verdict
from lossratio.results import Trial
from lossratio.trials import offered_load, sut_loss_ratio
from lossratio.units import format_frame_rate, range_in_words, trials_counted

_RARE = 300.0
"""Seconds between losses that a soak test should be long enough to see. Jobs often run every five minutes."""
_ONLY_SHORT = "is about trials of {:.3g} s, in which a bucket or a buffer would let more through than in the long run"
_WITHOUT_BUCKET = "is from trials of {:.3g} s, and allows for the bucket or buffer that they show"
_ENDS = {
    "timeout": "when its time was up",
    "precision": "as soon as its interval was narrow enough",
    "misfit": "as soon as the model did not fit",
    "minimum load": "early, because the minimum load loses more than the target",
}
"""Why searches end, in words."""
_AS_LONG = 0.95
"""A search that took at least this share of its time counts as having used all of it."""
# Table: words, unit and format of each field.
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
    "scatter": ("trials at equal loads differ by", "", "s"),
    "batch_frames": ("frames are lost in batches of", "frames", ".3g"),
    "chi_squared_per_trial": (
        "chi-squared per trial around the best Poisson curve",
        "(about 1: counts scatter by chance only; more: another shape fits better)",
        ".3g",
    ),
    "function_distance_stdevs": ("distance of the functions", "standard deviations", ".3g"),
}
"""Fields of the fit: words, unit, format."""


def scope_in_words(critical_load: CriticalLoad) -> str:
    """The scope of the stated load, in a few words to put beside the number."""
    guard = critical_load.guard
    if guard.verdict is Verdict.EXTRAPOLATED:
        few = "extrapolated: there are too few frames or trials at the critical load to verify it"
        return f"{few}; {_rare(critical_load)}"
    if guard.verdict is Verdict.CONTRADICTED or critical_load.verified is None:
        return f"{guard.verdict.value} at {format_frame_rate(guard.load_per_interface_fps)}"

    return f"verified {protocol_in_words(critical_load)}; {_rare(critical_load)}"


def protocol_in_words(critical_load: CriticalLoad) -> str:
    """The length of the trials that verify the stated load."""
    guard, usual = critical_load.guard, critical_load.trial_s
    if guard.protocol_s is not None:
        return f"also in trials of {guard.protocol_s:g} s"
    return "in short trials only" if usual is None else f"in trials of {usual:g} s only"


def _rare(critical_load: CriticalLoad) -> str:
    """How rare losses must be to remain unseen, and how long a soak test takes to see rarer losses."""
    rarest = critical_load.rarest_s
    words = f"losses rarer than one in {rarest:,.0f} s may not have been seen"
    elapsed = critical_load.history[-1].elapsed_s if critical_load.history else 0.0
    longer = TIME_FOR_RARE * _RARE
    if rarest >= _RARE or not 0.0 < elapsed < _AS_LONG * longer:
        return words
    minutes = math.ceil(longer / 60.0)
    return f"{words}; to see one in {_RARE:.0f} s, search with rarest={_RARE:.0f} s ({minutes} min)"


def in_words(result: SoakResult, critical_load: CriticalLoad) -> Iterator[tuple[str, str]]:
    """The statements in words, each with its subject, on the console and in the table."""
    yield "counted frames", str(critical_load.guard)
    long_run = _long_run(result, critical_load, critical_load.guard)
    if long_run is not None:
        yield "in the long run", long_run

    if critical_load.csit is not None:
        yield "as CSIT computes it", str(critical_load.csit)
    for sentence in critical_load.process:
        yield "how frames are lost", sentence
    if critical_load.ended_by is not None:
        wider = critical_load.stopping_factor
        if wider == 1.0:
            note = ""
        else:
            note = f" (which makes the interval {wider:.3g} times as wide)"

        yield (
            "the search ended",
            f"{_ENDS.get(critical_load.ended_by, critical_load.ended_by)}{note}",
        )


def _long_run(result: SoakResult, critical_load: CriticalLoad, guard: GuardStatement) -> str | None:
    """What longer trials show, or why they show nothing.

    None: the verdict already says this, or no trial counts.
    """
    usual = critical_load.trial_s
    if usual is None or guard.protocol_s is not None or guard.verdict is Verdict.CONTRADICTED:
        return None

    longer = [trial for trial in result.trials if trial.duration_s > LONG * usual]
    counting = [trial for trial in longer if trial.set_aside is None]
    # A device that loses frames in pauses may forward more at a higher load.
    is_limit = critical_load.pauses is None
    known = "; ".join(_in_long_trials(counting, is_limit=is_limit))
    if known:
        return f"{known}. Most trials took {usual:.3g} s"

    bucket = critical_load.bucket
    is_allowed_for = bucket is not None and not bucket.may_be_larger
    scope = _WITHOUT_BUCKET if is_allowed_for else _ONLY_SHORT
    stated = critical_load.stated.per_interface_fps
    is_elsewhere = all(trial.load_per_interface_fps != stated for trial in counting)
    known = "not known at the stated load" if counting and is_elsewhere else "not known"
    why = "; ".join(_few_long_trials(longer, counting))
    return f"{known}: {why}. Everything stated here {scope.format(usual)}"


def _few_long_trials(longer: Sequence[Trial], counting: Sequence[Trial]) -> Iterator[str]:
    """Which long trials there are, if they do not show the long run."""
    if not longer:
        yield "there were no long trials"
    if counting:
        yield _losses_of(counting)
    if len(counting) < len(longer):
        late = trials_counted(len(longer) - len(counting))
        yield f"{late} of {longer[-1].duration_s:.3g} s did not count, as the generator did not send all frames in time"


def _in_long_trials(trials: Sequence[Trial], *, is_limit: bool) -> Iterator[str]:
    """What long trials say about the long run: the highest forwarding rate, and a load without loss.

    Args:
        trials: The long trials.
        is_limit: Whether the forwarding rate of a trial with loss is a limit.
    """
    forwarded = {
        _forwarded(trial): trial for trial in trials if sut_loss_ratio(trial.as_result()) > OVERLOAD
    }
    if not forwarded:
        return
    most = min(forwarded)
    # If another trial of this length forwarded more, this one shows an event or a low capacity, but no limit.
    as_long = (trial for trial in trials if trial.duration_s >= forwarded[most].duration_s)
    is_limit = is_limit and all(_forwarded(trial) <= most * (1.0 + OVERLOAD) for trial in as_long)
    limit = f"at most {format_frame_rate(most)}: " if is_limit else ""
    yield f"{limit}{_losses_of([forwarded[most]])}"

    quiet = [trial for trial in trials if not trial.missing.lost_by_sut]
    highest = max((trial.load_per_interface_fps for trial in quiet), default=None)
    if highest is not None:
        yield _losses_of([trial for trial in quiet if trial.load_per_interface_fps == highest])


def _forwarded(trial: Trial) -> float:
    """Frames per second that the SUT forwarded, per interface."""
    result = trial.as_result()
    return offered_load(result) * (1.0 - sut_loss_ratio(result))


def _losses_of(trials: Sequence[Trial]) -> str:
    """How many frames were lost in trials of one duration."""
    sent = sum(trial.sent_frames or 0 for trial in trials)
    lost = sum(trial.missing.lost_by_sut for trial in trials)
    loads = [trial.load_per_interface_fps for trial in trials]
    where = range_in_words(format_frame_rate(min(loads)), format_frame_rate(max(loads)))
    seconds = f"{trials[0].duration_s:.3g} s"
    return f"{trials_counted(len(trials))} of {seconds} at {where} lost {lost:,} of {sent:,} frames"


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
        for name, value in (*of_fit, _likelihood(result), *in_words(result, critical_load))
    ]

    return f"<table>{''.join(rows)}</table>"


def _likelihood(result: SoakResult) -> tuple[str, str]:
    return "likelihood", str(result.settings.get("likelihood", "unknown"))


def _row(*cells: str, head: bool = False) -> str:
    tag = "th" if head else "td"
    return "<tr>" + "".join(f"<{tag}>{xml_text(cell)}</{tag}>" for cell in cells) + "</tr>"


def _shown(value: Any, form: str) -> str:
    if value is None:
        return "\u2013"
    return format(getattr(value, "per_interface_fps", value), form)
