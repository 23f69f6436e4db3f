"""The embedded generator: plain Linux packet sockets, one sending process per direction."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing.connection import wait
from typing import Any, Callable, Mapping, Sequence

from ..core.configuration import Configuration
from ..core.early_verdict import LOOK_SECONDS, Lookout, SoFar, Watch
from ..core.links import Link
from ..core.pacing import CATCH_UP
from ..core.ports import links_after, same_links, usable_links
from ..core.processors import COUNTING, DeviceProcessors, raise_priority
from ..core.protocol import AgentError, Message
from .direction import ActiveDirection
from .examination import MOST_EXAMINED
from .latency import MOST_FRAMES, NUMBERS, Probe
from .receive import DIRECTIONS
from .sender import SENDING, Sender, SenderReport, SendOrder

_CHECK_SECONDS = 0.1
_NOTE_SECONDS = 0.05
_TAG_MASK = 0xFFFFFFFF
_FAR = 0x80000000


class AfPacketGenerator:
    """Sends from transmit rings, and counts with filters on packet sockets.

    Args:
        configuration: Ports, directions and settle time.
        catch_up: Seconds of traffic that are made up for after a stall.
        device_cpus: Processors on which devices under test of this machine receive.

    Raises:
        AgentError: If the ports cannot, or must not, be used, or the frames cannot be sent.
    """

    def __init__(
        self, configuration: Configuration, catch_up: float = CATCH_UP, device_cpus: Sequence[int] = ()
    ) -> None:
        self._settle_time = configuration.settle_time
        self._ports = configuration.ports
        self._catch_up = catch_up
        self._links_may_change = False
        self._before = usable_links(configuration)
        self._directions: list[ActiveDirection] = []
        # A random beginning, so that no other agent's frames are taken for this one's.
        self._tag = int.from_bytes(os.urandom(4), "big") & ~DIRECTIONS
        self._examines = configuration.examines
        self._is_numbered = all(direction.frames.is_numbered for direction in configuration.directions)
        self._probe_tag = int.from_bytes(os.urandom(4), "big") & ~NUMBERS
        cpus = DeviceProcessors(device_cpus).free()
        try:
            for number, direction in enumerate(configuration.directions):
                # The first of its own processors is the one to begin on.
                own = (*cpus[number % len(cpus) :], *cpus[: number % len(cpus)])
                self._directions.append(
                    ActiveDirection(direction, self._before, own, catch_up, examines=configuration.examines)
                )
        except OSError as error:
            self.close()
            raise _socket_error(error) from error
        raise_priority(COUNTING)

    def facts(self) -> Message:
        """Interfaces with their MAC addresses and kinds, and how senders are scheduled and deal with stalls."""
        ports = {name: self._before[name] for name in self._ports}
        return {
            "generator": "afpacket",
            "realtime": all(direction.sender.is_realtime for direction in self._directions),
            "catch_up": self._catch_up,
            "integrity": self._integrity(),
            "ports": {name: {"mac": link.mac.hex(":"), "kind": link.kind} for name, link in ports.items()},
        }

    def trial(self, load: float, duration: float, ramp: float, check: Callable[[], None]) -> list[Message]:
        """See `Generator.trial`."""
        self._begin(SendOrder(load, duration, ramp=ramp))
        return self._counters(self._finish(self._senders(), check))

    def schedule(
        self, steps: Sequence[tuple[float, float]], is_burst: bool, check: Callable[[], None]
    ) -> list[Message]:
        """See `TimedGenerator.schedule`."""
        load, duration = max(load for load, _ in steps), sum(duration for _, duration in steps)
        self._begin(SendOrder(load, duration, steps=tuple(steps), is_logged=True, is_complete=is_burst))
        return self._counters(self._finish(self._senders(), check))

    def watched_trial(
        self, load: float, duration: float, ramp: float, watch: Watch, check: Callable[[], None]
    ) -> Message:
        """See `WatchingGenerator.watched_trial`."""
        self._begin(SendOrder(load, duration, ramp=ramp, is_watched=True))
        lookout = Lookout({direction.name: direction.load(load) for direction in self._directions}, duration, watch)
        reports = self._finish(self._senders(), check, lookout)
        counters = self._counters(reports)
        # All that was due may have been sent before the senders heard of it.
        ended = watch.ends and all(report.transmission.elapsed < duration for report in reports.values())
        if ended:
            whole = lookout.whole
            counters = [{**counted, "intended": whole[counted["name"]]} for counted in counters]
        return {
            "directions": counters,
            "certain_after": max(report.transmission.elapsed for report in reports.values())
            if ended
            else lookout.certain_after,
            "ended": ended,
            "most_missing": lookout.most_missing,
        }

    def latency(self, load: float, duration: float, check: Callable[[], None]) -> Message:
        """See `Generator.latency`."""
        with ExitStack() as opened:
            try:
                probes = [
                    opened.enter_context(self._probe(direction, load, duration)) for direction in self._directions
                ]
            except OSError as error:
                raise _socket_error(error) from error
            self._begin(SendOrder(load, duration), probes)
            senders = [*self._senders(), *(probe.sender for probe in probes)]
            reports = self._finish(senders, check)
            counters = self._counters(reports)
            latency = [probe.latency() for probe in probes]
        return {
            "directions": [
                _with_probe(counted, reports[probe.sender], answer)
                for counted, probe, answer in zip(counters, probes, latency)
            ],
            "latency": latency,
        }

    def start(self, load: float) -> None:
        """See `Generator.start`."""
        self._begin(SendOrder(load, None))

    def start_watched(self, load: float) -> None:
        """See `TimedGenerator.start_watched`."""
        self._begin(SendOrder(load, None, is_logged=True))
        self._links_may_change = True

    def renew(self) -> None:
        """See `Generator.renew`."""
        for direction in self._directions:
            direction.renew()

    def stop(self, late_wait: float, check: Callable[[], None]) -> list[Message]:
        """See `Generator.stop`."""
        for sender in self._senders():
            sender.stop()
        counters = self._counters(self._finish(self._senders(), check))
        late = self.late(late_wait, check)
        return [{**direction, "late": late[direction["name"]]} for direction in counters]

    def late(self, wait: float, check: Callable[[], None]) -> dict[str, int]:
        """See `Generator.late`."""
        _sleep(wait, check)
        return {direction.name: direction.late() for direction in self._directions}

    def close(self) -> None:
        """See `Generator.close`."""
        for direction in self._directions:
            direction.close()
        self._directions = []

    def _begin(self, wanted: SendOrder, probes: Sequence[Probe] = ()) -> None:
        """Starts all directions.

        Args:
            wanted: The order to a direction that has the whole load, with any tags.
            probes: Senders of latency frames, a part of the load; none, or one for each direction.
        """
        self._links_may_change = False
        self._before = same_links(self._ports, self._before)
        rates = {probe.name: probe.rate for probe in probes}
        started: list[Sender] = []
        ramp_tag, tag = self._next_tag(), self._next_tag()
        orders: dict[Sender, SendOrder] = {}
        for number, direction in enumerate(self._directions):
            orders[direction.sender] = replace(
                wanted,
                load=direction.load(wanted.load) - rates.get(direction.name, 0.0),
                steps=tuple((direction.load(load), duration) for load, duration in wanted.steps),
                tag=tag + number,
                ramp_tag=ramp_tag + number,
            )
            if direction.broadcaster is not None:
                orders[direction.broadcaster] = replace(
                    wanted,
                    load=direction.broadcast_load(wanted.load),
                    steps=tuple((direction.broadcast_load(load), duration) for load, duration in wanted.steps),
                    # Far away from the tags of frames that count.
                    tag=(tag + number) ^ _FAR,
                    ramp_tag=(ramp_tag + number) ^ _FAR,
                )
        # Otherwise the first sender that starts could keep this process from starting the others.
        raise_priority(SENDING + 1)
        try:
            for direction in self._directions:
                direction.watch(orders[direction.sender])
            for sender, order in orders.items():
                sender.start(order)
                started.append(sender)
            for probe in probes:
                probe.start()
                started.append(probe.sender)
        except AgentError:
            for sender in started:
                sender.drain()
            raise
        except OSError as error:
            raise _socket_error(error) from error
        finally:
            raise_priority(COUNTING)

    def _finish(
        self, senders: Sequence[Sender], check: Callable[[], None], lookout: Lookout | None = None
    ) -> dict[Sender, SenderReport]:
        """Waits until all senders have ended, and then for frames in flight.

        Args:
            senders: The senders.
            check: See `Generator.trial`.
            lookout: Watches the counters, and may end the traffic.
        """
        pending: dict[Any, Sender] = {sender.connection: sender for sender in senders}
        reports: dict[Sender, SenderReport] = {}
        try:
            while pending:
                for connection in wait(list(pending), _NOTE_SECONDS if lookout is None else LOOK_SECONDS):
                    sender = pending.pop(connection)
                    reports[sender] = sender.report()
                links = self._links()
                if lookout is not None and lookout.must_end(self._so_far(lookout, links)):
                    for sender in pending.values():
                        sender.stop()
                check()
                for sender in pending.values():
                    sender.renew()
                for direction in self._directions:
                    direction.note_arrivals()
            _sleep(self._settle_time, check)
        finally:
            # Senders are only left after an error.
            for sender in pending.values():
                sender.drain()
        return reports

    def _so_far(self, lookout: Lookout, now: Mapping[str, Link]) -> dict[str, SoFar]:
        """The counters of all directions of a running trial."""
        in_flight = lookout.watch.in_flight
        return {
            name: direction.so_far(lookout.rates[name], lookout.whole[name], in_flight, self._before, now)
            for name, direction in ((direction.name, direction) for direction in self._directions)
        }

    def _counters(self, reports: Mapping[Sender, SenderReport]) -> list[Message]:
        received = {direction.name: direction.count() for direction in self._directions}
        after = self._links()
        return [
            _with_unsent_broadcasts(
                direction.counters(reports[direction.sender], received[direction.name], self._before, after),
                None if direction.broadcaster is None else reports[direction.broadcaster],
            )
            for direction in self._directions
        ]

    def _links(self) -> dict[str, Link]:
        """All links, after a check of the ports; a device that is reset may take down the link to a port."""
        return links_after(self._ports, self._before, may_go_down=self._links_may_change)

    def _integrity(self) -> Message:
        """Properties of received frames that are checked, and those that are not."""
        if not self._examines:
            return {"in_trials": False, "checked": [], "not_checked": ["anything: it was not asked for"]}
        of_all = ["length", "destination MAC address", "direction"]
        of_some = ["contents", "IP addresses", "duplicates", "order"]
        if not self._is_numbered:
            left_out = [f"{checked} (no room for sequence numbers)" for checked in of_some]
            return {"in_trials": True, "checked": of_all, "not_checked": left_out}
        whole = {"in_trials": True, "checked": [*of_all, *of_some], "not_checked": []}
        return {**whole, "examined_per_trial_about": MOST_EXAMINED}

    def _senders(self) -> list[Sender]:
        return [sender for direction in self._directions for sender in direction.senders]

    def _next_tag(self) -> int:
        """The tag of the first direction's frames; those of the others follow."""
        self._tag = (self._tag + DIRECTIONS + 1) & _TAG_MASK
        return self._tag

    def _probe(self, direction: ActiveDirection, load: float, duration: float) -> Probe:
        # The load's tags, which count up one by one, are far away from all of these.
        self._probe_tag = (self._probe_tag + MOST_FRAMES) & _TAG_MASK
        far = (self._tag ^ _FAR) & _FAR
        return direction.open_probe(load, duration, far | self._probe_tag & ~_FAR)


def _with_unsent_broadcasts(counters: Message, report: SenderReport | None) -> Message:
    """The counters of a direction, with the broadcast frames that could not be sent: without them the load is lower."""
    if report is None:
        return counters
    unsent = max(0, report.transmission.intended - report.transmission.sent)
    return _sum(counters, {"intended": unsent, "unsent": unsent})


def _with_probe(counters: Message, report: SenderReport, latency: Message) -> Message:
    """The counters of a direction, with its latency frames among them."""
    sent, duplicates = report.transmission, latency["duplicates"]
    arrived = latency["received"] + duplicates
    total = _sum(counters, {"intended": sent.intended, "sent": sent.sent, "received": arrived})
    if total["examination"] is not None:
        total["examination"] = {**total["examination"], "latency_copies": duplicates}
    return {**total, "unsent": max(0, total["intended"] - total["sent"])}


def _sum(counts: Message, added: Mapping[str, int]) -> Message:
    return {**counts, **{name: counts[name] + count for name, count in added.items()}}


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
