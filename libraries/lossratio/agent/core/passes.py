# SPDX-License-Identifier: Apache-2.0
"""Connections that two ends open and use, in passes of one frame for each; each pass answers the previous one.

RFC 9693: the Initiator's frames open connections, and the Responder keeps the addresses with which they arrive, as a
NAT has changed them. A connection continues only if the next frame comes back to its own addresses.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from .configuration import Configuration, Direction
from .frames_spec import COMPENSATION_BYTES, TAG_BYTES, FramesSpec
from .plan import Control, Exchange, Plan
from .protocol import AgentError, Message, unsupported
from .wire import FCS_BYTES, IPV4_BYTES, IPV4_ETHERTYPE, MACS_BYTES, PORT_BYTES

SYN = 2
"""TCP's flag of the first frame, which counts as a byte."""
FIN = 1
"""TCP's flag of the last frame, which counts as a byte."""
LEAST_SILENT = 10
"""From this many answers on, some must come back; if there are fewer, all may be lost by chance."""
LATE_SECONDS = 2.0
"""Seconds to wait for the first answer that comes too late, before connections count as silent."""
LATE_LOOK = 0.1
"""Seconds between two looks whether one has come."""
OTHER_PORT = 0x80
"""The bit in a port's first byte that distinguishes the port of unasked answers from the port to which connections were
opened."""
_RST = 4
_PSH = 8
_ACK = 16


class Pass(NamedTuple):
    """One frame over each connection, all in the same direction."""

    is_forward: bool
    """Whether the Initiator sends it."""
    flags: int = 0
    """TCP's flags; 0: UDP."""
    has_payload: bool = True
    """Whether the frame has its whole size, or ends with its headers."""


def passes_of(exchange: Exchange, *, is_tcp: bool) -> list[Pass]:
    """All passes, beginning with the pass that opens the connections."""
    back_and_forth = [Pass(True, is_tcp * (_PSH | _ACK)), Pass(False, is_tcp * (_PSH | _ACK))] * exchange.data_frames
    if not is_tcp:
        return [Pass(True), Pass(False), *back_and_forth]
    handshake = [Pass(True, SYN, False), Pass(False, SYN | _ACK, False), Pass(True, _ACK, False)]
    # A Responder that only waits for the end acknowledges it first (RFC 9293, figure 12).
    first = [Pass(False, _ACK, False)] * (not exchange.data_frames)
    fin = [Pass(True, FIN | _ACK, False), *first, Pass(False, FIN | _ACK, False), Pass(True, _ACK, False)]
    endings: dict[str | None, list[Pass]] = {None: [], "fin": fin, "rst": [Pass(True, _RST | _ACK, False)]}
    return [*handshake, *back_and_forth, *endings[exchange.closing]]


def check_openable(configuration: Configuration, exchange: Exchange) -> None:
    """Makes sure that connections are opened in one direction, are new, and come back with the same headers.

    Raises:
        AgentError: If they are not.
    """
    if len(configuration.directions) != 1:
        raise unsupported(
            "Connections can only be opened in one direction, on one link, but this traffic has "
            f"{len(configuration.directions)} directions. Measure one link, with bidirectional=False."
        )

    if configuration.directions[0].arriving_frames is not None:
        raise unsupported(
            "Connections can only be opened through devices that do not change tags, labels, "
            "tunnels or marks. Use a traffic profile whose frames come back with the same "
            "headers."
        )
    if exchange.established:
        raise unsupported(
            "This generator uses connections in one direction at a time, but their throughput needs "
            "both directions at once. Use 'kind: trex'."
        )


def check_answerable(frames: FramesSpec) -> None:
    """Makes sure that frames can open connections, and be answered.

    Raises:
        AgentError: If they cannot.
    """
    if not _can_be_answered(frames):
        raise unsupported(
            "Connections need frames of one size, without a tunnel, and either UDP, or TCP with "
            "'connects'. Use such a traffic profile, for example ethip4-udp-connections, with "
            f"{frames.tag_offset + TAG_BYTES + COMPENSATION_BYTES + FCS_BYTES} bytes or more."
        )


def why_not_in_kernel(configuration: Configuration) -> str | None:
    """Why programs inside the kernel cannot open these connections, in words; None: they can."""
    direction = configuration.directions[0]
    frames = direction.frames
    is_changed = direction.arriving_frames is not None or direction.growth or direction.broadcast_share
    both_here = direction.sends_here and direction.receives_here
    if len(configuration.directions) > 1 or not both_here or direction.transmit == direction.receive:
        return "connections inside the kernel must go from one port of a node to another port of the same node"
    if frames.handshake is not None or not _can_be_answered(frames) or is_changed or frames.order is not None:
        return "connections inside the kernel must use UDP, and frames of one size that come back as they were sent"

    start, ports = frames.addresses[0]
    is_ipv4 = bytes.fromhex(frames.header)[MACS_BYTES:start].startswith(IPV4_ETHERTYPE)
    if not is_ipv4 or ports - start != 2 * IPV4_BYTES or frames.has_macs:
        return "connections inside the kernel must use IPv4, without VLANs and with the MAC addresses of the ports"
    parts = (start, start + IPV4_BYTES, ports, ports + PORT_BYTES, ports + 2 * PORT_BYTES)
    for field in frames.fields:
        if not any(first <= field.offset and field.offset + field.width <= end for first, end in zip(parts, parts[1:])):
            return "connections inside the kernel must differ in nothing but their addresses and ports"
    return None


@dataclass
class ExchangeCounts:
    """What the ends have seen of an exchange over connections so far."""

    alive: int = 0
    """Connections over which all frames have arrived."""
    overlooked: int = 0
    """The maximum number of connections about which nothing is known, because this node dropped their frames."""
    copies: int = 0
    """Further copies of frames."""
    strangers: int = 0
    """Connections that ended because a frame over them came with other addresses."""
    rejections: int = 0
    """Frames with which a device has rejected connections."""


class Ends(Protocol):
    """Both ends of the connections of a direction: how frames leave and arrive over them."""

    @property
    def counts(self) -> ExchangeCounts:
        """What they have seen of the latest exchange."""

    def open(self, plan: Plan, exchange: Exchange, control: Control) -> Message:
        """Begins an exchange with the first pass; returns the counters of its frames."""

    def send_pass(self, number: int, load: float, control: Control) -> int:
        """Sends a later pass over all connections that are alive; returns how many of its frames stayed unsent."""

    def send_again(self, load: float, exchange: Exchange, control: Control) -> int:
        """Repeats the first answers of the previous exchange over all that are alive; returns how many left."""

    def are_late(self, control: Control) -> bool:
        """Waits for late answers of the first pass back; returns whether any arrive."""


def connect(direction: Direction, ends: Ends, plan: Plan, exchange: Exchange, control: Control) -> Message:
    """Opens connections, and answers over each connection that arrives; returns their counters.

    Raises:
        AgentError: If no first answer comes back.
    """
    load = plan.load
    if exchange.answers != "opened":
        return _connect_again(direction.name, ends, load, exchange, control)

    counters = ends.open(plan, exchange, control)
    counts = ends.counts
    unseen = counts.overlooked
    left = [counts.alive]
    unsent = 0
    later = len(passes_of(exchange, is_tcp=direction.frames.handshake is not None)) - 1
    while counts.alive and len(left) <= later:
        count = counts.alive
        unsent += ends.send_pass(len(left), load * exchange.answer_ratio, control)
        counts = ends.counts
        left.append(counts.alive)
        is_silent = len(left) == 2 and not counts.alive and counts.overlooked == unseen
        if is_silent and count >= LEAST_SILENT and not ends.are_late(control):
            raise _silence(direction.transmit, count, ends.counts.strangers)

    # A connection over which no answer could be sent, or that this node overlooked, is neither established nor lost.
    unsent = min(unsent + counts.overlooked, counters["sent_frames"] - counts.alive)
    # Record: what happened to the connections.
    return {
        **counters,
        "sent_frames": counters["sent_frames"] - unsent,
        "unsent_frames": counters["unsent_frames"] + unsent,
        "received_frames": counts.alive,
        "unanswered_frames": max(0, left[0] + unseen - unsent - counts.alive),
        "left_frames": left,
        "duplicated_frames": counts.copies,
        "misdelivered_frames": counts.strangers,
        "rejection_frames": counts.rejections,
    }


def _connect_again(name: str, ends: Ends, load: float, exchange: Exchange, control: Control) -> Message:
    """Repeats the answers over the connections of the previous exchange; see `Exchange.answers`."""
    count = ends.counts.alive
    sent = 0
    began = time.monotonic()
    if count:
        sent = ends.send_again(load, exchange, control)
    elapsed = time.monotonic() - began

    counts = ends.counts
    overlooked = min(counts.overlooked, sent - counts.alive)
    # Record: the counters of repeated answers.
    return {
        "name": name,
        "intended_frames": count,
        "sent_frames": sent - overlooked,
        "unsent_frames": count - sent + overlooked,
        "received_frames": counts.alive,
        "generator_drop_frames": 0,
        "late_frames": 0,
        "load_ratio": 1.0,
        "elapsed_s": elapsed,
        "examination": None,
    }


def _silence(port: str, sent: int, strangers: int) -> AgentError:
    """The error if none of the first answers came back to a port over its own connection.

    `strangers` came with other addresses.
    """
    where = f"All {sent} answers were sent, but none came back to {port} over its own connection"
    if strangers:
        return AgentError(
            "asymmetric",
            f"{where}: {strangers} had addresses that do not belong to the connection. The path back is "
            "different (asymmetric): it avoids the device that translates addresses.",
        )
    return AgentError(
        "asymmetric",
        f"{where}, although {sent} connections arrived. The path back is different (asymmetric), "
        "or the device forgets them: its table is full, or its time-out is too short. Look "
        "at the return routes, and at the device's table.",
    )


def _can_be_answered(frames: FramesSpec) -> bool:
    can_open = frames.handshake is not None or any(checksum.is_udp for checksum in frames.checksums)
    return frames.is_numbered and can_open and len(frames.addresses) == 1 and len(frames.sizes) == 1
