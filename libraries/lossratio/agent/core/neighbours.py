# SPDX-License-Identifier: Apache-2.0
"""Address resolution on the ports: ARP (RFC 826) and neighbour discovery (RFC 4861).

This does not use the kernel's own stack: the ports have no addresses there, because it would answer test traffic.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import struct
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Iterable, Mapping, NamedTuple, Sequence, Union

from .classic_bpf import WHOLE_FRAME, Instruction
from .configuration import Speaker
from .links import Link
from .packets import PacketWire, Wire, open_packets
from .processes import die_with
from .wire import (
    ARP_ETHERTYPE,
    ICMPV6_PROTOCOL,
    IPV4_BYTES,
    IPV6_ETHERTYPE,
    LEAST_LENGTH,
    MAC_BYTES,
    MACS_BYTES,
    TAG_ETHERTYPES,
    behind_tags,
    folded,
    word_sum,
)

Address = Union[IPv4Address, IPv6Address]

_ARP_HEADER = b"\0\1\x08\0\6\4"
_REQUEST, _REPLY = b"\0\1", b"\0\2"
_SOLICITATION = 135
_ADVERTISEMENT = 136
_HOP_LIMIT = 255
_SOURCE_OPTION = b"\1\1"
_TARGET_OPTION = b"\2\1"
_SOLICITED, _OVERRIDE = 0x40, 0x20
_ASK_AGAIN_SECONDS = 0.25
_LISTEN_SECONDS = 30.0
_SECOND_ANSWER_SECONDS = 0.1
# Solicitations and advertisements: types 135 and 136 of ICMPv6.
_NEIGHBOURS_ONLY: Sequence[Instruction] = (
    ("load byte", 0, 0, 20),
    ("jump if equal", 0, 4, ICMPV6_PROTOCOL),
    ("load byte", 0, 0, 54),
    ("jump if equal", 1, 0, _SOLICITATION),
    ("jump if equal", 0, 1, _ADVERTISEMENT),
    ("return", 0, 0, WHOLE_FRAME),
    ("return", 0, 0, 0),
)
# By ethertypes behind the first tag. The first socket sends.
_OF_NEIGHBOURS = ((ARP_ETHERTYPE, ()), (IPV6_ETHERTYPE, _NEIGHBOURS_ONLY), (TAG_ETHERTYPES[0], ()))


@dataclass(frozen=True)
class Question:
    """A next hop whose MAC address is requested."""

    port: str
    """The interface."""
    source: str
    """The port's own address."""
    target: str
    """The next hop's address."""
    tags: str
    """VLAN tags of the question, from the outside in: the four bytes of each, in hexadecimal."""


def open_wire(ports: Iterable[str], links: Mapping[str, Link]) -> PacketWire:
    """Opens interfaces for ARP and neighbour discovery, also behind a second tag.

    Raises:
        AgentError: If the kernel does not grant it.
    """
    sockets: dict[str, list[socket.socket]] = {}
    with ExitStack() as undo:
        for port in dict.fromkeys(ports):
            opened = (open_packets(links[port], int.from_bytes(kind, "big"), own) for kind, own in _OF_NEIGHBOURS)
            sockets[port] = [undo.enter_context(each) for each in opened]
        undo.pop_all()
    return PacketWire(links, sockets)


def resolve(questions: Sequence[Question], wire: Wire, seconds: float) -> list[list[str]]:
    """Asks for next hops, for at most this many seconds.

    The answer has the MAC addresses that were given for each question: none, one, or (if two devices have the address)
    several.
    """
    answers: list[list[str]] = [[] for _ in questions]
    deadline = time.monotonic() + seconds
    next_time = 0.0
    end = float("inf")

    while time.monotonic() < min(deadline, end):
        if time.monotonic() >= next_time:
            next_time = time.monotonic() + _ASK_AGAIN_SECONDS
            for question, macs in zip(questions, answers):
                if not macs:
                    _send(wire, question.port, asking_frame(question, wire.mac(question.port)))

        for port, frame in wire.receive(max(0.0, min(next_time, deadline, end) - time.monotonic())):
            said = _read(frame)
            for question, macs in zip(questions, answers):
                if question.port != port or said is None:
                    continue

                own = ip_address(question.source)
                is_answer = not said.is_question and said.target == ip_address(question.target)
                if is_answer and said.mac.hex(":") not in macs:
                    macs.append(said.mac.hex(":"))
                reply = answer_to(frame, wire.mac(port), [(own, own)])
                if reply is not None:
                    _send(wire, port, reply)

        if end == float("inf") and all(answers):
            # Somebody else may have the same address.
            end = time.monotonic() + _SECOND_ANSWER_SECONDS

    return answers


class Responder:
    """A process that answers for the addresses of ports until it is closed. Make it from the agent's only thread."""

    def __init__(self, speakers: Sequence[Speaker], links: Mapping[str, Link]) -> None:
        self._wire = AnsweringWire(open_wire([each.port for each in speakers], links), speakers)
        self._agent = os.getpid()
        self._process = multiprocessing.get_context("fork").Process(target=self._work, daemon=True)
        self._process.start()
        self._wire.close()

    def close(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.join()

    def _work(self) -> None:
        die_with(self._agent)
        while True:
            # A missing port does not prevent the answers of the others.
            with suppress(OSError):
                self._wire.receive(_LISTEN_SECONDS)


class AnsweringWire:
    """A `Wire` that itself answers for the addresses of its ports, whenever frames are received."""

    def __init__(self, wire: Wire, speakers: Sequence[Speaker]) -> None:
        self._wire = wire
        self._ranges = {}
        for each in speakers:
            self._ranges[each.port] = [(ip_address(first), ip_address(last)) for first, last in each.addresses]
        self.mac = wire.mac
        self.send = wire.send
        self.close = wire.close

    def receive(self, seconds: float) -> list[tuple[str, bytes]]:
        """See `Wire.receive`."""
        arrived = self._wire.receive(seconds)
        for port, frame in arrived:
            reply = answer_to(frame, self.mac(port), self._ranges.get(port, ()))
            if reply is not None:
                _send(self, port, reply)
        return arrived


class _Said(NamedTuple):
    """A question for an address, or an answer."""

    is_question: bool
    target: Address
    source: bytes
    """The address of the host that says it."""
    mac: bytes
    """Its MAC address."""


def _read(frame: bytes) -> _Said | None:
    """What a frame says, which has all its tags; None: something else."""
    place = behind_tags(frame)
    kind = frame[place - 2 : place]
    body = frame[place:]
    if kind == ARP_ETHERTYPE and len(body) >= 28 and body[:6] == _ARP_HEADER and body[6:8] in (_REQUEST, _REPLY):
        is_question = body[6:8] == _REQUEST
        target = body[24:28] if is_question else body[14:18]
        return _Said(is_question, IPv4Address(target), body[14:18], body[8:14])

    if kind == IPV6_ETHERTYPE and len(body) >= 64 and body[6:8] == bytes((ICMPV6_PROTOCOL, _HOP_LIMIT)):
        option = body[64:72]
        has_mac = option[:2] == _TARGET_OPTION and len(option) == 8
        mac = option[2:8] if has_mac else frame[MAC_BYTES:MACS_BYTES]
        if body[40] in (_SOLICITATION, _ADVERTISEMENT):
            return _Said(body[40] == _SOLICITATION, IPv6Address(body[48:64]), body[8:24], mac)
    return None


def answer_to(frame: bytes, mac: bytes, ranges: Sequence[tuple[Address, Address]]) -> bytes | None:
    """The answer to a question for an address in some ranges; None: it is no question, or is for other addresses.

    The frame has all its tags, and `mac` is the port's own MAC address.
    """
    asked = _read(frame)
    asker = frame[MAC_BYTES:MACS_BYTES]
    if asked is None or not asked.is_question or asker == mac or not _is_in(asked.target, ranges):
        return None

    head = mac + frame[MACS_BYTES : behind_tags(frame) - 2]
    if isinstance(asked.target, IPv4Address):
        return _arp(asked.mac + head, _REPLY, mac + asked.target.packed, asked.mac + asked.source)
    if any(asked.source):
        return asker + head + _advertisement(asked.target, asked.source, mac, _OVERRIDE | _SOLICITED)
    everyone = IPv6Address("ff02::1").packed
    return bytes.fromhex("333300000001") + head + _advertisement(asked.target, everyone, mac, _OVERRIDE)


def asking_frame(question: Question, mac: bytes) -> bytes:
    """The frame that asks for a next hop, which learns the port's address from it; `mac` is the port's own address."""
    source = ip_address(question.source).packed
    target = ip_address(question.target).packed
    head = mac + bytes.fromhex(question.tags)
    if len(target) == IPV4_BYTES:
        return _arp(b"\xff" * 6 + head, _REQUEST, mac + source, bytes(6) + target)
    group = IPv6Address("ff02::1:ff00:0").packed[:13] + target[13:]
    message = struct.pack(">BB6x", _SOLICITATION, 0) + target + _SOURCE_OPTION + mac
    return b"\x33\x33" + group[12:] + head + IPV6_ETHERTYPE + _icmpv6(source, group, message)


def reminding_frame(question: Question, mac: bytes, gateway: bytes) -> bytes:
    """An unrequested answer: it keeps a port's address fresh at the next hop, and is not answered.

    `mac` is the port's own MAC address, and `gateway` that of the next hop.
    """
    source = ip_address(question.source)
    target = ip_address(question.target).packed
    head = gateway + mac + bytes.fromhex(question.tags)
    if len(target) == IPV4_BYTES:
        return _arp(head, _REPLY, mac + source.packed, gateway + target)
    return head + _advertisement(source, target, mac, _OVERRIDE | _SOLICITED)


def _arp(head: bytes, operation: bytes, own: bytes, other: bytes) -> bytes:
    """A frame with ARP, after its MAC addresses and tags; each host is a MAC address and an IP address."""
    return (head + ARP_ETHERTYPE + _ARP_HEADER + operation + own + other).ljust(LEAST_LENGTH, b"\0")


def _advertisement(own: Address, destination: bytes, mac: bytes, flags: int) -> bytes:
    """What follows the tags of a neighbour advertisement: a port's address, and its MAC address."""
    message = struct.pack(">BBHB3x", _ADVERTISEMENT, 0, 0, flags) + own.packed + _TARGET_OPTION + mac
    return IPV6_ETHERTYPE + _icmpv6(own.packed, destination, message)


def _icmpv6(source: bytes, destination: bytes, message: bytes) -> bytes:
    pseudo_header = source + destination + struct.pack(">I3xB", len(message), ICMPV6_PROTOCOL)
    checksum = struct.pack(">H", 0xFFFF - folded(word_sum(pseudo_header + message)))
    header = struct.pack(">IHBB", 6 << 28, len(message), ICMPV6_PROTOCOL, _HOP_LIMIT) + source + destination
    return header + message[:2] + checksum + message[4:]


def _is_in(address: Address, ranges: Sequence[tuple[Address, Address]]) -> bool:
    return any(first.version == address.version and int(first) <= int(address) <= int(last) for first, last in ranges)


def _send(wire: Wire, port: str, frame: bytes) -> None:
    # The link of the port is briefly down, or its queue is full; the question is repeated.
    with suppress(OSError):
        wire.send(port, frame)
