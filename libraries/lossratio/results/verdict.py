"""Whose limit a search found: the SUT's, or only the generator's.

A controller knows loss ratios. Frames that the generator could not send are in them, and so are frames that came back
and were dropped inside it. So before a goal result is reported, its bounds are looked at again without those frames.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lossratio.mlrsearch import Bound, GoalResult, IrregularReason, classify
from lossratio.results.conditions import LoadOrigin
from lossratio.trials import TrialOutput, TrialResult

GENERATOR_LIMIT = "the generator's limit, not the SUT's"
"""The reason of a result that frames which the generator could not send, or dropped itself, bounded from above."""

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

    A goal result is the generator's limit if its relevant upper bound would be none had only those frames counted that
    the generator did send, and did not drop when they came back; or if even the maximum load is a lower bound, and that
    is the most the generator can send.

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
    return classify(result.goal, [_without_generators_faults(trial) for trial in at_upper]) is not Bound.UPPER


def _without_generators_faults(trial: TrialResult) -> TrialResult:
    """The trial as if its load had been what the generator sent, and all that came back had been counted."""
    sent, lost = trial.output.sent_frames, trial.output.lost_frames
    dropped = dropped_by_generator(trial.output)
    if sent is None or lost is None or not (trial.output.unsent_frames or dropped):
        return trial
    loss_ratio = min(1.0, max(0, lost - dropped) / sent) if sent else 0.0
    return replace(trial, output=replace(trial.output, loss_ratio=loss_ratio, sent_frames=None))


def dropped_by_generator(output: TrialOutput) -> int:
    """Frames among those lost that came back and were dropped inside the generator: no more than a direction lost."""
    return sum(max(0, min(each.generator_drops, each.sent - each.received)) for each in output.directions)
