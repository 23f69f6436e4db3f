"""How each requirement of RFC 2544 and its updates was met, judging by the results of a run."""

import math
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any, Literal

from lossratio.measurements.frame_loss import FrameLoss
from lossratio.measurements.latency import LatencyAtLoad
from lossratio.measurements.recovery import RecoveryResult
from lossratio.measurements.rfc2544.run import Rfc2544Run, Rfc2544Test
from lossratio.measurements.throughput import ThroughputResult
from lossratio.measurements.throughput.result import Goal
from lossratio.records import Rate
from lossratio.results import TestResult, integrity_of
from lossratio.traffic import RFC2544_FRAME_SIZES
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


class Facts:
    """What the results of a run show; there is at least one."""

    def __init__(self, run: Rfc2544Run) -> None:
        self.run = run
        self.results: list[TestResult] = [
            part.result for part in run.parts if part.result is not None
        ]
        self.conditions = self.results[0].conditions
        self.throughputs: Sequence[ThroughputResult] = run.results_of(Rfc2544Test.THROUGHPUT)
        self.recoveries: Sequence[RecoveryResult] = run.results_of(Rfc2544Test.RECOVERY)

    @property
    def links(self) -> int:
        """The number of parallel links that carry the traffic."""
        return self.conditions.testbed.links

    @property
    def learns_routes(self) -> bool:
        """Whether a DUT has learned routes."""
        return any("learned_routes" in dut for dut in self.conditions.duts.values())

    @property
    def latency(self) -> list[LatencyAtLoad]:
        """The latencies of all frame sizes."""
        results = self.run.results_of(Rfc2544Test.LATENCY)
        return [at_load for result in results for at_load in result.latency]

    @property
    def losses(self) -> list[FrameLoss]:
        """The frame loss rates that were measured."""
        losses = [result.frame_loss for result in self.run.results_of(Rfc2544Test.FRAME_LOSS)]
        return [found for found in losses if found is not None]


Judge = Callable[[Facts], Verdict]
"""Finds from the facts of a run how a requirement was met."""
InAnyRun = tuple[Literal[Status.DIFFERENT, Status.NOT_SEEN], str]
"""The same verdict in any run. The verdict "done" needs facts of the run."""

LEFT_OUT = "this test has no result in this run"
SAME = 1e-6
"""Rounding error of equal rates, as a share."""
_RUN_SECONDS, _STREAM_SECONDS = 60.0, 120.0
_NO_LIMIT = "the theoretical limit is not known because the speed of a link is not known"


def _met(is_met: object, why: str, otherwise: str | None = None) -> Verdict:
    """Done or different, each with its reason. Without a second reason, both have the same reason."""
    if is_met:
        return Status.DONE, why
    if otherwise is None:
        return Status.DIFFERENT, why
    return Status.DIFFERENT, otherwise


def _reaches(load: Rate, maximum: Rate | None) -> bool:
    """Whether a load is at least the theoretical maximum, apart from rounding; False if the maximum is not known."""
    return maximum is not None and load.per_interface_fps >= maximum.per_interface_fps * (1 - SAME)


def _is_found(result: ThroughputResult) -> bool:
    """Whether the throughput is known: the search proved it, or the DUT forwards the maximum rate of the medium."""
    outcome = result.goals[0].result
    if outcome is None or outcome.regular:
        return outcome is not None
    rate = outcome.conditional_throughput
    return rate is not None and _reaches(rate, result.max_load.theoretical_maximum)


def one_set_up(facts: Facts) -> Verdict:
    """Whether the DUTs were set up in the same way in all tests."""
    set_ups = [
        {
            name: [dut.get(what) for what in ("kind", "options", "version")]
            for name, dut in result.conditions.duts.items()
        }
        for result in facts.results
    ]
    return _met(
        all(set_up == set_ups[0] for set_up in set_ups),
        "one set-up for all",
        "the options or the version of the DUT changed between tests",
    )


def configuration(facts: Facts) -> Verdict:
    """Whether something is known of each DUT."""
    duts = facts.conditions.duts
    unknown = [name for name, dut in duts.items() if not dut.keys() - {"node"}]
    return _met(
        duts and not unknown,
        "with the conditions of each result",
        f"not known: {', '.join(unknown)}",
    )


def sizes(facts: Facts) -> Verdict:
    """Whether all frame sizes of the RFC were among those of the run."""
    measured = [part.frame_size for part in facts.run.of(Rfc2544Test.THROUGHPUT)]
    has_all = {f"{size}B" for size in RFC2544_FRAME_SIZES} <= set(measured)
    return _met(has_all, "all of them; further sizes are extras", ", ".join(measured))


def examined(facts: Facts) -> Verdict:
    """Whether frames were examined in each test of throughput."""
    unseen = [one.test.name for one in facts.throughputs if not _has_examined(one)]
    is_met = facts.throughputs and not unseen
    return _met(is_met, "frames have a tag", f"no frame was examined: {', '.join(unseen)}")


def _has_examined(result: TestResult) -> bool:
    integrity = integrity_of(result)
    return integrity is not None and bool(integrity.examined)


def updates_before_trials(facts: Facts) -> Verdict:
    """Whether routes are learned, because learned routes are not updated before each trial."""
    if facts.learns_routes:
        return Status.DIFFERENT, "routes are learned once"
    return Status.NOT_APPLICABLE, "routes are static"


def both_sides(facts: Facts) -> Verdict:
    """Whether both directions have the same rate."""
    if facts.conditions.traffic.pattern != "bidirectional":
        return Status.NOT_APPLICABLE, "traffic goes one way"
    shares = set(facts.conditions.load.shares_ratio)
    return _met(
        len(shares) == 1,
        "rates are per interface",
        "directions have different rates; see conditions",
    )


def one_pair(facts: Facts) -> Verdict:
    """Whether there is one pair of ports."""
    return _met(facts.links == 1, f"{facts.links} of each")


def all_others(facts: Facts) -> Verdict:
    """Whether there are many ports, because no port then addresses all others."""
    if facts.links > 1:
        return Status.DIFFERENT, "each port sends to one other port"
    return Status.NOT_APPLICABLE, "one pair of ports"


def theoretical_load(facts: Facts) -> Verdict:
    """Whether the links limited the load in all tests."""
    is_whole = all(
        _reaches(one.max_load.rate, one.max_load.theoretical_maximum) for one in facts.results
    )
    limited = "the maximum load is the limit of the tester, the NIC or the request; see the tables"
    return _met(is_whole, "the links limit the load", limited)


def waits(facts: Facts) -> Verdict:
    """Whether the waits around trials were those of the RFC."""
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
        if not _is_found(one)
    ]
    return _met(not unknown, "", f"not found for {'; '.join(unknown)}")


def link_limits(facts: Facts) -> Verdict:
    """Whether the theoretical maximum of the links is known in all results."""
    is_known = all(one.max_load.theoretical_maximum is not None for one in facts.results)
    return _met(is_known, "", _NO_LIMIT)


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


def streams(facts: Facts) -> Verdict:
    """Whether the streams for latency were long enough."""
    shortest = min((at_load.duration_s or 0.0 for at_load in facts.latency), default=0.0)
    return _met(shortest >= _STREAM_SECONDS, f"{shortest:g} s")


def single_frame(facts: Facts) -> Verdict:
    """Whether the latency of the frame in the middle of a stream is known."""
    known = [
        one.middle_us is not None
        for at_load in facts.latency
        for one in at_load.directions
        if one.error is None
    ]
    return _met(
        known and all(known),
        "the first one after the middle of each stream; beside it the mean of up to 1000 tagged frames per second",
        "tagged frames during the whole stream; the generator does not report the middle one",
    )


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
    problems = []
    below = []
    for result in facts.run.results_of(Rfc2544Test.FRAME_LOSS):
        first, most = result.max_load.rate, result.max_load.theoretical_maximum
        if most is None:
            return Status.DIFFERENT, _NO_LIMIT
        if not _reaches(first, most):
            below.append((first.per_interface_fps, most.per_interface_fps))
    if below:
        first_fps, most_fps = min(below)
        problems.append(
            f"it began at {format_frame_rate(first_fps)}, and the medium has {format_frame_rate(most_fps)}"
        )
    if not all(loss.is_complete for loss in facts.losses):
        problems.append("it ended at the smallest load, before two trials in a row lost nothing")
    return _met(not problems, "", "; ".join(problems))


def settle(facts: Facts) -> Verdict:
    """Whether the buffers had time to empty after each burst."""
    least = min(one.settings.settle_s for one in facts.run.results_of(Rfc2544Test.BACK_TO_BACK))
    return _met(least >= 2.0, f"{least:g} s, or as long as the burst")


def at_limit(facts: Facts) -> Verdict:
    """Whether all bursts were shorter than the longest possible burst."""
    names = [
        one.test.name
        for one in facts.run.results_of(Rfc2544Test.BACK_TO_BACK)
        if one.back_to_back and one.back_to_back.is_at_limit
    ]
    return _met(
        not names, "no burst is at the limit", f"only lower bounds are known: {', '.join(names)}"
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
    return _overload_ratio(result) >= 1.1 - SAME or _reaches(
        result.overload, result.max_load.theoretical_maximum
    )


def recoveries(facts: Facts) -> Verdict:
    """Whether recovery was measured more than once."""
    repeats = [len(one.recovery.times) for one in facts.recoveries if one.recovery is not None]
    if not repeats:
        return Status.NOT_APPLICABLE, "there is no overload"
    return _met(min(repeats) > 1, f"{min(repeats)}")


def direct_networks(facts: Facts) -> Verdict:
    """Whether no routes were learned in tests of resets."""
    return _met(not facts.learns_routes, "", "routes are learned")


def kinds_of_reset(facts: Facts) -> Verdict:
    """The kind of reset that the run has; there is only one kind in a run."""
    return Status.DIFFERENT, facts.run.results_of(Rfc2544Test.RESET)[0].settings.reset_name


def lead(facts: Facts) -> Verdict:
    """Whether frames were forwarded for long enough before the reset."""
    least = min(one.settings.lead_s for one in facts.run.results_of(Rfc2544Test.RESET))
    return _met(least >= 15.0, f"{least:g} s")


def at_the_throughput(test: Rfc2544Test, loads_of: Callable[[Any], Iterable[Rate]]) -> Judge:
    """Whether a test was made at the throughputs of the run. A function gives the rates of each of its results."""

    def judge(facts: Facts) -> Verdict:
        throughputs = {
            size: one.goals[0].throughput
            for size, one in _by_size(facts, Rfc2544Test.THROUGHPUT)
            if _is_found(one)
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
