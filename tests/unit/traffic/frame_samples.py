"""Frames as generators build them, and the parser that judges them: scapy's."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet

from lossratio.agent.afpacket.frames import FrameCycle, build_frames
from lossratio.agent.core.frames_spec import FramesSpec
from lossratio.errors import TrafficError
from lossratio.topology.addressing import EAST, WEST, Side
from lossratio.traffic import load_profile, profile_names
from lossratio.traffic.frame_headers import frames_spec

SOURCE_MAC = bytes.fromhex("020000000001")
DESTINATION_MAC = bytes.fromhex("020000000002")

SCALED = tuple(name for name in profile_names() if load_profile(name, frame_size=128).flows > 1000)
"""Profiles with many flows."""

UNSCALED = tuple(name for name in profile_names() if name not in SCALED)


def spec(
    profile: str = "ethip4-udp", frame_size: int | str = 64, source: Side = WEST, destination: Side = EAST
) -> FramesSpec:
    """The description of a profile's frames, in the first direction."""
    return frames_spec(load_profile(profile, frame_size=frame_size).directions[0], source, destination)


def of_each_kind() -> list[str]:
    """Profiles; of those that only differ in the number of their flows, the one with the most."""
    kinds: dict[tuple[object, ...], tuple[int, str]] = {}
    for name in profile_names():
        frames = spec(name, 256)
        steps = tuple((field.offset, field.width, field.seed is None) for field in frames.fields)
        kind = (frames.tag_offset, steps, name in SCALED)
        kinds[kind] = max(kinds.get(kind, (0, "")), (frames.flows, name))
    return [name for _, name in kinds.values()]


@cache
def smallest_size(profile: str) -> int:
    """Bytes of the smallest frames that a profile can have."""
    for size in range(64, 200):
        with suppress(TrafficError):
            load_profile(profile, frame_size=size)
            return size
    raise AssertionError(f"{profile} has no frames below 200 bytes")


def cycle(description: FramesSpec) -> FrameCycle:
    """What a ring is filled with."""
    return build_frames(description, SOURCE_MAC, DESTINATION_MAC)


def frames(description: FramesSpec) -> list[bytes]:
    """The frames that a ring is filled with."""
    built = cycle(description)
    return [row[:length].tobytes() for row, length in zip(built.data, built.lengths, strict=True)]


def with_fields_of_scapy(frame: bytes) -> bytes:
    """The frame with all lengths and checksums as scapy computes them; VXLAN has no checksum outside."""
    packet = Ether(frame)
    layer: Packet | None = packet
    while layer:
        if isinstance(layer, IP):
            del layer.chksum, layer.len
        elif isinstance(layer, IPv6):
            del layer.plen
        elif isinstance(layer, UDP):
            del layer.len
            if not isinstance(layer.payload, VXLAN):
                del layer.chksum
        elif isinstance(layer, TCP):
            del layer.chksum
        layer = layer.payload
    return bytes(packet.build())
