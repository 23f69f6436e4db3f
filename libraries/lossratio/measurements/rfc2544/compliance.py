"""Every MUST and SHOULD of RFC 2544 and of the RFCs that update it, and how a run met it, judged by its facts."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Any, Final, Literal

from lossratio.measurements.back_to_back import BackToBackResult
from lossratio.measurements.frame_loss import FrameLoss
from lossratio.measurements.recovery import RecoveryResult
from lossratio.measurements.reset import ResetResult
from lossratio.measurements.rfc2544.modifiers import Modifier
from lossratio.measurements.rfc2544.run import Rfc2544Run, Rfc2544Test, in_words
from lossratio.measurements.throughput import ThroughputResult
from lossratio.records import Rate
from lossratio.results import Conditions, TestResult, integrity_of
from lossratio.traffic import RFC2544_FRAME_SIZES
from lossratio.units import format_frame_rate

_RUN_SECONDS, _STREAM_SECONDS = 60.0, 120.0
_SAME = 1e-6

Level = Literal["MUST", "SHOULD"]


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

_DONE = Status.DONE
_DIFFERENT: Final = Status.DIFFERENT
_NO_CASE = Status.NOT_APPLICABLE
_NOT_SEEN: Final = Status.NOT_SEEN
_WithoutFacts = Literal[Status.DIFFERENT, Status.NOT_SEEN]
"""The statuses that need no look at the results: nothing counts as done just because the code says so."""

Judge = Callable[["_Facts"], Verdict]
"""Finds from the facts of a run how a requirement was met."""


@dataclass(frozen=True)
class Requirement:
    """One requirement."""

    section: str
    """RFC and section; a number alone is a section of RFC 2544."""
    level: Level
    """The level of the requirement."""
    text: str
    """A summary of the requirement."""
    status: Status
    """How the run met it."""
    why: str
    """How it was done, or why it is different."""


def requirements_of(run: Rfc2544Run) -> tuple[Requirement, ...]:
    """All requirements, in the order of the sections. For a test without a result, a single one says so."""
    facts = _Facts(run)
    rows = list(_GENERAL)
    for number, (test, of_test) in enumerate(_OF_TESTS.items(), start=1):
        is_there = any(part.result is not None for part in run.of(test))
        rows += (
            of_test
            if is_there
            else [(f"26.{number}", _S, test.value, _in_any_run(_DIFFERENT, _LEFT_OUT))]
        )
    return tuple(
        Requirement(section, level, text, *judge(facts)) for section, level, text, judge in rows
    )


def verdict_of(requirements: tuple[Requirement, ...]) -> str:
    """The compliance in the words of RFC 2544, section 5."""
    different = {item.level for item in requirements if item.status is Status.DIFFERENT}
    not_seen = {item.level for item in requirements if item.status is Status.NOT_SEEN}
    if "MUST" in different:
        return "not compliant"
    limit = ", as far as the results show" if "MUST" in not_seen else ""
    if different:
        return f"conditionally compliant{limit}"
    return f"unconditionally compliant{limit}"


class _Facts:
    def __init__(self, run: Rfc2544Run) -> None:
        self.run = run
        self.results: list[TestResult] = [
            part.result for part in run.parts if part.result is not None
        ]
        self.sizes = [part.frame_size for part in run.of(Rfc2544Test.THROUGHPUT)]
        self.bytes = [
            int(size.removesuffix("B")) for size in self.sizes if size.removesuffix("B").isdecimal()
        ]
        self.conditions: Conditions | None = self.results[0].conditions if self.results else None
        self.duts = {} if self.conditions is None else self.conditions.duts
        self.links = 1 if self.conditions is None else self.conditions.testbed.links
        self.has_link_limits = bool(self.results) and all(
            result.max_load.theoretical_maximum is not None for result in self.results
        )
        self.learns_routes = any("learned_routes" in dut for dut in self.duts.values())
        self.throughputs: Sequence[ThroughputResult] = run.results_of(Rfc2544Test.THROUGHPUT)
        self.latency = [
            at_load for result in run.results_of(Rfc2544Test.LATENCY) for at_load in result.latency
        ]
        self.stream = min((at_load.duration_s or 0.0 for at_load in self.latency), default=0.0)
        losses = [result.frame_loss for result in run.results_of(Rfc2544Test.FRAME_LOSS)]
        self.losses: list[FrameLoss] = [found for found in losses if found is not None]
        self.bursts: Sequence[BackToBackResult] = run.results_of(Rfc2544Test.BACK_TO_BACK)
        self.recoveries: Sequence[RecoveryResult] = run.results_of(Rfc2544Test.RECOVERY)

        self.resets: Sequence[ResetResult] = run.results_of(Rfc2544Test.RESET)

    @property
    def routes(self) -> bool | None:
        """Whether a DUT routes; None: not known."""
        routed = [dut.get("is_router") for dut in self.duts.values()]
        if None in routed or not routed:
            return None
        return any(routed)


def _met(is_met: object, why: str, otherwise: str | None = None) -> Verdict:
    """Done or different, each with its reason; without a second reason, both have the same one."""
    if is_met:
        return (_DONE, why)
    return (_DIFFERENT, why if otherwise is None else otherwise)


def _in_any_run(status: _WithoutFacts, why: str) -> Judge:
    return lambda f: (status, why)


def _shown_in(facts: Callable[[_Facts], object], why: str = "") -> Judge:
    """Done if the facts that it is about are known."""
    return lambda f: _met(facts(f), why, _NOTHING_FOUND)


def _sizes(f: _Facts, wanted: Iterable[int]) -> Verdict:
    return _met(set(wanted) <= set(f.bytes), "all; others are extras", ", ".join(f.sizes))


def _burst(name: str, text: str) -> Judge:
    def judge(f: _Facts) -> Verdict:
        stated = [getattr(one.settings, name) for one in f.bursts]
        if not stated:
            return _DIFFERENT, _NOTHING_FOUND
        return _DONE, text.format(stated[0])

    return judge


def _one_set_up(f: _Facts) -> Verdict:
    duts = [
        {
            name: [dut.get(what) for what in ("kind", "options", "version")]
            for name, dut in one.conditions.duts.items()
        }
        for one in f.results
    ]
    same = all(one == duts[0] for one in duts)
    return _met(
        duts and same,
        "one set-up for all",
        "the DUT had other options or another version meanwhile",
    )


def _configuration(f: _Facts) -> Verdict:
    unknown = [name for name, dut in f.duts.items() if not dut.keys() - {"node"}]
    return _met(
        f.duts and not unknown,
        "with the conditions of each result",
        f"not known: {', '.join(unknown)}",
    )


def _examined(how: str) -> Judge:
    def judge(f: _Facts) -> Verdict:
        unseen = [
            one.test.name
            for one in f.throughputs
            if (seen := integrity_of(one)) is None or not seen.examined
        ]
        return _met(
            f.throughputs and not unseen, how, f"no frame was examined: {', '.join(unseen)}"
        )

    return judge


def _modifier(modifier: Modifier) -> Judge:
    def judge(f: _Facts) -> Verdict:
        report = f.run.modifier_report
        if f.run.modifier is not modifier or report is None:
            return _DIFFERENT, _NO_MODIFIER
        return _met(report.is_as_asked, report.note)

    return judge


def _neighbours(f: _Facts) -> Verdict:
    known = f.conditions.timing.neighbours if f.conditions else ""
    return _met(f.conditions, known or "neighbours are static entries", _LEFT_OUT)


def _both_sides(f: _Facts) -> Verdict:
    if f.conditions is None or f.conditions.traffic.pattern != "bidirectional":
        return _NO_CASE, "traffic goes one way"
    shares = set(f.conditions.load.shares_ratio)
    return _met(
        len(shares) == 1,
        "rates are per interface",
        "directions have different rates; see conditions",
    )


def _theoretical_load(f: _Facts) -> Verdict:
    limits = [
        (one.max_load.theoretical_maximum, one.max_load.rate.per_interface_fps) for one in f.results
    ]
    is_whole = all(
        most is not None and load >= most.per_interface_fps * (1 - _SAME) for most, load in limits
    )
    limited = "the maximum load is the limit of the tester, the NIC or the request; see the tables"
    return _met(limits and is_whole, "the links limit the load", limited)


def _waits(f: _Facts) -> Verdict:
    if f.conditions is None:
        return _DIFFERENT, _LEFT_OUT
    deviations = f.conditions.timing.deviations
    instead = [f"{one.step}: {one.instead} instead of {one.rfc2544}" for one in deviations]
    return _met(not instead, "", "; ".join(instead))


def _durations(f: _Facts) -> Verdict:
    durations = {
        "throughput": [one.goals[0].goal.final_trial_duration_s for one in f.throughputs],
        "frame loss": [at_load.duration_s for loss in f.losses for at_load in loss.loads],
        "overload": [one.settings.duration_s for one in f.recoveries],
    }
    short = [
        f"{name} {min(known):g} s"
        for name, known in durations.items()
        if known and min(known) < _RUN_SECONDS
    ]
    is_known = any(durations.values())
    return _met(is_known and not short, "final trials", f"shorter ones: {', '.join(short)}")


def _no_loss(f: _Facts) -> Verdict:
    goal = f.throughputs[0].goals[0].goal
    why = f"goal {goal.name}: up to {goal.exceed_ratio:.0%} of trials may lose frames (RFC 9971)"
    return _met(goal.exceed_ratio == 0.0 and goal.loss_ratio == 0.0, "", why)


def _repeats(f: _Facts) -> Verdict:
    least = min(len(result.latency) for result in f.run.results_of(Rfc2544Test.LATENCY))
    return _met(least >= 20, f"{least}")


def _tagged(f: _Facts) -> Verdict:
    faults = sum(len(at_load.faults) for at_load in f.latency)
    return _met(
        f.latency and not faults, "", f"no latency of {faults} repeats or directions; see the table"
    )


def _single_frame(f: _Facts) -> Verdict:
    known = [
        one.middle_us is not None
        for at_load in f.latency
        for one in at_load.directions
        if one.error is None
    ]
    if not known or not all(known):
        return _met(
            False,
            "tagged frames during the whole stream; the generator does not report the middle one",
        )
    first = "the first one after the middle of each stream"
    beside = "; beside it the mean of up to 1000 tagged frames per second"
    return _met(f.stream >= _STREAM_SECONDS, first + beside, first)


def _steps(f: _Facts) -> Verdict:
    pairs = [pair for loss in f.losses for pair in pairwise(loss.loads)]
    largest = max(
        (one.share_of_max_load_ratio - other.share_of_max_load_ratio for one, other in pairs),
        default=0.0,
    )
    return _met(pairs and largest <= 0.1 + _SAME, f"{largest:.4g} of the maximum load")


def _settle(f: _Facts) -> Verdict:
    least = min(one.settings.settle_s for one in f.bursts)
    return _met(least >= 2.0, f"{least:g} s, or as long as the burst")


def _burst_repeats(f: _Facts) -> Verdict:
    found = [len(one.back_to_back.searches) for one in f.bursts if one.back_to_back is not None]
    if found:
        return (_DONE, f"N = {min(found)}")
    return (_NO_CASE, "there is no burst because no buffer fills")


def _at_limit(f: _Facts) -> Verdict:
    names = [one.test.name for one in f.bursts if one.back_to_back and one.back_to_back.is_at_limit]
    return _met(
        f.bursts and not names,
        "none is at the limit",
        f"reported as 'at least': {', '.join(names)}",
    )


def _overload(f: _Facts) -> Verdict:
    seconds = min(one.settings.duration_s for one in f.recoveries)
    limited = []
    for one in f.recoveries:
        load, most = one.overload.per_interface_fps, one.max_load.theoretical_maximum
        share = load / one.throughput.per_interface_fps
        # The RFC requires 110 %, or the medium's maximum rate if that is less.
        if share < 1.1 - _SAME and not (most and load >= most.per_interface_fps * (1 - _SAME)):
            limited.append(share)
    short = f"{min(limited):.1%} at the maximum load, " if limited else ""
    return _met(not limited and seconds >= _RUN_SECONDS, f"{short}{seconds:g} s")


def _recoveries(f: _Facts) -> Verdict:
    repeats = [len(one.recovery.times) for one in f.recoveries if one.recovery is not None]
    if repeats:
        return _met(min(repeats) > 1, f"{min(repeats)}")
    return (_NO_CASE, "there is no overload")


def _from_the_top(f: _Facts) -> Verdict:
    limits = [
        (one.max_load.rate, one.max_load.theoretical_maximum)
        for one in f.run.results_of(Rfc2544Test.FRAME_LOSS)
    ]
    if not limits or any(most is None for _, most in limits):
        return _DIFFERENT, _NO_LIMIT

    below = [
        (first.per_interface_fps, most.per_interface_fps)
        for first, most in limits
        if most is not None and first.per_interface_fps < most.per_interface_fps * (1 - _SAME)
    ]
    problems = []

    if below:
        first, most = min(below)
        problems.append(
            f"from {format_frame_rate(first)}, and the medium's is {format_frame_rate(most)}"
        )
    if not all(loss.is_complete for loss in f.losses):
        problems.append(_SMALLEST_LOAD)
    return _met(not problems, "", "; ".join(problems))


def _at_the_throughput(test: Rfc2544Test, loads_of: Callable[[Any], Iterable[Rate]]) -> Judge:
    """Whether a test was made at the throughputs of the run, given the rates of one of its results."""

    def judge(f: _Facts) -> Verdict:
        found = {size: one.goals[0].throughput for size, one in _by_size(f, Rfc2544Test.THROUGHPUT)}
        made = _by_size(f, test)
        elsewhere = []
        for size, one in made:
            loads = [*loads_of(one)]
            rate = found.get(size)
            if rate is None or not loads or not all(_is_same(load, rate) for load in loads):
                elsewhere.append(size)

        why = f"not at the throughput, or there is none: {', '.join(elsewhere)}"
        return _met(made and not elsewhere, "", why)

    return judge


def _by_size(f: _Facts, test: Rfc2544Test) -> list[tuple[str, Any]]:
    """The results of a test, each with its frame size."""
    return [(part.frame_size, part.result) for part in f.run.of(test) if part.result is not None]


def _is_same(one: Rate, other: Rate) -> bool:
    return math.isclose(one.per_interface_fps, other.per_interface_fps, rel_tol=_SAME)


def _modifier_of_routes(f: _Facts) -> Verdict:
    if f.run.modifier is not Modifier.ROUTING_UPDATES or f.run.modifier_report is None:
        return _NO_CASE, _NO_MODIFIER
    return _DONE, "the two commands of the modifier"


def _intervals(f: _Facts) -> Verdict:
    if f.routes is False:
        return _NO_CASE, "a bridge has none"
    return _met(
        f.learns_routes, "the intervals of its routing protocol", "routes and neighbours are static"
    )


def _many_sizes(f: _Facts) -> Verdict:
    return _met(len(f.sizes) >= 5, f"{len(f.sizes)}: {', '.join(f.sizes)}")


def _without_modifier(f: _Facts) -> Verdict:
    is_without = f.results and f.run.modifier is None
    return _met(is_without, "these tests have none", _OTHER_RUNS)


def _one_pair(f: _Facts) -> Verdict:
    return _met(f.conditions and f.links == 1, f"{f.links} of each")


def _graph_over_sizes(f: _Facts) -> Verdict:
    if not f.has_link_limits:
        return _DIFFERENT, _NO_LIMIT
    return _met(len(f.throughputs) > 1, "", "one frame size makes no graph")


def _streams(f: _Facts) -> Verdict:
    return _met(f.stream >= _STREAM_SECONDS, f"{f.stream:g} s")


def _resets_stated(f: _Facts) -> Verdict:
    is_stated = f.resets and all(one.reset for one in f.resets)
    return _met(is_stated, "", _LEFT_OUT)


def _lead(f: _Facts) -> Verdict:
    least = min(one.settings.lead_s for one in f.resets)
    return _met(least >= 15.0, f"{least:g} s")


_NO_MODIFIER = "this run has no such modifier; a separate run can have it"
_LEFT_OUT = "this test has no result in this run"
_NO_LIMIT = "the theoretical limit is not known because the speed of a link is not known"
_SMALLEST_LOAD = "it ended at the smallest load without two such trials"
_OTHER_RUNS = "these tests have a modifier; tests without modifiers are a separate run"
_PER_CENT = "the load is in per cent of the maximum load because the speed of a link is not known"
_ORDER = "time of the last lost frame minus time of the change; the RFC swaps the two"
_NOTHING_FOUND = "there is nothing to report"
_GUIDE = "the conditions list the options; they were not compared with the user guide"
_INFLUENCES = "the kind of reset and the set-up are reported; other influences are not known"
_WITH_LATENCY = _shown_in(lambda f: [one for one in f.latency if one.directions], "with the table")
_WITH_BURSTS = _shown_in(lambda f: [one for one in f.bursts if one.back_to_back])
_M: Level = "MUST"
_S: Level = "SHOULD"

_Row = tuple[str, Level, str, Judge]
# Table: what the RFC requires of all tests.
_GENERAL: tuple[_Row, ...] = (
    (
        "6",
        _S,
        "one tester sends and receives",
        lambda f: _met(f.results, "the TG has all ports", _LEFT_OUT),
    ),
    ("7", _M, "the DUT is set up as its user guide says", _in_any_run(_NOT_SEEN, _GUIDE)),
    ("7", _M, "the same set-up for all tests", _one_set_up),
    ("7", _M, "version and exact configuration are reported", _configuration),
    ("7", _S, "usual intervals of routing updates and keep-alives", _intervals),
    (
        "8",
        _M,
        "frame formats are reported",
        lambda f: _met(f.conditions, "under conditions", _LEFT_OUT),
    ),
    (
        "8",
        _S,
        "frames of Appendix C (UDP echo)",
        _in_any_run(_DIFFERENT, "frames of the traffic profile; see conditions"),
    ),
    ("9", _S, "at least 5 frame sizes", _many_sizes),
    ("9", _S, "the smallest and the largest legal frame size", lambda f: _sizes(f, {64, 1518})),
    ("9.1", _S, f"{in_words(RFC2544_FRAME_SIZES)} bytes", lambda f: _sizes(f, RFC2544_FRAME_SIZES)),
    (
        "10",
        _S,
        "only test frames count, and their length is checked",
        _examined("frames have a tag"),
    ),
    (
        "10",
        _S,
        "sequence numbers; frames out of order, duplicates and gaps are reported",
        _examined("in each result"),
    ),
    ("11", _S, "all tests without modifiers first, then with each one alone", _without_modifier),
    ("11.1", _S, "broadcast frames: 1 %", _modifier(Modifier.BROADCAST)),
    (
        "11.2",
        _S,
        "management frames: a query as the first frame of each second",
        _modifier(Modifier.MANAGEMENT),
    ),
    ("11.3", _S, "routing update frames", _modifier(Modifier.ROUTING_UPDATES)),
    ("11.4", _S, "filters: 1, then 25", _modifier(Modifier.FILTERS)),
    ("12", _S, "then random addresses of 256 networks", _modifier(Modifier.ADDRESSES)),
    ("11.3", _M, "two alternating routing updates", _modifier_of_routes),
    (
        "13",
        _M,
        "a routing update before each trial",
        lambda f: (
            (_DIFFERENT, "routes are learned once")
            if f.learns_routes
            else (_NO_CASE, "routes are static")
        ),
    ),
    ("14", _S, "the same rate from both sides", _both_sides),
    ("15", _S, "one input and one output port for the full suite", _one_pair),
    (
        "16",
        _M,
        "bidirectional streams of many ports address all others",
        lambda f: (
            (_DIFFERENT, "each port addresses its opposite one")
            if f.links > 1
            else (_NO_CASE, "one pair of ports")
        ),
    ),
    ("20", _S, "the maximum rate is the theoretical one of the medium", _theoretical_load),
    (
        "21",
        _S,
        "bursts of 16, 64, 256 and 1024 frames",
        _in_any_run(_DIFFERENT, "back-to-back frames only"),
    ),
    ("23", _S, "waits before and after each trial: 2 s, 2 s, 5 s", _waits),
    ("24", _S, "trials of 60 s; searches may use shorter ones", _durations),
    ("25", _S, "address resolution is answered where needed", _neighbours),
)
# Table: what the RFC requires of each test.
_OF_TESTS: dict[Rfc2544Test, tuple[_Row, ...]] = {
    Rfc2544Test.THROUGHPUT: (
        ("26.1", _M, "throughput: the highest rate at which no frame is lost", _no_loss),
        (
            "26.1",
            _M,
            "in frames per second, with frame size, theoretical limit and protocol",
            lambda f: _met(f.has_link_limits, "", _NO_LIMIT),
        ),
        ("26.1", _S, "graph over the frame size, with the theoretical rate", _graph_over_sizes),
    ),
    Rfc2544Test.LATENCY: (
        ("26.2", _M, "the tester recognises tagged frames", _tagged),
        ("26.2", _M, "at least 20 repeats", _repeats),
        (
            "26.2",
            _S,
            "at the throughput of that frame size",
            _at_the_throughput(
                Rfc2544Test.LATENCY, lambda one: (at_load.load for at_load in one.latency)
            ),
        ),
        ("26.2", _M, "the definition of latency is reported", _WITH_LATENCY),
        ("26.2", _S, "streams of 120 s", _streams),
        ("26.2", _S, "one tagged frame after 60 s", _single_frame),
        (
            "26.2",
            _S,
            "again with a new destination network each time",
            _in_any_run(_DIFFERENT, "one network"),
        ),
        ("26.2", _S, "table by frame size", _WITH_LATENCY),
    ),
    Rfc2544Test.FRAME_LOSS: (
        ("26.3", _M, "steps of 10 % at most", _steps),
        ("26.3", _S, "from the maximum rate down to two trials without loss", _from_the_top),
        (
            "26.3",
            _M,
            "axes in per cent, from 0 to 100",
            lambda f: _met(f.has_link_limits, "", _PER_CENT),
        ),
        ("26.3", _S, "graph", lambda f: _met(f.losses, "", "there is nothing to draw")),
    ),
    Rfc2544Test.BACK_TO_BACK: (
        ("RFC 9004, 6.2", _M, "settle time of 2 s, or as long as the burst", _settle),
        (
            "RFC 9004, 6.2",
            _M,
            "longest burst can be set, up to 30 s",
            _burst("longest_burst_s", "{:g} s"),
        ),
        (
            "RFC 9004, 6.2",
            _M,
            "bisection, with its parameters and its step",
            _burst("step_frames", "step of {} frame"),
        ),
        ("RFC 9004, 6.3", _M, "N repeats, each independent, each kept", _burst_repeats),
        (
            "RFC 9004, 6.4",
            _M,
            "rates in frames per second; average, minimum, maximum, standard deviation",
            _WITH_BURSTS,
        ),
        ("RFC 9004, 7", _S, "table with the corrected buffer time", _WITH_BURSTS),
        ("RFC 9004, 6.2", _M, "a result at the limit is repeated with a higher limit", _at_limit),
    ),
    Rfc2544Test.RECOVERY: (
        ("26.5", _S, "overload of 110 % for 60 s, then half", _overload),
        ("26.5", _S, "several repeats, and their average", _recoveries),
        (
            "26.5",
            _S,
            "at the throughput of that frame size",
            _at_the_throughput(Rfc2544Test.RECOVERY, lambda one: [one.throughput]),
        ),
        (
            "26.5",
            _S,
            "table by frame size",
            _shown_in(lambda f: [one for one in f.recoveries if one.recovery], _ORDER),
        ),
    ),
    Rfc2544Test.RESET: (
        (
            "26.6",
            _S,
            "directly connected networks only",
            lambda f: _met(f.resets and not f.learns_routes, "", "routes are learned"),
        ),
        (
            "26.6",
            _S,
            "hardware, software and power resets",
            lambda f: (_DIFFERENT, f.resets[0].settings.reset_name),
        ),
        ("26.6", _S, "a statement for each reset", _resets_stated),
        (
            "RFC 6201, 4",
            _S,
            "forwarding for 15 s before the reset, with the smallest frames",
            _lead,
        ),
        (
            "RFC 6201, 3",
            _M,
            "influences on the time are reported",
            _in_any_run(_NOT_SEEN, _INFLUENCES),
        ),
    ),
}
