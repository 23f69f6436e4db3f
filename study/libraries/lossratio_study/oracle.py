"""An oracle: a search for one goal by somebody who knows how probable loss is at each load and duration.

Dynamic programming finds the trials that take the shortest mean time, and the oracle performs them. So its time is the
limit for searches, which have to find out about the SUT. It is a tighter limit than the certificate, which is the proof
of a result that a search has found, whether or not this result is the cheapest to prove.

The assumptions:

- Loads are those of the grid, whose neighbours are a goal's width apart.
- Trials are independent of each other; their probabilities of loss are those in rehearsals on the same SUT, right after
  overload, and do not fall with load.
- A trial has the goal's initial or its final duration. A load that was begun is decided before another load is begun,
  and short trials at a load go on until it is an upper bound.
- Only loads between the relevant bounds are measured.

For instance: lossratio-study --algorithm lossratio --algorithm oracle
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import thread_time
from typing import NamedTuple

from lossratio.errors import SearchError
from lossratio.mlrsearch import Bound, Criterion, LoadGrid, MLRsearch, SearchGoal, Tally
from lossratio.simulation import SimulatedMeasurer
from lossratio.trials import Measurer, TrialInput, TrialResult
from lossratio_study.algorithms import Algorithm, Goals
from lossratio_study.outcome import Outcome, Recorder, searched
from lossratio_study.suts import Overhead, Subject

REHEARSALS = 40
"""Trials at each load and duration from which the oracle knows how probable loss is there."""

REHEARSAL_STREAM = 2
"""Stream of random numbers of rehearsals, other than those of searches and certificates."""

CLEAR = 3
"""Number of successive loads, beyond the loads that matter, that are always low-loss (or high-loss)."""

MOST_LOADS = 32
"""Maximum number of loads that are rehearsed on either side of a found bound. Loads beyond them count as clear."""


class Kind(NamedTuple):
    """The nature of trials of one load and duration."""

    loss: float
    """The probability of a high-loss trial."""
    low: float
    """Mean seconds that a low-loss trial takes."""
    high: float
    """The same for a high-loss trial."""


class Counts(NamedTuple):
    """Full-length trials at a load so far."""

    low: int = 0
    high: int = 0


@dataclass(frozen=True)
class Plan:
    """The best thing to do at a load, and its cost."""

    seconds: float
    """Mean time until the search is over."""
    is_short: bool
    """Whether trials should be short."""


class Optimum:
    """The best strategy for one goal.

    Args:
        goal: The goal.
        full: Trials of the final duration at each of the loads that matter, in ascending order: at the first load they
            are always low-loss, at the last one always high-loss.
        short: The same for trials of the initial duration.
        counted: Seconds of each trial's overhead that count towards the goal's duration sum.

    Attributes:
        loads: Number of loads.
    """

    def __init__(self, goal: SearchGoal, full: Sequence[Kind], short: Sequence[Kind], counted: float = 0.0) -> None:
        self.loads = len(full)
        self._full = full
        self._short = short
        self._criterion = Criterion.of(goal)
        self._is_growing = goal.first_duration < goal.final_trial_duration
        self._nanoseconds = round(1e9 * (goal.final_trial_duration + counted))
        self._short_nanoseconds = round(1e9 * (goal.first_duration + counted))
        self._bounds: dict[tuple[Counts, int], Bound] = {}
        self._plans: dict[tuple[int, int, int, Counts], Plan] = {}
        self._left: dict[tuple[int, int], tuple[float, int | None]] = {}
        for size in range(1, self.loads + 2):
            # Short intervals come first, because long ones depend on them.
            for lower in range(-1, self.loads + 1 - size):
                self._left[lower, lower + size] = self._least(lower, lower + size)

    def left(self, lower: int, upper: int) -> tuple[float, int | None]:
        """The mean time that is left, and the load to measure next; None: there is nothing to measure.

        Args:
            lower: Number of the load that is the relevant lower bound; -1: there is none.
            upper: Number of the relevant upper bound; the number of loads: there is none.
        """
        return self._left[lower, upper]

    def _least(self, lower: int, upper: int) -> tuple[float, int | None]:
        if lower >= 0 and upper < self.loads and upper - lower == 1:
            return 0.0, None
        choices = [(self.plan(lower, upper, load, Counts()).seconds, load) for load in range(lower + 1, upper)]
        return min(choices, default=(math.inf, None))

    def plan(self, lower: int, upper: int, load: int, counts: Counts) -> Plan:
        """The best thing to do at a load between the bounds."""
        key = lower, upper, load, counts
        if key not in self._plans:
            self._plans[key] = self._best_plan(lower, upper, load, counts)
        return self._plans[key]

    def _best_plan(self, lower: int, upper: int, load: int, counts: Counts) -> Plan:
        kind = self._full[load]
        after_low = 0.0
        if kind.loss != 1.0:
            after_low = self._left_after(lower, upper, load, Counts(counts.low + 1, counts.high))
        after_high = 0.0
        if kind.loss != 0.0:
            after_high = self._left_after(lower, upper, load, Counts(counts.low, counts.high + 1))

        seconds = (1.0 - kind.loss) * (kind.low + after_low) + kind.loss * (kind.high + after_high)
        short = math.inf
        if self._is_growing:
            short = self._refuted_after(load, counts) + self.left(lower, load)[0]
        return Plan(min(short, seconds), short < seconds)

    def _left_after(self, lower: int, upper: int, load: int, counts: Counts) -> float:
        """Mean seconds that are left after a full-length trial at a load."""
        bound = self._classified(counts, 0)
        if bound is Bound.UNDECIDED:
            return self.plan(lower, upper, load, counts).seconds
        if bound is Bound.LOWER:
            return self.left(load, upper)[0]
        return self.left(lower, load)[0]

    def _refuted_after(self, load: int, counts: Counts) -> float:
        """Mean seconds of short trials until a load is an upper bound, by Wald's identity."""
        kind = self._short[load]
        p, q = self._criterion.exceed
        missing = 1
        gain = kind.loss - (1.0 - kind.loss) * p / (q - p)
        if gain <= 0.0:
            return math.inf
        while self._classified(counts, missing) is not Bound.UPPER:
            missing += 1
        return missing / gain * ((1.0 - kind.loss) * kind.low + kind.loss * kind.high)

    def _classified(self, counts: Counts, short_high: int) -> Bound:
        if (counts, short_high) not in self._bounds:
            full = self._nanoseconds
            tally = Tally(counts.low * full, counts.high * full, 0, short_high * self._short_nanoseconds)
            self._bounds[counts, short_high] = tally.classify(self._criterion)
        return self._bounds[counts, short_high]


class Rehearsals:
    """Trials from which the oracle knows how probable loss is.

    Args:
        goal: The goal.
        subject: The SUT, and its loads.
        overhead: The overhead of each trial.
        certain_above: The loss ratio above which a trial may end early; None: trials take their whole duration.

    Attributes:
        loads: The loads that matter, ascending. Empty where the bounds are not between the loads of the search.
        full: The nature of trials of the final duration at these loads.
        short: The same of the initial duration.
    """

    def __init__(self, goal: SearchGoal, subject: Subject, overhead: Overhead, certain_above: float | None) -> None:
        self._goal = goal
        self._certain_above = certain_above
        self._max_load = subject.max_load
        self._subject = subject
        self._overhead = overhead
        self.loads: tuple[float, ...] = ()
        self.full: list[Kind] = []
        self.short: list[Kind] = []
        grid = LoadGrid(subject.min_load, subject.max_load, goal.width)
        controller = MLRsearch([goal], subject.min_load, subject.max_load)
        found = searched(controller, self._measurer(0)).result[goal]
        if found.regular and found.relevant_lower_bound is not None:
            self._rehearse_around(grid, round(grid.position(found.relevant_lower_bound)))

    def _measurer(self, number: int) -> SimulatedMeasurer:
        return self._subject.measurer(self._overhead, REHEARSAL_STREAM, number)

    def _rehearse_around(self, grid: LoadGrid, bound: int) -> None:
        """Rehearses at the loads around a bound, until these are clear."""
        kinds: dict[int, Kind] = {}
        for step, first, clear in ((-1, bound, 0.0), (1, bound + 1, 1.0)):
            index = first
            in_a_row = 0
            while 0 <= index <= grid.top and in_a_row < CLEAR and abs(index - bound) <= MOST_LOADS:
                kinds[index] = self._rehearsed(self._goal.final_trial_duration, grid.load(index))
                in_a_row = in_a_row + 1 if kinds[index].loss == clear else 0
                index += step

        indices = sorted(kinds)
        self.loads = tuple(grid.load(index) for index in indices)
        full = growing([kinds[index] for index in indices])
        self.full = [full[0]._replace(loss=0.0), *full[1:-1], full[-1]._replace(loss=1.0)]
        self.short = self.full
        if self._goal.first_duration < self._goal.final_trial_duration:
            self.short = growing([self._rehearsed(self._goal.first_duration, load) for load in self.loads])

    def _rehearsed(self, duration: float, load: float) -> Kind:
        seconds: tuple[list[float], list[float]] = ([], [])
        for number in range(1, REHEARSALS + 1):
            measurer = self._measurer(number)
            # The SUT is in the same state as in a search: not rested.
            measurer.measure(TrialInput(self._goal.first_duration, self._max_load, certain_above=self._certain_above))
            trial = TrialInput(duration, load, certain_above=self._certain_above)
            result = TrialResult(trial, measurer.measure(trial))
            seconds[result.loss_ratio > self._goal.loss_ratio].append(result.elapsed)
        low, high = (sum(one) / len(one) if one else duration for one in seconds)
        return Kind(len(seconds[1]) / REHEARSALS, low, high)


def growing(kinds: Sequence[Kind]) -> list[Kind]:
    """The same kinds of trials, with probabilities of loss that do not fall.

    Where they fall, neighbours get their mean (isotonic regression).
    """
    blocks: list[tuple[float, int]] = []
    for kind in kinds:
        blocks.append((kind.loss, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            loss, count = blocks.pop()
            other, more = blocks.pop()
            blocks.append(((loss * count + other * more) / (count + more), count + more))
    losses = [loss for loss, count in blocks for _ in range(count)]
    return [kind._replace(loss=loss) for kind, loss in zip(kinds, losses, strict=True)]


def search_with_oracle(
    goal: SearchGoal, subject: Subject, measurer: SimulatedMeasurer, *, early_verdict: bool
) -> Outcome:
    """Performs the best search for one goal.

    If a trial has an outcome that no rehearsal had, or the bounds are not between the loads of the search, an ordinary
    search goes on from the trials so far.

    Args:
        goal: The goal.
        subject: The SUT, and its loads.
        measurer: Performs the trials.
        early_verdict: Whether trials end as soon as they are certain to be high-loss.
    """
    overhead = Overhead(measurer.overhead, measurer.count_overhead)
    certain_above = goal.loss_ratio if early_verdict else None
    known = Rehearsals(goal, subject, overhead, certain_above)
    counted = overhead.seconds if overhead.counted else 0.0
    begin = thread_time()
    optimum = Optimum(goal, known.full, known.short, counted)
    controller = MLRsearch([goal], subject.min_load, subject.max_load, fail_fast=False, early_verdict=early_verdict)
    recorder = Recorder(measurer)
    criterion = Criterion.of(goal)

    lower = -1
    upper = optimum.loads
    while (load := optimum.left(lower, upper)[1]) is not None:
        tally = Tally()
        counts = Counts()
        while (bound := tally.classify(criterion)) is Bound.UNDECIDED:
            is_short = optimum.plan(lower, upper, load, counts).is_short
            duration = goal.first_duration if is_short else goal.final_trial_duration
            trial = TrialInput(duration, known.loads[load], certain_above=certain_above)
            result = TrialResult(trial, recorder.measure(trial))
            controller.record(result)
            tally.add(criterion, result)
            if not is_short:
                is_high = result.loss_ratio > goal.loss_ratio
                counts = Counts(counts.low + (not is_high), counts.high + is_high)
        if bound is Bound.LOWER:
            lower = load
        else:
            upper = load

    seconds = thread_time() - begin - recorder.seconds
    rest = searched(controller, measurer)
    return Outcome(rest.result, (*recorder.trials, *rest.trials), seconds)


def _ask(goals: Goals, subject: Subject, measurer: Measurer, *, early_verdict: bool = False) -> Outcome:
    if not isinstance(measurer, SimulatedMeasurer):
        raise SearchError("The oracle must know the SUT, and a real SUT is not known. Choose another algorithm.")
    return search_with_oracle(goals[0], subject, measurer, early_verdict=early_verdict)


def _single(goals: Goals) -> bool:
    return len(goals) == 1


ORACLE = Algorithm("oracle", _ask, _single, knows_the_sut=True)
EARLY_ORACLE = Algorithm(
    "oracle, early verdicts", partial(_ask, early_verdict=True), _single, early_verdict=True, knows_the_sut=True
)
