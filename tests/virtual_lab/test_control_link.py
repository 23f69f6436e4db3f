"""The link between controller and TG dies while frames are on their way, and no packet says so."""

from __future__ import annotations

import contextlib
import time

from layouts import topologies
from machines import wait_until
from measuring import FRAMES, LOAD, PATIENTLY, count_through, received

from lossratio import load_profile
from lossratio.errors import LossRatioError
from lossratio.testbed import open_testbed

LEASE = 60.0
"""Seconds that a lease lasts which nobody renews."""
PATIENCE = 30.0
"""Seconds that a slow machine takes to see that, and to end all."""


def frames_at(machine, number):
    """Frames that a card has received, as its kernel counts them."""
    return int(machine.run("cat", f"/sys/class/net/{machine.interface(number)}/statistics/rx_packets"))


def flows(machine):
    """Whether frames arrive at the first card at a tenth of the load, or more."""
    before = frames_at(machine, 0)
    time.sleep(2.0)
    return frames_at(machine, 0) - before >= 2.0 * LOAD / 10.0


def seconds_of_traffic_without_controller(lab, opened):
    """Seconds for which traffic flows after nobody reaches the TG any more."""
    ready = opened.ready_for(load_profile("ethip4-udp", frame_size=128))
    with contextlib.suppress(LossRatioError), ready as measured:
        measured.source.start_traffic(LOAD)
        wait_until(lambda: flows(lab["DUT1"]), "traffic")
        with lab["TG"].unreachable():
            died = time.monotonic()
            wait_until(lambda: not flows(lab["DUT1"]), "the end of traffic", 4 * LEASE)
            took = time.monotonic() - died
            # The lease has ended, too, when it can be reached again.
            time.sleep(max(0.0, LEASE + PATIENCE - took))
        measured.source.stop_traffic(0.5)
    return took


def test_traffic_ends_with_the_control_link_and_the_next_run_gets_the_testbed(lab, tmp_path):
    topology = topologies(lab)["vmxnet3"]
    with open_testbed(topology, dut="linux_bridge", recovery=PATIENTLY) as opened:
        assert seconds_of_traffic_without_controller(lab, opened) <= PATIENCE

    # The bridge was put back, although the lease had ended.
    assert "lossratio" not in lab["DUT1"].run("ip", "-brief", "link")
    with open_testbed(topology, dut="linux_bridge", recovery=PATIENTLY) as opened:
        assert received(count_through(opened, tmp_path)) == [(FRAMES, FRAMES)]
