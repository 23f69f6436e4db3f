"""Trials after a rest, before or after a search: whether the SUT then passes more, or less.

A memory that lasts longer than the rests between trials needs an extra rest, and a control: the same load right after a
loss. Before the first trial of a search, a SUT has rested anyway. So if earlier searches promise the bounds, the first
trial is just above them. In the next search, the first trial is at a lower bound, and shows whether the SUT passes less
after a rest.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.constancy import LEAST_TRIALS
from lossratio.mlrsearch.forecast import Pace
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.memory import MARGIN, MOST_ATTEMPTS
from lossratio.mlrsearch.rest_answers import (
    FEWER_AGAIN,
    RestAnswer,
    each_answer,
    fewer_after_rest,
    passes,
)
from lossratio.mlrsearch.since_loss import SinceLoss
from lossratio.trials import TrialInput, TrialResult, offered_load, sut_loss_ratio

RESTED = "rested"
"""Name of the rule that chose a trial after a rest; see `Rested`."""
CONTROL = "control"
"""Name of the rule that chose a trial of its control; see `Rested`."""
SINCE_LOSS = "since loss"
"""Name of the rule that chose a trial after a long time without loss, instead of a rest."""
OVERLOAD = "look"
"""Name of the rule that chose the trial at maximum load. The search itself begins with this trial, after the first
trial."""

LONG_REST = 15.0
"""Seconds without traffic before a trial that asks whether the SUT passes more after a rest."""

ENOUGH = LEAST_TRIALS
"""This many loads must pass after a rest and fail right after a loss before there is a doubt.

Example: a SUT that loses a frame in every second trial passes after the rest and fails after the loss at every fourth
load.
"""

CONFIRMATIONS = 2
"""This many of these loads are tried again before there is a doubt.

Example: with a loss in every second trial, halving the gaps meets five such loads in one search out of ten. By chance,
each of them gives the same answer again in one case out of four.
"""

TRIALS_OF_CONTROL = 2
"""Trials of a control: a trial at maximum load, which must lose frames, and then a trial at the load itself."""

LARGEST_SHARE = 0.25
"""The largest share of a search's time that such a rest may take, unless it is requested.

Example: a search for NDR and PDR takes 44 s without overhead, so it ends without a rest of 15 s. A search of 70 s has
the rest.
"""

ABOVE = 2
"""The first trial of a search, which shows a memory of loss, is this many goal widths above the lower bounds of earlier
searches."""

NEAR = 3
"""A trial within this many grid steps above the first load to try after a rest answers the question just as well."""

CLIMB = 4
"""Factor by which the grid steps above the bounds grow from one such trial to the next: 1, 4, 16, 64, 256."""


@dataclass(frozen=True)
class FirstQuestion:
    """The question of the first trial of a search, before which the SUT has rested."""

    load: float
    """The trial's load, in frames per second."""
    bound: float
    """The upper bound that earlier searches promise, in frames per second; it is below the load if the question is
    whether the SUT passes more."""
    allowed: float
    """The loss ratio of a trial that passes."""

    @property
    def expected(self) -> Bound:
        """The kind of bound that the load is expected to be."""
        if self.load > self.bound:
            return Bound.UPPER
        return Bound.LOWER


def first_question(
    promised: Mapping[SearchGoal, int], grid: LoadGrid, last: Sequence[TrialResult]
) -> FirstQuestion | None:
    """The question of the first trial of a search: whether the SUT passes more after a rest, or less.

    The two questions take turns. None: earlier searches promise no bounds.

    Args:
        promised: The lower bounds that earlier searches promise, as indices on the grid.
        grid: The loads of the search.
        last: The trials of the last earlier search, in the order measured.
    """
    if not promised:
        return None

    strictest = min(promised, key=lambda goal: promised[goal])
    highest = max(promised, key=lambda goal: promised[goal])
    lowest = grid.load(promised[strictest])
    width = grid.steps_within(highest.width)
    above = promised[highest] + ABOVE * width
    bound = grid.load(min(grid.top, above - width))

    was_above = bool(last) and last[0].input.rest > 0.0 and last[0].load > lowest
    if was_above or above >= grid.top:
        return FirstQuestion(lowest, bound, strictest.loss_ratio)
    return FirstQuestion(grid.load(above), bound, highest.loss_ratio)


class Rested:
    """Short, whole trials after a rest: one before or after the search, and the trials that its answer makes necessary.

    A trial at the end is above all upper bounds. Most SUTs lose frames in it, which ends the question. A load that
    passes has a control: right after a loss in a trial at maximum load, the load is measured again as in the search. A
    SUT that remembers a loss for longer than the rest between trials fails this control. So does a SUT that is only
    slow at the beginning of a trial, if early verdicts end trials. The loads of these trials are above the bounds, so
    they change no bound, unless the maximum load is a bound and is tried itself.

    The first trial of a search asks the same question just above the bounds that earlier searches promise. Or it is at
    a lower bound, and asks whether the SUT passes less after a rest; the control is then the same load, at once.
    Further trials that such an answer makes necessary wait until the search is over. They are left out if the search is
    short compared with a rest.

    Args:
        grid: The loads of the search.
        duration: Seconds of the trials.
        rest: Seconds of the rest; 0: nothing is asked.
        certain_above: The loss ratio above which the search ends a trial early; None: it ends no trial early.
        share: The largest share of the time of the search that a rest at its end may take.
        first: The question of the first trial; None: there is no question.
    """

    def __init__(
        self,
        grid: LoadGrid,
        duration: float,
        rest: float,
        certain_above: float | None = None,
        *,
        share: float = math.inf,
        first: FirstQuestion | None = None,
    ) -> None:
        self._grid = grid
        self._duration = duration
        self._rest = rest
        self._certain_above = certain_above
        self._share = share
        self._first = first
        self._trials: list[TrialResult] = []
        self._since_loss = SinceLoss(rest)

    def time_left(self, pace: Pace, search: float) -> float:
        """Seconds of the single trial that most SUTs need at the end, if it is still to come.

        Args:
            pace: The time that trials take.
            search: Seconds that the search takes in all.
        """
        if self._first is None and not self._trials and self._are_short_for(search):
            return self._rest + pace.elapsed(self._duration)
        return 0.0

    def add(self, result: TrialResult) -> None:
        """Takes in a trial."""
        self._since_loss.add(result)
        if self._trials or result.input.rest:
            self._trials.append(result)
        else:
            self._first = None

    def first_trial(self) -> tuple[TrialInput, Bound, str] | None:
        """The next trial before the search, with the expected kind of bound and the rule; None: there is no such trial.

        The last of these trials is at maximum load. If the bounds have moved, the rate forwarded there shows where they
        are.
        """
        question = self._first
        if question is None:
            return None
        if not self._trials:
            trial = TrialInput(self._duration, question.load, rest=self._rest)
            return trial, question.expected, RESTED

        first, *since = self._trials
        control = self._first_control(question, first, since)
        if control is not None:
            if control.load > first.load:
                return control, Bound.UPPER, CONTROL
            return control, question.expected, CONTROL
        if all(result.load < self._grid.max_load for result in since):
            return self._overload(), Bound.UPPER, OVERLOAD

        self._first = None
        return None

    def _first_control(
        self, question: FirstQuestion, first: TrialResult, since: Sequence[TrialResult]
    ) -> TrialInput | None:
        """The control of the first trial, or the overload before it; None if no control is needed, or it was made."""
        if question.expected is Bound.LOWER:
            has_passed = passes(first, question.bound, question.allowed)
            if has_passed is False and not since:
                return self._again(first.load)
            return None

        ((_, answer),) = each_answer(self._trials, question.bound, question.allowed)
        if answer is RestAnswer.PASSED:
            return self._control(first.load, since)
        return None

    def next_trial(
        self, bound: float, upper: float, loss_ratio: float, *, strictest: float, elapsed: float
    ) -> tuple[TrialInput, Bound, str] | None:
        """The next trial once the search is over, with the expected kind of bound and the rule; None: all is answered.

        Args:
            bound: The smallest load that was too high for each goal according to short trials, frames per second per
                interface.
            upper: The relevant upper bound, frames per second per interface.
            loss_ratio: The largest loss ratio of a trial that passes.
            strictest: The smallest loss ratio that a goal allows.
            elapsed: Seconds that the search took so far.
        """
        if not self._rest:
            return None
        trial = self._fewer(strictest)
        if trial is not None and (not trial.rest or self._are_short_for(elapsed)):
            return trial, Bound.LOWER, _rule_of(trial)

        asked = [result for result in self._trials if result.input.rest and result.load >= bound]
        if not asked and self._share < math.inf:
            # A rest that was not requested is left out if long trials without loss can replace it.
            first = self._first_index(bound)
            if self._since_loss.failed(bound, self._grid.load(first + NEAR)) is not None:
                return None
            if self._since_loss.is_long and not self._since_loss.has_asked(bound):
                return TrialInput(self._duration, self._grid.load(first)), Bound.UPPER, SINCE_LOSS

        found = self._answers(bound, upper, loss_ratio)
        trial = self._next_input(bound, found, asked)
        rests = len(asked) + 1
        if any(answer is RestAnswer.REMEMBERED for _, answer in found):
            rests = 1
        is_worth_it = self._are_short_for(elapsed, rests)
        if not asked and self._trials and self._share < math.inf:
            # The first trial of the search has asked the opposite question.
            return None
        if trial is None or (trial.rest and not is_worth_it):
            return None
        return trial, Bound.UPPER, _rule_of(trial)

    def _are_short_for(self, search: float, rests: int = 1) -> bool:
        """Whether this many rests take at most their share of the search's time (seconds)."""
        return self._rest > 0.0 and rests * self._rest <= self._share * search

    def _fewer(self, strictest: float) -> TrialInput | None:
        """The repetition of both trials, once a load has failed after a rest and passed right after that."""
        found = {result.load for result in fewer_after_rest(self._trials, strictest)}
        for load in sorted(found):
            rested = [
                number
                for number, result in enumerate(self._trials)
                if result.input.rest and result.load == load
            ]
            if len(rested) < FEWER_AGAIN:
                return TrialInput(self._duration, load, rest=self._rest)
            last = rested[-1]
            if last == len(self._trials) - 1 and sut_loss_ratio(self._trials[last]) > strictest:
                return self._again(load)
        return None

    def _answers(
        self, bound: float, upper: float, loss_ratio: float
    ) -> list[tuple[float, RestAnswer]]:
        """The answers at loads that are too high."""
        found = each_answer(self._trials, upper, loss_ratio)
        return [(load, answer) for load, answer in found if load >= bound]

    def _next_input(
        self, bound: float, found: Sequence[tuple[float, RestAnswer]], asked: Sequence[TrialResult]
    ) -> TrialInput | None:
        """The next trial according to the answers so far, no matter how long it takes; None: all is answered."""
        answers = dict(found)
        if not asked:
            return self._after_rest(self._next_index(bound, answers))

        last = asked[-1].load
        if answers[last] is RestAnswer.PASSED:
            place = max(number for number, result in enumerate(self._trials) if result is asked[-1])
            return self._control(last, self._trials[place + 1 :])
        if answers[last] is not RestAnswer.OPEN:
            return self._next_question(bound, found)

        attempts = [result for result in asked if result.load == last]
        if len(attempts) < MOST_ATTEMPTS:
            return TrialInput(self._duration, last, rest=self._rest)
        return None

    def _next_question(
        self, bound: float, found: Sequence[tuple[float, RestAnswer]]
    ) -> TrialInput | None:
        """The next load to try after a rest: a new load, or, once there are enough, a remembered load again."""
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

        # The lowest and the highest of these loads may be near an end of the remembered range.
        load = next(load for load in remembered[1:-1] if load not in again)
        return TrialInput(self._duration, load, rest=self._rest)

    def _after_rest(self, index: int | None) -> TrialInput | None:
        if index is None:
            return None
        return TrialInput(self._duration, self._grid.load(index), rest=self._rest)

    def _control(self, load: float, since: Sequence[TrialResult]) -> TrialInput | None:
        """The control of a load, or the overload before it, from the trials since the trial after the rest."""
        if len(since) >= TRIALS_OF_CONTROL * MOST_ATTEMPTS:
            return None
        if since and sut_loss_ratio(since[-1]) > 0.0:
            return self._again(load)
        return self._overload()

    def _again(self, load: float) -> TrialInput:
        return TrialInput(self._duration, load, certain_above=self._certain_above)

    def _overload(self) -> TrialInput:
        return TrialInput(self._duration, self._grid.max_load)

    def _first_index(self, bound: float) -> int:
        return min(math.ceil(self._grid.position(bound)) + 1, self._grid.top)

    def _next_index(self, bound: float, answers: dict[float, RestAnswer]) -> int | None:
        """The next load to ask after a rest, as its index on the grid.

        Loads climb until one fails. Then the widest gap between loads that pass both trials and loads that fail is
        halved, because all loads in it may be remembered.
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
        if not passed:
            return self._first_index(bound)
        if not hard and top not in passed:
            steps: int = CLIMB ** len(passed)
            return min(base + steps, top)

        low = max([base, *(index for index in easy if not remembered or index < remembered[0])])
        high = min(hard, default=top + 1)
        shown = self._shown_index(base, after=max(passed))
        if shown is not None and 2 * shown < max(passed) + high:
            high = shown + 1
            if len(hard) == 1 and shown - MARGIN > max(passed):
                return shown - MARGIN
        if high - low <= ENOUGH:
            return None

        marks = [low, *(index for index in remembered if low < index < high), high]
        first, last = max(pairwise(marks), key=lambda gap: gap[1] - gap[0])
        if last - first > 1:
            return (first + last) // 2
        return None

    def _shown_index(self, base: int, after: int) -> int | None:
        """The largest load that passes after a rest, as far as the forwarding rate of a failed trial shows it.

        Example: after a rest 1,089 kfps lost 5.5 %, so 1,029 kfps were forwarded, and 1,057 kfps need not be asked.
        In overload, some SUTs forward less than they otherwise could, and some forward more. So the rate shows nothing
        unless the rate at maximum load is between the rate at the bounds and this rate.

        Args:
            base: The load just above the bounds, as its index on the grid.
            after: The largest load that passed.
        """
        failed = (result for result in self._trials if result.input.rest)
        shown = min((self._place(result) for result in failed if sut_loss_ratio(result)), default=0)
        overloads = (
            self._place(result)
            for result in self._trials
            if not result.input.rest and result.load == self._grid.max_load
        )
        if shown < after or not all(base - NEAR <= place <= shown for place in overloads):
            return None
        return shown

    def _place(self, result: TrialResult) -> int:
        """The place of the rate that the SUT forwarded in a trial, as an index on the grid."""
        rate = offered_load(result) * (1.0 - sut_loss_ratio(result))
        return math.floor(self._grid.position(max(rate, self._grid.min_load)))


def _by_chance(easy: Sequence[int], remembered: Sequence[int], hard: Sequence[int]) -> bool:
    """Whether more than one load, by chance, has another answer than the remembered loads around it."""
    if not remembered:
        return False
    too_high = [index for index in easy if index > remembered[0]]
    too_low = [index for index in hard if index < remembered[-1]]
    return len(too_high) + len(too_low) > 1


def _rule_of(trial: TrialInput) -> str:
    """The rule that chose a trial after a rest, or a trial of its control."""
    if trial.rest:
        return RESTED
    return CONTROL
