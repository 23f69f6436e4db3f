# SPDX-License-Identifier: Apache-2.0
"""TRex as a generator of connections, in its advanced stateful mode (ASTF): it is both ends, with its own stack.

Each trial is a profile of one template: a program for the Initiator, one for the Responder, and this many connections.
Its counters say how many connections both ends have completed.
"""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from ipaddress import IPv4Address
from typing import Any, Callable, Mapping, NamedTuple

from ..core.configuration import Configuration
from ..core.frames_spec import FramesSpec
from ..core.headers import TCP, UDP
from ..core.pacing import COUNTING, raise_priority
from ..core.passes import LEAST_SILENT
from ..core.plan import ABILITIES, CONNECTIONS, FRAMES, Answer, Control, Exchange, Plan
from ..core.ports import Ports
from ..core.protocol import AgentError, Check, Message, unsupported
from ..core.wire import FCS_BYTES
from .connection import TrexConnection, TrexLibrary, TrexSettings

_POLL_SECONDS = 5e-3
_BEGIN_SECONDS = 2.0
_OPEN_SECONDS = 3600
_MOST_PORTS = 64_000
FULL = 0.95
"""Share of TRex's memory for connections above which it silently opens no more connections."""
_OWN_FAULTS = ("err_c_nf_throttled", "err_s_nf_throttled", "err_flow_overflow", "err_no_memory", "err_c_tuple_err")
"""TRex's own errors: it could not hold this many connections."""
_FAULTS_OF_PATH = ("err_cwf", "err_no_syn", "err_no_template", "err_l3_cs", "err_l4_cs", "err_len_err")
"""Errors of arriving frames: they belong to no open connection, or are damaged."""
_SENT_AGAIN = ("tcps_rexmttimeo_syn", "tcps_rexmttimeo", "tcps_sndrexmitpack")
_OTHER_PASSES, _OF_TCP = 6, 4
"""The maximum number of successive frames over a connection besides data, and how many of them are TCP's."""
_PASS_SECONDS = 10e-3
"""Time for one of these frames to be sent and to arrive. TRex's stack needs half of that in software mode."""
_STALL_SECONDS = 1.0
"""Time for which other work may stop TRex in software mode, or a device beside it. Connections that only become
complete within that time are late."""
_NOT_YET = "should be one of following"
"""TRex's words if it has not ended the earlier traffic yet."""


class _Ends(NamedTuple):
    """Addresses and port of both ends, and the bytes of the transport's payload."""

    clients: tuple[str, str]
    servers: tuple[str, str]
    port: int
    is_tcp: bool
    payload: int
    hosts: int


class _Opening(NamedTuple):
    """How the connections of a trial were opened; times are those of the connection's clock."""

    counted: _Counted
    """TRex's counters after that."""
    done: int
    """How many connections were complete one look before."""
    elapsed: float
    """Seconds in which they were opened."""
    due: float
    """When the last one was due."""
    latest: float
    """When opening them ends at the latest."""


class AstfConnection(TrexConnection):
    """A client of the advanced stateful mode, which has all ports of the server."""

    _client_class = "ASTFClient"

    def forget(self) -> None:
        """Ends all connections at once: nothing more is sent over them."""
        self._call("forget all connections", self._client.reset)

    def open(self, load: float, seconds: float) -> None:
        """Opens connections of the profile for this many seconds, once TRex has ended the earlier traffic.

        On a busy machine, it may report that it has stopped while it still cleans up.
        """
        deadline = self.clock() + _BEGIN_SECONDS
        while True:
            try:
                self._call("open connections", self._client.start, mult=load, duration=seconds, nc=True)
                return
            except AgentError as error:
                if _NOT_YET not in str(error) or self.clock() > deadline:
                    raise
            self.sleep(_POLL_SECONDS)
            self._call("stop", self._client.stop)

    def _take_ports(self) -> None:
        self._call("acquire the ports", self._client.acquire, force=self.settings.is_ours)
        self.forget()


class AstfGenerator:
    """Opens connections, and answers over them, with a TRex server.

    TRex chooses the source ports: a client's ports count up from 1024. The number of lost connections is at
    least the number of segments that TRex's stack had to send again.
    """

    def __init__(
        self,
        configuration: Configuration,
        settings: TrexSettings,
        library: TrexLibrary,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._direction = configuration.directions[0]
        self._ends = _ends_of(configuration, settings)
        self._settle_time = configuration.settle_time
        self._settings = settings
        self._api = library.api
        self._client_port = settings.ports[self._direction.transmit]
        self._links = Ports(configuration) if settings.uses_linux else None
        raise_priority(COUNTING)
        self._connection = AstfConnection(library, settings, clock, sleep)

        with ExitStack() as undo:
            undo.callback(self._connection.close)
            self._info = self._connection.port_info()
            if self._direction.destination_mac is not None:
                self._lead(self._direction.destination_mac)
            undo.pop_all()

    def facts(self) -> Message:
        """The server's version, where the client comes from, and the ports."""
        ports = {}
        for name, number in self._settings.ports.items():
            info = self._info[number]
            ports[name] = {"mac": info.get("hw_mac"), "driver": info.get("driver")}

        return {
            "generator": "trex",
            "can": [CONNECTIONS],
            "mode": "ASTF",
            "version": self._connection.version(),
            "client": self._connection.origin,
            "connects_only": True,
            "integrity": {"in_trials": True, "checked": ["whole connections"], "not_checked": []},
            "ports": ports,
        }

    def run(self, plan: Plan, control: Control) -> Answer:
        """See `Generator.run`. TRex answers at once, so that the rate of answers is the load."""
        check = control.check
        exchange = plan.exchange
        if not plan.steps:
            # A connection that is established late does not belong to the next trial.
            return Answer([], late={self._direction.name: [0]})
        if exchange is None:
            raise unsupported(f"This generator cannot {ABILITIES[FRAMES]}. Use 'kind: afpacket'.")
        load, count = plan.load, plan.connections
        if exchange.answers != "opened":
            raise unsupported("TRex can only answer over connections that it opens itself. Use 'kind: afpacket'.")
        self._check(count, exchange)
        connection = self._connection
        passes = _OTHER_PASSES + 2 * exchange.data_frames
        needed = _PASS_SECONDS * (passes if self._ends.is_tcp else passes - _OF_TCP)
        if self._links is not None:
            self._links.mark()
        connection.call("load a profile", "load_profile", _profile(self._api, self._ends, count, exchange))
        connection.call("clear its counters", "clear_stats")
        # It opens no more than `count`, and cuts off connections that are open when its time ends.
        longest = _BEGIN_SECONDS + 2.0 * count / load + passes * self._settle_time
        connection.open(load, longest)

        try:
            opening = self._watch_opening(load, count, exchange, longest, check)
            allowed = opening.due + self._settings.late_end + needed
            end = opening.due + count / load + passes * self._settle_time
            if exchange.is_complete:
                # Only the number of connections matters, and not their rate, so TRex may use all of its time.
                allowed = math.inf
                end = opening.latest
            counted, in_time, progress = self._watch_completion(opening, exchange, allowed, end, check)
        finally:
            connection.call("stop", "stop")

        if counted.complete < count or self._counted(exchange).active:
            # Leftovers of a failed trial would be sent again in the next one.
            connection.forget()

        if self._links is not None:
            self._links.after()
        self._check_faults(counted)
        # A second retransmission does not mean that another connection was incomplete in time.
        whole = max(counted.complete, in_time)
        # Connections that would have continued at the end are also late.
        late = (whole if progress + self._settle_time < end else counted.opened) - in_time

        return Answer([self._counters(counted, count, whole, late, load, opening.elapsed)])

    def _watch_opening(self, load: float, count: int, exchange: Exchange, longest: float, check: Check) -> _Opening:
        """Waits until all connections are open, or their time is over; `longest` is the time of the whole trial."""
        clock = self._connection.clock
        began = seen = clock()
        due = latest = began + _BEGIN_SECONDS
        counted = _Counted({}, self._ends, exchange, 0)
        done = 0

        while counted.opened < count and clock() < latest:
            self._connection.sleep(_POLL_SECONDS)
            check()
            before = seen
            seen = clock()
            was_silent = not counted.opened
            done = counted.complete
            counted = self._counted(exchange)
            if was_silent and counted.opened:
                began = before
                due = before + max(0, count - 1) / load
                latest = before + longest if exchange.is_complete else due + self._settings.late_end
        return _Opening(counted, done, seen - began, due, latest)

    def _watch_completion(
        self, opening: _Opening, exchange: Exchange, allowed: float, end: float, check: Check
    ) -> tuple[_Counted, int, float]:
        """Waits until all open connections are complete, or none makes progress.

        Args:
            opening: The connections.
            exchange: The exchange over them.
            allowed: When connections must be complete to be in time.
            end: When the trial ends.
            check: See `Generator.run`.

        Returns:
            The last counters; how many connections were complete in time; and when the last one became complete.
        """
        clock = self._connection.clock
        progress = clock()
        counted = opening.counted
        # If TRex answers late, it is not known when the last connections became complete.
        in_time = counted.complete if clock() < allowed else opening.done
        patience = self._settings.late_end + self._settle_time
        if self._links is not None:
            patience += _STALL_SECONDS

        while counted.complete < counted.opened and clock() < min(end, progress + patience):
            self._connection.sleep(_POLL_SECONDS)
            check()
            done = counted.complete
            counted = self._counted(exchange)
            if clock() < allowed:
                in_time = counted.complete
            if counted.complete > done:
                progress = clock()
        return counted, in_time, progress

    def close(self) -> None:
        """See `Generator.close`."""
        self._connection.close()

    def _lead(self, mac: str) -> None:
        """Sends the Initiator's frames to a next hop; the Responder answers to where they come from."""
        ports = [self._client_port]
        self._connection.call("enter service mode", "set_service_mode", ports=ports, enabled=True)
        self._connection.call("set the next hop", "set_l2_mode", port=self._client_port, dst_mac=mac)
        self._connection.call("leave service mode", "set_service_mode", ports=ports, enabled=False)

    def _check(self, count: int, exchange: Exchange) -> None:
        most = min(int(FULL * self._settings.most_connections), self._ends.hosts * _MOST_PORTS)
        if count > most:
            raise unsupported(
                f"From {self._ends.hosts} source addresses, TRex can keep {most:,} connections, but this trial needs "
                f"{count:,}. Use fewer connections, raise the generator's 'most_connections' in the topology file, "
                "or use a traffic profile with more source addresses."
            )
        if exchange.data_frames and self._ends.is_tcp and exchange.closing is None:
            raise unsupported(
                "TRex does not say which open connections have received all data. Close them, with closing=fin or rst."
            )

    def _counted(self, exchange: Exchange) -> _Counted:
        return _Counted(self._connection.stats(), self._ends, exchange, self._client_port)

    def _check_faults(self, counted: _Counted) -> None:
        own = counted.faults(_OWN_FAULTS)
        if own:
            raise AgentError(
                "memory",
                f"TRex could not hold so many connections ({_in_words(own)}). This says nothing about the device. "
                "Use fewer connections, or open them at a lower rate.",
            )
        if counted.accepted >= LEAST_SILENT and not counted.returned:
            met = _in_words(counted.faults(_FAULTS_OF_PATH)) or "nothing came back"
            raise AgentError(
                "asymmetric",
                f"{counted.accepted} connections arrived at {self._direction.receive}, but none came back to "
                f"{self._direction.transmit} over its own connection ({met}). The path back is different "
                "(asymmetric), or the device forgets them: its table is full, or its time-out is too short. Look at "
                "the return routes, and at the device's table.",
            )

    def _counters(self, counted: _Counted, count: int, whole: int, late: int, load: float, elapsed: float) -> Message:
        sent = max(0, counted.sent - late)
        complete = max(0, min(whole - late, sent))
        # Record: the counters of connections.
        return {
            "name": self._direction.name,
            "intended_frames": count,
            "sent_frames": sent,
            "received_frames": complete,
            "unsent_frames": count - sent,
            "generator_drop_frames": counted.dropped,
            "late_frames": 0,
            "load_ratio": 1.0,
            "elapsed_s": max(elapsed, count / load),
            "stretch_s": max(0.0, elapsed - count / load),
            "unanswered_frames": max(0, min(counted.accepted - late, sent) - complete),
            "examination": None,
        }


class _Counted:
    """TRex's counters of the connections of one trial, from all of its counters."""

    def __init__(self, stats: Mapping[Any, Any], ends: _Ends, exchange: Exchange, client_port: int) -> None:
        traffic = stats.get("traffic", {})
        self._client: Mapping[str, float] = traffic.get("client", {})
        self._server: Mapping[str, float] = traffic.get("server", {})
        self._is_tcp = ends.is_tcp
        self._exchange = exchange
        ports = [stats[port] for port in stats if isinstance(port, int)]
        self.dropped = sum(int(port["ierrors"]) for port in ports)
        self.opened = self._of(self._client, "tcps_connattempt" if ends.is_tcp else "udps_connects")
        self._again = sum(self._of(end, name) for end in (self._client, self._server) for name in _SENT_AGAIN)
        self.sent = 0

        if stats:
            there = stats[client_port + 1]
            here = stats[client_port]
            ways = ((here, there), (there, here))
            missing = sum(max(0, int(source["opackets"]) - int(sink["ipackets"])) for source, sink in ways)
            # Retransmissions when nothing was missing only show that TRex itself was late.
            self.sent = min(self.opened, int(here["opackets"])) - max(0, self._again - missing)

        self.accepted = self._of(self._server, "tcps_accepts" if ends.is_tcp else "udps_accepts")

    @property
    def complete(self) -> int:
        """Number of connections that both ends have completed, minus the retransmitted segments."""
        if not self._is_tcp:
            # An Initiator that has got all answers closes, while the others wait.
            return self._of(self._client, "udps_closed")
        done = min(self._of(end, "tcps_connects") for end in (self._client, self._server))
        if self._exchange.closing is not None:
            done = self._of(self._server, "tcps_closed")
        return max(0, min(done, self.opened - self._again))

    @property
    def returned(self) -> int:
        """Connections over which the Initiator has got at least one answer."""
        return self._of(self._client, "tcps_connects" if self._is_tcp else "udps_rcvpkt")

    @property
    def active(self) -> int:
        return self._of(self._client, "m_active_flows") + self._of(self._server, "m_active_flows")

    def faults(self, names: tuple[str, ...]) -> dict[str, int]:
        sums = {name: self._of(self._client, name) + self._of(self._server, name) for name in names}
        return {name: count for name, count in sums.items() if count}

    def _of(self, end: Mapping[str, float], name: str) -> int:
        return int(end.get(name, 0))


def _profile(api: Any, ends: _Ends, count: int, exchange: Exchange) -> Any:
    """TRex's profile of an exchange over this many connections."""
    client, server = (api.ASTFProgram(stream=ends.is_tcp) for _ in range(2))
    data = "x" * ends.payload
    if ends.is_tcp:
        client.connect()
        server.accept()
        for _ in range(exchange.data_frames):
            for one, other in ((client, server), (server, client)):
                one.send(data)
                other.recv(len(data), clear=True)

        if exchange.closing is None:
            client.delay(1_000_000 * _OPEN_SECONDS)
            server.delay(1_000_000 * _OPEN_SECONDS)
        else:
            if exchange.closing == "rst":
                client.reset()
            server.wait_for_peer_close()
    else:
        for program in (client, server):
            # Otherwise, TRex would end connections that wait for an answer, and count them like the others.
            program.set_keepalive_msg(1000 * _OPEN_SECONDS)
        for _ in range(1 + exchange.data_frames):
            for one, other in ((client, server), (server, client)):
                one.send_msg(data)
                other.recv_msg(1, clear=True)

    generators = {
        name: api.ASTFIPGenDist(ip_range=list(both), distribution="seq")
        for name, both in (("dist_client", ends.clients), ("dist_server", ends.servers))
    }
    addresses = api.ASTFIPGen(glob=api.ASTFIPGenGlobal(ip_offset=str(IPv4Address(0))), **generators)
    options: dict[str, Any] = {}
    if ends.is_tcp:
        settings = api.ASTFGlobalInfo()
        # Without timestamps, the header has the length that the traffic profile assumes.
        settings.tcp.do_rfc1323 = 0
        settings.tcp.mss = max(ends.payload, 1)
        options = {"default_c_glob_info": settings, "default_s_glob_info": settings}

    opening = api.ASTFTCPClientTemplate(program=client, ip_gen=addresses, port=ends.port, cps=1.0, limit=count)
    answering = api.ASTFTCPServerTemplate(program=server, assoc=api.ASTFAssociationRule(port=ends.port))
    template = api.ASTFTemplate(client_template=opening, server_template=answering)
    return api.ASTFProfile(default_ip_gen=addresses, templates=template, **options)


def _in_words(faults: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in faults.items())


def _ends_of(configuration: Configuration, settings: TrexSettings) -> _Ends:
    """What frames say about the ends of their connections; raises AgentError if TRex cannot open them."""
    direction = configuration.directions[0]
    frames = direction.frames
    sink = settings.ports[direction.receive]
    is_ours = settings.ports[direction.transmit] % 2 == 0 and sink == settings.ports[direction.transmit] + 1
    if not (len(configuration.directions) == 1 and is_ours and not settings.neighbours):
        raise unsupported(
            "TRex opens connections in one direction on one link, from its first port to its second, without "
            "gateways. Use such a topology, or 'kind: afpacket'."
        )

    has_udp = any(checksum.is_udp for checksum in frames.checksums)
    start, end = frames.addresses[0] if len(frames.addresses) == 1 else (0, 0)
    if start != 26 or end != 34 or not (has_udp or frames.handshake) or len(frames.sizes) != 1:
        raise unsupported(
            "TRex opens connections with UDP or TCP over IPv4, with frames of one size, without tags or tunnels. "
            "Use such a traffic profile, for example ethip4-udp-connections, or 'kind: afpacket'."
        )

    values = [_values(frames, place, width) for place, width in ((start, 4), (start + 4, 4), (end + 2, 2))]
    clients, servers = ((str(IPv4Address(first)), str(IPv4Address(last))) for first, last in values[:2])
    headers = end + (UDP if has_udp else TCP).length
    hosts = values[0][1] - values[0][0] + 1

    return _Ends(clients, servers, values[2][0], not has_udp, frames.max_size - FCS_BYTES - headers, hosts)


def _values(frames: FramesSpec, place: int, width: int) -> tuple[int, int]:
    """The lowest and the highest value of a field."""
    for field in frames.fields:
        if field.offset == place:
            return field.first, max(field.values, default=field.first + field.count - 1)
    value = int.from_bytes(bytes.fromhex(frames.header)[place : place + width], "big")
    return value, value
