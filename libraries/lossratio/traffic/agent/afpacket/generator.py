"""The embedded generator: plain Linux packet sockets, one sending process per direction."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from multiprocessing.connection import wait
from typing import Any, Callable, Mapping, Sequence

from ..core.configuration import Configuration, Direction
from ..core.early_verdict import LOOK_SECONDS, SoFar, Watch, is_certain
from ..core.links import Link
from ..core.pacing import BATCH, CATCH_UP, frames_within
from ..core.ports import links_after, same_links, usable_links
from ..core.protocol import AgentError, Message
from .examination import MOST_EXAMINED, Examiner
from .frames import build_frames
from .latency import MOST_FRAMES, NUMBERS, Probe, probe_rate
from .receive import DIRECTIONS, FrameCounter, check_countable
from .sender import COUNTING, Sender, SenderReport, SenderSetup, SendOrder, raise_priority

_CHECK_SECONDS = 0.1
_TAG_MASK = 0xFFFFFFFF
_FAR = 0x80000000


class AfPacketGenerator:
    """Sends from transmit rings, and counts with filters on packet sockets.

    Args:
        configuration: Ports, directions and settle time.
        catch_up: Seconds of traffic that are made up for after a stall.

    Raises:
        AgentError: If the ports cannot, or must not, be used, or the frames cannot be sent.
    """

    def __init__(self, configuration: Configuration, catch_up: float = CATCH_UP) -> None:
        self._settle_time = configuration.settle_time
        self._ports = configuration.ports
        self._catch_up = catch_up
        self._before = usable_links(configuration)
        self._directions: list[ActiveDirection] = []
        # A random beginning, so that no other agent's frames are taken for this one's.
        self._tag = int.from_bytes(os.urandom(4), "big") & ~DIRECTIONS
        self._examines = configuration.examines
        self._is_numbered = all(direction.frames.is_numbered for direction in configuration.directions)
        self._probe_tag = int.from_bytes(os.urandom(4), "big") & ~NUMBERS
        cpus = sorted(os.sched_getaffinity(0))
        try:
            for number, direction in enumerate(configuration.directions):
                cpu = cpus[number % len(cpus)]
                self._directions.append(
                    ActiveDirection(direction, self._before, cpu, catch_up, examines=configuration.examines)
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
        self._begin(load, duration, ramp)
        return self._counters(self._finish(self._senders(), check))

    def watched_trial(
        self, load: float, duration: float, ramp: float, watch: Watch, check: Callable[[], None]
    ) -> Message:
        """See `WatchingGenerator.watched_trial`."""
        self._begin(load, duration, ramp, is_watched=True)
        lookout = _Lookout(self._directions, load, duration, watch)
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
            self._begin(load, duration, probes=probes)
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
        self._begin(load, None)

    def renew(self) -> None:
        """See `Generator.renew`."""
        for direction in self._directions:
            direction.renew()

    def stop(self, late_wait: float, check: Callable[[], None]) -> list[Message]:
        """See `Generator.stop`."""
        for direction in self._directions:
            direction.sender.stop()
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

    def _begin(
        self,
        load: float,
        duration: float | None,
        ramp: float = 0.0,
        probes: Sequence[Probe] = (),
        *,
        is_watched: bool = False,
    ) -> None:
        """Starts all directions.

        Args:
            load: Frames per second.
            duration: Seconds; None: until they are stopped.
            ramp: Seconds of growing traffic before that.
            probes: Senders of latency frames, a part of the load; none, or one for each direction.
            is_watched: Whether senders show their progress.
        """
        self._before = same_links(self._ports, self._before)
        rates = {probe.name: probe.rate for probe in probes}
        started: list[Sender] = []
        ramp_tag, tag = self._next_tag(), self._next_tag()
        orders: dict[Sender, SendOrder] = {}
        for number, direction in enumerate(self._directions):
            rate = direction.load(load) - rates.get(direction.name, 0.0)
            orders[direction.sender] = SendOrder(
                rate, duration, tag + number, ramp, ramp_tag + number, is_watched=is_watched
            )
            direction.watch(orders[direction.sender])
        try:
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

    def _finish(
        self, senders: Sequence[Sender], check: Callable[[], None], lookout: _Lookout | None = None
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
                for connection in wait(list(pending), _CHECK_SECONDS if lookout is None else LOOK_SECONDS):
                    sender = pending.pop(connection)
                    reports[sender] = sender.report()
                links = links_after(self._ports, self._before)
                if lookout is not None and lookout.is_over(self._before, links):
                    for sender in pending.values():
                        sender.stop()
                check()
                for sender in pending.values():
                    sender.renew()
            _sleep(self._settle_time, check)
        finally:
            # Senders are only left after an error.
            for sender in pending.values():
                sender.drain()
        return reports

    def _counters(self, reports: Mapping[Sender, SenderReport]) -> list[Message]:
        received = {direction.name: direction.count() for direction in self._directions}
        after = links_after(self._ports, self._before)
        return [
            direction.counters(reports[direction.sender], received[direction.name], self._before, after)
            for direction in self._directions
        ]

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
        return [direction.sender for direction in self._directions]

    def _next_tag(self) -> int:
        """The tag of the first direction's frames; those of the others follow."""
        self._tag = (self._tag + DIRECTIONS + 1) & _TAG_MASK
        return self._tag

    def _probe(self, direction: ActiveDirection, load: float, duration: float) -> Probe:
        # The load's tags, which count up one by one, are far away from all of these.
        self._probe_tag = (self._probe_tag + MOST_FRAMES) & _TAG_MASK
        far = (self._tag ^ _FAR) & _FAR
        return direction.open_probe(load, duration, far | self._probe_tag & ~_FAR)


class _Lookout:
    """Looks at the counters of a running trial.

    Args:
        directions: Its directions.
        load: Frames per second.
        duration: Seconds.
        watch: What to look for.

    Attributes:
        whole: Frames that the whole trial asks for in each direction.
        most_missing: The most frames of each direction that were on their way, or lost, at one of the looks.
        certain_after: Seconds of traffic until the verdict was certain; None: it is not.
    """

    def __init__(self, directions: Sequence[ActiveDirection], load: float, duration: float, watch: Watch) -> None:
        self._directions = directions
        self._load = load
        self._watch = watch
        self.whole = {each.name: frames_within(duration, each.load(load)) for each in directions}
        self.most_missing = dict.fromkeys(self.whole, 0)
        self.certain_after: float | None = None

    def is_over(self, before: Mapping[str, Link], now: Mapping[str, Link]) -> bool:
        """Looks, and returns whether the traffic must end.

        Args:
            before: All interfaces before the trial.
            now: All interfaces now.
        """
        seen = [
            each.so_far(self._load, self.whole[each.name], self._watch.in_flight, before, now)
            for each in self._directions
        ]
        for each, counted in zip(self._directions, seen):
            self.most_missing[each.name] = max(self.most_missing[each.name], counted.sent - counted.received)
        if self.certain_after is None and is_certain(seen, self._watch.above):
            self.certain_after = max(
                counted.sent / each.load(self._load) for each, counted in zip(self._directions, seen)
            )
        return self._watch.ends and self.certain_after is not None


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


class ActiveDirection:
    """A direction with its sender, and with counters for this trial's frames and for those of the trial before.

    Args:
        direction: The direction.
        links: All interfaces, by name.
        cpu: The processor for its sender to begin on.
        catch_up: Seconds of traffic that are made up for after a stall.
        examines: Whether frames that come back are looked at.

    Raises:
        OSError: If the kernel does not give the sockets.
        AgentError: If its frames cannot be sent.
    """

    def __init__(
        self, direction: Direction, links: Mapping[str, Link], cpu: int, catch_up: float, *, examines: bool
    ) -> None:
        frames = direction.frames
        source, sink = links[direction.transmit], links[direction.receive]
        destination = sink.mac if direction.destination_mac is None else _mac(direction.destination_mac)
        cycle = build_frames(frames, source.mac, destination)
        self.name = direction.name
        self._direction = direction
        self._counted: int | None = 0
        self._counted_before = 0
        self._counter, self._counter_before = (
            FrameCounter(sink.name, sink.index, frames.tag_place),
            FrameCounter(sink.name, sink.index, frames.tag_place),
        )
        self._examiner = Examiner(direction, cycle, sink) if examines else None
        self._source, self._sink = source, sink
        self._setup = SenderSetup(source.name, cycle, frames.tag_place, source.kind == "veth", cpu, catch_up)
        self.sender = Sender(self._setup)

    def load(self, load: float) -> float:
        """Its share of a trial's load, in frames per second."""
        return load * self._direction.load_share

    def watch(self, order: SendOrder) -> None:
        """Begins to count frames with an order's tag. All directions do that before any of them sends."""
        self._counter, self._counter_before = self._counter_before, self._counter
        # Nothing has asked for the count of a trial that failed.
        self._counted_before = self._counter_before.read() if self._counted is None else self._counted
        self._counted = None
        self._counter.watch(order.tag)
        if self._examiner is not None:
            self._examiner.watch(order.tag, order.load, order.duration)

    def renew(self) -> None:
        """Renews traffic without an end, and keeps room for the frames that come back."""
        self.sender.renew()
        if self._examiner is not None:
            self._examiner.make_room()

    def open_probe(self, load: float, duration: float, tag: int) -> Probe:
        """Gets latency frames ready that are a part of this direction's traffic.

        Args:
            load: Frames per second of the trial.
            duration: Seconds of the trial.
            tag: Tag of the first latency frame; those above it are for the others.

        Raises:
            OSError: If the kernel does not give the sockets.
        """
        rate = probe_rate(self.load(load), duration)
        return Probe(self.name, self._setup, self._source, self._sink, tag, rate=rate, duration=duration)

    def so_far(
        self, load: float, whole: int, in_flight: float, before: Mapping[str, Link], now: Mapping[str, Link]
    ) -> SoFar:
        """The counters of a running trial that is watched.

        Args:
            load: Frames per second of the trial.
            whole: Frames that the whole trial asks for here.
            in_flight: Seconds of traffic that may be on their way.
            before: All interfaces before the trial.
            now: All interfaces now.
        """
        rate, sink, progress = self.load(load), self._direction.receive, self.sender.progress
        # Frames that leave while the counters are read may come back, and hide loss; never the other way round.
        sent, unsent, usual = progress.sent, progress.unsent, int(BATCH * rate) + 2
        return SoFar(
            whole=whole,
            sent=sent,
            unsent=unsent,
            received=self._counter.read(),
            in_flight=in_flight * rate,
            of_generator=max(0, progress.longest_burst - usual) + now[sink].receive_drops - before[sink].receive_drops,
        )

    def count(self) -> int:
        """How many frames came back until now."""
        self._counted = self._counter.read()
        return self._counted

    def late(self) -> int:
        """Frames that came back since they were counted; none of a trial that failed before that."""
        before, now = self._counted, self.count()
        return 0 if before is None else now - before

    def counters(
        self, report: SenderReport, received: int, before: Mapping[str, Link], after: Mapping[str, Link]
    ) -> Message:
        """The counters of the direction, as `Generator.trial` returns them.

        Args:
            report: The report of its sender.
            received: How many frames came back.
            before: All interfaces before the trial.
            after: All interfaces after it.

        Raises:
            AgentError: If it is not known how many frames were sent, or came back.
        """
        source, sink = self._direction.transmit, self._direction.receive
        sent = report.transmission
        check_countable(self.name, sent.sent)
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
            "load_share": self._direction.load_share,
            "examination": None if self._examiner is None else self._examiner.examine(report.first, sent.sent),
        }

    def close(self) -> None:
        """Stops its traffic at once."""
        self.sender.close()
        self._counter.close()
        self._counter_before.close()
        if self._examiner is not None:
            self._examiner.close()


def _mac(text: str) -> bytes:
    try:
        mac = bytes.fromhex(text.replace(":", ""))
    except ValueError:
        mac = b""
    if len(mac) != 6:
        raise AgentError("bad_request", f"{text!r} is not a MAC address.")
    return mac
