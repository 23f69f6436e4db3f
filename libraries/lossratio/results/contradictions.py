"""Finds contradictions in a result: computes all derived numbers of its file again, and compares them.

So a result with changed numbers is refused, even if its digest (`lossratio.trials.digest`) fits. A critical load is not
computed again because that takes long: only its cheap parts are compared.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from lossratio.errors import LossRatioError
from lossratio.results.kinds import kind_of
from lossratio.results.model import TestResult
from lossratio.trials import TrialResult, contradictions
from lossratio.values import Rate, Record

ROUNDING = 1e-9
"""Numbers with at most this relative difference are equal: they differ by the rounding of floats."""
_LEAST = 1e-15
"""Numbers below this count as zero, because they are rounding errors."""


def contradictions_of(result: TestResult) -> Iterator[str]:
    """Finds the contradictions in a result; each begins with its place in the file."""
    try:
        kind = kind_of(result.kind)
        trials = [trial.as_result() for trial in result.trials]
        yield from _trials(result, trials)
        # Trials and conditions hold no rates whose units could contradict each other.
        for name in sorted(type(result).model_fields.keys() - {"conditions", "trials"}):
            for place, rate in _rates_in(getattr(result, name), name):
                yield from differences(rate, result.conditions.rate(rate.per_interface_fps), place)
        yield from kind.wrong_evidence(result, trials)
        yield from kind.contradictions(result, trials)
    # Impossible numbers can make any of these computations fail.
    except (LossRatioError, ValueError, ArithmeticError) as error:
        yield str(error)


def _trials(result: TestResult, trials: Sequence[TrialResult]) -> Iterator[str]:
    for number, (trial, trial_result) in enumerate(
        zip(result.trials, trials, strict=True), start=1
    ):
        if trial.number != number:
            yield (
                f"trials: number {trial.number} is in place {number}; some are missing, repeated "
                "or out of order"
            )
            return

        for problem in contradictions(trial_result.output):
            yield f"trial {number}: {problem}"
        lost = trial_result.loss_ratio
        if trial_result.is_early and trial.sent_frames:
            # Its loss ratio is a share of the whole trial's frames.
            lost = min(1.0, (trial.lost_frames or 0) / trial.sent_frames)

        forwarded = trial_result.load * (1.0 - lost)
        if trial.directions and not same_value(trial.forwarding_rate_per_interface_fps, forwarded):
            yield (
                f"trial {number}: forwarding_rate_per_interface_fps is {trial.forwarding_rate_per_interface_fps!r}, "
                f"but load and loss ratio give {forwarded!r}"
            )


def _rates_in(value: object, name: str) -> Iterator[tuple[str, Rate]]:
    if isinstance(value, Rate):
        yield name, value
    elif isinstance(value, Record):
        for part in type(value).model_fields:
            yield from _rates_in(getattr(value, part), f"{name}.{part}")
    elif isinstance(value, tuple):
        for index, part in enumerate(value):
            yield from _rates_in(part, f"{name}[{index}]")


def differences(said: Record, made: Record, name: str) -> Iterator[str]:
    """Finds the differences between a record in a file and the same record, computed from its source."""
    if said != made:
        yield from _unequal(said.model_dump(), made.model_dump(), name)


def _unequal(said: Any, made: Any, name: str) -> Iterator[str]:
    if isinstance(made, dict) and isinstance(said, dict) and said.keys() == made.keys():
        for key in made:
            yield from _unequal(said[key], made[key], f"{name}.{key}")
    elif isinstance(made, tuple) and isinstance(said, tuple) and len(said) == len(made):
        for index, (said_item, made_item) in enumerate(zip(said, made, strict=True)):
            yield from _unequal(said_item, made_item, f"{name}[{index}]")
    elif not same_value(said, made):
        yield f"{name} is {said!r}, but what was measured gives {made!r}"


def same_value(said: Any, made: Any) -> bool:
    """Whether two values are equal, apart from rounding."""
    if isinstance(said, float) and isinstance(made, float):
        return math.isclose(said, made, rel_tol=ROUNDING, abs_tol=_LEAST)
    return bool(said == made)
