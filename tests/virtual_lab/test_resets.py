"""RFC 6201's resets for real: the DUT reboots, or loses its power, and what is measured is how long it was away."""

from __future__ import annotations

import pytest
from layouts import closed_lab_file
from measuring import LOAD, PATIENTLY, place
from power import BOOTED, bridge_at_boot, no_bridge_at_boot, uptime_at_bridge

from lossratio import load_profile
from lossratio.measurements.measure import measure
from lossratio.measurements.reset import ResetRequest
from lossratio.results.kinds import kind_of
from lossratio.testbed import open_testbed


@pytest.mark.parametrize("how", ["power", "reboot"])
def test_the_reset_time_is_how_long_a_real_boot_takes(lab, tmp_path, how):
    dut = lab["DUT1"]
    resets = {"power": dut.cut_power, "reboot": dut.reboot}
    request = ResetRequest(
        profile=load_profile("ethip4-udp", frame_size=128),
        throughput=LOAD,
        max_load=LOAD,
        repeats=1,
        lead=4.0,
        limit=300.0,
        reset=resets[how],
        reset_name=how,
    )
    bridge_at_boot(dut)
    with open_testbed(closed_lab_file(lab, "west-east", 0, 1), recovery=PATIENTLY) as testbed:
        result = measure(kind_of("reset"), testbed, request, place(tmp_path))

    dut.wait_for_boot()
    # Linux counts from when it was started, after the firmware; a machine that reboots ends its programs before.
    away = uptime_at_bridge(dut)
    no_bridge_at_boot(dut)
    (time,) = result.reset.times
    assert away <= time.time_stamp_s <= away + BOOTED
    assert time.loss_method_s == pytest.approx(time.time_stamp_s, rel=0.02)
