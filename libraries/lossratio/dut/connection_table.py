"""The connections of test traffic that a DUT keeps state of: whether it keeps enough of them, and for long enough."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lossratio.errors import DutError

TcpState = Literal["syn_recv", "established", "time_wait", "close"]
"""The state of a TCP connection, as the kernel's table calls it."""


@dataclass(frozen=True)
class Established:
    """The connections that are established before a trial."""

    connections: int
    """Number of these connections."""
    to_one: int
    """The largest number of these connections that have the same destination address and port."""
    idle_s: float
    """Seconds for which a connection may be idle until the trial has ended."""
    tcp_state: TcpState | None = None
    """The state that TCP connections are in until the trial has ended; None: they are UDP connections."""

    @property
    def text(self) -> str:
        """The beginning of an error about these connections."""
        return f"{self.connections:,} connections cannot be established beforehand"


class ConnectionTable(ABC):
    """The connections of test traffic that a DUT keeps state of."""

    translates: bool
    """Whether it translates addresses."""
    is_one_way: bool
    """Whether connections are opened from the west only."""
    ports: int | None = None
    """Ports of all addresses of a NAT for connections to the same destination; None: no limit is known."""
    known_ports: int | None = None
    """Ports of all addresses of a NAT that assigns ports in a known order; None: the device is no such NAT."""
    safe_rate: float | None = None
    """Connections per second that the device certainly accepts; None: no limit is known."""
    most: int | None = None
    """The maximum number of connections that the device is set up to have at once; None: there is no such limit."""
    option_of_most: str = "most_connections"
    """The option that sets it."""
    node_name: str
    """The node of the device, for errors."""

    @abstractmethod
    def timeout_of(self, tcp_state: TcpState | None) -> float:
        """Seconds after which an idle connection is forgotten: TCP in this state, or UDP (None)."""

    def check(self, wanted: Established) -> None:
        """Checks, before any traffic is sent, that the table keeps connections until a trial ends.

        Raises:
            DutError: If there are more connections than the table keeps, or more to one destination than a NAT has
                ports, or the table would forget an idle connection.
        """
        if self.most is not None and wanted.connections > self.most:
            raise DutError(
                f"{wanted.text}: {self.node_name} keeps at most {self.most:,} at once. Raise "
                f"{self.option_of_most}, or use fewer flows."
            )
        if self.ports is not None and wanted.to_one > self.ports:
            raise DutError(
                f"{wanted.text}: {wanted.to_one:,} of them go to one address and port, but the NAT of "
                f"{self.node_name} has only {self.ports:,} ports for them. Raise nat_addresses, or send to more "
                "destinations."
            )

        timeout = self.timeout_of(wanted.tcp_state)
        if wanted.idle_s >= timeout:
            if wanted.tcp_state is None:
                kind = "UDP"
                advice = "udp_timeout"
            else:
                kind = "TCP"
                advice = "the device's time-out"

            raise DutError(
                f"{wanted.text}: {self.node_name} forgets a {kind} connection after {timeout:g} s, but here, each is "
                f"idle for up to {wanted.idle_s:.3g} s. Raise {advice}, or use fewer flows or a higher load."
            )

    @abstractmethod
    def count(self) -> int:
        """Number of its connections."""

    @abstractmethod
    def forget(self) -> float:
        """Empties the table by a command of the device, and returns the seconds that the device took."""

    @abstractmethod
    def counters(self) -> Mapping[str, int]:
        """The device's counters of failed connections, by name."""
