"""Open vSwitch between two interfaces: a learning switch, or OpenFlow rules, with an optional meter."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from pydantic import Field

from lossratio.dut.base import EASTWARD, SIDES, WESTWARD, DutCounters, Tool
from lossratio.dut.changes import Changes
from lossratio.dut.connection_table import ConnectionTable, TcpState
from lossratio.dut.daemon import READY_TIMEOUT, Daemon
from lossratio.dut.linux.addressing import unused_macs
from lossratio.dut.linux.cores import CoreChoice
from lossratio.dut.linux.interfaces import read_links
from lossratio.dut.linux.kernel_dut import PolicedOptions
from lossratio.dut.linux.program_dut import ProgramDut, SocketOptions
from lossratio.dut.ovs_programs import (
    OvsControl,
    parse_coverage,
    parse_meters,
    parse_pmd_statistics,
    parse_pmd_workers,
    parse_ports,
    parse_socket_drops,
)
from lossratio.dut.texts import filled, words
from lossratio.topology import EAST, WEST

_PORTS_SECONDS = round(READY_TIMEOUT)
"""Seconds that the command that adds the ports may wait, because the switch starts the cards before it answers."""
_MARGIN_SECONDS = 10.0
"""Seconds that this command may take beyond that. So its own message is the error, which says what it waited for."""

METERS: Mapping[str, int] = {EASTWARD: 1, WESTWARD: 2}
"""Numbers of the meters, by direction."""


class OvsOptions(SocketOptions, PolicedOptions):
    """The options of Open vSwitch."""

    is_router = False
    requires = (
        (
            "most_connections",
            "firewall",
            "most_connections is a limit of a firewall; also set firewall=conntrack",
        ),
    )
    excludes = (
        (
            "firewall",
            "rules police forwarding=learning",
            "a firewall has its own rules: leave out rules, police and forwarding",
        ),
        (
            "rules police",
            "forwarding=learning",
            "rules and police need OpenFlow: leave them out with forwarding=learning",
        ),
    )
    forwarding: Literal["learning", "openflow"] = "openflow"
    """``openflow`` (rules; the default) or ``learning`` (a switch that learns addresses; the set-up enters the
    neighbours' addresses)."""
    rules: int = Field(default=1, ge=1, le=60_000)
    """Number of OpenFlow rules of each direction. A single rule matches all frames of the direction. If there are more,
    each rule matches one IPv4 destination, beginning with the first host of the other side's network."""

    firewall: Literal["conntrack"] | None = None
    """``conntrack``: a firewall with state, which keeps an entry for each connection. Connections are made from the
    west only."""
    most_connections: int | None = Field(default=None, ge=1)
    """Number of connections that the firewall keeps at once (``ct-set-maxconns``)."""


_RULES = """
% if options.firewall
priority=10,in_port=1,ip,ct_state=-trk,actions=ct(table=0)
priority=10,in_port=2,ip,ct_state=-trk,actions=ct(table=0)
priority=20,in_port=1,ip,ct_state=+trk+new,actions=ct(commit),output:2
priority=20,in_port=1,ip,ct_state=+trk+est,actions=output:2
priority=20,in_port=2,ip,ct_state=+trk+est,actions=output:1
% else
% for entry, leaving, network in ways
% set actions = ("meter:%d," % entry if options.police else "") ~ "output:%d" % leaving
% if options.rules == 1
priority=10,in_port={{ entry }},actions={{ actions }}
% else
% for number in range(1, options.rules + 1)
priority=10,ip,in_port={{ entry }},nw_dst={{ network[number] }},actions={{ actions }}
% endfor
% endif
% endfor
% endif
"""
_POLLING = """
--no-wait set Open_vSwitch . other_config:dpdk-init=true other_config:dpdk-lcore-mask={{ masks[0] }}
other_config:pmd-cpu-mask={{ masks[1] }} other_config:dpdk-extra=--file-prefix=lossratio-ovs
"""
_PORTS = """
add-br {{ bridge }}
-- set bridge {{ bridge }} datapath_type=netdev fail_mode=secure protocols=OpenFlow13
other-config:disable-in-band=true
% for port, card in ports
    -- add-port {{ bridge }} {{ port }} -- set interface {{ port }} ofport_request={{ loop.index }}
    % if uses_cards
        type=dpdk options:dpdk-devargs={{ card }} options:n_rxq={{ queues }}
    % elif options.uses_af_xdp
        type=afxdp
    % endif
% endfor
"""
"""The arguments of ovs-vsctl that make the bridge and its two ports."""
_TIMEOUT, _ESTABLISHED_TIMEOUT = 30.0, 86_400.0
_MOST_CONNECTIONS = 3_000_000
_FILL_RATE = 5_000.0
"""Connections per second that the switch certainly accepts: its main thread reads packet sockets, alternating with all
its other work."""


class OvsConnections(ConnectionTable):
    """The connections of the datapath."""

    translates = is_one_way = False
    safe_rate = _FILL_RATE

    def __init__(self, control: OvsControl, most: int | None) -> None:
        self._control = control
        self.most = most or _MOST_CONNECTIONS
        self.node_name = control.node.name

    def timeout_of(self, tcp_state: TcpState | None) -> float:
        """OVS's own time-out: the same for UDP and for TCP connections that are being opened or have ended."""
        if tcp_state == "established":
            return _ESTABLISHED_TIMEOUT
        return _TIMEOUT

    def count(self) -> int:
        """Connections in the table."""
        return int(self._ask("dpctl/ct-get-nconns"))

    def forget(self) -> float:
        """Flushes the table, and returns the time that the command took, including the way to the node."""
        began = time.monotonic()
        self._ask("dpctl/flush-conntrack")
        return time.monotonic() - began

    def counters(self) -> Mapping[str, int]:
        """How often the table was full."""
        found = re.search(
            r"^conntrack_full\s.*total: (\d+)$", self._ask("coverage/show"), flags=re.MULTILINE
        )
        if found is None:
            return {}
        return {"conntrack_full": int(found[1])}

    def _ask(self, *command: str) -> str:
        return self._control.node.run(*self._control.appctl(*command))


def forwarding_rules(options: OvsOptions) -> str:
    """The rules of both directions, one on each line. A meter has the number of the port in front of it."""
    ways = ((1, 2, EAST.ipv4), (2, 1, WEST.ipv4))
    return filled(_RULES, options=options, ways=ways).lstrip()


_PACKAGE = "openvswitch-switch"
_WITH_DPDK = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
"""The program of the package openvswitch-switch-dpdk. Installing the package alone does not select this program."""
_DATAPATH_TAP = "ovs-netdev"


class OpenVswitch(ProgramDut[OvsOptions]):
    """A private Open vSwitch with its userspace datapath, which reads packet sockets or polls cards with DPDK."""

    kind = "ovs"
    options_type = OvsOptions
    # Seconds that frames may wait in a packet socket while it is busy.
    settle_time = 0.1
    software = Tool("ovs-vswitchd", _PACKAGE, title="Open vSwitch")
    tools = (
        Tool("ss", "iproute2"),
        *(Tool(name, _PACKAGE) for name in ("ovsdb-server", "ovsdb-tool", "ovs-vsctl")),
    )

    def check_kind(self) -> None:
        """Checks that a userspace datapath is possible: none runs yet, and there are TAP devices, and DPDK for cards.

        Raises:
            DutError: If another userspace datapath runs there, or TAP devices or DPDK are missing.
            NotMeasuredHereError: If the node has too few cores.
        """
        super().check_kind()
        if _DATAPATH_TAP in read_links(self.node):
            raise self.node.error(
                f"a userspace Open vSwitch already runs there (interface {_DATAPATH_TAP}), and a node can have only "
                "one. Stop it, or use one path through this node."
            )
        if (
            self.node.attempt("ip", "tuntap", "add", "dev", self.stem, "mode", "tap").exit_status
            != 0
        ):
            raise self.node.error(
                "Open vSwitch's userspace datapath needs TAP devices (/dev/net/tun), which only "
                "root on the machine itself can create: log in as root, or build the local testbed as root."
            )

        self.node.run("ip", "tuntap", "delete", "dev", self.stem, "mode", "tap")
        if self.uses_cards:
            self.check_dpdk()

    def check_dpdk(self) -> None:
        """Makes sure that the node's Open vSwitch was built with DPDK, which cards need.

        Raises:
            DutError: If it was not.
        """
        if "DPDK" not in self.node.run("ovs-vswitchd", "--version"):
            raise self.node.error(
                "this Open vSwitch was built without DPDK. Debian and Ubuntu offer one with DPDK: apt-get install "
                f"openvswitch-switch-dpdk, and then update-alternatives --set ovs-vswitchd {_WITH_DPDK}"
            )

    def launch(
        self, changes: Changes, directory: str, cores: CoreChoice, west_mac: str, east_mac: str
    ) -> list[Daemon]:
        """Starts database and switch, and makes a bridge of the two ports."""
        control = OvsControl(self.node, directory)
        changes.run("ovsdb-tool", "create", f"{directory}/conf.db")
        control.database.start(changes, lambda: control.answers(control.database))
        changes.run(*control.vsctl("--no-wait", "init"))

        if self.uses_cards:
            masks = (hex(1 << cores.main), hex(sum(1 << cpu for cpu in cores.workers)))
            changes.run(*control.vsctl(*words(_POLLING, masks=masks)))

        # The datapath's TAP devices remain when the switch ends.
        for tap in (self.stem, _DATAPATH_TAP):
            changes.clean_up("ip", "link", "delete", "dev", tap)
        control.switch.start(changes, lambda: control.answers(control.switch))
        arguments = words(
            _PORTS,
            bridge=self.stem,
            ports=list(zip(self._ports, (self.west, self.east), strict=True)),
            uses_cards=self.uses_cards,
            options=self.options,
            queues=self.options.queues or len(cores.workers),
        )
        changes.run(
            *control.vsctl(*arguments, seconds=_PORTS_SECONDS),
            timeout=_PORTS_SECONDS + _MARGIN_SECONDS,
        )

        if self.options.forwarding == "learning":
            for port, neighbour in zip(self._ports, (west_mac, east_mac), strict=True):
                changes.run(*control.appctl("fdb/add", self.stem, port, "0", neighbour))
            changes.run(*control.ofctl("add-flow", self.stem, "actions=NORMAL"))
        else:
            for number in METERS.values() if self.options.police is not None else ():
                band = f"band=type=drop,rate={self.options.police},burst_size={self.options.bucket}"
                changes.run(
                    *control.ofctl(
                        "add-meter", self.stem, f"meter={number},pktps,burst,stats,{band}"
                    )
                )
            changes.run(
                *control.ofctl("add-flows", self.stem, "-"), stdin=forwarding_rules(self.options)
            )

        if self.options.most_connections is not None:
            changes.run(
                *control.appctl("dpctl/ct-set-maxconns", str(self.options.most_connections))
            )
        return [control.database, control.switch]

    def facts(self) -> dict[str, Any]:
        """Version, configuration, rules and datapath, as Open vSwitch reports them."""
        control = self._control
        flows = self.node.run(*control.ofctl("dump-flows", self.stem, "--no-stats")).splitlines()
        version, *_ = self.node.run("ovs-vswitchd", "--version").splitlines()
        configuration = self.node.run(*control.vsctl("show")).splitlines()
        others = self.node.run(*control.vsctl("get", "Open_vSwitch", ".", "other_config"))
        return {
            **super().facts(),
            "version": version,
            "configuration": configuration,
            "rules": flows[:20],
            "number_of_rules": len(flows),
            "other_config": others.strip(),
        }

    def read_counters(self) -> DutCounters:
        """Reads the counters of ports, meters, the datapath, and the sockets in front of the datapath."""
        control = self._control
        ports = parse_ports(self.node.run(*control.ofctl("dump-ports", self.stem, "--names")))
        sockets = self.node.run("ss", "-0", "-m", "-n", "-O")
        kernels = dict(zip(SIDES, self.kernel_interfaces, strict=False))
        sides = {
            side: self.node.find("port", name, ports)
            for side, name in zip(SIDES, self._ports, strict=True)
        }
        dropped = {
            f"{side} socket, full": parse_socket_drops(sockets, name)
            for side, name in kernels.items()
        }
        for side, port in sides.items():
            dropped[f"{side} port, going out"] = port["tx"].get("drop", 0)
        if self.options.police is not None:
            meters = parse_meters(self.node.run(*control.ofctl("meter-stats", self.stem)))
            for way, number in METERS.items():
                dropped[f"meter {way}"] = self.node.find("meter", number, meters)
        dropped.update(parse_coverage(self.node.run(*control.appctl("coverage/show"))))

        details = {
            f"{side} port, rx dropped": port["rx"].get("drop", 0) for side, port in sides.items()
        }
        received = {side: port["rx"]["pkts"] for side, port in sides.items()}
        transmitted = {side: port["tx"]["pkts"] for side, port in sides.items()}
        return DutCounters(received, transmitted, dropped, details)

    @property
    def connections(self) -> OvsConnections | None:
        """The connections of the datapath."""
        options = self.options
        if options.firewall is not None:
            return OvsConnections(self._control, options.most_connections)
        return None

    def reconfigure(self, entries: int) -> None:
        """Adds OpenFlow rules for destination MAC addresses that no test traffic has."""
        rules = "".join(f"priority=5,dl_dst={mac},actions=drop\n" for mac in unused_macs(entries))
        self.present.changes.run(*self._control.ofctl("add-flows", self.stem, "-"), stdin=rules)

    @contextmanager
    def telemetry(self) -> Iterator[dict[str, Any]]:
        """The time that the datapath's threads spent on each kind of work, besides the reports of the node."""
        appctl = self._control.appctl
        self.node.run(*appctl("dpif-netdev/pmd-stats-clear"))
        with super().telemetry() as report:
            yield report
        report["pmd-stats-show"] = self.node.run(*appctl("dpif-netdev/pmd-stats-show")).splitlines()
        statistics = parse_pmd_statistics(report["pmd-stats-show"])
        report["statistics"] += statistics
        report["pmd-rxq-show"] = self.node.run(*appctl("dpif-netdev/pmd-rxq-show")).splitlines()
        report["workers"] = parse_pmd_workers(statistics, report["pmd-rxq-show"])
        report["dpctl/show"] = self.node.run(*appctl("dpctl/show", "--statistics")).splitlines()
        report["coverage/show"] = self.node.run(*appctl("coverage/show")).splitlines()

    @property
    def _control(self) -> OvsControl:
        return OvsControl(self.node, self.running.directory)

    @property
    def _ports(self) -> tuple[str, str]:
        if self.uses_cards:
            return SIDES
        return (self.west, self.east)
