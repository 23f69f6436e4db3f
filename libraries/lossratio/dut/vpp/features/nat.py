"""VPP with sessions: endpoint-dependent NAT (nat44-ed), NAT whose ports follow from addresses (det44), and SFDP."""

import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Literal

from pydantic import Field

from lossratio.dut.base import DurationOption
from lossratio.dut.connection_table import ConnectionTable, TcpState
from lossratio.dut.dpdk import power_of_two
from lossratio.dut.vpp.features.feature import IDLE_SECONDS, ROUTES, Feature, Needs, Steps, Table
from lossratio.dut.vpp.reports import parse_errors
from lossratio.errors import DutError
from lossratio.topology import EAST, WEST

_PORTS = (1 << 16) - 1024
_DET44_SESSIONS_OF_HOST = 1000
_LONG_TIMEOUT = 3000.0
_END_SECONDS, _LOOK_SECONDS = 10.0, 0.01
# As in FD.io CSIT, the addresses of VPP and its neighbour are not among the hosts', so that all hosts may have
# sessions, and routes have more than 16 bits unless all 65,536 hosts have 63 each.
_ROUTED = r"""
    % set side = port.routed(4)
    % set gateways = "169.254.%d" % (18 + port.place)
    % set neighbour = gateways ~ ".2"
    set interface ip address del {{ port.interface }} {{ side.address }}/30
    set interface ip address {{ port.interface }} {{ gateways }}.1/30
    set ip neighbor {{ port.interface }} {{ neighbour }} {{ port.neighbour_mac }} static
    ip route add {{ side.network }} via {{ neighbour }} {{ port.interface }}
    % if options.table.room < 63 * 65536
        ip route add {{ side.network[0] }}/22 via {{ neighbour }} {{ port.interface }}
    % endif
"""


class Nat(Feature):
    """Address translation of frames to the east, with a session for each connection (NAT44 endpoint-dependent)."""

    nat: Literal["nat44-ed"] | None = None
    """``nat44-ed``: network address translation of frames to the east, with ``ip4``. Connections are made from the west
    only."""
    nat_addresses: int = Field(default=1, ge=1, le=1024)
    """Number of addresses of the NAT: the last addresses of the network in the east."""
    nat_sessions: int = Field(default=64_512, ge=1, le=1 << 24)
    """Number of sessions that the NAT has room for. As in FD.io CSIT, each worker has room for its share, rounded up to
    ten times a power of two. VPP chooses the worker by the host's address: with few hosts, the share of one worker may
    be full while others have room, and VPP then drops frames of new sessions. In that case, set a higher number."""
    udp_timeout: DurationOption | None = Field(default=None, ge=1.0, multiple_of=1.0)
    """Time after which the NAT forgets an idle UDP connection, in whole seconds. Default: 300 s."""

    requires = (
        (
            "nat_addresses nat_sessions udp_timeout",
            "nat",
            "nat_addresses, nat_sessions and udp_timeout apply to a NAT; also set nat=nat44-ed",
        ),
    )
    needs = Needs(("ip4",), plugins={"nat": ""}, tags=("nat44",), decides=ROUTES)
    # VPP makes the table of sessions within 300 s: millions of them, on a busy machine.
    steps = Steps(
        routed=_ROUTED,
        commands=r"""
            nat44 plugin enable sessions {{ options.sessions_of_worker(west.workers) }} | | 300
            set interface nat44 in {{ west.interface }} out {{ east.interface }}
            {{ options.table.ends[-1] }}
            % if options.udp_timeout
                set nat timeout udp {{ "%.0f" % options.udp_timeout }}
            % endif
        """,
    )

    def sessions_of_worker(self, workers: int) -> int:
        """The share of one of this many workers."""
        return 10 * power_of_two(math.ceil(self.nat_sessions / (10 * workers)))

    @property
    def table(self) -> Table | None:
        """The NAT."""
        if self.nat is None:
            return super().table
        add = f"nat44 add address {EAST.ipv4[-self.nat_addresses]} - {EAST.ipv4[-1]}"
        return Table(
            (f"{add} del", add),
            "show nat44 summary",
            r"total sessions: (\d+) \(timed out: (\d+)\)",
            self.nat_sessions,
            "nat_sessions",
            ports=self.nat_addresses * _PORTS,
            timeout=self.udp_timeout or IDLE_SECONDS,
        )


class Det44(Feature):
    """Deterministic network address translation: an inside host's ports outside follow from its address."""

    det44_hosts: int | None = Field(default=None, ge=1, le=65_536)
    """Number of hosts in the west that have ports of a deterministic NAT: a power of two, counted from the network's
    first address. With ``ip4``."""
    det44_addresses: int = Field(default=1, ge=1, le=1024)
    """Number of addresses of this NAT, a power of two: the last addresses of the network in the east."""

    requires = (
        (
            "det44_addresses",
            "det44_hosts",
            "det44_addresses applies to det44_hosts; also set det44_hosts",
        ),
    )
    excludes = (("det44_hosts", "nat", "VPP can have only one NAT: set either nat or det44_hosts"),)
    needs = Needs(("ip4",), plugins={"det44": ""}, tags=("nat44_deterministic",), decides=ROUTES)
    steps = Steps(
        routed=_ROUTED,
        commands=r"""
            det44 plugin enable
            set interface det44 inside {{ west.interface }} outside {{ east.interface }}
            set det44 timeouts udp {{ "%.0f" % options.table.timeout }}
            {{ options.table.ends[-1] }}
        """,
    )

    @property
    def table(self) -> Table | None:
        """The NAT."""
        hosts, addresses = self.det44_hosts, self.det44_addresses
        if hosts is None:
            return super().table

        inside = f"{WEST.ipv4.network_address}/{33 - hosts.bit_length()}"
        add = f"det44 add in {inside} out {EAST.ipv4[-addresses]}/{33 - addresses.bit_length()}"
        room = addresses * _PORTS
        limit = "det44_addresses"
        if room > hosts * _DET44_SESSIONS_OF_HOST:
            room = hosts * _DET44_SESSIONS_OF_HOST
            limit = "det44_hosts"

        return Table(
            (f"{add} del", add),
            "show det44 mappings",
            r"sessions number: (\d+)()",
            room,
            limit,
            known_ports=addresses * _PORTS,
            timeout=_LONG_TIMEOUT,
        )

    def problem(self) -> str | None:
        """The numbers cannot be divided."""
        hosts = self.det44_hosts or 1
        addresses = self.det44_addresses
        fit = addresses <= hosts <= addresses * _PORTS
        if fit and hosts.bit_count() == addresses.bit_count() == 1:
            return None
        return "det44_hosts and det44_addresses must be powers of two, with at least as many hosts as addresses"


class Sfdp(Feature):
    """VPP's stateful flows (SFDP): a session for each connection, and a chain of services for its frames."""

    sfdp: Literal["ip4", "l4ip4"] | None = None
    """Stateful flows (SFDP), with ``ip4``: ``ip4`` (frames are routed) or ``l4ip4`` (sessions also follow the states of
    UDP and TCP)."""
    sfdp_sessions: int = Field(default=64_512, ge=1, le=1 << 24)
    """The largest number of sessions."""

    requires = (
        ("sfdp_sessions", "sfdp", "sfdp_sessions applies to sfdp; also set sfdp=ip4 or sfdp=l4ip4"),
    )
    excludes = (
        ("sfdp", "nat det44_hosts", "sfdp is not a NAT: set only one of sfdp, nat and det44_hosts"),
        (
            "police acl",
            "sfdp",
            "{given} would have no effect: sfdp forwards frames before they reach it",
        ),
    )
    needs = Needs(
        ("ip4",), plugins={"sfdp_services": ""}, version="26.06", tags=("sfdp",), decides=ROUTES
    )
    # One tenant with the same services in both directions, and a time-out for all states.
    steps = Steps(
        startup=r"""
            % for name in ("sessions-log2", "sessions-per-thread-cache-log2")
                sfdp {{ name }} {{ options.sfdp_sessions.bit_length() + 1 }}
            % endfor
        """,
        routed=_ROUTED,
        commands=r"""
            % set services = "sfdp-l4-lifecycle ip4-lookup" if options.sfdp == "l4ip4" else "ip4-lookup"
            sfdp tenant add 1
            set sfdp services tenant 1 {{ services }} forward
            set sfdp services tenant 1 {{ services }} reverse
            % for state in ("embryonic", "established", "tcp-established", "security")
                set sfdp timeout tenant 1 {{ state }} {{ "%.0f" % options.table.timeout }}
            % endfor
            % for port in ports
                set sfdp interface-input {{ port.interface }} tenant 1
            % endfor
        """,
    )

    @property
    def table(self) -> Table | None:
        """The table of sessions."""
        if self.sfdp is None:
            return super().table
        # TCP states also end a session.
        ended = 0.0 if self.sfdp == "l4ip4" else _LONG_TIMEOUT
        return Table(
            ("kill sfdp session all",),
            "show sfdp status",
            r"\s{2}active sessions: (\d+)()",
            self.sfdp_sessions,
            "sfdp_sessions",
            timeout=_LONG_TIMEOUT,
            of_tcp=(_LONG_TIMEOUT, _LONG_TIMEOUT, ended),
        )

    @property
    def entries(self) -> int:
        """Room for the sessions, and for the sessions that each thread holds ready: a power of two."""
        if self.sfdp is None:
            return super().entries
        return max(2 << self.sfdp_sessions.bit_length(), super().entries)


class Sessions(ConnectionTable):
    """The sessions of VPP."""

    def __init__(self, name: str, table: Table, ask: Callable[[str], str]) -> None:
        self.node_name = name
        self._table = table
        self._ask = ask
        self.most = table.room
        self.option_of_most = table.limit
        self.ports = table.ports
        self.known_ports = table.known_ports
        self.translates = self.is_one_way = bool(table.ports or table.known_ports)

    def timeout_of(self, tcp_state: TcpState | None) -> float:
        """The time-out of the option, or VPP's own."""
        if tcp_state is None:
            return self._table.timeout
        established, opening, ended = self._table.of_tcp
        return {"established": established, "syn_recv": opening}.get(tcp_state, ended)

    def count(self) -> int:
        """Sessions that have not timed out.

        Raises:
            DutError: If VPP does not show them.
        """
        found = re.findall(self._table.pattern, answer := self._ask(self._table.shows))
        if not found:
            raise DutError(
                f"{self.node_name}: VPP's {self._table.shows!r} does not show its sessions: {answer.strip()[:300]}"
            )
        return sum(int(total) - int(timed_out or 0) for total, timed_out in found)

    def forget(self) -> float:
        """Ends all sessions, and waits until VPP has none.

        Returns:
            The time that this took, in seconds, including the way to the node.

        Raises:
            DutError: If VPP refuses a command.
        """
        began = time.monotonic()
        for command in self._table.ends:
            if answer := self._ask(command).strip():
                raise DutError(f"{self.node_name}: VPP refused {command!r}: {answer}.")
        while self.count() and time.monotonic() < began + _END_SECONDS:
            time.sleep(_LOOK_SECONDS)
        return time.monotonic() - began

    def counters(self) -> Mapping[str, int]:
        """VPP's error counters for its sessions."""
        errors = parse_errors(self._ask("show errors"))
        return {
            place: count
            for place, count in errors.items()
            if place.startswith(("nat44", "det44", "sfdp"))
        }
