"""Critical load: a soak test with PLRsearch on a testbed, from the request to the result file.

PLRsearch's estimates are reported after each trial, and in the result file.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from lossratio.errors import SearchError, TrafficError
from lossratio.measurements import (
    MeasuredKind,
    Measurement,
    Request,
    TestPlace,
    WarmUp,
    measure,
    seconds_in_words,
    trial_in_words,
)
from lossratio.measurements.soak.description import describe_critical_load
from lossratio.measurements.soak.result import (
    SoakResult,
    SoakSetup,
    critical_load_contradictions,
    soak_result,
)
from lossratio.measurements.throughput import ThroughputResult
from lossratio.plrsearch import (
    TIMEOUT,
    IntervalAfterTrial,
    LikelihoodName,
    PLRsearch,
    SelectionName,
    Weighting,
    why_set_aside,
)
from lossratio.results import WITHOUT_DIGEST, MaxLoad, TestResult, View
from lossratio.trials import Integrity, TrialResult

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Testbed
    from lossratio.traffic import TrafficProfile

TARGET_LOSS_RATIO = 1e-7
"""The target of FD.io CSIT's soak tests."""

_WATCHED_TRIALS = 10
_LEAST_WATCHED = 4


class SoakPreset(str, Enum):
    """Settings of a soak test by one name."""

    CSIT = "csit"
    """Everything as in FD.io CSIT's soak tests, to compare number by number."""


_OF_CSIT: Mapping[str, Any] = {
    "likelihood": LikelihoodName.GEOMETRIC,
    "weighting": Weighting.EQUAL,
    "selection": SelectionName.CSIT,
}
_USUAL = ("precision", "stop_on_misfit", "trial_duration", "trial_growth", "warm_start")
"""Settings that presets leave as they are by default."""


@dataclass(frozen=True)
class SoakRequest(Request):
    """The settings of a soak test.

    Attributes:
        profile: The test traffic.
        target_loss_ratio: The loss ratio at the critical load.
        min_load: Smallest load per interface, frames per second; None: see `lossratio.testbed.loads.load_range`.
        max_load: Largest load per interface; None: the smallest limit of `lossratio.testbed.loads.load_limits`.
        timeout: Seconds of trials after which the search ends.
        precision: Width of the 95 % interval, as a share of the mean, that ends the search earlier; None: none does.
        stop_on_misfit: Whether the search ends as soon as the model does not fit the trials.
        likelihood: Distribution of the number of lost frames.
        weighting: The way of combining the fitting functions.
        selection: The way of choosing loads.
        trial_duration: Seconds of the first trial; None: the selection's default; "auto": the same, and then as long as
            the capacity's noise is alike.
        trial_growth: Seconds by which each trial is longer than the one before; None: the selection's default.
        warm_start: Loads of the first trials, frames per second per interface: they should be near the knee.
        warm_up: A warm-up at maximum load before everything else, with traffic of its own; None: there is none.
        ramp: Seconds before each trial in which the load grows from nothing, and nothing is counted.
        rest: Least seconds without traffic before each trial.
        integrity: What happens if frames do not come back as they were sent.
    """

    profile: TrafficProfile
    target_loss_ratio: float = TARGET_LOSS_RATIO
    min_load: float | None = None
    max_load: float | None = None
    timeout: float = TIMEOUT
    precision: float | None = None
    stop_on_misfit: bool = False
    likelihood: LikelihoodName = LikelihoodName.VARYING
    weighting: Weighting = Weighting.EVIDENCE
    selection: SelectionName = SelectionName.POSTERIOR
    trial_duration: float | Literal["auto"] | None = None
    trial_growth: float | None = None
    warm_start: tuple[float, ...] = ()
    warm_up: WarmUp | None = None
    ramp: float = 0.0
    integrity: Integrity = Integrity.DOUBT
    rest: float = 0.0

    def preset(self, preset: SoakPreset) -> SoakRequest:
        """This request with the settings of a preset.

        Raises:
            SearchError: If the request asks for something else than the preset and the defaults.
        """
        for name in (*_OF_CSIT, *_USUAL):
            usual = getattr(SoakRequest, name)
            if getattr(self, name) not in (usual, _OF_CSIT.get(name, usual)):
                raise SearchError(f"preset={preset.value} chooses {name} itself: leave out {name}, or the preset.")
        return replace(self, **_OF_CSIT)

    def settings(self) -> dict[str, Any]:
        """The controller's settings besides target and loads, as JSON data; times in seconds."""
        return {
            "timeout_s": self.timeout,
            "precision_ratio": self.precision,
            "stop_on_misfit": self.stop_on_misfit,
            "likelihood": self.likelihood.value,
            "weighting": self.weighting.value,
            "selection": self.selection.value,
            "trial_duration_s": self.trial_duration,
            "trial_growth_s": self.trial_growth,
            "warm_start_per_interface_fps": list(self.warm_start),
            **({} if self.warm_up is None else {"warm_up": self.warm_up.to_json()}),
        }

    def controller(self, min_load: float, max_load: float) -> PLRsearch:
        """The controller for this request, between two loads in frames per second per interface.

        Raises:
            SearchError: If the request makes no sense.
        """
        return PLRsearch(
            self.target_loss_ratio,
            min_load,
            max_load,
            timeout=self.timeout,
            precision=self.precision,
            stop_on_misfit=self.stop_on_misfit,
            likelihood=self.likelihood,
            weighting=self.weighting,
            selection=self.selection,
            initial_duration=self.trial_duration,
            duration_increment=self.trial_growth,
            warm_start=self.warm_start,
        )


@dataclass(frozen=True)
class SoakProgress:
    """The progress of a soak test after a trial.

    Attributes:
        number: Number of trials so far, with those of an interrupted run.
        trial: The last trial.
        latest: The latest estimate; None: no estimate yet.
        time_left: Seconds that the remaining trials may take at most.
        set_aside: Why the last trial is no evidence; None: it is evidence.
    """

    number: int
    trial: TrialResult
    latest: IntervalAfterTrial | None
    time_left: float
    set_aside: str | None = None

    def line(self) -> str:
        """The line that the console shows."""
        latest = self.latest
        interval = None if latest is None else (latest.mean, latest.low, latest.high)
        line = soak_progress_line(self.number, self.trial, interval, self.time_left)
        return line if self.set_aside is None else f"{line}  (set aside: {self.set_aside})"


OnSoakProgress = Callable[[SoakProgress], None]


class Soak(MeasuredKind[SoakRequest, PLRsearch, SoakProgress, SoakResult]):
    """The kind: soak tests."""

    name = "soak"
    algorithm = "PLRsearch"
    result = SoakResult

    def controller(self, request: SoakRequest, loads: LoadRange) -> PLRsearch:
        """PLRsearch."""
        return request.controller(loads.min_load, loads.max_load)

    def inputs(self, request: SoakRequest, loads: LoadRange, controller: PLRsearch) -> Mapping[str, Any]:
        """Target, loads and settings."""
        return {
            "target_loss_ratio": request.target_loss_ratio,
            "min_load_fps": loads.min_load,
            "max_load_fps": loads.max_load,
            "settings": request.settings(),
        }

    def progress(self, request: SoakRequest, controller: PLRsearch, trial: TrialResult) -> SoakProgress:
        """The latest estimate, and the time that is left."""
        latest = controller.history[-1] if controller.history else None
        time_left = max(0.0, request.timeout - controller.elapsed)
        return SoakProgress(controller.trials, trial, latest, time_left, why_set_aside(trial))

    def watch(self) -> Callable[[TrialResult], None]:
        """Ends a soak test whose trials show the generator rather than the SUT."""
        # Trials of this run only: an interrupted run may be resumed on a machine with less other work.
        reasons: deque[str | None] = deque(maxlen=_WATCHED_TRIALS)

        def check(trial: TrialResult) -> None:
            reasons.append(why_set_aside(trial))
            _check_generator(reasons)

        return check

    def build(
        self, measured: Measurement[Any], request: SoakRequest, inputs: Mapping[str, Any], max_load: MaxLoad
    ) -> SoakResult:
        """The critical load."""
        setup = SoakSetup(request.target_loss_ratio, inputs["settings"], inputs["min_load_fps"], max_load)
        conditions = measured.run.conditions
        critical_load = None if measured.failure is not None else describe_critical_load(measured.result, conditions)
        return soak_result(measured.run, setup, critical_load, measured.entries)

    def wrong_evidence(self, result: SoakResult, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Trials that are set aside although they are evidence, and trials that should be set aside."""
        if result.format == WITHOUT_DIGEST:
            return
        for trial, known in zip(result.trials, trials, strict=True):
            made = why_set_aside(known)
            if trial.set_aside != made or trial.is_evidence != (made is None):
                yield f"trial {trial.number}: set_aside is {trial.set_aside!r}, and its counters make {made!r}"

    def contradictions(self, result: SoakResult, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Compares only parts of the result: the critical load would take too long to compute again."""
        if result.critical_load is not None:
            yield from critical_load_contradictions(result.critical_load)

    def view(self) -> View[SoakResult]:
        """How the soak test is shown."""
        from lossratio.measurements.soak.view import SoakView

        return SoakView()


def find_critical_load(
    testbed: Testbed, request: SoakRequest, place: TestPlace, on_progress: OnSoakProgress | None = None
) -> SoakResult:
    """Searches for the critical load, and writes the result file; see `lossratio.measurements.measure`.

    A model that does not fit, or a critical load beyond the limits, is no error. There is a TrafficError if most of
    the latest trials were set aside.
    """
    return measure(Soak(), testbed, request, place, on_progress)


def _check_generator(reasons: Sequence[str | None]) -> None:
    """Ends a soak test whose trials show the generator rather than the SUT.

    Args:
        reasons: Why each of the latest trials was set aside; None for those that were not.
    """
    set_aside = [reason for reason in reasons if reason is not None]
    if len(reasons) < _LEAST_WATCHED or 2 * len(set_aside) <= len(reasons):
        return
    raise TrafficError(
        f"{len(set_aside)} of the last {len(reasons)} trials of the soak test were set aside (the last of them because "
        f"{set_aside[-1]}): there is too little evidence about the SUT. Look for other work on the TG, or lower the "
        "maximum load."
    )


def warm_start_from(result: TestResult, profile: TrafficProfile) -> tuple[float, ...]:
    """Relevant bounds of an earlier search on the same SUT, to begin a soak test at; frames per second per interface.

    Raises:
        SearchError: If the earlier result is of another kind or of other traffic, or has no bounds.
    """
    if not isinstance(result, ThroughputResult):
        raise SearchError(f"{result.test.full_name} was no search for throughput: a soak test cannot begin from it.")
    traffic = result.conditions.traffic
    if (traffic.name, traffic.average_frame_size_bytes) != (profile.name, profile.average_frame_size):
        raise SearchError(
            f"{result.test.full_name} was measured with other traffic ({traffic.name}, "
            f"{traffic.average_frame_size_bytes:g} bytes): a soak test cannot begin from it."
        )
    outcomes = [report.result for report in result.goals if report.result is not None]
    bounds = [bound for outcome in outcomes for bound in (outcome.relevant_lower_bound, outcome.relevant_upper_bound)]
    loads = tuple(sorted({bound.per_interface_fps for bound in bounds if bound is not None}))
    if not loads:
        raise SearchError(f"{result.test.full_name} found no bounds: a soak test cannot begin from it.")
    return loads


def soak_progress_line(
    number: int, trial: TrialResult, interval: tuple[float, float, float] | None, time_left: float
) -> str:
    """The line that the console shows after a trial of a soak test.

    Args:
        number: The trial's number.
        trial: The trial.
        interval: Mean critical load and its 95 % interval, in frames per second per interface; None: not known yet.
        time_left: Seconds that the remaining trials may take at most.
    """
    known = "critical load not known yet"
    if interval is not None:
        mean, low, high = (f"{load:,.{_digits(interval[2] - interval[1])}f}" for load in interval)
        known = f"critical load {mean} fps ({low} to {high})"
    return f"{trial_in_words(number, trial)}  {known}  at most {seconds_in_words(time_left)} left"


def _digits(width: float) -> int:
    """Digits behind the point that loads need so that an interval of this width shows two significant digits."""
    return 0 if width >= 10.0 else min(3, 1 - math.floor(math.log10(max(width, 1e-3))))
