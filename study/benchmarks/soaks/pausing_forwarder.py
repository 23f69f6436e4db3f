"""Forwards frames between two interfaces, as a program that stops for a known time does, and logs what it dropped.

python pausing_forwarder.py IN OUT FRAMES PERIOD PAUSE

Frames wait in a ring of so many frames. Every PERIOD seconds, the program sleeps for PAUSE seconds. It answers each
line of its input with JSON: frames that arrived and frames that the ring had no room for, by the kernel's counters, and
the pauses so far with their lengths in seconds.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import socket
import struct
import sys
import time

ETH_P_ALL = 3
SOL_PACKET, PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION, PACKET_IGNORE_OUTGOING = 263, 5, 6, 10, 23
TPACKET_V2 = 1
SLOT, BLOCK = 2048, 4096
"""Bytes of a frame's slot, and of a block of slots."""
WAKE = 0.02
"""Seconds after which the program looks at the time if no frame arrives."""


class Ring:
    """A packet socket with a ring for arriving frames."""

    def __init__(self, interface: str, frames: int) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        blocks = frames * SLOT // BLOCK
        self.socket.setsockopt(SOL_PACKET, PACKET_RX_RING, struct.pack("IIII", BLOCK, blocks, SLOT, frames))
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.memory = mmap.mmap(self.socket.fileno(), frames * SLOT)
        self.socket.bind((interface, ETH_P_ALL))
        self.frames, self.place = frames, 0
        self.arrived = self.dropped = 0

    def forward(self, leaving: socket.socket) -> None:
        """Sends all frames that have arrived."""
        while True:
            start = self.place * SLOT
            (status,) = struct.unpack_from("I", self.memory, start)
            if not status & 1:
                return
            _, length, mac = struct.unpack_from("IIH", self.memory, start + 4)
            leaving.send(self.memory[start + mac : start + mac + length])
            struct.pack_into("I", self.memory, start, 0)
            self.place = (self.place + 1) % self.frames

    def count(self) -> None:
        """Adds the kernel's counters, which begin anew whenever they are read."""
        arrived, dropped = struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self.arrived += arrived
        self.dropped += dropped


def main() -> None:
    """Forwards until its input ends."""
    entering, leaving = sys.argv[1:3]
    frames, period, pause = int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])
    # Others on the CPU must not make it pause.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    ring, back = Ring(entering, frames), Ring(leaving, frames)
    pauses: list[float] = []
    due = time.monotonic() + period
    print("ready", flush=True)

    while True:
        ready, _, _ = select.select([ring.socket, back.socket, sys.stdin], [], [], WAKE)
        if ring.socket in ready:
            ring.forward(back.socket)
        if back.socket in ready:
            back.forward(ring.socket)
        if sys.stdin in ready:
            if not sys.stdin.readline():
                return
            ring.count()
            print(json.dumps({"arrived": ring.arrived, "dropped": ring.dropped, "pauses": pauses}), flush=True)
        now = time.monotonic()
        if now >= due:
            time.sleep(pause)
            pauses.append(time.monotonic() - now)
            due += period


if __name__ == "__main__":
    main()
