"""Other generators' files as profiles, and what is said of those that are none."""

from __future__ import annotations

import re
import struct
from ipaddress import ip_address
from pathlib import Path

import pytest

from lossratio.errors import ProfileError
from lossratio.traffic import convert_profile, load_profile, profile_text


def converted(tmp_path: Path, tool: str, content: str | bytes):
    path = tmp_path / "theirs"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return convert_profile(tool, path, "ours")


def loaded(tmp_path: Path, tool: str, content: str | bytes, frame_size: int | str = 64):
    made = converted(tmp_path, tool, content)
    path = tmp_path / "ours.yaml"
    path.write_text(profile_text(made))
    return load_profile(str(path), frame_size=made.frame_size or frame_size)


def problem(tmp_path: Path, tool: str, content: str | bytes) -> str:
    with pytest.raises(ProfileError) as caught:
        converted(tmp_path, tool, content)
    told = str(caught.value).replace(str(tmp_path), "")
    # Its file, line (or the frame of a capture), field, and a way out.
    place = r"(, frame \d+)?" if tool == "pcap" else r", line \d+"
    assert re.fullmatch(rf"/theirs{place}: .+: .+\. [A-Z].+\.", told), told
    return told


def udp_frame(port: int, length: int, *, tags: bytes = b"", fragment: int = 0) -> bytes:
    addresses = ip_address("10.1.2.3").packed + ip_address("10.9.8.7").packed
    packet = struct.pack(">BBHHHBBH", 0x45, 0xB8, 28, 0, fragment, 63, 17, 0) + addresses
    packet += struct.pack(">HHHH", 1000, port, 8, 0)
    return (bytes(12) + tags + b"\x08\x00" + packet).ljust(length, b"\0")


def capture(*frames: bytes, order: str = "<", magic: int = 0xA1B2C3D4, link: int = 1) -> bytes:
    content = struct.pack(f"{order}IHHIIII", magic, 2, 4, 0, 0, 65535, link)
    for frame in frames:
        content += struct.pack(f"{order}IIII", 0, 0, len(frame), len(frame)) + frame
    return content
