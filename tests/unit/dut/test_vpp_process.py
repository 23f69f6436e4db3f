"""VPP and a process behind it, by shared memory: frames are accounted for at every step."""

from __future__ import annotations

import shutil

import pytest
from real_vpp import HOME, needs_vpp

pytestmark = [
    pytest.mark.netns,
    *needs_vpp,
    pytest.mark.skipif(shutil.which("dpdk-testpmd") is None, reason="needs dpdk-testpmd"),
]


@pytest.mark.parametrize(
    "options",
    [
        {"process": "memif", "forwarding": "l2xc"},
        {"process": "memif", "forwarding": "l2bd"},
        {"process": "memif", "forwarding": "ip4"},
        {"process": "vhost", "forwarding": "l2bd"},
        {"process": "memif", "forwarding": "l2xc", "container": True},
        {"process": "memif", "forwarding": "l2bd", "container": True},
        {"process": "memif", "forwarding": "ip4", "container": True},
    ],
    ids=lambda options: " ".join(map(str, options.values())),
)
def test_frames_go_through_a_process_and_every_one_is_accounted_for(dut_lab, options):
    with dut_lab.setting_up("vpp", home=HOME) as set_up:
        dut = set_up(**options)
        dut_lab.assert_accounted_for(dut)
        dut_lab.kill(dut.daemons[1])
        macs = dut.destination_macs(*dut_lab.macs)
        assert dut_lab.flood("west", macs.from_west, frames=10).received == 0
