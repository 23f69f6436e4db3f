from __future__ import annotations

import json
import re

import pytest
from robot_runs import ON_A_POLICED_BRIDGE, run_suite, write_suite

from lossratio.mlrsearch import NDR, PDR
from lossratio.report import render, write_report
from lossratio.report.run import read_run
from lossratio.results.run_directory import RunDirectory

TWO_SEARCHES = """
Both
    [Tags]    64b    ndrpdr
    Find NDR And PDR    frame_size=64B    profile=ethip4-udp
Twice
    Find Conditional Throughput    NDR    frame_size=64B
    VAR    &{MINE}    name=mine    loss_ratio=1 %    duration_sum=3 s
    Find Conditional Throughput    ${MINE}    PDR    frame_size=IMIX_v4_1
Receive Rate
    [Documentation]    What comes back.
    Measure MRR    1518    trials=3    trial_duration=500 ms    max_load=60 kpps
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_suite(write_suite(tmp_path_factory.mktemp("robot"), TWO_SEARCHES))


@pytest.fixture(scope="module")
def results(run):
    return {result.test.name: result for result in RunDirectory(run.directory).results()}


def test_every_test_passes(run):
    assert {name: test.status for name, test in run.tests.items()} == {
        "Both": "PASS",
        "Twice": "PASS",
        "Receive Rate": "PASS",
    }


def test_the_message_is_short(run):
    lines = run.tests["Both"].message.splitlines()
    assert [line.partition(":")[0].partition(" ")[0] for line in lines if line[0] != " "] == ["NDR", "PDR", "Simulated"]


def test_the_log_gives_both_goals_with_bounds_and_units_once(run):
    message = run.logged["Both"]
    for goal in ("NDR", "PDR"):
        assert re.search(rf"^{goal} .*regular$", message, flags=re.MULTILINE)
    assert message.count("offered load, lower") == 2
    assert message.count("offered load, upper") == 2
    assert message.count("conditional throughput") == 2
    assert "per interface" in message
    assert "aggregate, L1 " in message


def test_every_measurement_has_a_result_and_a_journal_of_its_own(run, results):
    assert results.keys() == {"Both", "Twice", "Twice (2)", "Receive Rate"}
    for result in results.values():
        journal = RunDirectory(run.directory).journal_path(result.test.full_name)
        assert len(journal.read_text().splitlines()) == 1 + len(result.trials)


def test_a_result_says_which_test_it_is_of(results):
    assert results["Both"].test.tags == ("64b", "ndrpdr")
    assert results["Both"].test.suite == "Suite"
    assert results["Receive Rate"].test.documentation == "What comes back."


def test_arguments_reach_the_measurement(results):
    assert [report.goal.name for report in results["Both"].goals] == [str(NDR), str(PDR)]
    mine, pdr = (report.goal for report in results["Twice (2)"].goals)
    assert (mine.name, mine.loss_ratio, mine.duration_sum_s) == ("mine", 0.01, 3.0)
    assert pdr.name == "PDR"
    assert results["Twice (2)"].conditions.traffic.average_frame_size_bytes == pytest.approx(353.83, abs=0.01)
    mrr = results["Receive Rate"]
    assert mrr.conditions.traffic.average_frame_size_bytes == 1518
    assert mrr.max_load.rate.per_interface_fps == 60e3
    assert [trial.duration_s for trial in mrr.trials] == [0.5] * 3


def test_the_log_has_the_pictures_and_links_to_files_that_are_there(run):
    searches, pictures_of_each = 3, 2
    assert sum("<svg" in message for message in run.messages) == searches * pictures_of_each
    links = [link for message in run.messages for link in re.findall(r'<a href="([^"]+)"', message)]
    assert len(links) == 8
    for link in links:
        assert (run.directory / link).is_file()


def test_the_page_about_the_run_is_there_without_being_asked_for(run):
    page = (run.directory / "lossratio.html").read_text()
    for name in ("Both", "Twice (2)", "Receive Rate"):
        assert name in page


@pytest.fixture
def pages(monkeypatch):
    """How many results each page had that was written."""
    sizes = []

    def write(path, text, again):
        if path.name == "lossratio.html":
            sizes.append(text.count('id="test-'))
        write_report(path, text, again)

    monkeypatch.setattr("lossratio.report.listener.write_report", write)
    return sizes


@pytest.mark.whole
@pytest.mark.parametrize("listener", [None, "lossratio.report.listener.RunReport:html:junit"])
def test_the_page_is_written_once_for_all_suites_with_any_listeners(tmp_path, pages, listener):
    suites = tmp_path / "suites"
    suites.mkdir()
    for name in ("a", "b", "c"):
        write_suite(suites, "A Test\n    Measure MRR    64B    trials=1\n").rename(suites / f"{name}.robot")
    # No keyword of lossratio is imported in the last suite.
    (suites / "d.robot").write_text("*** Test Cases ***\nIdle\n    No Operation\n")
    options = {} if listener is None else {"listener": listener}
    run = run_suite(suites, options=options)
    assert run.status == 0
    assert pages == [3]
    assert (run.directory / "lossratio.junit.xml").exists() == (listener is not None)


@pytest.mark.whole
def test_the_page_is_written_on_demand_as_well(tmp_path, pages):
    tests = """
Measured
    Measure MRR    64B    trials=1
    Write Report
    Measure MRR    64B    trials=1
Other Formats
    Write Report    csv    markdown
"""
    run = run_suite(write_suite(tmp_path, tests))
    assert run.status == 0
    assert pages == [1, 2]
    assert (run.directory / "lossratio.csv").exists()


@pytest.mark.whole
def test_there_is_no_report_of_nothing(tmp_path):
    run = run_suite(write_suite(tmp_path, "A Test\n    Write Report\n"))
    assert "Nothing has been measured in this suite yet" in run.tests["A Test"].message


@pytest.mark.whole
def test_a_page_that_cannot_be_written_fails_no_test(tmp_path, capfd):
    (tmp_path / "run" / "lossratio.html").mkdir(parents=True)
    run = run_suite(write_suite(tmp_path, "A Test\n    Measure MRR    64B    trials=1\n"))
    assert run.status == 0
    assert run.tests["A Test"].passed
    assert any("The run has no report. StorageError: Cannot write" in message for message in run.errors)


@pytest.mark.whole
def test_progress_is_shown_in_one_line_per_trial_if_asked(tmp_path, capfd):
    suite = write_suite(tmp_path, "A Test\n    Find NDR And PDR    64B\n")
    run = run_suite(suite, GOALS="quick", LOSSRATIO_VERBOSE="yes")
    lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith("trial")]
    (result,) = RunDirectory(run.directory).results()
    assert len(lines) == len(result.trials)
    for line in lines:
        assert "QUICK_NDR" in line
        assert "QUICK_PDR" in line
        assert len(line) <= 130


@pytest.mark.whole
def test_progress_of_mrr_is_shown_in_one_line_for_its_only_stage(tmp_path, capfd):
    run_suite(write_suite(tmp_path, "A Test\n    Measure MRR    64B    trials=3\n"))
    lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith("trial")]
    assert len(lines) == 1
    for line in lines:
        assert re.search(r"forwarded 51\.0\d\d kfps per interface  \ds left$", line)


@pytest.mark.whole
def test_how_it_was_measured_is_in_the_log_and_in_the_message_if_asked_for(tmp_path):
    suite = write_suite(tmp_path, "A Test\n    Measure MRR    64B    trials=3\n")
    usual, verbose = (
        run_suite(suite, name, **asked) for name, asked in (("a", {}), ("b", {"LOSSRATIO_VERBOSE": "yes"}))
    )
    assert "Maximum load from: " not in usual.tests["A Test"].message
    assert sum("Maximum load from: " in message for message in usual.messages) == 1
    assert "Maximum load from: " in verbose.tests["A Test"].message


def test_the_result_is_in_the_log_once(run):
    assert sum("offered load, lower" in message for message in run.messages) == 3


@pytest.mark.whole
def test_a_throughput_can_be_demanded(tmp_path):
    tests = """
Enough
    Find NDR And PDR    64B
    Throughput Should Be At Least    50 kpps
    Measure MRR    64B    trials=1
    Throughput Should Be At Least    50.5 kpps    goal=PDR
Too Little
    Find NDR And PDR    64B
    Throughput Should Be At Least    60 kpps    goal=pdr
"""
    run = run_suite(write_suite(tmp_path, tests), GOALS="quick")
    assert run.tests["Enough"].message.startswith("SearchError: The search had no goal 'PDR'. Its goals were QUICK_NDR")
    run = run_suite(write_suite(tmp_path, tests))
    assert run.tests["Enough"].passed
    assert (
        "PDR is 51,000 fps per interface (regular); it should be at least 60,000 fps" in run.tests["Too Little"].message
    )


@pytest.mark.whole
def test_a_search_without_a_lower_bound_fails_unless_it_is_allowed(tmp_path):
    tests = """
Too Slow
    Find NDR And PDR    64B
Allowed
    Find NDR And PDR    64B    must_find=False
Smaller
    Find NDR And PDR    64B    min_load=900 fps
One Goal
    Find Conditional Throughput    QUICK_NDR    frame_size=64B
"""
    settings = "Suite Setup    Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge    police=5 kfps"
    run = run_suite(write_suite(tmp_path, tests, settings), GOALS="quick")
    assert [test.name for test in run.tests.values() if not test.passed] == ["Too Slow", "One Goal"]
    for name in ("Too Slow", "One Goal"):
        assert "QUICK_NDR, irregular: " in run.tests[name].message
        assert "Search from a smaller load, e.g. min_load=900 fps" in run.tests[name].message
        assert "must_find=False" in run.tests[name].message
    results = {result.test.name: result for result in RunDirectory(run.directory).results()}
    assert len(results) == 4
    assert results["Smaller"].goals[0].result.regular

    tests = "Smaller By Variable\n    Find NDR And PDR    64B\n"
    run = run_suite(write_suite(tmp_path, tests, settings), "smaller", GOALS="quick", MIN_LOAD="900 fps")
    (result,) = RunDirectory(run.directory).results()
    assert result.goals[0].result.regular


@pytest.mark.whole
def test_goals_that_do_not_exist_are_one_error_of_the_set_up(tmp_path):
    run = run_suite(write_suite(tmp_path, "A Test\n    Find NDR And PDR    64B\n"), GOALS="fast")
    message = run.tests["A Test"].message
    assert message.startswith("Parent suite setup failed:")
    assert "There is no set of search goals 'fast'. Use csit, csit-half, quick, coarse" in message
    assert "No keyword" not in message
    assert run.errors == []


@pytest.mark.whole
def test_an_irregular_result_is_a_warning_and_says_why(tmp_path):
    settings = "Suite Setup    Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge    police=900 kfps"
    run = run_suite(write_suite(tmp_path, "A Test\n    Find NDR And PDR    64B\n", settings), GOALS="quick")
    reason = "irregular: the generator's maximum load is a lower bound: higher loads were not offered"
    assert reason in " ".join(run.logged["A Test"].split())
    assert any(message.endswith(reason) for message in run.messages)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("keyword", "message"),
    [
        ("Find Conditional Throughput    NRD    frame_size=64B", r"There is no search goal 'NRD'.*NDR, PDR, RFC2544"),
        ("Find Conditional Throughput    frame_size=64B", r"at least one search goal, such as NDR\.$"),
        ("Find Conditional Throughput    {'loss_ratio': 2}    frame_size=64B", r"loss_ratio must be at least 0"),
        ("Find Conditional Throughput    {'loss': 2}    frame_size=64B", r"no field 'loss'; the fields are loss_ratio"),
        ("Find NDR And PDR    64B    max_load=fast", r"max_load.*'fast' is not a frame rate; write it like '10 kfps'"),
        ("Find NDR And PDR    64B    max_load=5 kpps    min_load=6 kpps", r"minimum load .* is above the maximum"),
        (
            "Find NDR And PDR    big",
            r"frame size big: 'big' is neither a size .* nor a mix of sizes\. Known mixes: IMIX_v4_1",
        ),
        ("Find NDR And PDR    20B", r"20 is not between 64 and 9000 bytes"),
        ("Find NDR And PDR    64B    profile=ethip5", r"no traffic profile 'ethip5'. Similar names are .*ethip4-udp"),
        ("Find NDR And PDR    64B    timeout=soon", r"timeout.*soon"),
        ("Find NDR And PDR    64B    timeout=-1", r"timeout must be a positive number of seconds"),
        ("Find NDR And PDR    64B    goals=fast", r"no set of search goals 'fast'. Use csit, csit-half, quick"),
        ("Measure MRR    64B    trials=none", r"trials.*'none' .*integer"),
        ("Measure MRR    64B    trials=0", r"trials must be at least 1, not 0"),
        ("Throughput Should Be At Least    1 kpps", r"Nothing has been measured in this suite yet"),
    ],
)
def test_a_wrong_argument_is_one_clear_error_and_measures_nothing(tmp_path, keyword, message):
    run = run_suite(write_suite(tmp_path, f"A Test\n    {keyword}\n"))
    assert run.tests["A Test"].failed
    assert re.search(message, run.tests["A Test"].message)
    assert len(run.tests["A Test"].message) < 400
    assert not (run.directory / "trials").exists()
    assert "before it measured anything" in (run.directory / "lossratio.html").read_text()


@pytest.mark.whole
def test_an_unfinished_measurement_of_an_earlier_run_is_continued(tmp_path):
    file = write_suite(tmp_path, "A Test\n    Find NDR And PDR    64B\n")
    whole = run_suite(file, "whole")
    journal = RunDirectory(whole.directory).journal_path("Suite.A Test")
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:10]))
    resumed = run_suite(file, "resumed", RESUME=whole.directory)
    (result,) = RunDirectory(resumed.directory).results()
    assert len(result.trials) == len(lines) - 1
    continued = RunDirectory(resumed.directory).journal_path("Suite.A Test").read_text().splitlines(keepends=True)
    assert continued[:10] == lines[:10]
    assert [json.loads(line)["input"] for line in continued[1:]] == [json.loads(line)["input"] for line in lines[1:]]


@pytest.mark.whole
def test_a_measurement_that_could_not_begin_leaves_no_result_of_an_earlier_run_in_its_directory(tmp_path):
    run_suite(write_suite(tmp_path, "A Test\n    Find NDR And PDR    64B    goals=quick\n"))
    run = run_suite(write_suite(tmp_path, "A Test\n    Find NDR And PDR    64B    goals=quick    min_load=1 Gfps\n"))
    assert "above the maximum load" in run.tests["A Test"].message
    assert RunDirectory(run.directory).results() == ()
    assert not any((run.directory / "trials").iterdir())


@pytest.mark.whole
def test_an_earlier_run_that_is_not_there_is_an_error_and_not_a_new_search(tmp_path):
    run = run_suite(write_suite(tmp_path, "A Test\n    Find NDR And PDR    64B\n"), RESUME=tmp_path / "misspelt")
    assert re.search("no run to continue in .*misspelt", run.tests["A Test"].message)
    assert not (run.directory / "trials").exists()


@pytest.mark.whole
def test_an_earlier_run_with_other_inputs_is_refused(tmp_path):
    file = write_suite(tmp_path, "A Test\n    Find NDR And PDR    64B\n")
    earlier = run_suite(file, "earlier")
    refused = run_suite(file, "refused", RESUME=earlier.directory, GOALS="quick")
    assert "belongs to another search: goals was" in refused.tests["A Test"].message


@pytest.mark.whole
@pytest.mark.parametrize("listener", [None, "lossratio.report.listener.RunReport:junit"])
def test_a_test_that_failed_before_it_measured_is_in_the_reports(tmp_path, listener):
    suites = tmp_path / "suites"
    suites.mkdir()
    test = "A Test\n    Measure MRR    64B    trials=1\n"
    for name, settings in (
        ("a", "Suite Setup    Set Up Testbed    ${TOPOLOGY}    dut=none_such"),
        ("b", ON_A_POLICED_BRIDGE),
        ("c", "Suite Setup    Set Up Testbed    ${TOPOLOGY}    dut=none_such"),
    ):
        write_suite(suites, test, settings).rename(suites / f"{name}.robot")
    directory = run_suite(suites, options={} if listener is None else {"listener": listener}).directory
    run = read_run(directory)
    assert [(test.full_name, "none_such" in test.reason) for test in run.having("failed")] == [
        ("A.A Test", True),
        ("C.A Test", True),
    ]
    page = (directory / "lossratio.html").read_text()
    assert page.count("failed</span> before it measured anything: ") == 2
    names = {"csv": ",A,A Test,", "junit": 'classname="A" name="A Test"'}
    for report_format in ("csv", "md", "junit", "json"):
        text = render(report_format, [run])
        assert names.get(report_format, "A.A Test") in text
        assert "none_such" in text
    # This is not known for an earlier run in the same directory.
    (suites / "a.robot").unlink()
    (suites / "c.robot").unlink()
    assert read_run(run_suite(suites).directory).having("failed") == ()


@pytest.mark.whole
def test_a_result_of_an_earlier_run_in_the_directory_still_says_that_its_test_failed(tmp_path):
    tests = (
        "Fast\n    Find NDR And PDR    64B    goals=quick\n    Throughput Should Be At Least    ${LEAST}\n"
        "Other\n    Measure MRR    64B    trials=1\n"
    )
    file = write_suite(tmp_path, tests)

    def failures(**more):
        run = read_run(run_suite(file, **more).directory)
        return {result.test.name: run.failure_of(result) for result in run.results}

    first = failures(LEAST="60 kfps")
    assert "should be at least 60,000 fps" in first["Fast"]
    assert not first["Fast"].startswith(LATER)
    assert failures(options={"test": "Other"}, LEAST="60 kfps") == {**first, "Other": None}
    assert failures(LEAST="1 kfps") == {"Fast": None, "Other": None}

    # The tests fail before they measure anything, but the earlier results are still there.
    write_suite(tmp_path, tests, "Suite Setup    Set Up Testbed    ${TOPOLOGY}    dut=none_such")
    later = failures(LEAST="1 kfps")
    assert [message.startswith(LATER) and "none_such" in message for message in later.values()] == [True, True]


LATER = "it ran again later, and failed before it measured this: "


@pytest.mark.whole
def test_an_argument_without_a_value_has_its_default(tmp_path):
    run = run_suite(write_suite(tmp_path, "A Test\n    Measure MRR    64B    trials=1    bidirectional=None\n"))
    assert "per interface times 2 (port0>port1, port1>port0)" in run.logged["A Test"]
