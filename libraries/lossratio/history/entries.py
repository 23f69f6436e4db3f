"""The entries that a history keeps of a run: one for each quantity of each result.

An entry has everything that shows and explains a change of its value.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lossratio import results
from lossratio.history.result_readings import Reading, readings_of
from lossratio.history.unmeasured import nothing_measured
from lossratio.report import NOTHING_MEASURED, Run
from lossratio.units import FRAMES_PER_SECOND
from lossratio.version import __version__

MEASURED = results.Outcome.MEASURED.value
"""Outcome of a result that was measured as requested."""
IRREGULAR = results.Outcome.IRREGULAR.value
"""Outcome of a result with a goal that was not found as requested."""
FAILED = results.Outcome.FAILED.value
"""Outcome of a result that could not be measured."""
AS_BEFORE = "as before"
"""Outcome of a night without a search, because the SUT was as before. Such an entry has no value, and needs none."""


@dataclass(frozen=True)
class Entry:
    """One quantity of one test of one run."""

    testbed: str
    """Name of the testbed. Even equal testbeds differ, so each has its own trends."""
    test: str
    """Full name of the test."""
    quantity: str
    """Name of the goal, or MRR."""
    started: datetime
    """When the test began; with a time zone."""
    seconds: float
    """How long the measurement took, with latency and telemetry after a search."""
    value: float | None
    """The value in the unit. In files, a rate is an aggregate; in series, it is per interface. None: there is none."""
    lower_bound: float | None
    """Relevant lower bound, likewise."""
    upper_bound: float | None
    """Relevant upper bound, likewise."""
    outcome: str
    """``measured``, ``irregular``, ``failed`` or ``as before``."""
    reason: str | None
    """Why it is irregular or failed; None: it was measured."""
    doubts: tuple[str, ...]
    """Kinds of doubts about the result."""
    lossratio_version: str
    """Version of lossratio that measured it."""
    measured_as: str | None = None
    """Distinguishes values with other traffic, paths or goals for the same test name; None: nothing was measured."""
    unit: str = FRAMES_PER_SECOND.name
    """Name of the unit of the value and the bounds."""
    lower_is_better: bool = FRAMES_PER_SECOND.lower_is_better
    """Whether the lower of two values is better."""
    generator: str | None = None
    """Kind of the traffic generator; None: nothing was measured."""
    run: str | None = None
    """Name of the run's directory; None: the result was not measured in a run."""
    run_started: datetime | None = None
    """When the first test of the run began, which distinguishes runs of the same name; None likewise."""
    tags: tuple[str, ...] = ()
    """The tags of the test."""
    frame_size_bytes: float | None = None
    """Average frame size; None: nothing was measured."""
    build: str | None = None
    """Kind and version of the DUTs; None: not known."""
    latency: tuple[results.LatencyPoint, ...] = ()
    """Latencies of the test, if it has any."""
    unsent_share: float | None = None
    """Share of the value's frames that were unsent, late or dropped by the generator, if more than 1 %; 1: the value is
    only a lower bound; None: not known."""
    readings: tuple[Reading, ...] = ()
    """Readings of the test's telemetry, if there are any; the first entry of a result has them."""
    resolution: float | None = None
    """Width of the search's goal, relative to the upper bound; None: there is none."""
    most: float | None = None
    """The value if the frames of `unsent_share` had passed; None: there are no such frames, or the value is only a
    lower bound."""
    long_name: str | None = None
    """The name that Robot Framework gave the test in its run; None: a script measured it, or nothing was measured."""
    has_device: bool | None = None
    """Whether there was a device between the tester's ports; None: nothing was measured."""
    device: str | None = None
    """The device with its options that count, and the facts of its testbed that count; None: nothing was
    measured."""
    aggregate_factor: float | None = None
    """The aggregate rate divided by the rate per interface; None: the value is not a rate."""
    stream: str | None = None
    """The stream of the traffic profile whose loss alone counts for the quantity; None: the loss of all frames
    counts."""
    estimate: float | None = None
    """The middle between the verified and the contradicted load of a soak test, likewise an aggregate in files;
    None: there is none."""
    estimate_chance: float | None = None
    """Standard deviation of the estimate by chance, as a share of it; None likewise."""
    estimate_shared: float | None = None
    """Standard deviation that all nights share, as a share of the estimate; None likewise."""


def entries_of(run: Run) -> Iterator[Entry]:
    """The entries of a run, in the order of its tests; tests that were cut off have none.

    Tests that measured nothing come last, with `NOTHING_MEASURED` as their quantity.
    """
    before = 0
    for finding in results.findings_of(run.results):
        entry = _entry(run, finding)
        if finding.number != before:
            # The first entry of a result has its readings.
            entry = replace(entry, readings=readings_of(finding.result))
            before = finding.number
        yield entry

    for test in nothing_measured(run):
        yield Entry(
            testbed=test.testbed,
            test=test.test,
            quantity=NOTHING_MEASURED,
            started=test.time,
            seconds=0.0,
            value=None,
            lower_bound=None,
            upper_bound=None,
            outcome=FAILED,
            reason=test.reason,
            doubts=(),
            lossratio_version=__version__,
            run=run.path.resolve().name,
            run_started=_began(run),
        )


def _began(run: Run) -> datetime:
    """When the first test of a run began, or else when the first test that measured nothing failed."""
    began = [result.started for result in run.results]
    return min(began or [test.time for test in nothing_measured(run)])


def _entry(run: Run, finding: results.Finding) -> Entry:
    result = finding.result
    factor = None
    if finding.unit == FRAMES_PER_SECOND:
        factor = result.conditions.load.aggregate_factor

    if finding.is_as_before:
        outcome = AS_BEFORE
    else:
        outcome = finding.outcome.value

    # Record: a row of the history.
    return Entry(
        testbed=result.conditions.testbed.name,
        test=result.test.full_name,
        quantity=finding.quantity,
        started=result.started,
        seconds=result.took_s,
        value=results.aggregate_of(finding.value),
        lower_bound=results.aggregate_of(finding.lower_bound),
        upper_bound=results.aggregate_of(finding.upper_bound),
        outcome=outcome,
        reason=finding.reason,
        doubts=tuple(doubt.kind.value for doubt in run.doubts[finding.number - 1]),
        lossratio_version=result.conditions.controller.lossratio_version,
        measured_as=results.digest_of(finding),
        unit=finding.unit.name,
        lower_is_better=finding.unit.lower_is_better,
        generator=results.generator_of(result),
        run=run.path.resolve().name,
        run_started=_began(run),
        tags=result.test.tags,
        frame_size_bytes=result.conditions.traffic.average_frame_size_bytes,
        build=results.build_of(result),
        latency=tuple(results.view_of(result).latencies(result)),
        unsent_share=results.unsent_share_of(finding),
        resolution=finding.resolution,
        most=_most(finding, factor or 1.0),
        long_name=result.test.long_name,
        has_device=bool(result.conditions.duts),
        device=result.conditions.measured_on,
        aggregate_factor=factor,
        stream=finding.stream,
        **_estimated(finding),
    )


def _estimated(finding: results.Finding) -> dict[str, Any]:
    """The fields of an entry about the estimate; empty: there is none."""
    estimate = finding.estimate
    if estimate is None:
        return {}
    return {
        "estimate": results.aggregate_of(estimate.value),
        "estimate_chance": estimate.chance_ratio,
        "estimate_shared": estimate.shared_ratio,
    }


def _most(finding: results.Finding, factor: float) -> float | None:
    """The value in files if the missing frames that the SUT did not lose had passed; None: there are no such frames."""
    ends = results.ends_of(finding)
    if ends is None or not ends.least < ends.most < math.inf:
        return None
    return ends.most * factor
