"""VPP as a NAT: nat44-ed, which keeps sessions by both ends, and det44, whose ports follow from the inside address."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Literal

from pydantic import Field

from lossratio.dut.base import ConnectionTable, DurationOption, Established, TcpState
from lossratio.dut.vpp.features.feature import Command, Feature, Needs, Ports, VppForwarding, VppPort
from lossratio.dut.vpp.reports import parse_errors
from lossratio.errors import DutError
from lossratio.topology import EAST, WEST

_PORTS = (1 << 16) - 1024
_DET44_SESSIONS_OF_HOST = 1000
_TIMEOUT = 300.0
_TCP_ESTABLISHED, _TCP_TRANSITORY = 7440.0, 240.0
_TABLE_SECONDS = 300.0
"""Seconds in which VPP makes the table of sessions, for millions on a busy machine."""
_GATEWAYS = {WEST: IPv4Network("169.254.18.0/30"), EAST: IPv4Network("169.254.19.0/30")}
"""VPP's address and its neighbour's are none of the hosts, as in FD.io CSIT: all hosts may have sessions."""


@dataclass(frozen=True)
class Translation:
    """A NAT as its table of sessions sees it."""

    add: str
    """The command that makes it translate; with ``del`` behind it, all sessions end."""
    shows: str
    """The command that shows the number of sessions."""
    pattern: str
    """Regular expression of that number, and of the number of those that have timed out."""
    ports: int
    """Ports of all of its addresses."""
    room: int
    """Most sessions."""
    is_shared: bool
    """Whether sessions with different destinations may share a port."""
    timeout: float = _TIMEOUT
    """Seconds after which it forgets an idle UDP connection."""


class _Translating(Feature):
    def routed(self, port: VppPort) -> Iterator[Command]:
        """A route to the hosts behind a port, none of which is VPP or its neighbour."""
        side, (_, address, neighbour, _) = port.routed(4), _GATEWAYS[port.side]
        yield Command(f"set interface ip address del {port.interface} {side.address}/30")
        yield Command(f"set interface ip address {port.interface} {address}/30")
        yield Command(f"set ip neighbor {port.interface} {neighbour} {port.neighbour_mac} static")
        yield Command(f"ip route add {side.network} via {neighbour} {port.interface}")

    @property
    def translation(self) -> Translation | None:
        """The NAT; None: there is none."""
        return None

    @property
    def entries(self) -> int:
        """The sessions."""
        return max(0 if self.translation is None else self.translation.room, super().entries)


class Nat(_Translating):
    """Network address translation of what goes east, with a session for each connection (NAT44 endpoint-dependent)."""

    nat: Literal["nat44-ed"] | None = None
    """``nat44-ed``: network address translation of what goes east, with ``ip4``. Connections are made from the west
    only."""
    nat_addresses: int = Field(default=1, ge=1, le=1024)
    """Addresses of the NAT: the last ones of the east's network."""
    nat_sessions: int = Field(default=64_512, ge=1, le=1 << 24)
    """Sessions that each worker has room for."""
    udp_timeout: DurationOption | None = Field(default=None, ge=1.0)
    """Time after which the NAT forgets an idle UDP connection, in whole seconds; where missing, 300 s."""

    needs = Needs((VppForwarding.IP4,), plugins={"nat": ""}, tags=("nat44",))

    @property
    def translation(self) -> Translation | None:
        """The NAT."""
        if self.nat is None:
            return super().translation
        return Translation(
            f"nat44 add address {EAST.ipv4[-self.nat_addresses]} - {EAST.ipv4[-1]}",
            "show nat44 summary",
            r"total sessions: (\d+) \(timed out: (\d+)\)",
            self.nat_addresses * _PORTS,
            self.nat_sessions,
            is_shared=True,
            timeout=self.udp_timeout or _TIMEOUT,
        )

    def problem(self) -> str | None:
        """Options without a NAT, and a part of a second."""
        if self.nat is None:
            return "nat_addresses, nat_sessions and udp_timeout are of a NAT; give nat=nat44-ed"
        if self.udp_timeout is not None and not self.udp_timeout.is_integer():
            return "udp_timeout is in whole seconds"
        return None

    def commands(self, ports: Ports) -> Iterator[Command]:
        """Translation between both ports."""
        west, east = (port.interface for port in ports)
        yield Command(f"nat44 plugin enable sessions {self.nat_sessions}", seconds=_TABLE_SECONDS)
        yield Command(f"set interface nat44 in {west} out {east}")
        if self.translation is not None:
            yield Command(self.translation.add)
        if self.udp_timeout is not None:
            yield Command(f"set nat timeout udp {self.udp_timeout:.0f}")


class Det44(_Translating):
    """Deterministic network address translation: an inside host's ports outside follow from its address."""

    det44_hosts: int | None = Field(default=None, ge=1, le=65_536)
    """Hosts in the west, from the first address of its network on, that have ports of a deterministic NAT; a power of
    two, with ``ip4``."""
    det44_addresses: int = Field(default=1, ge=1, le=1024)
    """Addresses of this NAT: the last ones of the east's network; a power of two."""

    needs = Needs((VppForwarding.IP4,), plugins={"det44": ""}, tags=("nat44_deterministic",))

    @property
    def translation(self) -> Translation | None:
        """The NAT."""
        hosts, addresses = self.det44_hosts, self.det44_addresses
        if hosts is None:
            return super().translation
        inside = f"{WEST.ipv4.network_address}/{33 - hosts.bit_length()}"
        return Translation(
            f"det44 add in {inside} out {EAST.ipv4[-addresses]}/{33 - addresses.bit_length()}",
            "show det44 mappings",
            r"sessions number: (\d+)()",
            addresses * _PORTS,
            min(addresses * _PORTS, hosts * _DET44_SESSIONS_OF_HOST),
            is_shared=False,
        )

    def problem(self) -> str | None:
        """Numbers that cannot be divided, and another NAT."""
        hosts, addresses = self.det44_hosts, self.det44_addresses
        if hosts is None:
            return "det44_addresses are those of det44_hosts; give that, too"
        if any(number & (number - 1) for number in (hosts, addresses)) or not addresses <= hosts <= addresses * _PORTS:
            return "det44 divides ports evenly: det44_hosts and det44_addresses are powers of two, and hosts are more"
        return "a VPP has one NAT: nat or det44_hosts" if getattr(self, "nat", None) else None

    def commands(self, ports: Ports) -> Iterator[Command]:
        """Translation between both ports."""
        west, east = (port.interface for port in ports)
        yield Command("det44 plugin enable")
        yield Command(f"set interface det44 inside {west} outside {east}")
        if self.translation is not None:
            yield Command(self.translation.add)


class NatSessions(ConnectionTable):
    """The sessions of a NAT."""

    translates = is_one_way = True
    safe_rate = None

    def __init__(self, name: str, translation: Translation, ask: Callable[[str], str]) -> None:
        self._name, self._translation, self._ask = name, translation, ask

    def timeout_of(self, tcp_state: TcpState | None) -> float:
        """The option's, or VPP's own."""
        if tcp_state is None:
            return self._translation.timeout
        return _TCP_ESTABLISHED if tcp_state == "established" else _TCP_TRANSITORY

    def check(self, wanted: Established) -> None:
        """Checks that the table, the pool of ports and the time-out are large enough; see `ConnectionTable.check`."""
        nat, reason = self._translation, None
        to_one = wanted.to_one if nat.is_shared else wanted.connections
        if wanted.connections > nat.room:
            reason = f"{self._name} has room for {nat.room:,} sessions; raise nat_sessions or det44_addresses"
        elif to_one > nat.ports:
            reason = f"{to_one:,} need a port each, and the NAT of {self._name} has {nat.ports:,}; raise nat_addresses"
        if reason is not None:
            raise DutError(f"{wanted.text}: {reason}.")
        wanted.check_idle(self._name, self)

    def count(self) -> int:
        """Sessions that have not timed out."""
        found = re.findall(self._translation.pattern, answer := self._ask(self._translation.shows))
        if not found:
            raise DutError(
                f"{self._name}: VPP's {self._translation.shows!r} does not show its sessions: {answer.strip()[:300]}"
            )
        return sum(int(total) - int(timed_out or 0) for total, timed_out in found)

    def forget(self) -> float:
        """Takes the addresses away, and gives them back; the time is that of both commands, with the way there."""
        began = time.monotonic()
        for command in (f"{self._translation.add} del", self._translation.add):
            if answer := self._ask(command).strip():
                raise DutError(f"{self._name}: VPP refused {command!r}: {answer}.")
        return time.monotonic() - began

    def counters(self) -> Mapping[str, int]:
        """VPP's counters of errors of its NAT."""
        errors = parse_errors(self._ask("show errors"))
        return {place: count for place, count in errors.items() if place.startswith(("nat44", "det44"))}
