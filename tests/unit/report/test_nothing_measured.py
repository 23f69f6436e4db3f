"""Tests that failed before they measured anything, or were cut off: in every export, as the tests that they are."""

from __future__ import annotations

import csv
import io
import json
import shutil
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from report_examples import mrr

from lossratio.commands.report import compare, report
from lossratio.errors import ReportError
from lossratio.report import FORMATS, note_failure, read_run, render
from lossratio.results.model import Outcome, TestIdentity
from lossratio.results.run_directory import RunDirectory
from lossratio.trials.journal import Journal

TEST = TestIdentity(suite="Lab 1.Bridge", name="64B, 1.5 Mpps. mrr")


@pytest.fixture
def measured(tmp_path):
    run = RunDirectory(tmp_path / "measured")
    run.write(mrr().model_copy(update={"test": TEST}))
    return run.path


@pytest.fixture
def failed(tmp_path):
    path = tmp_path / "failed"
    path.mkdir()
    note_failure(path, TEST.full_name, "set-up failed:\nno link", suite=TEST.suite)
    return path


def cases_in(*paths):
    junit = ElementTree.fromstring(render("junit", [read_run(path) for path in paths]))  # noqa: S314
    return [(case.get("classname"), case.get("name")) for case in junit.iter("testcase")]


def test_junit_has_the_same_class_and_name_whatever_became_of_a_test(measured, failed, tmp_path):
    cut_off = RunDirectory(tmp_path / "cut off")
    about = {"test": TEST.model_dump(mode="json")}
    Journal.open(cut_off.journal_path(TEST.full_name), {}, about).close()
    assert cases_in(measured, failed, cut_off.path) == [(TEST.suite, TEST.name)] * 3


@pytest.mark.parametrize("passes_later", [False, True])
def test_junit_has_a_failure_where_a_test_measured_and_failed_all_the_same(measured, passes_later):
    note_failure(measured, TEST.full_name, "1 doubt: the load was not offered", suite=TEST.suite)
    if passes_later:
        note_failure(measured, TEST.full_name, None)
    junit = ElementTree.fromstring(render("junit", [read_run(measured)]))  # noqa: S314
    found = [failure.get("message") for failure in junit.iter("failure")]
    assert found == ([] if passes_later else ["1 doubt: the load was not offered"])
    (suite,) = junit.iter("testsuite")
    assert suite.get("failures") == str(len(found))


MESSAGE = "*Less* than the 20 Mfps\n| that the test <asks> for"


def exports(path):
    run = read_run(path)
    return {name: render(name, [run]) for name in FORMATS.names()}


@pytest.mark.parametrize("failed_then", [True, False])
def test_a_test_that_measured_and_failed_is_a_failed_test_in_every_export_and_its_number_stands(measured, failed_then):
    before = exports(measured)
    note_failure(measured, TEST.full_name, MESSAGE, suite=TEST.suite)
    if not failed_then:
        note_failure(measured, TEST.full_name, None)
    after = exports(measured)
    said = MESSAGE.replace("\n", " ")
    (row,) = csv.DictReader(io.StringIO(after["csv"]))
    (exported,) = json.loads(after["json"])["runs"]
    shown = "the test failed: " in after["md"]
    assert (row["outcome"], row["test_failure"]) == ("measured", MESSAGE if failed_then else "")
    assert exported["results"][0]["failure"] == (MESSAGE if failed_then else None)
    assert shown is failed_then
    assert samples_of("lossratio_test_failed", after) == [float(failed_then)]
    assert samples_of("lossratio_measured", after) == [1.0]
    if not failed_then:
        assert after == before
        return

    markdown = said.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
    assert f"; the test failed: {markdown} |" in after["md"]
    page = after["html"]
    assert "the test failed: " in page, "in the overview"
    assert '<span class="failed">The test failed</span>, and its values were measured: *Less*' in page
    assert "&lt;asks&gt;" in page
    number = row["value_aggregate_fps"]
    assert number == next(csv.DictReader(io.StringIO(before["csv"])))["value_aggregate_fps"] != ""


def samples_of(metric, texts):
    families = text_string_to_metric_families(texts["openmetrics"])
    return [sample.value for family in families for sample in family.samples if sample.name == metric]


def test_a_measurement_that_failed_says_so_once(tmp_path):
    run = RunDirectory(tmp_path)
    broken = mrr().model_copy(update={"test": TEST, "outcome": Outcome.FAILED, "error": "no link", "mrr": None})
    run.write(broken)
    note_failure(tmp_path, TEST.full_name, "LinkError: no link", suite=TEST.suite)
    texts = exports(tmp_path)
    assert "| failed: no result: no link |" in texts["md"]
    assert "failed: no result: no link" in texts["html"]
    assert "the test failed" not in texts["md"] + texts["html"].lower()
    assert samples_of("lossratio_test_failed", texts) == [1.0]


def test_junit_takes_all_before_the_last_dot_for_the_suite_of_a_failure_that_an_earlier_version_noted(tmp_path):
    (tmp_path / "failures.jsonl").write_text(json.dumps({"test": "Lab.Bridge.64B-mrr", "message": "no link"}) + "\n")
    assert cases_in(tmp_path) == [("Lab.Bridge", "64B-mrr")]


def test_a_journal_that_does_not_describe_its_test_is_known_by_its_name(tmp_path):
    Journal.open(RunDirectory(tmp_path).journal_path("Lab.64B"), {}).close()
    assert cases_in(tmp_path) == [("cut off", "Lab.64B")]


def test_metrics_list_a_test_that_measured_nothing_with_the_labels_of_its_other_results(measured, failed):
    note_failure(measured, "Lab 1.Bridge.soak", "no link", suite=TEST.suite)
    run = read_run(measured)
    samples = [
        sample
        for family in text_string_to_metric_families(render("openmetrics", [run, read_run(failed)]))
        for sample in family.samples
        if sample.name == "lossratio_measured"
    ]
    assert len({frozenset(sample.labels) for sample in samples}) == 1
    testbed = run.results[0].conditions.testbed.name
    listed = [
        tuple(sample.labels[name] for name in ("run", "testbed", "suite", "test", "quantity")) for sample in samples
    ]
    assert listed == [
        ("measured", testbed, TEST.suite, TEST.name, "MRR"),
        ("measured", testbed, TEST.suite, "soak", "nothing measured"),
        ("failed", "", TEST.suite, TEST.name, "nothing measured"),
    ]
    assert [sample.value for sample in samples] == [1.0, 0.0, 0.0]


def test_the_testbed_of_a_run_without_results_is_that_of_its_record(failed):
    (failed / "run.json").write_text('{"topology": {"name": "lab-1"}}')
    assert read_run(failed).testbed == "lab-1"
    (failed / "run.json").write_text('{"topology": ')
    assert read_run(failed).testbed is None


@pytest.mark.parametrize("is_newer", [True, False])
def test_a_comparison_says_on_which_side_a_test_measured_nothing_and_blames_nobody(
    measured, failed, tmp_path, is_newer
):
    sides = [measured, failed] if is_newer else [failed, measured]
    page = tmp_path / "compare.html"
    done = CliRunner().invoke(compare, [*map(str, sides), "--html", str(page)], catch_exceptions=False)
    assert done.exit_code == 4
    assert f"{'B' if is_newer else 'A'} measured nothing." in done.stdout
    assert (
        f"Missing: {failed}: {TEST.full_name} failed before it measured anything: set-up failed: no link" in done.stdout
    )
    assert "(nothing measured)" in page.read_text()


def test_runs_without_any_result_are_not_compared(failed):
    again = shutil.copytree(failed, failed.with_name("again"))
    with pytest.raises(ReportError, match=r"There are no results to compare\. 'lossratio report DIR' shows why"):
        CliRunner().invoke(compare, [str(failed), str(again)], catch_exceptions=False)


def test_a_run_in_which_nothing_was_measured_has_a_page(failed):
    done = CliRunner().invoke(report, [str(failed)])
    assert done.exit_code == 1
    page = (failed / "lossratio.html").read_text()
    assert TEST.full_name in page
    assert "no link" in page
