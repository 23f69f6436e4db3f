"""Open vSwitch between two interfaces: a learning switch, or OpenFlow rules, with an optional meter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lossratio.dut.base import DestinationMacs, DutCounters
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon
from lossratio.dut.linux.cores import CoreChoice
from lossratio.dut.linux.interfaces import read_links
from lossratio.dut.linux.program_dut import ProgramDut
from lossratio.dut.linux.requirements import ETHTOOL, IP, NFT, Tool
from lossratio.dut.ovs.control import OvsControl, parse_coverage, parse_meters, parse_ports, parse_socket_drops
from lossratio.dut.ovs.rules import (
    METERS,
    CardPort,
    OvsForwarding,
    OvsOptions,
    bridge_arguments,
    dpdk_settings,
    forwarding_rules,
    meter,
    meter_numbers,
    unused_rules,
)
from lossratio.errors import DutError

_PACKAGE = "openvswitch-switch"
_TOOLS = tuple(
    Tool((name, "--version"), _PACKAGE) for name in ("ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl")
)
_SS = Tool(("ss", "--version"), "iproute2")
_DATAPATH_TAP = "ovs-netdev"
_SETTLE_TIME = 0.1
"""Seconds that frames may wait in a packet socket while Open vSwitch does something else."""
_SHOWN_RULES = 20
_SIDES = ("west", "east")


class OpenVswitch(ProgramDut[OvsOptions]):
    """A private Open vSwitch with its userspace datapath.

    On interfaces of the kernel it reads packet sockets; cards it polls by DPDK, where it was built with that.
    """

    kind = "ovs"
    options_type = OvsOptions
    tools = (IP, NFT, ETHTOOL, _SS, *_TOOLS)

    @property
    def settle_time(self) -> float:
        """Seconds that frames may wait in front of it."""
        return _SETTLE_TIME

    @property
    def recovery_time(self) -> float:
        """Idle seconds until the meters' buckets are full again."""
        return self.options.recovery_time

    def check_kind(self) -> None:
        """Checks that a userspace datapath can be had: only one on a node, with TAP devices, and DPDK for cards."""
        super().check_kind()
        if _DATAPATH_TAP in read_links(self.node):
            raise DutError(
                f"{self.node.name}: a userspace Open vSwitch is there already (interface {_DATAPATH_TAP}), and a node "
                f"can have one only. Stop it, or use one path through this node."
            )
        if self.node.attempt("ip", "tuntap", "add", "dev", self.stem, "mode", "tap").exit_status != 0:
            raise DutError(
                f"{self.node.name}: Open vSwitch's userspace datapath needs TAP devices (/dev/net/tun), which take "
                f"root on the machine itself: log in as root, or build the local testbed as root."
            )
        self.node.run("ip", "tuntap", "delete", "dev", self.stem, "mode", "tap")
        if self.uses_cards and "DPDK" not in self.node.run("ovs-vswitchd", "--version"):
            raise DutError(
                f"{self.node.name}: this Open vSwitch was built without DPDK. "
                f"Install it there: apt-get install openvswitch-switch-dpdk."
            )

    def launch(self, changes: Changes, directory: str, cores: CoreChoice, west_mac: str, east_mac: str) -> list[Daemon]:
        """Starts database and switch, and makes a bridge of the two ports."""
        control = OvsControl(self.node, directory)
        changes.run(*control.create_database())
        control.database.start(changes, lambda: control.answers(control.database))
        changes.run(*control.vsctl("--no-wait", "init"))
        if self.uses_cards:
            changes.run(*control.vsctl("--no-wait", "set", "Open_vSwitch", ".", *dpdk_settings(cores)))
        # TAP devices of the datapath stay when the switch ends.
        for tap in (self.stem, _DATAPATH_TAP):
            changes.clean_up("ip", "link", "delete", "dev", tap)
        control.switch.start(changes, lambda: control.answers(control.switch))
        bridge = self.stem
        queues = self.options.queues or len(cores.workers)
        cards = tuple(CardPort(address, queues) for address in (self.west, self.east)) if self.uses_cards else ()
        changes.run(*control.vsctl(*bridge_arguments(bridge, self._ports, cards)))
        if self.options.forwarding is OvsForwarding.LEARNING:
            for port, neighbour in zip(self._ports, (west_mac, east_mac), strict=True):
                changes.run(*control.appctl("fdb/add", bridge, port, "0", neighbour))
            changes.run(*control.ofctl("add-flow", bridge, "actions=NORMAL"))
        else:
            for number in meter_numbers(self.options):
                changes.run(*control.ofctl("add-meter", bridge, meter(number, self.options)))
            changes.run(*control.ofctl("add-flows", bridge, "-"), stdin=forwarding_rules(self.options))
        return [control.database, control.switch]

    def destination_macs(self, west_mac: str, east_mac: str) -> DestinationMacs:
        """The opposite neighbour's: a switch forwards frames as they are."""
        return DestinationMacs(from_west=east_mac, from_east=west_mac)

    def facts(self) -> dict[str, Any]:
        """Version, configuration, rules and datapath, in Open vSwitch's own words."""
        control = self._control
        flows = self.node.run(*control.ofctl("dump-flows", self.stem, "--no-stats")).splitlines()
        return {
            **super().facts(),
            "version": self.node.run("ovs-vswitchd", "--version").splitlines()[0],
            "configuration": self.node.run(*control.vsctl("show")).splitlines(),
            "rules": flows[:_SHOWN_RULES],
            "number_of_rules": len(flows),
            "other_config": self.node.run(*control.vsctl("get", "Open_vSwitch", ".", "other_config")).strip(),
        }

    def read_counters(self) -> DutCounters:
        """Reads the counters of ports, meters, the datapath, and of the sockets in front of it."""
        _ = self.present
        self.check_running()
        control = self._control
        ports = parse_ports(self.node.run(*control.ofctl("dump-ports", self.stem, "--names")))
        sides = {side: self.node.find("port", name, ports) for side, name in zip(_SIDES, self._ports, strict=True)}
        return DutCounters(
            received={side: port["rx"]["pkts"] for side, port in sides.items()},
            transmitted={side: port["tx"]["pkts"] for side, port in sides.items()},
            dropped={
                **{f"{side} socket, full": self._socket_drops(name) for side, name in self._named_sides().items()},
                **{f"{side} port, going out": port["tx"]["drop"] for side, port in sides.items()},
                **self._metered(control),
                **parse_coverage(self.node.run(*control.appctl("coverage/show"))),
            },
            details={f"{side} port, rx dropped": port["rx"]["drop"] for side, port in sides.items()},
        )

    def reconfigure(self, entries: int) -> None:
        """Adds OpenFlow rules, each for a destination MAC address that no test traffic has."""
        changes = self.present.changes
        changes.run(*self._control.ofctl("add-flows", self.stem, "-"), stdin=unused_rules(entries))

    @contextmanager
    def telemetry(self) -> Iterator[dict[str, Any]]:
        """What the datapath's threads spent their time on, besides what the node tells."""
        appctl = self._control.appctl
        self.node.run(*appctl("dpif-netdev/pmd-stats-clear"))
        with super().telemetry() as told:
            yield told
        told["pmd-stats-show"] = self.node.run(*appctl("dpif-netdev/pmd-stats-show")).splitlines()
        told["dpctl/show"] = self.node.run(*appctl("dpctl/show", "--statistics")).splitlines()
        told["coverage/show"] = self.node.run(*appctl("coverage/show")).splitlines()

    @property
    def _control(self) -> OvsControl:
        _ = self.present
        return OvsControl(self.node, self.daemons[0].directory)

    @property
    def _ports(self) -> tuple[str, str]:
        """Names of the two ports of the bridge."""
        return _SIDES if self.uses_cards else (self.west, self.east)

    def _named_sides(self) -> dict[str, str]:
        return dict(zip(_SIDES, self.kernel_interfaces, strict=False))

    def _metered(self, control: OvsControl) -> dict[str, int]:
        """Frames that each meter has dropped."""
        if self.options.police is None:
            return {}
        meters = parse_meters(self.node.run(*control.ofctl("meter-stats", self.stem)))
        return {f"meter {direction}": self.node.find("meter", number, meters) for direction, number in METERS.items()}

    def _socket_drops(self, interface: str) -> int:
        return parse_socket_drops(self.node.run("ss", "-0", "-m", "-n", "-O"), interface)
