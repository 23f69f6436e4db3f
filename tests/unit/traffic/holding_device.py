"""A device that forwards frames from one interface to another, and holds those of one of its queues for some trials.

Arguments: the two interfaces, and for how many trials it holds frames. A tenth of the flows is in that queue. What
is held leaves when the first frame of a later trial arrives, so that no clock decides anything.
"""

import socket
import sys

QUEUES = 10
FLOWS = 254
TAG = slice(42, 46)
_IP4_OF_TESTS = b"\x08\x00", b"\xc6\x12"
_RECEIVE_BUFFER = 33


def is_held(flow: int) -> bool:
    """Whether a flow, from 0 on, is in the queue that is held."""
    return flow % QUEUES == 0


def main(west_name: str, east_name: str, trials: str) -> None:
    """Forwards until it is killed."""
    west, east = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) for _ in range(2))
    west.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER, 1 << 24)
    west.bind((west_name, 3))
    east.bind((east_name, 0))
    # The frames that are held, of each trial by its tag, the latest one last.
    held: dict[bytes, list[bytes]] = {}
    print("ready", flush=True)
    while True:
        frame, (_, _, kind, *_) = west.recvfrom(2048)
        if kind == socket.PACKET_OUTGOING or (frame[12:14], frame[26:28]) != _IP4_OF_TESTS:
            continue
        if frame[TAG] not in held:
            held[frame[TAG]] = []
            if len(held) > int(trials):
                for late in held.pop(next(iter(held))):
                    east.send(late)
        if is_held(frame[29] - 1):
            held[frame[TAG]].append(frame)
        else:
            east.send(frame)


if __name__ == "__main__":
    main(*sys.argv[1:])
