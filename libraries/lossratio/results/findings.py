"""The findings of results of all kinds: their aspects, caveats and notes, and the message of a test."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from pydantic import JsonValue

from lossratio.results.device import what_differs
from lossratio.results.losses import LossPlaces
from lossratio.results.model import Outcome, TestResult
from lossratio.results.note import SHOWN, Note, NoteKind, Weight, as_text
from lossratio.results.quantity import Finding
from lossratio.results.trials import Trial
from lossratio.results.view import view_of

_TRAFFIC_IN_OTHER_WORDS = {"name", "profile"}
"""Fields that repeat other fields of the traffic in words, which can differ between versions."""
_TRIAL_DURATION = "trial duration"
_GOAL = "goal"
_UNIT = "unit"
_DEVICE = "device"
_DIGEST_LENGTH = 16


def findings_of(results: Iterable[TestResult]) -> Iterator[Finding]:
    """The findings of the results, in the order of the results, with their units.

    Raises:
        ReportError: If the kind of a result is missing or broken, or gives a value that does not fit its unit.
    """
    for number, result in enumerate(results, start=1):
        yield from view_of(result).quantities(result, number)


def aspects_of(finding: Finding) -> dict[str, JsonValue]:
    """The aspects that must be equal for two values to mean the same, by their names in reports."""
    result = finding.result
    conditions = result.conditions
    # Record: the aspects of all kinds; the view of a kind replaces those that it knows better.
    return {
        "traffic profile": conditions.traffic.model_dump(
            mode="json", exclude=_TRAFFIC_IN_OTHER_WORDS
        ),
        "directions": conditions.load.model_dump(mode="json"),
        "traffic path": list(conditions.testbed.path),
        _DEVICE: conditions.measured_on,
        "kind of measurement": result.kind,
        _UNIT: finding.unit.name,
        _GOAL: None,
        _TRIAL_DURATION: None,
        **view_of(result).aspects(result, finding),
    }


def differing_aspects(findings: Sequence[Finding]) -> list[str]:
    """The names of aspects in which the findings differ; a missing or empty aspect is not compared."""
    all_aspects = [aspects_of(finding) for finding in findings]
    differing = []
    for name in all_aspects[0]:
        known_values = [aspects[name] for aspects in all_aspects if aspects.get(name)]
        others = [value for value in known_values if value != known_values[0]]
        if others and name == _DEVICE:
            differing.append(f"{name} ({what_differs(str(known_values[0]), str(others[0]))})")
        elif others and name == _GOAL:
            differing += _parts_of_goals(known_values[0], others[0])
        elif others:
            differing.append(name)
    return differing


def _parts_of_goals(one: JsonValue, other: JsonValue) -> Iterator[str]:
    """What differs in two goals, for people: a search has goals by their names, other kinds only have such settings."""
    if (
        not isinstance(one, dict)
        or not isinstance(other, dict)
        or "name" in one
        or "loss_ratio" in one
    ):
        yield _GOAL
        return
    for field in (name for name in one | other if one.get(name) != other.get(name)):
        name = re.sub(r"_(per_interface_fps|frames|s)$", "", field)
        yield name.replace("_", " ")


FindingsOfTests: TypeAlias = Mapping[tuple[str, str], Sequence[Finding]]
"""Findings by the names of test and quantity."""


def apart_by_device(
    before: FindingsOfTests, after: FindingsOfTests
) -> tuple[dict[tuple[str, str], list[Finding]], dict[tuple[str, str], list[Finding]]]:
    """The findings of two sides, separated by device if both sides have measured a quantity on it.

    All other findings of a quantity stay together: its device was replaced.
    """
    divided: tuple[dict[tuple[str, str], list[Finding]], ...] = ({}, {})
    for key in dict.fromkeys((*before, *after)):
        sides = [before.get(key, ()), after.get(key, ())]
        devices = [{one.result.conditions.measured_on for one in side} for side in sides]
        is_one = len(devices[0] | devices[1]) <= 1
        common = frozenset() if is_one else devices[0] & devices[1]
        for found, findings in zip(divided, sides, strict=True):
            for finding in findings:
                device = finding.result.conditions.measured_on
                quantity = f"{key[1]} ({device})" if device in common else key[1]
                found.setdefault((key[0], quantity), []).append(finding)
    return divided[0], divided[1]


def digest_of(finding: Finding) -> str:
    """A key that is equal for values with the same meaning, and only for them; tests and devices do not matter."""
    # A failed measurement may have no trial, but its key must be the key of measurements that succeeded.
    left_out = {_TRIAL_DURATION, _DEVICE}
    aspects = {name: value for name, value in aspects_of(finding).items() if name not in left_out}
    text = json.dumps(aspects, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]


def caveats_of(finding: Finding) -> list[str]:
    """Caveats of a value: facts that its reader needs, and that the number does not show."""
    result = finding.result
    caveats = [] if finding.reason is None else [finding.outcome_in_words]
    if finding.outcome is not Outcome.FAILED:
        remarks = notes_of(result, (), Weight.REMARK, Weight.PROVENANCE)
        caveats += [note.text for note in remarks if note.kind is NoteKind.CAVEAT]
    return caveats


def loss_places_in(trials: Sequence[Trial], deciding: Iterable[float] = ()) -> LossPlaces | None:
    """Where the lost frames of trials are; None: no lost frame was located, nor its size counted.

    Args:
        trials: The trials of a measurement.
        deciding: The loads that decide its result, in frames per second per interface; empty: the smallest one at which
            frames were lost.
    """
    if not any(way.lost for trial in trials for way in trial.directions):
        return None
    # Imported here because of numpy, which most commands do without.
    from lossratio.results.loss_places import loss_places

    return loss_places(trials, deciding)


def notes_of(
    result: TestResult, results: Sequence[TestResult] = (), *weights: Weight
) -> tuple[Note, ...]:
    """What a result says besides its numbers, the heaviest first.

    Args:
        result: The result.
        results: The results of its run, because some doubts need two of them; empty: only this one.
        weights: The weights of the notes; none: all.
    """
    return view_of(result).notes(result, results or [result], *weights)


def doubts_of(results: Sequence[TestResult]) -> list[tuple[Note, ...]]:
    """The doubts about each result of one run, in their order; a doubt that needs two results belongs to the MRR."""
    return [notes_of(result, results, Weight.DOUBT) for result in results]


def message(result: TestResult, results: Sequence[TestResult] = ()) -> str:
    """The message of a Robot test: a few lines of plain text with everything except the provenance.

    Every number has its unit and the name of its quantity beside it, so that each line makes sense alone.
    """
    return as_text(notes_of(result, results, *SHOWN))


def provenance(result: TestResult) -> str:
    """How a result was measured, in lines that pages fold; empty: there is nothing to say."""
    return as_text(notes_of(result, (), Weight.PROVENANCE))
