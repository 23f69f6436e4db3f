"""Nights that ask whether the SUT is as before, from the keyword's request to the history."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from measurement_examples import PROFILE, InFrontOfTestbed, place, policed
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from lossratio.errors import SearchError
from lossratio.measurements.throughput import require_lower_bounds, require_throughput
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.nightly import Nightly
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.measurements.throughput.sentence import sentences
from lossratio.mlrsearch import NDR, PDR
from lossratio.report import Run
from lossratio.report.history import History, TrendRequest, add_runs, analyse, describe_trend
from lossratio.report.metrics import openmetrics_report
from lossratio.results import RunDirectory, read_result
from lossratio.results.contradictions import contradictions_of
from lossratio.trials import read_journal
from lossratio.trials.counters import output_from_counters


class Slower(InFrontOfTestbed):
    """The testbed of a SUT that passes fewer frames than before, in a way that no condition shows."""

    def __init__(self, factor):
        super().__init__(policed(police="50 kfps"))
        self._factor = factor

    def measure(self, trial):
        output = super().measure(replace(trial, load=trial.load / self._factor))
        return replace(output, forwarding_rate=None)


SEARCH = SearchRequest(goals=(NDR, PDR), profile=PROFILE)


def night(directory, request, testbed=None):
    return find_conditional_throughput(testbed or policed(police="50 kfps"), request, place(directory))


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """A folder with five searches."""
    folder = tmp_path_factory.mktemp("nights")
    for number in range(5):
        night(folder / f"night{number}", SEARCH)
    return folder


@pytest.fixture
def asks(nights):
    """A request that asks first."""
    return SEARCH.but(hints=nights, nightly=Nightly.AS_BEFORE)


@pytest.fixture(scope="module")
def as_before(nights, tmp_path_factory):
    """The result of a night without a search, and the run's directory."""
    folder = tmp_path_factory.mktemp("sixth")
    return night(folder, SEARCH.but(hints=nights, nightly=Nightly.AS_BEFORE)), folder


def test_an_unchanged_sut_is_asked_and_not_searched(as_before, nights):
    result, _ = as_before
    last = read_result(next(iter((nights / "night4" / "results").glob("*.json"))))
    assert result.question.answer == "as before"
    assert result.question.since == last.started
    assert len(result.trials) == result.question.trials < len(last.trials) / 2
    assert all(report.throughput is None and report.bounds == (None, None) for report in result.goals)
    lower = [found.relevant_lower_bound for found in result.question.earlier]
    assert lower == [report.result.relevant_lower_bound for report in last.goals]


def test_its_sentence_says_since_when_what_tonights_trials_show_and_how_often_changes_are_missed(as_before):
    result, _ = as_before
    (sentence,) = sentences(result)
    assert f"As before since {result.question.since:%Y-%m-%d}, and not searched" in sentence
    ndr = result.question.earlier[0]
    counts = [trial.load_per_interface_fps for trial in result.trials].count(ndr.passing_load_fps)
    assert f"NDR: {counts} of {counts} passed at {ndr.passing_load_fps:,.0f}, and " in sentence
    assert "a change of 2 % is missed in " in sentence
    assert "a change of 5 % is missed in 0 of " in sentence


def test_its_file_is_read_again_and_has_no_contradictions(as_before):
    result, folder = as_before
    directory = RunDirectory(folder)
    read = read_result(directory.result_path(result.test.full_name))
    assert read == result
    assert [*contradictions_of(read)] == []
    setting = read_journal(directory.journal_path(result.test.full_name)).search["settings"]
    assert setting["nightly"] == "as_before"


def test_demands_are_met_by_what_passed_tonight(as_before):
    result, _ = as_before
    require_lower_bounds(result)
    ndr, pdr = result.question.earlier
    require_throughput(result, ndr.passing_load_fps)
    require_throughput(result, 0.994 * pdr.passing_load_fps, "PDR")
    for asked, share in (ndr, 1.0), (pdr, 0.995):
        with pytest.raises(AssertionError, match=r"was not searched.* tonight's trials show ") as error:
            require_throughput(result, share * asked.passing_load_fps * 1.0001, asked.goal)
        assert "proves" not in str(error.value)
    assert result.relevant_load("NDR") == ("NDR", ndr.relevant_lower_bound.per_interface_fps)


class Lossy(InFrontOfTestbed):
    """The testbed of a SUT that loses one frame in seven trials of ten."""

    def __init__(self):
        super().__init__(policed(police="50 kfps"))
        self._rng = np.random.default_rng(8)

    def measure(self, trial):
        output = super().measure(trial)
        if self._rng.random() < 0.3 or output.lost_frames:
            return output
        first, *others = output.directions
        lossy = replace(first, received_frames=first.received_frames - 1)
        return output_from_counters(trial, (lossy, *others))


@pytest.mark.whole
def test_a_sut_without_ndr_is_not_as_before_because_pdr_is(asks, tmp_path):
    result = night(tmp_path, asks, Lossy())
    assert result.question.answer == "changed"
    assert result.goal_named("NDR").bounds != result.goal_named("PDR").bounds
    with pytest.raises(AssertionError, match="NDR"):
        require_throughput(result, 45e3)


@pytest.mark.whole
def test_a_slower_sut_is_searched_and_the_trials_count(asks, tmp_path):
    result = night(tmp_path, asks, Slower(0.9))
    assert result.question.answer == "changed"
    assert all(report.result.regular for report in result.goals)
    assert all(trial.is_evidence for trial in result.trials)
    first, *_ = sentences(result)
    assert first.startswith("Searched, because ")
    assert first.endswith(": the bounds show that the SUT has changed.")


@pytest.mark.whole
def test_after_a_change_there_are_searches_until_there_are_enough(asks, nights, tmp_path):
    (tmp_path / "all").mkdir()
    for one in nights.iterdir():
        (tmp_path / "all" / one.name).symlink_to(one)
    again = asks.but(hints=tmp_path / "all")
    assert night(tmp_path / "all" / "changed", again, Slower(0.9)).question.answer == "changed"
    result = night(tmp_path / "next", again, Slower(0.9))
    assert result.question.answer == "not asked"
    assert "there have been 1" in result.question.reason
    assert all(report.result.regular for report in result.goals)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"search_every": 1}, "one in 1 nights always searches"),
        ({"goals": (NDR,)}, "or set of goals"),
        ({"goals": "RFC2544"}, "trials of more than one length"),
        ({"early_verdict": True}, "or set of goals"),
    ],
)
def test_the_result_says_why_it_was_not_asked(asks, tmp_path, changes, why):
    result = night(tmp_path, asks.but(**changes))
    assert result.question.answer == "not asked"
    assert why in result.question.reason
    first, *_ = sentences(result)
    assert why in first


def test_without_earlier_searches_the_way_out_is_said(tmp_path):
    with pytest.raises(SearchError, match="Say where they are"):
        night(tmp_path / "run", SEARCH.but(nightly=Nightly.AS_BEFORE))
    assert not (tmp_path / "run").exists()


@pytest.mark.whole
def test_a_trend_lacks_no_value_of_a_night_without_a_search(as_before, nights, tmp_path):
    history = History(tmp_path)
    assert add_runs(history, [*sorted(nights.iterdir()), as_before[1]]) == []
    trends = analyse(history, TrendRequest()).trends
    assert {trend.series.key.quantity for trend in trends} == {"NDR", "PDR"}
    for trend in trends:
        assert len(trend.series.times) == 5
        assert "as before in 1 later night, " in describe_trend(trend)
        assert "no value" not in describe_trend(trend)


def test_metrics_say_that_it_is_as_before_and_not_that_nothing_was_measured(as_before, tmp_path):
    result, _ = as_before
    families = {
        family.name: family.samples
        for family in text_string_to_metric_families(openmetrics_report([Run(tmp_path, (result,))]))
    }
    assert "lossratio_measured" not in families
    assert {sample.labels["quantity"]: sample.value for sample in families["lossratio_as_before"]} == {
        "NDR": 1.0,
        "PDR": 1.0,
    }
