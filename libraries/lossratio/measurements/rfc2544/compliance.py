"""The MUSTs and SHOULDs of RFC 2544 and of the RFCs that update it, and how a run met them.

What the report itself does in every run is not listed: its tables, graphs, units and definitions.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from lossratio.measurements.latency import LatencyResult
from lossratio.measurements.recovery import RecoveryResult
from lossratio.measurements.rfc2544 import judges
from lossratio.measurements.rfc2544.judges import Facts, InAnyRun, Judge, Status
from lossratio.measurements.rfc2544.run import Rfc2544Run, Rfc2544Test, in_words
from lossratio.records import Rate
from lossratio.traffic import RFC2544_FRAME_SIZES

Level = Literal["MUST", "SHOULD"]


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
    """The requirements, in the order of the sections. A test without a result has a single entry that says so."""
    if not any(part.result for part in run.parts):
        return (Requirement("26", "MUST", "tests", Status.DIFFERENT, judges.LEFT_OUT),)
    facts = Facts(run)
    requirements = []
    for section, level, text, judge in (*_GENERAL, *_rows_of_tests(run)):
        verdict = judge(facts) if callable(judge) else judge
        requirements.append(Requirement(section, level, text, *verdict))
    return tuple(requirements)


def _rows_of_tests(run: Rfc2544Run) -> Iterator["_Row"]:
    for number, (test, rows) in enumerate(_OF_TESTS.items(), start=1):
        if run.results_of(test):
            yield from rows
        else:
            yield f"26.{number}", "SHOULD", test.value, (Status.DIFFERENT, judges.LEFT_OUT)


def verdict_of(requirements: tuple[Requirement, ...]) -> str:
    """The compliance in the words of RFC 2544, section 5."""
    different = {item.level for item in requirements if item.status is Status.DIFFERENT}
    not_seen = {item.level for item in requirements if item.status is Status.NOT_SEEN}
    if "MUST" in different:
        return "not compliant"

    limit = ""
    if "MUST" in not_seen:
        limit = ", as far as the results show"
    if different:
        return f"conditionally compliant{limit}"
    return f"unconditionally compliant{limit}"


def _latency_loads(result: LatencyResult) -> Iterable[Rate]:
    return (at_load.load for at_load in result.latency)


def _throughput_before(result: RecoveryResult) -> Iterable[Rate]:
    return [result.throughput]


_GUIDE = "the conditions list the options; they were not compared with the user guide"
_INTERVALS = "routing protocols, if there are any, have the intervals of the DUT's configuration; see conditions"
_INFLUENCES = "the kind of reset and the set-up are reported; other influences are not known"
_MODIFIERS = "frames and filters as under conditions; further runs can have others"
_M: Level = "MUST"
_S: Level = "SHOULD"

_Row = tuple[str, Level, str, Judge | InAnyRun]
# Table: what the RFC requires of all tests.
_GENERAL: tuple[_Row, ...] = (
    ("7", _M, "the DUT is set up as its user guide says", (Status.NOT_SEEN, _GUIDE)),
    ("7", _M, "the same set-up for all tests", judges.one_set_up),
    ("7", _M, "version and exact configuration are reported", judges.configuration),
    ("7", _S, "usual intervals of routing updates and keep-alives", (Status.NOT_SEEN, _INTERVALS)),
    (
        "8",
        _S,
        "frames of Appendix C (UDP echo)",
        (Status.DIFFERENT, "frames of the traffic profile; see conditions"),
    ),
    ("9.1", _S, f"{in_words(RFC2544_FRAME_SIZES)} bytes", judges.sizes),
    (
        "10",
        _S,
        "only test frames count; their length, order, duplicates and gaps are reported",
        judges.examined,
    ),
    (
        "11, 12",
        _S,
        "all tests without modifiers first, then with each one alone",
        (Status.DIFFERENT, _MODIFIERS),
    ),
    ("13", _M, "a routing update before each trial", judges.updates_before_trials),
    ("14", _S, "the same rate from both sides", judges.both_sides),
    ("15", _S, "one input and one output port for the full suite", judges.one_pair),
    ("16", _M, "bidirectional streams of many ports address all others", judges.all_others),
    ("20", _S, "the maximum rate is the theoretical one of the medium", judges.theoretical_load),
    (
        "21",
        _S,
        "bursts of 16, 64, 256 and 1024 frames",
        (Status.DIFFERENT, "back-to-back frames only"),
    ),
    ("23", _S, "waits before and after each trial: 2 s, 2 s, 5 s", judges.waits),
    ("24", _S, "trials of 60 s; searches may use shorter ones", judges.durations),
)
# Table: what the RFC requires of each test.
_OF_TESTS: dict[Rfc2544Test, tuple[_Row, ...]] = {
    Rfc2544Test.THROUGHPUT: (
        ("26.1", _M, "throughput: the highest rate at which no frame is lost", judges.no_loss),
        ("26.1", _M, "with the theoretical limit", judges.link_limits),
    ),
    Rfc2544Test.LATENCY: (
        ("26.2", _M, "the tester recognises tagged frames", judges.tagged),
        ("26.2", _M, "at least 20 repeats", judges.latency_repeats),
        (
            "26.2",
            _S,
            "at the throughput of that frame size",
            judges.at_the_throughput(Rfc2544Test.LATENCY, _latency_loads),
        ),
        ("26.2", _S, "streams of 120 s", judges.streams),
        ("26.2", _S, "one tagged frame after 60 s", judges.single_frame),
        (
            "26.2",
            _S,
            "again with a new destination network each time",
            (Status.DIFFERENT, "one network"),
        ),
    ),
    Rfc2544Test.FRAME_LOSS: (
        ("26.3", _M, "steps of 10 % at most", judges.steps),
        ("26.3", _S, "from the maximum rate down to two trials without loss", judges.from_the_top),
        ("26.3", _M, "axes in per cent of the theoretical limit", judges.link_limits),
    ),
    Rfc2544Test.BACK_TO_BACK: (
        ("RFC 9004, 6.2", _M, "settle time of 2 s, or as long as the burst", judges.settle),
        (
            "RFC 9004, 6.2",
            _M,
            "a result at the limit is repeated with a higher limit",
            judges.at_limit,
        ),
    ),
    Rfc2544Test.RECOVERY: (
        ("26.5", _S, "overload of 110 % for 60 s, then half", judges.overload),
        ("26.5", _S, "several repeats, and their average", judges.recoveries),
        (
            "26.5",
            _S,
            "at the throughput of that frame size",
            judges.at_the_throughput(Rfc2544Test.RECOVERY, _throughput_before),
        ),
    ),
    Rfc2544Test.RESET: (
        ("26.6", _S, "directly connected networks only", judges.direct_networks),
        ("26.6", _S, "hardware, software and power resets", judges.kinds_of_reset),
        (
            "RFC 6201, 4",
            _S,
            "forwarding for 15 s before the reset, with the smallest frames",
            judges.lead,
        ),
        ("RFC 6201, 3", _M, "influences on the time are reported", (Status.NOT_SEEN, _INFLUENCES)),
    ),
}
