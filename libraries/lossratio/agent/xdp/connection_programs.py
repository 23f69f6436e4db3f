# SPDX-License-Identifier: Apache-2.0
"""The programs that open connections and answer over them (`connect.c`, `arrive.c`), and the memory that they share.

A connection has 16 bytes: see ``struct connection``.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from lossratio.bpf import Array

from ..core.headers import IPV4
from ..core.passes import OTHER_PORT
from ..core.protocol import unsupported
from ..core.wire import IPV4_BYTES, PORT_BYTES
from .constants import Frames, constants_of, program, structure
from .frames import FramePlan
from .send_program import ScheduledProgram

MOST_CONNECTIONS = 1 << 25
"""The largest number of connections of an exchange: the kernel checks offsets up to 2^29 bytes in memory."""
MOST_PASSES = 250
"""The largest number of passes of an exchange: each connection has eight bits to count the frames that arrived."""
MOST_EARLIER = 64
"""Earlier exchanges whose late frames are counted."""
_Connection = structure("u32 source, destination, ports, state")
_Exchange = structure(
    "u64 first, latest, is_forward, is_over, count, cursor, other_port, macs, more_macs",
    "u64 arrived, copies, strangers, late, foreign, rejections, other_macs",
    f"u64 first_tags[{MOST_EARLIER}], passes[{MOST_EARLIER}], late_frames[{MOST_EARLIER}]",
)
_Outgoing = structure(("frames", Frames), "u32 interface, is_forward, addresses, checksum, pseudo_checksum, pad")
_Incoming = structure(
    ("frames", Frames), "u32 is_forward, addresses, ethertype, protocol, unreachable, pad", "u32 ends[3], masks[3]"
)


class ExchangeMemory:
    """What all programs know about an exchange over connections: the current pass, and each connection.

    It begins with a tag that no frame has. Frames of earlier exchanges are counted, too.

    Attributes:
        shared: ``struct exchange``.
        room: The number of connections for which there is memory.
    """

    def __init__(self, tag: int, room: int) -> None:
        self._control = Array(ctypes.sizeof(_Exchange), "lossratio_exch")
        self.shared: Any = _Exchange.from_buffer(self._control.memory)
        self.shared.first = self.shared.latest = tag
        self._connections = self._new(room)
        self.room = room
        self._late: dict[int, int] = {}

    def maps(self) -> dict[str, Array]:
        """The memory by its names in the programs."""
        return {"exchange": self._control, "connections": self._connections}

    def constants(self) -> dict[str, bytes]:
        """The constants of all programs."""
        return {"ROOM": bytes(ctypes.c_uint32(self.room))}

    def grow(self, room: int) -> None:
        """Gets memory for more connections; programs that were loaded before keep the old memory until they close.

        Raises:
            AgentError: If no programs are possible for this many.
            BpfError: If the kernel has no memory for them.
        """
        if room > MOST_CONNECTIONS:
            raise unsupported(
                f"The generator xdp opens at most {MOST_CONNECTIONS:,} connections in a trial. Use fewer, or 'kind: "
                "afpacket'."
            )
        connections = self._new(room)
        self._connections.close()
        self._connections = connections
        self.room = room

    def begin(self, tag: int, count: int, passes: int) -> None:
        """Begins an exchange over this many connections, and forgets all others; `passes` are the previous exchange's.

        From now on, late frames of the previous exchange are counted by its tags.
        """
        shared = self.shared
        before = shared.first
        self._late[before] = int(shared.late)
        self._late.pop(int(shared.first_tags[-1]), None)
        # Programs that run meanwhile briefly know no tag.
        shared.count = 0
        for place in reversed(range(1, MOST_EARLIER)):
            for row in (shared.passes, shared.first_tags, shared.late_frames):
                row[place] = row[place - 1]
        shared.passes[0] = 0
        shared.first_tags[0] = before
        shared.late_frames[0] = 0
        shared.passes[0] = passes

        entries = self._connections.memory
        ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(entries)), 0, ctypes.sizeof(_Connection) * count)
        shared.macs = shared.more_macs = shared.other_macs = 0
        shared.late = shared.foreign = shared.rejections = 0
        shared.latest = shared.first = tag
        shared.count = count

    def begin_pass(self, tag: int, *, is_forward: bool, is_unasked: bool = False) -> None:
        """Begins a pass: frames with its tag are in time, and frames of the previous pass are late."""
        shared = self.shared
        shared.arrived = shared.copies = shared.strangers = shared.cursor = 0
        shared.is_forward = is_forward
        # A bit of the source port, which is the first of the two ports.
        shared.other_port = int.from_bytes(bytes((OTHER_PORT * is_unasked, 0, 0, 0)), sys.byteorder)
        shared.latest = tag
        shared.is_over = False

    def end_pass(self) -> None:
        """Ends a pass: its frames are late from now on."""
        self.shared.is_over = True

    def late_of(self, tag: int) -> int:
        """Late frames of an exchange that began with a tag: the latest one, or one of the `MOST_EARLIER` before it."""
        shared = self.shared
        if tag == shared.first:
            return int(shared.late)
        place = list(shared.first_tags).index(tag)
        return self._late[tag] + int(shared.late_frames[place])

    def close(self) -> None:
        """Gives the memory back."""
        self._control.close()
        self._connections.close()

    @staticmethod
    def _new(room: int) -> Array:
        return Array(ctypes.sizeof(_Connection) * room, "lossratio_conns")


class ConnectProgram(ScheduledProgram):
    """The program that sends one end's frames: in each pass, one frame over each connection."""

    def __init__(self, memory: ExchangeMemory, plan: FramePlan, interface: int, *, is_forward: bool) -> None:
        (frames,), contents = constants_of([plan])
        ((start, _),) = plan.spec.addresses
        checksums = {checksum.is_udp: checksum.offset for checksum in plan.spec.checksums}
        outgoing = _Outgoing(frames, interface, is_forward, start, checksums[False], checksums[True])
        constants = {**memory.constants(), "END": bytes(outgoing)}
        super().__init__("connect", 1, plan.templates[0], contents, memory.maps(), **constants)


class ArriveProgram:
    """The program at one end's port.

    Attributes:
        program: The program.
    """

    def __init__(self, memory: ExchangeMemory, plan: FramePlan, *, is_forward: bool) -> None:
        start, end = plan.spec.addresses[0]
        seen = plan
        if not is_forward:
            answers = plan.spec.swapped((start, IPV4_BYTES), (end, PORT_BYTES))
            seen = FramePlan(answers, plan.destination_mac, plan.source_mac)
        (frames,), contents = constants_of([seen])
        ends = bytes.fromhex(seen.spec.header)[start : end + 2 * PORT_BYTES]
        masks = bytearray(b"\xff" * len(ends))
        for field in seen.spec.fields:
            place = field.offset - start
            masks[place : place + field.width] = bytes(field.width)

        # Record: where this end finds what it examines.
        incoming = _Incoming(
            frames,
            is_forward=is_forward,
            addresses=start,
            ethertype=start - IPV4.addresses - 2,
            protocol=start - IPV4.addresses + IPV4.field("protocol").first,
            unreachable=end,
        )
        incoming.ends[:] = memoryview(ends).cast("I")
        incoming.masks[:] = memoryview(bytes(masks)).cast("I")
        self._contents = Array(len(contents), "lossratio_frame")
        self._contents.memory[: len(contents)] = contents
        maps = {"contents": self._contents, **memory.maps()}
        constants = {**memory.constants(), "END": bytes(incoming)}
        self.program = program("arrive").load("lossratio_arrive", maps, constants)

    def close(self) -> None:
        """Frees the program and the memory."""
        self.program.close()
        self._contents.close()
