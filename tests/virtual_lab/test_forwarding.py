"""Every frame is accounted for: the kernel of one machine forwards what the other one sends, over PCI cards.

The frames are few enough for the rings of a machine that gets no core for a while. So those that are missing were
unsent, or come late, and none is lost, however busy the host is.
"""

from __future__ import annotations

import pytest
from layouts import topologies

from lossratio import RunDirectory, TestIdentity, TestPlace, load_profile
from lossratio.errors import TrafficError
from lossratio.measurements.measure import measure
from lossratio.measurements.mrr import MrrRequest
from lossratio.results.kinds import kind_of
from lossratio.testbed import open_testbed

STATE = (
    "ip -brief link; nft list ruleset; "
    "sysctl -a 2>/dev/null | grep -E '^net.(ipv4|ipv6|bridge|core)' | grep -v -e random -e netdev_rss_key"
)
"""What a tear-down restores. The kernel draws the key of RSS when a driver first asks for it."""


@pytest.mark.parametrize("cards", ["vmxnet3", "mixed"])
def test_a_bridge_loses_no_frame_of_a_slow_load(lab, tmp_path, cards):
    before = lab["DUT1"].shell(STATE)
    request = MrrRequest(profile=load_profile("ethip4-udp", frame_size=64), max_load=50.0, trials=3, trial_duration=2.0)
    place = TestPlace(TestIdentity(name="linux_bridge", suite="virtual lab"), RunDirectory(tmp_path))
    with open_testbed(topologies(lab)[cards], dut="linux_bridge") as testbed:
        result = measure(kind_of("mrr"), testbed, request, place)

    assert [trial.missing.lost_by_sut for trial in result.trials] == [0] * request.trials
    assert sum(trial.sent_frames for trial in result.trials) > 0
    assert lab["DUT1"].shell(STATE) == before


def test_xdp_programs_send_and_receive_at_cards_of_virtio(lab, tmp_path):
    """The kernel is 6.1. Its driver has a ring of its own for XDP, which overflows where the host is busy."""
    request = MrrRequest(profile=load_profile("ethip4-udp", frame_size=64), max_load=50.0, trials=3, trial_duration=2.0)
    place = TestPlace(TestIdentity(name="linux_bridge", suite="virtual lab"), RunDirectory(tmp_path))
    with open_testbed(topologies(lab, "xdp")["virtio"], dut="linux_bridge") as testbed:
        result = measure(kind_of("mrr"), testbed, request, place)
    directions = [direction for trial in result.trials for direction in trial.directions]
    assert all(direction.sent_frames == 100 for direction in directions)
    assert all(direction.received_frames >= 90 for direction in directions)


def test_a_card_whose_driver_cannot_send_for_xdp_is_named_with_the_way_out(lab, tmp_path):
    """The driver vmxnet3 of Linux 6.1 takes frames, and sends none."""
    request = MrrRequest(profile=load_profile("ethip4-udp", frame_size=64), max_load=50.0, trials=1, trial_duration=1.0)
    place = TestPlace(TestIdentity(name="linux_bridge", suite="virtual lab"), RunDirectory(tmp_path))
    with (
        open_testbed(topologies(lab, "xdp")["vmxnet3"], dut="linux_bridge") as testbed,
        pytest.raises(TrafficError, match=f"The driver of {lab['TG'].interface(0)} .* Use 'kind: afpacket'"),
    ):
        measure(kind_of("mrr"), testbed, request, place)


def test_auto_uses_packet_sockets_where_a_driver_cannot_send_for_xdp(lab, tmp_path):
    request = MrrRequest(profile=load_profile("ethip4-udp", frame_size=64), max_load=50.0, trials=1, trial_duration=1.0)
    place = TestPlace(TestIdentity(name="linux_bridge", suite="virtual lab"), RunDirectory(tmp_path))
    with open_testbed(topologies(lab, "auto")["vmxnet3"], dut="linux_bridge") as testbed:
        result = measure(kind_of("mrr"), testbed, request, place)
    assert "sends none of them" in result.conditions.generator["instead_of_xdp_because"]
    assert [trial.missing.lost_by_sut for trial in result.trials] == [0]
