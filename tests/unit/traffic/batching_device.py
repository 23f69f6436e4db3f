"""A device that forwards frames from one interface to another, as software does: so many at a time.

Arguments: the two interfaces, the frames of a batch, the share of the batches that it loses, the seconds between
pauses, their length, and the frames of its ring. What a pause loses goes by the time at which the kernel received a
frame. After a time without frames a new batch begins, as where a ring has been empty.
"""

import contextlib
import os
import random
import socket
import struct
import sys

_IP4_OF_TESTS = b"\x08\x00", b"\xc6\x12"
_RECEIVE_BUFFER, _TIMESTAMPS = 33, 35
_EMPTY = 0.1
"""Seconds without frames after which a batch ends: much longer than a stall of the host."""


def main(west_name: str, east_name: str, batch: str, share: str, every: str, length: str, ring: str) -> None:
    """Forwards until it is killed, before other programs if it may."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    west, east = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) for _ in range(2))
    west.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER, 1 << 26)
    west.setsockopt(socket.SOL_SOCKET, _TIMESTAMPS, 1)
    west.bind((west_name, 3))
    east.bind((east_name, 0))
    chance = random.Random(1)
    number, is_lost, in_ring, before = 0, False, 0, 0.0
    print("ready", flush=True)
    while True:
        frame, data, _, (_, _, kind, *_) = west.recvmsg(2048, 64)
        if kind == socket.PACKET_OUTGOING or (frame[12:14], frame[26:28]) != _IP4_OF_TESTS:
            continue
        seconds, nanoseconds = struct.unpack("ll", data[0][2])
        now = seconds + nanoseconds * 1e-9
        if now - before > _EMPTY:
            number = 0
        before = now
        if number % int(batch) == 0:
            is_lost = chance.random() < float(share)
        number += 1
        in_pause = now % float(every) < float(length)
        in_ring = in_ring + 1 if in_pause else 0
        if not is_lost and in_ring <= int(ring):
            east.send(frame)


if __name__ == "__main__":
    main(*sys.argv[1:])
