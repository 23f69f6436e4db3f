"""VPP and a process behind it, by shared memory: frames are accounted for at every step."""

from __future__ import annotations

import os
import shutil

import pytest

HOME = os.environ.get("VPP_HOME", "")

pytestmark = [
    pytest.mark.netns,
    pytest.mark.vpp,
    pytest.mark.skipif(not HOME, reason="needs a VPP: set VPP_HOME"),
    pytest.mark.skipif(shutil.which("dpdk-testpmd") is None, reason="needs dpdk-testpmd"),
]


@pytest.mark.parametrize(
    ("process", "forwarding"), [("memif", "l2xc"), ("memif", "l2bd"), ("memif", "ip4"), ("vhost", "l2bd")]
)
def test_frames_go_through_a_process_and_every_one_is_accounted_for(dut_lab, process, forwarding):
    with dut_lab.setting_up("vpp", home=HOME) as set_up:
        dut = set_up(process=process, forwarding=forwarding)
        dut_lab.assert_accounted_for(dut)
        dut_lab.kill(dut.daemons[1])
        macs = dut.destination_macs(*dut_lab.macs)
        assert dut_lab.flood("west", macs.from_west, frames=10).received == 0
