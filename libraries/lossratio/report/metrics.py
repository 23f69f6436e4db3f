"""Results as metrics: OpenMetrics for Prometheus.

Irregular values are left out, because a chart would not show that they are irregular. Samples of findings have the unit
in their names, as Prometheus requires. Rates are aggregates. CSIT's telemetry has the same samples of the DUTs.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

from lossratio.report.failures import FAILED, NOT_HERE, SKIPPED
from lossratio.report.formats import ReportFormat
from lossratio.report.run import NOTHING_MEASURED, Run
from lossratio.results import Finding, Outcome, TestResult, aggregate_of, view_of
from lossratio.values import FRAMES_PER_SECOND, printable

_SPLIT = re.compile(r"[,={}'\"\s]+")
_UNITS = {FRAMES_PER_SECOND.name: "frames_per_second", "s": "seconds", "frames": "frames"}
_COUNTERS = {
    "received_frames": "Frames that came into the DUT.",
    "transmitted_frames": "Frames that the DUT sent.",
    "dropped_frames": "Frames that the DUT dropped.",
    "details": "Further counters of the DUT.",
}
_QUEUES = {
    "dropped_frames": "Frames that a receive queue dropped, in all trials that count.",
    "dropped_ratio": "These frames as a share of the frames that the SUT lost.",
}
_MEASURED = "1: measured; 0: irregular or failed."
_AS_BEFORE = "1: the SUT is as before, so nothing was searched and there is no value."
_TEST_FAILED = "1: the test failed, even if its values were measured; 0: it did not."
_SKIPS = {
    NOT_HERE: (
        "lossratio_not_measured_here",
        "1: the test was not measured here because the testbed is too small for it.",
    ),
    SKIPPED: (
        "lossratio_skipped",
        "1: the test was skipped although the testbed is not too small for it.",
    ),
}
"""Name and meaning of the metric of skipped tests, by their state."""
_STATISTICS = {
    "value": "value",
    "lower_bound": "lower_bound",
    "upper_bound": "upper_bound",
    "deviation": "standard_deviation",
}
"""The statistics of metrics, by the field of a finding."""


@dataclass(frozen=True)
class Sample:
    """A number with its name and its labels."""

    name: str
    """Name of the metric, in letters, digits and ``_``."""
    help: str
    """The meaning of the metric, in a few words."""
    value: float
    """The number."""
    time: datetime
    """The time that the number belongs to."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels by name."""

    def csit(self) -> str:
        """The sample as a line of CSIT's telemetry: single quotes, and the time in milliseconds.

        CSIT's dashboards split lines at commas, ``=``, ``{`` and quotes, so labels contain none of these.
        """
        labels = ",".join(
            f"{name}='{re.sub(_SPLIT, '_', text)}'" for name, text in self.labels.items()
        )
        return f"{self.name}{{{labels}}} {float(self.value)} {round(self.time.timestamp() * 1000)}"


def device_metrics(result: TestResult) -> Iterator[Sample]:
    """The counters of the DUTs: of their receive queues in all trials, and all around the telemetry's trials."""
    yield from _queue_metrics(result)
    yield from _telemetry_metrics(result)


def _queue_metrics(result: TestResult) -> Iterator[Sample]:
    for queue in () if result.queue_drops is None else result.queue_drops.queues:
        labels = {"hostname": queue.node, "interface": queue.interface, "queue": str(queue.queue)}
        for name, about in _QUEUES.items():
            yield Sample(f"dut_queue_{name}", about, getattr(queue, name), result.ended, labels)


def _telemetry_metrics(result: TestResult) -> Iterator[Sample]:
    for trial in view_of(result).telemetry(result):
        fields = trial.model_dump(mode="json")
        rate = str(fields.get("goal") or "load").lower()
        for dut in fields["duts"]:
            labels = {"hostname": dut["node"], "rate": rate}

            yield from _counter_metrics(dut, labels, result.ended)
            yield from _statistic_metrics(dut, labels, result.ended)
            yield from _load_metrics(dut, labels, result.ended)
            yield Sample(
                "dut_unaccounted_frames",
                "Frames that the DUT received but neither sent on nor counted as dropped.",
                dut["unaccounted_frames"],
                result.ended,
                labels,
            )


def _counter_metrics(
    dut: Mapping[str, Any], labels: Mapping[str, str], time: datetime
) -> Iterator[Sample]:
    for counter, about in _COUNTERS.items():
        for place, frames in dut[counter].items():
            yield Sample(f"dut_{counter}", about, frames, time, {**labels, "place": place})


def _statistic_metrics(
    dut: Mapping[str, Any], labels: Mapping[str, str], time: datetime
) -> Iterator[Sample]:
    for statistic in dut.get("statistics", ()):
        about = f"The DUT's counter during the trial, in {statistic['unit']}."
        name = f"dut_{statistic['name']}"
        own = {"place": statistic["place"]}
        # Only a graph node of VPP has labels.
        if statistic.get("labels") and statistic["name"] in _CSIT_NAMES:
            name = _CSIT_NAMES[statistic["name"]]
            own = dict(sorted(statistic["labels"].items()))
        yield Sample(name, about, statistic["value"], time, {**labels, **own})


def _load_metrics(
    dut: Mapping[str, Any], labels: Mapping[str, str], time: datetime
) -> Iterator[Sample]:
    for field_name, names, about_frames, share, about_share in _LOADS:
        for load in dut.get(field_name, ()):
            own = {**labels, **{name: str(load[name]) for name in names}}
            metric = f"dut_{names[-1]}"
            yield Sample(f"{metric}_frames", about_frames, load["frames"], time, own)
            if share is not None and load[share] is not None:
                yield Sample(f"{metric}_{share}_ratio", about_share, load[share], time, own)


# Table: CSIT's names for VPP's statistics.
_CSIT_NAMES = {
    "calls": "vpp_runtime_calls",
    "vectors": "vpp_runtime_vectors",
    "suspends": "vpp_runtime_suspends",
    "clocks_per_packet": "vpp_runtime_clocks",
    "vectors_per_call": "vpp_runtime_vectors_calls",
    "perfmon_calls": "vpp_inst_and_clock_calls",
    "perfmon_packets": "vpp_inst_and_clock_packets",
    "perfmon_packets_per_call": "vpp_inst_and_clock_packets_per_call",
    "perfmon_clocks_per_packet": "vpp_inst_and_clock_clocks_per_packets",
    "perfmon_instructions_per_packet": "vpp_inst_and_clock_instructions_per_packets",
    "perfmon_instructions_per_clock": "vpp_inst_and_clock_ipc",
    "perfmon_l1_hits_per_packet": "vpp_cache_hierarchy_l1_hit",
    "perfmon_l1_misses_per_packet": "vpp_cache_hierarchy_l1_miss",
    "perfmon_l2_hits_per_packet": "vpp_cache_hierarchy_l2_hit",
    "perfmon_l2_misses_per_packet": "vpp_cache_hierarchy_l2_miss",
    "perfmon_l3_hits_per_packet": "vpp_cache_hierarchy_l3_hit",
    "perfmon_l3_misses_per_packet": "vpp_cache_hierarchy_l3_miss",
}
"""CSIT's names for the numbers of VPP's graph nodes, from ``show runtime`` and the bundles of the performance monitor.
The metrics have the labels of the statistics."""


_LOADS = (
    (
        "workers",
        ("worker",),
        "Frames that a worker took.",
        "busy",
        "Share of a worker's time with frames.",
    ),
    ("queues", ("interface", "queue"), "Frames that came through a receive queue.", None, ""),
    (
        "cpus",
        ("cpu",),
        "Frames that the kernel received on a CPU.",
        "softirq",
        "Share of a CPU's time in soft interrupts.",
    ),
)
"""The fields of a DUT with its loads: labels, the meaning of their frames, and a share of time with its description."""


def samples_of(run: Run) -> Iterator[Sample]:
    """The samples of a run: values with bounds, outcomes, doubts, times, and the DUTs' counters."""
    for row in run.rows:
        yield from _samples_of_row(row)
    for result, doubts in zip(run.results, run.doubts, strict=True):
        yield from _samples_of_result(run, result, len(doubts))
    yield from _samples_without_results(run)


def _samples_of_row(row: Finding) -> Iterator[Sample]:
    """The values of a quantity, and whether it was measured."""
    ended = row.result.ended
    labels = {
        **_labels(row.run_name, row.result),
        "quantity": row.quantity,
        "stream": row.stream or "",
    }
    is_measured = row.outcome is Outcome.MEASURED
    if is_measured:
        unit = _UNITS.get(row.unit.name, re.sub(r"\W+", "_", row.unit.name))
        in_unit = unit.replace("_", " ")
        about = f"Measured values and their bounds, in {in_unit}; rates are aggregates."
        for name, statistic in _STATISTICS.items():
            value = aggregate_of(getattr(row, name))
            if value is not None:
                of_statistic = {**labels, "statistic": statistic}
                yield Sample(f"lossratio_result_{unit}", about, value, ended, of_statistic)

    if row.is_as_before:
        yield Sample("lossratio_as_before", _AS_BEFORE, 1.0, ended, labels)
    else:
        yield Sample("lossratio_measured", _MEASURED, float(is_measured), ended, labels)


def _samples_of_result(run: Run, result: TestResult, doubts: int) -> Iterator[Sample]:
    """The number of doubts about a result, what became of its test, its times, and the DUTs' counters."""
    labels = _labels(run.path.resolve().name, result)
    ended = result.ended
    yield Sample("lossratio_doubts", "Number of doubts about a result.", doubts, ended, labels)
    has_failed = float(run.failure_of(result) is not None)
    yield Sample("lossratio_test_failed", _TEST_FAILED, has_failed, ended, labels)

    about = "Duration of a measurement, including latency and telemetry after a search."
    yield Sample("lossratio_test_seconds", about, result.took_s, ended, labels)
    yield Sample(
        "lossratio_test_ended_timestamp_seconds",
        "Time when a measurement ended.",
        ended.timestamp(),
        ended,
        labels,
    )

    for sample in device_metrics(result):
        yield replace(sample, name=f"lossratio_{sample.name}", labels={**labels, **sample.labels})


def _samples_without_results(run: Run) -> Iterator[Sample]:
    """The tests of a run that were cut off, measured nothing, or were skipped."""
    # All samples have the same labels, so that queries that group by one of them also find these tests.
    about_run = {
        "testbed": run.testbed or "",
        "run": run.path.resolve().name,
        "generator": "",
        "device": "",
    }
    now = datetime.now(timezone.utc)

    for test in run.without_result:
        labels = {**about_run, "suite": test.suite, "test": test.name}
        if test.trials is not None:
            about = "Trials of a test that was cut off."
            yield Sample("lossratio_cut_off_trials", about, test.trials, now, labels)
        elif test.state == FAILED:
            of_quantity = {**labels, "quantity": NOTHING_MEASURED, "stream": ""}
            yield Sample("lossratio_measured", _MEASURED, 0.0, now, of_quantity)
            yield Sample("lossratio_test_failed", _TEST_FAILED, 1.0, now, labels)
        else:
            yield Sample(*_SKIPS[test.state], 1.0, now, labels)


def openmetrics_report(runs: Sequence[Run]) -> str:
    """The runs' samples as OpenMetrics text, for Prometheus.

    Samples have no times, which Prometheus' collectors refuse in files. The time of a test is a separate metric.
    """
    # Imported here, because only this report needs it.
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.openmetrics.exposition import generate_latest

    families: dict[str, GaugeMetricFamily] = {}
    for run in runs:
        for sample in samples_of(run):
            family = families.setdefault(sample.name, GaugeMetricFamily(sample.name, sample.help))
            texts = map(printable, sample.labels.values())
            labels = dict(zip(sample.labels, texts, strict=True))
            family.add_sample(sample.name, labels, sample.value)
    # The client library only uses this method of a registry.
    text: bytes = generate_latest(SimpleNamespace(collect=families.values))  # type: ignore[no-untyped-call]
    return text.decode()


def _labels(run: str, result: TestResult) -> dict[str, str]:
    return {
        "testbed": result.conditions.testbed.name,
        "suite": result.test.suite,
        "test": result.test.name,
        "run": run,
        "generator": result.conditions.generator_kind or "",
        "device": result.conditions.measured_on or "",
    }


OPENMETRICS = ReportFormat("lossratio.prom", openmetrics_report)
"""All values with their bounds as metrics, for Prometheus."""
