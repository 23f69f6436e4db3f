"""A stand-in for TRex's client and its server, on a virtual clock, that behaves as the real ones were seen to.

The server begins a little after it is asked, ends by itself when it can keep the load up, and otherwise sends every
frame and takes longer. Its ports are joined by a path that may lose, delay and add frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from trex_parts import (
    CTRexVmInsFixHwCs,
    PacketBuffer,
    Recorded,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLStream,
    STLTXCont,
    STLTXSingleBurst,
    STLVmFixChecksumHw,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
    TRexError,
)

MACS = ("02:00:00:00:00:0a", "02:00:00:00:00:0b")


@dataclass
class Port:
    """A port of the server.

    Attributes:
        streams: Its streams, by number.
        factor: What their rates are multiplied by.
        began: When its traffic began; None if it never did.
        asked_until: When it should end.
        stopped: When it was stopped.
        ahead: Seconds by which its frames are early.
    """

    streams: dict[int, STLStream] = field(default_factory=dict)
    factor: float = 0.0
    began: float | None = None
    duration: float = math.inf
    stopped: float = math.inf
    sent_before: float = 0.0
    ahead: float = 0.0

    @property
    def burst(self) -> int | None:
        """Frames of its bursts; None: its streams have no end."""
        totals = [getattr(stream.mode, "total_pkts", None) for stream in self.streams.values()]
        return None if not totals or None in totals else sum(totals)


@dataclass
class Server:
    """The server, the path between its ports, and what is wrong with them."""

    capacity: float = math.inf
    """Frames per second that a port can send."""
    answer_seconds: float = 0.002
    """How long each request takes."""
    counter_seconds: float = 0.0
    """How much longer a request for counters takes."""
    start_seconds: float = 0.0005
    """How long after the answer traffic begins."""
    late_answer: float = 0.0
    """How long the request to start takes beyond that, while traffic flows already."""
    status_seconds: float = 0.0
    """How long after its end the server says that a port transmits no more."""
    lost: tuple[float, float] = (0.0, 0.0)
    """Share of the frames that the path loses, of each direction."""
    foreign: int = 0
    """Frames that come from elsewhere to port 1 while traffic flows."""
    late: tuple[int, float] = (0, 0.0)
    """Frames, and seconds for which the last ones stay in flight."""
    errors: dict[str, int] = field(default_factory=dict)
    """Values of ``ierrors``, ``oerrors`` and ``queue_full``."""
    failures: dict[str, Exception] = field(default_factory=dict)
    """Errors to raise, by the name of the client's method."""
    jump: int = 0
    """What is added to what was sent."""
    link: str = "UP"
    port_count: int = 2
    latency: dict[int, dict[str, Any]] = field(default_factory=dict)
    is_event_thread_alive: bool = True
    creeping: bool = False
    now: float = 0.0
    calls: list[str] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    ports: dict[int, Port] = field(default_factory=lambda: {0: Port(), 1: Port()})
    acquired: bool = False
    owner: str | None = None
    """Who has acquired the ports already."""
    ahead: float = 0.0
    """Seconds by which it is ahead of its clock while no port sends, as one is that sleeps."""
    refused_modes: tuple[str, ...] = ()
    """Modes that its ports do not take."""
    numbers: dict[str, int] = field(
        default_factory=lambda: {"dropped": 0, "dup": 0, "out_of_order": 0, "seq_too_high": 0, "seq_too_low": 0}
    )
    """Counters of faults of numbered frames."""
    latency_waits: list[int] = field(default_factory=list)
    modes: list[Any] = field(default_factory=list)
    start_options: list[dict[str, Any]] = field(default_factory=list)
    gateways: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    """MAC addresses of the devices that answer at each port, by their addresses."""
    pushed: list[tuple[float, int, bytes]] = field(default_factory=list)
    """Single frames that were sent: when, on which port, and what."""
    answered: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0})
    captured: list[dict[str, Any]] | None = None
    in_service: bool = False
    """Whether its ports are in service mode."""

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def sent(self, number: int) -> int:
        """Frames that a port has sent by now: one more than is due, as the real one does."""
        port = self.ports[number]
        if port.began is None:
            return math.floor(port.sent_before)
        asked, delay = self._rate(port), self._delay(number)
        flowed = max(0.0, min(self.now, port.stopped) - port.began)
        flowed = max(0.0, flowed + port.ahead - delay) if flowed else 0.0
        burst = port.burst
        if burst is not None:
            return math.floor(port.sent_before) + min(
                burst, math.floor(min(asked, self.capacity) * flowed + 1e-6) + bool(flowed)
            )
        most = asked * (port.duration - delay)
        sent = min(most, min(asked, self.capacity) * flowed)
        ended = min(port.stopped, port.began + port.duration)
        if self.creeping and ended < self.now:
            sent += (self.now - ended) * 1000
        return math.floor(port.sent_before + sent + 1e-6) + (1 if flowed else 0)

    def received(self, number: int) -> int:
        """Frames that a port has received by now."""
        other = self.ports[number ^ 1]
        if other.began is None:
            return round(other.sent_before * (1 - self.lost[number ^ 1]))
        came = round(self.sent(number ^ 1) * (1 - self.lost[number ^ 1]))
        frames, seconds = self.late
        ended = min(other.stopped, other.began + other.duration)
        if self.now < ended + seconds:
            came -= frames
        return came + (self.foreign if number == 1 else 0)

    def is_transmitting(self, number: int) -> bool:
        port = self.ports[number]
        if port.began is None or self.now >= port.stopped:
            return False
        asked = self._rate(port)
        duration = port.duration - port.ahead if port.burst is None else port.burst / asked
        return self.now < port.began + duration * max(1.0, asked / self.capacity) + self.status_seconds

    def _delay(self, number: int) -> float:
        """Seconds until the first frames of a port's streams."""
        port = self.ports[number]
        return min(stream.isg for stream in port.streams.values()) / 1e6 if port.streams else 0.0

    @staticmethod
    def is_fixed(stream: STLStream) -> bool:
        """Whether no factor changes the rate of a stream."""
        return isinstance(stream.flow_stats, STLFlowLatencyStats)

    def _rate(self, port: Port) -> float:
        return sum(
            stream.mode.pps * (1.0 if self.is_fixed(stream) else port.factor) for stream in port.streams.values()
        )


class Answer:
    """The answer to several requests at once."""

    def __init__(self, data: list[Any]) -> None:
        self._data = data

    def good(self) -> bool:
        return True

    def data(self) -> list[Any]:
        return self._data


class StandIn:
    """The module of TRex's client, for one server."""

    STLPktBuilder, STLStream, STLTXCont = STLPktBuilder, STLStream, STLTXCont
    STLTXSingleBurst = STLTXSingleBurst
    STLFlowLatencyStats, STLVmFlowVar, STLVmWrFlowVar = STLFlowLatencyStats, STLVmFlowVar, STLVmWrFlowVar
    STLFlowStats, PacketBuffer = STLFlowStats, PacketBuffer
    STLVmFixIpv4, STLVmFixChecksumHw, CTRexVmInsFixHwCs = STLVmFixIpv4, STLVmFixChecksumHw, CTRexVmInsFixHwCs

    def __init__(self, server: Server) -> None:
        self.server = server

    def STLClient(self, **named: Any) -> Client:  # noqa: N802 (as TRex calls it)
        return Client(self.server)


class StreamStatistics:
    """The counters of streams, as far as the client has them apart from those of ports."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def clear_stats(self, clear_flow_stats: bool, clear_latency_stats: bool) -> None:
        assert clear_flow_stats
        assert clear_latency_stats
        self._client.clear_streams()


class Client:
    """The client as far as the agent uses it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._is_connected = False
        self._reference: dict[int, tuple[int, int]] = {0: (0, 0), 1: (0, 0)}
        self._frozen: dict[Any, Any] | None = None
        self._modes: set[str] = set()
        self._next = 1
        self.pgid_stats = StreamStatistics(self)

    def connect(self):
        self._called("connect")
        self._is_connected = True

    def disconnect(self, stop_traffic=True, release_ports=True):
        self._called("disconnect")
        self._server.acquired = False
        self.stop(list(self._server.ports))
        self._is_connected = False

    def is_connected(self):
        return self._is_connected and self._server.is_event_thread_alive

    def get_server_version(self):
        return {"version": "v3.08", "mode": "STL"}

    def get_all_ports(self):
        return list(range(self._server.port_count))

    def acquire(self, ports, force=False):
        self._called("acquire")
        if self._server.owner is not None and not force:
            raise TRexError(f"Port {ports[0]} : *** port is already taken by '{self._server.owner}'")
        self._server.acquired = True

    def reset(self, ports):
        self._called("reset")
        for port in ports:
            self._server.ports[port] = Port()

    def get_port_info(self, ports):
        self._called("get_port_info")
        return [
            {
                "src_mac": MACS[port],
                "status": "TRANSMITTING" if self._server.is_transmitting(port) else "IDLE",
                "link": self._server.link,
                "driver": "net_stand_in",
                **{
                    fact: "on" if mode in self._modes and mode not in self._server.refused_modes else "off"
                    for fact, mode in (("prom", "promiscuous"), ("mult", "multicast"))
                },
                "speed": 10.0,
            }
            for port in ports
        ]

    def add_streams(self, streams, ports):
        self._called("add_streams")
        numbers = []
        for stream in streams:
            self._server.ports[ports[0]].streams[self._next] = stream
            numbers.append(self._next)
            self._next += 1
        return numbers if len(numbers) > 1 else numbers[0]

    def remove_streams(self, numbers, ports):
        self._called("remove_streams")
        port = self._server.ports[ports[0]]
        if port.began is not None:
            port.sent_before, port.began = self._server.sent(ports[0]), None
        for number in numbers:
            del port.streams[number]

    def clear_stats(self, ports):
        self._called("clear_stats")
        assert set(ports) == set(self._server.ports)
        self.clear_streams()

    def clear_streams(self):
        self._reference = {port: (self._server.sent(port), self._server.received(port)) for port in self._server.ports}

    CORE_MASK_PIN = 2

    def set_port_attr(self, ports, **modes):
        self._called("set_port_attr")
        self._modes = set(modes)
        self._server.modes.append((tuple(ports), modes))

    def set_service_mode(self, ports, enabled):
        self._called("set_service_mode")
        self._server.in_service = enabled

    def start_capture(self, rx_ports, limit):
        self._called("start_capture")
        assert self._server.in_service
        self._server.captured = []
        return {"id": 7, "ts": 0.0}

    def fetch_capture_packets(self, capture, output):
        self._called("fetch_capture_packets")
        assert capture == 7
        output[:], self._server.captured = self._server.captured, []

    def stop_capture(self, capture):
        self._called("stop_capture")
        self._server.captured = None

    def push_packets(self, packets, ports):
        # In the agent of a testbed, where nothing is pushed, there is no such module.
        from lossratio.agent.core.neighbours import answer_to

        self._called("push_packets")
        for packet in packets:
            (frame,) = packet.arguments
            self._server.pushed.append((self._server.now, ports[0], frame))
            for target, macs in self._server.gateways.get(ports[0], {}).items():
                for mac in macs:
                    own = bytes.fromhex(mac.replace(":", ""))
                    reply = answer_to(frame, own, [(ip_address(target), ip_address(target))])
                    if reply is not None:
                        self._server.answered[ports[0]] += 1
                        if self._server.captured is not None:
                            self._server.captured.append({"port": ports[0], "origin": "RX", "binary": reply})
        return Answer([{"sent": len(packets), "ts": 0.0}])

    def start(self, ports, mult, duration, **options):
        self._called("start")
        assert not self._server.in_service
        self.pgid_stats.clear_stats(clear_flow_stats=True, clear_latency_stats=True)
        self._server.start_options.append(options)
        self._server.loads.append(float(mult))
        for port in ports:
            assert not self._server.is_transmitting(port)
            is_idle = not any(map(self._server.is_transmitting, self._server.ports))
            self._server.ports[port].ahead = self._server.ahead if is_idle else 0.0
            self._begin(self._server.ports[port], float(mult), duration, self._server.sent(port))
        self._server.now += self._server.late_answer

    def update(self, ports, mult):
        self._called("update")
        self._server.loads.append(float(mult))
        for port in ports:
            self._begin(self._server.ports[port], float(mult), -1, self._server.sent(port) - 1)

    def stop(self, ports, rx_delay_ms=None):
        self._called("stop")
        states = [self._server.ports[port] for port in ports]
        for state in states:
            state.stopped = min(state.stopped, self._server.now)
        if any(self._server.is_fixed(stream) for state in states for stream in state.streams.values()):
            self._server.latency_waits.append(rx_delay_ms)
            self._server.now += rx_delay_ms / 1e3

    def get_stats(self, ports):
        self._called("get_stats")
        if not self._server.is_event_thread_alive and self._frozen is not None:
            return self._frozen
        server, errors = self._server, self._server.errors
        stats: dict[Any, Any] = {
            port: {
                "opackets": server.sent(port) - self._reference[port][0] + server.jump,
                "ipackets": server.received(port) - self._reference[port][1],
                "ierrors": errors.get("ierrors", 0),
                "oerrors": errors.get("oerrors", 0),
            }
            for port in ports
        }
        stats["global"] = {"queue_full": errors.get("queue_full", 0)}
        stats["latency"] = {group: {key: stats[key] for key in ("latency", "err_cntrs")} for group, stats in
                            server.latency.items()}  # fmt: skip
        stats["flow_stats"] = {group: stats["frames"] for group, stats in server.latency.items()}
        if not server.latency:
            for port in ports:
                self._count_streams(port, stats)
        self._frozen = stats
        return stats

    def _count_streams(self, number: int, stats: dict[Any, Any]) -> None:
        """Divides a port's frames among its streams by their rates; the first one has what is left over."""
        server, port = self._server, self._server.ports[number]
        rates = {stream: stream.mode.pps * (1.0 if server.is_fixed(stream) else port.factor)
                 for stream in port.streams.values() if stream.flow_stats}  # fmt: skip
        into = number ^ 1
        # Frames that jumped onto the port's counter are in no stream.
        frames = {"tx_pkts": stats[number]["opackets"] - server.jump,
                  "rx_pkts": stats[into]["ipackets"] - (server.foreign if into == 1 else 0)}  # fmt: skip
        for place, stream in enumerate(rates):
            counted = stats["flow_stats"].setdefault(
                stream.flow_stats.pg_id, {"tx_pkts": {"total": 0}, "rx_pkts": {into: 0, "total": 0}}
            )
            for name, key in (("tx_pkts", "total"), ("rx_pkts", into)):
                shares = [int(frames[name] * one / sum(rates.values())) for one in rates.values()]
                shares[0] += frames[name] - sum(shares)
                counted[name][key] += shares[place]
            counted["rx_pkts"]["total"] = counted["rx_pkts"][into]
            if server.is_fixed(stream):
                stats["latency"][stream.flow_stats.pg_id] = {
                    "err_cntrs": {**server.numbers},
                    "latency": {"total_min": 10, "average": 12.0, "total_max": 20, "jitter": 1, "histogram": {10: 1}},
                }

    @property
    def conn(self):
        return Recorded(rpc=self)

    def transmit_batch(self, requests):
        self._called("get_port_stats")
        self._server.now += self._server.counter_seconds
        server, errors = self._server, self._server.errors
        assert {request.method for request in requests} == {"get_port_stats"}
        ports = [request.params["port_id"] for request in requests]
        # What is wrong with the counters becomes so when traffic begins.
        have_begun = {port: server.ports[port].began is not None for port in ports}
        return Answer(
            [
                {
                    "opackets": server.sent(port)
                    + server.jump * have_begun[port]
                    + sum(number == port for _, number, _ in server.pushed),
                    "ipackets": server.received(port) + server.answered[port],
                    "ierrors": errors.get("ierrors", 0) * have_begun[port],
                }
                for port in ports
            ]
        )

    def _begin(self, port: Port, factor: float, duration: float, sent_before: int) -> None:
        port.sent_before = sent_before
        port.factor = factor
        port.began = self._server.now + self._server.start_seconds
        port.duration = math.inf if duration < 0 else duration
        port.stopped = math.inf

    def _called(self, method: str) -> None:
        self._server.calls.append(method)
        self._server.now += self._server.answer_seconds
        if method in self._server.failures:
            raise self._server.failures[method]
