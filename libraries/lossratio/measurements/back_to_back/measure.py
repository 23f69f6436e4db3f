"""Back-to-back frames on a testbed (RFC 9004), from the request to the result file.

The search is a bisection over burst length. It is repeated, and each repetition begins anew (RFC 9004, section 6.3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lossratio.errors import SearchError
from lossratio.measurements import (
    MeasuredKind,
    Measurement,
    OnProgress,
    Progress,
    Request,
    TestPlace,
    known_throughput,
    measure,
)
from lossratio.measurements.back_to_back.result import (
    BackToBackResult,
    BackToBackSettings,
    BurstFound,
    back_to_back_result,
    back_to_back_values,
)
from lossratio.mlrsearch import Forecast
from lossratio.results import MaxLoad, View, differences, format_frames_per_second
from lossratio.trials import Integrity, Measurer, TrialInput, TrialOutput, TrialResult

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Ready, Testbed
    from lossratio.traffic import TrafficProfile

BURST_REPEATS = 10
"""Number of searches, N. RFC 9004 leaves it free, and wants it reported; RFC 2544 had 50 trials."""

LONGEST_BURST = 2.0
"""Seconds of the longest burst."""

LARGEST_LONGEST_BURST = 30.0
"""Seconds: the upper limit of the longest burst in RFC 9004, section 6.2."""

SETTLE_TIME = 2.0
"""Seconds: the least settle time in RFC 9004, section 6.2."""

_SAME = 1e-9


@dataclass(frozen=True)
class BackToBackRequest(Request):
    """What to measure.

    Attributes:
        profile: The test traffic.
        throughput: The throughput without loss of the same traffic, frames per second per interface; None: not known.
        max_load: The rate of the bursts, frames per second per interface; None: the most that generator, links and NICs
            can do.
        repeats: Number of searches, N.
        step: Frames; a search ends when its bounds are this close.
        longest_burst: Seconds of the longest burst, at most `LARGEST_LONGEST_BURST`.
        loss_verification: Whether a burst with loss is sent once more, and only loss in both counts.
        settle: Least seconds without traffic after each burst. A burst that takes longer has as long a settle time;
            0: there is none.
        integrity: What happens if frames do not come back as they were sent.
    """

    profile: TrafficProfile
    throughput: float | None = None
    max_load: float | None = None
    repeats: int = BURST_REPEATS
    step: int = 1
    longest_burst: float = LONGEST_BURST
    loss_verification: bool = False
    settle: float = SETTLE_TIME
    integrity: Integrity = Integrity.DOUBT


class BurstSearch:
    """Searches for the longest burst without loss, by bisection, several times; a `lossratio.trials.Controller`.

    A search begins with the longest burst of the tester. Then each burst is half-way between the longest burst without
    loss and the shortest one with loss, until these are a step apart.

    Args:
        rate: The rate of the bursts, frames per second per interface.
        longest: Frames of the longest burst.
        step: Frames; a search ends when its bounds are this close.
        repeats: Number of searches.
        loss_verification: Whether a burst with loss is sent once more, and only loss in both counts.

    Attributes:
        trials: Number of trials recorded.
        elapsed: Seconds that they took.
    """

    def __init__(
        self,
        rate: float,
        longest: int,
        *,
        step: int = 1,
        repeats: int = 1,
        loss_verification: bool = False,
    ) -> None:
        self._rate = rate
        self._longest = longest
        self._step = step
        self._repeats = repeats
        self._loss_verification = loss_verification
        self._ended: list[BurstFound] = []
        self.trials = 0
        self.elapsed = 0.0
        self._begin()

    def _begin(self) -> None:
        self._lossless = 0
        self._lossy: int | None = None
        self._lost_once = False
        self._of_search = 0

    @property
    def purpose(self) -> str | None:
        """Why the next burst was chosen."""
        if self.next_trial() is None:
            return None
        bounds = (
            "the longest burst" if self._lossy is None else f"between {self._lossless:,} and {self._lossy:,} frames"
        )
        again = ", once more after loss" if self._lost_once else ""
        return f"search {len(self._ended) + 1} of {self._repeats}: {bounds}{again}"

    @property
    def remaining(self) -> int:
        """The largest number of trials still to come, without verifications of loss."""
        whole = 1 + math.ceil(math.log2(max(2.0, self._longest / self._step)))
        left = self._repeats - len(self._ended)
        return max(0, left * whole - self._of_search)

    def next_trial(self) -> TrialInput | None:
        """The next burst; None when all searches have ended."""
        if len(self._ended) == self._repeats:
            return None
        return TrialInput.burst(self._next_length(), self._rate)

    def record(self, result: TrialResult) -> None:
        """Takes in a trial. A burst of another length than the last one of `next_trial` shows nothing here."""
        self.trials += 1
        self.elapsed += result.elapsed
        self._of_search += 1
        length = self._next_length()
        if burst_length(result.input) != length:
            return
        if result.loss_ratio == 0.0:
            self._lossless = length
        elif self._loss_verification and not self._lost_once:
            self._lost_once = True
            return
        else:
            self._lossy = length
        self._lost_once = False
        if self._lossless == self._longest or (self._lossy is not None and self._lossy - self._lossless <= self._step):
            self._ended.append(
                BurstFound(longest_frames=self._lossless, shortest_lossy_frames=self._lossy, trials=self._of_search)
            )
            self._begin()

    def result(self) -> tuple[BurstFound, ...]:
        """The ends of the searches so far."""
        return tuple(self._ended)

    def _next_length(self) -> int:
        return self._longest if self._lossy is None else (self._lossless + self._lossy) // 2


def burst_length(trial: TrialInput) -> int:
    """Frames of each transmitting interface in a burst; a trial of a result file has only their time."""
    return round(trial.load * trial.duration) if trial.frames is None else trial.frames


class SettlingMeasurer:
    """Performs trials with a settle time after each, in which the buffer drains (RFC 9004, section 6.2).

    Args:
        ready: The testbed.
        settle: Least seconds without traffic; a longer burst has as long a settle time.
    """

    def __init__(self, ready: Ready, settle: float) -> None:
        self._ready = ready
        self._settle = settle

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs a trial, and waits."""
        output = self._ready.measurer.measure(trial)
        settle = max(self._settle, trial.duration) if self._settle else 0.0
        self._ready.source.wait(settle)
        return replace(output, elapsed=TrialResult(trial, output).elapsed + settle)


class BackToBack(MeasuredKind[BackToBackRequest, BurstSearch, Progress, BackToBackResult]):
    """The kind: back-to-back frames."""

    name = "back_to_back"
    algorithm = "back-to-back frames"
    result = BackToBackResult

    def controller(self, request: BackToBackRequest, loads: LoadRange) -> BurstSearch:
        """Bisections over burst length; no trials where no buffer fills."""
        _check(request)
        rate, throughput = loads.max_load, known_throughput(request.throughput)
        longest = math.floor(request.longest_burst * rate * (1.0 + _SAME))
        if longest < 1:
            raise SearchError(
                f"A burst of {request.longest_burst:g} s at {format_frames_per_second(rate)} has no frame. Raise "
                "longest_burst."
            )
        fills = throughput < rate * (1.0 - _SAME)
        return BurstSearch(
            rate,
            longest,
            step=request.step,
            repeats=request.repeats if fills else 0,
            loss_verification=request.loss_verification,
        )

    def inputs(self, request: BackToBackRequest, loads: LoadRange, controller: BurstSearch) -> Mapping[str, Any]:
        """Rate, throughput and parameters of the search."""
        return {
            "max_load_fps": loads.max_load,
            "throughput_fps": request.throughput,
            "settings": _settings(request, loads.max_load).model_dump(mode="json"),
        }

    def progress(self, request: BackToBackRequest, controller: BurstSearch, trial: TrialResult) -> Progress:
        """The time left: each remaining burst takes as long as those so far on average."""
        left = controller.remaining * controller.elapsed / controller.trials
        return Progress(
            controller.trials,
            trial,
            (),
            Forecast(left, left, left),
            controller.purpose,
            elapsed=controller.elapsed,
            following=controller.next_trial(),
        )

    def measurer(self, request: BackToBackRequest, testbed: Testbed, ready: Ready) -> Measurer:
        """Waits after each burst."""
        return SettlingMeasurer(ready, request.settle)

    def build(
        self,
        measured: Measurement[Any],
        request: BackToBackRequest,
        inputs: Mapping[str, Any],
        max_load: MaxLoad,
    ) -> BackToBackResult:
        """The longest bursts, and the buffer time."""
        conditions = measured.run.conditions
        throughput = conditions.rate(known_throughput(request.throughput))
        settings = _settings(request, max_load.rate.per_interface_fps)
        return back_to_back_result(measured.run, max_load, throughput, settings, measured.result, measured.entries)

    def contradictions(self, result: BackToBackResult, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Where bursts and buffer times do not follow from the trials."""
        if result.back_to_back is None:
            return
        settings, rate = result.settings, result.max_load.rate.per_interface_fps
        search = BurstSearch(
            rate,
            settings.longest_burst_frames,
            step=settings.step_frames,
            repeats=settings.repeats,
            loss_verification=settings.loss_verification,
        )
        for trial in trials:
            search.record(trial)
        searches = search.result()
        if len(searches) != settings.repeats:
            yield f"back_to_back: the trials are {len(searches)} searches, and there should be {settings.repeats}"
            return
        made = back_to_back_values(searches, result.throughput.per_interface_fps, rate)
        yield from differences(result.back_to_back, made, "back_to_back")

    def follows_from_trials(self, result: BackToBackResult) -> bool:
        """True: the trials and the settings are all that the result needs."""
        return True

    def view(self) -> View[BackToBackResult]:
        """How back-to-back frames are shown."""
        from lossratio.measurements.back_to_back.view import BackToBackView

        return BackToBackView()


def measure_back_to_back(
    testbed: Testbed, request: BackToBackRequest, place: TestPlace, on_progress: OnProgress | None = None
) -> BackToBackResult:
    """Measures back-to-back frames, and writes the result file; see `lossratio.measurements.measure`."""
    return measure(BackToBack(), testbed, request, place, on_progress)


def _check(request: BackToBackRequest) -> None:
    if request.repeats < 1 or request.step < 1:
        raise SearchError(
            f"Back-to-back frames need a repetition and a step of a frame at least, not repeats={request.repeats} and "
            f"step={request.step}."
        )
    if not 0.0 < request.longest_burst <= LARGEST_LONGEST_BURST:
        raise SearchError(
            f"The longest burst must be above 0 s and at most {LARGEST_LONGEST_BURST:g} s (RFC 9004, section 6.2), not "
            f"{request.longest_burst:g} s."
        )
    if request.settle < 0.0:
        raise SearchError(f"A settle time takes some seconds, or none, but not {request.settle:g}.")


def _settings(request: BackToBackRequest, rate: float) -> BackToBackSettings:
    return BackToBackSettings(
        repeats=request.repeats,
        step_frames=request.step,
        longest_burst_s=request.longest_burst,
        longest_burst_frames=math.floor(request.longest_burst * rate * (1.0 + _SAME)),
        loss_verification=request.loss_verification,
        settle_s=request.settle,
    )
