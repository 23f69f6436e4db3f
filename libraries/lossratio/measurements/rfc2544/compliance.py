"""Every MUST and SHOULD of RFC 2544, and of the RFCs that update it: done, different, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from lossratio.measurements.back_to_back import BackToBackResult
from lossratio.measurements.latency import LatencyResult
from lossratio.measurements.reset import ResetResult
from lossratio.measurements.rfc2544.modifiers import Modifier
from lossratio.measurements.rfc2544.run import FULL, Rfc2544Run, Rfc2544Test
from lossratio.results import Conditions, TestResult

ETHERNET_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
"""Frame sizes of RFC 2544, section 9.1."""

LEAST_SIZES = 5
"""The least number of frame sizes by RFC 2544, section 9."""

_RUN_SECONDS = 60.0


class Status(str, Enum):
    """What a run made of a requirement."""

    DONE = "done"
    """As the RFC has it."""
    DIFFERENT = "different"
    """In another way, or not at all."""
    NOT_APPLICABLE = "not applicable"
    """The requirement does not concern this run."""


@dataclass(frozen=True)
class Requirement:
    """One requirement.

    Attributes:
        section: RFC and section; a number alone is one of RFC 2544.
        level: How much it is required.
        text: The requirement in short.
        status: What the run made of it.
        why: How it was done, or why it is different.
    """

    section: str
    level: Literal["MUST", "SHOULD"]
    text: str
    status: Status
    why: str


def requirements_of(run: Rfc2544Run) -> tuple[Requirement, ...]:
    """All requirements, in the order of the sections."""
    facts = _Facts(run)
    return (
        *_conditions(facts),
        *_modifiers(run),
        *_trials(facts),
        *_tests(facts),
        *_back_to_back(facts),
        *_recovery_and_reset(facts),
    )


def verdict_of(requirements: tuple[Requirement, ...]) -> str:
    """The compliance in the words of RFC 2544, section 5."""
    different = {item.level for item in requirements if item.status is Status.DIFFERENT}
    if "MUST" in different:
        return "not compliant"
    return "conditionally compliant" if different else "unconditionally compliant"


class _Facts:
    """The facts of a run that requirements depend on."""

    def __init__(self, run: Rfc2544Run) -> None:
        self.run = run
        self.chosen = run.settings
        self.results: list[TestResult] = [part.result for part in run.parts if part.result is not None]
        self.sizes = [part.frame_size for part in run.of(Rfc2544Test.THROUGHPUT)]
        self.conditions: Conditions | None = self.results[0].conditions if self.results else None

    def has(self, test: Rfc2544Test) -> bool:
        """Whether a test has a result at all."""
        return any(part.result is not None for part in self.run.of(test))

    @property
    def is_router(self) -> bool | None:
        """Whether a DUT routes; None: not known."""
        kinds = [] if self.conditions is None else [dut.get("kind") for dut in self.conditions.duts.values()]
        if None in kinds or not kinds:
            return None
        return any("router" in str(kind) or kind in ("frr", "grout", "l3fwd", "vpp") for kind in kinds)

    @property
    def is_bidirectional(self) -> bool:
        """Whether both ports transmit."""
        return self.conditions is not None and self.conditions.traffic.pattern == "bidirectional"


def _done(section: str, level: Literal["MUST", "SHOULD"], text: str, why: str = "") -> Requirement:
    return Requirement(section, level, text, Status.DONE, why)


def _different(section: str, level: Literal["MUST", "SHOULD"], text: str, why: str) -> Requirement:
    return Requirement(section, level, text, Status.DIFFERENT, why)


def _no_case(section: str, level: Literal["MUST", "SHOULD"], text: str, why: str) -> Requirement:
    return Requirement(section, level, text, Status.NOT_APPLICABLE, why)


def _if(
    is_done: bool, section: str, level: Literal["MUST", "SHOULD"], text: str, done: str, different: str
) -> Requirement:
    return _done(section, level, text, done) if is_done else _different(section, level, text, different)


def _conditions(facts: _Facts) -> Iterator[Requirement]:
    sizes = [int(size.removesuffix("B")) for size in facts.sizes if size.removesuffix("B").isdecimal()]
    yield _done("6", "SHOULD", "one tester sends and receives", "the TG has all ports")
    yield _done("7", "MUST", "the DUT is set up as its user guide says, the same for all tests", "one set-up for all")
    yield _done("7", "MUST", "version and exact configuration are reported", "with the conditions of each result")
    yield _if(
        facts.is_router is False,
        "7",
        "SHOULD",
        "usual intervals of routing updates and keep-alives",
        "a bridge has none",
        "routes and neighbours are static",
    )
    yield _done("8", "MUST", "frame formats are reported", "under conditions")
    yield _different("8", "SHOULD", "frames of Appendix C (UDP echo)", "frames of the traffic profile; see conditions")
    yield _if(
        len(facts.sizes) >= LEAST_SIZES,
        "9",
        "SHOULD",
        f"at least {LEAST_SIZES} frame sizes",
        f"{len(facts.sizes)}",
        f"{len(facts.sizes)}: {', '.join(facts.sizes)}",
    )
    yield _if(
        bool(sizes) and min(sizes) <= 64 and max(sizes) >= 1518,
        "9",
        "SHOULD",
        "the smallest and the largest legal frame size",
        "64 and 1518 bytes",
        f"{', '.join(facts.sizes)}",
    )
    yield _if(
        set(ETHERNET_SIZES) <= set(sizes),
        "9.1",
        "SHOULD",
        "64, 128, 256, 512, 1024, 1280 and 1518 bytes",
        "all; others are extras",
        f"{', '.join(facts.sizes)}",
    )
    yield _done("10", "SHOULD", "only test frames count, and their length is checked", "frames have a tag")
    yield _done(
        "10",
        "SHOULD",
        "sequence numbers; frames out of order, duplicates and gaps are reported",
        "with the integrity of each result, as far as the generator examines frames",
    )


_MODIFIER_REQUIREMENTS = (
    (Modifier.BROADCAST, "11.1", "broadcast frames: 1 %"),
    (Modifier.MANAGEMENT, "11.2", "management frames: a query as the first frame of each second"),
    (Modifier.ROUTING_UPDATES, "11.3", "routing update frames"),
    (Modifier.FILTERS, "11.4", "filters: 1, then 25"),
    (Modifier.ADDRESSES, "12", "then random addresses of 256 networks"),
)


def _modifiers(run: Rfc2544Run) -> Iterator[Requirement]:
    none = "this run has no such modifier; a run of its own can have it"
    yield _if(
        run.modifier is None,
        "11",
        "SHOULD",
        "all tests without modifiers first, then with each one alone",
        "these are those without",
        "these are those with a modifier; those without are a run of their own",
    )
    for modifier, section, text in _MODIFIER_REQUIREMENTS:
        report = run.modifier_report
        if run.modifier is not modifier or report is None:
            yield _different(section, "SHOULD", text, none)
        else:
            yield _if(report.is_as_asked, section, "SHOULD", text, report.note, report.note)
    alternating = "two alternating routing updates"
    if run.modifier is Modifier.ROUTING_UPDATES:
        yield _done("11.3", "MUST", alternating, "the two commands of the modifier")
    else:
        yield _no_case("11.3", "MUST", alternating, none)


def _trials(facts: _Facts) -> Iterator[Requirement]:
    chosen = facts.chosen
    timing = None if facts.conditions is None else facts.conditions.timing
    yield _no_case("13", "MUST", "a routing update before each trial", "routes are static")
    if facts.is_bidirectional:
        yield _done("14", "SHOULD", "the same rate from both sides", "rates are per interface")
    else:
        yield _no_case("14", "SHOULD", "the same rate from both sides", "traffic goes one way")
    yield _done("15", "SHOULD", "one input and one output port for the full suite")
    yield _no_case("16", "MUST", "bidirectional streams of many ports address all others", "one pair of ports")
    theoretical = [result.max_load.theoretical_maximum for result in facts.results]
    limited = [
        result
        for result, most in zip(facts.results, theoretical, strict=True)
        if most is None or result.max_load.rate.per_interface_fps < most.per_interface_fps * (1 - 1e-6)
    ]
    yield _if(
        not limited,
        "20",
        "SHOULD",
        "the maximum rate is the theoretical one of the medium",
        "the links limit the load",
        "the maximum load is that of the tester, the NIC or the request; see the tables",
    )
    yield _different("21", "SHOULD", "bursts of 16, 64, 256 and 1024 frames", "back-to-back frames only")
    if timing is None or not timing.deviations:
        yield _done("23", "SHOULD", "waits before and after each trial: 2 s, 2 s, 5 s")
    else:
        instead = "; ".join(f"{one.step}: {one.instead} instead of {one.rfc2544}" for one in timing.deviations)
        yield _different("23", "SHOULD", "waits before and after each trial: 2 s, 2 s, 5 s", instead)
    durations = {
        "throughput": chosen.goal.final_trial_duration,
        "frame loss": chosen.loss_duration,
        "overload": chosen.overload_duration,
    }
    short = [f"{name} {seconds:g} s" for name, seconds in durations.items() if seconds < _RUN_SECONDS]
    yield _if(
        not short,
        "24",
        "SHOULD",
        "trials of 60 s; searches may use shorter ones",
        "final trials",
        f"shorter ones: {', '.join(short)}",
    )
    yield _done("25", "SHOULD", "address resolution is answered where needed", "neighbours are static entries")


def _tests(facts: _Facts) -> Iterator[Requirement]:
    chosen = facts.chosen
    yield _if(
        chosen.goal.exceed_ratio == 0.0,
        "26.1",
        "MUST",
        "throughput: the highest rate at which no frame is lost",
        "",
        f"goal {chosen.goal}: up to {chosen.goal.exceed_ratio:.0%} of trials may lose frames (RFC 9971)",
    )
    yield _done("26.1", "MUST", "in frames per second, with frame size, theoretical limit and protocol")
    yield _if(
        len(facts.sizes) > 1,
        "26.1",
        "SHOULD",
        "graph over the frame size, with the theoretical rate",
        "",
        "one frame size makes no graph",
    )
    latency = facts.run.results_as(LatencyResult)
    if not latency:
        yield from _left_out("26.2", "latency")
    else:
        trials = min(len(result.latency) for result in latency)
        yield _done("26.2", "MUST", "the tester recognises tagged frames")
        yield _if(trials >= 20, "26.2", "MUST", "at least 20 repeats", f"{trials}", f"{trials}")
        yield _done("26.2", "MUST", "the definition of latency is reported", "with the table")
        yield _if(
            chosen.latency_duration >= 120.0,
            "26.2",
            "SHOULD",
            "streams of 120 s",
            f"{chosen.latency_duration:g} s",
            f"{chosen.latency_duration:g} s",
        )
        middle = [
            one.middle_us is not None
            for result in latency
            for at_load in result.latency
            for one in at_load.directions
            if one.error is None
        ]
        yield _if(
            all(middle) and chosen.latency_duration >= 120.0,
            "26.2",
            "SHOULD",
            "one tagged frame after 60 s",
            "the first one after the middle of each stream; beside it the mean of up to 1000 tagged frames per second",
            "the first one after the middle of each stream"
            if all(middle)
            else "tagged frames during the whole stream; the generator does not report the one in the middle",
        )
        yield _different("26.2", "SHOULD", "again with a new destination network each time", "one network")
        yield _done("26.2", "SHOULD", "table by frame size")
    if not facts.has(Rfc2544Test.FRAME_LOSS):
        yield from _left_out("26.3", "frame loss rate")
        return
    yield _done("26.3", "MUST", "steps of 10 % at most", f"{chosen.loss_step:.4g} of the maximum load")
    yield _done("26.3", "SHOULD", "from the maximum rate down to two trials without loss")
    yield _done("26.3", "MUST", "axes in per cent, from 0 to 100")
    yield _done("26.3", "SHOULD", "graph")


def _back_to_back(facts: _Facts) -> Iterator[Requirement]:
    results = facts.run.results_as(BackToBackResult)
    if not results:
        yield from _left_out("26.4", "back-to-back frames")
        return
    chosen = facts.chosen
    yield _if(
        chosen.settle >= FULL.settle,
        "RFC 9004, 6.2",
        "MUST",
        "settle time of 2 s, or as long as the burst",
        f"{chosen.settle:g} s, or as long as the burst",
        f"{chosen.settle:g} s, or as long as the burst",
    )
    yield _done("RFC 9004, 6.2", "MUST", "longest burst can be set, up to 30 s", f"{chosen.longest_burst:g} s")
    yield _done("RFC 9004, 6.2", "MUST", "bisection, with its parameters and its step", "step of 1 frame")
    yield _done("RFC 9004, 6.3", "MUST", "N repeats, each independent, each kept", f"N = {chosen.burst_repeats}")
    yield _done("RFC 9004, 6.4", "MUST", "rates in frames per second; average, minimum, maximum, standard deviation")
    yield _done("RFC 9004, 7", "SHOULD", "table with the corrected buffer time")
    at_limit = [result.test.name for result in results if result.back_to_back and result.back_to_back.is_at_limit]
    yield _if(
        not at_limit,
        "RFC 9004, 6.2",
        "MUST",
        "a result at the limit is repeated with a higher limit",
        "none is at the limit",
        f"reported as 'at least': {', '.join(at_limit)}",
    )


def _recovery_and_reset(facts: _Facts) -> Iterator[Requirement]:
    chosen = facts.chosen
    if facts.has(Rfc2544Test.RECOVERY):
        yield _if(
            chosen.overload_duration >= _RUN_SECONDS,
            "26.5",
            "SHOULD",
            "overload of 110 % for 60 s, then half",
            f"{chosen.overload_duration:g} s",
            f"{chosen.overload_duration:g} s",
        )
        yield _done("26.5", "SHOULD", "several repeats, and their average", f"{chosen.recovery_repeats}")
        yield _done(
            "26.5",
            "SHOULD",
            "table by frame size",
            "time of the last lost frame less time of the change; the RFC has them the other way round",
        )
    else:
        yield from _left_out("26.5", "system recovery")
    resets = facts.run.results_as(ResetResult)
    if not resets:
        yield from _left_out("26.6", "reset")
        return
    yield _done("26.6", "SHOULD", "directly connected networks only")
    yield _different("26.6", "SHOULD", "hardware, software and power resets", resets[0].settings.reset)
    yield _done("26.6", "SHOULD", "a statement for each reset")
    yield _if(
        chosen.reset_lead >= FULL.reset_lead,
        "RFC 6201, 4",
        "SHOULD",
        "forwarding for 15 s before the reset, with the smallest frames",
        f"{chosen.reset_lead:g} s",
        f"{chosen.reset_lead:g} s",
    )
    yield _done("RFC 6201, 3", "MUST", "influences on the time are reported", resets[0].settings.reset)


def _left_out(section: str, test: str) -> Iterator[Requirement]:
    yield _different(section, "SHOULD", test, "this test has no result in this run")
