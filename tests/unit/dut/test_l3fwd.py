"""DPDK's l3fwd on packet sockets in a network namespace, and real frames through it."""

from __future__ import annotations

import os
import shutil

import pytest

from lossratio.dut import create_dut
from lossratio.errors import DutError

PROGRAM = os.environ.get("L3FWD", "dpdk-l3fwd")

pytestmark = pytest.mark.netns
needs_l3fwd = pytest.mark.skipif(
    shutil.which(PROGRAM) is None, reason="no l3fwd here: build DPDK's example, and name it with L3FWD=PATH"
)


@pytest.fixture
def set_up(dut_lab):
    with dut_lab.setting_up("l3fwd") as set_up:
        yield set_up


@needs_l3fwd
@pytest.mark.parametrize(("options", "version"), [({}, 4), ({"lookup": "fib"}, 6)])
def test_frames_are_routed_both_ways_and_tear_down_brings_back_what_was_there(dut_lab, set_up, options, version):
    before = dut_lab.snapshot()
    dut = set_up(**options)
    dut_lab.assert_accounted_for(dut, version, routed=True)
    assert f"--lookup={options.get('lookup', 'lpm')}" in dut.describe()["dpdk"]["/eal/app_params"]
    dut.tear_down()
    assert dut_lab.snapshot() == before


def test_a_missing_program_is_named_with_the_way_to_it(dut_lab):
    dut = create_dut("l3fwd", dut_lab.shell, dut_lab.create("l3fwd").hop, {"program": "/nowhere/l3fwd"})
    with pytest.raises(DutError, match=r"DUT1 lacks /nowhere/l3fwd\. It is.*dpdk-doc and libdpdk-dev.*program=PATH"):
        dut.check()
