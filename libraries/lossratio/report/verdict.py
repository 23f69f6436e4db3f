"""Whose limit a search found: the SUT's, or only the generator's.

A controller knows loss ratios, and frames that the generator could not send are in them. So before a goal result is
reported, its bounds are looked at again without those frames.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lossratio.mlrsearch.classification import Bound, classify
from lossratio.mlrsearch.result import GoalResult, IrregularReason
from lossratio.report.conditions import LoadOrigin
from lossratio.trial import TrialResult

GENERATOR_LIMIT = "the generator's limit, not the SUT's"
"""The reason of a result that frames which the generator could not send have bounded from above."""

_ALSO_DUE_TO_THE_GENERATOR = (IrregularReason.MAX_LOAD_IS_LOWER_BOUND, IrregularReason.MIN_LOAD_IS_UPPER_BOUND)


@dataclass(frozen=True)
class Verdict:
    """What a goal result may be called in a report.

    Attributes:
        regular: Whether it is regular.
        reason: Why it is irregular; None if it is regular.
    """

    regular: bool
    reason: str | None


def judge(result: GoalResult, trials: Iterable[TrialResult], *, max_load_origin: LoadOrigin) -> Verdict:
    """Says whether a goal result is regular, and if not, why.

    A goal result is the generator's limit if its relevant upper bound would be none had only the frames counted that
    the generator did send; or if even the maximum load is a lower bound, and that is the most the generator can send.

    Args:
        result: What the search found.
        trials: All trials of the search that count, so without a warm-up.
        max_load_origin: Where the search's maximum load came from.
    """
    if not _is_generator_limit(result, trials, max_load_origin):
        return Verdict(result.regular, None if result.reason is None else str(result.reason))
    if result.reason is None or result.reason in _ALSO_DUE_TO_THE_GENERATOR:
        return Verdict(False, GENERATOR_LIMIT)
    return Verdict(False, f"{GENERATOR_LIMIT}; {result.reason}")


def _is_generator_limit(result: GoalResult, trials: Iterable[TrialResult], max_load_origin: LoadOrigin) -> bool:
    if result.reason is IrregularReason.MAX_LOAD_IS_LOWER_BOUND:
        return max_load_origin is LoadOrigin.GENERATOR
    upper = result.relevant_upper_bound
    at_upper = [trial for trial in trials if trial.load == upper]
    if not at_upper or classify(result.goal, at_upper) is not Bound.UPPER:
        return False
    return classify(result.goal, [_without_unsent(trial) for trial in at_upper]) is not Bound.UPPER


def _without_unsent(trial: TrialResult) -> TrialResult:
    """The trial as if its load had been what the generator sent."""
    sent, lost = trial.output.sent_frames, trial.output.lost_frames
    if sent is None or lost is None or not trial.output.unsent_frames:
        return trial
    loss_ratio = min(1.0, lost / sent) if sent else 0.0
    return replace(trial, output=replace(trial.output, loss_ratio=loss_ratio, sent_frames=None))
