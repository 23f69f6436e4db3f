"""Hints from earlier nights, and why each trial was measured, as a suite's user meets them."""

from __future__ import annotations

import pytest
from robot_runs import run_suite, write_suite

from lossratio.results.run_directory import RunDirectory

NIGHTLY = """
A Test
    Find NDR And PDR    frame_size=64B    goals=quick    hints=${HINTS}
"""


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("robot")
    file = write_suite(folder, NIGHTLY)
    (folder / "nightly").mkdir()
    return [run_suite(file, f"nightly/{name}", HINTS=folder / "nightly") for name in ("first", "second")]


def test_the_second_night_starts_where_the_first_one_ended_and_says_so(nights):
    (first,), (second,) = (RunDirectory(night.directory).results() for night in nights)
    assert [report.result for report in second.goals] == [report.result for report in first.goals]
    assert len(second.trials) <= len(first.trials)
    assert second.trials[1].load_per_interface_fps == first.goals[0].result.relevant_upper_bound.per_interface_fps
    assert "no earlier search of this test" in nights[0].tests["A Test"].message
    assert "hints from earlier searches (1 in " in nights[1].tests["A Test"].message


def test_the_log_says_why_each_trial_was_measured(nights):
    (purposes,) = [message for message in nights[1].messages if message.startswith("Why each trial was measured")]
    (result,) = RunDirectory(nights[1].directory).results()
    assert len(purposes.splitlines()) == 1 + len(result.trials)
    assert "high loss is expected, as in earlier searches" in purposes.splitlines()[2]


@pytest.mark.whole
def test_variables_give_all_searches_of_a_run_hints_and_the_question(tmp_path):
    file = write_suite(tmp_path, "A Test\n    Find NDR And PDR    frame_size=64B\n")
    run = run_suite(file, GOALS="quick", HINTS=tmp_path, NIGHTLY="as_before")
    (result,) = RunDirectory(run.directory).results()
    assert result.question.answer == "not asked"
    assert "there have been 0" in result.question.reason


@pytest.mark.whole
def test_of_a_sut_that_is_as_before_no_latency_is_measured_and_the_test_passes(tmp_path):
    (tmp_path / "nights").mkdir()
    file = write_suite(tmp_path, "A Test\n    Find NDR And PDR    frame_size=64B    latency=True\n")
    for number in range(5):
        run_suite(file, f"nights/{number}", GOALS="csit")
    run = run_suite(file, "sixth", GOALS="csit", HINTS=tmp_path / "nights", NIGHTLY="as_before")
    (result,) = RunDirectory(run.directory).results()
    assert result.is_as_before
    assert result.latency == ()
    assert run.tests["A Test"].passed
    assert not any("not measured after the search" in message for message in run.messages)


@pytest.mark.whole
def test_a_misspelt_question_fails_tests_with_what_there_is(tmp_path):
    file = write_suite(tmp_path, "A Test\n    Find NDR And PDR    frame_size=64B\n")
    run = run_suite(file, NIGHTLY="as_befor")
    message = run.tests["A Test"].message
    assert "nightly must be 'search' or 'as_before', not 'as_befor'. Did you mean 'as_before'? The doc" in message
