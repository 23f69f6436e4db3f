"""Finds contradictions in a result: impossible counters of its trials, and rates whose units do not fit each other.

The numbers that follow from the trials are not computed again: the digest (`lossratio.trials.digest`) shows whether
the file was changed.
"""

import math
from collections.abc import Iterator, Sequence

from lossratio.errors import LossRatioError
from lossratio.records import Rate, Record
from lossratio.results.model import TestResult
from lossratio.trials import TrialResult, contradictions

ROUNDING = 1e-9
"""Numbers with at most this relative difference are equal: they differ by the rounding of floats."""
_LEAST = 1e-15
"""Numbers below this count as zero, because they are rounding errors."""


def contradictions_of(result: TestResult) -> Iterator[str]:
    """Finds the contradictions in a result; each begins with its place in the file."""
    try:
        trials = [trial.as_result() for trial in result.trials]
        yield from _trials(result, trials)
        # Trials and conditions hold no rates whose units could contradict each other.
        for name in sorted(type(result).model_fields.keys() - {"conditions", "trials"}):
            for place, rate in _rates_in(getattr(result, name), name):
                made = result.conditions.rate(rate.per_interface_fps)
                yield from _units(rate, made, place)
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
        if trial.directions and not _is_same(trial.forwarding_rate_per_interface_fps, forwarded):
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


def _units(said: Rate, made: Rate, name: str) -> Iterator[str]:
    """The units of a rate that differ from what its rate per interface makes."""
    for unit in type(said).model_fields:
        value, computed = getattr(said, unit), getattr(made, unit)
        if not _is_same(value, computed):
            yield f"{name}.{unit} is {value!r}, but its rate per interface gives {computed!r}"


def _is_same(said: float, made: float) -> bool:
    """Whether two numbers are equal, apart from rounding."""
    return math.isclose(said, made, rel_tol=ROUNDING, abs_tol=_LEAST)
