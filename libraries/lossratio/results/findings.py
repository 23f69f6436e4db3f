"""The common face of results of all kinds for tables, comparisons and trends: findings, their aspects, doubts."""

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
"""Beginning of the remark that the conditions changed during the measurement of a result."""

_TRAFFIC_IN_OTHER_WORDS = {"name", "profile"}
"""Fields that repeat other fields of the traffic in words, and whose words can differ between versions."""

_TRIAL_DURATION = "trial duration"
_DIGEST_LENGTH = 16


def findings_of(results: Iterable[TestResult]) -> Iterator[Finding]:
    """The findings of the results, in the order of the results."""
    for place, result in enumerate(results, start=1):
        for finding in view_of(result).findings(result):
            yield replace(finding, place=place)


def aspects_of(finding: Finding) -> dict[str, JsonValue]:
    """The aspects that must be equal for two values to mean the same, by the aspect's name in reports."""
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
    """The names of aspects in which the findings differ; a missing or empty aspect is not compared."""
    all_aspects = [aspects_of(finding) for finding in findings]
    differing = []
    for name in all_aspects[0]:
        known_values = [aspects[name] for aspects in all_aspects if aspects.get(name)]
        if any(value != known_values[0] for value in known_values):
            differing.append(name)
    return differing


def digest_of(finding: Finding) -> str:
    """A key that is equal for values with the same meaning, and only for these; the tests' names do not matter."""
    # A failed measurement may have no trial, but its key must be that of measurements that succeeded.
    aspects = {name: value for name, value in aspects_of(finding).items() if name != _TRIAL_DURATION}
    text = json.dumps(aspects, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]


def caveats_of(finding: Finding) -> list[str]:
    """Caveats of a value: facts that its reader needs, and that the number does not show."""
    result = finding.result
    caveats = [] if finding.reason is None else [f"{finding.outcome.value}: {finding.reason}"]
    caveats += view_of(result).caveats(result)
    if finding.outcome is not Outcome.FAILED:
        caveats += [remark for remark in result.remarks if remark.startswith(FORCED)]
    return caveats


def is_too_slow(finding: Finding) -> bool:
    """Whether not even the minimum load meets the goal."""
    return view_of(finding.result).is_too_slow(finding.result, finding)


def is_at_limit(finding: Finding) -> bool:
    """Whether the maximum load limited the value: the SUT may forward more."""
    return view_of(finding.result).is_at_limit(finding.result, finding)


def doubts_of(results: Sequence[TestResult]) -> list[tuple[Doubt, ...]]:
    """The doubts about each result of one run, in the order of the results.

    Args:
        results: The results; a doubt that needs two of them (MRR below PDR) belongs to the MRR.
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
    integrity = integrity_of(result)
    if integrity is not None and integrity.faults:
        yield Doubt(DoubtKind.INTEGRITY, _integrity(integrity))
    yield from view.doubts(result, results)


def _integrity(seen: FrameIntegrity) -> str:
    if seen.before_trials:
        return (
            f"of {seen.examined:,} frames examined before the first trial: {faults_with_sizes(seen)}; in trials frames "
            "are counted only, and so many copies may make up for lost ones"
        )
    examined = f"{seen.examined:,}" if seen.is_sample else "all"
    return f"of {seen.arrived:,} frames that came back, {examined} of them examined: {faults_with_sizes(seen)}"
