"""What must be the same for two values to mean the same, and what a reader of a value has to know besides."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from pydantic import JsonValue

from lossratio.mlrsearch import IrregularReason
from lossratio.results.findings import Finding
from lossratio.results.model import MrrResult, Outcome, Result, SoakResult, ThroughputResult
from lossratio.results.mrr import NOTHING_LOST
from lossratio.results.soak import SoakLimit
from lossratio.results.verdict import GENERATOR_LIMIT

FORCED = "resumed by force, although "
"""How a remark begins that says that a result was measured under conditions which changed on the way."""

_TRAFFIC_IN_OTHER_WORDS = {"name", "profile"}
"""What is in the traffic's other fields as well, and may be told otherwise by another version."""

_TRIAL_DURATION = "trial duration"
_DIGEST_LENGTH = 16


def aspects_of(finding: Finding) -> dict[str, JsonValue]:
    """What must be the same for two values to mean the same, by what people call it."""
    result = finding.result
    conditions = result.conditions
    return {
        "traffic profile": conditions.traffic.model_dump(mode="json", exclude=_TRAFFIC_IN_OTHER_WORDS),
        "directions": conditions.load.model_dump(mode="json"),
        "traffic path": list(conditions.testbed.path),
        "kind of measurement": result.kind,
        "goal": _goal(finding),
        _TRIAL_DURATION: _trial_durations(result),
    }


def differing_aspects(findings: Sequence[Finding]) -> list[str]:
    """The aspects in which some findings differ; what was not recorded, or is empty, says nothing."""
    all_aspects = [aspects_of(each) for each in findings]
    found = []
    for name in all_aspects[0]:
        known = [aspects[name] for aspects in all_aspects if aspects[name]]
        if any(value != known[0] for value in known):
            found.append(name)
    return found


def digest_of(finding: Finding) -> str:
    """Tells values that mean the same from others, whatever their tests are called."""
    # A measurement that failed may have no trial, and is of the same kind as those that did not.
    aspects = {name: value for name, value in aspects_of(finding).items() if name != _TRIAL_DURATION}
    text = json.dumps(aspects, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]


def caveats_of(finding: Finding) -> list[str]:
    """What a reader of a value has to know, as the number does not show it."""
    result = finding.result
    found = [] if finding.reason is None else [f"{finding.outcome.value}: {finding.reason}"]
    if isinstance(result, MrrResult) and result.mrr is not None and result.mrr.lost_frames == 0:
        found.append(NOTHING_LOST)
    if finding.outcome is not Outcome.FAILED:
        found += [remark for remark in result.remarks if remark.startswith(FORCED)]
    return found


def is_too_slow(finding: Finding) -> bool:
    """Whether not even the minimum load was forwarded as it was asked for."""
    return finding.value is None and finding.reason == IrregularReason.MIN_LOAD_IS_UPPER_BOUND.value


def is_at_limit(finding: Finding) -> bool:
    """Whether the value is only the most that could be offered: the SUT may forward more."""
    result = finding.result
    if isinstance(result, SoakResult):
        found = result.critical_load
        return found is not None and not found.misfit and found.limit is SoakLimit.AT_LEAST
    return finding.reason in (IrregularReason.MAX_LOAD_IS_LOWER_BOUND.value, GENERATOR_LIMIT)


def _goal(finding: Finding) -> JsonValue:
    result = finding.result
    if isinstance(result, ThroughputResult):
        goal = next(each.goal for each in result.goals if each.goal.name == finding.quantity)
        return goal.model_dump(mode="json", exclude={"name"})
    if isinstance(result, MrrResult):
        return {"load_per_interface_fps": result.max_load.rate.per_interface_fps}
    return {"target_loss_ratio": result.target_loss_ratio} if isinstance(result, SoakResult) else None


def _trial_durations(result: Result) -> JsonValue:
    """Those of a maximum receive rate, which bursts change; a goal has its own, in seconds."""
    if not isinstance(result, MrrResult):
        return None
    return [*sorted({trial.duration_s for trial in result.trials if trial.is_evidence})]
