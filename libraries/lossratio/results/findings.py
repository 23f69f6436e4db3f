"""The common face of results of all kinds: the message of a test, and findings, their aspects and doubts.

In a message, every number has its unit and the name of its quantity beside it, so that each line can be read alone.
"""

import hashlib
import html
import json
import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pydantic import JsonValue

from lossratio.errors import ReportError
from lossratio.records import Rate
from lossratio.results import doubts
from lossratio.results.conditions import MaxLoad
from lossratio.results.frame_integrity import (
    changed_fields_in,
    faults_with_sizes,
    integrity_lines,
    integrity_of,
)
from lossratio.results.identity import what_differs
from lossratio.results.kinds import view_of
from lossratio.results.model import MEMORY_REMARK, Outcome, TestResult
from lossratio.results.trials import STALL
from lossratio.results.view import Finding, shown_in
from lossratio.trials import changes_in_words
from lossratio.units import (
    FRAMES_PER_SECOND,
    Unit,
    format_bit_rate,
    format_frame_rate,
    trials_counted,
)

_LABEL_WIDTH = len("conditional throughput")
FORCED = "resumed by force, although "
"""Beginning of the remark that the conditions changed during the measurement of a result."""
_TRAFFIC_IN_OTHER_WORDS = {"name", "profile"}
"""Fields that repeat other fields of the traffic in words, and whose words can differ between versions."""
_TRIAL_DURATION = "trial duration"
_UNIT = "unit"
_DEVICE = "device"
_DIGEST_LENGTH = 16
_COLUMNS = 100


def message(result: TestResult) -> str:
    """The message of a Robot test: a few lines of plain text with the result and its caveats."""
    lines = (
        view_of(result).lines(result)
        if result.error is None
        else [f"failed, no result: {result.error}"]
    )
    values = shown_in(result) if result.error is None else ()
    return "\n".join(
        (
            *lines,
            *(value_line(shown.quantity, value, shown.unit) for shown, value in values),
            *_closing_lines(result),
        )
    )


def in_columns(text: str) -> str:
    """Text with its longer lines in several, as the console of a CI system neither wraps nor shows more columns."""
    rows = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        rows += textwrap.wrap(
            line, _COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]
    return "\n".join(rows)


def findings_html(result: TestResult) -> str:
    """The quantities of a result as a table, for notebooks: plain HTML without style."""
    rows = []
    for finding in findings_of([result]):
        bounds = (finding.lower_bound, finding.upper_bound)
        low, high = (
            bound.per_interface_fps if isinstance(bound, Rate) else None for bound in bounds
        )
        interval = "" if low is None and high is None else format_interval(low, high)
        rows.append((finding.quantity, finding.in_short, interval, finding.reason or ""))

    head = ("quantity", "value per interface", "bounds per interface", "reason")
    used = [column for column in range(len(head)) if any(row[column] for row in rows)]
    lines = [
        f"<tr>{''.join(f'<{tag}>{html.escape(row[column])}</{tag}>' for column in used)}</tr>"
        for tag, row in (("th", head), *(("td", row) for row in rows))
    ]
    name = html.escape(
        f"{result.test.name}: {result.outcome.value}, {trials_counted(len(result.trials))}"
    )

    return f"<table><caption>{name}</caption>{''.join(lines)}</table>"


def format_frames_per_second(rate: float) -> str:
    """Formats a frame rate to the last digit that matters, without a unit prefix, e.g. ``14,880,952 fps``."""
    return f"{rate:,.{0 if rate >= 10_000 else 2}f} fps"


def format_interval(least: Rate | float | None, most: Rate | float | None) -> str:
    """Formats the interval between two bounds, per interface.

    Examples are ``149.77 to 150.52 kfps``, ``from 200.00 kfps`` and ``below 9.0010 kfps``.
    """
    lower, upper = (
        bound.per_interface_fps if isinstance(bound, Rate) else bound for bound in (least, most)
    )
    if lower is not None and upper is not None and lower < upper:
        low, high = format_frame_rate(lower), format_frame_rate(upper)
        return f"{low.split()[0] if low.split()[1] == high.split()[1] else low} to {high}"
    if lower is not None:
        return f"from {format_frame_rate(lower)}"
    return "no bounds" if upper is None else f"below {format_frame_rate(upper)}"


def value_line(label: str, value: Rate | float | str | None, unit: Unit = FRAMES_PER_SECOND) -> str:
    """Formats a line with a value, aligned with other such lines; a rate is in all its units, words are as they are."""
    if isinstance(value, Rate):
        value = (
            f"{format_frames_per_second(value.per_interface_fps):>14} per interface"
            f" {format_frames_per_second(value.aggregate_fps):>15} aggregate, "
            f"L1 {format_bit_rate(value.aggregate_l1_bps)}"
        )
    elif not isinstance(value, str):
        value = "none" if value is None else unit.format(value)
    return f"  {label:<{_LABEL_WIDTH}}  {value}"


def load_per_interface(load: MaxLoad) -> str:
    """Formats a maximum load, e.g. ``400,000 fps per interface``."""
    return f"{format_frames_per_second(load.rate.per_interface_fps)} per interface"


def _closing_lines(result: TestResult) -> Iterator[str]:
    load = result.conditions.load
    links = result.conditions.testbed.links
    over = f" over {links} parallel links" if links > 1 else ""
    yield (
        f"Aggregate is per interface x {load.aggregate_factor:g} ({load.directions_in_words}){over}; "
        f"frames of {result.conditions.traffic.average_frame_size_bytes:.6g} bytes on average; "
        f"{trials_counted(len(result.trials))} in {sum(trial.elapsed_s for trial in result.trials):.1f} s."
    )
    if result.max_load.limits:
        yield f"Maximum load from: {result.max_load.origin.value}. Limits: {'; '.join(result.max_load.limits)}."
    short = [trial.unsent_frames for trial in result.trials if trial.unsent_frames]
    if short:
        yield f"The generator could not send {sum(short):,} frames in {len(short)} of the trials."
    dropped = [frames for trial in result.trials if (frames := trial.missing.generator_drops)]

    if dropped:
        yield (
            f"The generator dropped {sum(dropped):,} frames that came back, in {len(dropped)} of the trials: the SUT "
            "did not lose them."
        )

    reasons = [trial.set_aside for trial in result.trials if trial.set_aside is not None]
    if reasons:
        yield (
            f"Set aside, and no evidence about the SUT: {len(reasons)} of the trials (the last of them because "
            f"{reasons[-1]})."
        )

    stalled = [trial.lateness_s for trial in result.trials if trial.lateness_s > STALL]
    if stalled:
        yield (
            f"The generator was stalled for up to {max(stalled) * 1e3:.3g} ms, in {len(stalled)} of the trials; "
            "what it made up for was a burst."
        )

    if stalled and short:
        yield "With less other work on its machine, or a larger catch_up in its topology file, it would send more."
    yield from integrity_lines(result)
    repeats = sum(trial.repeats for trial in result.trials)
    if repeats:
        because = "because the generator faltered or miscounted, or the testbed changed"
        yield f"Attempts that were measured again, {because}: {repeats}."

    repairs = sum(len(trial.repairs) for trial in result.trials)
    if repairs:
        yield f"Attempts to repair the infrastructure, before trials were measured again: {repairs}."
    for remark in result.remarks:
        yield f"Note: {remark}"


def findings_of(results: Iterable[TestResult]) -> Iterator[Finding]:
    """The findings of the results, in the order of the results, with their units.

    Raises:
        ReportError: If the kind of a result is missing or broken, or gives a value that does not fit its unit.
    """
    for number, result in enumerate(results, start=1):
        view = view_of(result)
        for finding in view.findings(result):
            yield _with_unit(replace(finding, number=number), view.unit(finding.quantity))
        for shown, value in shown_in(result):
            reason = result.error or getattr(result, "reason", None)
            yield _with_unit(
                Finding(result, shown.quantity, result.outcome, reason, value, number=number),
                shown.unit,
            )


def _with_unit(finding: Finding, unit: Unit) -> Finding:
    is_rate = unit == FRAMES_PER_SECOND
    for value in (finding.value, finding.lower_bound, finding.upper_bound, finding.deviation):
        is_number = isinstance(value, int | float) and math.isfinite(value) and value >= 0.0
        if value is not None and not (isinstance(value, Rate) if is_rate else is_number):
            wanted = "a lossratio.records.Rate" if is_rate else "a finite number from 0"
            raise ReportError(
                f"The kind of measurement {finding.result.kind!r} is broken: {finding.quantity!r} is in {unit.name}, "
                f"so a value must be {wanted}, and one is {value!r}. Its view (`unit`), or the field (`Shown`), names "
                "the unit."
            )
    return replace(finding, unit=unit)


def aspects_of(finding: Finding) -> dict[str, JsonValue]:
    """The aspects that must be equal for two values to mean the same, by the aspect's name in reports."""
    result = finding.result
    conditions = result.conditions
    return {
        "traffic profile": conditions.traffic.model_dump(
            mode="json", exclude=_TRAFFIC_IN_OTHER_WORDS
        ),
        "directions": conditions.load.model_dump(mode="json"),
        "traffic path": list(conditions.testbed.path),
        _DEVICE: conditions.measured_on,
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
        others = [value for value in known_values if value != known_values[0]]
        if others and name == _DEVICE:
            differing.append(f"{name} ({what_differs(str(known_values[0]), str(others[0]))})")
        elif others:
            differing.append(name)
    return differing


FindingsOfTests: TypeAlias = Mapping[tuple[str, str], Sequence[Finding]]
"""Findings by the names of test and quantity."""


def apart_by_device(
    before: FindingsOfTests, after: FindingsOfTests
) -> tuple[dict[tuple[str, str], list[Finding]], dict[tuple[str, str], list[Finding]]]:
    """The findings of two sides, apart for each device that both sides have measured a quantity on.

    All others of a quantity stay together: its device was replaced, or an earlier version did not say it.
    """
    divided: tuple[dict[tuple[str, str], list[Finding]], ...] = ({}, {})
    for key in dict.fromkeys((*before, *after)):
        sides = [before.get(key, ()), after.get(key, ())]
        devices = [{one.result.conditions.measured_on for one in side} for side in sides]
        is_one = len((devices[0] | devices[1]) - {None}) <= 1
        common = frozenset() if is_one else devices[0] & devices[1] - {None}
        for found, findings in zip(divided, sides, strict=True):
            for finding in findings:
                device = finding.result.conditions.measured_on
                quantity = f"{key[1]} ({device})" if device in common else key[1]
                found.setdefault((key[0], quantity), []).append(finding)
    return divided[0], divided[1]


def generator_of(result: TestResult) -> str | None:
    """The kind of the traffic generator of a result; None: the result does not say."""
    kind = result.conditions.generator.get("kind")
    return None if kind is None else str(kind)


def build_of(result: TestResult) -> str | None:
    """Kind and version of the DUTs, e.g. ``vpp 24.06``; of Linux itself the kernel's; None: not known."""
    return (
        ", ".join(dict.fromkeys(f"{kind} {version}" for kind, version in dut_versions(result)))
        or None
    )


def dut_versions(result: TestResult) -> Iterator[tuple[str, str]]:
    """Kind and version of each DUT whose version is known; of Linux itself the kernel's."""
    for name, dut in result.conditions.duts.items():
        node = result.conditions.nodes.get(str(dut.get("node") or name))
        version = dut.get("version") or (None if node is None else node.kernel)
        if version:
            yield str(dut.get("kind") or "DUT"), str(version)


def digest_of(finding: Finding) -> str:
    """A key that is equal for values with the same meaning, and only for these; tests and devices do not matter."""
    # A failed measurement may have no trial, but its key must be the key of measurements that succeeded.
    left_out = {_TRIAL_DURATION, _DEVICE}
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


def doubts_of(results: Sequence[TestResult]) -> list[tuple[doubts.Doubt, ...]]:
    """The doubts about each result of one run, in their order; one that needs two results belongs to the MRR."""
    return [doubts_about(result, results) for result in results]


def doubts_about(result: TestResult, results: Sequence[TestResult]) -> tuple[doubts.Doubt, ...]:
    """The doubts about one of the results of a run."""
    return tuple(_doubts(result, results))


def _doubts(result: TestResult, results: Sequence[TestResult]) -> Iterator[doubts.Doubt]:
    view = view_of(result)
    trials = [trial for trial in result.trials if trial.is_evidence]
    offered = (view.offered(result, finding) for finding in view.findings(result))
    unsent = doubts.unsent_frames(max(offered, key=doubts.unsent_share, default=()))
    before_frames = (unsent, doubts.time_dependence_in(trials), doubts.two_bands_in(trials))
    late = doubts.late_frames(trials, result.late_frames or 0)
    about_frames = doubts.doubts_about_frames(trials)
    yield from filter(
        None,
        (
            *before_frames,
            late,
            *about_frames,
            view.stalls(result, trials),
            doubts.testbed_changed(trials),
        ),
    )

    for remark in result.remarks:
        if remark.startswith(MEMORY_REMARK):
            yield doubts.Doubt(doubts.DoubtKind.MEMORY, remark)

    seen = integrity_of(result)
    if seen is not None and seen.faults:
        examined = f"{seen.examined:,}" if seen.is_sample else "all"
        text = f"of {seen.arrived:,} frames that came back, {examined} of them examined: {faults_with_sizes(seen)}"
        if seen.before_trials:
            text = (
                f"of {examined} frames examined before the first trial: {faults_with_sizes(seen)}; in trials frames "
                "are counted only, and so many copies may make up for lost ones"
            )

        changes = changes_in_words(changed_fields_in(result)).removesuffix(".")
        yield doubts.Doubt(doubts.DoubtKind.INTEGRITY, f"{text}. {changes}" if changes else text)

    yield from view.doubts(result, results)
