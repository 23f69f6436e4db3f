"""Hints: earlier searches of the same test, as runs left them."""

from __future__ import annotations

from pathlib import Path

import pytest
from measurement_examples import NO_LOSS, PROFILE, place, policed

from lossratio.errors import SearchError
from lossratio.measurements.throughput.earlier import earlier_searches
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.mlrsearch import NDR, PDR
from lossratio.results.model import TestIdentity
from lossratio.traffic import load_profile
from lossratio.trials.journal_reading import read_journal

REQUEST = SearchRequest(goals=(NDR, PDR), profile=PROFILE)
TRAFFIC = PROFILE.described()
TEST = TestIdentity(name="a test", suite="a suite")


def search(directory, request=REQUEST, **options):
    return find_conditional_throughput(policed(police="50 kfps"), request, place(directory, **options))


def outcome(result):
    return [report.result for report in result.goals]


@pytest.fixture(scope="module")
def nightly(tmp_path_factory) -> Path:
    """A folder of two runs."""
    folder = tmp_path_factory.mktemp("nightly")
    for night in ("first", "second"):
        search(folder / night)
    return folder


@pytest.mark.whole
def test_a_search_with_hints_starts_where_the_last_one_ended(nightly, tmp_path):
    plain = search(tmp_path / "plain")
    hinted = search(tmp_path / "hinted", REQUEST.but(hints=nightly))
    assert outcome(hinted) == outcome(plain)
    assert len(hinted.trials) <= len(plain.trials)
    found = hinted.goals[0].result
    bounds = (found.relevant_lower_bound, found.relevant_upper_bound)
    assert hinted.trials[2].load_per_interface_fps in [bound.per_interface_fps for bound in bounds]


@pytest.mark.whole
def test_the_result_and_the_journal_name_the_hints(nightly, tmp_path):
    hinted = search(tmp_path, REQUEST.but(hints=nightly))
    hints_setting = hinted.settings["hints"]
    assert [Path(search["file"]).parts[-3] for search in hints_setting["searches"]] == ["first", "second"]
    assert hints_setting["start_fps"]["NDR"] == hinted.goals[0].result.relevant_lower_bound.per_interface_fps
    assert read_journal(tmp_path / "trials" / "a_suite.a_test.jsonl").search["settings"]["hints"] == hints_setting
    assert any("hints from earlier searches (2 in " in remark.text for remark in hinted.remarks)


@pytest.mark.whole
def test_without_hints_the_result_names_none(tmp_path):
    result = search(tmp_path)
    assert "hints" not in result.settings
    assert not any("hint" in remark.text for remark in result.remarks)


@pytest.mark.whole
def test_the_first_night_has_no_hints_and_says_so(tmp_path):
    (tmp_path / "nightly").mkdir()
    result = search(tmp_path / "run", REQUEST.but(hints=tmp_path / "nightly"))
    assert outcome(result) == outcome(search(tmp_path / "plain"))
    assert any("no earlier search of this test" in remark.text for remark in result.remarks)


@pytest.mark.parametrize("where", ["first", "first/trials/a_suite.a_test.jsonl"])
def test_a_run_or_a_journal_is_a_hint_too(nightly, where):
    (search,) = earlier_searches(nightly / where, TEST, TRAFFIC)
    assert len(search.trials) == len(read_journal(nightly / "first/trials/a_suite.a_test.jsonl").entries)


@pytest.mark.whole
def test_a_journal_counts_where_there_is_no_result_yet(tmp_path):
    search(tmp_path)
    (whole,) = earlier_searches(tmp_path, TEST, TRAFFIC)
    (tmp_path / "results" / "a_suite.a_test.json").unlink()
    (cut_off,) = earlier_searches(tmp_path, TEST, TRAFFIC)
    assert [trial.input for trial in cut_off.trials] == [trial.input for trial in whole.trials]


def test_a_warm_up_is_no_part_of_a_hint(tmp_path):
    result = search(tmp_path, SearchRequest(goals=(NO_LOSS,), profile=PROFILE, warm_up_duration=2.0))
    (earlier,) = earlier_searches(tmp_path, TEST, TRAFFIC)
    (journal,) = earlier_searches(tmp_path / "trials" / "a_suite.a_test.jsonl", TEST, TRAFFIC)
    assert len(earlier.trials) == len(journal.trials) == len(result.trials) - 1


def test_other_tests_other_traffic_and_the_run_itself_are_left_out(nightly):
    larger = load_profile("ethip4-udp", frame_size=128).described()
    assert earlier_searches(nightly, TestIdentity(name="another test", suite="a suite"), TRAFFIC) == ()
    assert earlier_searches(nightly, TEST, larger) == ()
    (other,) = earlier_searches(nightly, TEST, TRAFFIC, besides=[nightly / "second"])
    assert other.file.parts[-3] == "first"


def test_hints_that_are_nowhere_are_refused_before_anything_is_measured(tmp_path):
    with pytest.raises(SearchError, match="no hints at"):
        search(tmp_path / "run", REQUEST.but(hints=tmp_path / "nowhere"))
    assert not (tmp_path / "run").exists()
