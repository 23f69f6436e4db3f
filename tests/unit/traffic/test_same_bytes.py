"""The bytes of frames: what was measured earlier is comparable only as long as they stay the same."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256

import pytest
from frame_samples import frames

from lossratio.agent.xdp.frames import FramePlan
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration

PAIR = PortPair(TrafficPort("port0", "west"), TrafficPort("port1", "east"))
MACS = (bytes.fromhex("020000000001"), bytes.fromhex("020000000002"))
DIGESTS = {
    "ethip4-udp": "bd84adae088ac0e1",
    "ethip6-udp": "ac7991f335f0ca1b",
    "ethip4-tcp": "fe96def25b10c29a",
    "ethip4-ip4base": "08713e002304cd41",
    "dot1q-ip4base": "aca71511be10c9b4",
    "dot1ad-ip4base": "097a2ff27c3bf60e",
    "ethip4vxlan-ip4base": "a4e0a9714a17946f",
    "dot1q-ip4vxlan-ip4base": "89299274024483ce",
    "eth-l2bdscale10k": "1ecb77a8b0e54743",
    "ethip4-geneve4": "544c8a432efc2cc6",
}
"""The first digits of the SHA-256 of each profile's frames, in both directions, of 128 bytes."""


@pytest.mark.parametrize("profile", DIGESTS)
def test_the_frames_of_a_profile_are_the_same_bytes_in_each_version(profile):
    configuration = make_configuration(load_profile(profile, frame_size=128), [PAIR], settle_time=0.1)
    digest = sha256()
    for direction in configuration.directions:
        digest.update(json.dumps(asdict(direction.frames), sort_keys=True).encode())
        for frame in frames(direction.frames)[:500]:
            digest.update(frame)
        if "geneve" not in profile:
            for template in FramePlan(direction.frames, *MACS).templates:
                digest.update(template)
    assert digest.hexdigest()[:16] == DIGESTS[profile]
