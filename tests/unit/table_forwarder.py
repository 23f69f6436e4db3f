"""A black box as a program: it forwards between two interfaces as a table of `flow_tables` says, until its input ends.

Each line of its input resets the table, and is answered. Run it on the device: ``table_forwarder.py TABLE WEST EAST``.
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import time

_ALL = 0x0003
_OUTGOING = 4
_BUFFER_FORCE = 33
_PORTS = 34
_FIRST_PORT = 20_000


def folded(total):
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def with_port(frame, place, port):
    """A UDP frame with another port, and the checksum that it has then."""
    old = int.from_bytes(frame[place : place + 2], "big")
    checksum = int.from_bytes(frame[40:42], "big")
    checksum = ~folded((~checksum & 0xFFFF) + (~old & 0xFFFF) + port) & 0xFFFF
    changed = bytearray(frame)
    changed[place : place + 2] = port.to_bytes(2, "big")
    changed[40:42] = checksum.to_bytes(2, "big")
    return bytes(changed)


class Forwarder:
    """Forwards UDP over IPv4. A table that gives a connection another key is a NAT: its ports are those of the key."""

    def __init__(self, table, west, east):
        self._table = table
        self._sockets = []
        for name in (west, east):
            packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
            packets.setsockopt(socket.SOL_SOCKET, _BUFFER_FORCE, 1 << 26)
            packets.bind((name, 0))
            self._sockets.append(packets)

    def serve(self):
        west, east = self._sockets
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            for ready in select.select([*self._sockets, sys.stdin], [], [])[0]:
                if ready is sys.stdin:
                    if not sys.stdin.readline():
                        return
                    self._table.reset()
                    sys.stdout.write("reset\n")
                    sys.stdout.flush()
                    continue
                frame, address = ready.recvfrom(2048)
                if address[2] == _OUTGOING or frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_UDP:
                    continue
                forwarded = self._eastward(frame) if ready is west else self._westward(frame)
                if forwarded is not None:
                    (east if ready is west else west).send(forwarded)

    def _eastward(self, frame):
        key = frame[26:38]
        outside = self._table.west(key, time.monotonic())
        if outside is None:
            return None
        return frame if outside == key else with_port(frame, _PORTS, _FIRST_PORT + outside[1])

    def _westward(self, frame):
        source, destination = frame[26:30], frame[30:34]
        ports = struct.unpack("!HH", frame[34:38])
        back = destination + source + struct.pack("!HH", ports[1], ports[0])
        outside = ("outside", ports[1] - _FIRST_PORT) if hasattr(self._table, "taken") else back
        key = self._table.east(outside, time.monotonic())
        if key is None:
            return None
        return frame if key == back else with_port(frame, _PORTS + 2, int.from_bytes(key[8:10], "big"))


if __name__ == "__main__":
    import flow_tables

    kind, room, *interfaces = sys.argv[1:]
    Forwarder(getattr(flow_tables, kind)(int(room)), *interfaces).serve()
