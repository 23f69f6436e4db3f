"""The view of a maximum receive rate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import JsonValue

from lossratio.measurements import CsitExportError, CsitRecord
from lossratio.measurements.mrr.measure import MRR_TRIAL_DURATION, NOTHING_LOST, Mrr, MrrResult
from lossratio.measurements.throughput import ThroughputResult
from lossratio.results import (
    LABEL_WIDTH,
    Doubt,
    DoubtKind,
    Finding,
    TestResult,
    View,
    failure_line,
    load_per_interface,
    offered_in,
    rate_line,
    unsent_share,
)
from lossratio.units import format_frame_rate, format_ratio

MRR_LEAST_DEFICIT_RATIO = 0.03
"""Deficit of an MRR below a throughput, as a share of it, that is a doubt; bursts in short trials make about 1 %."""


class CsitSamples(CsitRecord):
    """Values of repeated trials, with mean and population standard deviation."""

    values: tuple[float, ...]
    avg: float
    stdev: float
    unit: Literal["pps", "bps"]


class CsitReceiveRate(CsitRecord):
    """Aggregate receive rates, in packets per second and as bandwidth on the wire."""

    rate: CsitSamples
    bandwidth: CsitSamples


class CsitMrr(CsitRecord):
    """Result of a measurement of the maximum receive rate."""

    type: Literal["mrr"] = "mrr"
    receive_rate: CsitReceiveRate


class MrrView(View[MrrResult]):
    """The view of a maximum receive rate."""

    quantity = "MRR"
    has_value = True
    value_name = "mean of an MRR with its standard deviation"
    csit_type = "mrr"

    def lines(self, result: MrrResult) -> Iterator[str]:
        """Mean, standard deviation, all values, and the loss."""
        if result.mrr is None:
            yield failure_line(result)
            return
        trials = f"{len(result.mrr.values)} trials at maximum load, {load_per_interface(result.max_load)}"
        yield f"MRR ({trials}): frames forwarded over the time really spent"
        yield rate_line("mean", result.mrr.mean)
        yield rate_line("standard deviation", result.mrr.stdev)
        values = " ".join(f"{value.forwarding_rate.per_interface_fps:,.0f}" for value in result.mrr.values)
        yield f"  {'values':<{LABEL_WIDTH}}  {values} fps per interface"
        yield f"  {'loss':<{LABEL_WIDTH}}  {_loss(result.mrr)}"

    def values(self, result: MrrResult) -> Mapping[str, Any]:
        """The mean."""
        return {} if result.mrr is None else {"value": result.mrr.mean, "deviation": result.mrr.stdev}

    def aspects(self, result: MrrResult, finding: Finding) -> Mapping[str, JsonValue]:
        """The load, and the trials' durations, as bursts change what short trials forward."""
        return {
            "goal": {"load_per_interface_fps": result.max_load.rate.per_interface_fps},
            "trial duration": [*sorted({trial.duration_s for trial in result.trials if trial.is_evidence})],
        }

    def caveats(self, result: MrrResult) -> Iterator[str]:
        """The caveat that the SUT may forward more."""
        if result.mrr is not None and result.mrr.lost_frames == 0:
            yield NOTHING_LOST

    def doubts(self, result: MrrResult, results: Sequence[TestResult]) -> Iterator[Doubt]:
        """The doubt that less is forwarded at maximum load than at a smaller load."""
        yield from _below_throughput(result, [other for other in results if isinstance(other, ThroughputResult)])

    def csit(self, result: MrrResult) -> CsitMrr:
        """The rates of all trials, with mean and standard deviation."""
        if result.mrr is None or any(trial.duration_s != MRR_TRIAL_DURATION for trial in result.trials):
            raise CsitExportError(
                f"CSIT's MRR has trials of {MRR_TRIAL_DURATION:g} s, and {result.test.full_name} others."
            )
        mrr = result.mrr
        rates = [value.forwarding_rate for value in mrr.values]
        return CsitMrr(
            receive_rate=CsitReceiveRate(
                rate=CsitSamples(
                    values=tuple(rate.aggregate_fps for rate in rates),
                    avg=mrr.mean.aggregate_fps,
                    stdev=mrr.stdev.aggregate_fps,
                    unit="pps",
                ),
                bandwidth=CsitSamples(
                    values=tuple(rate.aggregate_l1_bps for rate in rates),
                    avg=mrr.mean.aggregate_l1_bps,
                    stdev=mrr.stdev.aggregate_l1_bps,
                    unit="bps",
                ),
            )
        )


def _loss(mrr: Mrr) -> str:
    if mrr.loss_ratio_of_sent is None:
        return "not counted"
    unsent = "" if mrr.unsent_frames is None else f"; {mrr.unsent_frames:,} frames unsent, which is no loss"
    return f"{format_ratio(mrr.loss_ratio_of_sent)} of the frames sent{unsent}"


def _below_throughput(result: MrrResult, throughputs: Sequence[ThroughputResult]) -> Iterator[Doubt]:
    if result.mrr is None:
        return
    offered = result.max_load.rate.per_interface_fps
    # What the generator did not send is no degradation of the SUT.
    sent_share = 1.0 - unsent_share(offered_in(result.trials))
    most = result.mrr.mean.per_interface_fps + result.mrr.stdev.per_interface_fps
    same = [search for search in throughputs if _is_same_setup(search, result)]
    for report in (report for search in same for report in search.goals):
        throughput = None if report.result is None else report.result.conditional_throughput
        # At a load below the throughput, the forwarding rate cannot reach the throughput.
        if throughput is None or offered < throughput.per_interface_fps:
            continue
        if most < (1.0 - MRR_LEAST_DEFICIT_RATIO) * throughput.per_interface_fps * sent_share:
            yield Doubt(
                DoubtKind.MRR_BELOW_PDR,
                f"{format_frame_rate(result.mrr.mean.per_interface_fps)} per interface are forwarded at maximum load, "
                f"less than the {report.goal.name} of {format_frame_rate(throughput.per_interface_fps)}",
            )
            return


def _is_same_setup(one: TestResult, other: TestResult) -> bool:
    first, second = one.conditions, other.conditions
    return (first.testbed.name, first.traffic, first.duts) == (second.testbed.name, second.traffic, second.duts)
