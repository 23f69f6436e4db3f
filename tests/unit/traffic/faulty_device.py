"""A device that forwards frames between two interfaces, and does something wrong to some of those going east.

Arguments: west interface, east interface, the fault, bytes that it puts before packets going east and takes from those
going west, bytes of frames that may wait for the device. Each fiftieth frame from the west gets the fault; with the
fault "late" all are held back for a while, with "repeat" they come twice, now and then.
"""

import select
import socket
import struct
import sys
import time
from collections.abc import Iterator

EVERY = 50
LATE_SECONDS = 0.7
_PAYLOAD = 55
ACCESS = ("access", "padded access", "faulty access")
"""The west is a trunk, with frames in VLAN 100, and the east an access port; some of them do something wrong."""
TRUNK_TAG, OTHER_TAG = b"\x81\0\0\x64", b"\x81\0\0\7"
_NUMBER_END = 48
"""Within the sequence number of a frame without VLAN."""
_RECEIVE_BUFFER, _PACKET, _AUXILIARY_DATA, _VLAN_VALID = 33, 263, 8, 0x10


def swap_addresses(frame: bytes) -> bytes:
    """The same frame the other way round, with its checksums as right as before."""
    return frame[:26] + frame[30:34] + frame[26:30] + frame[34:]


def route(frame: bytes) -> bytes:
    """What a router may do: other MAC addresses of its own side, and a lower time to live."""
    ttl, checksum = frame[22] - 1, int.from_bytes(frame[24:26], "big") + 0x0100
    checksum = (checksum & 0xFFFF) + (checksum >> 16)
    return frame[:6] + bytes(6) + frame[12:22] + bytes([ttl, frame[23]]) + checksum.to_bytes(2, "big") + frame[26:]


def swap_words(frame: bytes) -> bytes:
    """The same frame with two words of eight bytes in each other's place, far behind its headers."""
    return frame[:400] + frame[408:416] + frame[400:408] + frame[416:]


CHANGES = {
    "corrupt": lambda frame: frame[:_PAYLOAD] + bytes([frame[_PAYLOAD] ^ 0x10]) + frame[_PAYLOAD + 1 :],
    "zero": lambda frame: frame[:_PAYLOAD] + bytes(len(frame) - _PAYLOAD),
    "renumber": lambda frame: frame[:49] + bytes([frame[49] ^ 1]) + frame[50:],
    "checksum": lambda frame: frame[:24] + bytes([frame[24] ^ 1]) + frame[25:],
    "addresses": swap_addresses,
    "mac": lambda frame: b"\x02\0\0\0\0\x77" + frame[6:],
    "truncate": lambda frame: frame[:-4],
    "last byte": lambda frame: frame[:-1] + bytes([frame[-1] ^ 1]),
    "class": lambda frame: frame[:15] + b"\xb8" + frame[16:],
    "words": swap_words,
    "vlan": lambda frame: frame[:12] + b"\x81\0\0\7" + frame[12:],
    "other vlan": lambda frame: frame[:15] + bytes([frame[15] ^ 1]) + frame[16:],
    "cut": lambda frame: frame[:_NUMBER_END],
    "pad": lambda frame: frame + bytes(6),
    "foreign payload": lambda frame: frame[:42] + b"\xaa" * (len(frame) - 42),
    "route": route,
    "none": lambda frame: frame,
}


ADDED = {
    "add payload": CHANGES["foreign payload"],
    "arp": lambda frame: b"\xff" * 6 + frame[6:12] + b"\x08\x06\0\1\x08\0\6\4\0\1" + bytes(20),
}


def eastward(fault: str, number: int, frame: bytes, held: list[bytes]) -> Iterator[bytes]:
    """What a frame from the west becomes in the east."""
    place = number % EVERY
    if fault == "route":
        yield route(frame)
    elif fault in ACCESS:
        changed = CHANGES["corrupt"](frame) if fault == "faulty access" and place == 0 else frame
        # An Ethernet frame that is too short without its tag is padded.
        yield changed[:12] + changed[16:] + bytes(4 * (fault == "padded access"))
    elif fault == "reorder" and place == 0:
        held.append(frame)
    elif fault == "lose and duplicate" and place == 0:
        return
    elif fault == "lose and duplicate" and place == EVERY // 2:
        yield from (frame, frame)
    elif place == 0 and fault in ADDED:
        yield from (frame, ADDED[fault](frame))
    elif place == 0 and fault in CHANGES:
        yield CHANGES[fault](frame)
    else:
        yield frame
        yield from held
        held.clear()


def receive(port: socket.socket) -> tuple[bytes, bool]:
    """A frame with the tag of its VLAN, which the kernel takes off, and whether it is one that leaves."""
    frame, ancillary, _, (_, _, kind, *_) = port.recvmsg(16384, 256)
    for _, _, data in ancillary:
        status, _, _, _, _, tag, ethertype = struct.unpack_from("=IIIHHHH", data)
        if status & _VLAN_VALID:
            frame = frame[:12] + struct.pack(">HH", ethertype, tag) + frame[12:]
    return frame, kind == socket.PACKET_OUTGOING


def main(west_name: str, east_name: str, fault: str, header: str = "0", buffer: str = "67108864") -> None:
    """Forwards until it is killed."""
    outer = bytes(int(header))
    west, east = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) for _ in range(2))
    for port, name in ((west, west_name), (east, east_name)):
        port.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER, int(buffer))
        port.setsockopt(_PACKET, _AUXILIARY_DATA, 1)
        port.bind((name, 3))
    number, returned, held, late = 0, 0, [], []
    print("ready", flush=True)
    while True:
        readable = select.select([west, east], [], [], 0.01 if late else None)[0]
        while late and late[0][0] <= time.monotonic():
            east.send(late.pop(0)[1])
        for port in readable:
            frame, leaves = receive(port)
            if leaves:
                continue
            if fault in ("late", "repeat") and port is west:
                late.append((time.monotonic() + LATE_SECONDS, frame))
                if fault == "late":
                    continue
            if port is east and fault in ACCESS:
                is_hit = fault == "faulty access" and returned % EVERY == 0
                west.send(frame[:12] + (OTHER_TAG if is_hit else TRUNK_TAG) + frame[12:])
                returned += 1
                continue
            if port is east:
                west.send(frame[:12] + frame[12 + len(outer) :])
                continue
            for inner in eastward(fault, number, frame, held):
                changed = inner[:14] + outer + inner[14:]
                is_hit = number % EVERY == 0
                (west if fault == "cross" and is_hit else east).send(changed)
                if fault == "echo" and is_hit:
                    west.send(changed)
            number += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
