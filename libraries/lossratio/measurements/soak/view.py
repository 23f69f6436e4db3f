"""The view of a soak test: fitted curves among the trials, the critical load, its interval over time."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, cast

import numpy as np
from pydantic import JsonValue

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
from lossratio.measurements.soak.inferred import (
    fit_table,
    in_words,
    protocol_in_words,
    scope_in_words,
)
from lossratio.measurements.soak.result import CriticalLoad, SoakLimit, SoakResult
from lossratio.plrsearch import LossBounds, target_in_words
from lossratio.records import Rate
from lossratio.results import (
    OF_ALL_KINDS,
    OVER_TIME,
    Estimate,
    Finding,
    NoteKind,
    Outcome,
    Picture,
    Trial,
    View,
    Weight,
    doubt,
    frames_in_words,
    headline,
    numbers,
    rate_in_words,
    rule,
    value_line,
)
from lossratio.trials import STALL
from lossratio.units import (
    format_frame_rate,
    format_one_in,
    format_ratio,
    format_target,
    prefix_of,
    range_in_words,
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
_KNEE_MARGIN = 0.25
_SETTLED_SHARE = 0.25
"""After this share of the time, the picture shows the whole interval."""


@headline
def _stated(result: SoakResult) -> Iterator[str]:
    """The stated load."""
    yield from cast(SoakView, result.view()).sentences(result)


@numbers
def _lines(result: SoakResult) -> Iterator[str]:
    """The critical load, with its interval."""
    yield from cast(SoakView, result.view()).lines(result)


@rule(Weight.PROVENANCE, NoteKind.CAVEAT)
def _scope(result: SoakResult) -> Iterator[str]:
    """The scope of the stated load, which the numbers have, too."""
    critical_load = result.critical_load
    if critical_load is not None and critical_load.reason is None:
        yield scope_in_words(critical_load)


@doubt(
    NoteKind.GENERATOR_STALLS,
    "The generator's longest delay in each trial with loss: a share of the trial beyond half of the interval.",
)
def _stalls(result: SoakResult) -> Iterator[str]:
    """Stalls that were too short for their trials to be set aside, but may have moved the critical load."""
    critical_load = result.critical_load
    stalled = [
        trial
        for trial in result.evidence
        if trial.lateness_s > STALL and trial.missing.without_tester
    ]
    if critical_load is None or not stalled:
        return
    share = max(trial.lateness_s / trial.duration_s for trial in stalled)
    width = critical_load.most_95.per_interface_fps - critical_load.least_95.per_interface_fps
    if share * critical_load.stated.per_interface_fps > 0.5 * width:
        yield (
            f"in {trials_counted(len(stalled))} with loss, the generator was stalled for up to "
            f"{format_ratio(share)} of their duration, and then sent a burst. A SUT that cannot buffer the burst "
            f"may forward up to {format_ratio(share)} more at a constant load. Stop other work on the generator's "
            "machine"
        )


class SoakView(View[SoakResult]):
    """How a soak test is shown."""

    rules = (_stated, _lines, _scope, _stalls, *OF_ALL_KINDS, *OVER_TIME)

    csit_type = "soak"
    method = "PLRsearch (draft-vpolak-bmwg-plrsearch-02)"
    value_name = "critical load"
    varied: ClassVar[str] = "load"
    """What the search varies, in sentences."""

    def rates_in(self, result: SoakResult) -> str:
        """What the rates of a sentence count."""
        return frames_in_words(result.conditions)

    def sentences(self, result: SoakResult) -> Iterator[str]:
        """The stated load, whether it is verified, and the estimate of the critical load if the result is regular."""
        found = result.critical_load
        if found is None:
            return

        load = rate_in_words(found.stated.per_interface_fps, self.rates_in(result))
        share = format_one_in(result.target_loss_ratio)
        is_regular = found.reason is None

        if found.is_estimate:
            said = f"estimated at {load}" if is_regular else f"irregular. The estimate is {load}"
        elif found.verified is None:
            why = "because that takes more frames" if is_regular else "and perhaps too high"
            said = f"not verified, {why}. No trial contradicts {load}"
        elif found.doubt is None:
            trials = protocol_in_words(found)
            said = f"at {load}, at most {share} is lost, which is verified {trials}"
        else:
            said = f"irregular. The trials at {load} lost at most {share}, but rarer losses may exceed that"

        yield f"{str(self.value_name).capitalize()}: {said}."
        if is_regular:
            least, most = found.least_95.per_interface_fps, found.most_95.per_interface_fps
            interval = range_in_words(rate_in_words(least), rate_in_words(most))
            yield f"The {self.varied} that loses exactly {share} is estimated at {interval} (95 % interval)."

    def lines(self, result: SoakResult) -> Iterator[str]:
        """The critical load, with its interval."""
        found = result.critical_load
        if found is None:
            return

        state = f"irregular: {found.reason}"
        if found.reason is None:
            scope = scope_in_words(found)
            state = f"regular, {scope}" if scope else "regular"

        target = target_in_words(result.target_loss_ratio, found.guard, found.trial_s)
        yield f"{self.value_name} ({target}): {state}"
        for name, rate in _values(found):
            yield self.rate_line(name, rate)
        for name, said in self.statements(result, found):
            # An irregular result has already given its reason.
            if said not in state:
                yield value_line(name, said)

    def rate_line(self, name: str, rate: Rate) -> str:
        """The line of one rate."""
        return value_line(name, rate)

    def statements(self, result: SoakResult, found: CriticalLoad) -> Iterator[tuple[str, str]]:
        """What the trials say, each with its subject."""
        yield from in_words(result, found)

    def pictures(self, result: SoakResult) -> Iterator[Picture]:
        """Loss over load, the fit around the knee, and how the interval narrowed."""
        critical_load = result.critical_load
        known = critical_load is not None and critical_load.functions[0].at_min_ratio is not None
        yield Picture(
            "Critical load",
            draw_soak(result),
            "Top: loss over load. The dashed line is the target loss ratio, and the other lines are the fitted "
            "functions. Middle: the\nrange around the knee, with the loss ratio of each load over all its trials. Bars "
            "are 95 % intervals by the scatter of counts at\nequal loads; the shaded range is the 95 % interval of the "
            "critical load. Bottom: how that interval narrowed over time.",
            fit_table(result, critical_load) if critical_load is not None and known else "",
        )

    def findings(self, result: SoakResult) -> Iterator[Finding]:
        """The verified load or the critical load.

        The bounds are the ends of the interval, widened to include the load.
        """
        found = result.critical_load
        if found is None:
            yield Finding(result, CRITICAL_LOAD, Outcome.FAILED, result.error)
        else:
            ends = [found.stated, found.least_95, found.most_95]
            least = min(ends, key=attrgetter("per_interface_fps"))
            most = max(ends, key=attrgetter("per_interface_fps"))
            rates = found.stated, least, most, found.stdev if found.is_estimate else None

            is_at_limit = not found.misfit and found.limit is SoakLimit.AT_LEAST
            yield Finding(
                result,
                CRITICAL_LOAD,
                result.outcome,
                found.reason,
                *rates,
                is_at_limit=is_at_limit,
                estimate=_estimate(found),
            )

    def aspects(self, result: SoakResult, finding: Finding) -> Mapping[str, JsonValue]:
        """The target loss ratio."""
        return {"goal": {"target_loss_ratio": result.target_loss_ratio}}

    def csit(self, result: SoakResult) -> dict[str, Any]:
        """The critical load, minus and plus a standard deviation; if loads were chosen as in CSIT, what CSIT reports.

        Raises:
            CsitExportError: If the target loss ratio is not CSIT's, or the critical load is missing or irregular.
        """
        critical_load = result.critical_load
        if critical_load is None or result.target_loss_ratio != _SOAK_LOSS_RATIO:
            raise CsitExportError(
                f"CSIT's soak tests have a target loss ratio of 1e-7, unlike {result.test.full_name}."
            )

        beyond = critical_load.limit is SoakLimit.BEYOND_TRIALS
        irregular = critical_load.misfit or critical_load.doubt or beyond
        if critical_load.csit is None and irregular:
            raise CsitExportError(
                f"The critical load of {result.test.full_name} is irregular: {critical_load.reason}."
            )

        lower, upper = _about_mean(critical_load)
        rate = result.conditions.rate
        return {
            "type": "soak",
            "critical_rate": {
                "lower": csit_rate(rate(max(0.0, lower))),
                "upper": csit_rate(rate(upper)),
            },
        }


def _about_mean(found: CriticalLoad) -> tuple[float, float]:
    """The loads a standard deviation below and above the mean, in frames per second per interface.

    Both are in the 95 % interval, even if less passes in the long run than in the model. If loads were chosen as in
    CSIT, the numbers are CSIT's.
    """
    if found.csit is not None:
        mean = found.csit.mean_per_interface_fps
        stdev = found.csit.stdev_per_interface_fps
        return mean - stdev, mean + stdev

    mean = found.mean.per_interface_fps
    stdev = found.stdev.per_interface_fps
    upper = min(mean + stdev, found.most_95.per_interface_fps)
    lower = max(mean - stdev, found.least_95.per_interface_fps)
    return min(lower, upper), upper


def _values(found: CriticalLoad) -> Iterator[tuple[str, Rate]]:
    """The stated load and the estimate, with their names."""
    yield found.stated_as, found.stated
    if found.is_estimate:
        yield "standard deviation", found.stdev
    else:
        yield found.estimated_as, found.estimate
    yield "95 % interval, from", found.least_95
    yield "95 % interval, to", found.most_95


def _estimate(found: CriticalLoad) -> Estimate:
    """The estimate by the model, for comparisons between nights."""
    return Estimate(found.median, found.chance_stdev_ratio, found.shared_stdev_ratio)


def draw_soak(result: SoakResult) -> str:
    """Draws loss over load with the fitted curves, everywhere and around the knee, and the interval over time.

    The axis of load around the knee is narrow: the interval may be a thousandth of the range of trials.
    """
    critical_load = result.critical_load
    if critical_load is None or not result.trials:
        return ""

    picture = Drawing()
    _draw_curves(picture, result, critical_load)
    _draw_curves(picture, result, critical_load, _knee_axis(result, critical_load), _KNEE)
    _draw_history(picture, critical_load)
    curves = [
        (function.name, series_colour(index), 1.0)
        for index, function in enumerate(critical_load.functions)
    ]
    end = picture.legend(by_mark(result.trials), curves, _LEFT, _HEIGHT - 8.0)

    return picture.svg(end + 8.0, f"Loss over load and critical load of {result.test.name}.")


def _knee_axis(result: SoakResult, critical_load: CriticalLoad) -> Axis:
    """The axis from below the critical load to above the likeliest knee."""
    best = max(critical_load.functions, key=attrgetter("weight"))
    low, stated = critical_load.least_95.per_interface_fps, critical_load.stated.per_interface_fps
    width = 3.0 * (
        (best.spread_per_interface_fps or 0.0) + (best.capacity_stdev_per_interface_fps or 0.0)
    )
    high = max(
        (best.mrr_per_interface_fps or stated) + width, critical_load.most_95.per_interface_fps
    )
    high = min(high, max(trial.load_per_interface_fps for trial in result.trials))
    low = max(low, min(trial.load_per_interface_fps for trial in result.trials))
    margin = _KNEE_MARGIN * (high - low) if high > low else 1e-3 * stated
    return Axis(max(1.0, min(low, high) - margin), max(low, high) + margin, _LEFT, RIGHT)


def _precise(x: Axis, scale: float) -> Callable[[float], str]:
    """Writes loads with enough digits for the ticks of a narrow axis to differ."""
    digits = max(0, 1 - math.floor(math.log10(max((x.high - x.low) / scale / 6.0, 1e-9))))
    return lambda load: f"{load / scale:.{digits}f}"


def _draw_curves(
    picture: Drawing,
    result: SoakResult,
    critical_load: CriticalLoad,
    x: Axis | None = None,
    place: tuple[float, float] = _CURVES,
) -> None:
    loads = [trial.load_per_interface_fps for trial in result.trials] + [
        critical_load.stated.per_interface_fps
    ]
    label = in_unit if x is None else partial(_precise, x)
    if x is None:
        margin = _ROOM * (max(loads) - min(loads) or max(loads))
        x = Axis(max(1.0, min(loads) - margin), max(loads) + margin, _LEFT, RIGHT)

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

    for index, function in enumerate(critical_load.functions):
        points = [(point.load_per_interface_fps, point.loss_ratio) for point in function.curve]
        shown = [(load, loss) for load, loss in points if x.holds(load) and loss >= floor]
        if shown:
            plot.line(shown, series_colour(index))

    if place is _KNEE:
        ends = (critical_load.least_95.per_interface_fps, critical_load.most_95.per_interface_fps)
        plot.bands([(max(ends[0], x.low), min(ends[1], x.high), floor, 1.0)], _COMBINED, 0.12)
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


def _draw_history(picture: Drawing, critical_load: CriticalLoad) -> None:
    points = critical_load.history
    if len(points) < 2:
        return

    x = Axis(0.0, points[-1].elapsed_s or 1.0, _LEFT, RIGHT)
    settled = [point for point in points if point.elapsed_s >= _SETTLED_SHARE * x.high]
    low = min(point.least_95_per_interface_fps for point in settled)
    high = max(point.most_95_per_interface_fps for point in settled)
    room = _ROOM * (high - low) or _ROOM * high
    plot = Plot(x, Axis(max(low - room, 0.0), high + room, _HISTORY[1], _HISTORY[0]), picture)
    plot.frame(x.ticks(8), plot.y.ticks(4), in_unit(1.0), format_frame_rate)
    # The interval after a trial is valid until the next trial is over.
    ends = [point.elapsed_s for point in points[1:]] + [points[-1].elapsed_s]
    spans = [(one.elapsed_s, end, *one.interval[1:]) for one, end in zip(points, ends, strict=True)]
    plot.bands(spans, _COMBINED, 0.15)
    plot.line([(point.elapsed_s, point.interval[0]) for point in points], _COMBINED)
    plot.text(4.0, _HISTORY[0] - 12.0, "95 % interval and median of the critical load over time")
    plot.text((_LEFT + RIGHT) / 2, _HISTORY[1] + 34.0, "seconds of trials", text_anchor="middle")
