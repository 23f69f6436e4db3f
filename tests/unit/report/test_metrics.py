"""Runs as metrics, read back by the readers of those who take them."""

import json
import re
from pathlib import Path

import grafana_foundation_sdk.cog.plugins as plugins
import promql_parser
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from report_examples import mrr, run, throughput
from test_csit_export import telemetry_trial

from lossratio.report.metrics import device_metrics, openmetrics_report
from lossratio.report.run import Run


def a_run(tmp_path):
    search = throughput().model_copy(update={"telemetry": (telemetry_trial(),)})
    odd_name = throughput(error="agent lost").model_copy(update={"test": run('a "b"\n{c},\\d=').test})
    return Run(tmp_path / "nightly", (search, mrr(), odd_name))


def families(text):
    return {family.name: family.samples for family in text_string_to_metric_families(text)}


def test_prometheus_reads_values_with_their_bounds_and_the_outcome(tmp_path):
    whole = a_run(tmp_path)
    samples = families(openmetrics_report([whole]))
    pdr = {
        sample.labels["statistic"]: sample.value
        for sample in samples["lossratio_result_frames_per_second"]
        if sample.labels["quantity"] == "PDR" and sample.labels["test"] == whole.results[0].test.name
    }
    bounds = whole.results[0].goals[1].result
    assert pdr == {
        "value": bounds.conditional_throughput.aggregate_fps,
        "lower_bound": bounds.relevant_lower_bound.aggregate_fps,
        "upper_bound": bounds.relevant_upper_bound.aggregate_fps,
    }
    measured = {
        (sample.labels["test"], sample.labels["quantity"]): sample.value for sample in samples["lossratio_measured"]
    }
    assert sorted(measured.values()) == [0.0, 0.0, 1.0, 1.0, 1.0]
    assert measured['a "b"\n{c},\\d=', "NDR"] == 0.0
    (dropped,) = samples["lossratio_dut_dropped_frames"]
    assert (dropped.value, dropped.labels["place"], dropped.labels["rate"]) == (1.0, "ring, east", "pdr")


NODE = {"node_name": "ip4-lookup", "state": "active", "thread_id": "1", "thread_lcore": "2", "thread_name": "vpp_wk_0"}


def a_search_with_loads():
    """A search with telemetry that has all that a DUT can report."""
    (dut,) = telemetry_trial().duts
    changed = type(dut).model_validate(
        {
            **dut.model_dump(mode="json"),
            "kind": "vpp",
            "statistics": [
                {
                    "place": "vpp_wk_0 ip4-lookup",
                    "name": "clocks_per_packet",
                    "value": 22.5,
                    "unit": "cycles",
                    "labels": NODE,
                },
                {"place": "vpp_wk_0", "name": "loops_per_second", "value": 5.0, "unit": "1/s"},
            ],
            "workers": [{"worker": "vpp_wk_0", "frames": 70, "busy": 0.5}, {"worker": "vpp_wk_1", "frames": 30}],
            "queues": [{"interface": "west", "queue": 1, "frames": 9}],
            "cpus": [{"cpu": 3, "frames": 8, "softirq": 0.25}],
        }
    )
    trial = telemetry_trial().model_copy(update={"duts": (changed,)})
    return throughput().model_copy(update={"telemetry": (trial,)})


def test_vpps_runtime_has_csits_names_and_loads_have_their_parts(tmp_path):
    whole = Run(tmp_path, (a_search_with_loads(),))
    samples = families(openmetrics_report([whole]))
    (clocks,) = samples["lossratio_vpp_runtime_clocks"]
    assert clocks.value == 22.5
    assert clocks.labels.items() >= {**NODE, "hostname": "DUT1", "rate": "pdr"}.items()
    assert [sample.value for sample in samples["lossratio_dut_loops_per_second"]] == [5.0]
    frames = {sample.labels["worker"]: sample.value for sample in samples["lossratio_dut_worker_frames"]}
    assert frames == {"vpp_wk_0": 70.0, "vpp_wk_1": 30.0}
    assert [sample.value for sample in samples["lossratio_dut_worker_busy_ratio"]] == [0.5]
    (queue,) = samples["lossratio_dut_queue_frames"]
    assert (queue.labels["interface"], queue.labels["queue"], queue.value) == ("west", "1", 9.0)
    (softirq,) = samples["lossratio_dut_cpu_softirq_ratio"]
    assert (softirq.labels["cpu"], softirq.value) == ("3", 0.25)
    line = next(sample.csit() for sample in device_metrics(whole.results[0]) if sample.name == "vpp_runtime_clocks")
    assert re.fullmatch(
        r"vpp_runtime_clocks\{hostname='DUT1',rate='pdr',node_name='ip4-lookup',state='active',thread_id='1',"
        r"thread_lcore='2',thread_name='vpp_wk_0'\} 22\.5 \d{13}",
        line,
    )


def test_vpps_performance_monitor_has_csits_names(tmp_path):
    of_node = {"node_name": "ip4-lookup", "thread_name": "vpp_wk_0", "thread_id": "1"}
    names = {
        "perfmon_instructions_per_clock": "vpp_inst_and_clock_ipc",
        "perfmon_clocks_per_packet": "vpp_inst_and_clock_clocks_per_packets",
        "perfmon_l3_misses_per_packet": "vpp_cache_hierarchy_l3_miss",
        "perfmon_run_time": "dut_perfmon_run_time",
    }
    search = a_search_with_loads()
    (trial,) = search.telemetry
    dut = type(trial.duts[0]).model_validate(
        {
            **trial.duts[0].model_dump(mode="json"),
            "statistics": [
                {"place": "vpp_wk_0 x", "name": name, "value": 2.0, "unit": "1", "labels": of_node} for name in names
            ],
        }
    )
    counted = search.model_copy(update={"telemetry": (trial.model_copy(update={"duts": (dut,)}),)})
    lines = [sample.csit() for sample in device_metrics(counted)]
    for name in names.values():
        assert sum(line.startswith(f"{name}{{") for line in lines) == 1, name
    ipc = next(line for line in lines if line.startswith("vpp_inst_and_clock_ipc"))
    assert "rate='pdr',node_name='ip4-lookup',thread_id='1',thread_name='vpp_wk_0'} 2.0 " in ipc


@pytest.mark.whole
def test_two_runs_are_two_values_of_a_label(tmp_path):
    one = a_run(tmp_path)
    samples = families(openmetrics_report([one, Run(tmp_path / "later", one.results)]))
    assert {sample.labels["run"] for sample in samples["lossratio_doubts"]} == {"nightly", "later"}


def test_a_run_without_results_is_no_metric(tmp_path):
    assert openmetrics_report([Run(tmp_path, ())]) == "# EOF\n"


def test_an_irregular_value_is_no_metric(tmp_path):
    irregular = Run(tmp_path, (throughput(trials=12),))
    samples = families(openmetrics_report([irregular]))
    assert "lossratio_result_frames_per_second" not in samples
    assert {sample.value for sample in samples["lossratio_measured"]} == {0.0}


DASHBOARD = Path(__file__).parents[3] / "resources" / "grafana-dashboard.json"
VARIABLES = {"$testbed", "$test", "$quantity"}


def selectors(node):
    """The metrics that a query of Prometheus reads, each with the names of its labels."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node.name, {matcher.name for matcher in node.matchers.matchers}
    for part in ("lhs", "rhs", "expr"):
        if (child := getattr(node, part, None)) is not None:
            yield from selectors(child)
    for child in getattr(node, "args", None) or ():
        yield from selectors(child)


def lost(written, read, place=""):
    """Where fields that were written have not been read; fields with default values are added."""
    if isinstance(written, dict) and isinstance(read, dict):
        for name, value in written.items():
            yield from lost(value, read.get(name, "nothing"), f"{place}/{name}")
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        for number, (one, other) in enumerate(zip(written, read, strict=True)):
            yield from lost(one, other, f"{place}/{number}")
    elif written != read:
        yield place


def test_grafana_reads_the_dashboard_as_it_is():
    written = json.loads(DASHBOARD.read_text())
    plugins.register_default_plugins()
    read = json.loads(json.dumps(Dashboard.from_json(written), cls=JSONEncoder))
    assert list(lost(written, read)) == []
    assert len({panel["id"] for panel in written["panels"]}) == len(written["panels"])
    assert [variable["name"] for variable in written["templating"]["list"]] == [
        "datasource",
        *(name.removeprefix("$") for name in ("$testbed", "$test", "$quantity")),
    ]


def test_the_dashboard_asks_for_metrics_and_labels_that_there_are(tmp_path):
    samples = families(openmetrics_report([Run(tmp_path, (a_search_with_loads(), mrr()))]))
    labels = {name: set().union(*(sample.labels for sample in of_name)) for name, of_name in samples.items()}
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked = [selected for query in queries for selected in selectors(promql_parser.parse(query))]
    assert len(asked) >= len(queries)
    assert [name for name, own in asked if not own <= labels[name]] == []
    grouped = {
        label for query in queries for part in re.findall(r"(?:by|on) \(([^)]*)\)", query) for label in part.split(", ")
    }
    assert grouped <= set().union(*labels.values())
    legends = [target["legendFormat"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert {label for legend in legends for label in re.findall(r"\{\{(\w+)\}\}", legend)} <= grouped
    assert {name for query in queries for name in re.findall(r"\$\w+", query)} == VARIABLES


def test_the_duration_of_a_test_says_what_it_holds(tmp_path):
    (about,) = [
        family.documentation
        for family in text_string_to_metric_families(openmetrics_report([Run(tmp_path, (mrr(),))]))
        if family.name == "lossratio_test_seconds"
    ]
    assert about == "Duration of a measurement, including latency and telemetry after a search."
