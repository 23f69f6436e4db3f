"""What a run did differently from RFC 2544 and the RFCs that update it.

What a run did as the RFC requires is not listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

from lossratio.measurements.latency import LatencyAtLoad
from lossratio.measurements.rfc2544.run import Rfc2544Run, Rfc2544Test, in_words
from lossratio.measurements.throughput import SearchRequest
from lossratio.mlrsearch import SearchGoal
from lossratio.results import TestResult, integrity_of
from lossratio.traffic import RFC2544_FRAME_SIZES
from lossratio.values import Rate, format_ratio

Level = Literal["MUST", "SHOULD"]
Judge = Callable[[Rfc2544Run], Iterable[str]]
"""Says what a run, which has results, did instead of a requirement; nothing if it met the requirement."""

_ROUNDING = 1e-6
"""Rounding error of equal rates, as a share."""
_OVERLOAD = 1.1
_LEFT_OUT = "this test has no result in this run"


@dataclass(frozen=True)
class Difference:
    """A requirement that a run did not meet."""

    section: str
    """RFC and section; a number alone is a section of RFC 2544."""
    level: Level
    """The level of the requirement."""
    text: str
    """A summary of the requirement."""
    instead: str
    """What was done instead."""


def differences_of(run: Rfc2544Run) -> tuple[Difference, ...]:
    """The requirements that a run did not meet."""
    if not _results(run):
        return (Difference("26", "MUST", "tests", "no test has a result in this run"),)
    differences = list(_ALWAYS)
    for section, level, text, judge in _RULES:
        differences += [Difference(section, level, text, instead) for instead in judge(run)]
    for test, field, least, section, level, text in _LEAST:
        used = getattr(run.requests.get(test), field, least)
        unit = "" if field == "repeats" else " s"
        if used < least:
            differences.append(Difference(section, level, text, f"{used:g}{unit}"))
    for number, test in enumerate(Rfc2544Test, start=1):
        if not run.results_of(test):
            differences.append(Difference(f"26.{number}", "SHOULD", test.value, _LEFT_OUT))
    return tuple(differences)


def verdict_of(differences: Iterable[Difference]) -> str:
    """The compliance in the words of RFC 2544, section 5. Some SHOULDs differ in every run."""
    if any(one.level == "MUST" for one in differences):
        return "not compliant"
    return "conditionally compliant, as far as the results show"


def _results(run: Rfc2544Run) -> list[TestResult]:
    return [part.result for part in run.parts if part.result is not None]


def _reaches(load: Rate, maximum: Rate | None) -> bool:
    """Whether a load is at least the theoretical maximum, apart from rounding; False if the maximum is not known."""
    if maximum is None:
        return False
    return load.per_interface_fps >= maximum.per_interface_fps * (1 - _ROUNDING)


def _set_up_of(result: TestResult) -> dict[str, Any]:
    duts = result.conditions.duts
    return {
        name: (dut.get("kind"), dut.get("options"), dut.get("version"))
        for name, dut in duts.items()
    }


def _set_ups(run: Rfc2544Run) -> Iterator[str]:
    first, *others = map(_set_up_of, _results(run))
    if any(other != first for other in others):
        yield "the options or the version of the DUT changed between tests"


def _configuration(run: Rfc2544Run) -> Iterator[str]:
    duts = _results(run)[0].conditions.duts
    unknown = [name for name, dut in duts.items() if not dut.keys() - {"node"}]
    if unknown or not duts:
        yield f"not known: {', '.join(unknown) or 'there is no DUT'}"


def _sizes(run: Rfc2544Run) -> Iterator[str]:
    measured = [part.frame_size for part in run.of(Rfc2544Test.THROUGHPUT)]
    if not {f"{size}B" for size in RFC2544_FRAME_SIZES} <= set(measured):
        yield ", ".join(measured)


def _unexamined(run: Rfc2544Run) -> Iterator[str]:
    seen = [(one.test.name, integrity_of(one)) for one in run.results_of(Rfc2544Test.THROUGHPUT)]
    unseen = [name for name, integrity in seen if integrity is None or not integrity.examined]
    if unseen:
        yield f"no frame was examined: {', '.join(unseen)}"


def _learned(run: Rfc2544Run) -> Iterator[str]:
    if any("learned_routes" in dut for dut in _results(run)[0].conditions.duts.values()):
        yield "routes are learned once"


def _uneven(run: Rfc2544Run) -> Iterator[str]:
    if len(set(_results(run)[0].conditions.load.shares_ratio)) > 1:
        yield "directions have different rates; see conditions"


def _links(run: Rfc2544Run) -> Iterator[str]:
    links = _results(run)[0].conditions.testbed.links
    if links > 1:
        yield f"{links} of each, and each port sends to one other port"


def _limited(run: Rfc2544Run) -> Iterator[str]:
    loads = [one.max_load for one in _results(run)]
    if not all(_reaches(load.rate, load.theoretical_maximum) for load in loads):
        yield "the maximum load is the limit of the tester, the NIC or the request; see the tables"


def _waits(run: Rfc2544Run) -> Iterator[str]:
    for one in _results(run)[0].conditions.timing.deviations:
        yield f"{one.step}: {one.instead} instead of {one.rfc2544}"


def _unknown_limits(run: Rfc2544Run) -> Iterator[str]:
    if any(one.max_load.theoretical_maximum is None for one in _results(run)):
        yield "the theoretical limit is not known because the speed of a link is not known"


def _not_found(run: Rfc2544Run) -> Iterator[str]:
    unknown = []
    for part in run.of(Rfc2544Test.THROUGHPUT):
        found: Any = part.result
        outcome = None if found is None else found.goals[0].result
        if outcome is None or outcome.regular:
            continue
        rate = outcome.conditional_throughput
        if rate is None or not _reaches(rate, found.max_load.theoretical_maximum):
            unknown.append(f"{part.frame_size}: {outcome.reason}")
    if unknown:
        yield f"not found for {'; '.join(unknown)}"


def _lossy_goal(run: Rfc2544Run) -> Iterator[str]:
    goal = _goal_of(run)
    if goal.exceed_ratio:
        yield f"goal {goal}: up to {format_ratio(goal.exceed_ratio)} of trials may lose frames (RFC 9971)"


def _short_goal(run: Rfc2544Run) -> Iterator[str]:
    goal = _goal_of(run)
    if goal.final_trial_duration < 60.0:
        yield f"{goal.final_trial_duration:g} s"


def _goal_of(run: Rfc2544Run) -> SearchGoal:
    return cast(SearchRequest, run.requests[Rfc2544Test.THROUGHPUT]).goals[0]


def _latencies(run: Rfc2544Run) -> list[LatencyAtLoad]:
    results = run.results_of(Rfc2544Test.LATENCY)
    return [at_load for result in results for at_load in result.latency]


def _untagged(run: Rfc2544Run) -> Iterator[str]:
    faults = sum(len(at_load.faults) for at_load in _latencies(run))
    if faults:
        yield f"no latency of {faults} repeats or directions; see the table"


def _untimed(run: Rfc2544Run) -> Iterator[str]:
    ways = [way for at_load in _latencies(run) for way in at_load.directions]
    if any(way.middle_us is None and way.error is None for way in ways):
        yield "tagged frames during the whole stream; the generator does not report the middle one"


def _cut_off(run: Rfc2544Run) -> Iterator[str]:
    losses = [result.frame_loss for result in run.results_of(Rfc2544Test.FRAME_LOSS)]
    if any(found is not None and not found.is_complete for found in losses):
        yield "it ended at the smallest load, before two trials in a row lost nothing"


def _at_limit(run: Rfc2544Run) -> Iterator[str]:
    names = [
        one.test.name
        for one in run.results_of(Rfc2544Test.BACK_TO_BACK)
        if one.back_to_back is not None and one.back_to_back.is_at_limit
    ]
    if names:
        yield f"only lower bounds are known: {', '.join(names)}"


def _small_overload(run: Rfc2544Run) -> Iterator[str]:
    for one in run.results_of(Rfc2544Test.RECOVERY):
        ratio = one.overload.per_interface_fps / one.throughput.per_interface_fps
        is_most = _reaches(one.overload, one.max_load.theoretical_maximum)
        if ratio < _OVERLOAD - _ROUNDING and not is_most:
            yield f"{one.test.name}: {format_ratio(round(ratio, 3))}, at the maximum load"


def _kind_of_reset(run: Rfc2544Run) -> Iterator[str]:
    for one in run.results_of(Rfc2544Test.RESET):
        yield one.settings.reset_name


_M: Level = "MUST"
_S: Level = "SHOULD"
_ALWAYS = (
    Difference(
        "8", _S, "frames of Appendix C (UDP echo)", "frames of the traffic profile; see conditions"
    ),
    Difference(
        "11, 12",
        _S,
        "all tests without modifiers first, then with each one alone",
        "frames and filters as under conditions; further runs can have others",
    ),
    Difference("21", _S, "bursts of 16, 64, 256 and 1024 frames", "back-to-back frames only"),
    Difference("26.2", _S, "again with a new destination network each time", "one network"),
)
"""What is different in every run."""
# Table: the requirements that a run may not meet.
_RULES: tuple[tuple[str, Level, str, Judge], ...] = (
    ("7", _M, "the same set-up for all tests", _set_ups),
    ("7", _M, "version and exact configuration are reported", _configuration),
    ("9.1", _S, f"{in_words(RFC2544_FRAME_SIZES)} bytes", _sizes),
    (
        "10",
        _S,
        "only test frames count; their length, order, duplicates and gaps are reported",
        _unexamined,
    ),
    ("13", _M, "a routing update before each trial", _learned),
    ("14", _S, "the same rate from both sides", _uneven),
    ("15, 16", _S, "one input and one output port for the full suite", _links),
    ("20", _S, "the maximum rate is the theoretical one of the medium", _limited),
    ("23", _S, "waits before and after each trial: 2 s, 2 s, 5 s", _waits),
    ("24", _S, "final trials of 60 s for the throughput", _short_goal),
    ("26.1", _M, "throughput: the highest rate at which no frame is lost", _lossy_goal),
    ("26.1", _M, "throughput of each frame size", _not_found),
    ("26.1, 26.3", _M, "with the theoretical limit", _unknown_limits),
    ("26.2", _M, "the tester recognises tagged frames", _untagged),
    ("26.2", _S, "one tagged frame after 60 s", _untimed),
    ("26.3", _S, "from the maximum rate down to two trials without loss", _cut_off),
    ("RFC 9004, 6.2", _M, "a result at the limit is repeated with a higher limit", _at_limit),
    ("26.5", _S, "overload of 110 %, then half", _small_overload),
    ("26.6", _S, "hardware, software and power resets", _kind_of_reset),
)
# Table: the least value of a field of a test's request, and the requirement.
_LEAST: tuple[tuple[Rfc2544Test, str, float, str, Level, str], ...] = (
    (Rfc2544Test.LATENCY, "repeats", 20, "26.2", _M, "at least 20 repeats"),
    (Rfc2544Test.LATENCY, "duration", 120.0, "26.2", _S, "streams of 120 s"),
    (Rfc2544Test.FRAME_LOSS, "trial_duration", 60.0, "24", _S, "trials of 60 s for frame loss"),
    (
        Rfc2544Test.BACK_TO_BACK,
        "settle",
        2.0,
        "RFC 9004, 6.2",
        _M,
        "settle time of 2 s, or as long as the burst",
    ),
    (Rfc2544Test.RECOVERY, "duration", 60.0, "26.5", _S, "overload for 60 s"),
    (Rfc2544Test.RECOVERY, "repeats", 2, "26.5", _S, "several repeats, and their average"),
    (
        Rfc2544Test.RESET,
        "lead",
        15.0,
        "RFC 6201, 4",
        _S,
        "forwarding for 15 s before the reset, with the smallest frames",
    ),
)
