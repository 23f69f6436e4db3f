"""How long a trial waits for frames in flight."""

from types import SimpleNamespace

import pytest

from lossratio.testbed.set_up import LiveLink, LiveSetUp
from lossratio.topology import AfPacketGenerator


@pytest.mark.parametrize(("wanted", "seconds"), [(None, 0.105), ("2 s", 2.0), ("1 ms", 0.105)])
def test_a_topology_file_may_ask_for_a_longer_wait_than_the_duts(wanted, seconds):
    duts = (SimpleNamespace(settle_time=0.1), SimpleNamespace(settle_time=0.005))
    generator = SimpleNamespace(settings=AfPacketGenerator(kind="afpacket", settle=wanted))
    set_up = LiveSetUp((LiveLink(None, duts, None),), (), generator, (), {}, {}, {})
    assert set_up.settle_time == pytest.approx(seconds)
