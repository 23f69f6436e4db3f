"""The view of a search for conditional throughput: in words, pictures and tables, and in CSIT's form."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import JsonValue

from lossratio import drawing, mlrsearch
from lossratio.measurements import CsitExportError, csit_rate
from lossratio.measurements.latency.result import latency_points
from lossratio.measurements.latency.view import csit_latencies, latency_picture
from lossratio.measurements.throughput import doubts, later_trials
from lossratio.measurements.throughput.bounds import bounds_history
from lossratio.measurements.throughput.limits import (
    is_bound_of_others,
    is_generators_limit,
    is_least,
)
from lossratio.measurements.throughput.lines import search_lines, terms
from lossratio.measurements.throughput.result import (
    Goal,
    GoalReport,
    GoalsResult,
    outcome_of,
    search_goal,
)
from lossratio.measurements.throughput.search_picture import draw_loss, draw_search
from lossratio.measurements.throughput.sentence import sentences
from lossratio.measurements.throughput.settings import EARLY_VERDICT
from lossratio.measurements.throughput.sweeps import (
    core_sweeps,
    draw_cores,
    draw_frame_sizes,
    size_sweeps,
)
from lossratio.results import (
    OF_ALL_KINDS,
    Finding,
    LatencyPoint,
    Offered,
    Outcome,
    Picture,
    Rule,
    View,
    format_frames_per_second,
    offered_in,
    spells,
    trials_in_words,
)
from lossratio.values import Record

_ABOUT_LOSS = (
    "Dashed lines are the loss ratios that the goals allow, and vertical lines are their bounds. In a shaded range of "
    "loads, trials pass and fail by chance."
)


class ThroughputView(View[GoalsResult]):
    """How a search for conditional throughput is shown."""

    in_order = "regular"
    csit_type = "ndrpdr"
    method = "RFC 9971"
    value_name = "conditional throughput"
    if_unsent = "and the SUT may forward more"

    rules_beside: ClassVar[tuple[Rule, ...]] = (
        doubts.drift_of_search,
        spells,
        doubts.memory_of_search,
        doubts.loss_at_any_load,
        doubts.erratic_of_search,
        doubts.chance,
        doubts.uneven,
        doubts.stalls,
        later_trials.contradicted,
        terms,
        *OF_ALL_KINDS,
    )
    """What is said besides the findings and their numbers."""
    rules: ClassVar[tuple[Rule, ...]] = (sentences, search_lines, *rules_beside)

    def pictures(self, result: GoalsResult) -> Iterator[Picture]:
        """The search, loss over load, and latency if it was added."""
        yield from self._of_search(result)
        if result.latency:
            yield latency_picture(result.latency, result.test.name)

    def log(self, result: GoalsResult) -> Iterator[Picture | str]:
        """The search; if latency was added to the result, the latency."""
        if result.latency:
            yield latency_picture(result.latency, result.test.name)
        else:
            yield trials_in_words(result.trials, result.unit)
            yield from self._of_search(result)

    def overviews(self, results: Sequence[GoalsResult]) -> Iterator[str]:
        """Throughput over frame size of the same tests (RFC 2544, section 26.1), and over cores."""
        filters = {"fps": format_frames_per_second}
        for sweeps, template, draw in (
            (size_sweeps(results), "frame_sizes.html.jinja", draw_frame_sizes),
            (core_sweeps(results), "core_counts.html.jinja", draw_cores),
        ):
            for tests in sweeps:
                yield drawing.html_fragment(
                    __package__, template, filters=filters, tests=tests, picture=draw(tests)
                )

    def conditions(self, result: GoalsResult) -> str:
        """The goals."""
        return drawing.html_fragment(__package__, "goals.html.jinja", result=result)

    def findings(self, result: GoalsResult) -> Iterator[Finding]:
        """A finding for each goal."""
        for report in result.goals:
            yield _finding(result, report)

    def aspects(self, result: GoalsResult, finding: Finding) -> Mapping[str, JsonValue]:
        """The goal."""
        goal = next(report.goal for report in result.goals if report.goal.name == finding.quantity)
        described = goal.model_dump(mode="json", exclude={"name"})
        if result.settings.get(EARLY_VERDICT):
            described[EARLY_VERDICT] = True
        return {"goal": described}

    def offered(self, result: GoalsResult, finding: Finding) -> Sequence[Offered]:
        """The trials at the upper bound, if the generator caused this bound.

        The search itself judges other unsent frames.
        """
        _, bound = result.goal_named(finding.quantity).bounds
        if bound is None or not is_generators_limit(finding.reason):
            return ()
        return offered_in(result.evidence_at(bound))

    def after(self, result: GoalsResult) -> Sequence[Offered]:
        """The traffic of latency and telemetry."""
        return later_trials.offered_after(result)

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
                f"{result.test.full_name} was measured with early verdicts, but CSIT's trials run for their whole "
                "duration. Measure it without early_verdict."
            )
        bounds = {
            "ndr": _csit_bounds(result, mlrsearch.NDR),
            "pdr": _csit_bounds(result, mlrsearch.PDR),
        }
        return {"type": "ndrpdr", **bounds, **csit_latencies(result.latency, result.conditions)}

    def _of_search(self, result: GoalsResult) -> Iterator[Picture]:
        history = bounds_history(result)
        yield Picture("Search", draw_search(result, history))
        yield Picture("Loss over load", draw_loss(result, history), _ABOUT_LOSS)


def _finding(result: GoalsResult, report: GoalReport) -> Finding:
    """The finding of a goal."""
    outcome = outcome_of([report.result])
    reason = report.reason
    if report.result is None:
        outcome = Outcome.FAILED
        reason = result.error
    elif report.is_as_before:
        reason = " ".join(sentences(result)).rstrip(".")

    value = report.throughput
    lower, upper = report.bounds
    is_max_load = reason == mlrsearch.IrregularReason.MAX_LOAD_IS_LOWER_BOUND.value
    is_min_load = reason == mlrsearch.IrregularReason.MIN_LOAD_IS_UPPER_BOUND.value
    of_others = is_bound_of_others(result, upper, report.goal)

    # Record: the finding of a goal.
    return Finding(
        result,
        report.goal.name,
        outcome,
        reason,
        value,
        lower,
        upper,
        stream=report.goal.stream,
        is_at_limit=is_max_load or is_least(reason),
        is_too_slow=value is None and is_min_load,
        is_bound_of_others=of_others,
        resolution=report.goal.width_ratio,
        is_as_before=report.is_as_before,
    )


def _csit_bounds(result: GoalsResult, wanted: mlrsearch.SearchGoal) -> dict[str, Any]:
    """The result of the goal that equals a goal of CSIT. The lower value is the conditional throughput."""
    report = next((one for one in result.goals if _is_same_goal(one.goal, wanted)), None)
    if report is None or report.result is None:
        raise CsitExportError(
            f"{result.test.full_name} has no goal with the attributes of CSIT's {wanted.name}. Search with goals=csit."
        )

    outcome = report.result
    # CSIT also publishes the maximum load of links and cards. A limit or a maximum load of the generator says nothing
    # about the SUT, and CSIT's files have no field to mark it.
    is_of_sut = (
        outcome.regular or outcome.reason == mlrsearch.IrregularReason.MAX_LOAD_IS_LOWER_BOUND
    )
    if outcome.conditional_throughput is None or not is_of_sut:
        raise CsitExportError(
            f"{wanted.name} of {result.test.full_name} is irregular: {outcome.reason}."
        )

    bounds = {"lower": outcome.conditional_throughput}
    if outcome.regular and outcome.relevant_upper_bound is not None:
        bounds["upper"] = outcome.relevant_upper_bound
    return {name: csit_rate(rate) for name, rate in bounds.items()}


def _is_same_goal(goal: Goal, wanted: mlrsearch.SearchGoal) -> bool:
    """Whether a goal asks for the same as a goal of CSIT."""
    searched = search_goal(goal)
    names = ("loss_ratio", "exceed_ratio", "final_trial_duration", "duration_sum", "width")
    return all(getattr(searched, name) == getattr(wanted, name) for name in names)
