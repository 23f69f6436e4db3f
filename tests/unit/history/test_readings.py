"""Readings: latency and telemetry of stored nights, followed beside the values of tests."""

import json
from datetime import timedelta

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from history_examples import START, nightly
from report_examples import conditions, throughput

from lossratio.commands.trend import trend
from lossratio.dut.vpp.reports import parse_perfmon, parse_runtime
from lossratio.measurements.telemetry import DutTelemetry, TelemetryTrial
from lossratio.report import Run, Verdict
from lossratio.report.history.analysis import TrendRequest, analyse
from lossratio.report.history.entries import entries_of
from lossratio.report.history.page_of_trends import trend_page
from lossratio.report.history.result_readings import readings_of
from lossratio.report.history.store import TOP_NODES, History
from lossratio.results import LatencyPoint

RUNTIME = """\
Thread 1 vpp_wk_0 (lcore 2)
Time 1.3, 10.000000 sec internal node vector rate 12.50 loops/sec 1234567.25
          Name                 State         Calls          Vectors        Suspends     Packet-Clocks   Vectors/Call
dpdk-input                    polling            200000         3000000               0          3.00e1           15.00
ip4-lookup                    active             100000         3000000               0          2.00e1           30.00
arp-input                     active                 10              20               0          9.87e2            2.00
---------------
Thread 2 vpp_wk_1 (lcore 3)
Time 1.3, 10.000000 sec internal node vector rate 12.50 loops/sec 1234567.25
          Name                 State         Calls          Vectors        Suspends     Packet-Clocks   Vectors/Call
dpdk-input                    polling            200000         1000000               0          7.00e1            5.00
ip4-lookup                    active             300000         1000000               0          4.00e1            3.33
"""
CACHES = """\
vpp_wk_0 (1)
  ip4-lookup       5.00  1.00  0.50  0.20  0.10  0.04
vpp_wk_1 (2)
  ip4-lookup       5.00  1.00  0.50  0.20  0.10  0.08
"""


def device(statistics, node="DUT1", received=4_000_000):
    frames = {"west": received}
    return DutTelemetry(
        node=node,
        kind="vpp",
        received_frames=frames,
        transmitted_frames=frames,
        dropped_frames={},
        unaccounted_frames=0,
        details={},
        told={},
        statistics=tuple(statistics),
    )


def statistic(place, name, value, unit, node=None):
    labels = {} if node is None else {"node_name": node, "thread_name": place.split()[0]}
    return {"place": place, "name": name, "value": float(value), "unit": unit, "labels": labels}


def trial(statistics, goal="PDR", **changes):
    return TelemetryTrial(
        load=conditions().rate(1e4),
        goal=goal,
        duration_s=1.0,
        sent_frames=10,
        received_frames=9,
        duts=(device(statistics, **changes),),
    )


def numbers_of(*trials):
    found = readings_of(throughput().model_copy(update={"telemetry": trials}))
    return {(each.quantity, each.place): (each.value, each.unit) for each in found}


def a_node(name, clocks, packets=1000):
    place = f"vpp_wk_0 {name}"
    return [
        statistic(place, "calls", packets / 10, "calls", name),
        statistic(place, "vectors", packets, "packets", name),
        statistic(place, "clocks_per_packet", clocks, "cycles", name),
        statistic(place, "vectors_per_call", 10.0, "packets", name),
    ]


@pytest.mark.whole
def test_a_graph_nodes_workers_count_by_their_packets_and_nodes_beside_the_path_are_left_out():
    numbers = numbers_of(trial([*parse_runtime(RUNTIME), *parse_perfmon("cache-hierarchy", CACHES)]))
    assert numbers["clocks per packet", "DUT1 ip4-lookup"] == (pytest.approx((3 * 20 + 40) / 4), "cycles")
    assert numbers["clocks per packet", "DUT1 dpdk-input"] == (pytest.approx((3 * 30 + 70) / 4), "cycles")
    # 4,000,000 packets in 400,000 calls: the mean is by calls here.
    assert numbers["vectors per call", "DUT1 ip4-lookup"] == (pytest.approx(10.0, rel=1e-3), "packets")
    assert numbers["L3 misses per packet", "DUT1 ip4-lookup"] == (pytest.approx((3 * 0.04 + 0.08) / 4), "misses")
    assert not any("arp-input" in place for _, place in numbers)
    assert not any("loops" in quantity for quantity, _ in numbers)


def test_threads_of_open_vswitch_are_one_number_and_softnet_counts_where_frames_came_through_the_kernel():
    threads = [
        statistic("pmd thread 1", "packets_received", 3000, "packets"),
        statistic("pmd thread 1", "processing_cycles", 300_000, "cycles"),
        statistic("pmd thread 2", "packets_received", 1000, "packets"),
        statistic("pmd thread 2", "processing_cycles", 500_000, "cycles"),
        statistic("main thread", "packets_received", 0, "packets"),
        statistic("main thread", "processing_cycles", 7, "cycles"),
    ]
    cpus = [
        statistic(f"cpu{cpu}", f"softnet_{name}", count, "frames")
        for cpu, counts in enumerate(({"processed": 90, "dropped": 3}, {"processed": 10, "dropped": 4}))
        for name, count in counts.items()
    ]
    cycles = statistic("all CPUs", "instructions_per_cycle", 2.5, "instructions")
    through_kernel = numbers_of(trial([*threads, *cpus, cycles], received=4000))
    assert through_kernel["processing cycles per packet", "DUT1"] == (200.0, "cycles")
    assert through_kernel["softnet drops", "DUT1"] == (7.0, "frames")
    assert through_kernel["instructions per cycle", "DUT1"] == (2.5, "instructions")
    assert ("softnet drops", "DUT1") not in numbers_of(trial(cpus, received=10_001))


def test_telemetry_at_pdr_goes_first_and_the_newest_of_it_counts():
    trials = (trial(a_node("a", 1.0)), trial(a_node("a", 2.0)), trial(a_node("a", 3.0), goal="NDR"))
    assert numbers_of(*trials)["clocks per packet", "DUT1 a"] == (2.0, "cycles")
    assert numbers_of(*trials[2:])["clocks per packet", "DUT1 a"] == (3.0, "cycles")
    assert numbers_of() == {}


def a_history(path, clocks, latency, values=None):
    """A history with a result for each night, written as a run and added."""
    history = History(path)
    for night, of_night in enumerate(clocks):
        result = throughput().model_copy(update={"telemetry": (trial(of_night),)})
        later = timedelta(days=night)
        moved = result.model_copy(update={"started": result.started + later, "ended": result.ended + later})
        points = tuple(
            LatencyPoint("90 % of PDR", way, 5.0, 7.0, slow, 99.0)
            for way, slow in (("west>east", latency[night] / 2), ("east>west", latency[night]))
        )
        entries = [
            {**made, "latency": [vars(point) for point in points]}
            for made in entries_of(Run(path / f"night-{night}", (moved,)))
        ]
        if values is not None:
            entries = [{**made, "value": values[night]} for made in entries]
        history.add(entries)
    return history


def found(history, **request):
    analysis = analyse(history, TrendRequest(readings=True, **request))
    return analysis, {trend.series.key.quantity: trend for trend in analysis.readings}


@pytest.mark.whole
def test_readings_of_many_nights_change_and_raise_no_alarm(tmp_path):
    randomness = np.random.default_rng(1)
    noise = randomness.normal(1.0, 0.002, (12, 2))
    clocks = [[*a_node("ip4-lookup", 100 * noise[night][0] * (1.1 if night >= 9 else 1.0))] for night in range(12)]
    latency = [20.0 * noise[night][1] * (0.8 if night >= 10 else 1.0) for night in range(12)]
    history = a_history(tmp_path, clocks, latency)
    analysis, readings = found(history)
    changed = readings["clocks per packet, DUT1 ip4-lookup"]
    assert changed.verdict is Verdict.CHANGED
    assert changed.change.ratio == pytest.approx(0.1, abs=0.01)
    assert changed.series.unit.format(changed.change.after).endswith(" cycles")
    fell = readings["latency p99, 90 % of PDR"]
    assert (fell.verdict, fell.series.unit.name) == (Verdict.CHANGED, "µs")
    assert fell.series.values[0] == latency[0]
    assert readings["latency p50, 90 % of PDR"].verdict is Verdict.STEADY
    assert readings["vectors per call, DUT1 ip4-lookup"].verdict is Verdict.STEADY
    assert analysis.alarms == ()
    assert {trend.series.key.quantity for trend in analysis.trends} == {"NDR", "PDR"}
    assert analyse(history, TrendRequest()).readings == ()
    # One night is no change yet, for readings as for values.
    _, early = found(a_history(tmp_path / "early", clocks[:10], latency[:10]))
    assert early["clocks per packet, DUT1 ip4-lookup"].verdict is Verdict.ONE_OTHER


@pytest.mark.whole
def test_a_reading_that_is_gone_has_no_value_and_a_known_change_explains_one(tmp_path):
    clocks = [[*a_node("ip4-lookup", 100), *(a_node("acl", 50) if night < 7 else [])] for night in range(8)]
    history = a_history(tmp_path, clocks, [20.0] * 6 + [30.0] * 2)
    note = "changes: [{date: 2026-03-01, note: new firmware, quantity: latency*}]"
    started = throughput().started + timedelta(days=6)
    (tmp_path / "annotations.yaml").write_text(note.replace("2026-03-01", f"{started:%Y-%m-%d}"))
    analysis, readings = found(history)
    gone = readings["clocks per packet, DUT1 acl"]
    assert gone.verdict is Verdict.NO_VALUE
    assert not gone.is_alarm
    assert analysis.alarms == ()
    assert readings["latency p99, 90 % of PDR"].verdict is Verdict.EXPLAINED


@pytest.mark.whole
def test_a_page_has_the_top_nodes_and_a_pattern_chooses_among_readings(tmp_path):
    clocks = [[each for node in range(20) for each in a_node(f"node-{node}", 10 + node)]] * 5
    history = a_history(tmp_path, clocks, [20.0] * 5)
    _, readings = found(history, quantity="clocks*")
    assert len(readings) == TOP_NODES
    assert "clocks per packet, DUT1 node-19" in readings
    analysis, _ = found(history)
    page = trend_page(analysis, "lab")
    assert f"{2 * TOP_NODES + 4} series · testbed" in page
    assert page.index(">PDR</td>") < page.index(">clocks per packet, DUT1")
    assert page.count('data-of="latency and telemetry"') == 2 * TOP_NODES + 2
    assert "clocks per packet, DUT1" not in trend_page(analyse(history, TrendRequest()), "lab")


@pytest.mark.whole
def test_the_command_reports_readings_after_values_and_its_exit_status_is_that_of_values(tmp_path):
    clocks = [a_node("ip4-lookup", 100 if night < 6 else 150) for night in range(9)]
    a_history(tmp_path / "history", clocks, [20.0] * 9)
    file = tmp_path / "trend.json"
    answer = CliRunner().invoke(trend, [str(tmp_path / "history"), "--readings", f"--json={file}"])
    assert answer.exit_code == 0, answer.output
    sentence, summary, changed, readings = answer.output.splitlines()
    assert sentence == "No alarm is open."
    assert summary.startswith("2 series of 18 results: 2 steady")
    assert changed.startswith("changed: ")
    assert "clocks per packet, DUT1 ip4-lookup, on simulated: 100 cycles to 150 cycles (+50.00 %)" in changed
    assert readings == (
        "4 readings of latency and telemetry, 36 numbers: 1 changed, 3 steady. They explain changes and raise no "
        "alarms."
    )
    written = json.loads(file.read_text())
    assert {each["unit"] for each in written["readings"]} == {"cycles", "packets", "µs"}
    assert not any(each["is_alarm"] for each in written["readings"])


@pytest.mark.whole
def test_a_regression_stays_one_whatever_its_readings_do(tmp_path):
    values = [1e6] * 6 + [0.9e6] * 3
    history = a_history(tmp_path, [a_node("ip4-lookup", 100)] * 9, [20.0] * 9, values)
    analysis, _ = found(history)
    assert [trend.verdict for trend in analysis.alarms] == [Verdict.REGRESSION] * 2
    assert CliRunner().invoke(trend, [str(tmp_path), "--readings"]).exit_code == 3


@pytest.mark.whole
def test_files_of_earlier_versions_have_no_readings_and_give_way_to_those_that_have(tmp_path):
    history = History(tmp_path)
    reading = {"quantity": "clocks per packet", "place": "DUT1 a", "value": 5.0, "unit": "cycles"}
    made = {**nightly(0, 1e6), "latency": [], "readings": [reading]}
    (path,) = history.add([made])
    pq.write_table(pq.ParquetFile(path).read().drop(["readings"]), path.with_name("0.parquet"))
    _, readings = found(history)
    assert list(readings) == ["clocks per packet, DUT1 a"]
    assert readings["clocks per packet, DUT1 a"].series.times == [START]
    path.unlink()
    assert found(history)[1] == {}
    assert len(analyse(history, TrendRequest()).trends) == 1
