"""Measurements that were interrupted, and go on where they ended."""

from __future__ import annotations

from dataclasses import replace

import pytest
from measurement_examples import PROFILE, place, policed

from lossratio.errors import SearchError, StorageError
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.mlrsearch import NDR, PDR
from lossratio.results.model import Outcome
from lossratio.results.run_directory import read_result
from lossratio.traffic import load_profile
from lossratio.trials.counters import Integrity, IntegrityError
from lossratio.trials.journal import Journal
from lossratio.trials.journal_reading import read_journal

REQUEST = SearchRequest(goals=(NDR, PDR), profile=PROFILE)
EARLY = REQUEST.but(early_verdict=True)


class Stop(BaseException):
    """What interrupts a search, as Ctrl-C does."""


def interrupted_after(trials):
    def on_progress(progress):
        if progress.number == trials:
            raise Stop("enough")

    return on_progress


def test_an_interrupted_search_says_so_and_keeps_its_trials(tmp_path):
    with pytest.raises(Stop):
        find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(tmp_path), interrupted_after(5))
    result = read_result(tmp_path / "results" / "a_suite.a_test.json")
    assert result.outcome is Outcome.FAILED
    assert result.error == "enough"
    assert len(result.trials) == 5


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_search_that_was_stopped_by_force_says_so(tmp_path, stop):
    def interrupt(_):
        raise stop

    with pytest.raises(stop):
        find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(tmp_path), interrupt)
    (result,) = place(tmp_path).directory.results()
    assert result.error == "somebody stopped the run by force"


@pytest.mark.whole
@pytest.mark.parametrize("into", ["elsewhere", "."])
def test_an_interrupted_search_is_continued_without_measuring_anything_twice(tmp_path, into):
    whole = find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(tmp_path / "whole"))
    first, second = tmp_path / "first", tmp_path / "first" / into
    with pytest.raises(Stop):
        find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(first), interrupted_after(7))
    progresses = []
    continued = find_conditional_throughput(
        policed(police="50 kfps"), REQUEST, place(second, resume=first), progresses.append
    )
    assert progresses[0].number == 8
    assert continued.goals == whole.goals
    assert continued.trials == whole.trials
    assert len(read_journal(second / "trials" / "a_suite.a_test.jsonl").entries) == len(whole.trials)


def test_a_measurement_that_failed_of_repeated_frames_fails_again_where_it_is_continued(tmp_path):
    request = MrrRequest(profile=PROFILE, max_load=10e3, trials=2, trial_duration=1.0, integrity=Integrity.FAIL)
    measure_mrr(policed(police="50 kfps"), request, place(tmp_path))
    path = tmp_path / "trials" / "a_suite.a_test.jsonl"
    contents = read_journal(path)
    first = contents.results[0]
    directions = tuple(replace(direction, duplicated_frames=3) for direction in first.output.directions)
    with Journal.begin(path, contents.search) as journal:
        journal.append(replace(first, output=replace(first.output, directions=directions)))
    continued = place(tmp_path / "again", resume=tmp_path)
    with pytest.raises(IntegrityError, match=r"at 10\.000 kfps for 1 s: .*3 duplicated"):
        measure_mrr(policed(police="50 kfps"), request, continued)
    (result,) = continued.directory.results()
    assert (result.outcome, result.guilty, len(result.trials)) == (Outcome.FAILED, "DUT", 1)


@pytest.mark.whole
def test_a_test_that_the_earlier_run_did_not_reach_starts_anew(tmp_path):
    progresses = []
    place_now = place(tmp_path / "second", resume=tmp_path / "first")
    find_conditional_throughput(policed(police="50 kfps"), REQUEST, place_now, progresses.append)
    assert progresses[0].number == 1


@pytest.mark.parametrize(
    ("request_now", "police", "difference"),
    [
        (SearchRequest(goals=(NDR,), profile=PROFILE), "50 kfps", "goals was"),
        (SearchRequest(goals=(NDR, PDR), profile=PROFILE, max_load=100e3), "50 kfps", "max_load_fps was"),
        (SearchRequest(goals=(NDR, PDR), profile=load_profile("ethip4-udp", frame_size=128)), "50 kfps", "traffic was"),
        (REQUEST, "40 kfps", "dut was"),
    ],
)
def test_a_search_is_not_continued_with_other_inputs(tmp_path, request_now, police, difference):
    first = tmp_path / "first"
    with pytest.raises(Stop):
        find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(first), interrupted_after(3))
    before = (first / "trials" / "a_suite.a_test.jsonl").read_bytes()
    with pytest.raises(SearchError, match=difference) as error:
        find_conditional_throughput(policed(police=police), request_now, place(tmp_path / "second", resume=first))
    assert str(first) in str(error.value)
    assert (first / "trials" / "a_suite.a_test.jsonl").read_bytes() == before
    assert not (tmp_path / "second" / "trials").exists()


def test_a_journal_that_cannot_be_copied_is_no_fault_of_the_search(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    with pytest.raises(Stop):
        find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(first), interrupted_after(3))
    second.mkdir()
    (second / "trials").write_text("not a directory")
    with pytest.raises(StorageError, match=r"Cannot copy the journal .*first.* to .*second"):
        find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(second, resume=first))


@pytest.mark.whole
def test_the_same_test_measured_again_replaces_its_journal(tmp_path):
    for _ in range(2):
        result = find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(tmp_path))
    assert len(read_journal(tmp_path / "trials" / "a_suite.a_test.jsonl").entries) == len(result.trials)


@pytest.mark.whole
def test_the_result_of_an_earlier_run_is_gone_as_soon_as_its_test_is_measured_anew(tmp_path):
    find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(tmp_path))
    left = []
    find_conditional_throughput(
        policed(police="50 kfps"),
        REQUEST,
        place(tmp_path),
        lambda _: left.append(list((tmp_path / "results").iterdir())),
    )
    assert left[0] == []


@pytest.mark.whole
def test_a_search_with_early_verdicts_is_continued_as_one_and_not_as_another(tmp_path):
    whole = find_conditional_throughput(policed(police="50 kfps"), EARLY, place(tmp_path / "whole"))
    first = tmp_path / "first"
    with pytest.raises(Stop):
        find_conditional_throughput(policed(police="50 kfps"), EARLY, place(first), interrupted_after(7))
    with pytest.raises(SearchError, match=r"belongs to another search: settings was .*early_verdict"):
        find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(first, resume=first))
    continued = find_conditional_throughput(policed(police="50 kfps"), EARLY, place(first, resume=first))
    assert [trial.load_per_interface_fps for trial in continued.trials[:8]] == [
        trial.load_per_interface_fps for trial in whole.trials[:8]
    ]
    assert [report.result for report in continued.goals] == [report.result for report in whole.goals]
