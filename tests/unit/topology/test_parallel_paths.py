"""Parallel ways of the test traffic, with no link in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from lossratio.errors import TopologyError
from lossratio.topology import load_topology
from lossratio.topology.model import draw_topology

TWO_LINKS = load_topology(Path(__file__).parents[3] / "topologies" / "local-2links.yaml")


def test_parallel_paths_have_no_link_in_common():
    first, second = TWO_LINKS.paths(2)
    assert [str(port) for port in first.ports] == ["TG.port0", "DUT1.port0", "DUT1.port1", "TG.port1"]
    assert [str(port) for port in second.ports] == ["TG.port2", "DUT1.port2", "DUT1.port3", "TG.port3"]


def test_their_duts_are_distinguished_by_the_number_of_the_link():
    assert [hop.label for path in TWO_LINKS.paths(2) for hop in path.hops] == ["DUT1 (link 1)", "DUT1 (link 2)"]


def test_one_of_them_is_the_path():
    assert TWO_LINKS.paths(1) == (TWO_LINKS.path(),)
    assert [hop.label for hop in TWO_LINKS.path().hops] == ["DUT1"]


@pytest.mark.parametrize(
    ("count", "message"),
    [(3, "3 parallel links were requested, but there are 2: no unused link between TG and DUT1"), (0, "Use 1 or more")],
)
def test_more_than_there_are_is_an_error_that_names_how_many(count, message):
    with pytest.raises(TopologyError, match=message):
        TWO_LINKS.paths(count)


def test_each_is_drawn():
    lines = draw_topology(TWO_LINKS, TWO_LINKS.paths(2)).splitlines()
    assert len(lines) == 2 * 7
    assert lines[7:10] == ["  parallel link 2 of 2:", "  TG    port2: tg2", "    |  link2"]
