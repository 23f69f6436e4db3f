"""A device at the edge of a network: frames leave it eastward in something, and westward without it.

Arguments: west interface, east interface, the edge, octet of each fiftieth frame eastward that it damages.
Of the frames eastward it loses each tenth.
"""

import select
import socket
import sys

from faulty_device import receive

EVERY, DAMAGED = 10, 50
_PACKET, _AUXILIARY_DATA = 263, 8


def access(frame: bytes) -> bytes:
    """Out of VLAN 100."""
    assert frame[12:16] == b"\x81\0\0\x64"
    return frame[:12] + frame[16:]


def trunk(frame: bytes) -> bytes:
    """Into VLAN 100."""
    return frame[:12] + b"\x81\0\0\x64" + frame[12:]


def provider(frame: bytes) -> bytes:
    """Into service VLAN 7."""
    return frame[:12] + b"\x88\xa8\0\7" + frame[12:]


def customer(frame: bytes) -> bytes:
    """Out of service VLAN 7."""
    assert frame[12:16] == b"\x88\xa8\0\7"
    return frame[:12] + frame[16:]


def label(frame: bytes) -> bytes:
    """Behind label 20, which is above label 30."""
    stack = (20 << 12 | 63).to_bytes(4, "big") + (30 << 12 | 1 << 8 | 63).to_bytes(4, "big")
    return frame[:12] + b"\x88\x47" + stack + frame[14:]


def packet(frame: bytes) -> bytes:
    """Out of label 40."""
    assert frame[12:16] == b"\x88\x47" + (40 << 12).to_bytes(4, "big")[:2]
    return frame[:12] + b"\x08\0" + frame[18:]


EDGES = {"trunk to access": (access, trunk), "QinQ": (provider, customer), "MPLS": (label, packet)}


def main(west_name: str, east_name: str, edge: str, octet: str) -> None:
    """Forwards until it is killed."""
    eastward, westward = EDGES[edge]
    ports = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) for _ in range(2)]
    for port, name in zip(ports, (west_name, east_name), strict=True):
        port.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
        port.setsockopt(_PACKET, _AUXILIARY_DATA, 1)
        port.bind((name, 3))
    west, east = ports
    number = 0
    print("ready", flush=True)
    while True:
        for port in select.select(ports, [], [])[0]:
            frame, leaves = receive(port)
            if leaves:
                continue
            if port is east:
                west.send(westward(frame))
                continue
            number += 1
            if number % EVERY == 0:
                continue
            changed = bytearray(eastward(frame))
            if number % DAMAGED == 1:
                changed[int(octet)] ^= 0x10
            east.send(changed)


if __name__ == "__main__":
    main(*sys.argv[1:])
