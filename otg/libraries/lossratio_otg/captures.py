"""Captures: the frames that arrive on a port, kept in memory up to a limit, and read as a pcap file."""

import select
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from lossratio.agent import (
    ETH_P_ALL,
    AgentError,
    StampedFrame,
    have_stamps,
    links_in_use,
    open_packets,
    overlooked,
    receive_stamped,
)
from lossratio.errors import NodeError
from lossratio_otg.packets import FieldError

MOST_BYTES = 1 << 25
"""The maximum number of bytes of frames that a port's capture keeps."""
_FRAME_COST = 128
"""Bytes of memory that a frame takes in addition to its own."""
_LOOK_SECONDS = 0.02
_SO_RCVBUFFORCE = 33
_ETHERNET = 1
_BILLION = 1_000_000_000


def read_captures(config: Mapping[str, Any]) -> dict[str, int | None]:
    """The maximum number of bytes of a frame that are kept, by the names of the ports with captures; None: all.

    Raises:
        FieldError: If there is no such port, or it has two captures.
    """
    ports = [port["name"] for port in config.get("ports", ())]
    captures: dict[str, int | None] = {}
    for number, model in enumerate(config.get("captures", ())):
        where = f"captures[{number}].port_names"
        for name in model["port_names"]:
            if name not in ports:
                raise FieldError(where, f"there is no port {name[:100]!r}")
            if name in captures:
                raise FieldError(where, f"the port {name[:100]!r} has two captures; leave one of them out")

            captures[name] = model.get("packet_size") or None
    return captures


class CapturedFrames:
    """The newest frames of a capture, up to a limit on their bytes."""

    def __init__(self) -> None:
        self._frames: deque[StampedFrame] = deque()
        self._bytes = 0
        self.left_out = 0
        """Frames for which there was no room."""

    def add(self, arrived: StampedFrame) -> None:
        """Keeps a frame, and makes room for it."""
        self._frames.append(arrived)
        self._bytes += len(arrived.frame) + _FRAME_COST
        while self._bytes > MOST_BYTES:
            self._bytes -= len(self._frames.popleft().frame) + _FRAME_COST
            self.left_out += 1

    def file(self, most: int | None = None) -> bytes:
        """A pcap file, in nanoseconds, with at most so many bytes of each frame, without FCS."""
        data = [struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, most or 1 << 16, _ETHERNET)]
        for each in self._frames:
            kept = each.frame[:most]
            seconds, nanoseconds = divmod(each.arrived_ns, _BILLION)
            data.append(struct.pack("=IIII", seconds, nanoseconds, len(kept), len(each.frame)) + kept)
        return b"".join(data)


class Capture:
    """Captures what arrives on an interface from now on, until it is stopped.

    Raises:
        NodeError: If the kernel does not allow it.
    """

    def __init__(self, interface: str) -> None:
        self._interface = interface
        self.frames = CapturedFrames()
        self._overlooked = 0
        self._is_stopping = threading.Event()
        self._end_ns = sys.maxsize

        try:
            self._packets = open_packets(links_in_use([interface])[interface], ETH_P_ALL)
        except AgentError as error:
            raise NodeError(f"{interface} cannot be captured: {error.message}") from error
        have_stamps(self._packets)
        with suppress(PermissionError):
            self._packets.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, MOST_BYTES)
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether it has not been stopped yet."""
        return not self._is_stopping.is_set()

    def stop(self) -> None:
        """Captures what has arrived so far, and nothing more."""
        self._end_ns = min(self._end_ns, time.time_ns())
        self._is_stopping.set()
        self._thread.join()

    def warnings(self) -> Iterator[str]:
        """What a stopped capture lacks."""
        lacking = (
            (self._overlooked, "arrived faster than they could be captured"),
            (self.frames.left_out, f"had no room: a capture keeps {MOST_BYTES >> 20} MiB"),
        )
        for count, why in lacking:
            if count:
                yield f"capture on {self._interface}: {count:,} frames are missing because they {why}"

    def _take(self) -> None:
        with self._packets:
            while self.is_running:
                select.select([self._packets], [], [], _LOOK_SECONDS)
                self._drain()
            self._drain()
            self._overlooked = overlooked(self._packets)

    def _drain(self) -> None:
        while (arrived := receive_stamped(self._packets)) is not None:
            # New frames may come faster than they are read, without end.
            if arrived.arrived_ns > self._end_ns:
                return
            self.frames.add(arrived)


class PortCaptures:
    """The captures on a tester's ports. Stopped ones are kept for clients that ask for their frames.

    The bytes of a frame that are kept (see `read_captures`) and the interfaces are given by the names of ports. `tell`
    takes what a stopped capture lacks.
    """

    def __init__(
        self, kept_bytes: Mapping[str, int | None], interfaces: Mapping[str, str], tell: Callable[[Iterable[str]], None]
    ) -> None:
        self.kept_bytes = kept_bytes
        self._interfaces = interfaces
        self._tell = tell
        self._captures: dict[str, Capture] = {}

    def set_state(self, wanted: Mapping[str, Any]) -> None:
        """Starts or stops captures.

        Raises:
            FieldError: If there is no such capture, or no such state.
        """
        if "state" not in wanted:
            raise FieldError("port.capture.state", "it must be start or stop")

        for name in wanted.get("port_names") or self.kept_bytes:
            self._check_name(name, "port.capture.port_names")
            self._stop(name)
            if wanted["state"] == "start":
                self._captures[name] = Capture(self._interfaces[name])

    def file(self, request: Mapping[str, Any]) -> bytes:
        """Stops the capture of a port, and makes a file of its frames.

        Raises:
            FieldError: If no capture was started there.
        """
        name = request["port_name"]
        self._check_name(name, "port_name")
        if name not in self._captures:
            raise FieldError("port_name", f"no capture was started on {name[:100]!r}; start one first")

        self._stop(name)
        return self._captures[name].frames.file(self.kept_bytes[name])

    def end(self) -> None:
        """Stops all of them."""
        for capture in self._captures.values():
            capture.stop()

    def _check_name(self, name: str, where: str) -> None:
        if name not in self.kept_bytes:
            there = ", ".join(self.kept_bytes) or "none"
            raise FieldError(
                where, f"{name[:100]!r} has no capture (port_names of captures); ports with captures: {there}"
            )

    def _stop(self, name: str) -> None:
        capture = self._captures.get(name)
        if capture is not None and capture.is_running:
            capture.stop()
            self._tell(capture.warnings())
