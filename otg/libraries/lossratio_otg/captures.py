"""Captures: the frames that arrive on a port, kept in memory up to a limit, and read as a pcap or pcapng file."""

import select
import socket
import struct
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lossratio.agent import (
    ETH_P_ALL,
    FCS_BYTES,
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
_ALL = slice(None)
_SO_RCVBUFFORCE = 33
_ETHERNET = 1
_BILLION = 1_000_000_000
_SECTION = 0x0A0D0D0A
_INTERFACE = 1
_STATISTICS = 5
_PACKET = 6
_NAME, _RESOLUTION, _FCS_LENGTH, _DROPPED = 2, 9, 13, 5
_NANOSECONDS_DIGITS = 9


@dataclass(frozen=True)
class CaptureSettings:
    """How the frames of a port are captured."""

    format: str = "pcap"
    """The format of its file, ``pcap`` or ``pcapng``."""
    overwrite: bool = True
    """Whether new frames replace the oldest ones if there is no room; otherwise, they are left out."""
    packet_size: int | None = None
    """The maximum number of bytes of a frame that are kept; None: all."""


def read_captures(config: Mapping[str, Any]) -> dict[str, CaptureSettings]:
    """How frames are captured, by the names of the ports with captures.

    Raises:
        FieldError: If there is no such port, or it has two captures.
    """
    ports = [port["name"] for port in config.get("ports", ())]
    captures: dict[str, CaptureSettings] = {}
    for number, model in enumerate(config.get("captures", ())):
        where = f"captures[{number}].port_names"
        for name in model["port_names"]:
            if name not in ports:
                raise FieldError(where, f"there is no port {name[:100]!r}")
            if name in captures:
                raise FieldError(where, f"the port {name[:100]!r} has two captures; leave one of them out")

            captures[name] = CaptureSettings(
                format=model.get("format", "pcap"),
                overwrite=model.get("overwrite", True),
                packet_size=model.get("packet_size") or None,
            )
    return captures


class CapturedFrames:
    """The frames of a capture, with a limit on their bytes."""

    def __init__(self, settings: CaptureSettings) -> None:
        self._settings = settings
        self._frames: deque[StampedFrame] = deque()
        self._bytes = 0
        self.left_out = 0
        """Frames for which there was no room."""

    def add(self, arrived: StampedFrame) -> None:
        """Keeps a frame, if there is room, or makes room for it."""
        cost = len(arrived.frame) + _FRAME_COST
        while self._bytes + cost > MOST_BYTES:
            self.left_out += 1
            if not self._settings.overwrite:
                return
            self._bytes -= len(self._frames.popleft().frame) + _FRAME_COST
        self._frames.append(arrived)
        self._bytes += cost

    def file(self, name: str, overlooked_frames: int, chosen: slice) -> bytes:
        """A file of the chosen frames; the interface has overlooked some frames, and others were left out."""
        frames = list(self._frames)[chosen]
        most = self._settings.packet_size
        if self._settings.format == "pcap":
            return b"".join(_pcap(frames, most))
        return b"".join(_pcapng(frames, most, name, overlooked_frames + self.left_out))


class Capture:
    """Captures what arrives on an interface from now on, until it is stopped.

    Raises:
        NodeError: If the kernel does not allow it.
    """

    def __init__(self, interface: str, settings: CaptureSettings) -> None:
        self._interface = interface
        self._frames = CapturedFrames(settings)
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
            (self._frames.left_out, f"had no room: a capture keeps {MOST_BYTES >> 20} MiB"),
        )
        for count, why in lacking:
            if count:
                yield f"capture on {self._interface}: {count:,} frames are missing because they {why}"

    def file(self, chosen: slice = _ALL) -> bytes:
        """A file of the frames of a stopped capture: all, or a part."""
        return self._frames.file(self._interface, self._overlooked, chosen)

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
            self._frames.add(arrived)


class PortCaptures:
    """The captures on a tester's ports. Stopped ones are kept for clients that ask for their frames.

    The settings and the interfaces are given by the names of ports. `tell` takes what a stopped capture lacks.
    """

    def __init__(
        self,
        settings: Mapping[str, CaptureSettings],
        interfaces: Mapping[str, str],
        tell: Callable[[Iterable[str]], None],
    ) -> None:
        self.settings = settings
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

        for name in wanted.get("port_names") or self.settings:
            settings = self._settings_of(name, "port.capture.port_names")
            self._stop(name)
            if wanted["state"] == "start":
                self._captures[name] = Capture(self._interfaces[name], settings)

    def file(self, request: Mapping[str, Any]) -> bytes:
        """Stops the capture of a port, and makes a file of its frames.

        Raises:
            FieldError: If no capture was started there.
        """
        name = request["port_name"]
        packets = request.get("packets", {})
        part = packets.get("slice", {}).get("initial", {})
        self._settings_of(name, "port_name")
        if name not in self._captures:
            raise FieldError("port_name", f"no capture was started on {name[:100]!r}; start one first")

        self._stop(name)
        if packets.get("choice") != "slice":
            return self._captures[name].file()
        # Numbers of 64 bits are text, as in all JSON of Protocol Buffers.
        first = int(part.get("start", 1)) - 1
        return self._captures[name].file(slice(first, first + int(part.get("count", 100))))

    def end(self) -> None:
        """Stops all of them."""
        for capture in self._captures.values():
            capture.stop()

    def _settings_of(self, name: str, where: str) -> CaptureSettings:
        if name not in self.settings:
            there = ", ".join(self.settings) or "none"
            raise FieldError(
                where, f"{name[:100]!r} has no capture (port_names of captures); ports with captures: {there}"
            )
        return self.settings[name]

    def _stop(self, name: str) -> None:
        capture = self._captures.get(name)
        if capture is not None and capture.is_running:
            capture.stop()
            self._tell(capture.warnings())


def _pcap(frames: Iterable[StampedFrame], most: int | None) -> Iterator[bytes]:
    """A pcap file, in nanoseconds, of frames without FCS."""
    yield struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, most or 1 << 16, _ETHERNET)
    for each in frames:
        kept = each.frame[:most]
        seconds, nanoseconds = divmod(each.arrived_ns, _BILLION)
        yield struct.pack("=IIII", seconds, nanoseconds, len(kept), len(each.frame)) + kept


def _pcapng(frames: Sequence[StampedFrame], most: int | None, name: str, dropped: int) -> Iterator[bytes]:
    """A pcapng file, in nanoseconds, of frames with the FCS that belongs to them, which cards remove."""
    yield _block(_SECTION, struct.pack("=IHHq", 0x1A2B3C4D, 1, 0, -1))
    options = _option(_NAME, name.encode()) + _option(_RESOLUTION, bytes([_NANOSECONDS_DIGITS]))
    options += _option(_FCS_LENGTH, bytes([FCS_BYTES])) + bytes(4)
    yield _block(_INTERFACE, struct.pack("=HHI", _ETHERNET, 0, most or 1 << 16) + options)

    for each in frames:
        whole = each.frame + zlib.crc32(each.frame).to_bytes(FCS_BYTES, "little")
        kept = whole[:most]
        high, low = divmod(each.arrived_ns, 1 << 32)
        header = struct.pack("=IIIII", 0, high, low, len(kept), len(whole))
        yield _block(_PACKET, header + _padded(kept))

    last = frames[-1].arrived_ns if frames else 0
    high, low = divmod(last, 1 << 32)
    lacking = _option(_DROPPED, struct.pack("=Q", dropped)) + bytes(4)
    yield _block(_STATISTICS, struct.pack("=III", 0, high, low) + lacking)


def _block(kind: int, contents: bytes) -> bytes:
    size = struct.pack("=I", 12 + len(contents))
    return struct.pack("=I", kind) + size + contents + size


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("=HH", code, len(value)) + _padded(value)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
