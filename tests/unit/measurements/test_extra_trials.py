"""What the error of a search says in which no load met a goal."""

from __future__ import annotations

import re

import pytest

from lossratio.files.shipped import TOPOLOGIES
from lossratio.measurements.open_testbed import open_testbed
from lossratio.measurements.throughput import require_lower_bounds


def error_of_search(tmp_path, model, **arguments):
    """The error of a search in which no load passes."""
    model_before = "model: sharp_knee, capacity: 150 kfps"
    topology = tmp_path / "slow.yaml"
    text = TOPOLOGIES.path("simulated").read_text()
    assert model_before in text
    topology.write_text(text.replace(model_before, model))
    with open_testbed(topology, results=tmp_path) as testbed:
        result = testbed.ndr_pdr(64, goals="quick", **arguments)
        with pytest.raises(AssertionError) as caught:
            require_lower_bounds(result)
    return str(caught.value)


def test_a_slow_device_is_searched_from_a_smaller_load(tmp_path):
    error = error_of_search(tmp_path, "model: sharp_knee, capacity: 5 kfps")
    way_out = 'min_load=900 fps (for the whole run --variable "MIN_LOAD:900 fps")'
    assert re.search(r"Of this load, 2\.[45]\d+ kfps per interface came back\. Search from a smaller load", error)
    assert f"e.g. {way_out}, or look for what loses frames at any load. If a search may end" in error


def test_no_smaller_load_is_advised_where_the_load_is_not_the_cause(tmp_path):
    error = error_of_search(tmp_path, "model: background_loss, capacity: 150 kfps, loss_ratio: 0.1")
    assert "the load is not the cause" in error
    assert "min_load" not in error
