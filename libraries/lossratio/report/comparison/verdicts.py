"""The verdicts on compared quantities: on the measured values, and on the upper ends of their ranges."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lossratio import results
from lossratio.report.comparison.differences import (
    NO_SPREAD,
    Difference,
    adjusted,
    difference_at_most,
    real_change,
)
from lossratio.report.comparison.quantity import ComparedQuantity
from lossratio.report.verdict import Verdict
from lossratio.values import format_change


def judged(compared: Sequence[ComparedQuantity], least_change: float) -> Iterator[ComparedQuantity]:
    """The quantities with their verdicts. A quantity without a difference keeps its verdict.

    Args:
        compared: All quantities of a comparison; their number adjusts the probabilities.
        least_change: Smaller changes, relative to the mean before, do not count.
    """
    as_they_are = _adjusted([one.difference for one in compared])
    at_their_most = _adjusted(list(map(_at_most, compared)))
    for one, plain, most in zip(compared, as_they_are, at_their_most, strict=True):
        if plain is None:
            yield one
        else:
            yield _with_verdict(one, plain, most, results.least_news(least_change, one.resolution))


def _at_most(compared: ComparedQuantity) -> Difference | None:
    """The difference of the upper ends of the values; None: there is no difference, or it is not known."""
    if compared.difference is None:
        return None
    before, after = compared.ends
    return difference_at_most(before, after, compared.unit, compared.difference)


def _adjusted(differences: Sequence[Difference | None]) -> list[Difference | None]:
    """The tested differences, each with its probability adjusted for the number of tests."""
    p_values = [None if one is None else one.p_value for one in differences]
    probabilities = iter(adjusted([p_value for p_value in p_values if p_value is not None]))
    return [
        None if one is None or p_value is None else replace(one, p_value=next(probabilities))
        for one, p_value in zip(differences, p_values, strict=True)
    ]


def _with_verdict(
    compared: ComparedQuantity, plain: Difference, most: Difference | None, least_change: float
) -> ComparedQuantity:
    """The verdict on the difference of the values as they are, and, if known, the difference of their upper ends."""
    plain_change = real_change(plain, least_change)
    most_change = real_change(most, least_change)
    change = results.agreed_change(plain_change, most_change)

    if change is not None:
        with_verdict = _changed(compared, change, plain, most)
    elif plain_change is None and (most_change is None or _is_without_end(plain, most)):
        with_verdict = replace(compared, difference=plain, verdict=Verdict.UNCHANGED)
    else:
        with_verdict = _not_explained(compared, plain, most)

    p_values = [one.p_value or 0.0 for one in (plain, most) if one is not None]
    return replace(with_verdict, p_value=max(p_values))


def _is_without_end(plain: Difference, most: Difference | None) -> bool:
    """Whether one side's values are only lower bounds. A change from zero is infinite without such bounds."""
    return most is not None and math.isinf(most.change) and not math.isinf(plain.change)


def _changed(
    compared: ComparedQuantity, change: float, plain: Difference, most: Difference | None
) -> ComparedQuantity:
    """The verdict on a change that both differences show, with the smaller of them."""
    weaker = plain
    if most is not None and abs(most.change) < abs(plain.change):
        weaker = most
    elif _is_without_end(plain, most):
        weaker = replace(plain, interval=None, is_least=True)

    is_better = compared.unit.is_better(change)
    # Missing frames that differ between runs are no spread of the values themselves.
    if NO_SPREAD in (plain.test, weaker.test):
        verdict = Verdict.SEEMS_BETTER if is_better else Verdict.SEEMS_WORSE
    else:
        verdict = Verdict.PROGRESSION if is_better else Verdict.REGRESSION

    notes = [compared.note]
    if change != plain.change and _lacks_frames(compared):
        notes.append(_both_changes(plain, weaker))
    return replace(compared, difference=weaker, verdict=verdict, note=_joined(notes))


def _not_explained(
    compared: ComparedQuantity, plain: Difference, most: Difference | None
) -> ComparedQuantity:
    """The verdict on a change that only one of the differences shows, with the smaller of them."""
    notes = [
        "frames that the generator did not send or did not count may explain the difference",
        compared.note,
    ]
    weaker = plain
    if most is not None and abs(most.change) < abs(plain.change):
        # Neither difference gives a verdict. The smaller difference promises less.
        weaker = most
        notes.append(_both_changes(plain, most))

    return replace(compared, difference=weaker, verdict=Verdict.NOT_COMPARABLE, note=_joined(notes))


def _lacks_frames(compared: ComparedQuantity) -> bool:
    """Whether a side lacks frames that the SUT did not lose."""
    return any(one.share for side in compared.ends for one in side)


def _both_changes(plain: Difference, most: Difference) -> str:
    return (
        f"{format_change(plain.change)} as measured, {format_change(most.change)} if these frames "
        "had passed"
    )


def _joined(notes: Sequence[str]) -> str:
    return "; ".join(filter(None, notes))
