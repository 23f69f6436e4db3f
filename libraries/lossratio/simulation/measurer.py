"""A measurer without a network: a SUT model on a virtual clock, faults of the frames that it forwards, and latencies.

A latency is a fixed delay and a random wait in a queue.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from lossratio import trials
from lossratio.errors import SearchError
from lossratio.simulation.losses import BASE_DELAY, Course, LocatingSut, Loss, losses_of
from lossratio.simulation.sut import Ratio, RunningSut, StartsSut, Traffic, sut_model
from lossratio.trials import DirectionCounters, LatencyCounters, TrialInput, TrialOutput
from lossratio.values import NotNegative, checked, in_words

QUEUE_FRAMES = 1024
"""Maximum number of frames that wait in a simulated SUT."""
RESOLUTION = 0.1
"""Width of the histogram's intervals, in microseconds."""
WATCH_SECONDS = 0.05
"""Seconds of traffic between two checks of the counters of a trial that may end early."""
WATCH_SHARE = 0.05
"""The same interval, as a share of the time that the traffic has taken so far, if this is longer."""
_MICROSECOND = 1e-6


@sut_model
class FrameFaults:
    """Faults of forwarded frames, drawn independently for each frame."""

    duplicated: Ratio = 0.0
    """Share of the frames that come out twice."""
    corrupted: Ratio = 0.0
    """Share of the frames that come out with other contents."""

    def examined(self, counters: DirectionCounters, rng: np.random.Generator) -> DirectionCounters:
        """The counters of a generator that examines all frames, with these faults."""
        corrupted = int(rng.binomial(counters.received_frames, self.corrupted))
        copies = int(rng.binomial(counters.received_frames - corrupted, self.duplicated))
        arrived = counters.received_frames + copies
        examination = trials.Examination(examined=arrived, duplicated=copies, corrupted=corrupted)
        return trials.with_examination(replace(counters, received_frames=arrived), examination)


def faults_from(data: object) -> FrameFaults:
    """Reads faults such as ``{"duplicated": "1 %"}``.

    Raises:
        ValueError: If a field is unknown or out of range.
    """
    try:
        return TypeAdapter(FrameFaults).validate_python(data)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, item['loc']))}: {in_words(item)}" for item in error.errors()
        )
        raise ValueError(
            f"The SUT's faults cannot be read: {problems}. "
            "Give 'duplicated' and 'corrupted' as shares of the frames."
        ) from error


class _Suts:
    """The running SUTs of all directions: one that carries them all together, or one for each direction."""

    def __init__(
        self, models: Sequence[StartsSut], directions: int, rng: np.random.Generator
    ) -> None:
        self._running: tuple[RunningSut, ...] = tuple(model.start(rng) for model in models)
        self._directions = directions
        self._rng = rng

    @property
    def minds_resets(self) -> bool:
        """Whether a reset changes what the SUTs forward."""
        return any(
            isinstance(sut, LocatingSut) and type(sut).reset is not LocatingSut.reset
            for sut in self._running
        )

    def reset(self, now: float) -> None:
        """Resets the SUTs; most models are not affected."""
        for sut in self._running:
            if isinstance(sut, LocatingSut):
                sut.reset(now)

    def located(self, traffic: Traffic) -> list[list[Loss]]:
        """The losses of each direction, in time."""
        if len(self._running) == self._directions:
            return [losses_of(sut, traffic) for sut in self._running]

        losses: list[list[Loss]] = [[] for _ in range(self._directions)]
        for loss in losses_of(
            self._running[0], replace(traffic, frames=traffic.frames * self._directions)
        ):
            # The directions alternate, frame by frame.
            places = [loss.first + number for number in range(self._directions)]
            ends = [
                (
                    place // self._directions,
                    (loss.last - place % self._directions) // self._directions,
                )
                for place in places
            ]
            shares = self._shares(loss.frames, [last - first + 1 for first, last in ends])

            for place, (first, last), lost in zip(places, ends, shares, strict=True):
                if lost:
                    losses[place % self._directions].append(Loss(first, last, lost))

        return losses

    def lost(self, traffic: Traffic) -> list[int]:
        """Frames lost in each direction. A SUT that carries all directions does not distinguish them."""
        if len(self._running) == self._directions:
            return [sut(traffic) for sut in self._running]
        sent = traffic.frames
        lost = self._running[0](replace(traffic, frames=sent * self._directions))
        return self._shares(lost, [sent] * self._directions)

    def _shares(self, lost: int, frames: Sequence[int]) -> list[int]:
        shares = []
        for number, most in enumerate(frames):
            drawn = int(self._rng.binomial(lost, 1.0 / (len(frames) - number)))
            shares.append(max(lost - sum(frames[number + 1 :]), min(most, drawn)))
            lost -= shares[-1]
        return shares


@checked(SearchError)
class SimulatedMeasurer:
    """Performs trials on a simulated SUT, on a virtual clock: an hour of traffic takes milliseconds.

    One seed makes everything repeatable: the same trials in the same order give the same counters.
    """

    def __init__(
        self,
        sut: StartsSut | Sequence[StartsSut],
        *,
        seed: int,
        overhead: NotNegative = 0.0,
        count_overhead: bool = False,
        settle: NotNegative = 0.0,
        max_rate: float | None = None,
        directions: int | None = None,
        faults: FrameFaults | None = None,
    ) -> None:
        """Starts the SUT at time 0.

        Args:
            sut: One SUT that carries all directions together, or one SUT for each direction.
            seed: Seed of all random numbers.
            overhead: Seconds that each trial takes in addition to its traffic.
            count_overhead: Whether the effective duration includes the overhead, as FD.io CSIT's does.
            settle: Seconds without traffic after each trial, for frames in flight; never in the effective duration.
            max_rate: Frames per second and direction that the generator can send. Frames above that are unsent, not
                lost.
            directions: Transmitting directions; None: 1, or the number of SUTs.
            faults: Faults of the frames that the SUTs forward; None: frames are not examined.

        Raises:
            SearchError: If a time is negative, a rate or a number is not positive, or SUTs and directions do not match.
        """
        suts = tuple(sut) if isinstance(sut, Sequence) else (sut,)
        self._directions = len(suts) if directions is None else directions
        if self._directions < 1 or len(suts) not in (1, self._directions):
            raise SearchError(
                f"{len(suts)} SUTs do not fit {self._directions} directions: give one SUT, or one for each direction."
            )
        if max_rate is not None and not max_rate > 0:
            raise SearchError(
                f"max_rate must be positive, not {max_rate!r}. Give None for a generator without limit."
            )

        self.now = 0.0
        """Seconds on the virtual clock: the sum of all trials so far."""
        self.overhead = overhead
        self.count_overhead = count_overhead
        self._settle = settle
        self._max_rate = math.inf if max_rate is None else max_rate
        self._rng = np.random.default_rng(seed)
        self._faults = faults
        self._suts = _Suts(suts, self._directions, self._rng)

    @checked(SearchError)
    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs one trial, and advances the virtual clock.

        Raises:
            TrafficError: If the burst's rate cannot be sent, or the counters give no loss ratio.
        """
        if trial.has_timelines:
            return self._measure_in_time(trial)

        if self.now == 0.0:
            # A SUT that was just started has rested for any requested time.
            trial = replace(trial, rest=0.0)
        self.now += trial.rest
        intended, sent = self._frames(trial.load, trial.duration)

        if trial.certain_above is None or sent < intended:
            # Losses at a load that the generator cannot send may be the generator's fault.
            counters = [
                self._counters(number, intended, sent, lost, trial.duration)
                for number, lost in enumerate(
                    self._suts.lost(Traffic(self.now, trial.duration, sent))
                )
            ]
            self.now += trial.duration
            return self._output(trial, counters)

        return self._watched(trial, trial.certain_above, intended)

    def _watched(self, trial: TrialInput, certain_above: float, frames: int) -> TrialOutput:
        """Sends the frames of a trial in parts, until its loss ratio is certain to be above a limit.

        As many lost frames as a generator allows to be in flight do not count, although no frames are in flight here.
        """
        sent = 0
        lost = [0] * self._directions
        per_frame = trial.duration / frames
        allowed = trials.IN_FLIGHT * trial.load

        while sent < frames:
            if (
                sum(max(0.0, count - allowed) for count in lost)
                > certain_above * frames * self._directions
            ):
                break
            begun = sent * per_frame
            part = min(
                frames - sent, math.ceil(max(WATCH_SECONDS, WATCH_SHARE * begun) / per_frame)
            )
            traffic = Traffic(self.now + begun, part * per_frame, part, continues=sent > 0)
            lost = [
                before + more for before, more in zip(lost, self._suts.lost(traffic), strict=True)
            ]
            sent += part

        duration = trial.duration if sent == frames else sent * per_frame
        counters = [
            replace(
                self._counters(number, sent, sent, lost_frames, duration), intended_frames=frames
            )
            for number, lost_frames in enumerate(lost)
        ]
        self.now += duration
        return self._output(trial, counters, duration)

    def run(self, courses: Sequence[Course], step: trials.Step) -> None:
        """Sends a part of a trial's traffic, adds it to the directions' courses, and advances the clock by it."""
        intended, sent = self._frames(step.load, step.duration)
        traffic = Traffic(self.now, step.duration, sent)
        for course, losses in zip(courses, self._suts.located(traffic), strict=True):
            course.add(traffic, intended, losses)
        self.now += step.duration

    def courses(self) -> tuple[Course, ...]:
        """New courses, one for each direction, which begin now."""
        return tuple(Course(_name(number), self.now) for number in range(self._directions))

    def counters(self, timelines: Sequence[trials.Timeline]) -> list[DirectionCounters]:
        """The counters of traffic with these timelines, with the faults that the frames have."""
        return [
            self._counters(
                number,
                sum(step.intended for step in timeline.steps),
                sum(step.sent for step in timeline.steps),
                timeline.lost,
                sum(step.elapsed for step in timeline.steps),
            )
            for number, timeline in enumerate(timelines)
        ]

    @property
    def minds_resets(self) -> bool:
        """Whether a reset changes what the SUT forwards."""
        return self._suts.minds_resets

    def reset_sut(self) -> None:
        """Resets the SUT now; most models are not affected."""
        self._suts.reset(self.now)

    def rest(self) -> None:
        """Passes the time without traffic after a trial."""
        self.now += self._settle + self.overhead

    def _measure_in_time(self, trial: TrialInput) -> TrialOutput:
        if trial.frames is not None and trial.load > self._max_rate:
            raise trials.BurstRateError(
                f"The simulated generator sends {self._max_rate:.10g} frames/s, and cannot send a burst of "
                f"{trial.frames} frames at {trial.load:.10g} frames/s. Measure at most at this rate.",
                self._max_rate,
            )
        courses = self.courses()
        for step in trial.parts:
            self.run(courses, step)
        timelines = tuple(course.timeline() for course in courses)
        return replace(self._output(trial, self.counters(timelines)), timelines=timelines)

    def _frames(self, load: float, duration: float) -> tuple[int, int]:
        """How many frames a load asks for in some seconds, and how many of them the generator sends."""
        intended = _whole_frames(load * duration)
        if self._max_rate == math.inf:
            return intended, intended
        return intended, min(intended, _whole_frames(self._max_rate * duration))

    def _output(
        self,
        trial: TrialInput,
        counters: Sequence[DirectionCounters],
        duration: float | None = None,
    ) -> TrialOutput:
        """The output of a trial. The duration is the duration of its traffic; None: the whole duration."""
        self.rest()
        duration = trial.duration if duration is None else duration
        return trials.output_from_counters(
            trial,
            counters,
            effective_duration=trial.duration + self.overhead if self.count_overhead else None,
            elapsed=trial.rest + duration + self._settle + self.overhead,
            decided_after=duration if duration < trial.duration else None,
        )

    def _counters(
        self, number: int, intended: int, sent: int, lost: int, elapsed: float
    ) -> DirectionCounters:
        counters = DirectionCounters(
            name=_name(number),
            intended_frames=intended,
            sent_frames=sent,
            received_frames=sent - lost,
            unsent_frames=intended - sent,
            elapsed_s=elapsed,
        )
        if self._faults is None:
            return counters
        return self._faults.examined(counters, self._rng)


def _name(number: int) -> str:
    return f"port{number}>port{number ^ 1}"


def _whole_frames(frames: float) -> int:
    # The product's rounding error must not become a frame.
    return math.ceil(frames * (1.0 - 1e-12))


def simulated_latency(
    name: str,
    load: float,
    capacity: float | None,
    *,
    sent: int,
    received: int,
    rng: np.random.Generator,
) -> LatencyCounters:
    """The latency of one direction.

    Frames arrive at random (as a Poisson process) and are served one after the other, all in the same time: the queue
    M/D/1, empty at first. The model is for trying out reports, and represents no device.

    The load is the rate that reaches the SUT, and the capacity is the rate that the SUT can forward, both in frames per
    second. Capacity None: the SUT has no queue. `sent` and `received` are the numbers of latency frames that were sent
    and received.
    """
    delays = (BASE_DELAY + _waits(load, capacity, received, rng)) / _MICROSECOND
    if not received:
        error = f"None of {sent} latency frames came back."
        return LatencyCounters(
            name, sent, 0, 0, 0, None, None, None, None, RESOLUTION, error, hdr=None, histogram=()
        )

    intervals = Counter(int(delay / RESOLUTION) for delay in delays.tolist())
    histogram = [(interval * RESOLUTION, count) for interval, count in sorted(intervals.items())]
    jitter = 0.0
    if received > 1:
        jitter = float(np.abs(np.diff(delays)).mean())

    # Record: the counters of a direction.
    return LatencyCounters(
        direction=name,
        sent_frames=sent,
        received_frames=received,
        out_of_order_frames=0,
        duplicate_frames=0,
        least_us=float(delays.min()),
        mean_us=float(delays.mean()),
        most_us=float(delays.max()),
        jitter_us=jitter,
        middle_us=float(delays[received // 2]),
        resolution_us=RESOLUTION,
        error=None,
        hdr=None,
        histogram=tuple(histogram),
    )


def _waits(
    load: float, capacity: float | None, frames: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Seconds that each frame waits: Lindley's recursion, limited to the wait of a full queue."""
    if capacity is None or not frames:
        return np.zeros(frames)
    service = 1.0 / capacity
    steps = service - rng.exponential(1.0 / load, frames)
    steps[0] = 0.0
    sums = np.cumsum(steps)
    waits: NDArray[np.float64] = sums - np.minimum.accumulate(sums)
    return waits.clip(max=QUEUE_FRAMES * service)
