import re

import pytest
from report_examples import MAX_LOAD, throughput
from test_loss_picture import hints, texts

from lossratio.measurements.throughput.sweeps import core_sweeps, draw_cores, draw_frame_sizes, size_sweeps
from lossratio.report.page import report_page
from lossratio.report.run import Run
from lossratio.results.conditions import FrameSizeShare, LoadOrigin
from lossratio.simulation.constant_capacity import SharpKnee


def sized(size, *, name=None, error=None):
    result = throughput(name=name or f"{size}B-1c-eth-l2bdbase-ndrpdr", error=error)
    sizes = (FrameSizeShare(size_bytes=size, share_ratio=1.0),)
    traffic = result.conditions.traffic.model_copy(update={"frame_sizes": sizes, "average_frame_size_bytes": size})
    conditions = result.conditions.model_copy(update={"traffic": traffic})
    max_load = conditions.max_load(MAX_LOAD, LoadOrigin.GENERATOR, link_limit=1e9 / ((size + 20) * 8))
    return result.model_copy(update={"conditions": conditions, "max_load": max_load})


@pytest.fixture(scope="module")
def series():
    results = [sized(512), sized(64), sized(1518, error="agent lost"), sized(64, name="other")]
    (sweeps,) = size_sweeps(results)
    return sweeps


def test_tests_that_differ_in_their_frame_size_are_one_series_for_each_goal(series):
    assert [(one_series.name, one_series.goal) for one_series in series] == [
        ("*-1c-eth-l2bdbase-ndrpdr", "NDR"),
        ("*-1c-eth-l2bdbase-ndrpdr", "PDR"),
    ]
    assert [row.at for row in series[0].rows] == [64, 512, 1518]
    assert [row.is_regular for row in series[0].rows] == [True, True, False]
    assert series[0].rows[2].throughput is None


def test_theoretical_maxima_are_those_of_rfc_2544_for_the_links_speed(series):
    # RFC 2544, section 20: 1,488,095 frames of 64 bytes per second at 1 Gbit/s.
    assert [round(row.theoretical_maximum.per_interface_fps) for row in series[0].rows] == [1_488_095, 234_962, 81_274]


def test_the_graph_has_a_point_for_each_size_that_has_a_throughput_and_the_limit(series):
    picture = draw_frame_sizes(series)
    assert [hint for hint in hints(picture) if hint.startswith("NDR")] == [
        "NDR, 64 B: 149.77 kfps",
        "NDR, 512 B: 149.77 kfps",
    ]
    assert "theoretical maximum of the links" in texts(picture)


def test_one_frame_size_makes_no_graph():
    assert size_sweeps([sized(64), sized(64, name="64B-2c-eth-l2bdbase-ndrpdr")]) == []


def on_cores(cores, capacity, **fields):
    return throughput(SharpKnee(capacity=capacity), name=f"64B-{cores}c-eth-l2bdbase-ndrpdr", **fields)


@pytest.mark.whole
def test_tests_that_differ_in_their_cores_are_one_series_with_the_efficiency_of_each():
    results = [on_cores(2, 180e3), on_cores(1, 100e3), on_cores(4, 200e3), throughput(name="64B-eth-l2bdbase-ndrpdr")]
    ((ndr, pdr),) = core_sweeps(results)
    assert (ndr.name, ndr.goal, pdr.goal) == ("64B-*-eth-l2bdbase-ndrpdr", "NDR", "PDR")
    assert [row.at for row in ndr.rows] == [1, 2, 4]
    assert [ndr.efficiency(row) for row in ndr.rows] == pytest.approx([1.0, 0.9, 0.5], abs=0.01)


@pytest.mark.whole
def test_a_failed_test_has_no_efficiency_and_without_the_fewest_cores_there_is_none():
    ((ndr, _),) = core_sweeps([on_cores(1, 100e3), on_cores(2, 200e3, error="agent lost")])
    assert [ndr.efficiency(row) for row in ndr.rows] == [1.0, None]
    ((ndr, _),) = core_sweeps([on_cores(1, 100e3, error="agent lost"), on_cores(2, 200e3)])
    assert [ndr.efficiency(row) for row in ndr.rows] == [None, None]


@pytest.mark.whole
def test_the_graph_over_cores_has_a_point_for_each_number_and_the_even_line():
    (group,) = core_sweeps([on_cores(1, 100e3), on_cores(2, 180e3)])
    picture = draw_cores(group)
    assert [hint.partition(":")[0] for hint in hints(picture) if hint.startswith("NDR")] == [
        "NDR, 1 cores",
        "NDR, 2 cores",
    ]
    assert "throughput per core with the fewest cores" in texts(picture)
    assert core_sweeps([on_cores(1, 100e3), on_cores(1, 90e3)]) == []


@pytest.mark.whole
def test_the_page_of_a_run_has_the_table_over_cores(tmp_path):
    results = (on_cores(1, 100e3), on_cores(2, 180e3))
    page = report_page([Run(tmp_path, results)], "nightly")
    assert "throughput over cores" in page
    cells = r'<td>NDR</td><td class="number">2</td>\s*<td class="number">[^<]+</td>\s*<td class="number">(89|90)\.\d %'
    assert re.search(cells, page)
