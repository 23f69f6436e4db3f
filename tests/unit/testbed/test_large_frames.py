"""A path that loses the large frames of a mix is dead, whatever the small ones do: real namespaces, real frames."""

from __future__ import annotations

from contextlib import closing

import pytest
from local_testbeds import local_topology, needs_testbed
from measurement_examples import place

from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.nodes import NodeSession
from lossratio.testbed.local import LocalTestbed
from lossratio.testbed.opening import open_testbed
from lossratio.testbed.path_check import DeadDutError
from lossratio.topology import load_topology
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration
from lossratio.traffic.checks import with_largest_frames

PAIR = PortPair(TrafficPort("port0", "tg0"), TrafficPort("port1", "tg1"))
# Larger than 570 bytes, smaller than 1518: of IMIX_v4_1, only the largest frames are dropped.
RULE = "type filter hook ingress device dut0 priority -500; meta length > 1000 drop"
DROP_LARGE = f"table netdev narrow {{ chain in {{ {RULE}; }}; }}"


def configuration(frame_size):
    return make_configuration(load_profile("ethip4-udp", frame_size=frame_size), [PAIR], settle_time=0.1)


def test_the_largest_frames_of_a_mix_are_checked_by_themselves():
    whole = configuration("IMIX")
    largest = with_largest_frames(whole)
    assert [direction.frames.sizes for direction in largest.directions] == [((1518, 1),)] * 2
    assert [direction.name for direction in largest.directions] == [direction.name for direction in whole.directions]
    assert largest.settle_time == whole.settle_time


def test_frames_of_one_size_need_no_such_check():
    assert with_largest_frames(configuration(1518)) is None


@pytest.mark.netns
@needs_testbed
@pytest.mark.parametrize("frame_size", ["IMIX", 1518])
def test_a_path_that_loses_large_frames_only_is_not_measured_and_smaller_ones_are_tried(
    tmp_path, monkeypatch, unseen, frame_size
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = local_topology(tmp_path, "narrow")
    kept = LocalTestbed.up(load_topology(file), keep=True)
    try:
        with (
            closing(open_testbed(file, dut="linux_bridge")) as testbed,
            closing(NodeSession.connect("DUT1", kept.topology.nodes["DUT1"])) as dut,
        ):
            dut.run("nft", DROP_LARGE)
            request = MrrRequest(profile=load_profile("ethip4-udp", frame_size=frame_size), max_load=1e3, trials=1)
            with pytest.raises(DeadDutError) as raised:
                measure_mrr(testbed, request, place(tmp_path))
            dut.run("nft", "delete", "table", "netdev", "narrow")
    finally:
        kept.down()
    assert "port0>port1" in str(raised.value)
    assert str(raised.value).endswith(
        "Frames of 64 bytes get through, those of 1518 bytes do not: "
        "look at the MTUs on the way, or measure smaller frames."
    )
