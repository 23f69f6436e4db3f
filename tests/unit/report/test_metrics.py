"""Runs as metrics, read back by the readers of those who take them."""

import json

from prometheus_client.openmetrics.parser import text_string_to_metric_families
from report_examples import mrr, run, throughput
from test_csit_export import telemetry_trial

from lossratio.report.metrics import bencher_report, openmetrics_report, otlp_report
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


def test_two_runs_are_two_values_of_a_label(tmp_path):
    one = a_run(tmp_path)
    samples = families(openmetrics_report([one, Run(tmp_path / "later", one.results)]))
    assert {sample.labels["run"] for sample in samples["lossratio_doubts"]} == {"nightly", "later"}


def test_a_run_without_results_is_no_metric(tmp_path):
    assert openmetrics_report([Run(tmp_path, ())]) == "# EOF\n"
    assert json.loads(bencher_report([Run(tmp_path, ())])) == {}


def test_a_collector_gets_the_same_points(tmp_path):
    whole = a_run(tmp_path)
    (resource,) = json.loads(otlp_report([whole]))["resourceMetrics"]
    (scope,) = resource["scopeMetrics"]
    sent = {metric["name"]: len(metric["gauge"]["dataPoints"]) for metric in scope["metrics"]}
    assert sent == {name: len(samples) for name, samples in families(openmetrics_report([whole])).items()}
    point = scope["metrics"][0]["gauge"]["dataPoints"][0]
    assert int(point["timeUnixNano"]) == round(whole.results[0].ended.timestamp() * 1e9)
    assert {"key": "quantity", "value": {"stringValue": "NDR"}} in point["attributes"]


def test_an_irregular_value_is_no_metric(tmp_path):
    irregular = Run(tmp_path, (throughput(trials=12),))
    samples = families(openmetrics_report([irregular]))
    assert "lossratio_result_frames_per_second" not in samples
    assert {sample.value for sample in samples["lossratio_measured"]} == {0.0}
    assert json.loads(bencher_report([irregular])) == {}


def test_bencher_gets_values_and_no_failed_test(tmp_path):
    whole = a_run(tmp_path)
    benchmarks = json.loads(bencher_report([whole]))
    assert benchmarks.keys() == {result.test.full_name for result in whole.results[:2]}
    ndr = benchmarks[whole.results[0].test.full_name]["NDR (fps)"]
    assert ndr["lower_value"] <= ndr["value"] <= ndr["upper_value"]
