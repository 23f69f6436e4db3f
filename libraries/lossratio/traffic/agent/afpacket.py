"""The embedded generator: plain Linux packet sockets, one sending process per direction."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import wait
from typing import Any, Callable, Iterable, Mapping

from .configuration import Configuration, Direction
from .counting import FrameCounter
from .frames import build_frames
from .guard import check_may_transmit
from .links import Link, read_links
from .priority import COUNTING, raise_priority
from .protocol import AgentError, Message
from .sender import Sender, SenderReport, SenderSetup

_CHECK_SECONDS = 0.1
_TAG_MASK = 0xFFFFFFFF


class AfPacketGenerator:
    """Sends from transmit rings, and counts with filters on packet sockets.

    Args:
        configuration: Ports, directions and settle time.

    Raises:
        AgentError: If the ports cannot, or must not, be used, or the frames cannot be sent.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._settle_time = configuration.settle_time
        self._ports = configuration.ports
        self._before = _usable_links(configuration)
        self._directions: list[_ActiveDirection] = []
        # A random beginning, so that no other agent's frames are taken for this one's.
        self._tag = int.from_bytes(os.urandom(4), "big")
        cpus = sorted(os.sched_getaffinity(0))
        try:
            for number, direction in enumerate(configuration.directions):
                cpu = cpus[number % len(cpus)]
                self._directions.append(_ActiveDirection(direction, self._before, cpu))
        except OSError as error:
            self.close()
            raise _socket_error(error) from error
        raise_priority(COUNTING)

    def facts(self) -> Message:
        """Interfaces with their MAC addresses and kinds, and whether the senders have realtime priority."""
        ports = {name: self._before[name] for name in self._ports}
        return {
            "generator": "afpacket",
            "realtime": all(direction.sender.is_realtime for direction in self._directions),
            "ports": {name: {"mac": link.mac.hex(":"), "kind": link.kind} for name, link in ports.items()},
        }

    def trial(self, load: float, duration: float, check: Callable[[], None]) -> list[Message]:
        """See `Generator.trial`."""
        self._begin(load, duration)
        return self._finish(check)

    def start(self, load: float) -> None:
        """See `Generator.start`."""
        self._begin(load, None)

    def stop(self, check: Callable[[], None]) -> list[Message]:
        """See `Generator.stop`."""
        for direction in self._directions:
            direction.sender.stop()
        return self._finish(check)

    def close(self) -> None:
        """See `Generator.close`."""
        for direction in self._directions:
            direction.close()
        self._directions = []

    def _begin(self, load: float, duration: float | None) -> None:
        self._before = _existing_links(self._ports)
        started: list[_ActiveDirection] = []
        try:
            for direction in self._directions:
                self._tag = (self._tag + 1) & _TAG_MASK
                direction.start(load, duration, self._tag)
                started.append(direction)
        except AgentError:
            for direction in started:
                direction.sender.drain()
            raise

    def _finish(self, check: Callable[[], None]) -> list[Message]:
        pending: dict[Any, _ActiveDirection] = {each.sender.connection: each for each in self._directions}
        reports: dict[str, SenderReport] = {}
        try:
            while pending:
                for connection in wait(list(pending), _CHECK_SECONDS):
                    direction = pending.pop(connection)
                    reports[direction.name] = direction.sender.report()
                self._check_links()
                check()
            _sleep(self._settle_time, check)
            return self._counters(reports)
        except BaseException:
            for direction in pending.values():
                direction.sender.drain()
            raise

    def _counters(self, reports: Mapping[str, SenderReport]) -> list[Message]:
        received = {direction.name: direction.count() for direction in self._directions}
        after = self._check_links()
        return [
            direction.counters(reports[direction.name], received[direction.name], self._before, after)
            for direction in self._directions
        ]

    def _check_links(self) -> dict[str, Link]:
        links = _existing_links(self._ports)
        for name in self._ports:
            if links[name].carrier_changes != self._before[name].carrier_changes or not links[name].is_up:
                raise AgentError(
                    "interface_down",
                    f"Interface {name} went down (or its link did) while traffic was on it. "
                    "The counters mean nothing; look at this interface and at the other end of its link.",
                )
        return links


class _ActiveDirection:
    """A direction with its sender, and with counters for this trial's frames and for those of the trial before."""

    def __init__(self, direction: Direction, links: Mapping[str, Link], cpu: int) -> None:
        frames = direction.frames
        source, sink = links[direction.transmit], links[direction.receive]
        destination = sink.mac if direction.destination_mac is None else _mac(direction.destination_mac)
        cycle = build_frames(frames, source.mac, destination)
        self.name = direction.name
        self._direction = direction
        self._counted: int | None = 0
        self._counted_before = 0
        self._counter, self._counter_before = (
            FrameCounter(sink.name, sink.index, frames.tag_offset),
            FrameCounter(sink.name, sink.index, frames.tag_offset),
        )
        self.sender = Sender(
            SenderSetup(source.name, cycle, frames.tag_offset, drops_beyond=source.kind == "veth", cpu=cpu)
        )

    def start(self, load: float, duration: float | None, tag: int) -> None:
        self._counter, self._counter_before = self._counter_before, self._counter
        # What a trial that failed had received was never asked for.
        self._counted_before = self._counter_before.read() if self._counted is None else self._counted
        self._counted = None
        self._counter.watch(tag)
        self.sender.start(load * self._direction.load_share, duration, tag)

    def count(self) -> int:
        self._counted = self._counter.read()
        return self._counted

    def counters(
        self, report: SenderReport, received: int, before: Mapping[str, Link], after: Mapping[str, Link]
    ) -> Message:
        source, sink = self._direction.transmit, self._direction.receive
        sent = report.transmission
        if report.dropped_beyond > after[source].transmit_drops - before[source].transmit_drops:
            raise AgentError(
                "counters",
                f"{source} refused {report.dropped_beyond} frames and does not say that they were dropped, "
                "so that it is not known how many were sent. Another program may use this interface.",
            )
        return {
            "name": self.name,
            "intended": sent.intended,
            "sent": sent.sent,
            "received": received,
            "unsent": max(0, sent.intended - sent.sent),
            "generator_drops": after[sink].receive_drops - before[sink].receive_drops,
            "late_of_trial_before": self._counter_before.read() - self._counted_before,
            "elapsed": sent.elapsed,
            "worst_lateness": sent.worst_lateness,
        }

    def close(self) -> None:
        self.sender.close()
        self._counter.close()
        self._counter_before.close()


def _usable_links(configuration: Configuration) -> dict[str, Link]:
    links = _existing_links(configuration.ports)
    check_may_transmit(configuration.ports, links)
    for name in configuration.ports:
        if not links[name].is_up:
            raise AgentError(
                "interface_down",
                f"Interface {name} is down, or its link is. Set both ends of the link up (ip link set {name} up).",
            )
    for direction in configuration.directions:
        for port in (direction.transmit, direction.receive):
            if direction.frames.mtu > links[port].mtu:
                raise AgentError(
                    "unsupported",
                    f"Frames of {direction.frames.max_size} bytes do not go through {port}, whose MTU is "
                    f"{links[port].mtu}. Raise it to {direction.frames.mtu}, or use smaller frames.",
                )
    return links


def _existing_links(names: Iterable[str]) -> dict[str, Link]:
    links = read_links()
    for name in names:
        if name not in links:
            raise AgentError(
                "no_such_interface",
                f"There is no network interface {name} on this node; there are {', '.join(sorted(links))}.",
            )
    return links


def _socket_error(error: OSError) -> AgentError:
    if isinstance(error, PermissionError):
        return AgentError("permission", "Packet sockets need root (or CAP_NET_RAW); log in as root, or use sudo.")
    return AgentError("unsupported", f"The kernel of this node does not give the packet sockets needed: {error}.")


def _sleep(seconds: float, check: Callable[[], None]) -> None:
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(left, _CHECK_SECONDS))
        check()


def _mac(text: str) -> bytes:
    try:
        mac = bytes.fromhex(text.replace(":", ""))
    except ValueError:
        mac = b""
    if len(mac) != 6:
        raise AgentError("bad_request", f"{text!r} is not a MAC address.")
    return mac
