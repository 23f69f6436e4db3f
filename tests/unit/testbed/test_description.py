import pytest
from measurement_examples import SIMULATED

from lossratio.errors import TrafficError
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile

DOWNLOAD = load_profile("ethip4-udp-download", frame_size=1518)


def test_the_load_of_parallel_paths_adds_up():
    load = load_profile("ethip4-udp", frame_size=64).described_load([("port0", "port1"), ("port2", "port3")])
    assert load.directions == ("port0>port1", "port1>port0", "port2>port3", "port3>port2")
    assert (load.applies_to, load.aggregate_factor) == ("each transmitting interface", 4.0)


def test_the_load_of_directions_that_differ_is_the_larger_one_s():
    load = DOWNLOAD.described_load([("port0", "port1")], encapsulation_overhead=50)
    assert (load.applies_to, load.aggregate_factor) == ("what sends port0>port1", 1.5)
    assert (load.shares_ratio, load.encapsulation_overhead_bytes) == ((1.0, 0.5), 50)


def test_the_load_of_one_direction_is_its_own():
    load = load_profile("ethip4-udp", frame_size=64, bidirectional=False).described_load([("port0", "port1")])
    assert (load.directions, load.aggregate_factor) == (("port0>port1",), 1.0)


def test_frame_sizes_of_directions_that_differ_have_their_shares_of_all_frames():
    traffic = DOWNLOAD.described()
    assert {size.size_bytes: size.share_ratio for size in traffic.frame_sizes} == {
        1518: pytest.approx(2 / 3),
        64: pytest.approx(1 / 3),
    }
    assert traffic.average_frame_size_bytes == pytest.approx((2 * 1518 + 64) / 3)
    assert traffic.profile["reverse"]["load_share"] == 0.5


def test_a_simulated_generator_refuses_directions_that_differ():
    ready = open_testbed(SIMULATED).ready_for(DOWNLOAD)
    with pytest.raises(TrafficError, match="ethip4-udp-download: the simulated generator sends the same load"), ready:
        pass
