"""The view of a soak test: sentences about the critical load, and its picture."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from types import MappingProxyType
from typing import Any

import numpy as np

from lossratio.drawing import (
    MARKS,
    RIGHT,
    Axis,
    Drawing,
    Plot,
    by_mark,
    in_unit,
    series_colour,
    trial_hint,
)
from lossratio.measurements import CsitExportError, csit_rate
from lossratio.measurements.soak.result import CriticalLoad, FittedFunction, SoakResult
from lossratio.plrsearch import FINE, TIME_FOR_RARE, LimitReached, LossBounds, target_in_words
from lossratio.results import (
    OF_ALL_KINDS,
    OVER_TIME,
    Finding,
    NoteKind,
    Outcome,
    Picture,
    Trial,
    View,
    Weight,
    against_stalls,
    doubt,
    frames_in_words,
    headline,
    numbers,
    rate_in_words,
    rule,
    value_line,
)
from lossratio.trials import STALL
from lossratio.values import (
    Rate,
    format_frame_rate,
    format_one_in,
    format_ratio,
    format_target,
    prefix_of,
    trials_counted,
)

CRITICAL_LOAD = "critical load"
"""The quantity of a soak test."""

_SOAK_LOSS_RATIO = 1e-7
_HEIGHT = 800.0
_LEFT = 96.0
_CURVES = (30.0, 240.0)
_KNEE = (310.0, 530.0)
_HISTORY = (595.0, 725.0)
_ROOM = 0.05
_COMBINED = "#444444"
_KNEE_MARGIN, _LEAST_MARGIN = 1.0, 0.01
"""Margins of the range around the critical load, as multiples of it and as a share of the load."""
_RARE = 300.0
"""Seconds between losses that a soak test should be long enough to see. Jobs often run every five minutes."""
_LONG_RUN = (
    "not known. Everything stated here is about trials of {:.3g} s, in which a bucket or a buffer would let more "
    "through than in the long run"
)
_ENDS = {
    "timeout": "when its time was up",
    "precision": "as soon as the loads were near enough",
    "minimum load": "early, because the minimum load loses more than the target",
}
"""Why searches end, in words."""


@headline
def _stated(result: SoakResult) -> Iterator[str]:
    """The stated load, whether it is verified, and the contradicted load if the result is regular."""
    found = result.critical_load
    if found is None:
        return

    load = rate_in_words(found.stated.per_interface_fps, frames_in_words(result.conditions))
    share = format_one_in(result.target_loss_ratio)
    if found.verified is None:
        why = "because that takes more frames" if found.reason is None else "and perhaps too high"
        said = f"not verified, {why}. The search ended at {load}"
    elif found.reason is None:
        unseen = (
            f"losses that come less often than every {found.rarest_s:,.0f} s may have gone unseen"
        )
        said = f"at {load}, at most {share} is lost (verified {_in_trials(found)}); {unseen}"
    else:
        said = f"irregular. The trials at {load} lost at most {share}"

    yield f"{CRITICAL_LOAD.capitalize()}: {said}."
    if found.reason is None and found.contradicted is not None:
        above = rate_in_words(found.contradicted.per_interface_fps)
        yield f"At a load of {above}, more than {share} is lost (with a certainty of 97.5 %)."


@numbers
def _lines(result: SoakResult) -> Iterator[str]:
    """The verified and the contradicted load, and what else the trials say."""
    found = result.critical_load
    if found is None:
        return

    state = (
        f"regular, {_scope_in_words(found)}"
        if found.reason is None
        else f"irregular: {found.reason}"
    )
    target = target_in_words(result.target_loss_ratio, found.trial_s, found.long_s)
    yield f"{CRITICAL_LOAD} ({target}): {state}"
    for name, rate in _values(found):
        yield value_line(name, rate)
    for name, said in _statements(found):
        # An irregular result has already given its reason.
        if said not in state:
            yield value_line(name, said)


def _statements(found: CriticalLoad) -> Iterator[tuple[str, str]]:
    """What the trials say, each with its subject."""
    yield "counted frames", str(found.statement)
    if found.long_s is None:
        yield "in the long run", _LONG_RUN.format(found.trial_s)
    if found.csit is not None:
        yield "as CSIT computes it", str(found.csit)
    for sentence in found.process:
        yield "how frames are lost", sentence
    if found.ended_by is not None:
        yield "the search ended", _ENDS.get(found.ended_by, found.ended_by)


@rule(Weight.PROVENANCE, NoteKind.CAVEAT)
def _scope(result: SoakResult) -> Iterator[str]:
    """The scope of the stated load, which the numbers have, too."""
    found = result.critical_load
    if found is not None and found.reason is None:
        yield _scope_in_words(found)


@doubt(
    NoteKind.GENERATOR_STALLS,
    "The generator's longest delay in a trial with loss, as a share of the trial, is more than half of the bracket.",
)
def _stalls(result: SoakResult) -> Iterator[str]:
    """Stalls that were too short for their trials to be set aside, but may have moved the critical load."""
    found = result.critical_load
    stalled = [
        trial
        for trial in result.evidence
        if trial.lateness_s > STALL and trial.missing.without_tester
    ]
    if found is None or not stalled:
        return
    share = max(trial.lateness_s / trial.duration_s for trial in stalled)
    if share > 0.5 * _width(found):
        help_it = against_stalls(stalled)
        yield (
            f"in {trials_counted(len(stalled))} with loss, the generator was stalled for up to "
            f"{format_ratio(share)} of their duration, and then sent a burst. A SUT that cannot buffer the burst "
            f"may forward up to {format_ratio(share)} more at a constant load. {help_it[0].upper()}{help_it[1:]}"
        )


class SoakView(View[SoakResult]):
    """How a soak test is shown."""

    rules = (_stated, _lines, _scope, _stalls, *OF_ALL_KINDS, *OVER_TIME)

    csit_type = "soak"
    method = "search by counts for the critical load"
    value_name = CRITICAL_LOAD
    goal_fields = MappingProxyType({"target_loss_ratio": "target_loss_ratio"})

    def pictures(self, result: SoakResult) -> Iterator[Picture]:
        """Loss over load, everywhere and around the critical load, and the loads over time."""
        yield Picture(
            "Critical load",
            draw_soak(result),
            "Top: loss over load. The dashed line is the target loss ratio, and other lines are the functions of "
            "PLRsearch. Middle: the\nrange around the critical load, with the loss ratio of each load over all its "
            "trials. Bars are 95 % intervals by the scatter of counts at\nequal loads; the shaded range is between the "
            "verified and the contradicted load. Bottom: the loads of that range over time.",
        )

    def findings(self, result: SoakResult) -> Iterator[Finding]:
        """The stated load, with the verified and the contradicted load as bounds."""
        found = result.critical_load
        if found is None:
            yield Finding(result, CRITICAL_LOAD, Outcome.FAILED, result.error)
        else:
            yield Finding(
                result,
                CRITICAL_LOAD,
                result.outcome,
                found.reason,
                found.stated,
                found.verified,
                found.contradicted,
                is_at_limit=found.limit is LimitReached.AT_LEAST,
            )

    def csit(self, result: SoakResult) -> dict[str, Any]:
        """What CSIT reports if loads were chosen as in CSIT; otherwise the verified and the contradicted load.

        Raises:
            CsitExportError: If the target loss ratio is not CSIT's, or the critical load is missing or irregular.
        """
        found = result.critical_load
        if found is None or result.target_loss_ratio != _SOAK_LOSS_RATIO:
            share = format_target(_SOAK_LOSS_RATIO)
            raise CsitExportError(
                f"{result.test.full_name} cannot be exported: the target loss ratio of CSIT's soak tests is {share}. "
                f"Measure with target_loss_ratio={share}."
            )
        if found.csit is None and found.reason is not None:
            raise CsitExportError(
                f"{result.test.full_name} cannot be exported, because its critical load is irregular: {found.reason}."
            )

        rate = result.conditions.rate
        if found.csit is None:
            lower, upper = found.stated, found.contradicted or found.stated
        else:
            mean, stdev = found.csit.mean_per_interface_fps, found.csit.stdev_per_interface_fps
            lower, upper = rate(max(0.0, mean - stdev)), rate(mean + stdev)
        return {
            "type": "soak",
            "critical_rate": {"lower": csit_rate(lower), "upper": csit_rate(upper)},
        }


def _in_trials(found: CriticalLoad) -> str:
    """The length of the trials that verify the stated load."""
    if found.long_s is not None:
        return f"also in trials of {found.long_s:g} s"
    return f"in trials of {found.trial_s:g} s only"


def _scope_in_words(found: CriticalLoad) -> str:
    """The scope of the stated load, in a few words to put beside the number."""
    if found.verified is None:
        state = "extrapolated: there are too few frames at the load to verify it"
    else:
        state = f"verified {_in_trials(found)}"
    words = f"{state}; losses rarer than one in {found.rarest_s:,.0f} s may not have been seen"
    if found.rarest_s >= _RARE:
        return words
    minutes = math.ceil(TIME_FOR_RARE * _RARE / 60.0)
    return f"{words}; to see one in {_RARE:.0f} s, search with rarest={_RARE:.0f} s ({minutes} min)"


def _values(found: CriticalLoad) -> Iterator[tuple[str, Rate]]:
    """The loads, with their names."""
    yield found.stated_as, found.stated
    if found.contradicted is not None:
        yield "contradicted load", found.contradicted
    if found.line is not None:
        yield "by a line (a model)", found.line
    if found.plrsearch is not None:
        yield "by PLRsearch (a model)", found.plrsearch.median
        yield "its 95 % interval, from", found.plrsearch.least_95
        yield "its 95 % interval, to", found.plrsearch.most_95


def _width(found: CriticalLoad) -> float:
    """The distance of the verified and the contradicted load, as a share; if it is not known, the search's own."""
    if found.verified is None or found.contradicted is None:
        return FINE
    return found.contradicted.per_interface_fps / found.verified.per_interface_fps - 1.0


def draw_soak(result: SoakResult) -> str:
    """Draws loss over load, everywhere and around the critical load, and the loads there over time."""
    found = result.critical_load
    if found is None or not result.trials:
        return ""

    picture = Drawing()
    functions = () if found.plrsearch is None else found.plrsearch.functions
    near = _near(found)
    _draw_losses(picture, result, functions)
    _draw_losses(picture, result, functions, near)
    _draw_history(picture, result, near)
    curves = [(one.name, series_colour(index), 1.0) for index, one in enumerate(functions)]
    end = picture.legend(by_mark(result.trials), curves, _LEFT, _HEIGHT - 8.0)

    return picture.svg(end + 8.0, f"Loss over load and critical load of {result.test.name}.")


def _near(found: CriticalLoad) -> Axis:
    """The axis of loads around the stated and the contradicted load."""
    stated = found.stated.per_interface_fps
    high = stated if found.contradicted is None else found.contradicted.per_interface_fps
    margin = max(_KNEE_MARGIN * (high - stated), _LEAST_MARGIN * stated)
    return Axis(max(1.0, stated - margin), high + margin, _LEFT, RIGHT)


def _precise(x: Axis, scale: float) -> Callable[[float], str]:
    """Writes loads with enough digits for the ticks of a narrow axis to differ."""
    digits = max(0, 1 - math.floor(math.log10(max((x.high - x.low) / scale / 6.0, 1e-9))))
    return lambda load: f"{load / scale:.{digits}f}"


def _draw_losses(
    picture: Drawing,
    result: SoakResult,
    functions: Sequence[FittedFunction],
    near: Axis | None = None,
) -> None:
    """Draws the loss over all loads, or over those of an axis."""
    place = _CURVES if near is None else _KNEE
    label = in_unit if near is None else partial(_precise, near)
    loads = [trial.load_per_interface_fps for trial in result.trials]
    margin = _ROOM * (max(loads) - min(loads) or max(loads))
    x = near or Axis(max(1.0, min(loads) - margin), max(loads) + margin, _LEFT, RIGHT)

    lowest = min(trial.loss_ratio or result.target_loss_ratio for trial in result.trials)
    floor = 10.0 ** (math.floor(math.log10(min(lowest, result.target_loss_ratio))) - 1.0)
    plot = Plot(x, Axis(floor, 1.0, place[1], place[0], is_logarithmic=True), picture)
    prefix, scale = prefix_of(x.high)
    ticks = x.ticks(8 if place is _CURVES else 6), [floor, *plot.y.ticks(8)[1:]]
    plot.frame(*ticks, label(scale), lambda loss: "none" if loss == floor else format_target(loss))
    plot.line(
        [(x.low, result.target_loss_ratio), (x.high, result.target_loss_ratio)],
        "#777777",
        dash="6 3",
    )

    for index, function in enumerate(functions):
        points = [(point.load_per_interface_fps, point.loss_ratio) for point in function.curve]
        shown = [(load, loss) for load, loss in points if x.holds(load) and loss >= floor]
        if shown:
            plot.line(shown, series_colour(index))

    if near is not None:
        found = result.critical_load
        if found is not None and found.verified is not None and found.contradicted is not None:
            ends = found.verified.per_interface_fps, found.contradicted.per_interface_fps
            plot.bands([(*ends, floor, 1.0)], _COMBINED, 0.12)
        _draw_counts(plot, result.trials)
    else:
        for mark, trials in by_mark(result.trials).items():
            places = [
                (one.load_per_interface_fps, max(one.loss_ratio, floor), trial_hint(one))
                for one in trials
            ]
            plot.marks(mark, places)

    plot.titles(f"load per interface, {prefix}fps", "loss ratio")


def _draw_counts(plot: Plot, trials: Sequence[Trial]) -> None:
    """Draws the loss ratio of each load, and its 95 % interval if several trials show how their counts scatter."""
    counts: dict[float, list[tuple[float, float]]] = {}
    for trial in trials:
        if trial.is_evidence and trial.sent_frames and plot.x.holds(trial.load_per_interface_fps):
            counted = (float(trial.sent_frames), float(trial.missing.without_tester))
            counts.setdefault(trial.load_per_interface_fps, []).append(counted)
    marks = []
    for load, rows in counts.items():
        bounds = LossBounds.of(*np.array(rows).T)
        floor = plot.y.low
        if bounds.trials > 1 and bounds.most > floor:
            plot.line([(load, max(bounds.least, floor)), (load, bounds.most)], _COMBINED, width=1.0)
        hint = f"{bounds.lost:,.0f} of {bounds.frames:,.0f} frames lost in {trials_counted(bounds.trials)}"
        marks.append((load, max(bounds.lost / bounds.frames, floor), hint))
    plot.marks(MARKS[0], marks)


def _draw_history(picture: Drawing, result: SoakResult, near: Axis) -> None:
    """Draws the loads around the critical load over time."""
    ends = list(accumulate(trial.elapsed_s for trial in result.trials))
    x = Axis(0.0, ends[-1] or 1.0, _LEFT, RIGHT)
    plot = Plot(x, Axis(near.low, near.high, _HISTORY[1], _HISTORY[0]), picture)
    plot.frame(x.ticks(8), plot.y.ticks(4), in_unit(1.0), format_frame_rate)
    for mark, trials in by_mark(result.trials).items():
        places = [
            (ends[trial.number - 1], trial.load_per_interface_fps, trial_hint(trial))
            for trial in trials
            if near.holds(trial.load_per_interface_fps)
        ]
        plot.marks(mark, places)
    plot.text(4.0, _HISTORY[0] - 12.0, "load of the trials over time")
    plot.text((_LEFT + RIGHT) / 2, _HISTORY[1] + 34.0, "seconds of trials", text_anchor="middle")
