import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from report_examples import RESULT, mrr, throughput

from lossratio.commands.report import report
from lossratio.errors import ReportError, StorageError
from lossratio.keywords.arguments import to_format_name
from lossratio.measurements.throughput.limits import MAX_LOAD_OF_GENERATOR
from lossratio.report import data, render, write_report, write_reports
from lossratio.report.formats import FORMATS
from lossratio.report.page import PAGE_NAME
from lossratio.report.run import read_run
from lossratio.results.run_directory import RunDirectory
from lossratio.simulation.constant_capacity import SharpKnee
from lossratio.trials.digest import add_digest
from lossratio.trials.journal import Journal
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    run = RunDirectory(tmp_path_factory.mktemp("runs") / "nightly")
    for result in (
        throughput(),
        throughput(SharpKnee(capacity=1e7), name="limit|of <it>"),
        mrr(),
        throughput(error="The agent on TG was killed.\x00", trials=5, name="killed"),
    ):
        run.write(result)
    return run.path


@pytest.fixture(scope="module")
def whole(directory):
    return read_run(directory)


@pytest.fixture
def cut_off(whole, tmp_path):
    run = RunDirectory(tmp_path / "cut")
    run.write(whole.results[0])
    with Journal.open(run.journal_path("Suite.killed"), {}) as journal:
        journal.append(TrialResult(TrialInput(1.0, 1000.0), TrialOutput(0.0)), verified=False)
    (run.path / "results" / "half.json").write_text("{")
    return run.path


def test_tests_of_the_same_name_are_shown_with_their_suites(tmp_path):
    first = mrr()
    second = first.model_copy(update={"test": first.test.model_copy(update={"suite": "Lab.West"})})
    alone = first.model_copy(update={"test": first.test.model_copy(update={"name": "alone"})})
    for result in (first, second, alone):
        RunDirectory(tmp_path).write(result)
    run = read_run(tmp_path)
    names = [first.test.full_name, second.test.full_name, "alone"]
    rows = [line.split(" | ")[0] for line in render("md", [run]).splitlines() if line.startswith("| ")]
    assert sorted(rows[2:]) == sorted(f"| {name}" for name in names)
    page = render("html", [run])
    assert all(f">{name}</a>" in page for name in names)
    cells = csv.DictReader(io.StringIO(render("csv", [run])))
    assert [row["test"] for row in cells].count(first.test.name) == 2


def test_json_has_whole_results_and_doubts(whole):
    (run,) = json.loads(render("json", [whole]))["runs"]
    assert run["run"] == "nightly"
    assert [RESULT.validate_python(entry["result"]) for entry in run["results"]] == list(whole.results)


def test_no_character_of_an_error_tears_a_row_of_csv(tmp_path):
    run = RunDirectory(tmp_path)
    run.write(throughput(error='50 %\r100 %\r\n\x00,"', trials=5))
    ndr, pdr = csv.DictReader(io.StringIO(render("csv", [read_run(tmp_path)]), newline=""))
    assert ndr["reason"] == pdr["reason"] == '50 %\n100 %\n\n\\x00,"'


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "|calc", " =1+1"])
def test_a_name_is_no_formula_in_csv_and_a_number_stays_one(tmp_path, name):
    run = RunDirectory(tmp_path / name)
    run.write(throughput(name=name, error="-1.5"))
    with Journal.open(run.journal_path(f"{name}.cut"), {}) as journal:
        journal.append(TrialResult(TrialInput(1.0, 1000.0), TrialOutput(0.0)), verified=False)
    *rows, cut = csv.DictReader(io.StringIO(render("csv", [read_run(run.path)])))
    assert {(row["run"], row["test"], row["reason"]) for row in rows} == {(f"'{name}", f"'{name}", "'-1.5")}
    assert cut["run"] == f"'{name}"
    assert {float(row["aggregate_factor"]) for row in rows} == {2.0}
    assert data._plain(-1.5) == -1.5


def test_csv_has_a_row_for_each_goal_in_plain_units(whole):
    rows = list(csv.DictReader(io.StringIO(render("csv", [whole]))))
    assert [(row["test"], row["goal"], row["outcome"]) for row in rows] == [
        ("64B-1c-eth-l2bdbase-mrr", "MRR", "measured"),
        ("64B-1c-eth-l2bdbase-ndrpdr", "NDR", "measured"),
        ("64B-1c-eth-l2bdbase-ndrpdr", "PDR", "measured"),
        ("killed", "NDR", "failed"),
        ("killed", "PDR", "failed"),
        ("limit|of <it>", "NDR", "irregular"),
        ("limit|of <it>", "PDR", "irregular"),
    ]
    ndr = rows[1]
    assert float(ndr["value_aggregate_fps"]) == 2 * float(ndr["value_per_interface_fps"])
    assert (ndr["unit"], ndr["value"]) == ("fps", ndr["value_aggregate_fps"])
    assert float(ndr["lower_bound"]) == 2 * float(ndr["lower_bound_per_interface_fps"])
    assert rows[3]["value_per_interface_fps"] == rows[3]["value"] == ""
    assert rows[5]["reason"] == MAX_LOAD_OF_GENERATOR


def test_markdown_has_one_blank_line_between_its_parts(whole, cut_off, tmp_path):
    RunDirectory(tmp_path / "plain").write(mrr())
    plain = read_run(tmp_path / "plain")
    for runs in ([whole], [plain], [read_run(cut_off)], [plain, whole, plain]):
        text = render("md", runs)
        assert "\n\n\n" not in text
        assert text == f"{text.rstrip()}\n"


def test_markdown_is_a_table_that_names_cannot_break(whole):
    lines = render("md", [whole]).splitlines()
    table = [line.replace("\\|", "") for line in lines if line.startswith("|")]
    assert {line.count("|") for line in table} == {13}
    assert any("limitof &lt;it>" in line and f"irregular: {MAX_LOAD_OF_GENERATOR}" in line for line in table)
    assert any("on the wire (layer 1)" in line for line in lines)
    assert any("Testbed simulated (simulated: no frame was sent)." in line for line in lines)


def test_junit_counts_failures_as_errors_and_irregular_results_as_skipped(whole):
    (suite,) = ElementTree.fromstring(render("junit", [whole]))  # noqa: S314 (our own)
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "0",
        "errors": "1",
        "skipped": "1",
    }
    killed = suite.find("testcase[@name='killed']/error")
    assert killed.get("message") == "The agent on TG was killed.\\x00"
    ndr = suite.find("testcase[@name='64B-1c-eth-l2bdbase-ndrpdr']/properties/property[@name='NDR aggregate fps']")
    assert float(ndr.get("value")) == pytest.approx(299_540, abs=1)


@pytest.mark.parametrize("chosen", FORMATS.names())
def test_a_run_that_is_not_whole_is_marked_in_every_format(cut_off, chosen):
    text = render(chosen, [read_run(cut_off)])
    assert "Suite.killed" in text
    assert "cut" in text


def test_the_command_writes_into_the_directory(directory):
    answer = CliRunner().invoke(report, [str(directory)])
    assert answer.exit_code == 0
    page = directory / PAGE_NAME
    assert answer.output == f"{page}\n"
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_the_exit_status_shows_that_a_run_is_not_whole(cut_off):
    answer = CliRunner().invoke(report, [str(cut_off), "--format", "md", "--output", "-"])
    assert answer.exit_code == 1
    assert "Suite.killed was cut off: the run ended after 0 trials of it" in answer.stderr
    assert "half.json is damaged" in answer.stderr
    assert "| measured |" in answer.stdout
    assert "Suite.killed: the run ended after 0 trials of it" in answer.stdout
    assert "not counted: 1 further trial, after which" in answer.stdout


@pytest.mark.whole
def test_several_runs_need_a_place_for_their_report(directory, tmp_path):
    other = shutil.copytree(directory, tmp_path / "other")
    answer = CliRunner().invoke(report, [str(directory), str(other)])
    assert answer.exit_code == 2
    assert "--output FILE" in answer.stderr
    path = tmp_path / "both.csv"
    assert CliRunner().invoke(report, [str(directory), str(other), "--format=csv", f"--output={path}"]).exit_code == 0
    assert len(path.read_text().splitlines()) == 15


def test_a_run_is_not_reported_twice(directory, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(directory)
    answer = CliRunner().invoke(report, [str(directory), str(link), "--format=openmetrics", "--output=-"])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert f"{link} is given twice. Name each run once." in answer.stderr


def test_a_report_that_cannot_be_written_is_an_error_that_says_where(tmp_path):
    with pytest.raises(StorageError, match=r"Cannot write the report .*missing"):
        write_report(tmp_path / "missing" / "report.html", "text")


SUITE = """
*** Settings ***
Library    OperatingSystem
*** Test Cases ***
Measures
    Create File    ${OUTPUT DIR}/results/test.json    ${RESULT}
"""


def robot(folder, suite, *options):
    (folder / "suite.robot").write_text(suite)
    command = [sys.executable, "-m", "robot", "--log=NONE", "--report=NONE", "--outputdir", str(folder / "out")]
    return subprocess.run(
        [*command, *options, str(folder / "suite.robot")], capture_output=True, text=True, check=False
    )


@pytest.mark.whole
def test_the_listener_reports_a_run_at_its_end(tmp_path):
    result = add_digest(RESULT.dump_json(mrr()))[0].decode()
    (tmp_path / "variables.py").write_text(f"RESULT = {result!r}\n")
    listener = "lossratio.report.listener.RunReport:html:junit"
    answer = robot(tmp_path, SUITE, f"--listener={listener}", f"--variablefile={tmp_path / 'variables.py'}")
    assert answer.returncode == 0, answer.stdout
    assert f"Report: {tmp_path / 'out' / 'lossratio.html'}" in answer.stdout
    assert 'tests="1"' in (tmp_path / "out" / "lossratio.junit.xml").read_text()


@pytest.mark.whole
def test_the_listener_is_silent_where_nothing_was_measured_and_reports_files_that_it_cannot_read(tmp_path):
    listener = "--listener=lossratio.report.listener.RunReport"
    nothing = robot(tmp_path, "*** Test Cases ***\nIdle\n    No Operation\n", listener)
    assert "lossratio" not in nothing.stdout.replace(str(tmp_path), "")
    damaged = robot(tmp_path, SUITE, listener, "--variable=RESULT:damaged")
    assert "The run has no report. ReportError: Nothing to report" in damaged.stderr
    assert "lossratio archive repair" in damaged.stderr


@pytest.mark.whole
def test_a_report_of_any_kind_of_result_needs_no_ssh_and_no_testbed(tmp_path):
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from lossratio.report import read_run, render\n"
        "render('html', [read_run(Path(sys.argv[1]))])\n"
        "assert not {'paramiko', 'lossratio.testbed', 'lossratio.keywords'} & set(sys.modules)\n"
    )
    run = Path(__file__).parents[1] / "data" / "0.3.0"
    answer = subprocess.run([sys.executable, "-c", program, run], check=False, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


MODULE = """
from lossratio.report import ReportFormat

def count(runs):
    return f"{sum(len(run.results) for run in runs)} results\\n"

COUNT = ReportFormat("lossratio.count.txt", count)
"""


@pytest.mark.whole
def test_another_package_adds_a_format(install_package, directory, tmp_path):
    entries = ["count = our_formats:COUNT", "broken = our_formats:count", "absent = no_such_module:X"]
    install_package("our_formats", {"lossratio.report_format": entries}, our_formats=MODULE)
    assert {"count", "broken", "html"} <= set(FORMATS.names())
    assert render("count", [read_run(directory)]) == "4 results\n"
    (path,) = write_reports(directory, ["count"])
    assert (path.name, path.read_text()) == ("lossratio.count.txt", "4 results\n")
    assert to_format_name("COUNT") == "count"
    with pytest.raises(ReportError, match=r"'broken' of our_formats 1.0 .* is not a lossratio.report.ReportFormat"):
        render("broken", [])
    with pytest.raises(ReportError, match=r"'absent' of our_formats 1.0 .* cannot be loaded: ModuleNotFoundError"):
        render("absent", [])
    # The choices of the command are made when it is imported.
    program = [sys.executable, "-m", "lossratio", "report", str(directory), "--format", "count", "--output", "-"]
    site = {"PYTHONPATH": str(tmp_path / "site-packages"), "PATH": os.environ["PATH"]}
    done = subprocess.run(program, check=False, capture_output=True, text=True, env=site)
    assert done.stdout == "4 results\n"


def test_the_keyword_takes_every_format_and_names_them_all_where_there_is_none():
    assert [to_format_name(name.upper()) for name in FORMATS.names()] == list(FORMATS.names())
    assert to_format_name("Markdown") == "md"
    with pytest.raises(
        ValueError, match=r"There is no format of reports 'jsn'. Choose one of these: .*Did you mean 'json'\?"
    ):
        to_format_name("jsn")


def test_the_page_on_reports_has_every_format():
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "report-a-run.md").read_text()
    assert [name for name in FORMATS.names() if f"| `{name}` |" not in page] == []
