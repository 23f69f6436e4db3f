from __future__ import annotations

import re

import pytest
from at_least_one import at_least_one
from measurement_examples import NO_LOSS, PROFILE, place, policed

from lossratio.errors import SearchError
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.measurements.mrr_requirement import require_mrr
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.measurements.throughput.requirement import require_throughput
from lossratio.mlrsearch import PDR


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    request = SearchRequest(goals=(NO_LOSS, PDR), profile=PROFILE)
    return find_conditional_throughput(policed(police="50 kfps"), request, place(tmp_path_factory.mktemp("run")))


def test_what_was_found_is_enough_for_itself_and_no_more(result):
    for report in at_least_one(result.goals):
        throughput = report.result.conditional_throughput.per_interface_fps
        require_throughput(result, throughput, report.goal.name)
        with pytest.raises(AssertionError, match=rf"{report.goal.name} is .* per interface .*regular.* at least"):
            require_throughput(result, throughput * 1.001, report.goal.name)


def assert_less_is_said_to_be_found(message):
    found, wanted = (float(number.replace(",", "")) for number in re.findall(r"([\d,.]+) fps", message))
    assert found < wanted


def test_a_value_just_below_what_is_required_is_not_said_to_be_the_same(result):
    (report, *_) = result.goals
    throughput = report.result.conditional_throughput.per_interface_fps
    with pytest.raises(AssertionError) as failed:
        require_throughput(result, throughput + 0.001)
    assert_less_is_said_to_be_found(str(failed.value))


def test_an_mrr_just_below_what_is_required_is_not_said_to_be_the_same(tmp_path):
    mrr = measure_mrr(policed(police="50 kfps"), MrrRequest(profile=PROFILE, trials=1), place(tmp_path))
    rate = mrr.mrr.mean.per_interface_fps
    with pytest.raises(AssertionError) as failed:
        require_mrr(mrr, rate + 0.001)
    assert_less_is_said_to_be_found(str(failed.value))


def test_the_first_goal_is_meant_where_none_is_named(result):
    with pytest.raises(AssertionError, match=r"^no loss is"):
        require_throughput(result, 60e3)


def test_a_goals_name_may_be_in_any_case(result):
    require_throughput(result, 50e3, "pdr")


def test_an_unknown_goal_is_an_error_that_names_those_of_the_search(result):
    with pytest.raises(SearchError, match=r"'NDR'.*no loss, PDR"):
        require_throughput(result, 1.0, "NDR")


def test_a_search_without_conditional_throughput_is_not_enough_for_anything(tmp_path):
    request = SearchRequest(goals=(NO_LOSS,), profile=PROFILE, min_load=100e3)
    result = find_conditional_throughput(policed(police="50 kfps"), request, place(tmp_path))
    with pytest.raises(AssertionError, match=r"no conditional throughput .*minimum load is an upper bound"):
        require_throughput(result, 1.0)


def test_mrr_has_no_conditional_throughput(tmp_path):
    result = measure_mrr(policed(police="50 kfps"), MrrRequest(profile=PROFILE, trials=1), place(tmp_path))
    with pytest.raises(SearchError, match="'mrr'"):
        require_throughput(result, 1.0)


@pytest.fixture(scope="module")
def mrr(tmp_path_factory):
    request = MrrRequest(profile=PROFILE, trials=1, max_load=200e3)
    return measure_mrr(policed(police="50 kfps"), request, place(tmp_path_factory.mktemp("mrr")))


def test_an_mrr_is_enough_for_itself_and_no_more(mrr):
    rate = mrr.mrr.mean.per_interface_fps
    require_mrr(mrr, rate)
    with pytest.raises(
        AssertionError, match=r"^MRR is 51,000 fps per interface; it should be at least 60,000 fps per "
    ):
        require_mrr(mrr, 60e3)


def test_an_mrr_at_a_lower_load_than_is_required_is_an_error_and_no_verdict(mrr):
    with pytest.raises(
        SearchError, match=r"at a load of 200,000 fps per interface; it should be .* 250,000 .*at a higher max_load\.$"
    ):
        require_mrr(mrr, 250e3)


def test_a_search_has_no_mrr(result):
    with pytest.raises(SearchError, match="'throughput' and has no MRR"):
        require_mrr(result, 1.0)


def test_an_mrr_that_failed_is_not_enough_for_anything(mrr):
    failed = mrr.model_copy(update={"mrr": None, "trials": (), "error": "agent lost"})
    with pytest.raises(AssertionError, match=r"^There is no MRR \(agent lost\); it should be at least 2\.00 fps"):
        require_mrr(failed, 2.0)
