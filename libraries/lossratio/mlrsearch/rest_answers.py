"""What trials after a rest, and their controls right after a loss, say about a load."""

from collections.abc import Sequence
from enum import Enum
from itertools import pairwise

from lossratio.trials import TrialResult, offered_load, sut_loss_ratio

FEWER_AGAIN = 2
"""A load must fail after a rest, and pass right after that, this many times before there is a doubt. Once may be
chance."""


class RestAnswer(Enum):
    """The answer of the trials at one load: a trial after a rest, and its control right after a loss."""

    EASY = "passes both"
    """The rest makes no difference."""
    REMEMBERED = "passes only after a rest"
    """The SUT remembers the loss. With early verdicts, it may only be slow at the beginning of a trial."""
    HARD = "fails after a rest"
    """No control is needed."""
    PASSED = "passes after a rest"
    """There is no control yet."""
    OPEN = "no answer"
    """The generator sent too little for an answer."""


_AFTER_REST = {True: RestAnswer.PASSED, False: RestAnswer.HARD, None: RestAnswer.OPEN}
_OF_CONTROL = {True: RestAnswer.EASY, False: RestAnswer.REMEMBERED, None: RestAnswer.PASSED}


def rest_answers(
    results: Sequence[TrialResult], upper: float, allowed: float
) -> dict[float, RestAnswer]:
    """The answer of the trials after a rest and their controls for each load, based on the frames that the SUT lost.

    If a load was tried more than once, the last answer counts. Loads below the upper bound have no answer.

    Args:
        results: The trials of a search that count, in the order measured.
        upper: The relevant upper bound, frames per second: a load that passes must have been higher.
        allowed: The loss ratio of a trial that passes.
    """
    answers = each_answer(results, upper, allowed)
    return {load: answer for load, answer in answers if load >= upper}


def each_answer(
    results: Sequence[TrialResult], upper: float, allowed: float
) -> list[tuple[float, RestAnswer]]:
    """The load of each trial after a rest, and its answer together with its control, in the order measured.

    Args:
        results: The trials of a search, in the order measured.
        upper: The upper bound, in frames per second.
        allowed: The loss ratio of a trial that passes.
    """
    found: list[tuple[float, RestAnswer]] = []
    last: TrialResult | None = None
    has_lost = False

    for result in results:
        outcome = passes(result, upper, allowed)
        if result.input.rest:
            found.append((result.load, _AFTER_REST[outcome]))
            last = result
        elif (
            has_lost
            and last is not None
            and _is_control(result, last)
            and found[-1][1] is RestAnswer.PASSED
        ):
            found[-1] = (result.load, _OF_CONTROL[outcome])

        has_lost = sut_loss_ratio(result) > 0.0

    return found


def _is_control(result: TrialResult, last: TrialResult) -> bool:
    """Whether a trial repeats the trial after the last rest."""
    return (result.load, result.duration) == (last.load, last.duration)


def passes(result: TrialResult, upper: float, allowed: float) -> bool | None:
    """Whether the SUT lost no more than allowed; None: frames that were not sent leave this open.

    Args:
        result: The trial.
        upper: The upper bound, in frames per second.
        allowed: The loss ratio of a trial that passes.
    """
    if sut_loss_ratio(result) > allowed:
        return False
    if result.is_early:
        return None
    if result.loss_ratio <= allowed or offered_load(result) > upper:
        return True
    return None


def fewer_after_rest(results: Sequence[TrialResult], allowed: float) -> tuple[TrialResult, ...]:
    """The trials that failed after a rest, although the same load passed right after that.

    Args:
        results: The trials of a search that count, in the order measured.
        allowed: The loss ratio of a trial that passes.
    """
    return tuple(
        result
        for result, control in pairwise(results)
        if result.input.rest
        and not control.input.rest
        and _is_control(control, result)
        and sut_loss_ratio(result) > allowed >= control.loss_ratio
    )
