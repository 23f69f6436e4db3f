"""Frame loss rate over load (RFC 2544, section 26.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field

from lossratio import drawing
from lossratio.measurements import FoundResult, PlannedKind, PlannedTrials, Request, measure
from lossratio.mlrsearch import Forecast
from lossratio.results import (
    USUAL,
    MaxLoad,
    Offered,
    Picture,
    Rfc2544Row,
    Trial,
    View,
    are_lost_in_words,
    erratic,
    frames_in_words,
    headline,
    in_full,
    in_trials_of,
    load_in_words,
    numbers,
    offered_in,
    rate_in_words,
    size_in_words,
    value_line,
)
from lossratio.trials import TrialInput, TrialResult
from lossratio.values import (
    LONGEST_TRIAL,
    Duration,
    FrameCount,
    Rate,
    Ratio,
    Record,
    Seconds,
    Share,
    format_frame_rate,
    format_ratio,
)

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange


class LossAtLoad(Record):
    """The frames lost at one load."""

    share_of_max_load_ratio: Ratio
    """The load as a share of the maximum load."""
    load: Rate
    """The load."""
    duration_s: Seconds
    """Duration of the trial."""
    frame_loss_ratio: Ratio
    """Frames sent and not received, divided by frames sent; if these are not counted, the trial loss ratio."""
    sent_frames: FrameCount | None
    """Frames sent in all directions; None: not counted."""
    lost_frames: FrameCount | None
    """Frames sent and not received in all directions; None: not counted."""
    unsent_frames: FrameCount | None
    """Frames that the generator could not send, in all directions; they are not lost. None: not counted."""


class FrameLoss(Record):
    """Frame loss rate over load."""

    loads: tuple[LossAtLoad, ...] = Field(min_length=1)
    """The loads, in the order of measurement: from the maximum load downwards."""
    is_complete: bool
    """Whether nothing was lost at the last two loads, so that smaller loads need not be measured."""


class TrialAtLoad(NamedTuple):
    """A load with its trial."""

    loss: LossAtLoad
    """The load, and what was lost."""
    trial: Trial
    """The trial."""


class FrameLossResult(FoundResult):
    """The result of a measurement of the frame loss rate over load."""

    found = "frame_loss"
    kind: Literal["frame_loss"] = "frame_loss"
    max_load: MaxLoad
    """The largest load."""
    frame_loss: FrameLoss | None
    """Frame loss rate at each load; null if the measurement failed."""

    @property
    def at_loads(self) -> list[TrialAtLoad]:
        """Each load with its trial, from the maximum load downwards; none if the measurement failed."""
        if self.frame_loss is None:
            return []
        return list(map(TrialAtLoad, self.frame_loss.loads, self.trials))


def ends_without_loss(trials: Sequence[TrialResult]) -> bool:
    """Whether the last two trials lost nothing: RFC 2544 then measures no smaller loads.

    A trial with unsent frames shows nothing about its load, because that load was not offered.
    """
    return len(trials) >= 2 and all(trial.loss_ratio == 0.0 for trial in trials[-2:])


LARGEST_STEP = 0.1
"""The largest distance between successive loads that RFC 2544 allows, as a share of the maximum load."""


class FrameLossRequest(Request):
    """Measures the share of frames that is lost at each load (RFC 2544, section 26.3), and returns the result.

    It begins at the maximum load and goes down step by step until two trials in a row lose nothing. The log and the
    page show the graph.

    | `Measure Frame Loss Rate`    frame_size=64B
    | `Measure Frame Loss Rate`    1518B    step=5 %    trial_duration=10 s    max_load=1 Mfps
    """

    unused = frozenset({"min_load", "ramp", "warm_up"})

    step: Annotated[Share, Field(gt=0.0, le=LARGEST_STEP)] = LARGEST_STEP
    """Distance between successive loads, as a share of the maximum load (RFC 2544, section 26.3)."""
    trial_duration: Annotated[Duration, Field(gt=0.0, le=LONGEST_TRIAL)] = 60.0
    """Seconds of each trial; the default is the minimum of RFC 2544, section 24."""

    def forecast(self, loads: LoadRange, waits: float) -> Forecast:
        """An estimate: the measurement ends at loads without loss, so not all loads are tried.

        Args:
            loads: The range of the loads of its trials.
            waits: Seconds that each trial takes besides its traffic.
        """
        steps = round(1.0 / self.step)
        return Forecast(
            *((self.trial_duration + waits) * trials for trials in (0.7 * steps, 2, steps))
        )


class FrameLossRate(PlannedKind[FrameLossRequest, FrameLossResult]):
    """The kind: frame loss rate over load."""

    keyword = "Measure Frame Loss Rate"
    method = "frame_loss"
    noun = "frame loss rate"
    work = "Measuring the"

    def controller(self, request: FrameLossRequest, loads: LoadRange) -> PlannedTrials:
        """Trials at ever smaller loads, from the maximum load down, until two in a row lose nothing."""
        steps = round(1.0 / request.step)
        falling = (loads.max_load * (steps - done) / steps for done in range(steps))
        return PlannedTrials(
            [TrialInput(request.trial_duration, load) for load in falling], ends_without_loss
        )

    def found_in(self, result: FrameLossResult, trials: Sequence[TrialResult]) -> FrameLoss:
        """The frame loss rate of the trials; the trial loss ratio if their frames are not counted."""
        loads = []
        for trial in trials:
            counts = {
                name: getattr(trial.output, name)
                for name in ("sent_frames", "lost_frames", "unsent_frames")
            }
            sent, lost, _ = counts.values()
            if not sent or lost is None:
                ratio = trial.loss_ratio
            else:
                ratio = min(1.0, lost / sent)

            share = trial.load / result.max_load.rate.per_interface_fps
            loads.append(
                LossAtLoad(
                    share_of_max_load_ratio=min(1.0, share),
                    load=result.conditions.rate(trial.load),
                    duration_s=trial.duration,
                    frame_loss_ratio=ratio,
                    **counts,
                )
            )

        return FrameLoss(loads=tuple(loads), is_complete=ends_without_loss(trials))


measure_frame_loss_rate = partial(measure, FrameLossRate())
_ROOM = 1.05
"""Upper end of the axis, as a multiple of the largest loss."""
_LEAST = 0.01
"""Loss ratio that the axis always reaches."""
_POINT = 40.0
"""Room of a load, in pixels."""
THEORETICAL = "theoretical maximum"
"""The name of the maximum frame rate of the links."""


def _loads_in_words(losses: Sequence[LossAtLoad], offered: Sequence[Offered]) -> str:
    """One or several loads in words, from the largest on, e.g. ``120,000 and 80,000``."""
    loads = [load_in_words(loss.load.per_interface_fps, offered) for loss in losses]
    if len(loads) <= 2:
        return " and ".join(loads)
    return f"{len(loads)} loads from {loads[0]} down to {loads[-1]}"


@headline
def _found(result: FrameLossResult) -> Iterator[str]:
    """The loss at the maximum load, and the smaller loads at which nothing was lost."""
    loads = [one.loss for one in result.at_loads]
    if not loads:
        return

    most = loads[0]
    sums = offered_in(result.trials)
    load = load_in_words(most.load.per_interface_fps, sums, frames_in_words(result.conditions))
    offered = f"the maximum load of {load}"
    offered += in_trials_of(result.trials)
    smallest = list(takewhile(lambda loss: not loss.frame_loss_ratio, reversed(loads[1:])))
    if not most.frame_loss_ratio and len(smallest) < len(loads) - 1:
        yield f"Frame loss rate: no frame is lost at {offered}, but frames are missing at smaller loads."
        return

    below = ""
    if smallest:
        below = f", and none at {_loads_in_words(smallest[::-1], sums)}"
    elif len(loads) > 1:
        below = ", and some at the smallest load, too"
    if not most.frame_loss_ratio:
        yield f"Frame loss rate: no frame is lost at {offered}{below}."
        return

    of_sent = " sent" if most.unsent_frames else ""
    share = f"{format_ratio(most.frame_loss_ratio)} of the frames{of_sent}"
    are_lost = are_lost_in_words(result.trials[:1])
    yield f"Frame loss rate: {share} {are_lost} at {offered}{below}."


@numbers
def _numbers(result: FrameLossResult) -> Iterator[str]:
    """A line for each load."""
    maximum = in_full(result.max_load.rate.per_interface_fps)
    yield f"frame loss rate, from the maximum load downwards ({maximum})"
    for loss, trial in result.at_loads:
        share = format_ratio(loss.share_of_max_load_ratio)
        not_lost = f", {trial.missing.not_lost}" if trial.missing.not_lost else ""
        load = f"{rate_in_words(loss.load.per_interface_fps):>12} fps per interface"
        yield value_line(share, f"{load}  loss {format_ratio(loss.frame_loss_ratio)}{not_lost}")


class FrameLossView(View[FrameLossResult]):
    """How a frame loss rate is shown. It is a curve, so no single rate represents it."""

    quantity = "frame loss rate"
    rules = (_found, _numbers, erratic, *USUAL)

    def rfc2544_rows(self, result: FrameLossResult) -> Iterator[Rfc2544Row]:
        """The frame loss rate at each load."""
        for loss, trial in result.at_loads:
            share = f"{100 * loss.share_of_max_load_ratio:.4g}"
            quantity = f"frame loss rate at {share} % of the maximum load"
            note = trial.missing.not_lost or None
            yield Rfc2544Row(quantity, 100 * loss.frame_loss_ratio, "%", note=note)

    def pictures(self, result: FrameLossResult) -> Iterator[Picture]:
        """The graph: the loss rate over the load in per cent of the maximum load."""
        if result.frame_loss is None:
            return

        highest = max(_LEAST, *(loss.frame_loss_ratio for loss in result.frame_loss.loads)) * _ROOM
        about = f"Frame loss rate over load, {result.test.name}."
        yield Picture(
            "Frame loss rate",
            draw_losses({size_in_words(result.conditions): result}, "maximum load", highest, about),
            "RFC 2544, section 26.3: the load goes down from the maximum until two trials in a row lose nothing.",
        )


def draw_losses(
    results: Mapping[str, FrameLossResult], what: str, highest: float, about: str
) -> str:
    """Draws the loss rate over the load, both in per cent, with a line for each result; empty: there is none.

    Args:
        results: The results, each with its name.
        what: The load that is 100 %: ``maximum load``, or ``theoretical maximum``.
        highest: The largest loss ratio on the axis.
        about: What the picture shows.
    """
    most = max((len(result.trials) for result in results.values()), default=0)
    right = drawing.right_end(drawing.LEFT, most, _POINT)
    plot = drawing.Plot(
        drawing.Axis(0.0, 100.0, drawing.LEFT, right),
        drawing.Axis(0.0, 100.0 * highest, drawing.BOTTOM, drawing.TOP),
    )
    plot.frame(plot.x.ticks(10), plot.y.ticks(10), "{:.4g}".format, "{:.4g}".format)
    curves: list[drawing.Curve] = []
    for name, result in results.items():
        points = list(_points(result, what))
        number = len(curves)
        plot.marks(
            drawing.Mark("measured", "measured", "circle", drawing.series_colour(number)), points
        )
        curves.append(drawing.Curve(name, [(x, y) for x, y, _ in points], number, number))
    if not any(curve.points for curve in curves):
        return ""
    return plot.finished((f"load, % of the {what}", "frame loss rate, %"), about, curves)


def _points(result: FrameLossResult, what: str) -> Iterator[tuple[float, float, str]]:
    """The points of a result: load and loss in per cent, each with a hint."""
    maximum = result.max_load.rate
    if what == THEORETICAL and result.max_load.theoretical_maximum is not None:
        maximum = result.max_load.theoretical_maximum
    for loss, trial in result.at_loads:
        load = format_frame_rate(loss.load.per_interface_fps)
        hint = f"{load} per interface for {loss.duration_s:g} s: loss {format_ratio(loss.frame_loss_ratio)}"
        if trial.missing.not_lost:
            hint += f", {trial.missing.not_lost}"
        share = loss.load.per_interface_fps / maximum.per_interface_fps
        yield 100.0 * share, 100.0 * loss.frame_loss_ratio, hint
