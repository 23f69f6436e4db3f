# SPDX-License-Identifier: Apache-2.0
"""Single frames on ports: packet sockets, their filters, frames with the tags that the kernel removes, and probes."""

from __future__ import annotations

import ctypes
import errno
import select
import socket
import struct
import time
from contextlib import ExitStack
from typing import Mapping, NamedTuple, Protocol, Sequence

from .classic_bpf import CODES, Instruction
from .headers import VLAN
from .links import Link
from .protocol import AgentError, Message
from .wire import MACS_BYTES

_SO_ATTACH_FILTER = 26
SOL_PACKET = 263
"""Level of a packet socket's options."""
ETH_P_ALL = 3
"""All protocols."""
PACKET_STATISTICS = 6
"""The option of a packet socket that returns how many frames passed its filter, and how many found no room."""
_PACKET_ADD_MEMBERSHIP = 1
_PACKET_AUXDATA = 8
_PACKET_VERSION = 10
_PACKET_FANOUT, _PACKET_FANOUT_DATA = 18, 22
_FANOUT_BY_PROGRAM, _FANOUT_NEW_GROUP = 6, 0x2000
_FANOUT_TYPE_BITS, _FANOUT_GROUP = 16, 0xFFFF
_TPACKET_V2 = 1
_PACKET_MR_PROMISC = 1
STATUS_VLAN_VALID = 0x10
"""The bit of a captured frame's status that says that the kernel has removed its VLAN tag."""
_STATUS_TPID_VALID = 0x40
_AUXDATA = "=IIIHHHH"
_SO_TIMESTAMPNS = 35
_ANCILLARY_BYTES = 256
_LARGEST = 1 << 16

_HEAD_BYTES = 128
_GAP_SECONDS = 0.001
_MOST_ARRIVALS = 20_000
_MOST_KINDS = 1_000


def attach_filter(packets: socket.socket, program: Sequence[Instruction]) -> None:
    """Makes a packet socket take only the frames that a classic BPF program takes."""
    _give_program(packets, socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


def share_frames(sockets: Sequence[socket.socket], program: Sequence[Instruction]) -> None:
    """Makes packet sockets of one interface share its frames: a frame costs no more time than with one socket.

    The value that a classic BPF program returns for a frame, modulo the number of sockets, selects the socket, whose
    filter may still skip the frame. The program sees frames without their Ethernet header. Linux 4.12 or later.
    """
    first, *others = sockets
    how = _FANOUT_BY_PROGRAM << _FANOUT_TYPE_BITS
    first.setsockopt(SOL_PACKET, _PACKET_FANOUT, how | _FANOUT_NEW_GROUP << _FANOUT_TYPE_BITS)
    _give_program(first, SOL_PACKET, _PACKET_FANOUT_DATA, program)
    group = first.getsockopt(SOL_PACKET, _PACKET_FANOUT) & _FANOUT_GROUP
    for packets in others:
        packets.setsockopt(SOL_PACKET, _PACKET_FANOUT, how | group)


def _give_program(packets: socket.socket, level: int, option: int, program: Sequence[Instruction]) -> None:
    size = len(program)
    code = b""
    for index, (what, *jumps, value) in enumerate(program):
        # A jump below 0 counts from the end of the program.
        forward = (jump if jump >= 0 else size + jump - index - 1 for jump in jumps)
        code += struct.pack("=HBBI", CODES[what], *forward, value)
    buffer = ctypes.create_string_buffer(code, len(code))
    packets.setsockopt(level, option, struct.pack("@HP", size, ctypes.addressof(buffer)))


def ring_socket() -> socket.socket:
    """A packet socket that can have a ring of frames in memory."""
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    packets.setsockopt(SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
    return packets


def open_packets(link: Link, protocol: int, program: Sequence[Instruction] = ()) -> socket.socket:
    """A packet socket for all frames of an ethertype on an interface, to any address; it never waits.

    The ethertype is the one after the outermost tag. Without a filter program, every frame is taken.

    Raises:
        AgentError: If the kernel does not grant it.
    """
    try:
        with ExitStack() as undo:
            packets = undo.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
            if program:
                attach_filter(packets, program)
            packets.setsockopt(SOL_PACKET, _PACKET_AUXDATA, 1)
            take_all(packets, link, protocol)
            packets.setblocking(False)
            undo.pop_all()
    except OSError as error:
        text = f"The kernel of this node refused the packet sockets for single frames: {error}."
        raise AgentError("permission", text) from error
    return packets


def take_all(packets: socket.socket, link: Link, protocol: int = ETH_P_ALL) -> None:
    """Makes a packet socket take frames of a protocol on an interface, to any address."""
    packets.bind((link.name, protocol))
    membership = struct.pack("=IHH8x", link.index, _PACKET_MR_PROMISC, 0)
    packets.setsockopt(SOL_PACKET, _PACKET_ADD_MEMBERSHIP, membership)


class StampedFrame(NamedTuple):
    """A frame that arrived, with all its tags and without FCS; empty: it was one of the port's own."""

    arrived_ns: int
    """When the kernel got it, in nanoseconds since 1970; 0: not known."""
    frame: bytes
    """Its bytes."""


def have_stamps(packets: socket.socket) -> None:
    """Makes the kernel report on a socket when each frame arrived."""
    packets.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)


def receive_stamped(packets: socket.socket) -> StampedFrame | None:
    """Receives the next frame that arrived from outside; None: there is none."""
    while True:
        arrived = _receive(packets)
        if arrived is None or arrived.frame:
            return arrived


def overlooked(packets: socket.socket) -> int:
    """How many frames a packet socket had no room for, since it was opened or since the last call."""
    _, dropped = struct.unpack("=II", packets.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    return int(dropped)


def _receive(packets: socket.socket) -> StampedFrame | None:
    try:
        frame, ancillary, _, address = packets.recvmsg(_LARGEST, _ANCILLARY_BYTES)
    except OSError as error:
        # A port reports once that its link went down, while other ports may still have frames.
        if error.errno in (errno.EAGAIN, errno.ENETDOWN):
            return None
        raise

    if address[2] == socket.PACKET_OUTGOING:
        return StampedFrame(0, b"")

    stamp = 0
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = struct.unpack_from("=qq", data)
            stamp = seconds * 1_000_000_000 + nanoseconds
        elif (level, kind) == (SOL_PACKET, _PACKET_AUXDATA):
            status, *_, tag, ethertype = struct.unpack_from(_AUXDATA, data)
            if status & STATUS_VLAN_VALID:
                ethertype = ethertype if status & _STATUS_TPID_VALID else VLAN.number
                frame = frame[:MACS_BYTES] + struct.pack(">HH", ethertype, tag) + frame[MACS_BYTES:]

    return StampedFrame(stamp, frame)


class Wire(Protocol):
    """Single frames on ports: questions for next hops, and the frames of a check of the cabling."""

    def mac(self, port: str) -> bytes:
        """A port's own MAC address."""

    def send(self, port: str, frame: bytes) -> None:
        """Sends a frame, without FCS; raises OSError if it is not taken."""

    def receive(self, seconds: float) -> list[tuple[str, bytes]]:
        """Waits at most this long for frames; returns those that arrived: ports, and frames with all their tags."""

    def close(self) -> None:
        """Leaves the ports as they were."""


class PacketWire:
    """Linux interfaces as a `Wire`. The first packet socket of each port sends; all are closed at the end."""

    def __init__(self, links: Mapping[str, Link], sockets: Mapping[str, Sequence[socket.socket]]) -> None:
        self._links = links
        self._senders = {port: opened[0] for port, opened in sockets.items()}
        self._ports = {packets: port for port, opened in sockets.items() for packets in opened}

    def mac(self, port: str) -> bytes:
        """See `Wire.mac`."""
        return self._links[port].mac

    def send(self, port: str, frame: bytes) -> None:
        """See `Wire.send`."""
        self._senders[port].send(frame)

    def receive(self, seconds: float) -> list[tuple[str, bytes]]:
        """See `Wire.receive`."""
        readable, _, _ = select.select(list(self._ports), [], [], max(0.0, seconds))
        arrived = [(self._ports[packets], _receive(packets)) for packets in readable]
        return [(port, one.frame) for port, one in arrived if one is not None and one.frame]

    def close(self) -> None:
        """See `Wire.close`."""
        for packets in self._ports:
            packets.close()


def probe(wire: Wire, sends: Sequence[tuple[str, str]], seconds: float) -> Message:
    """Sends frames, in hexadecimal without FCS, and notes what arrives on all ports until some seconds later.

    The answer has ``arrivals``: lists of a port, the first bytes of a frame with all its tags, its length, and how
    often it came; ``unsent``: lists of a port, the length of a frame and the reason why it was not sent; ``is_storm``:
    whether so many frames came that the rest was not examined.
    """
    arrivals: dict[tuple[str, str, int], int] = {}
    unsent = []
    count = 0

    def collect(seconds: float) -> int:
        received = 0
        end = time.monotonic() + seconds
        while count + received < _MOST_ARRIVALS:
            for port, frame in wire.receive(max(0.0, end - time.monotonic())):
                received += 1
                kind = (port, frame[:_HEAD_BYTES].hex(), len(frame))
                if kind in arrivals or len(arrivals) < _MOST_KINDS:
                    arrivals[kind] = arrivals.get(kind, 0) + 1
            if time.monotonic() >= end:
                break
        return received

    for port, frame in sends:
        data = bytes.fromhex(frame)
        try:
            wire.send(port, data)
        except OSError as error:
            unsent.append([port, len(data), error.strerror or str(error)])
        count += collect(_GAP_SECONDS)
    count += collect(seconds)
    return {
        "arrivals": [[*kind, number] for kind, number in arrivals.items()],
        "unsent": unsent,
        "is_storm": count >= _MOST_ARRIVALS,
    }
