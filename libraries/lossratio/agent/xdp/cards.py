# SPDX-License-Identifier: Apache-2.0
"""What a port's card reports: which frames it has sent, by its own counters, and when frames arrived, by its own clock.

A driver that refuses a frame frees its memory, and may not count the refusal. Frames are sent by the system's clock.
"""

from __future__ import annotations

import os
import re
import struct
import time
from collections import deque
from contextlib import ExitStack
from typing import Any, Callable, Iterable, Mapping, Sequence

from lossratio.bpf import STAMPS, Array, xdp_features

from ..core.ethtool import ask, statistics
from ..core.links import Link
from ..core.pacing import MICROSECOND_NS
from ..core.protocol import AgentError
from .constants import FOREVER

MOST_ERROR_US = 1000.0
"""Microseconds of error above which latencies are no longer reported, because a clock was set."""
_PERIOD_SECONDS = 0.1
_READINGS = 5


class CardClock:
    """A card's clock, which is compared with the system's while traffic flows: see ``struct card_clock``.

    It has the name of the card's interface; `read` returns its time, in nanoseconds.

    Attributes:
        memory: What the receiving program needs to know the system's time of a stamp.
        error_us: The largest error of these times since `begin`, in microseconds: the difference that a comparison
            found, plus the time that reading the card took.
    """

    def __init__(self, name: str, read: Callable[[], int]) -> None:
        self._name, self._read = name, read
        self._past: deque[tuple[int, int]] = deque(maxlen=32)
        self._stretch = 0
        self._due = 0.0
        self.error_us = 0.0
        self.memory = Array(7 * 8, "lossratio_clock")
        # The second comparison shows how fast the card's clock is.
        self.compare()
        time.sleep(_PERIOD_SECONDS)
        self.compare()

    def begin(self) -> None:
        """Compares before new traffic; the error so far does not belong to it."""
        self.compare()
        self.error_us = 0.0

    def renew(self) -> None:
        """Compares every 0.1 s."""
        if time.monotonic() >= self._due:
            self.compare()

    def compare(self) -> None:
        """Compares both clocks."""
        self._due = time.monotonic() + _PERIOD_SECONDS
        took, card, system = min(self._reading() for _ in range(_READINGS))
        error = took / 2
        if self._past:
            last_card, last_system = self._past[-1]
            since = card - last_card
            error += abs(last_system + since + (since * self._stretch >> 32) - system)

        self.error_us = max(self.error_us, error / MICROSECOND_NS)
        if error > MOST_ERROR_US * MICROSECOND_NS:
            self._past.clear()
        self._past.append((card, system))
        first_card, first_system = self._past[0]
        passed = card - first_card
        if passed > 0:
            self._stretch = (system - first_system - passed << 32) // passed
        else:
            self._stretch = 0

        words = self.memory.words
        following = 1 - self.memory.words[0]
        for place, value in enumerate((card, system, self._stretch), 1 + 3 * following):
            words[place] = value & FOREVER
        words[0] = following

    def check(self) -> None:
        """Makes sure that the times since `begin` can be trusted.

        Raises:
            AgentError: If the clocks of card and system drifted apart.
        """
        if self.error_us > MOST_ERROR_US:
            raise AgentError(
                "card_stamps",
                f"The clocks of {self._name} and of the system differed by {self.error_us:.0f} µs more than before: "
                "one clock was set, so latencies are not known. Let ptp4l and phc2sys settle first.",
            )

    def close(self) -> None:
        """Frees the memory."""
        self.memory.close()

    def _reading(self) -> tuple[int, int, int]:
        before = time.monotonic_ns()
        card = self._read()
        took = time.monotonic_ns() - before
        return took, card, before + took // 2


def clock_of(port: Link, opened: ExitStack) -> Callable[[], int]:
    """The clock with which a card stamps arriving frames, for use by programs; `opened` closes it.

    Raises:
        AgentError: If they cannot have it; the message says why.
    """
    features = xdp_features(port.index, "metadata")
    number, stamps_all = stamping(port.name)
    path = f"/dev/ptp{number}"
    if features is None:
        reason = "the kernel does not report whether its driver has them for programs (Linux 6.6 and later do)"
    elif not features & STAMPS:
        reason = "its driver has none for XDP programs"
    elif number is None:
        reason = "it has no clock"
    elif not stamps_all:
        reason = f"not every frame is stamped: enable this with hwstamp_ctl -i {port.name} -r 1"
    else:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            opened.callback(os.close, descriptor)
            # The kernel's number for a clock that is a file.
            clock = ~descriptor << 3 | 3
            time.clock_gettime_ns(clock)
            return lambda: time.clock_gettime_ns(clock)
        except OSError as error:
            reason = f"its clock {path} cannot be read ({error.strerror})"

    raise AgentError(
        "card_stamps",
        f"The card of {port.name} gives programs no receive stamps: {reason}. To measure without them, leave out "
        "'card_stamps'.",
    )


HARDWARE = ("tx_packets_phy", "tx_unicast.nic", "port.tx_unicast", "tx_pkts_nic")
"""Drivers' names for their cards' own counts of sent frames: mlx5, ice, i40e, ixgbe. If there is none of these, the
interface's ``tx_packets`` counts."""
VIRTIO = "xdp_tx - xdp_tx_drops"
"""virtio_net's name for the number of frames from programs in all its transmit queues. Its ``tx_packets`` only counts a
frame when a later one is sent, so the last frames of a trial are counted in the next trial."""
_OF_VIRTIO = re.compile(r"tx(_queue_)?\d+_(xdp_tx|xdp_tx_drops)")
_SIOCGHWTSTAMP = 0x89B1
_STAMPING = 0x41
_STAMPING_BYTES = 44
_EVERY_FRAME = 1
_RINGS, _RING_WORDS = 0x10, 9
_BATCHES = ((3e6, 32), (1.2e6, 16), (0.0, 4))
"""From each of these rates on, in frames per second, this many runs of a sender's program pass before frames are handed
over."""


def transmitted(port: Link) -> tuple[str, int] | None:
    """How many frames a card has sent, and the name of that counter; None for a veth, which counts what it refuses."""
    if port.kind == "veth":
        return None
    counts = statistics(port.name)
    for name in HARDWARE:
        if name in counts:
            return name, counts[name]

    given, dropped = _of_virtio(counts)
    if given is not None:
        return VIRTIO, given - dropped
    return "tx_packets", port.transmitted


def refused_frames(before: Link, now: Link, sent: tuple[str, int] | None, given: int, *, is_over: bool = True) -> int:
    """How many frames a port did not take: a veth counts these, and a card only counts sent frames.

    Args:
        before: The port before it was given frames.
        now: The port now.
        sent: The earlier result of `transmitted`.
        given: How many frames it was given.
        is_over: Whether it must have counted some of these frames by now.

    Raises:
        AgentError: If its driver has counted none.
    """
    if sent is None:
        return now.transmit_drops - before.transmit_drops
    _, count = sent
    found = transmitted(now)
    left = 0 if found is None else found[1] - count
    if given and not left and is_over:
        raise AgentError(
            "counters",
            f"The driver of {now.name} has counted none of {given} frames that it was given, so it is not known how "
            "many left. Use 'kind: afpacket'.",
        )
    return max(0, given - left)


def _of_virtio(counts: Mapping[str, int]) -> tuple[int | None, int]:
    """Frames that programs gave to the transmit queues of virtio_net, and that these refused; None: another driver."""
    given, dropped = None, 0
    for name, count in counts.items():
        found = _OF_VIRTIO.fullmatch(name)
        if found is None:
            continue
        if found[2] == "xdp_tx":
            given = (given or 0) + count
        else:
            dropped += count
    return given, dropped


def handed_over(port: Link) -> int | None:
    """How many frames a veth was given by programs, sent or refused; None for a card, and if it is not reported.

    The kernel adds to this count for each processor without a lock: if two processors share a queue, it misses some
    frames, possibly including refused ones. So the missed frames show how far its count of refused frames can be
    trusted.
    """
    if port.kind != "veth":
        return None
    counts = statistics(port.name)
    own = [count for name, count in counts.items() if name.startswith("tx_queue_") and "_xdp_xmit" in name]
    return sum(own) if own else None


def transmit_ring(name: str) -> int | None:
    """How many frames the transmit ring of an interface holds (``ethtool -g``); None if the driver does not say."""
    try:
        answer = ask(name, struct.pack("=I", _RINGS).ljust(4 * _RING_WORDS, b"\0"))
    except OSError:
        return None
    return struct.unpack(f"={_RING_WORDS}I", answer)[-1] or None


def stamping(name: str) -> tuple[int | None, bool]:
    """The number of the clock (``/dev/ptp0`` is 0) that stamps an interface's frames, and whether all are stamped.

    This is ``ethtool -T``, and ``hwstamp_ctl``. None: it has no such clock.
    """
    try:
        answer = ask(name, struct.pack("=I", _STAMPING).ljust(_STAMPING_BYTES, b"\0"))
        clock = struct.unpack_from("=i", answer, 8)[0]
        chosen = ask(name, bytes(12), _SIOCGHWTSTAMP) if clock >= 0 else bytes(12)
    except OSError:
        return None, False
    return None if clock < 0 else clock, struct.unpack("=3i", chosen)[2] == _EVERY_FRAME


def batch_at(rate: float, rings: Iterable[int]) -> int:
    """How many runs of a program pass before frames are handed over: at most a quarter of the smallest ring."""
    return min([next(batch for least, batch in _BATCHES if rate >= least), *(max(1, ring // 4) for ring in rings)])


def described(ports: Sequence[Link]) -> dict[str, dict[str, Any]]:
    """Which counter says what each port sent, and how large its transmit ring is, if known."""
    sent = {port.name: found[0] for port in ports if (found := transmitted(port)) is not None}
    rings = {port.name: ring for port in ports if (ring := transmit_ring(port.name)) is not None}
    return {"sent_by": sent, "transmit_rings": rings}
