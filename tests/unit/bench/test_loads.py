from __future__ import annotations

import pytest
import yaml
from bench_examples import SIMULATED

from lossratio.bench.loads import DEFAULT_MIN_LOAD, link_speed, load_range
from lossratio.errors import SearchError
from lossratio.report.conditions import LoadOrigin
from lossratio.topology import load_topology


def test_the_generators_limit_is_the_default_maximum_load():
    loads = load_range(200e3, min_load=None, max_load=None)
    assert (loads.min_load, loads.max_load) == (DEFAULT_MIN_LOAD, 200e3)
    assert loads.origin is LoadOrigin.GENERATOR
    assert loads.remarks == ()


def test_a_given_maximum_load_counts_as_given():
    loads = load_range(200e3, min_load=1000.0, max_load=100e3)
    assert (loads.min_load, loads.max_load) == (1000.0, 100e3)
    assert loads.origin is LoadOrigin.GIVEN
    assert loads.remarks == ()


def test_a_maximum_load_above_the_generators_limit_is_remarked():
    loads = load_range(200e3, min_load=None, max_load=300e3)
    assert loads.max_load == 300e3
    assert "300.00 kfps" in loads.remarks[0]
    assert "200.00 kfps" in loads.remarks[0]


@pytest.mark.parametrize("max_load", [9001.0, 5000.0, 1.0])
def test_the_default_minimum_load_stays_below_any_maximum_load(max_load):
    loads = load_range(None, min_load=None, max_load=max_load)
    assert 0 < loads.min_load < max_load


def test_without_any_maximum_load_the_error_says_how_to_give_one():
    with pytest.raises(SearchError, match=r"max_load=.*max_rate"):
        load_range(None, min_load=None, max_load=None)


def test_a_minimum_load_above_the_maximum_load_is_an_error():
    with pytest.raises(SearchError, match=r"20\.000 kfps.*above.*10\.000 kfps"):
        load_range(None, min_load=20e3, max_load=10e3)


@pytest.mark.parametrize(
    ("speeds", "slowest"),
    [({}, None), ({"TG": "25 Gbps"}, 25e9), ({"TG": "25 Gbps", "DUT1": "10 Gbps"}, 10e9)],
)
def test_the_link_speed_is_the_smallest_that_the_topology_gives_on_the_path(tmp_path, speeds, slowest):
    data = yaml.safe_load(SIMULATED.read_text())
    for node, speed in speeds.items():
        data["nodes"][node]["interfaces"]["port1"]["speed"] = speed
    data["nodes"]["TG"]["interfaces"]["spare0"] = {"link": "spare", "speed": "1 Gbps"}
    data["nodes"]["TG"]["interfaces"]["spare1"] = {"link": "spare", "speed": "1 Gbps"}
    file = tmp_path / "topology.yaml"
    file.write_text(yaml.safe_dump(data))
    assert link_speed(load_topology(file).path()) == slowest
