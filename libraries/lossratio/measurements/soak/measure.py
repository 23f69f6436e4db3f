"""Critical load: a soak test on a testbed, from the request to the result file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Field

from lossratio import plrsearch
from lossratio.errors import SearchError
from lossratio.measurements import (
    NOT_IN_FILES,
    Audience,
    MeasuredKind,
    Measurement,
    Request,
    Suite,
    measure,
    seconds_in_words,
    trial_in_words,
)
from lossratio.measurements.soak.description import describe_critical_load
from lossratio.measurements.soak.result import SoakResult, critical_load_contradictions
from lossratio.measurements.trusted_trials import OnTrustedTrials
from lossratio.plrsearch import TIME_FOR_RARE, TIMEOUT, LikelihoodName, SelectionName
from lossratio.results import MaxLoad, TestResult, kind_of
from lossratio.trials import TrialResult
from lossratio.values import LONGEST_TRIAL, Choice, Duration, FrameRate, Share

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange
    from lossratio.traffic import TrafficProfile

TARGET_LOSS_RATIO = 1e-7
"""The target of FD.io CSIT's soak tests."""


class SoakPreset(str, Enum):
    """Named settings of a soak test."""

    CSIT = "csit"
    """Everything as in FD.io CSIT's soak tests, so that the numbers can be compared directly."""


_NOT_CSITS = ("precision", "likelihood", "trial_duration", "warm_start")
"""Settings that the preset leaves at their defaults."""


class SoakRequest(Request):
    """Searches for the critical load, at which ``target_loss_ratio`` of the frames is lost.

    The result contains the highest load that is verified to lose at most that share, and the lowest one above it that
    is contradicted, by counts alone. It is irregular if no load is verified although there were enough frames, if the
    contradicted load is more than 20 % higher, if each trial lost frames once, or if the critical load may be outside
    of the allowed loads. With the ``preset`` ``csit``, everything is as in FD.io CSIT's soak tests, so that you can
    compare the numbers directly. With ``warm_start``, the search begins at the bounds of the suite's last search with
    the same traffic.

    | `Find Critical Load`    frame_size=64B    timeout=30 min
    | `Find Critical Load`    64B    target_loss_ratio=1e-5    precision=0.5 %    warm_start=True
    """

    target_loss_ratio: Annotated[Share, NOT_IN_FILES] = TARGET_LOSS_RATIO
    """The loss ratio at the critical load."""
    timeout: Duration = TIMEOUT
    """Seconds of trials after which the search ends."""
    rarest: Annotated[Duration, Field(gt=0.0)] | None = None
    """Average seconds between random losses that the search should still see. The search then takes 7.5 times as long
    as this, instead of ``timeout``. About half of its time shows rare losses, and 3.7 losses must be expected in that
    half."""
    precision: Share | None = None
    """Distance of the verified and the contradicted load, as a share of the load. The search ends before ``timeout`` if
    they are this close, and a long trial has passed. None: the search takes the whole time."""
    likelihood: Choice[LikelihoodName] = LikelihoodName.LINE
    """The model of the estimate beside the verified load: a ``line`` through the trials that lose little, or
    ``poisson`` (PLRsearch as in its Internet draft)."""
    selection: Choice[SelectionName] = SelectionName.COUNTS
    """How loads are chosen: by ``counts``, or as FD.io CSIT's code does (``csit``)."""
    trial_duration: Annotated[Duration | None, Field(gt=0.0, le=LONGEST_TRIAL)] = None
    """Seconds of a trial; None: 2 s, or 5.1 s with ``selection=csit``, where each trial is 0.1 s longer than the
    previous one."""
    warm_start: Annotated[tuple[FrameRate, ...], Audience.SCRIPTS] = ()
    """Loads of the first trials, frames per second per interface. They should be near the knee."""

    @property
    def seconds(self) -> float:
        """Seconds of trials after which the search ends.

        Raises:
            SearchError: If the request has a timeout, too.
        """
        if self.rarest is None:
            return self.timeout
        if self.timeout != TIMEOUT:
            raise SearchError(
                f"rarest={self.rarest:g} s decides how long the search takes: leave out timeout, or rarest."
            )
        return TIME_FOR_RARE * self.rarest

    def preset(self, preset: SoakPreset) -> SoakRequest:
        """This request with the settings of a preset.

        Raises:
            SearchError: If a setting is neither the preset's nor the default.
        """
        for name in _NOT_CSITS:
            if getattr(self, name) != SoakRequest.model_fields[name].default:
                raise SearchError(
                    f"preset={preset.value} sets {name} itself: leave out either {name} or the preset."
                )
        return self.but(selection=SelectionName.CSIT)


@dataclass(frozen=True)
class SoakProgress:
    """The progress of a soak test after a trial."""

    number: int
    """Number of trials so far, including trials of an interrupted run."""
    trial: TrialResult
    """The last trial."""
    between: tuple[float | None, float | None]
    """The highest load that passed so far, and the lowest one that did not; None: there is none."""
    time_left: float
    """Seconds that the remaining trials may take at most."""
    set_aside: str | None = None
    """Why the last trial is no evidence; None: it is evidence."""

    @property
    def stage(self) -> object:
        """Which ends of the search are known."""
        return tuple(load is None for load in self.between)

    def line(self) -> str:
        """The line that the console shows."""
        low, high = (None if load is None else f"{load:,.0f}" for load in self.between)
        if low is None:
            found = "critical load not known yet"
        else:
            above = f" to {high}" if high is not None else " or more"
            found = f"critical load perhaps {low}{above} fps"
        line = f"{trial_in_words(self.number, self.trial)}  {found}  at most {seconds_in_words(self.time_left)} left"
        if self.set_aside is None:
            return line
        return f"{line}  (set aside: {self.set_aside})"


_Search: TypeAlias = "plrsearch.SearchByCounts | plrsearch.CsitSearch"


class Soak(OnTrustedTrials, MeasuredKind[SoakRequest, _Search, SoakProgress, SoakResult]):
    """The kind: soak tests."""

    keyword = "Find Critical Load"
    method = "critical_load"
    noun = "critical load"
    title = "Searching for the critical load"
    algorithm = "search by counts"

    def asked(
        self,
        suite: Suite,
        fields: Mapping[str, Any],
        *,
        preset: SoakPreset | None = None,
        warm_start: bool = False,
    ) -> SoakRequest:
        """The request with the settings of a preset, and with the bounds of the suite's last search."""
        request: SoakRequest = suite.request(fields)
        if warm_start:
            request = request.but(warm_start=warm_start_from(suite.last_result, request.profile))
        if preset is None:
            return request
        return request.preset(preset)

    def controller(self, request: SoakRequest, loads: LoadRange) -> _Search:
        """The search by counts, or CSIT's."""
        limits = request.target_loss_ratio, loads.min_load, loads.max_load
        if request.selection is SelectionName.CSIT:
            return plrsearch.CsitSearch(*limits, timeout=request.seconds)
        return plrsearch.SearchByCounts(
            *limits,
            timeout=request.seconds,
            precision=request.precision,
            likelihood=request.likelihood,
            duration=request.trial_duration,
            warm_start=request.warm_start,
            load_step=loads.step,
        )

    def inputs(
        self, request: SoakRequest, loads: LoadRange, controller: _Search
    ) -> Mapping[str, Any]:
        """Target, loads and settings."""
        return {
            "target_loss_ratio": request.target_loss_ratio,
            "min_load_fps": loads.min_load,
            "max_load_fps": loads.max_load,
            **request.inputs(),
        }

    def progress(
        self, request: SoakRequest, controller: _Search, trial: TrialResult
    ) -> SoakProgress:
        """The bracket so far, and the time that is left."""
        between = controller.passed_and_failed
        time_left = max(0.0, request.seconds - controller.elapsed)
        return SoakProgress(
            controller.trials, trial, between, time_left, plrsearch.why_set_aside(trial)
        )

    def build(
        self,
        measured: Measurement[Any],
        request: SoakRequest,
        inputs: Mapping[str, Any],
        max_load: MaxLoad,
    ) -> SoakResult:
        """The critical load. If none is verified, or it is beyond the limits, that is no error."""
        run = measured.run
        if run.error is not None:
            found = None
        else:
            # Frames that come back in later trials are missing in their own. That looks like a change of the device.
            is_late = any(entry.result.output.late_frames for entry in measured.entries)
            counted = replace(measured.result, changes=()) if is_late else measured.result
            found = describe_critical_load(counted, run.conditions)

        return SoakResult(
            **measured.stated(
                max_load, None if found is None else found.reason, self.why_set_aside
            ),
            target_loss_ratio=request.target_loss_ratio,
            settings=dict(inputs["settings"]),
            min_load=run.conditions.rate(inputs["min_load_fps"]),
            critical_load=found,
        )

    def contradictions(self, result: SoakResult, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Compares the loads and counts with those of the trials."""
        if result.critical_load is not None:
            yield from critical_load_contradictions(result.critical_load, trials)


find_critical_load = partial(measure, Soak())


def warm_start_from(result: TestResult, profile: TrafficProfile) -> tuple[float, ...]:
    """Relevant bounds of an earlier search on the same SUT, in frames per second per interface.

    A soak test begins there.

    Raises:
        SearchError: If the earlier result is of another kind or for other traffic, or has no bounds.
    """
    bounds = kind_of(result.kind).bounds(result)
    if bounds is None:
        raise SearchError(
            f"{result.test.full_name} was not a search for throughput, so a soak test cannot start from it. Search for "
            "the throughput right before the soak test, or leave out warm_start."
        )

    traffic = result.conditions.traffic
    if (traffic.name, traffic.average_frame_size_bytes) != (
        profile.name,
        profile.average_frame_size,
    ):
        raise SearchError(
            f"{result.test.full_name} was measured with other traffic ({traffic.name}, "
            f"{traffic.average_frame_size_bytes:g} bytes), so a soak test cannot start from it. Use the same traffic, "
            "or leave out warm_start."
        )
    if not bounds:
        raise SearchError(
            f"{result.test.full_name} found no bounds, so a soak test cannot start from it. Leave out warm_start."
        )
    return bounds


def batch_seen(result: TestResult) -> float | None:
    """Frames that are lost at once, as a soak test found; None: the result is of another kind, or does not show it."""
    if not isinstance(result, SoakResult) or result.critical_load is None:
        return None
    found = result.critical_load
    # Without losses, nothing shows how frames are lost.
    return None if found.contradicted is None else found.batch_frames or found.clump_frames
