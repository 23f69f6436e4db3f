"""Back-to-back frames by RFC 9004, on SUTs whose longest burst is known."""

from __future__ import annotations

import math

import pytest
from measurement_examples import PROFILE, SIMULATED, place

from lossratio.errors import SearchError
from lossratio.measurements.back_to_back import (
    NO_BUFFER_FILLS,
    BackToBackRequest,
    BufferTime,
    BurstFound,
    back_to_back_values,
    burst_search,
    measure_back_to_back,
)
from lossratio.measurements.repeated_search import SizeFound
from lossratio.report import read_run, render
from lossratio.results import Outcome, caveats_of, findings_of, message, read_result
from lossratio.results.contradictions import contradictions_of
from lossratio.testbed import open_testbed
from lossratio.trials import TrialOutput, TrialResult, read_journal

RATE = 100e3
REFILL = 50e3


def lossy(trial):
    return TrialResult(trial, TrialOutput(0.5, elapsed=1.0))


def lossless(trial):
    return TrialResult(trial, TrialOutput(0.0, elapsed=1.0))


def drive(controller, longest):
    """Lets a SUT answer that loses frames of bursts above a length."""
    while (trial := controller.next_trial()) is not None:
        controller.record(lossless(trial) if trial.frames <= longest else lossy(trial))
    return controller.result()


@pytest.mark.parametrize("longest", [0, 1, 2, 3, 50, 12_345, 199_998, 199_999])
def test_the_search_finds_the_longest_burst_to_the_frame(longest):
    (found,) = drive(burst_search(RATE, 200_000), longest)
    assert (found.lossless, found.lossy) == (longest, longest + 1)
    assert found.trials <= 1 + math.ceil(math.log2(200_000))


def test_a_step_ends_the_search_that_close():
    (found,) = drive(burst_search(RATE, 200_000, step=100), 12_345)
    assert found.lossless <= 12_345 < found.lossy <= found.lossless + 100


def test_where_no_burst_loses_a_frame_the_search_ends_after_one_trial():
    found = drive(burst_search(RATE, 200_000, repeats=3), 200_000)
    assert [(each.lossless, each.lossy, each.trials) for each in found] == [(200_000, None, 1)] * 3


def test_each_search_begins_anew():
    controller = burst_search(RATE, 1000, repeats=2)
    first = []
    while len(controller.result()) < 2:
        trial = controller.next_trial()
        first.append(trial.frames)
        controller.record(lossless(trial) if trial.frames <= 700 else lossy(trial))
    half = len(first) // 2
    assert first[:half] == first[half:]
    assert controller.next_trial() is None


def test_a_disturbance_costs_nothing_with_loss_verification():
    controller = burst_search(RATE, 1024, loss_verification=True)
    disturbed = True
    while (trial := controller.next_trial()) is not None:
        disturbed = not disturbed
        controller.record(lossy(trial) if trial.frames > 300 or disturbed else lossless(trial))
    assert 0 < controller.result()[0].lossless <= 300
    always = burst_search(RATE, 1024, loss_verification=True)
    (found,) = drive(always, 300)
    assert found.lossless == 300


def test_trials_of_other_settings_are_one_sentence_that_names_the_measurement():
    search = burst_search(1e5, 1000, step=1, repeats=3, loss_verification=False)
    with pytest.raises(SearchError) as raised:
        search.all_found([], "The back-to-back value of Suite.Bursts")
    assert str(raised.value) == (
        "The back-to-back value of Suite.Bursts has the trials of 0 finished searches, but 'repeats' is 3: the trials "
        "do not belong to these settings. Measure it again."
    )


def test_a_trial_of_another_length_shows_nothing():
    controller = burst_search(RATE, 1024)
    other = burst_search(RATE, 10).next_trial()
    controller.record(lossy(other))
    assert controller.next_trial().frames == 1024


def test_the_forecast_is_the_number_of_trials_that_follow():
    controller = burst_search(RATE, 1024, repeats=2)
    left = controller.remaining
    drive(controller, 700)
    assert controller.trials == left
    assert controller.remaining == 0


def test_the_buffer_time_is_that_of_rfc_9004():
    found = SizeFound(26_700, 26_701, 1)
    times = back_to_back_values([found], 11_000_000.0, 14_880_952.0).buffer_time
    assert times.implied_s == pytest.approx(26_700 / 14_880_952)
    assert times.corrected_s == pytest.approx(times.implied_s * (1 - 11_000_000 / 14_880_952))
    assert times.buffer_frames == pytest.approx(26_700 * (1 - 11_000_000 / 14_880_952))


def test_the_corrected_buffer_of_a_policer_is_its_bucket():
    bucket, rate = 1000, 2 * REFILL
    (found,) = drive(burst_search(rate, 200_000), math.floor((bucket - REFILL / rate) / (1 - REFILL / rate)))
    assert back_to_back_values([found], REFILL, rate).buffer_time.buffer_frames == pytest.approx(bucket, abs=1.0)


def test_the_values_are_those_of_all_searches():
    values = back_to_back_values([drive(burst_search(RATE, 1000), longest)[0] for longest in (10, 20, 60)], 0.0, RATE)
    assert (values.average_frames, values.least_frames, values.most_frames) == (30.0, 10, 60)
    assert values.stdev_frames == pytest.approx(26.457513)


@pytest.fixture(scope="module")
def policed():
    with open_testbed(SIMULATED, dut="linux_bridge", options={"police": "50 kfps", "burst": 1000}) as testbed:
        yield testbed


REQUEST = BackToBackRequest(profile=PROFILE, throughput=REFILL, max_load=RATE, repeats=3)
TRUTH = 1999
"""floor((B - R/L) / (1 - R/L)) with B = 1000 and R/L = 0.5."""


@pytest.fixture(scope="module")
def measured(policed, tmp_path_factory):
    where = place(tmp_path_factory.mktemp("run"))
    return measure_back_to_back(policed, REQUEST, where), where


def test_a_policer_answers_with_the_burst_of_the_arithmetic(measured):
    result, _ = measured
    assert result.outcome is Outcome.MEASURED
    assert [search.longest_frames for search in result.back_to_back.searches] == [TRUTH] * 3
    assert result.back_to_back.stdev_frames == 0.0


def test_bursts_of_different_lengths_are_an_average_and_may_show_no_buffer(measured):
    result, _ = measured
    spread = {"average_frames": 67.4, "least_frames": 11, "most_frames": 109}
    scattered = result.model_copy(update={"back_to_back": result.back_to_back.model_copy(update=spread)})
    first, after = (message(one).splitlines()[0] for one in (result, scattered))
    assert "a burst of 1,999 frames of 64 B each way at 100,000 frames/s loses nothing; the buffer holds" in first
    assert after == (
        "Back-to-back frames: the longest burst without loss has 67 frames of 64 B each way at 100,000 frames/s on "
        "average (11 to 109); if a buffer filled up, it holds 9.995 ms of traffic."
    )


def test_the_result_is_kept_and_shown(measured):
    result, where = measured
    assert read_result(where.directory.result_path(where.test.full_name)) == result
    (finding,) = findings_of([result])
    assert (finding.value, finding.deviation, finding.unit.name) == (TRUTH, 0.0, "frames")
    text = message(result)
    assert "back-to-back frames (RFC 9004), 3 searches" in text
    assert "1999 frames" in text
    assert "corrected buffer time   9.995 ms (999.5 frames)" in text
    page = render("html", [read_run(where.directory.path)])
    assert "corrected buffer time" in page


@pytest.mark.parametrize(
    "change",
    [
        {"average_frames": 2000.0},
        {"stdev_frames": 1.0},
        {"searches": (BurstFound(longest_frames=1998, shortest_lossy_frames=1999, trials=18),) * 3},
        {"buffer_time": BufferTime(implied_s=0.02, corrected_s=0.01, buffer_frames=1000.0)},
    ],
)
def test_a_result_whose_numbers_do_not_follow_from_its_trials_is_refused(measured, change):
    result, _ = measured
    assert list(contradictions_of(result)) == []
    changed = result.model_copy(update={"back_to_back": result.back_to_back.model_copy(update=change)})
    assert list(contradictions_of(changed)) != []


@pytest.mark.parametrize(("settle", "waited"), [(0.0, 0.0), (2.0, 2.0), (0.1, 2.0)])
def test_the_settle_time_is_as_long_as_the_burst_at_least(policed, tmp_path, settle, waited):
    request = REQUEST.but(repeats=1, settle=settle, max_load=150e3)
    before = [
        trial.elapsed_s for trial in measure_back_to_back(policed, request.but(settle=0.0), place(tmp_path, "0")).trials
    ]
    first = measure_back_to_back(policed, request, place(tmp_path, "1")).trials[0]
    assert first.duration_s == pytest.approx(2.0)
    assert first.elapsed_s - before[0] == pytest.approx(waited)


@pytest.mark.whole
def test_a_search_that_was_interrupted_measures_nothing_twice(policed, tmp_path):
    def stop(progress):
        if progress.number == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_back_to_back(policed, REQUEST, place(tmp_path), stop)
    measured = []
    where = place(tmp_path, resume=tmp_path)
    result = measure_back_to_back(policed, REQUEST, where, measured.append)
    assert len(measured) == len(result.trials) - 20
    assert result.back_to_back.average_frames == TRUTH
    assert len(read_journal(where.directory.journal_path(where.test.full_name)).entries) == len(result.trials)


def test_a_rate_that_the_generator_does_not_report_is_a_caveat(measured):
    result, _ = measured
    caveats = [
        [caveat for finding in findings_of([one]) for caveat in caveats_of(finding)]
        for one in (result, result.model_copy(update={"kept_rate": None}))
    ]
    assert (caveats[0], ["does not report the rate of each burst" in caveat for caveat in caveats[1]]) == ([], [True])


def test_where_no_burst_loses_a_frame_the_result_is_at_least(policed, tmp_path):
    request = REQUEST.but(longest_burst=0.01)
    result = measure_back_to_back(policed, request, place(tmp_path))
    assert result.outcome is Outcome.IRREGULAR
    (finding,) = findings_of([result])
    assert (finding.value, finding.lower_bound) == (None, 1000.0)
    assert "at least" in message(result)
    assert "raise longest_burst" in finding.reason


def test_where_the_throughput_is_the_rate_nothing_is_measured(policed, tmp_path):
    result = measure_back_to_back(policed, REQUEST.but(throughput=RATE), place(tmp_path))
    assert (result.outcome, result.reason, result.trials) == (Outcome.IRREGULAR, NO_BUFFER_FILLS, ())
    assert NO_BUFFER_FILLS in message(result)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"throughput": None}, r"Give it, for example throughput='1 Mfps'\. A search"),
        ({"longest_burst": 31.0}, "longest_burst must be above 0 s and at most 30 s, not 31 s. .*RFC 9004"),
        ({"longest_burst": 1e-6}, "is less than one frame"),
        ({"repeats": 0}, "repeats must be at least 1, not 0"),
        ({"step": 0}, "step must be at least 1, not 0"),
        ({"settle": -1.0}, "not -1"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(policed, tmp_path, change, problem):
    with pytest.raises(SearchError, match=problem):
        measure_back_to_back(policed, REQUEST.but(**change), place(tmp_path))
    assert not (tmp_path / "results").exists()


def test_a_single_search_shows_no_standard_deviation(policed, tmp_path):
    result = measure_back_to_back(policed, REQUEST.but(repeats=1), place(tmp_path))
    (finding,) = findings_of([result])
    assert finding.value == TRUTH
    assert finding.deviation is None
    assert "stddev" not in message(result)
