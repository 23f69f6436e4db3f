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
            yield _with_verdict(
                one, plain, most, results.least_news(least_change, one.newest.resolution)
            )


def _at_most(compared: ComparedQuantity) -> Difference | None:
    """The difference of the upper ends of the values; None: there is no difference, or it is not known."""
    if compared.difference is None:
        return None
    before, after = compared.ends
    return difference_at_most(before, after, compared.newest.unit, compared.difference)


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
    # Whether one side's values are only lower bounds. A change from zero is infinite without such bounds.
    has_no_end = most is not None and math.isinf(most.change) and not math.isinf(plain.change)
    p_value = max(one.p_value or 0.0 for one in (plain, most) if one is not None)
    if plain_change is None and (most_change is None or has_no_end):
        return replace(compared, difference=plain, verdict=Verdict.UNCHANGED, p_value=p_value)

    # The smaller difference promises less.
    weaker = plain
    is_less = most is not None and abs(most.change) < abs(plain.change)
    if most is not None and is_less:
        weaker = most
    elif change is not None and has_no_end:
        weaker = replace(plain, interval=None, is_least=True)

    notes = [compared.note]
    if change is None:
        # Only one of the differences shows a change.
        verdict = Verdict.NOT_COMPARABLE
        notes.insert(
            0, "frames that the generator did not send or did not count may explain the difference"
        )
    else:
        # Missing frames that differ between runs are no spread of the values themselves.
        verdict = _OF_CHANGES[
            compared.newest.unit.is_better(change), NO_SPREAD in (plain.test, weaker.test)
        ]
        is_less = change != plain.change and any(
            one.share for ends in compared.ends for one in ends
        )
    if is_less:
        notes.append(
            f"{format_change(plain.change)} as measured, {format_change(weaker.change)} if these frames had passed"
        )

    note = "; ".join(filter(None, notes))
    return replace(compared, difference=weaker, verdict=verdict, note=note, p_value=p_value)


_OF_CHANGES = {
    (False, False): Verdict.REGRESSION,
    (False, True): Verdict.SEEMS_WORSE,
    (True, False): Verdict.PROGRESSION,
    (True, True): Verdict.SEEMS_BETTER,
}
"""The verdicts on changes: whether it is better, and whether nothing shows how much the values vary by chance."""
