"""The generator inside the kernel: XDP programs send, and XDP programs on the receiving ports count and compare."""

from __future__ import annotations

import math
import threading
import time
from contextlib import ExitStack
from typing import Callable, Mapping, Sequence

from lossratio.bpf import BpfError, XdpMode, why_impossible

from ..core.configuration import Configuration, Direction, FramesSpec
from ..core.early_verdict import LOOK_SECONDS, Lookout, SoFar, Watch, wait_for_held_frames
from ..core.generator import Tags, counted_course, late_and_copies
from ..core.links import Link
from ..core.pacing import CATCH_UP, LONGEST_STALL, grace_after, pause
from ..core.ports import Ports
from ..core.processors import DeviceProcessors
from ..core.protocol import AgentError, Message
from .cards import batch_at, described, transmitted
from .devices import attach, check_can_send, check_may_attach, possible_cpus
from .findings import ReceivedFrames, examination_of, integrity, latency_of, merged, times_of
from .frames import FramePlan
from .plan import Plan, check_schedule, schedule_course
from .receive_program import ReceiveProgram, ReceiveWay, Reception
from .send_program import Segment, SendProgram, SendStream, SentSegment
from .sender import WAKE_SECONDS, Sender, Share, choose_cpus, prepare_main_thread, share_out

PERMIT_SECONDS = 10.0
"""Seconds for which traffic without an end goes on without hearing from the agent, which may get no processor.

Other traffic has its end in the program.

An agent that ends or is stopped ends its senders at once: they are its threads.
"""

LINGER_SECONDS = 0.05
"""Seconds after a trial in which senders stay in the kernel: going there takes some milliseconds."""

MOST_COUNTED_FLOWS = 1 << 16
"""Flows up to which lost frames are counted by flow: more take longer to compare than trials should."""

_CHECK_SECONDS = 0.1
_LATE_END_SECONDS = 5.0
_POLL_SECONDS = 0.0005
_NANOSECONDS = 1e9


class XdpGenerator:
    """Sends live frames of XDP programs.

    Args:
        configuration: Ports, directions and settle time.
        catch_up: Seconds of traffic that are made up for after a stall.
        cpus: Processors of its senders; None: it chooses some.
        batch: How many runs of a sender's program pass before frames are handed over; None: few for exact times, and
            many for high rates.
        device_cpus: Processors of devices under test of this machine that are programs.

    Raises:
        AgentError: If the ports cannot, or must not, be used, or the frames cannot be sent.
    """

    def __init__(
        self,
        configuration: Configuration,
        catch_up: float = CATCH_UP,
        cpus: Sequence[int] | None = None,
        batch: int | None = None,
        device_cpus: Sequence[int] = (),
    ) -> None:
        self._batch = batch
        self._configuration = configuration
        self._directions = configuration.directions
        self._transmitted: dict[str, int | None] = {}
        self._catch_up = catch_up
        self._plan = Plan(((0.0, None),))
        self._ports = Ports(configuration)
        reason = why_impossible()
        if reason is not None:
            raise AgentError("bpf", f"The generator 'xdp' is not possible here: {reason}. {_WAY_OUT}")
        self._check_ports()
        self._devices = DeviceProcessors(device_cpus)
        self._cpus = choose_cpus(len(configuration.directions), cpus, self._devices.free())
        self._tags = Tags()
        self._modes: dict[str, XdpMode] = {}
        self._senders: list[Sender] = []
        self._timer: threading.Timer | None = None
        self._counted: list[int] | None = None
        self._late_before: list[int] = []
        self._missing: list[int | None] = [0] * len(configuration.directions)
        self._missing_before = self._missing
        self._opened = ExitStack()
        prepare_main_thread()
        try:
            self._open()
            used = dict.fromkeys(one.transmit for one in self._directions)
            self._cards = described([self._ports.before[name] for name in used])
        except BpfError as error:
            self.close()
            raise AgentError("bpf", f"{error} {_WAY_OUT}") from error
        except BaseException:
            # Also an interrupt must not leave programs attached and threads alive.
            self.close()
            raise

    def facts(self) -> Message:
        """Ports with their modes, and how senders are scheduled."""
        return {
            "generator": "xdp",
            "catch_up": self._catch_up,
            "cpus": list(self._cpus),
            "receives": {name: mode.name.lower() for name, mode in self._modes.items()},
            **self._cards,
            "integrity": integrity(self._configuration),
            "ports": self._ports.facts(),
        }

    def trial(self, load: float, duration: float, ramp: float, check: Callable[[], None]) -> list[Message]:
        """See `Generator.trial`."""
        return self._perform(Plan(((load, duration),), ramp), check)

    def watched_trial(
        self, load: float, duration: float, ramp: float, watch: Watch, check: Callable[[], None]
    ) -> Message:
        """See `WatchingGenerator.watched_trial`."""
        directions = self._configuration.directions
        lookout = Lookout({one.name: load * one.load_share for one in directions}, duration, watch)
        ended_after = self._send(Plan(((load, duration),), ramp), check, lookout)
        if ended_after is not None:
            settle_time = self._configuration.settle_time
            wait_for_held_frames(lambda: sum(self._arrived()), duration - ended_after, settle_time, check)
        return lookout.answer(self._counters(ended_after or 0.0), ended_after)

    def schedule(
        self, steps: Sequence[tuple[float, float]], is_burst: bool, check: Callable[[], None]
    ) -> list[Message]:
        """See `TimedGenerator.schedule`: without outages and silences, as frames that arrive leave no times."""
        if not is_burst:
            check_schedule(steps, self._configuration.directions, len(self._of(0)))
        directions = self._perform(Plan(tuple(steps), is_burst=is_burst), check)
        return [{**direction, "course": self._course(number, direction)} for number, direction in enumerate(directions)]

    def latency(self, load: float, duration: float, check: Callable[[], None]) -> Message:
        """See `Generator.latency`: every frame of the load measures its latency."""
        directions = self.trial(load, duration, 0.0, check)
        latency = [
            latency_of(counters["name"], counters["sent_frames"], received, is_numbered=direction.frames.is_numbered)
            for counters, received, direction in zip(directions, self._received, self._configuration.directions)
        ]
        return {"directions": directions, "latency": latency}

    def start(self, load: float) -> None:
        """See `Generator.start`."""
        self._begin(Plan(((load, None),)))

    def renew(self) -> None:
        """See `Generator.renew`."""
        until = max(time.monotonic_ns(), self._end) + round(PERMIT_SECONDS * _NANOSECONDS)
        for sender in self._senders:
            sender.check()
            sender.program.renew(until)

    def stop(self, late_wait: float, check: Callable[[], None]) -> list[Message]:
        """See `Generator.stop`."""
        for sender in self._senders:
            sender.program.stop()
        elapsed = (time.monotonic_ns() - self._start) / _NANOSECONDS
        self._rest()
        pause(self._configuration.settle_time, check)
        counters = self._counters(elapsed)
        late = self.late(late_wait, check)
        return [{**direction, "late": late[direction["name"]]} for direction in counters]

    def late(self, wait: float, check: Callable[[], None]) -> dict[str, int]:
        """See `Generator.late`."""
        pause(wait, check)
        return dict(zip((direction.name for direction in self._configuration.directions), self._late()))

    def close(self) -> None:
        """See `Generator.close`."""
        self._stay()
        for sender in self._senders:
            sender.close()
        self._senders = []
        self._opened.close()

    # Opening

    def _check_ports(self) -> None:
        for direction in self._configuration.directions:
            check_may_attach(self._ports.before[direction.receive])

    def _open(self) -> None:
        directions = self._configuration.directions
        self._streams = share_out(len(directions), len(self._cpus))
        self._plans = [self._frame_plan(direction, direction.frames) for direction in directions]
        counted = [self._counted_flows(number) for number in range(len(directions))]
        self._reception = Reception(len(self._streams), possible_cpus(), sum(counted))
        self._opened.callback(self._reception.close)
        self._flows = [sum(counted[:number]) if count else None for number, count in enumerate(counted)]
        for port in dict.fromkeys(direction.receive for direction in directions):
            ways = [self._way(number) for number, direction in enumerate(directions) if direction.receive == port]
            program = ReceiveProgram(self._reception, ways)
            self._opened.callback(program.close)
            link, self._modes[port] = attach(program.program, self._ports.before[port])
            self._opened.callback(link.close)
        for direction in directions:
            # Only now: a veth sends such frames once its other end has a program, which may be one of these.
            check_can_send(self._ports.before[direction.transmit])
        for number, cpu in enumerate(self._cpus):
            own = [self._send_stream(stream) for stream in self._streams if stream.sender == number]
            self._senders.append(Sender(SendProgram(own, self._reception.times), cpu))

    def _frame_plan(self, direction: Direction, frames: FramesSpec) -> FramePlan:
        source, sink = self._ports.before[direction.transmit], self._ports.before[direction.receive]
        return FramePlan(frames, *direction.macs(source.mac, sink.mac))

    def _counted_flows(self, number: int) -> int:
        """How many flows of a direction are counted: all, or none if there is one, or very many."""
        flows = self._plans[number].flows
        return flows if 1 < flows <= MOST_COUNTED_FLOWS and len(self._of(number)) == 1 else 0

    def _way(self, number: int) -> ReceiveWay:
        direction, streams = self._directions[number], self._of(number)
        plan, mac = self._frame_plan(direction, direction.returned), self._ports.before[direction.receive].mac
        first, step = streams[0].share
        return ReceiveWay(plan, mac, streams[0].number, len(streams), first, step, self._flows[number])

    def _send_stream(self, stream: Share) -> SendStream:
        direction = self._configuration.directions[stream.direction]
        interface = self._ports.before[direction.transmit].index
        return SendStream(self._plans[stream.direction], interface, stream.number, *stream.share)

    # One trial

    def _perform(self, plan: Plan, check: Callable[[], None]) -> list[Message]:
        self._send(plan, check)
        return self._counters()

    def _send(self, plan: Plan, check: Callable[[], None], lookout: Lookout | None = None) -> float | None:
        """Sends all, and waits for frames in flight; see `_finish`."""
        self._begin(plan)
        ended_after = self._finish(check, lookout)
        # Senders give way while frames in flight come back.
        pause(max(0.0, self._stopped + self._configuration.settle_time - time.monotonic()), check)
        return ended_after

    def _begin(self, plan: Plan) -> None:
        self._stay()
        self._ports.mark()
        self._transmitted = {one.transmit: self._transmitted_by(one, self._ports.before) for one in self._directions}
        self._late_before, self._counted = self._count_late(), None
        self._missing_before, self._missing = self._missing, [None] * len(self._late_before)
        self._plan = plan
        ramp_tag, tag = self._tags.next(), self._tags.next()
        self._reception.watch(tag, ramp_tag)
        schedules: list[list[list[Segment]]] = [[] for _ in self._senders]
        for stream in self._streams:
            direction = self._configuration.directions[stream.direction]
            tags = (ramp_tag + stream.number, tag + stream.number)
            schedules[stream.sender].append(plan.segments(direction, stream.share, tags, self._catch_up))
        for number, sender in enumerate(self._senders):
            rate = sum(self._rate(stream, plan.load) for stream in self._streams if stream.sender == number)
            sender.wake(self._batch or batch_at(rate, self._cards["transmit_rings"].values()))
        for sender in self._senders:
            sender.wait_until_awake()
            sender.promote(plan.ramp + plan.duration)
        self._start = time.monotonic_ns() + round(WAKE_SECONDS * _NANOSECONDS)
        lasts = 0.0 if plan.duration == math.inf else plan.duration
        self._end = self._start + round((plan.ramp + lasts) * _NANOSECONDS)
        grace = LONGEST_STALL if plan.is_burst else grace_after(plan.duration, self._catch_up)
        for sender, schedule in zip(self._senders, schedules):
            sender.guard(self._end / _NANOSECONDS + grace)
            sender.program.schedule(self._start, schedule, sender.cpu)
        self.renew()

    def _rate(self, stream: Share, load: float) -> float:
        """Frames per second of a stream."""
        return load * self._configuration.directions[stream.direction].load_share / stream.share[1]

    def _finish(self, check: Callable[[], None], lookout: Lookout | None) -> float | None:
        """Waits until all has been sent, or the lookout ends the traffic."""
        looked, between = 0.0, _CHECK_SECONDS if lookout is None else LOOK_SECONDS
        try:
            while not self._have_finished():
                if time.monotonic() > looked + between:
                    looked = time.monotonic()
                    links = self._ports.after()
                    check()
                    now = time.monotonic_ns()
                    # When all is due, the senders need no more than a moment to end by themselves.
                    if lookout is not None and lookout.must_end(self._so_far(lookout, links)) and now < self._end:
                        return self._cut()
                    self.renew()
                left = (self._end - time.monotonic_ns()) / _NANOSECONDS
                time.sleep(min(between, max(_POLL_SECONDS, left)))
                if left < -_LATE_END_SECONDS:
                    raise AgentError("sender_died", "A sender does not come to its end; configure anew.")
        except BaseException:
            # Also an interrupt ends the traffic.
            for sender in self._senders:
                sender.program.stop()
            raise
        finally:
            self._stopped = time.monotonic()
            for sender in self._senders:
                sender.relax()
            self._timer = threading.Timer(LINGER_SECONDS, self._rest)
            self._timer.daemon = True
            self._timer.start()
        return None

    def _have_finished(self) -> bool:
        return all(sender.program.has_finished() for sender in self._senders)

    def _cut(self) -> float | None:
        """Ends the traffic; see `_finish` for what it returns."""
        for sender in self._senders:
            sender.program.stop()
        flowed = (time.monotonic_ns() - self._start) / _NANOSECONDS - self._plan.ramp
        return None if self._have_finished() else min(flowed, self._plan.duration)

    def _so_far(self, lookout: Lookout, now: Mapping[str, Link]) -> dict[str, SoFar]:
        """The counters of all directions of a running trial."""
        return {
            direction.name: self._direction_so_far(number, direction, lookout, now)
            for number, direction in enumerate(self._configuration.directions)
        }

    def _direction_so_far(self, number: int, direction: Direction, lookout: Lookout, now: Mapping[str, Link]) -> SoFar:
        parts, rate, sink = self._parts_sent(number), lookout.rates[direction.name], direction.receive
        # Frames that leave while the counters are read may come back, and hide loss; never the other way round.
        sent, unsent = (sum(counts) for counts in zip(*((part.sent, part.unsent) for part in parts)))
        received = sum(self._reception.arrived(stream.number) for stream in self._of(number))
        return SoFar(
            whole=lookout.whole[direction.name],
            sent=sent,
            unsent=unsent,
            received=received,
            # A sender that loses its processor keeps the frames of a batch, which count as sent already.
            in_flight=lookout.watch.in_flight * rate + sum(self._senders[one.sender].batch for one in self._of(number)),
            of_generator=self._refused(direction, now)
            + now[sink].receive_drops
            - self._ports.before[sink].receive_drops,
        )

    def _stay(self) -> None:
        """Keeps senders in the kernel that are there yet."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            timer.join()

    def _rest(self) -> None:
        for sender in self._senders:
            sender.rest()

    # Counters

    def _arrived(self) -> list[int]:
        return [
            sum(self._reception.arrived(stream.number) for stream in self._of(number))
            for number in range(len(self._configuration.directions))
        ]

    def _count_late(self) -> list[int]:
        """Frames of the last traffic that came back since they were counted, by direction; none before any traffic."""
        before, self._counted = self._counted, self._arrived()
        return [now - then for now, then in zip(self._counted, before or self._counted)]

    def _late(self) -> list[int]:
        """Late frames of the last traffic since they were counted, by direction."""
        counted = [late_and_copies(*counts) for counts in zip(self._count_late(), self._missing)]
        self._missing = [missing for _, _, missing in counted]
        return [late for late, _, _ in counted]

    def _of(self, direction: int) -> list[Share]:
        return [stream for stream in self._streams if stream.direction == direction]

    def _refused(self, direction: Direction, now: Mapping[str, Link]) -> int:
        """Frames of the running or latest traffic that the port did not take, so that no device can have lost them.

        A veth counts those for which the ring at its other end had no room; a card only those that it sent.
        """
        port, counted = direction.transmit, self._transmitted[direction.transmit]
        if counted is None:
            return now[port].transmit_drops - self._ports.before[port].transmit_drops
        sharing = [number for number, one in enumerate(self._directions) if one.transmit == port]
        segments = range(self._plan.ramp_segments + len(self._plan.steps))
        sent = sum(part.sent for number in sharing for part in self._parts_sent(number, segments))
        left = (self._transmitted_by(direction, now) or 0) - counted
        if sent and not left and self._have_finished():
            raise AgentError(
                "counters",
                f"The driver of {port} has counted none of {sent} frames that it was given, so that nobody knows how "
                "many left. Use 'kind: afpacket'.",
            )
        return max(0, sent - left)

    def _transmitted_by(self, direction: Direction, links: Mapping[str, Link]) -> int | None:
        """What the port of a direction has sent by its own counter; None: it counts what it refuses."""
        found = transmitted(links[direction.transmit])
        return None if found is None else found[1]

    def _parts_sent(self, direction: int, segments: Sequence[int] = ()) -> list[SentSegment]:
        """What was sent so far, of each segment and stream of a direction; without the ramp, unless it is named."""
        segments = segments or range(self._plan.ramp_segments, self._plan.ramp_segments + len(self._plan.steps))
        return [
            self._senders[stream.sender].program.sent(stream.place, segment)
            for stream in self._of(direction)
            for segment in segments
        ]

    def _counters(self, elapsed: float = 0.0) -> list[Message]:
        arrived = self._arrived()
        self._received = [
            merged([self._reception.received(stream.number) for stream in self._of(number)])
            for number in range(len(self._configuration.directions))
        ]
        self._counted = arrived
        after = self._ports.after()
        for sender in self._senders:
            self._devices.check(sender.cpu, sender.program.strayed_to())
        return [
            self._direction_counters(number, elapsed, after) for number in range(len(self._configuration.directions))
        ]

    def _course(self, number: int, direction: Message) -> Message:
        counters = {**direction, "last": max(part.last for part in self._parts_sent(number))}
        if self._plan.is_burst:
            return counted_course(self._start / _NANOSECONDS, counters)
        streams = [
            (self._reception.ring(stream.number), self._senders[stream.sender].program, stream.place)
            for stream in self._of(number)
        ]
        return schedule_course(self._plan, counters, self._start, streams, self._received[number].intact)

    def _direction_counters(self, number: int, elapsed: float, after: Mapping[str, Link]) -> Message:
        direction, received = self._configuration.directions[number], self._received[number]
        streams, plan, parts = self._of(number), self._plan, self._parts_sent(number)
        sent = sum(part.sent for part in parts)
        # Frames of the ramp may be among the refused ones, and no frame that arrived is.
        refused = min(max(0, sent - received.intact), self._refused(direction, after))
        sent -= refused
        strayed = sum(self._reception.strayed(stream.number) for stream in streams)
        due, intended = sum(part.sent + part.unsent for part in parts), plan.intended(direction)
        sink = self._ports.before[direction.receive]
        late, copies, _ = late_and_copies(
            self._late_before[number] + sum(self._reception.late(stream.number) for stream in streams),
            self._missing_before[number],
        )
        self._missing[number] = max(0, sent - received.arrived)
        return {
            "name": direction.name,
            "intended_frames": due if intended is None else intended,
            "sent_frames": sent,
            "received_frames": received.arrived - received.stale,
            "unsent_frames": max(0, due - sent),
            "refused_frames": refused,
            "generator_drop_frames": after[direction.receive].receive_drops - sink.receive_drops,
            "late_frames": late,
            "foreign_frames": copies + sum(self._reception.foreign(stream.number) for stream in streams),
            "elapsed_s": elapsed or max(plan.duration, *(part.last for part in parts)),
            "lateness_s": max(part.lateness for part in parts),
            "load_ratio": direction.load_share,
            "examination": examination_of(direction, received, strayed) if self._configuration.examines else None,
            **self._of_every_frame(number, sent, received),
        }

    def _of_every_frame(self, number: int, sent: int, received: ReceivedFrames) -> Message:
        """Findings that need a look at every frame; none where frames have no numbers."""
        if not self._configuration.directions[number].frames.is_numbered:
            return {}
        return {**times_of(received), "flows_with_loss": self._flows_with_loss(number, sent)}

    def _flows_with_loss(self, number: int, sent: int) -> int | None:
        first, plan = self._flows[number], self._plans[number]
        if first is None:
            return None
        counts = self._reception.flows.memory.cast("I")[first : first + plan.flows]
        return sum(1 for count, wanted in zip(counts, plan.sent_by_flow(sent)) if count < wanted)


_WAY_OUT = "Use 'kind: afpacket' for this TG, or 'kind: auto', which does so by itself."
