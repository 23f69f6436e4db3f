"""The keywords of RFC 2544 that need the throughput, in suites on the simulated testbed."""

from __future__ import annotations

import json

import pytest
from robot_runs import run_suite, write_suite

from lossratio.report import read_run

TESTS = """
Bursts After A Search
    Find Conditional Throughput    QUICK_NDR    frame_size=64B
    ${result} =    Measure Back-To-Back Frames    64B    repeats=2    settle=0.1 s
    Should Be Equal    ${result.settings.repeats}    ${2}
Bursts
    Measure Back-To-Back Frames    64B    throughput=50 kpps    max_load=100 kpps    repeats=1    step=10
Recovery
    ${result} =    Measure System Recovery    64B    duration=2 s    limit=1 s    repeats=2    overload=1.2
    Should Be Equal As Numbers    ${result.recovery.average_s}    0
Some Of All
    ${run} =    Run RFC 2544    frame loss    recovery    frame_sizes=64B, 1518B    quick=True    max_load=80 kpps
    Should Be Equal    ${run.problems}    ${{()}}
All With A Reset That Fails
    Run RFC 2544    reset    frame_sizes=["64B"]    quick=True    command=false
Repeated Latency
    Measure Latency    10 kpps    frame_size=64B    duration=0.1 s    repeats=3
No Repeats
    Measure Latency    10 kpps    frame_size=64B    repeats=0
Throughput Of Other Frames
    Measure System Recovery    128B
Command And Keyword
    Measure Reset Time    64B    command=ls    keyword=Log
Command That Does Nothing
    Measure Reset Time    64B    command=true    lead=1 s
Keyword That Fails
    Measure Reset Time    64B    keyword=No Such Keyword
Nothing Lost
    Measure Reset Time    64B    command=true    hitless=True    lead=1 s    limit=1 s    repeats=1
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_suite(write_suite(tmp_path_factory.mktemp("rfc2544"), TESTS))


@pytest.mark.parametrize(
    ("name", "status", "text"),
    [
        ("Bursts After A Search", "PASS", "back-to-back frames (RFC 9004), 2 searches"),
        ("Bursts", "PASS", "rate of the bursts         100,000 fps per interface"),
        ("Recovery", "PASS", "system recovery (RFC 2544, section 26.5), 2 repetitions"),
        ("Some Of All", "PASS", ""),
        (
            "All With A Reset That Fails",
            "FAIL",
            "TrafficError: 1 of 2 tests have no result: 64B reset: The reset command",
        ),
        ("Repeated Latency", "PASS", "latency at 10.000 kfps per interface"),
        ("No Repeats", "FAIL", "SearchError: repeats must be at least 1, not 0. The documentation of"),
        ("Throughput Of Other Frames", "FAIL", "Find it earlier in the same suite, for example with 'Find Conditional"),
        ("Command And Keyword", "FAIL", "SearchError: A reset is either a command or a keyword. Give one of them."),
        ("Command That Does Nothing", "FAIL", "TrafficError: No frame was lost after the reset (command: true)"),
        ("Keyword That Fails", "FAIL", "No keyword with name 'No Such Keyword' found."),
        ("Nothing Lost", "PASS", "no loss"),
    ],
)
def test_a_keyword_says_its_result_or_one_error(run, name, status, text):
    test = run.tests[name]
    said = test.message if test.failed else run.logged[name]
    assert (test.status, text in said) == (status, True), said


@pytest.mark.whole
def test_a_keyword_that_does_not_exist_is_noticed_before_any_traffic(run):
    measured = {result.test.name for result in read_run(run.directory).results}
    assert "Nothing Lost" in measured
    assert "Keyword That Fails" not in measured


def test_the_report_of_all_tests_is_beside_the_page_and_the_log_links_to_it(run):
    for name in ("rfc2544.html", "rfc2544.json", "rfc2544.csv"):
        assert (run.directory / name).stat().st_size > 100
        assert any(f'<a href="{name}">' in message for message in run.messages)


def test_latency_is_averaged_over_its_repeats(run):
    average = "latency at 10.000 kfps per interface: 10.0 µs on average of 3 repeats and all directions"
    assert average in run.messages


def test_each_test_has_a_report_of_its_own(run):
    tests = [json.loads((run.directory / f"{name}.json").read_text())["test"] for name in ("rfc2544", "rfc2544-2")]
    assert [test.rpartition(".")[2] for test in tests] == ["Some Of All", "All With A Reset That Fails"]
