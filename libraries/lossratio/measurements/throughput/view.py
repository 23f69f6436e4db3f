"""The view of a search for conditional throughput: in words, pictures and tables, and in CSIT's form."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from pydantic import JsonValue

from lossratio import mlrsearch
from lossratio.drawing import html_fragment
from lossratio.measurements import CsitExportError, csit_rate
from lossratio.measurements.latency.result import format_microseconds, latency_lines, latency_points
from lossratio.measurements.latency.view import (
    csit_latencies,
    latency_over_load_picture,
    latency_picture,
)
from lossratio.measurements.telemetry import telemetry_doubts
from lossratio.measurements.throughput.bounds import bounds_history
from lossratio.measurements.throughput.later_trials import LEAST_CHANGE, doubts_of_later_trials
from lossratio.measurements.throughput.limits import (
    is_bound_of_others,
    is_generators_limit,
    is_least,
    level_in_words,
)
from lossratio.measurements.throughput.rest import is_about_rest, rest_answers_in
from lossratio.measurements.throughput.result import (
    GoalSpread,
    GoalsResult,
    SequentialRule,
    ZoneOfChance,
    format_regularity,
    search_goal,
)
from lossratio.measurements.throughput.search_picture import (
    draw_loss,
    draw_search,
    draw_spectra,
    search_chart,
)
from lossratio.measurements.throughput.sentence import sentences
from lossratio.measurements.throughput.settings import EARLY_VERDICT
from lossratio.measurements.throughput.sweeps import (
    core_sweeps,
    draw_cores,
    draw_frame_sizes,
    size_sweeps,
)
from lossratio.records import Rate, Record
from lossratio.results import (
    Charts,
    Doubt,
    DoubtKind,
    Finding,
    LatencyPoint,
    Offered,
    Outcome,
    Picture,
    QuestionBefore,
    TestResult,
    Trial,
    View,
    format_frames_per_second,
    format_interval,
    generator_stalls,
    offered_in,
    time_dependence_in,
    trials_in_words,
    value_line,
)
from lossratio.trials import sut_loss_ratio
from lossratio.units import format_frame_rate, format_ratio, trials_counted

_RFC2544_DURATION_S = 60.0

_SEARCH_PICTURES = (
    Picture("Search", ""),
    Picture(
        "Loss over load",
        "",
        "Dashed lines are the loss ratios that the goals allow, and vertical lines are their bounds. In a shaded "
        "range of loads, trials pass and fail by chance.",
    ),
    Picture(
        "Performance spectrum at the relevant bounds",
        "",
        "Each curve shows for what share of the goal's duration sum the full-length trials at a bound reached which "
        "forwarding rate.\nThe rest of the duration sum was not measured because it could not change the verdict. "
        "Grey lines show the load, and the share\n(1 minus the exceed ratio) at which the conditional throughput is "
        "read.",
    ),
)


_TERMS = {
    "NDR": "NDR is the non-drop rate: the most that is forwarded without loss.",
    "PDR": "PDR is the partial drop rate: the most that is forwarded while a small share may be lost.",
}
"""What goals mean, by how their names end."""


class Compliance(str, Enum):
    """How far a search goal complies with RFC 2544 throughput, by RFC 9971's conditions and further departures."""

    UNCONDITIONAL = "unconditionally compliant with RFC 2544"
    """No loss in any trial of 60 s."""
    CONDITIONAL = "conditionally compliant with RFC 2544"
    """No loss in any trial, but trials are shorter than 60 s, or those with loss end early."""
    NONE = "not compliant with RFC 2544"
    """Loss is allowed."""


@dataclass(frozen=True)
class ComplianceStatement:
    """A report's statement on a goal and RFC 2544."""

    goal: str
    """Name of the goal."""
    compliance: Compliance
    """The degree of compliance."""
    reasons: tuple[str, ...]
    """Why compliance is not unconditional, and departures from RFC 2544 that do not depend on the goal."""


class ThroughputView(View[GoalsResult]):
    """How a search for conditional throughput is shown."""

    in_order = "regular"
    csit_type = "ndrpdr"
    method = "RFC 9971"
    value_name = "conditional throughput"

    def terms(self, result: GoalsResult) -> Iterator[str]:
        """NDR and PDR, if the names of its goals contain them."""
        names = [report.goal.name for report in result.goals]
        for end, term in _TERMS.items():
            if any(name.endswith(end) for name in names):
                yield term

    def is_provenance(self, remark: str) -> bool:
        """Remarks on trials after a rest are: if they matter, there is a doubt."""
        return is_about_rest(remark)

    def sentences(self, result: GoalsResult) -> Iterator[str]:
        """One sentence for each goal."""
        return sentences(result)

    def lines(self, result: GoalsResult) -> Iterator[str]:
        """Each goal, with its bounds; latency and spread, if they were added."""
        for report in result.goals:
            allowed = f"loss ratio at most {format_ratio(report.goal.loss_ratio)}"
            if report.goal.stream is not None:
                allowed = f"stream {report.goal.stream}, {allowed}"
            yield f"{report.goal.name} ({allowed}): {format_regularity(report)}"
            if report.goal.sequential is not None:
                yield f"  {sequential_rule(report.goal.sequential)}"
            if report.result is not None and not report.is_as_before:
                for label, bound in zip(
                    ("offered load, lower", "offered load, upper"), report.bounds, strict=True
                ):
                    yield _bound_line(label, bound, result)
                value = value_line("conditional throughput", report.result.conditional_throughput)
                yield value + _coin(report.result.zone)
                for share in () if report.result.zone is None else report.result.zone.shares:
                    lossy = f"{share.lossy} of {share.trials} trials lossy, {share.longest_run} in a row at most"
                    load = f"{share.load.per_interface_fps:>12,.0f} fps per interface"
                    yield value_line("zone of chance", f"{load}: {lossy}")
                yield from _latency_at(report.result.relevant_lower_bound, result.trials)

        for sentence in _tried_in(result):
            yield f"Tried after the search: {sentence}."
        yield from latency_lines(result.latency)
        yield from spread_lines(result.spread)

    def pictures(self, result: GoalsResult) -> Iterator[Picture]:
        """The search, loss over load, spectra, latency over load if it is known, and latency if it was added."""
        yield from self._of_search(result)
        yield from self._of_latency(result)

    def columns(self, result: GoalsResult) -> Mapping[str, JsonValue]:
        """The trials, for loss over load."""
        return search_chart(result)

    def charts(self, result: GoalsResult) -> Charts:
        """The search, loss over load and spectra."""
        chart = search_chart(result, bounds_history(result))
        drawn = dict(zip(("search", "loss", "spectra"), _SEARCH_PICTURES, strict=True))
        if not chart["spectra"]:
            del drawn["spectra"]
        return Charts(chart, drawn, tuple(self._of_latency(result)))

    def log(self, result: GoalsResult) -> Iterator[Picture | str]:
        """The search; if latency was added to the result, the latency."""
        if result.latency:
            yield from self._of_latency(result)
        else:
            yield trials_in_words(result.trials)
            yield from self._of_search(result)

    def warnings(self, result: GoalsResult) -> Iterator[str]:
        """Warnings of irregular goal results, when the search is over."""
        if result.is_as_before:
            return
        for report in result.goals:
            if report.result is not None and not report.result.regular and not result.latency:
                yield f"{report.goal.name} is {format_regularity(report)}"

    def overviews(self, results: Sequence[GoalsResult]) -> Iterator[str]:
        """Throughput over frame size of the same tests (RFC 2544, section 26.1), and over cores."""
        filters = {"fps": format_frames_per_second}
        for sweeps, template, draw in (
            (size_sweeps(results), "frame_sizes.html.jinja", draw_frame_sizes),
            (core_sweeps(results), "core_counts.html.jinja", draw_cores),
        ):
            for tests in sweeps:
                yield html_fragment(
                    __package__, template, filters=filters, tests=tests, picture=draw(tests)
                )

    def conditions(self, result: GoalsResult) -> str:
        """The goals, and their compliance with RFC 2544."""
        goals = [report.goal for report in result.goals]
        rules = {
            goal.name: sequential_rule(goal.sequential)
            for goal in goals
            if goal.sequential is not None
        }
        compliance = compliance_of(result)
        return html_fragment(
            __package__, "goals.html.jinja", result=result, compliance=compliance, rules=rules
        )

    def findings(self, result: GoalsResult) -> Iterator[Finding]:
        """A finding for each goal."""
        for report in result.goals:
            found = report.result
            name = report.goal.name
            if found is None:
                yield Finding(
                    result,
                    name,
                    Outcome.FAILED,
                    result.error,
                    stream=report.goal.stream,
                    resolution=report.goal.width_ratio,
                )
            else:
                reason = found.reason
                if report.is_as_before:
                    reason = " ".join(sentences(result)).rstrip(".")
                limits = mlrsearch.IrregularReason
                value = found.conditional_throughput
                is_max_load = reason == limits.MAX_LOAD_IS_LOWER_BOUND.value
                is_min_load = reason == limits.MIN_LOAD_IS_UPPER_BOUND.value
                upper = report.bounds[1]
                of_others = is_bound_of_others(result.trials, upper, report.goal)

                # Record: the finding of a goal.
                yield Finding(
                    result,
                    name,
                    Outcome.MEASURED if found.regular else Outcome.IRREGULAR,
                    reason,
                    value,
                    *report.bounds,
                    stream=report.goal.stream,
                    is_at_limit=is_max_load or is_least(reason),
                    is_too_slow=value is None and is_min_load,
                    is_bound_of_others=of_others,
                    resolution=report.goal.width_ratio,
                    is_as_before=report.is_as_before,
                    question=_question(result, report.goal.name),
                )

    def aspects(self, result: GoalsResult, finding: Finding) -> Mapping[str, JsonValue]:
        """The goal."""
        goal = next(report.goal for report in result.goals if report.goal.name == finding.quantity)
        early = {EARLY_VERDICT: True} if result.settings.get(EARLY_VERDICT) else {}
        return {"goal": {**goal.model_dump(mode="json", exclude={"name"}), **early}}

    def offered(self, result: GoalsResult, finding: Finding) -> Sequence[Offered]:
        """The trials at the upper bound if the generator caused it; the search itself judges other unsent frames."""
        bound = finding.upper_bound
        if not (isinstance(bound, Rate) and is_generators_limit(finding.reason)):
            return ()
        load = bound.per_interface_fps
        return offered_in(
            one for one in result.trials if one.is_evidence and one.load_per_interface_fps == load
        )

    def stalls(self, result: GoalsResult, trials: Sequence[Trial]) -> Doubt | None:
        """Stalls that may have decided whether a load meets a goal."""
        return generator_stalls(trials, [report.goal.loss_ratio for report in result.goals])

    def doubts(self, result: GoalsResult, results: Sequence[TestResult]) -> Iterator[Doubt]:
        """Doubts whether the SUT stayed the same, whether the load causes the loss, and whether it is one SUT."""
        rested = _rested(result)
        yield from (
            doubt
            for doubt in _constancy_doubts(result.trials)
            if not rested or doubt.kind is not rested.kind
        )
        if rested:
            yield rested
        yield from _less_after_rest(result)

        for report in result.goals:
            zone = None if report.result is None else report.result.zone
            if zone is not None and zone.width > LEAST_CHANGE:
                yield Doubt(
                    DoubtKind.CHANCE,
                    f"from {format_interval(*zone.ends)} per interface, 30 to 70 % of trials lose more than "
                    f"{report.goal.name} allows. This search found the bounds {format_interval(*report.bounds)}, "
                    f"but another search may find any load in this zone. A change of {format_ratio(LEAST_CHANGE)} "
                    "would go unnoticed; results repeat only outside the zone",
                )

        yield from telemetry_doubts(result.telemetry)
        yield from doubts_of_later_trials(result)

    def telemetry(self, result: GoalsResult) -> Sequence[Record]:
        """The trials before and after which the DUTs were asked."""
        return result.telemetry

    def latencies(self, result: GoalsResult) -> Iterator[LatencyPoint]:
        """The latencies that were added to the throughput."""
        return latency_points(result.latency)

    def csit(self, result: GoalsResult) -> dict[str, Any]:
        """NDR and PDR, with latency if it was added.

        Raises:
            CsitExportError: If the search made early verdicts or lacks NDR or PDR, or if one of these is irregular for
                a reason other than the maximum load.
        """
        if result.settings.get(EARLY_VERDICT):
            raise CsitExportError(
                f"{result.test.full_name} was measured with early verdicts; CSIT's trials take their whole duration."
            )
        bounds = {
            "ndr": _csit_bounds(result, mlrsearch.NDR),
            "pdr": _csit_bounds(result, mlrsearch.PDR),
        }
        return {"type": "ndrpdr", **bounds, **csit_latencies(result.latency, result.conditions)}

    def _of_search(self, result: GoalsResult) -> Iterator[Picture]:
        history = bounds_history(result)
        drawings = (draw_search(result, history), draw_loss(result, history), draw_spectra(result))
        for picture, svg in zip(_SEARCH_PICTURES, drawings, strict=True):
            yield replace(picture, svg=svg)

    def _of_latency(self, result: GoalsResult) -> Iterator[Picture]:
        if result.latency:
            yield latency_picture(result.latency, result.test.name)
        yield latency_over_load_picture(result.latency, result.trials, result.test.name)


def _constancy_doubts(trials: Sequence[Trial]) -> Iterator[Doubt]:
    evidence = [trial for trial in trials if trial.is_evidence]
    results = [trial.as_result() for trial in trials]
    found = mlrsearch.inconstancy_in(
        results, {number for number, trial in enumerate(trials) if not trial.is_evidence}
    )
    if found is not None and found.change is mlrsearch.Change.REMEMBERS_LOSS:
        yield Doubt(DoubtKind.MEMORY, _memory(found))
    elif found is not None and time_dependence_in(evidence) is None:
        yield Doubt(DoubtKind.DRIFT, _trend(found, sum(result.elapsed for result in results)))

    level = mlrsearch.level_loss_in(
        [result for result, trial in zip(results, trials, strict=True) if trial.is_evidence]
    )
    if level is not None:
        yield Doubt(
            DoubtKind.LOSS_AT_ANY_LOAD, f"{level_in_words(level)}; the load is not the cause"
        )


def _rested(result: GoalsResult) -> Doubt | None:
    """The doubt that the SUT passes more after a rest, from the trials at the end of the search."""
    evidence = [trial.as_result() for trial in result.trials if trial.is_evidence]
    bounds = [
        (upper.per_interface_fps, report.goal.loss_ratio)
        for report in result.goals
        if (upper := report.bounds[1]) is not None
    ]
    answers = rest_answers_in(evidence, bounds)
    # Earlier versions had no controls.
    has_control = bool(
        {mlrsearch.RestAnswer.EASY, mlrsearch.RestAnswer.REMEMBERED} & {*answers.values()}
    )
    if has_control:
        wanted = mlrsearch.RestAnswer.REMEMBERED
    else:
        wanted = mlrsearch.RestAnswer.PASSED

    passed = [load for load, answer in answers.items() if answer is wanted]
    if len(passed) < mlrsearch.ENOUGH:
        return None

    rest = next(trial.rest_s for trial in result.trials if trial.rest_s)
    above = format_ratio(max(passed) / max(bounds)[0] - 1.0)
    control, causes = ", and the same loads failed right after a loss", "it remembers a loss"
    if not has_control:
        control, causes = "", "it remembers a loss or became faster"
    way_out = f"rest={rest:g} s between trials would help"
    if result.settings.get(EARLY_VERDICT):
        causes += " or is slow at the beginning of trials"
        way_out += ", or early_verdict=off"

    return Doubt(
        DoubtKind.MEMORY,
        f"whole trials at {len(passed)} loads passed after a rest of {rest:g} s, at up to "
        f"{format_frame_rate(max(passed))} per interface, {above} above the upper bound{control}: {causes}; "
        f"{way_out}. These trials count as evidence, and the bounds follow from all trials",
    )


def _tried_in(result: GoalsResult) -> Iterator[str]:
    """What was tried after a search in which no load passed: sentences that begin in lower case."""
    if result.smaller_load is not None:
        yield result.smaller_load.sentence
    if result.experiments is not None:
        yield from result.experiments.sentences


def _question(result: GoalsResult, goal: str) -> QuestionBefore | None:
    """The question before the search, for a goal."""
    asked = result.question
    if asked is None:
        return None
    values = next((found.values_fps for found in asked.earlier if found.goal == goal), ())
    # Record: the question, in the form that all kinds show.
    return QuestionBefore(
        asked.reason,
        values,
        tuple((each.change_ratio, each.questions, each.as_before) for each in asked.replays),
    )


def _coin(zone: ZoneOfChance | None) -> str:
    """What the line of a value says about its zone of chance, if there is one."""
    if zone is None:
        return ""
    return f"; a coin from {format_interval(*zone.ends)} per interface ({format_ratio(zone.width)})"


def _less_after_rest(result: GoalsResult) -> Iterator[Doubt]:
    """The doubt that the SUT passes less after a rest, from the first trial of the search and one after it."""
    evidence = [trial.as_result() for trial in result.trials if trial.is_evidence]
    found = mlrsearch.fewer_after_rest(
        evidence, min(report.goal.loss_ratio for report in result.goals)
    )
    if len(found) < mlrsearch.FEWER_AGAIN:
        return
    least = min(sut_loss_ratio(trial) for trial in found)
    yield Doubt(
        DoubtKind.LESS_AFTER_REST,
        f"{len(found)} trials at {format_frame_rate(found[0].load)} per interface, each after a rest of "
        f"{found[0].input.rest:g} s, lost {format_ratio(least)} or more, and the same load passed right after each "
        "of them: the results hold only for a device that has just forwarded frames",
    )


def _memory(found: mlrsearch.Inconstancy) -> str:
    if found.after == 0.0:
        weak = "right after a loss"
    else:
        weak = f"up to {found.after:.3g} s after a loss"

    if math.isinf(found.until):
        strong, way_out = "before any loss", "a longer rest between trials may help"
    else:
        strong = f"{found.until:.3g} s after a loss or later"
        way_out = f"rest={found.until:.3g} s between trials would help"
    return (
        f"{found.weak} trials that began {weak} forward up to {format_ratio(found.less)} less than {found.strong} that "
        f"began {strong}, at the same or a higher load; {way_out}"
    )


def _trend(found: mlrsearch.Inconstancy, elapsed: float) -> str:
    less = f"forward up to {format_ratio(found.less)} less than {found.strong}"
    if found.change is mlrsearch.Change.SLOWER:
        return f"{found.weak} trials {less} earlier ones at the same loads: the SUT gets slower"
    if found.after > elapsed / 2.0:
        return f"{found.weak} trials {less} later ones at the same loads: the SUT gets faster"
    return (
        f"{found.weak} trials in the first {found.after:.3g} s {less} later ones at the same loads: the SUT warms "
        f"up; warm_up={found.after:.3g} s would help"
    )


def compliance_of(result: GoalsResult) -> list[ComplianceStatement]:
    """A statement for each goal, in the goals' order; the trial's timing departs from RFC 2544 for all goals alike."""
    steps = [deviation.step for deviation in result.conditions.timing.deviations]
    timing: tuple[str, ...] = ()
    if steps:
        timing = (f"the trial departs from section 23: {', '.join(steps)}",)

    early: tuple[str, ...] = ()
    if result.settings.get(EARLY_VERDICT):
        early = ("high-loss trials end early",)

    statements = []

    for goal in (report.goal for report in result.goals):
        reasons = []
        if goal.sequential is not None:
            reasons.append("loads are tested sequentially, not classified as in RFC 9971")
        if goal.loss_ratio > 0.0:
            reasons.append(f"a loss ratio of {goal.loss_ratio:g} is allowed")
        if goal.stream is not None:
            reasons.append(f"only the loss of stream {goal.stream} counts")
        if goal.exceed_ratio > 0.0:
            reasons.append(f"more may be lost in {goal.exceed_ratio:g} of the trials' time")
        compliance = Compliance.NONE

        if not reasons:
            durations = {
                "final trial": goal.final_trial_duration_s,
                "duration sum": goal.duration_sum_s,
            }
            short = {
                name: seconds
                for name, seconds in durations.items()
                if seconds < _RFC2544_DURATION_S
            }
            reasons += [f"the {name} is {seconds:g} s" for name, seconds in short.items()]
            if short or early:
                compliance = Compliance.CONDITIONAL
            else:
                compliance = Compliance.UNCONDITIONAL

        statements.append(ComplianceStatement(goal.name, compliance, (*reasons, *early, *timing)))

    return statements


def sequential_rule(rule: SequentialRule) -> str:
    """A sequential goal's promise, in words."""
    error = format_ratio(rule.error_ratio)
    promise = f"if trials are independent, a bound is wrong with a probability of {error} at most"
    return f"sequential tests, not RFC 9971: {promise} (indifference {format_ratio(rule.indifference_ratio)})"


def _bound_line(label: str, bound: Rate | None, result: GoalsResult) -> str:
    line = value_line(label, bound)
    if bound == result.max_load.rate:
        return f"{line} (the maximum load)"
    if bound == result.min_load:
        return f"{line} (the minimum load)"
    return line


def _latency_at(load: Rate | None, trials: Sequence[Trial]) -> Iterator[str]:
    """The latency of the trials at a bound, in the slower direction of each, if the latency of every frame is known."""
    if load is None:
        return

    known = []
    for trial in trials:
        if not trial.is_evidence or trial.load_per_interface_fps != load.per_interface_fps:
            continue
        slower = max(trial.directions, key=lambda one: one.latency_99_us or 0.0, default=None)
        if slower is not None and slower.latency_99_us is not None:
            known.append(slower)

    if known:
        median = statistics.median(direction.latency_median_us or 0.0 for direction in known)
        of_99 = statistics.median(direction.latency_99_us or 0.0 for direction in known)
        most = max(direction.latency_most_us or 0.0 for direction in known)

        shown = zip(("50 %:", "99 %:", "most"), (median, of_99, most), strict=True)
        words = ", ".join(f"{name} {format_microseconds(value)}" for name, value in shown)
        of_trials = f"every frame; 50 and 99 %: median of {trials_counted(len(known))}"
        yield value_line("latency at lower bound", f"{words} ({of_trials})")


def spread_lines(spread: Sequence[GoalSpread]) -> Iterator[str]:
    """The spread in words: some lines for each goal."""
    for goal_spread in spread:
        searches = len(goal_spread.values_fps)
        yield f"spread of {goal_spread.goal} over {searches} searches, {goal_spread.regular} of them regular"
        if goal_spread.mean is not None:
            yield value_line("mean", f"{goal_spread.mean:>12,.0f} fps per interface")
        if goal_spread.stdev is not None and goal_spread.mean:
            share = format_ratio(goal_spread.stdev / goal_spread.mean)
            yield value_line(
                "standard deviation", f"{goal_spread.stdev:>12,.1f} fps per interface, {share}"
            )

        if goal_spread.relative_range is not None:
            yield value_line(
                "largest to smallest", f"{format_ratio(goal_spread.relative_range)} of the mean"
            )

        values = " ".join(
            "none" if value is None else f"{value:,.0f}" for value in goal_spread.values_fps
        )
        yield value_line("values", f"{values} fps per interface")


def _csit_bounds(result: GoalsResult, wanted: mlrsearch.SearchGoal) -> dict[str, Any]:
    """The result of the goal that equals one of CSIT's; the lower value is the conditional throughput."""
    names = ("loss_ratio", "exceed_ratio", "final_trial_duration", "duration_sum", "width")
    goals = (
        (report, search_goal(report.goal))
        for report in result.goals
        if report.goal.sequential is None
    )
    same = (
        one
        for one, goal in goals
        if all(getattr(goal, name) == getattr(wanted, name) for name in names)
    )
    report = next(same, None)
    if report is None or report.result is None:
        raise CsitExportError(
            f"{result.test.full_name} has no goal with the attributes of CSIT's {wanted.name}."
        )

    outcome = report.result
    # CSIT also publishes the maximum load of links and cards. The generator's limit says nothing about the SUT, and
    # CSIT's files have no field to mark it.
    is_of_sut = (
        outcome.regular or outcome.reason == mlrsearch.IrregularReason.MAX_LOAD_IS_LOWER_BOUND
    )
    if outcome.conditional_throughput is None or not is_of_sut:
        raise CsitExportError(
            f"{wanted.name} of {result.test.full_name} is irregular: {outcome.reason}."
        )

    upper = outcome.relevant_upper_bound if outcome.regular else None
    bounds = {"lower": outcome.conditional_throughput, "upper": upper}
    return {name: csit_rate(rate) for name, rate in bounds.items() if rate is not None}
