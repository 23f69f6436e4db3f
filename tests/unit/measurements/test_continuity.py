from __future__ import annotations

from dataclasses import replace

import pytest
from measurement_examples import NO_LOSS, PROFILE, place, policed

from lossratio.errors import SearchError
from lossratio.measurements.frame_loss import FrameLossRequest, measure_frame_loss_rate
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.measurements.recovery import RecoveryRequest, measure_recovery
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.results.run_directory import RunDirectory, read_result

REQUEST = MrrRequest(profile=PROFILE, trials=1)


@pytest.fixture
def earlier(tmp_path):
    """A run with a result of another version of the device."""
    measure_mrr(policed(police="50 kfps"), REQUEST, place(tmp_path, "first"))
    run = RunDirectory(tmp_path)
    (result,) = run.results()
    duts = {"DUT1": {**result.conditions.duts["DUT1"], "version": "24.02"}}
    run.write(result.model_copy(update={"conditions": result.conditions.model_copy(update={"duts": duts})}))
    return tmp_path


def test_a_run_is_not_continued_with_another_version_of_a_device(earlier):
    message = r"DUT1 \(linux_bridge\) was version 24\.02, and is now None.*--force"
    with pytest.raises(SearchError, match=message):
        measure_mrr(policed(police="50 kfps"), REQUEST, place(earlier, "second", resume=earlier))
    assert not (earlier / "results" / "a_suite.second.json").exists()


def test_a_run_resumed_by_force_goes_on_and_the_result_says_so(earlier):
    insisting = replace(place(earlier, "second", resume=earlier), forced="DUT1 is another one")
    result = measure_mrr(policed(police="50 kfps"), REQUEST, insisting)
    assert "resumed by force, although DUT1 is another one" in [note.text for note in result.remarks]


def test_a_new_run_beside_it_minds_nothing(earlier):
    measure_mrr(policed(police="50 kfps"), REQUEST, place(earlier, "second"))


SEARCH = SearchRequest(goals=(NO_LOSS,), profile=PROFILE)
FALLING = FrameLossRequest(profile=PROFILE)
RECOVERY = RecoveryRequest(profile=PROFILE, throughput=50e3, repeats=1, duration=1.0, limit=1.0)
WARMED_UP = SEARCH.but(warm_up_duration=1.0)


@pytest.mark.parametrize(
    ("measure", "before", "now", "some_are_kept"),
    [
        (find_conditional_throughput, SEARCH, SEARCH.but(max_load=200e3), True),
        (find_conditional_throughput, SEARCH, SEARCH.but(min_load=49e3), True),
        (find_conditional_throughput, WARMED_UP, WARMED_UP.but(min_load=49e3), True),
        (find_conditional_throughput, WARMED_UP, WARMED_UP.but(max_load=200e3), False),
        (find_conditional_throughput, WARMED_UP, SEARCH, False),
        (find_conditional_throughput, SEARCH, WARMED_UP, False),
        (measure_mrr, REQUEST, REQUEST.but(trials=2), True),
        (measure_mrr, REQUEST, REQUEST.but(max_load=200e3), False),
        (measure_mrr, REQUEST, REQUEST.but(trial_duration=2.0), False),
        (measure_frame_loss_rate, FALLING, FALLING.but(step=0.05), False),
        (measure_recovery, RECOVERY, RECOVERY.but(repeats=2), True),
        (measure_recovery, RECOVERY, RECOVERY.but(overload=1.2), False),
        (measure_recovery, RECOVERY, RECOVERY.but(throughput=40e3), False),
        (measure_frame_loss_rate, FALLING, FALLING.but(max_load=200e3), False),
        (measure_mrr, SEARCH, REQUEST, False),
    ],
)
def test_a_search_continued_by_force_with_other_inputs_is_a_result_that_can_be_read(
    tmp_path, measure, before, now, some_are_kept
):
    measure_first = find_conditional_throughput if isinstance(before, SearchRequest) else measure
    first = measure_first(policed(police="50 kfps"), before, place(tmp_path))
    insisting = replace(place(tmp_path, resume=tmp_path), forced="its loads are other ones")
    measured = []
    result = measure(policed(police="50 kfps"), now, insisting, measured.append)
    assert read_result(insisting.directory.result_path(insisting.test.full_name)) == result
    assert (len(measured) < len(result.trials)) is some_are_kept
    assert len(result.trials) - len(measured) <= len(first.trials)


def test_a_journal_cut_off_in_its_header_is_begun_anew_by_force_too(tmp_path):
    measure_mrr(policed(police="50 kfps"), REQUEST, place(tmp_path))
    insisting = replace(place(tmp_path, resume=tmp_path), forced="DUT1 is another one")
    journal = insisting.directory.journal_path(insisting.test.full_name)
    journal.write_bytes(journal.read_bytes()[:20])
    assert len(measure_mrr(policed(police="50 kfps"), REQUEST, insisting).trials) == REQUEST.trials
