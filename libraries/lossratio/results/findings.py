"""What tables, comparisons and trends ask of results of all kinds: findings, what makes them comparable, doubts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pydantic import JsonValue

from lossratio.results.doubts import (
    Doubt,
    DoubtKind,
    drift_in,
    generator_drops,
    late_frames,
    testbed_changed,
    two_bands_in,
)
from lossratio.results.frame_integrity import FrameIntegrity, faults_with_sizes, integrity_of
from lossratio.results.kinds import view_of
from lossratio.results.model import Outcome, TestResult
from lossratio.results.view import Finding

FORCED = "resumed by force, although "
"""How a remark begins that says that a result was measured under conditions which changed on the way."""

_TRAFFIC_IN_OTHER_WORDS = {"name", "profile"}
"""What is in the traffic's other fields as well, and another version may put in other words."""

_TRIAL_DURATION = "trial duration"
_DIGEST_LENGTH = 16


def findings_of(results: Iterable[TestResult]) -> Iterator[Finding]:
    """The findings of some results, in their order."""
    for place, result in enumerate(results, start=1):
        for finding in view_of(result).findings(result):
            yield replace(finding, place=place)


def aspects_of(finding: Finding) -> dict[str, JsonValue]:
    """What must be the same for two values to mean the same, by what people call it."""
    result = finding.result
    conditions = result.conditions
    return {
        "traffic profile": conditions.traffic.model_dump(mode="json", exclude=_TRAFFIC_IN_OTHER_WORDS),
        "directions": conditions.load.model_dump(mode="json"),
        "traffic path": list(conditions.testbed.path),
        "kind of measurement": result.kind,
        "goal": None,
        _TRIAL_DURATION: None,
        **view_of(result).aspects(result, finding),
    }


def differing_aspects(findings: Sequence[Finding]) -> list[str]:
    """The aspects in which some findings differ; an aspect that was not recorded, or is empty, says nothing."""
    all_aspects = [aspects_of(finding) for finding in findings]
    differing = []
    for name in all_aspects[0]:
        known = [aspects[name] for aspects in all_aspects if aspects.get(name)]
        if any(value != known[0] for value in known):
            differing.append(name)
    return differing


def digest_of(finding: Finding) -> str:
    """The same for values that mean the same, and for no others, whatever their tests are called."""
    # A measurement that failed may have no trial, and is of the same kind as those that did not.
    aspects = {name: value for name, value in aspects_of(finding).items() if name != _TRIAL_DURATION}
    text = json.dumps(aspects, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]


def caveats_of(finding: Finding) -> list[str]:
    """What a reader of a value has to know, as the number does not show it."""
    result = finding.result
    caveats = [] if finding.reason is None else [f"{finding.outcome.value}: {finding.reason}"]
    caveats += view_of(result).caveats(result)
    if finding.outcome is not Outcome.FAILED:
        caveats += [remark for remark in result.remarks if remark.startswith(FORCED)]
    return caveats


def is_too_slow(finding: Finding) -> bool:
    """Whether not even the minimum load was forwarded as the goal asks for."""
    return view_of(finding.result).is_too_slow(finding.result, finding)


def is_at_limit(finding: Finding) -> bool:
    """Whether the value is only the most that could be offered: the SUT may forward more."""
    return view_of(finding.result).is_at_limit(finding.result, finding)


def doubts_of(results: Sequence[TestResult]) -> list[tuple[Doubt, ...]]:
    """The doubts about each of the results of one run, in their order.

    Args:
        results: The results; doubts that need two of them (MRR below PDR) are with the MRR.
    """
    return [tuple(_doubts(result, results)) for result in results]


def _doubts(result: TestResult, results: Sequence[TestResult]) -> Iterator[Doubt]:
    view = view_of(result)
    trials = [trial for trial in result.trials if trial.is_evidence]
    late = late_frames(trials, result.late_frames or 0)
    of_generator = (generator_drops(trials), view.stalls(result, trials))
    for doubt in (drift_in(trials), two_bands_in(trials), late, *of_generator, testbed_changed(trials)):
        if doubt is not None:
            yield doubt
    seen = integrity_of(result)
    if seen is not None and seen.faults:
        yield Doubt(DoubtKind.INTEGRITY, _integrity(seen))
    yield from view.doubts(result, results)


def _integrity(seen: FrameIntegrity) -> str:
    if seen.before_trials:
        return (
            f"of {seen.examined:,} frames examined before the first trial: {faults_with_sizes(seen)}; in trials frames "
            "are counted only, and so many copies may make up for lost ones"
        )
    examined = f"{seen.examined:,}" if seen.is_sample else "all"
    return f"of {seen.arrived:,} frames that came back, {examined} of them examined: {faults_with_sizes(seen)}"
