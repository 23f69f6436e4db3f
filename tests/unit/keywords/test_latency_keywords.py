"""Latency from Robot suites, on the simulated testbed."""

from __future__ import annotations

import pytest
from robot_runs import ROOT, run_suite, write_suite

from lossratio.results.run_directory import RunDirectory
from lossratio.testbed.simulated import SimulatedSource
from lossratio.traffic import AgentRefusalError

pytestmark = pytest.mark.whole

MODELLED = """
Suite Setup       Set Up Testbed    ${TOPOLOGY}
Suite Teardown    Tear Down Testbed
"""
TESTS = """
After A Search
    Find NDR And PDR    frame_size=64B
    Measure Latency
By Itself
    Measure Latency    60 kpps    10 kpps    frame_size=64B    duration=1 s
With The Search
    Find NDR And PDR    frame_size=64B    latency=on
Of Another Goal
    Find Conditional Throughput    NDR    frame_size=64B
    Measure Latency    goal=ndr    shares=[1, 0.25]    duration=2 s
Without A Search
    Run Keyword And Expect Error    *No search in this test*    Measure Latency
    Run Keyword And Expect Error    *Give the frame size*    Measure Latency    10 kpps
    Run Keyword And Expect Error    *loads of your own*    Measure Latency    10 kpps    frame_size=64B    goal=NOPE
    Run Keyword And Expect Error    *loads of your own*    Measure Latency    10 kpps    frame_size=64B    shares=[2]
"""


HOW_TO = ROOT / "docs" / "how-to" / "measure-latency.md"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_suite(write_suite(tmp_path_factory.mktemp("robot"), TESTS, MODELLED))


@pytest.fixture(scope="module")
def results(run):
    return {result.test.name: result for result in RunDirectory(run.directory).results()}


def test_every_test_passes(run):
    assert {test.status for test in run.tests.values()} == {"PASS"}, [test.message for test in run.tests.values()]


def test_after_a_search_it_is_measured_where_csit_does_and_becomes_a_part_of_the_result(run, results):
    result = results["After A Search"]
    pdr = result.goals[1].result.relevant_lower_bound.per_interface_fps
    loads = [latency.load.per_interface_fps for latency in result.latency]
    assert loads == pytest.approx([pdr, 0.9 * pdr, 0.5 * pdr, 9001.0, 9001.0])
    assert [latency.share_ratio for latency in result.latency] == [1.0, 0.9, 0.5, 0.1, 0.0]
    assert {latency.duration_s for latency in result.latency} == {5.0}
    assert [direction.direction for direction in result.latency[0].directions] == ["port0>port1", "port1>port0"]
    means = [latency.directions[0].mean_us for latency in result.latency]
    assert means[0] > means[1] > means[2] > means[3]
    assert run.logged["After A Search"].count("offered load, lower") == 2
    assert run.logged["After A Search"].count("latency at 90 % of PDR") == 1


def test_a_search_measures_it_at_once_where_that_is_asked_for(results):
    result = results["With The Search"]
    assert [latency.share_ratio for latency in result.latency] == [1.0, 0.9, 0.5, 0.1, 0.0]


@pytest.mark.parametrize(("variable", "argument", "count"), [(None, "", 5), ("off", "", 0), (None, "latency=off", 0)])
def test_suites_measure_it_after_each_search_unless_they_are_asked_not_to(tmp_path, variable, argument, count):
    suite = write_suite(tmp_path, f"A Search\n    Find NDR And PDR    64B    {argument}\n", MODELLED)
    run = run_suite(suite, GOALS="quick", LATENCY=variable, TELEMETRY=None)
    (result,) = RunDirectory(run.directory).results()
    assert [latency.share_ratio for latency in result.latency] == [1.0, 0.9, 0.5, 0.1, 0.0][:count]
    # A tenth of CSIT's evidence has shorter trials.
    assert {latency.duration_s for latency in result.latency} <= {1.0}


def test_a_generator_that_cannot_measure_it_is_a_line_unless_the_test_asks_for_it(tmp_path, monkeypatch):
    asked = []

    def refuse(source, load, duration):
        asked.append(load)
        raise AgentRefusalError("This generator knows no latency.", "unsupported")

    monkeypatch.setattr(SimulatedSource, "latency", refuse)
    tests = "By Default\n    Find NDR And PDR    64B\nAsked For\n    Find NDR And PDR    64B    latency=on\n"
    run = run_suite(write_suite(tmp_path, tests, MODELLED), GOALS="quick", LATENCY=None)
    assert len(asked) == 2
    assert [test.status for test in run.tests.values()] == ["PASS", "FAIL"]
    message = run.tests["By Default"].message
    assert "QUICK_NDR: forwards" in message
    text = "Latency was not measured after the search. This generator knows no latency."
    assert message.splitlines()[-1] == text
    assert run.errors == [f"Suite.By Default: {text}"]
    assert "This generator knows no latency." in run.tests["Asked For"].message
    measured = RunDirectory(run.directory).results()
    assert [result.latency for result in measured] == [(), ()]
    word = "latency was not measured after the search: This generator knows no latency."
    assert [result.remarks[-1].text for result in measured] == [word, word]


def test_by_itself_it_has_a_result_of_its_own(results):
    result = results["By Itself"]
    assert result.kind == "latency"
    assert [latency.load.per_interface_fps for latency in result.latency] == [60_000.0, 10_000.0]
    assert len(result.trials) == 2


def test_goal_shares_and_duration_can_be_chosen(results):
    result = results["Of Another Goal"]
    assert [(latency.goal, latency.share_ratio, latency.duration_s) for latency in result.latency] == [
        ("NDR", 1.0, 2.0),
        ("NDR", 0.25, 2.0),
        ("NDR", 0.0, 2.0),
    ]


def test_the_example_of_the_documentation_passes(tmp_path):
    example = tmp_path / "example.robot"
    example.write_text(HOW_TO.read_text().split("```robotframework\n")[1].split("```")[0])
    run = run_suite(example, GOALS="quick")
    assert [test.status for test in run.tests.values()] == ["PASS", "PASS"]


def test_the_log_and_the_page_have_the_picture(run):
    assert sum("Latency by percentile of" in message for message in run.messages) == 4
    page = (run.directory / "lossratio.html").read_text()
    assert page.count("<h3>Latency</h3>") == 4
