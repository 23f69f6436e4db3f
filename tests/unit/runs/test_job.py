from __future__ import annotations

import pytest
from nightly_examples import write_job

from lossratio.errors import JobError, TopologyError
from lossratio.runs.job import load_job
from lossratio.runs.job_tests import job_tests


def names(job):
    (testbed,) = job.testbeds
    return [test.name for test in job_tests(job, testbed)]


def test_a_job_is_tests_by_frame_sizes_by_cores(tmp_path):
    job = load_job(write_job(tmp_path, "- {suites: [bridge.robot], include: [mrr], frame_sizes: [64B], cores: [1, 2]}"))
    assert names(job) == ["64B-1c-eth-mrr", "64B-2c-eth-mrr"]


def test_settings_that_a_job_leaves_open_are_those_of_the_suite(tmp_path):
    job = load_job(write_job(tmp_path, "- {suites: [bridge.robot], exclude: [soak]}"))
    assert names(job) == ["64B-1c-eth-ndrpdr", "1518B-1c-eth-ndrpdr", "64B-1c-eth-mrr", "1518B-1c-eth-mrr"]


def test_a_suite_may_be_named_twice_with_tests_of_different_kinds(tmp_path):
    tests = """
- {suites: [bridge.robot], include: [ndrpdr]}
- {suites: [bridge.robot], include: [soak], frame_sizes: [IMIX]}
"""
    job = load_job(write_job(tmp_path, tests))
    assert names(job) == ["64B-1c-eth-ndrpdr", "1518B-1c-eth-ndrpdr", "IMIX-1c-eth-soak"]
    full_names = [test.full_name for test in job_tests(job, job.testbeds[0])]
    assert len(set(full_names)) == 3


def test_a_directory_of_suites_is_taken_whole(tmp_path):
    job = load_job(write_job(tmp_path, "- {suites: [.], include: [mrr]}"))
    assert names(job) == ["64B-1c-eth-mrr", "1518B-1c-eth-mrr"]


def test_tests_may_be_for_some_of_the_testbeds(tmp_path):
    tests = """
- {suites: [bridge.robot], include: [mrr]}
- {suites: [bridge.robot], include: [ndrpdr], testbeds: [two]}
"""
    job = load_job(write_job(tmp_path, tests, names=("one", "two")))
    counts = {testbed.topology.name: len(job_tests(job, testbed)) for testbed in job.testbeds}
    assert counts == {"one": 2, "two": 4}
    assert job.testbed("two") is job.testbed(tmp_path / "two.yaml") is job.testbeds[1]


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        ("- {suites: [no.robot]}", r"nightly\.yaml:5: tests\.0\.suites\.0: there is no .*no\.robot"),
        (f"- {{suites: [{'long' * 75}]}}", r"nightly\.yaml:5: tests\.0\.suites\.0: there is no file .*longlong"),
        ("- {suites: [bridge.robot], frame_size: 64B}", r"frame_size"),
        ("- {suites: []}", r"suites"),
        (
            "- {suites: [bridge.robot], testbeds: [three]}",
            r"nightly\.yaml:5: tests\.0\.testbeds\.0: no testbed .* is named 'three'",
        ),
        ("- {suites: [bridge.robot], cores: [0]}", r"nightly\.yaml:5: tests\.0\.cores\.0: must be at least 1, not 0"),
        ("- {suites: [bridge.robot], cores: [yes]}", r"cores\.0: must be a whole number, not 'yes'"),
        ("- {suites: [bridge.robot], frame_sizes: [63B]}", r"frame_sizes\.0: 63 is not between 64 and 9000 bytes"),
        (
            "- {suites: [bridge.robot]}\nvariables: {GOALS: csti}",
            r"nightly\.yaml:6: variables\.GOALS: There is no .*'csit'\?",
        ),
    ],
)
def test_faults_of_a_job_are_reported_with_their_place(tmp_path, tests, message):
    with pytest.raises(JobError, match=message):
        load_job(write_job(tmp_path, tests))


def test_a_list_without_its_wrong_entries_is_no_second_fault(tmp_path):
    with pytest.raises(JobError) as caught:
        load_job(write_job(tmp_path, "- {suites: [bridge.robot], frame_size: 64B}"))
    assert len(str(caught.value).splitlines()) == 1


def test_tests_that_select_nothing_are_an_error_before_the_night(tmp_path):
    job = load_job(write_job(tmp_path, "- {suites: [bridge.robot]}\n- {suites: [bridge.robot], include: [nrdpdr]}"))
    known = r"has its tags\. Their tags are: 1518B, .*soak.*\. Did you mean 'ndrpdr'\?"
    with pytest.raises(JobError, match=f"entry 2 of the tests on one selects no test: .*{known}"):
        job_tests(job, job.testbeds[0])


def test_a_tag_that_selects_nothing_beside_one_that_does_is_an_error_before_the_night(tmp_path):
    job = load_job(write_job(tmp_path, "- {suites: [bridge.robot], include: [ndrpdr, 64BB]}"))
    with pytest.raises(JobError, match=r"entry 1 .* no test matches the tag '64BB'\. .*Did you mean '64B'\?"):
        job_tests(job, job.testbeds[0])


def test_a_suite_that_is_none_is_an_error(tmp_path):
    path = write_job(tmp_path, "- {suites: [empty.robot]}")
    (tmp_path / "empty.robot").write_text("")
    job = load_job(path)
    with pytest.raises(JobError, match="Suite 'Empty' contains no tests"):
        job_tests(job, job.testbeds[0])


def test_a_topology_that_cannot_be_used_is_an_error_of_its_own(tmp_path):
    path = write_job(tmp_path, "- {suites: [bridge.robot]}")
    (tmp_path / "one.yaml").write_text("format: lossratio-topology/1\n")
    with pytest.raises(TopologyError, match=r"one\.yaml"):
        load_job(path)


def test_an_unknown_testbed_is_an_error_that_names_those_there_are(tmp_path):
    job = load_job(write_job(tmp_path, "- {suites: [bridge.robot]}", names=("one", "two")))
    with pytest.raises(JobError, match=r"no testbed three\. Its testbeds are one, two"):
        job.testbed("three")
