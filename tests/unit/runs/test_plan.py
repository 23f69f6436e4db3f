from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st
from nightly_examples import SIMULATED, write_job
from robot.api import TestSuite

from lossratio.commands.night import matrix, plan
from lossratio.history.store import History
from lossratio.results import identity_of
from lossratio.runs.expected_times import UNKNOWN_SECONDS, KnownTimes, expected_seconds
from lossratio.runs.job import load_job
from lossratio.runs.job_tests import suite_tests
from lossratio.runs.plan import PlannedTest, plan_job, spread

ALL = "- {suites: [bridge.robot]}"


@given(st.lists(st.floats(1.0, 1e4), min_size=1, max_size=40), st.integers(1, 6))
def test_equal_testbeds_end_at_most_a_third_later_than_they_could(seconds, number):
    testbeds = [f"t{index}" for index in range(number)]
    tests = [PlannedTest(f"test {i}", dict.fromkeys(testbeds, length), True) for i, length in enumerate(seconds)]
    night = spread(tests, testbeds)
    least = max(max(seconds), sum(seconds) / number)
    assert night.seconds <= (4 / 3) * least + 1 / 3 * max(seconds) + 1e-6
    assert sorted(test.name for share in night.shares for test in share.tests) == sorted(test.name for test in tests)


def test_a_test_runs_only_where_it_can():
    tests = [PlannedTest("a", {"x": 5.0}, True), PlannedTest("b", {"x": 5.0, "y": 50.0}, True)]
    night = spread(tests, ["x", "y"])
    assert [[test.name for test in share.tests] for share in night.shares] == [["a", "b"], []]


def test_tests_stay_in_their_order_on_each_testbed():
    tests = [PlannedTest(str(index), {"x": float(index)}, True) for index in range(1, 9)]
    assert [test.name for test in spread(tests, ["x"]).shares[0].tests] == [test.name for test in tests]


def test_a_test_takes_as_long_as_it_did_lately_here_or_else_anywhere():
    history = KnownTimes({("one", "a"): (900.0, *(100.0,) * 5), ("two", "b"): (30.0,)})
    assert history.expected("one", "a") == 100.0
    assert history.expected("one", "b") == 30.0
    assert history.expected("one", "c") is None


def test_a_test_that_was_never_measured_takes_as_long_as_it_asks_for(tmp_path):
    write_job(tmp_path, ALL)
    tests = {test.name: test for test in suite_tests((tmp_path / "bridge.robot",), tmp_path / "one.yaml")}
    assert expected_seconds(tests["64B-1c-eth-mrr"], {}) == pytest.approx(2.0)
    assert expected_seconds(tests["64B-1c-eth-soak"], {}) == 600.0
    csit = expected_seconds(tests["64B-1c-eth-ndrpdr"], {})
    quick = expected_seconds(tests["64B-1c-eth-ndrpdr"], {"GOALS": "quick"})
    assert 30 < csit < 146
    assert quick < csit / 4
    alone = expected_seconds(tests["64B-1c-eth-ndrpdr"], {"LATENCY": "off", "TELEMETRY": "off"})
    assert csit - alone == pytest.approx(5 * 5.0 + 1.0)


def test_a_test_that_measures_nothing_known_is_taken_for_a_minute(tmp_path):
    (tmp_path / "other.robot").write_text("*** Test Cases ***\nOther\n    Log    hello\n")
    (test,) = TestSuite.from_file_system(tmp_path / "other.robot").tests
    assert expected_seconds(test, {}) == UNKNOWN_SECONDS


def test_a_time_of_which_nothing_is_known_is_no_forecast(tmp_path):
    write_job(tmp_path, ALL)
    suite = tmp_path / "other.robot"
    suite.write_text("*** Test Cases ***\nRecovery\n    Measure System Recovery    64B\nMrr\n    Measure MRR    64B\n")
    arguments = ["--topology", str(tmp_path / "one.yaml"), str(suite)]
    shown = CliRunner().invoke(plan, arguments, catch_exceptions=False).output
    assert "  0:01:00 (a guess)  Other.Recovery\n  0:00:10 (forecast)  Other.Mrr\n" in shown
    assert shown.endswith("their time is a forecast. For 1 of these, there is only a guess: 60 s each.\n")


def test_a_job_is_spread_over_its_testbeds(tmp_path):
    night = plan_job(load_job(write_job(tmp_path, ALL, names=("one", "two"))), KnownTimes())
    assert sum(len(share.tests) for share in night.shares) == 6
    assert abs(night.shares[0].seconds - night.shares[1].seconds) < 120


def test_the_command_uses_the_history(tmp_path):
    job = write_job(tmp_path, "- {suites: [bridge.robot], include: [mrr], frame_sizes: [64B]}")
    (test,) = suite_tests((tmp_path / "bridge.robot",), tmp_path / "one.yaml", ("mrrAND64b",))
    started = datetime(2026, 11, 1, tzinfo=timezone.utc)
    known = {"testbed": "one", "test": identity_of(test), "quantity": "MRR", "started": started, "seconds": 77.0}
    entry = {**known, "value": 1e6, "outcome": "measured"}
    History(tmp_path / "history").add([entry])
    arguments = ["--job", str(job), "--history", str(tmp_path / "history"), "--json"]
    answer = json.loads(CliRunner().invoke(plan, arguments, catch_exceptions=False).output)
    assert answer["seconds"] == 77.0
    assert answer["shares"][0]["tests"][0]["is_known"]


def test_a_search_that_is_known_takes_its_time_alone_which_has_latency_and_telemetry_in_it(tmp_path):
    job = load_job(write_job(tmp_path, "- {suites: [bridge.robot], include: [ndrpdr], frame_sizes: [64B]}"))
    (test,) = suite_tests((tmp_path / "bridge.robot",), tmp_path / "one.yaml", ("ndrpdrAND64b",))
    assert plan_job(job, KnownTimes({("one", identity_of(test)): (90.0,)})).seconds == 90.0


def test_tests_take_as_long_as_when_they_were_measured_last_and_not_as_when_they_failed(tmp_path):
    def entry(day, seconds, quantity="NDR", outcome="measured"):
        started = datetime(2026, 11, day, tzinfo=timezone.utc)
        known = {"testbed": "one", "test": "a", "quantity": quantity, "started": started, "seconds": seconds}
        return {**known, "value": 1e6, "outcome": outcome}

    stored = History(tmp_path)
    stored.add([entry(day, 100.0 * day, goal) for day in (1, 2, 3) for goal in ("NDR", "PDR")])
    stored.add([entry(day, 2.0, goal, "failed") for day in (4, 5) for goal in ("NDR", "PDR")])
    assert KnownTimes.of(stored.read().table).seconds == {("one", "a"): (100.0, 200.0, 300.0)}


@pytest.mark.whole
def test_the_plan_is_written_as_argument_files_that_robot_takes(tmp_path):
    job = write_job(tmp_path, ALL, names=("one", "two"))
    result = CliRunner().invoke(plan, ["--job", str(job), "--write", str(tmp_path / "plan")], catch_exceptions=False)
    assert "The last testbed ends after" in result.output
    assert "6 of the tests were never measured" in result.output
    written = [path.read_text().splitlines() for path in sorted((tmp_path / "plan").glob("*.args"))]
    assert len(written) == 2
    assert sum(len(lines) for lines in written) == 6
    assert all(line.startswith("--test Bridge.") for lines in written for line in lines)


def test_suites_are_planned_without_a_job(tmp_path):
    write_job(tmp_path, ALL, names=("one", "two"))
    arguments = [str(tmp_path / "bridge.robot"), "--include", "mrr"]
    for name in ("one", "two"):
        arguments += ["--topology", str(tmp_path / f"{name}.yaml")]
    output = CliRunner().invoke(plan, arguments, catch_exceptions=False).output
    assert "one: 1 test," in output
    assert "two: 1 test," in output


@pytest.mark.parametrize("arguments", [[], ["linux_bridge"], ["--job", "x.yaml", "linux_bridge"]])
def test_a_plan_of_nothing_is_bad_usage(arguments):
    assert CliRunner().invoke(plan, arguments).exit_code == 2


def test_the_matrix_has_a_job_for_each_testbed(tmp_path):
    job = write_job(tmp_path, ALL, names=("one", "two"))
    answer = json.loads(CliRunner().invoke(matrix, [str(job)], catch_exceptions=False).output)
    assert [job["testbed"] for job in answer["include"]] == ["one", "two"]
    assert {job["job"] for job in answer["include"]} == {str(job)}


def test_the_matrix_of_a_directory_can_be_of_one_kind():
    directory = SIMULATED.parent
    answer = json.loads(CliRunner().invoke(matrix, [str(directory), "--kind", "simulated"]).output)
    files = {"simulated": SIMULATED, "simulated-device": SIMULATED.with_name("simulated-device.yaml")}
    assert {row["testbed"]: row["topology"] for row in answer["include"]} == {
        name: str(file) for name, file in files.items()
    }
    assert len(answer["include"]) == len(files)


def test_testbeds_of_the_same_name_are_an_error(tmp_path):
    job = write_job(tmp_path, ALL)
    result = CliRunner().invoke(matrix, [str(job), str(tmp_path / "one.yaml")])
    assert f"one of {job} and of {tmp_path / 'one.yaml'}. Rename" in str(result.exception)


def test_the_topology_of_a_job_in_a_directory_is_no_job_of_its_own(tmp_path):
    job = write_job(tmp_path, ALL, names=("one", "two"))
    answer = json.loads(CliRunner().invoke(matrix, [str(tmp_path)], catch_exceptions=False).output)
    assert {(row["testbed"], row["job"]) for row in answer["include"]} == {("one", str(job)), ("two", str(job))}
