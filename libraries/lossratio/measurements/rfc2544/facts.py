"""The facts of a run of RFC 2544, on which the judgement of its requirements is based."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from lossratio.measurements.back_to_back import BackToBackResult
from lossratio.measurements.frame_loss import FrameLoss
from lossratio.measurements.latency import LatencyAtLoad
from lossratio.measurements.recovery import RecoveryResult
from lossratio.measurements.reset import ResetResult
from lossratio.measurements.rfc2544.run import Rfc2544Run, Rfc2544Test
from lossratio.measurements.throughput import ThroughputResult
from lossratio.records import Rate
from lossratio.results import Conditions, TestResult

SAME = 1e-6
"""Rounding error of equal rates, as a share."""


def reaches(load: Rate, maximum: Rate | None) -> bool:
    """Whether a load is at least the theoretical maximum, apart from rounding; False if the maximum is not known."""
    return maximum is not None and load.per_interface_fps >= maximum.per_interface_fps * (1 - SAME)


def is_found(result: ThroughputResult) -> bool:
    """Whether the throughput is known: the search proved it, or the DUT forwards the maximum rate of the medium."""
    outcome = result.goals[0].result
    if outcome is None or outcome.regular:
        return outcome is not None
    rate = outcome.conditional_throughput
    return rate is not None and reaches(rate, result.max_load.theoretical_maximum)


class Facts:
    """What the results of a run show."""

    def __init__(self, run: Rfc2544Run) -> None:
        self.run = run
        self.results: list[TestResult] = [
            part.result for part in run.parts if part.result is not None
        ]
        self.throughputs: Sequence[ThroughputResult] = run.results_of(Rfc2544Test.THROUGHPUT)
        self.bursts: Sequence[BackToBackResult] = run.results_of(Rfc2544Test.BACK_TO_BACK)
        self.recoveries: Sequence[RecoveryResult] = run.results_of(Rfc2544Test.RECOVERY)
        self.resets: Sequence[ResetResult] = run.results_of(Rfc2544Test.RESET)

    @cached_property
    def sizes(self) -> list[str]:
        """The frame sizes of the run, as they were asked for, e.g. ``64B``."""
        return [part.frame_size for part in self.run.of(Rfc2544Test.THROUGHPUT)]

    @cached_property
    def sizes_bytes(self) -> list[int]:
        """The frame sizes that are numbers, in bytes."""
        numbers = [size.removesuffix("B") for size in self.sizes]
        return [int(number) for number in numbers if number.isdecimal()]

    @cached_property
    def conditions(self) -> Conditions | None:
        """The conditions of the first result; None: there is no result."""
        if self.results:
            return self.results[0].conditions
        return None

    @cached_property
    def duts(self) -> dict[str, dict[str, Any]]:
        """What is known about each DUT."""
        if self.conditions is None:
            return {}
        return self.conditions.duts

    @cached_property
    def links(self) -> int:
        """The number of parallel links that carry the traffic."""
        if self.conditions is None:
            return 1
        return self.conditions.testbed.links

    @cached_property
    def has_link_limits(self) -> bool:
        """Whether the theoretical maximum of the links is known in all results."""
        return bool(self.results) and all(
            result.max_load.theoretical_maximum is not None for result in self.results
        )

    @cached_property
    def learns_routes(self) -> bool:
        """Whether a DUT has learned routes."""
        return any("learned_routes" in dut for dut in self.duts.values())

    @cached_property
    def routes(self) -> bool | None:
        """Whether a DUT routes; None: not known."""
        routed = [dut.get("is_router") for dut in self.duts.values()]
        if None in routed or not routed:
            return None
        return any(routed)

    @cached_property
    def latency(self) -> list[LatencyAtLoad]:
        """The latencies of all frame sizes."""
        results = self.run.results_of(Rfc2544Test.LATENCY)
        return [at_load for result in results for at_load in result.latency]

    @cached_property
    def shortest_stream_s(self) -> float:
        """The duration of the shortest stream for latency, in seconds; 0: there is none."""
        return min((at_load.duration_s or 0.0 for at_load in self.latency), default=0.0)

    @cached_property
    def losses(self) -> list[FrameLoss]:
        """The frame loss rates that were measured."""
        losses = [result.frame_loss for result in self.run.results_of(Rfc2544Test.FRAME_LOSS)]
        return [found for found in losses if found is not None]
