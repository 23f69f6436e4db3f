"""What cannot be true of a result: whatever is derived in its file is computed again, and compared.

So a result whose numbers were changed is refused, also where its file has no digest (`lossratio.trials.digest`). A
critical load takes too long to be computed again; of it only what is cheap is compared. Histograms take long to decode,
and are compared only where there is no digest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from lossratio.errors import LossRatioError
from lossratio.records import Rate, Record
from lossratio.results.kinds import kind_of
from lossratio.results.model import TestResult
from lossratio.trials import TrialResult, contradictions

ROUNDING = 1e-9
"""Numbers that differ by no more than this, relatively, are the same: versions of Python add up differently."""

_LEAST = 1e-15
"""Numbers below this are none: what is left of a rounding error."""


def contradictions_of(result: TestResult) -> Iterator[str]:
    """Finds what contradicts itself in a result.

    Args:
        result: The result, as it was read from a file.

    Returns:
        What is wrong, in words that begin with the place in the file; nothing where all numbers fit each other.
    """
    try:
        yield from _contradictions(result)
    # Whatever is computed with numbers that cannot be true may fail.
    except (LossRatioError, ValueError, ArithmeticError) as error:
        yield str(error)


def _contradictions(result: TestResult) -> Iterator[str]:
    kind = kind_of(result.kind)
    trials = [trial.as_result() for trial in result.trials]
    yield from _trials(result, trials)
    yield from _rates(result)
    yield from kind.wrong_evidence(result, trials)
    yield from kind.contradictions(result, trials)


def _trials(result: TestResult, trials: Sequence[TrialResult]) -> Iterator[str]:
    for place, (trial, known) in enumerate(zip(result.trials, trials, strict=True), start=1):
        if trial.number != place:
            yield f"trials: the one in place {place} has number {trial.number}; some are missing, doubled or swapped"
            return
        for problem in contradictions(known.output):
            yield f"trial {place}: {problem}"
        forwarded = known.load * (1.0 - known.loss_ratio)
        if trial.directions and not same_value(trial.forwarding_rate_per_interface_fps, forwarded):
            yield (
                f"trial {place}: forwarding_rate_per_interface_fps is {trial.forwarding_rate_per_interface_fps!r}, and "
                f"load and loss ratio make {forwarded!r}"
            )


def _rates(result: TestResult) -> Iterator[str]:
    """Rates whose units contradict each other; trials and conditions have none."""
    for name in sorted(type(result).model_fields.keys() - {"conditions", "trials"}):
        for place, rate in _rates_in(getattr(result, name), name):
            yield from differences(rate, result.conditions.rate(rate.per_interface_fps), place)


def _rates_in(value: object, name: str) -> Iterator[tuple[str, Rate]]:
    if isinstance(value, Rate):
        yield name, value
    elif isinstance(value, Record):
        for each in type(value).model_fields:
            yield from _rates_in(getattr(value, each), f"{name}.{each}")
    elif isinstance(value, tuple):
        for place, each in enumerate(value):
            yield from _rates_in(each, f"{name}[{place}]")


def differences(said: Record, made: Record, name: str) -> Iterator[str]:
    """Where a record is not what its source makes of it.

    Args:
        said: The record in a file.
        made: The record as it follows from what was measured.
        name: Its place in the file.
    """
    if said != made:
        yield from _unequal(said.model_dump(), made.model_dump(), name)


def _unequal(said: Any, made: Any, name: str) -> Iterator[str]:
    if isinstance(made, dict) and isinstance(said, dict) and said.keys() == made.keys():
        for key in made:
            yield from _unequal(said[key], made[key], f"{name}.{key}")
    elif isinstance(made, tuple) and isinstance(said, tuple) and len(said) == len(made):
        for place, (one, other) in enumerate(zip(said, made, strict=True)):
            yield from _unequal(one, other, f"{name}[{place}]")
    elif not same_value(said, made):
        yield f"{name} is {said!r}, and what was measured makes {made!r}"


def same_value(said: Any, made: Any) -> bool:
    """Whether two values are the same but for rounding."""
    if isinstance(said, float) and isinstance(made, float):
        return math.isclose(said, made, rel_tol=ROUNDING, abs_tol=_LEAST)
    return bool(said == made)
