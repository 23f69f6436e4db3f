"""The question whether a SUT remembers loss, asked by a few short trials when a search is over.

A SUT that forwards less after a loss is searched in its weak state from the second trial on, and its trials agree. What
gives it away is the first trial: it was in overload, and yet it forwarded more than any later one. Long trials without
loss leave the SUT rested. If it then forwards at several loads what it lost before, and loses frames again right after
the next loss, it remembers. `lossratio.mlrsearch.constancy` sees that in these trials, with its size.

A memory that is longer than trials rest needs a rest of its own, and a control: the same load right after a loss. Only
frames that the SUT lost count in either question. Where frames that were not sent leave a trial open, it is repeated.
"""

import math
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import pairwise

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.constancy import LEAST_TRIALS, offered_load
from lossratio.mlrsearch.forecast import Pace
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.trials import TrialInput, TrialResult, sut_loss_ratio

MEMORY = "memory"
"""Name of the rule that chose such a trial."""
RESTED = "rested"
"""Name of the rule that chose a trial after a rest; see `Rested`."""
CONTROL = "control"
"""Name of the rule that chose a trial of its control; see `Rested`."""

LONG_REST = 15.0
"""Seconds without traffic before a trial that asks whether the SUT passes more after a rest."""

ENOUGH = LEAST_TRIALS
"""Loads that pass after a rest and fail right after a loss before there is a doubt.

A picture: a SUT that loses a frame in every second trial passes one and fails the other at every fourth load.
"""

CONFIRMATIONS = 2
"""So many of these loads are asked again before there is a doubt.

A picture: with a loss in every second trial, halving gaps comes upon five such loads in one search of ten. Each of them
answers the same again by chance in one of four cases.
"""

MOST_ATTEMPTS = 3
"""So often a trial is measured that frames which were not sent leave open; in all."""

TRIALS_OF_CONTROL = 2
"""Trials of a control: one at maximum load, which is to lose frames, and then the load itself."""

LEAST_EVIDENCE = 5.0
"""Seconds of a duration sum from which on a search has such a trial; quick goals have 2 s."""

CLIMB = 4
"""Factor of the grid steps above the bounds from one such trial to the next: 1, 4, 16, 64, 256."""

LESS = 0.05
"""The least share that a SUT must seem to forward less after a loss.

A picture: the first trial of 100 kfps forwarded 50 kfps, and the second one, of 50 kfps, forwarded 41 kfps. With
49 kfps it would be the spread of many SUTs.
"""

REST = 5.0
"""Least seconds since the last loss before the question is asked. SUTs that remember do so for 5 s to a minute."""

MARGIN = 1
"""Grid steps that loads stay away from the two forwarding rates."""


def usual_rest(goals: Iterable[SearchGoal], *, is_black_box: bool = False) -> float:
    """Seconds of that rest for a search; 0: none, as there is little evidence for each load anyway.

    A black box, of which nothing is known, is always asked.
    """
    if is_black_box or any(goal.duration_sum >= LEAST_EVIDENCE for goal in goals):
        return LONG_REST
    return 0.0


class Memory:
    """The trials that answer the question. No load is asked for twice, and none that a trial of the duration had.

    Args:
        grid: The loads of the search.
        duration: Seconds of the trials.
    """

    def __init__(self, grid: LoadGrid, duration: float) -> None:
        self._grid, self._duration = grid, duration
        self._first: float | None = None
        self._weak = 0.0
        self._quiet = math.inf
        self._measured: set[float] = set()
        self._plan: list[tuple[float, Bound]] | None = None
        self._attempts = 1

    def add(self, result: TrialResult) -> None:
        """Takes in a trial."""
        lost = sut_loss_ratio(result) * result.duration / result.traffic_duration
        offered = offered_load(result)
        forwarded = offered * (1.0 - lost)
        if self._first is None:
            self._first = forwarded
        elif self._quiet == 0.0 and forwarded < (1.0 - LESS) * min(offered, self._first):
            self._weak = max(self._weak, forwarded)

        if self._plan and (result.load, result.duration) == (self._plan[0][0], self._duration):
            if (
                lost == 0.0
                and offered <= self._weak < result.load
                and self._attempts < MOST_ATTEMPTS
            ):
                # The weak SUT forwards as much as was sent, so this is no answer.
                self._attempts += 1
            else:
                (_, expected), *left = self._plan
                # One trial that comes out otherwise is an answer, too: it does not remember.
                self._plan = left if (lost > 0.0) is (expected is Bound.UPPER) else []
                self._attempts = 1

        self._quiet = 0.0 if lost > 0.0 else self._quiet + result.elapsed
        if result.duration == self._duration:
            self._measured.add(result.load)

    def next_trial(self) -> tuple[TrialInput, Bound] | None:
        """The next trial once the search is over, and what its load is expected to be; None: there is no question."""
        if self._plan is None:
            self._plan = self._planned()
        # How much a weak SUT forwards is known from a whole trial only.
        return next(
            ((TrialInput(self._duration, load), expected) for load, expected in self._plan), None
        )

    def _planned(self) -> list[tuple[float, Bound]]:
        if self._first is None or self._weak <= 0.0 or not REST <= self._quiet < math.inf:
            return []
        highest = math.floor(self._grid.position(min(self._first, self._grid.max_load))) - MARGIN
        lowest = math.ceil(self._grid.position(max(self._weak, self._grid.min_load))) + MARGIN
        between = self._new_loads(highest, lowest)
        above = self._new_loads(self._grid.top, highest + 1)
        if len(between) <= LEAST_TRIALS or not above:
            return []
        rested = between[:LEAST_TRIALS]
        weak = [above[0], *between[LEAST_TRIALS : 2 * LEAST_TRIALS]]
        return [*((load, Bound.LOWER) for load in rested), *((load, Bound.UPPER) for load in weak)]

    def _new_loads(self, first: int, last: int) -> list[float]:
        """The loads between two indices without a trial, descending."""
        loads = map(self._grid.load, range(first, last - 1, -1))
        return [load for load in loads if load not in self._measured]


class RestAnswer(Enum):
    """What the trials at one load say: one after a rest, and the control without one, right after a loss."""

    EASY = "passes both"
    """The rest makes no difference."""
    REMEMBERED = "passes only after a rest"
    """The SUT remembers the loss; with early verdicts, it may only be slow at the beginning of a trial."""
    HARD = "fails after a rest"
    """No control is needed."""
    PASSED = "passes after a rest"
    """There is no control; earlier versions had none."""
    OPEN = "no answer"
    """The generator sent too little for one."""


_AFTER_REST = {True: RestAnswer.PASSED, False: RestAnswer.HARD, None: RestAnswer.OPEN}
_OF_CONTROL = {True: RestAnswer.EASY, False: RestAnswer.REMEMBERED, None: RestAnswer.PASSED}


def rest_answers(
    results: Sequence[TrialResult], upper: float, allowed: float
) -> dict[float, RestAnswer]:
    """What the trials after a rest, and their controls, say about each load, by the frames that the SUT lost.

    Of a load that was asked again, the last answer counts.

    Args:
        results: The trials of a search that count, in the order measured.
        upper: The relevant upper bound, frames per second: what passes must have been offered more.
        allowed: The loss ratio of a trial that passes.
    """
    return dict(_each_answer(results, upper, allowed))


def _each_answer(
    results: Sequence[TrialResult], upper: float, allowed: float
) -> list[tuple[float, RestAnswer]]:
    """The load of each trial after a rest, and what it says with its control, in the order measured."""
    found: list[tuple[float, RestAnswer]] = []
    last: TrialResult | None = None
    has_lost = False

    for result in results:
        passes = _passes(result, upper, allowed)
        if result.input.rest:
            found.append((result.load, _AFTER_REST[passes]))
            last = result
        elif (
            has_lost
            and last is not None
            and _is_control(result, last)
            and found[-1][1] is RestAnswer.PASSED
        ):
            found[-1] = (result.load, _OF_CONTROL[passes])

        has_lost = sut_loss_ratio(result) > 0.0

    return found


def _is_control(result: TrialResult, last: TrialResult) -> bool:
    """Whether a trial repeats the one after the last rest."""
    return (result.load, result.duration) == (last.load, last.duration)


def _passes(result: TrialResult, upper: float, allowed: float) -> bool | None:
    """Whether the SUT lost no more than is allowed; None: frames that were not sent leave it open."""
    if sut_loss_ratio(result) > allowed:
        return False
    if result.is_early:
        return None
    if result.loss_ratio <= allowed or offered_load(result) > upper:
        return True
    return None


class Rested:
    """The last trials of a search: short and whole ones at loads above all upper bounds, each after a rest.

    Most SUTs lose frames in the first one, and that was all. A load that passes has a control: right after a loss, in a
    trial at maximum load, it is measured again, as in the search. A SUT that remembers a loss for longer than trials
    rest fails there, and so does one that is slow only at the beginning of a trial, where early verdicts end trials.
    As their loads are above the bounds, these trials change no bound; unless the maximum load is one, which is asked
    itself.

    Args:
        grid: The loads of the search.
        duration: Seconds of the trials.
        rest: Seconds of the rest; 0: nothing is asked.
        certain_above: The loss ratio above which the search ends a trial early; None: it does not.
    """

    def __init__(
        self, grid: LoadGrid, duration: float, rest: float, certain_above: float | None = None
    ) -> None:
        self._grid = grid
        self._duration = duration
        self._rest = rest
        self._certain_above = certain_above
        self._trials: list[TrialResult] = []

    def time_left(self, pace: Pace) -> float:
        """Seconds of the one trial that most SUTs are asked, if it is still to come."""
        if self._rest and not self._trials:
            return self._rest + pace.elapsed(self._duration)
        return 0.0

    def add(self, result: TrialResult) -> None:
        """Takes in a trial."""
        if self._trials or result.input.rest:
            self._trials.append(result)

    def next_trial(
        self, bound: float, upper: float, loss_ratio: float
    ) -> tuple[TrialInput, Bound] | None:
        """The next trial once the search is over, and what its load is expected to be; None: the question is answered.

        Args:
            bound: The smallest load that short trials showed to be too much for each goal, frames per second.
            upper: The relevant upper bound, frames per second.
            loss_ratio: What a trial may lose to pass.
        """
        if not self._rest:
            return None
        trial = self._next_input(bound, _each_answer(self._trials, upper, loss_ratio))
        if trial is None:
            return None
        return (trial, Bound.UPPER)

    def _next_input(
        self, bound: float, found: Sequence[tuple[float, RestAnswer]]
    ) -> TrialInput | None:
        answers = dict(found)
        rested = [number for number, result in enumerate(self._trials) if result.input.rest]
        if not rested:
            return self._after_rest(self._next_index(bound, answers))

        last = self._trials[rested[-1]].load
        without_control = {load for load, answer in answers.items() if answer is RestAnswer.PASSED}
        if without_control - {last}:
            # An earlier version asked for no controls.
            return None
        if without_control:
            return self._control(last, self._trials[rested[-1] + 1 :])
        if answers[last] is not RestAnswer.OPEN:
            return self._next_question(bound, found)

        attempts = [number for number in rested if self._trials[number].load == last]
        if len(attempts) < MOST_ATTEMPTS:
            return TrialInput(self._duration, last, rest=self._rest)
        return None

    def _next_question(
        self, bound: float, found: Sequence[tuple[float, RestAnswer]]
    ) -> TrialInput | None:
        """The next load to ask after a rest: a new one, or again one of enough loads that are remembered."""
        answers = dict(found)
        answered = [load for load, answer in found if answer is not RestAnswer.OPEN]
        again = {load for load in answers if answered.count(load) > 1}
        if any(answers[load] is not RestAnswer.REMEMBERED for load in again):
            return None

        remembered = sorted(
            load for load, answer in answers.items() if answer is RestAnswer.REMEMBERED
        )
        if len(remembered) < ENOUGH:
            return self._after_rest(self._next_index(bound, answers))
        if len(again) >= CONFIRMATIONS:
            return None

        # The lowest and the highest may be near an end of what is remembered.
        load = next(load for load in remembered[1:-1] if load not in again)
        return TrialInput(self._duration, load, rest=self._rest)

    def _after_rest(self, index: int | None) -> TrialInput | None:
        if index is None:
            return None
        return TrialInput(self._duration, self._grid.load(index), rest=self._rest)

    def _control(self, load: float, since: Sequence[TrialResult]) -> TrialInput | None:
        """The control of a load, or the overload before it, after the trials since that after the rest."""
        if len(since) >= TRIALS_OF_CONTROL * MOST_ATTEMPTS:
            return None
        if since and sut_loss_ratio(since[-1]) > 0.0:
            return TrialInput(self._duration, load, certain_above=self._certain_above)
        return TrialInput(self._duration, self._grid.max_load)

    def _next_index(self, bound: float, answers: dict[float, RestAnswer]) -> int | None:
        """The next load to ask after a rest, as its index on the grid.

        Loads climb until one fails. Then the widest gap between those that pass both trials and those that fail is
        halved, as all loads in there may be remembered.
        """
        base = math.ceil(self._grid.position(bound))
        top = self._grid.top
        found: dict[RestAnswer, list[int]] = {answer: [] for answer in RestAnswer}
        for load in sorted(answers):
            found[answers[load]].append(round(self._grid.position(load)))
        easy = found[RestAnswer.EASY]
        remembered = found[RestAnswer.REMEMBERED]
        hard = found[RestAnswer.HARD]
        passed = [*easy, *remembered]
        if (hard and not passed) or _by_chance(easy, remembered, hard):
            return None
        if not hard and top not in passed:
            steps: int = CLIMB ** len(passed)
            return min(base + steps, top)

        low = max([base, *(index for index in easy if not remembered or index < remembered[0])])
        high = min(hard, default=top + 1)
        if high - low <= ENOUGH:
            return None

        marks = [low, *(index for index in remembered if low < index < high), high]
        first, last = max(pairwise(marks), key=lambda gap: gap[1] - gap[0])
        if last - first > 1:
            return (first + last) // 2
        return None


def _by_chance(easy: Sequence[int], remembered: Sequence[int], hard: Sequence[int]) -> bool:
    """Whether more than one load answers otherwise than loads around it that are remembered, as chance has it."""
    if not remembered:
        return False
    too_high = [index for index in easy if index > remembered[0]]
    too_low = [index for index in hard if index < remembered[-1]]
    return len(too_high) + len(too_low) > 1
