"""The common face of results of all kinds for tables, comparisons and trends: findings, their aspects, doubts."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from lossratio.errors import ReportError
from lossratio.records import Rate
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
from lossratio.results.view import Finding, View
from lossratio.units import FRAMES_PER_SECOND

FORCED = "resumed by force, although "
"""Beginning of the remark that the conditions changed during the measurement of a result."""

_TRAFFIC_IN_OTHER_WORDS = {"name", "profile"}
"""Fields that repeat other fields of the traffic in words, and whose words can differ between versions."""

_TRIAL_DURATION = "trial duration"
_UNIT = "unit"
_DIGEST_LENGTH = 16


def findings_of(results: Iterable[TestResult]) -> Iterator[Finding]:
    """The findings of the results, in the order of the results, with their units.

    Raises:
        ReportError: If the kind of a result is missing or broken, or gives a value that does not fit its unit.
    """
    for place, result in enumerate(results, start=1):
        view = view_of(result)
        for finding in view.findings(result):
            yield _with_unit(replace(finding, place=place), view)


def _with_unit(finding: Finding, view: View[Any]) -> Finding:
    """Fills in the unit of a finding, and checks that its values are in it."""
    unit = view.unit(finding.quantity)
    is_rate = unit == FRAMES_PER_SECOND
    for value in (finding.value, finding.lower_bound, finding.upper_bound, finding.deviation):
        if value is None or (isinstance(value, Rate) if is_rate else _is_number(value)):
            continue
        wanted = "a lossratio.records.Rate" if is_rate else "a finite number from 0"
        raise ReportError(
            f"The kind of measurement {finding.result.kind!r} is broken: {finding.quantity!r} is in {unit.name}, so a "
            f"value must be {wanted}, and one is {value!r}. The method 'unit' of its view names the unit."
        )
    return replace(finding, unit=unit)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0.0


def aspects_of(finding: Finding) -> dict[str, JsonValue]:
    """The aspects that must be equal for two values to mean the same, by the aspect's name in reports."""
    result = finding.result
    conditions = result.conditions
    return {
        "traffic profile": conditions.traffic.model_dump(mode="json", exclude=_TRAFFIC_IN_OTHER_WORDS),
        "directions": conditions.load.model_dump(mode="json"),
        "traffic path": list(conditions.testbed.path),
        "kind of measurement": result.kind,
        _UNIT: finding.unit.name,
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
    left_out = {_TRIAL_DURATION}
    if finding.unit == FRAMES_PER_SECOND:
        # Earlier versions wrote keys without units, and had no other unit.
        left_out.add(_UNIT)
    aspects = {name: value for name, value in aspects_of(finding).items() if name not in left_out}
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
