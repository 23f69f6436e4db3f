"""The kernel's table of connections on a DUT's node (netfilter's conntrack): options, rules, counting, emptying."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import ClassVar, Literal

from pydantic import Field

from lossratio.dut.base import DurationOption, OptionRule
from lossratio.dut.connection_table import ConnectionTable, Established, TcpState
from lossratio.dut.texts import lines
from lossratio.errors import DutError
from lossratio.nodes import DutNode, reason
from lossratio.values import FileModel

Rule = Sequence[str]
"""The name of an nftables rule's counter (empty: none), the rule's conditions, and what it does."""
_MARK = 0x198180
"""Mark of the connections of test traffic: no others are counted or deleted."""
_SETTINGS = "/proc/sys/net/netfilter/nf_conntrack_"
_STATISTICS = "/proc/net/stat/nf_conntrack"
_FAILURES = ("insert_failed", "drop", "early_drop")
_FIRST_PORT = 1024
_PORTS = 1 << 16

# Not "ct state new", which matches all frames of a connection that nobody has answered yet.
_RULES = """
% set entrance = 'iifname { "%s", "%s" }' % interfaces
% set first = "%s ct mark != %d" % (entrance, mark)
% if options.firewall
    invalid | {{ entrance }} ct state invalid | drop
% endif
% if options.new_connections
    % set rate = options.new_connections
    % set burst = options.new_burst or [1, rate // 100] | max
    new_connections | {{ first }} limit rate over {{ rate }}/second burst {{ burst }} packets | drop
% endif
% if options.most_connections
    most_connections | {{ first }} ct count over {{ options.most_connections }} | drop
% endif
{{ "" }} | {{ first }} | ct mark set {{ mark }}
"""
"""The rules of the forward hook, in the columns of a `Rule`."""

_ASK = """
import socket, struct, sys, time
operation, mark = sys.argv[1], int(sys.argv[2])
filters = ((8, mark), (21, 0xFFFFFFFF))
attributes = b"".join(struct.pack("=HH", 8, kind) + value.to_bytes(4, "big") for kind, value in filters)
kind, flags = (0x101, 0x301) if operation == "count" else (0x102, 5)
packet = struct.pack("=IHHII4x", 20 + len(attributes), kind, flags, 1, 0) + attributes
netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
began = time.monotonic()
netlink.send(packet)
count = 0
while True:
    data, place = netlink.recv(1 << 20), 0
    while place < len(data):
        length, kind = struct.unpack_from("=IH", data, place)
        if kind in (2, 3):
            error = struct.unpack_from("=i", data, place + 16)[0] if kind == 2 else 0
            took = time.monotonic() - began
            sys.exit(f"netlink: error {-error}" if error else print(count if operation == "count" else took))
        count += 1
        place += length + 3 & ~3
"""
"""Deletes or counts the connections with a mark, by netlink (ctnetlink), because few nodes have a program that does
so."""


class ConntrackOptions(FileModel):
    """The options of a device that keeps state of each connection."""

    requires: ClassVar[tuple[OptionRule, ...]] = (
        (
            "most_connections new_connections",
            "firewall",
            "most_connections and new_connections are limits of a firewall; also set firewall=conntrack",
        ),
        (
            "new_burst",
            "new_connections",
            "new_burst is the bucket size of new_connections; also set new_connections",
        ),
        ("nat_addresses", "nat=snat", "nat_addresses only apply to nat=snat"),
        (
            "udp_timeout",
            "nat firewall",
            "udp_timeout belongs to nat or firewall; also set one of them",
        ),
    )
    nat: Literal["masquerade", "snat"] | None = None
    """Network address translation of frames to the east: ``masquerade`` (to the router's own address there) or ``snat``
    (to the addresses of ``nat_addresses``). Connections are made from the west only."""
    nat_addresses: int = Field(default=1, ge=1, le=1024)
    """Number of addresses of ``snat``. They are the last ones before the address of the neighbour in the east."""
    firewall: Literal["conntrack"] | None = None
    """``conntrack``: a firewall with state, which keeps an entry for each connection and drops invalid frames."""
    most_connections: int | None = Field(default=None, ge=1)
    """Number of connections that the firewall allows at once (``ct count over``)."""
    new_connections: int | None = Field(default=None, ge=1, le=1_000_000_000)
    """Rate R, in connections per second, to which a token bucket of the firewall limits new connections (``limit rate
    over``)."""
    new_burst: int | None = Field(default=None, ge=1, le=2**32 - 1)
    """Number B of connections that the full bucket holds. Default: a hundredth of ``new_connections``. N connections
    pass if and only if they come at a rate of at most R N / (N - B)."""
    udp_timeout: DurationOption | None = Field(default=None, ge=1.0, multiple_of=1.0)
    """Time after which an idle UDP connection is forgotten, in whole seconds. Default: the node's setting."""

    @property
    def keeps_connections(self) -> bool:
        """Whether the device keeps state of each connection."""
        return self.nat is not None or self.firewall is not None

    def settings(self) -> Mapping[str, str]:
        """The kernel's settings, by the paths of their files."""
        if self.udp_timeout is None:
            return {}
        return {
            f"{_SETTINGS}udp_timeout{end}": f"{self.udp_timeout:.0f}" for end in ("", "_stream")
        }

    def rules_of_connections(self, interfaces: tuple[str, str]) -> Iterator[Rule]:
        """The rules of the forward hook that drop, limit, and mark."""
        if self.keeps_connections:
            yield from lines(_RULES, options=self, interfaces=interfaces, mark=_MARK)

    def translation(self, east: str, last: IPv4Address | IPv6Address) -> str:
        """The rule that translates addresses; empty without NAT."""
        if self.nat is None:
            return ""
        translated = "masquerade"
        if self.nat == "snat":
            first = last - (self.nat_addresses - 1)
            # A range of a single address would be an error.
            pool = f"{first}-{last}" if first != last else str(last)
            family = {4: "ip", 6: "ip6"}[last.version]
            translated = f"snat {family} to {pool}"
        return f'oifname "{east}" {translated}'


class Conntrack(ConnectionTable):
    """The connections of test traffic in a node's table."""

    def __init__(self, node: DutNode, options: ConntrackOptions, renew: Callable[[], None]) -> None:
        self.node = node
        self.node_name = node.name
        self.most = options.most_connections
        self.translates = self.is_one_way = options.nat is not None
        if self.translates:
            self.ports = options.nat_addresses * (_PORTS - _FIRST_PORT)
        if options.new_connections:
            self.safe_rate = options.new_connections / 2
        self._renew = renew

    def timeout_of(self, tcp_state: TcpState | None) -> float:
        """The node's setting."""
        return float(
            self._setting("udp_timeout" if tcp_state is None else f"tcp_timeout_{tcp_state}")
        )

    def check(self, wanted: Established) -> None:
        """Checks that the table, the pool of ports and the time-out are large enough; see `ConnectionTable.check`.

        Raises:
            DutError: If one of them is too small; the message names the setting to raise.
        """
        super().check(wanted)
        room = int(self._setting("max")) - int(self._setting("count")) + self.count()
        if wanted.connections > room:
            raise DutError(
                f"{wanted.text}: the table of {self.node.name} has room for {room:,}: "
                f"nf_conntrack_max is {self._setting('max')}, and {self._setting('count')} "
                "entries are in use. Raise nf_conntrack_max on the node, or use fewer flows."
            )

    def count(self) -> int:
        """Connections of test traffic in the table."""
        # The kernel's own count is quick, and includes every connection of test traffic.
        if int(self._setting("count")) == 0:
            return 0
        return int(self._ask("count"))

    def forget(self) -> float:
        """Deletes the connections, and fills the bucket of new ones; see `ConnectionTable.forget`."""
        seconds = float(self._ask("delete"))
        self._renew()
        return seconds

    def counters(self) -> Mapping[str, int]:
        """The kernel's counters of failures since it made the table, by their names."""
        return read_conntrack(self.node)

    def _setting(self, name: str) -> str:
        path = f"{_SETTINGS}{name}"
        found = self.node.read_files(path).get(path)
        if found is None:
            raise self.node.error(
                f"the kernel does not track connections: there is no {path}. Load the module for it (modprobe "
                "nf_conntrack)."
            )
        return found

    def _ask(self, operation: str) -> str:
        done = self.node.attempt("python3", "-c", _ASK, operation, str(_MARK))
        if done.exit_status != 0:
            raise self.node.error(f"cannot {operation} connections by netlink: {reason(done)}.")
        return done.stdout


def read_conntrack(node: DutNode) -> dict[str, int]:
    """Failed connections, from the kernel's counters of all CPUs; empty if it keeps no connections."""
    header, *lines = node.read_files(_STATISTICS).get(_STATISTICS, "").splitlines() or [""]
    sums = Counter[str]()
    for line in lines:
        of_cpu = zip(header.split(), line.split(), strict=False)
        sums.update({name: int(count, 16) for name, count in of_cpu})

    return {name: sums[name] for name in _FAILURES if name in sums}
