"""How each requirement of RFC 2544 and its updates was met, judging by the facts of a run."""

import math
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import pairwise
from typing import Any, Literal

from lossratio.measurements.recovery import RecoveryResult
from lossratio.measurements.rfc2544.facts import SAME, Facts, is_found, reaches
from lossratio.measurements.rfc2544.modifiers import Modifier
from lossratio.measurements.rfc2544.run import Rfc2544Test
from lossratio.measurements.throughput.result import Goal
from lossratio.records import Rate
from lossratio.results import TestResult, integrity_of
from lossratio.units import format_frame_rate, format_ratio


class Status(str, Enum):
    """How a run met a requirement."""

    DONE = "done"
    """As the RFC requires."""
    DIFFERENT = "different"
    """In another way, or not at all."""
    NOT_APPLICABLE = "not applicable"
    """The requirement does not concern this run."""
    NOT_SEEN = "not seen"
    """The results do not show it: only the reader can know."""


Verdict = tuple[Status, str]
"""How a run met a requirement, and how this was done, or why it is different."""

Judge = Callable[[Facts], Verdict]
"""Finds from the facts of a run how a requirement was met."""
InAnyRun = tuple[Literal[Status.DIFFERENT, Status.NOT_SEEN], str]
"""The same verdict in any run. The verdict "done" needs facts of the run."""

LEFT_OUT = "this test has no result in this run"
_RUN_SECONDS, _STREAM_SECONDS = 60.0, 120.0
_NO_MODIFIER = "this run has no such modifier; a separate run can have it"
_NO_LIMIT = "the theoretical limit is not known because the speed of a link is not known"
_PER_CENT = "the load is in per cent of the maximum load because the speed of a link is not known"
_NOTHING_FOUND = "there is nothing to report"


def _met(is_met: object, why: str, otherwise: str | None = None) -> Verdict:
    """Done or different, each with its reason. Without a second reason, both have the same reason."""
    if is_met:
        return Status.DONE, why
    if otherwise is None:
        return Status.DIFFERENT, why
    return Status.DIFFERENT, otherwise


def one_tester(facts: Facts) -> Verdict:
    """Whether there are results: if so, a single tester made them."""
    return _met(facts.results, "the TG has all ports", LEFT_OUT)


def one_set_up(facts: Facts) -> Verdict:
    """Whether the DUTs were set up in the same way in all tests."""
    set_ups = [
        {
            name: [dut.get(what) for what in ("kind", "options", "version")]
            for name, dut in result.conditions.duts.items()
        }
        for result in facts.results
    ]
    is_same = all(set_up == set_ups[0] for set_up in set_ups)
    return _met(
        set_ups and is_same,
        "one set-up for all",
        "the options or the version of the DUT changed between tests",
    )


def configuration(facts: Facts) -> Verdict:
    """Whether something is known of each DUT."""
    unknown = [name for name, dut in facts.duts.items() if not dut.keys() - {"node"}]
    return _met(
        facts.duts and not unknown,
        "with the conditions of each result",
        f"not known: {', '.join(unknown)}",
    )


def intervals(facts: Facts) -> Verdict:
    """Whether a routing protocol has intervals."""
    if facts.routes is False:
        return Status.NOT_APPLICABLE, "a bridge has none"
    return _met(
        facts.learns_routes,
        "the intervals of its routing protocol",
        "routes and neighbours are static",
    )


def frame_formats(facts: Facts) -> Verdict:
    """Judges the formats of frames by the conditions of the results."""
    return _met(facts.conditions, "under conditions", LEFT_OUT)


def many_sizes(facts: Facts) -> Verdict:
    """Whether there were enough frame sizes."""
    return _met(len(facts.sizes) >= 5, f"{len(facts.sizes)}: {', '.join(facts.sizes)}")


def has_sizes(wanted_bytes: Iterable[int]) -> Judge:
    """Whether some frame sizes, in bytes, were among those of the run."""

    def judge(facts: Facts) -> Verdict:
        has_all = set(wanted_bytes) <= set(facts.sizes_bytes)
        return _met(has_all, "all of them; further sizes are extras", ", ".join(facts.sizes))

    return judge


def examined(how: str) -> Judge:
    """Whether frames were examined in each test of throughput."""

    def judge(facts: Facts) -> Verdict:
        unseen = [one.test.name for one in facts.throughputs if not _has_examined(one)]
        is_met = facts.throughputs and not unseen
        return _met(is_met, how, f"no frame was examined: {', '.join(unseen)}")

    return judge


def _has_examined(result: TestResult) -> bool:
    integrity = integrity_of(result)
    return integrity is not None and bool(integrity.examined)


def without_modifier(facts: Facts) -> Verdict:
    """Whether the run has no modifier."""
    return _met(
        facts.results and facts.run.modifier is None,
        "these tests have none",
        "these tests have a modifier; measure without modifiers in another run",
    )


def has_modifier(modifier: Modifier) -> Judge:
    """Whether the run has a modifier, and whether it was applied as requested."""

    def judge(facts: Facts) -> Verdict:
        report = facts.run.modifier_report
        if facts.run.modifier is not modifier or report is None:
            return Status.DIFFERENT, _NO_MODIFIER
        return _met(report.is_as_asked, report.note)

    return judge


def alternating_updates(facts: Facts) -> Verdict:
    """Whether the run has the modifier for alternating routing updates."""
    if facts.run.modifier is not Modifier.ROUTING_UPDATES or facts.run.modifier_report is None:
        return Status.NOT_APPLICABLE, _NO_MODIFIER
    return Status.DONE, "the two commands of the modifier"


def updates_before_trials(facts: Facts) -> Verdict:
    """Whether routes are learned, because learned routes are not updated before each trial."""
    if facts.learns_routes:
        return Status.DIFFERENT, "routes are learned once"
    return Status.NOT_APPLICABLE, "routes are static"


def both_sides(facts: Facts) -> Verdict:
    """Whether both directions have the same rate."""
    if facts.conditions is None or facts.conditions.traffic.pattern != "bidirectional":
        return Status.NOT_APPLICABLE, "traffic goes one way"
    shares = set(facts.conditions.load.shares_ratio)
    return _met(
        len(shares) == 1,
        "rates are per interface",
        "directions have different rates; see conditions",
    )


def one_pair(facts: Facts) -> Verdict:
    """Whether there is one pair of ports."""
    return _met(facts.conditions and facts.links == 1, f"{facts.links} of each")


def all_others(facts: Facts) -> Verdict:
    """Whether there are many ports, because no port then addresses all others."""
    if facts.links > 1:
        return Status.DIFFERENT, "each port sends to one other port"
    return Status.NOT_APPLICABLE, "one pair of ports"


def theoretical_load(facts: Facts) -> Verdict:
    """Whether the links limited the load in all tests."""
    is_whole = all(
        reaches(one.max_load.rate, one.max_load.theoretical_maximum) for one in facts.results
    )
    limited = "the maximum load is the limit of the tester, the NIC or the request; see the tables"
    return _met(facts.results and is_whole, "the links limit the load", limited)


def waits(facts: Facts) -> Verdict:
    """Whether the waits around trials were those of the RFC."""
    if facts.conditions is None:
        return Status.DIFFERENT, LEFT_OUT
    deviations = facts.conditions.timing.deviations
    instead = [f"{one.step}: {one.instead} instead of {one.rfc2544}" for one in deviations]
    return _met(not instead, "", "; ".join(instead))


def durations(facts: Facts) -> Verdict:
    """Whether all trials that decide were long enough."""
    known = {
        "throughput": [one.goals[0].goal.final_trial_duration_s for one in facts.throughputs],
        "frame loss": [at_load.duration_s for loss in facts.losses for at_load in loss.loads],
        "overload": [one.settings.duration_s for one in facts.recoveries],
    }
    short = [
        f"{name} {min(seconds):g} s"
        for name, seconds in known.items()
        if seconds and min(seconds) < _RUN_SECONDS
    ]
    is_met = any(known.values()) and not short
    return _met(is_met, "final trials", f"shorter ones: {', '.join(short)}")


def neighbours(facts: Facts) -> Verdict:
    """Whether it is known how the DUT knew its neighbours."""
    if facts.conditions is None:
        return Status.DIFFERENT, LEFT_OUT
    return Status.DONE, facts.conditions.timing.neighbours or "neighbours are static entries"


def _allowed(goal: Goal) -> str:
    lost = f"up to {format_ratio(goal.loss_ratio)} of the frames may be lost"
    lossy = f"up to {format_ratio(goal.exceed_ratio)} of trials may lose"
    if goal.loss_ratio and goal.exceed_ratio:
        return f"{lost}, and {lossy} more"
    return lost if goal.loss_ratio else f"{lossy} frames"


def no_loss(facts: Facts) -> Verdict:
    """Whether the goal of the search allows no loss."""
    goal = facts.throughputs[0].goals[0].goal
    if goal.exceed_ratio or goal.loss_ratio:
        return Status.DIFFERENT, f"goal {goal.name}: {_allowed(goal)} (RFC 9971)"

    unknown = [
        f"{size}: {one.goals[0].result.reason}"
        for size, one in _by_size(facts, Rfc2544Test.THROUGHPUT)
        if not is_found(one)
    ]
    return _met(not unknown, "", f"not found for {'; '.join(unknown)}")


def with_link_limits(facts: Facts) -> Verdict:
    """Whether the theoretical limits are known alongside the throughput."""
    return _met(facts.has_link_limits, "", _NO_LIMIT)


def graph_over_sizes(facts: Facts) -> Verdict:
    """Whether there is a graph over the frame size, with the theoretical rate."""
    if not facts.has_link_limits:
        return Status.DIFFERENT, _NO_LIMIT
    return _met(len(facts.throughputs) > 1, "", "a graph needs more than one frame size")


def tagged(facts: Facts) -> Verdict:
    """Whether the tagged frames were recognized."""
    faults = sum(len(at_load.faults) for at_load in facts.latency)
    why = f"no latency of {faults} repeats or directions; see the table"
    return _met(facts.latency and not faults, "", why)


def latency_repeats(facts: Facts) -> Verdict:
    """Whether latency was measured often enough."""
    results = facts.run.results_of(Rfc2544Test.LATENCY)
    least = min(len(result.latency) for result in results)
    return _met(least >= 20, f"{least}")


def latency_table(facts: Facts) -> Verdict:
    """Whether there are latencies for a table."""
    has_any = any(at_load.directions for at_load in facts.latency)
    return _met(has_any, "with the table", _NOTHING_FOUND)


def streams(facts: Facts) -> Verdict:
    """Whether the streams for latency were long enough."""
    return _met(facts.shortest_stream_s >= _STREAM_SECONDS, f"{facts.shortest_stream_s:g} s")


def single_frame(facts: Facts) -> Verdict:
    """Whether the latency of the frame in the middle of a stream is known, and streams were long enough."""
    known = [
        one.middle_us is not None
        for at_load in facts.latency
        for one in at_load.directions
        if one.error is None
    ]
    if not known or not all(known):
        return (
            Status.DIFFERENT,
            "tagged frames during the whole stream; the generator does not report the middle one",
        )
    first = "the first one after the middle of each stream"
    beside = "; beside it the mean of up to 1000 tagged frames per second"
    return _met(facts.shortest_stream_s >= _STREAM_SECONDS, first + beside, first)


def steps(facts: Facts) -> Verdict:
    """Whether the loads of a frame loss rate are near enough to each other."""
    widths = [
        one.share_of_max_load_ratio - other.share_of_max_load_ratio
        for loss in facts.losses
        for one, other in pairwise(loss.loads)
    ]
    largest = max(widths, default=0.0)
    return _met(widths and largest <= 0.1 + SAME, f"{largest:.4g} of the maximum load")


def from_the_top(facts: Facts) -> Verdict:
    """Whether frame loss was measured from the medium's rate down to loads without loss."""
    below = []
    results = facts.run.results_of(Rfc2544Test.FRAME_LOSS)
    for result in results:
        first = result.max_load.rate
        most = result.max_load.theoretical_maximum
        if most is None:
            return Status.DIFFERENT, _NO_LIMIT
        if not reaches(first, most):
            below.append((first.per_interface_fps, most.per_interface_fps))
    if not results:
        return Status.DIFFERENT, _NO_LIMIT

    problems = []
    if below:
        first_fps, most_fps = min(below)
        problems.append(
            f"it began at {format_frame_rate(first_fps)}, but the medium carries {format_frame_rate(most_fps)}"
        )
    if not all(loss.is_complete for loss in facts.losses):
        problems.append("it ended at the smallest load, before two trials in a row lost nothing")
    return _met(not problems, "", "; ".join(problems))


def loss_axes(facts: Facts) -> Verdict:
    """Whether the loads of a frame loss rate are known in per cent of the medium's rate."""
    return _met(facts.has_link_limits, "", _PER_CENT)


def loss_graph(facts: Facts) -> Verdict:
    """Whether there are frame loss rates for a graph."""
    return _met(facts.losses, "", "there is nothing to draw")


def settle(facts: Facts) -> Verdict:
    """Whether the buffers had time to empty after each burst."""
    least = min(one.settings.settle_s for one in facts.bursts)
    return _met(least >= 2.0, f"{least:g} s, or as long as the burst")


def burst_setting(name: str, text: str) -> Judge:
    """Whether there are bursts. If so, the text states a setting of the first result with bursts."""

    def judge(facts: Facts) -> Verdict:
        stated = [getattr(one.settings, name) for one in facts.bursts]
        if not stated:
            return Status.DIFFERENT, _NOTHING_FOUND
        return Status.DONE, text.format(stated[0])

    return judge


def burst_repeats(facts: Facts) -> Verdict:
    """How often the longest burst was searched for."""
    found = [one.back_to_back for one in facts.bursts if one.back_to_back is not None]
    if not found:
        return Status.NOT_APPLICABLE, "there is no longest burst because no buffer fills"
    least = min(len(one.searches) for one in found)
    return Status.DONE, f"N = {least}"


def burst_table(facts: Facts) -> Verdict:
    """Whether there are bursts for a table."""
    return _met(any(one.back_to_back for one in facts.bursts), "", _NOTHING_FOUND)


def at_limit(facts: Facts) -> Verdict:
    """Whether all bursts were shorter than the longest possible burst."""
    names = [
        one.test.name for one in facts.bursts if one.back_to_back and one.back_to_back.is_at_limit
    ]
    return _met(
        facts.bursts and not names,
        "no burst is at the limit",
        f"only lower bounds are known: {', '.join(names)}",
    )


def overload(facts: Facts) -> Verdict:
    """Whether the overload was large and long enough."""
    seconds = min(one.settings.duration_s for one in facts.recoveries)
    limited = [_overload_ratio(one) for one in facts.recoveries if not _is_overloaded(one)]
    if limited:
        short = f"{format_ratio(round(min(limited), 3))} at the maximum load, "
    else:
        short = ""
    return _met(not limited and seconds >= _RUN_SECONDS, f"{short}{seconds:g} s")


def _overload_ratio(result: RecoveryResult) -> float:
    """The overload, relative to the throughput."""
    return result.overload.per_interface_fps / result.throughput.per_interface_fps


def _is_overloaded(result: RecoveryResult) -> bool:
    """Whether the overload is 110 %, or the medium's maximum rate if the maximum is lower."""
    return _overload_ratio(result) >= 1.1 - SAME or reaches(
        result.overload, result.max_load.theoretical_maximum
    )


def recoveries(facts: Facts) -> Verdict:
    """Whether recovery was measured more than once."""
    repeats = [len(one.recovery.times) for one in facts.recoveries if one.recovery is not None]
    if not repeats:
        return Status.NOT_APPLICABLE, "there is no overload"
    return _met(min(repeats) > 1, f"{min(repeats)}")


def recovery_table(facts: Facts) -> Verdict:
    """Whether there are recoveries for a table."""
    order = "time of the last lost frame minus time of the change; the RFC swaps the two"
    return _met(any(one.recovery for one in facts.recoveries), order, _NOTHING_FOUND)


def direct_networks(facts: Facts) -> Verdict:
    """Whether no routes were learned in tests of resets."""
    return _met(facts.resets and not facts.learns_routes, "", "routes are learned")


def kinds_of_reset(facts: Facts) -> Verdict:
    """The kind of reset that the run has; there is only one kind in a run."""
    return Status.DIFFERENT, facts.resets[0].settings.reset_name


def resets_stated(facts: Facts) -> Verdict:
    """Whether a statement describes each reset."""
    return _met(facts.resets and all(one.reset for one in facts.resets), "", LEFT_OUT)


def lead(facts: Facts) -> Verdict:
    """Whether frames were forwarded for long enough before the reset."""
    least = min(one.settings.lead_s for one in facts.resets)
    return _met(least >= 15.0, f"{least:g} s")


def at_the_throughput(test: Rfc2544Test, loads_of: Callable[[Any], Iterable[Rate]]) -> Judge:
    """Whether a test was made at the throughputs of the run. A function gives the rates of each of its results."""

    def judge(facts: Facts) -> Verdict:
        throughputs = {
            size: one.goals[0].throughput
            for size, one in _by_size(facts, Rfc2544Test.THROUGHPUT)
            if is_found(one)
        }
        made = _by_size(facts, test)
        elsewhere = [
            size for size, one in made if not _are_all(loads_of(one), throughputs.get(size))
        ]
        why = f"not at the throughput, or it is not known: {', '.join(elsewhere)}"
        return _met(made and not elsewhere, "", why)

    return judge


def _by_size(facts: Facts, test: Rfc2544Test) -> list[tuple[str, Any]]:
    """The results of a test, each with its frame size."""
    parts = facts.run.of(test)
    return [(part.frame_size, part.result) for part in parts if part.result is not None]


def _are_all(loads: Iterable[Rate], rate: Rate | None) -> bool:
    """Whether there are loads, and all of them equal a rate, apart from rounding."""
    if rate is None:
        return False
    known = [load.per_interface_fps for load in loads]
    return bool(known) and all(
        math.isclose(load, rate.per_interface_fps, rel_tol=SAME) for load in known
    )
