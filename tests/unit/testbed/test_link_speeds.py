import pytest

from lossratio.errors import TopologyError, TrafficError
from lossratio.testbed.inspection import InterfaceState, PortState, check_link_speeds, check_mtus
from lossratio.topology import Interface, Port
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration


def port(driver="ice", speed=25e9, mtu=1500, stated="25 Gbps"):
    interface = Interface(link="link0", name="ens5f0", speed=stated)
    return PortState(
        Port("DUT1", "port0", interface), InterfaceState("ens5f0", driver, "02:00:00:00:00:01", "up", speed, mtu)
    )


@pytest.mark.parametrize(("driver", "speed"), [("ice", 25e9), ("ice", None), ("", 10e9)])
def test_a_link_may_have_the_speed_of_the_file_or_report_none(driver, speed):
    check_link_speeds([port(driver, speed)])


@pytest.mark.parametrize("speed", [10e9, 100e9])
def test_a_link_of_another_speed_is_refused(speed):
    with pytest.raises(TopologyError, match=r"DUT1\.port0: the link of ens5f0 has 10+\.0+ Gbit/s, .* 25\.000 Gbit/s"):
        check_link_speeds([port(), port(speed=speed)])


def test_a_file_without_a_speed_is_not_checked():
    check_link_speeds([port(speed=1e9, stated=None)])


def configuration(frame_size, profile="ethip4-udp"):
    pair = PortPair(TrafficPort("port0", "tg0"), TrafficPort("port1", "tg1"))
    return make_configuration(load_profile(profile, frame_size=frame_size), [pair], settle_time=0.0)


def test_a_port_of_a_device_without_room_for_jumbo_frames_is_refused():
    with pytest.raises(
        TrafficError, match=r"9000 bytes do not go through DUT1\.port0 \(ens5f0\), .* 1500\. Raise it to 8982"
    ):
        check_mtus([port()], configuration(9000))
    check_mtus([port(mtu=8982)], configuration(9000))


@pytest.mark.parametrize(("profile", "frame_size"), [("ethip4-udp", 1518), ("dot1q-ip4base", 1522)])
def test_one_tag_goes_through_the_usual_mtu(profile, frame_size):
    check_mtus([port()], configuration(frame_size, profile))


def test_a_port_that_the_kernel_does_not_have_is_not_checked():
    check_mtus([port(mtu=None)], configuration(9000))
