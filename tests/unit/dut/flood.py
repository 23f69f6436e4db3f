"""Sends frames on one interface and counts those that arrive on another; see `DutLab.flood`."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import struct
import sys
import time

ETH_P_ALL = 3
SO_RCVBUFFORCE = 33
UNDER_WAY = 1000
RECEIVE_BUFFER = 1 << 24
SOL_PACKET, PACKET_AUXDATA, VLAN_VALID = 263, 8, 1 << 4
AUXDATA = "=3I4H"
PAYLOAD = b"lossratio flood"
ADDRESSES = {4: ("198.18.0.1", "198.19.0.1"), 6: ("2001:2::1", "2001:2:0:8000::1")}


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def frame(asked: dict, number: int = 0) -> bytes:
    """A frame to the destination of a number, from 0."""
    version = asked["version"]
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    ends = [socket.inet_pton(family, address) for address in ADDRESSES[version]]
    source, target = ends if asked["west"] else ends[::-1]
    target = (int.from_bytes(target, "big") + number).to_bytes(len(target), "big")
    datagram = struct.pack("!HHHH", 1024, 9, 8 + len(PAYLOAD), 0) + PAYLOAD
    if version == 4:
        fields = struct.pack("!BBHHHBB", 0x45, 0, 20 + len(datagram), 0, 0, 64, socket.IPPROTO_UDP)
        packet = fields + struct.pack("!H", checksum(fields + bytes(2) + source + target)) + source + target
    else:
        packet = struct.pack("!IHBB", 6 << 28, len(datagram), socket.IPPROTO_UDP, 64) + source + target
    macs = b"".join(bytes.fromhex(asked[end].replace(":", "")) for end in ("destination", "source"))
    return macs + struct.pack("!H", 0x0800 if version == 4 else 0x86DD) + packet + datagram


def main() -> None:
    asked = json.loads(sys.argv[1])
    receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    try:
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
    except PermissionError:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    receiver.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    receiver.bind((asked["in"], ETH_P_ALL))
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sender.bind((asked["out"], 0))
    data = [bytes.fromhex(text) for text in asked["raw"]] or [frame(asked, n) for n in range(asked["destinations"])]
    first, received = b"", 0

    def take(timeout: float, most: float = math.inf) -> None:
        nonlocal first, received
        receiver.settimeout(timeout)
        with contextlib.suppress(BlockingIOError, TimeoutError, socket.timeout):
            while received < most:
                arrived, ((*_, auxdata),), _, address = receiver.recvmsg(
                    2048, socket.CMSG_SPACE(struct.calcsize(AUXDATA))
                )
                status, *_, tag, ethertype = struct.unpack(AUXDATA, auxdata)
                if status & VLAN_VALID:
                    # The kernel takes the tag off.
                    arrived = arrived[:12] + struct.pack("!HH", ethertype, tag) + arrived[12:]
                if arrived.endswith(PAYLOAD) and address[2] != socket.PACKET_OUTGOING:
                    first, received = first or arrived, received + 1

    start = under_way = after = time.monotonic()
    sent = 0
    while sent < asked["frames"] or after - start < asked["seconds"]:
        before = time.monotonic()
        sender.send(data[sent % len(data)])
        after = time.monotonic()
        sent += 1
        if sent == UNDER_WAY:
            under_way = after
        if sent % 64 == 0:
            take(0.0)
    # A DUT may be stalled with the machine; that there are no more than were asked for is seen sooner.
    take(1.0, asked["frames"])
    take(0.1)
    seconds = (before - under_way, after - start)
    print(json.dumps({"sent": sent, "received": received, "seconds": seconds, "first": first.hex()}))


main()
