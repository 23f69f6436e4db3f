import pytest

from lossratio.bench.interfaces import InterfaceState, check_link_speed
from lossratio.errors import TopologyError
from lossratio.topology import Interface, Port

PORT = Port("DUT1", "port0", Interface(link="link0", name="ens5f0", speed="25 Gbps"))


def state(driver, speed):
    return InterfaceState("ens5f0", driver, "02:00:00:00:00:01", "up", speed)


@pytest.mark.parametrize(("driver", "speed"), [("ice", 25e9), ("ice", None), ("", 10e9)])
def test_a_link_may_have_the_speed_of_the_file_or_tell_none(driver, speed):
    check_link_speed(PORT, state(driver, speed))


@pytest.mark.parametrize("speed", [10e9, 100e9])
def test_a_link_of_another_speed_is_refused(speed):
    with pytest.raises(TopologyError, match=r"DUT1\.port0: the link of ens5f0 has 10+\.0+ Gbit/s, .* 25\.000 Gbit/s"):
        check_link_speed(PORT, state("ice", speed))


def test_a_file_without_a_speed_is_not_checked():
    check_link_speed(Port("DUT1", "port0", Interface(link="link0", name="ens5f0")), state("ice", 1e9))
