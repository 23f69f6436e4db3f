"""Facts of a DUT's node and interfaces that a throughput depends on, as JSON data for the test report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lossratio.dut.linux.interfaces import Link
from lossratio.dut.linux.requirements import Tool, tool_versions
from lossratio.nodes import DutNode

_NODE_SETTINGS = (
    "net/bridge/bridge-nf-call-arptables",
    "net/bridge/bridge-nf-call-ip6tables",
    "net/bridge/bridge-nf-call-iptables",
    "net/core/default_qdisc",
    "net/core/dev_weight",
    "net/core/netdev_budget",
    "net/core/netdev_budget_usecs",
    "net/core/netdev_max_backlog",
    "net/core/rps_default_mask",
    "net/core/rps_sock_flow_entries",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/conf/all/send_redirects",
    "net/ipv4/ip_early_demux",
    "net/ipv4/ip_forward",
    "net/ipv6/conf/all/forwarding",
)
_UNKNOWN = "unknown"
_INTERFACE_SETTINGS = (
    "net/ipv4/conf/{}/forwarding",
    "net/ipv4/conf/{}/rp_filter",
    "net/ipv4/conf/{}/send_redirects",
    "net/ipv6/conf/{}/disable_ipv6",
    "net/ipv6/conf/{}/force_forwarding",
    "net/ipv6/conf/{}/forwarding",
)


def describe_node(node: DutNode, tools: Sequence[Tool], interfaces: Sequence[str]) -> dict[str, Any]:
    """Kernel, distribution, CPUs and their governors, tool versions, and the kernel settings that change a throughput.

    The facts that each result has are among them: `lossratio.nodes.gather_facts` gathers both.

    Args:
        node: The node.
        tools: Programs that the set-up used.
        interfaces: Interfaces of the test traffic.
    """
    gathered = node.facts()
    settings = [*_NODE_SETTINGS, *(setting.format(name) for name in interfaces for setting in _INTERFACE_SETTINGS)]
    return {
        "kernel": gathered.kernel_version,
        "kernel_parameters": list(gathered.facts.boot_parameters or ()),
        "operating_system": gathered.facts.os or _UNKNOWN,
        "cpu": {
            "model": gathered.facts.cpu_model or _UNKNOWN,
            "online": gathered.online_cpus,
            "numa_nodes": gathered.online_numa_nodes,
            "governors": list(gathered.facts.governors or ()),
        },
        "tools": tool_versions(node, tools),
        "sysctls": {
            path.removeprefix("/proc/sys/"): text
            for path, text in node.read_files(*(f"/proc/sys/{setting}" for setting in settings)).items()
        },
    }


def interface_facts(node: DutNode, link: Link) -> dict[str, Any]:
    """Addresses, size, driver, queues, offloads, steering and location of an interface.

    Args:
        node: The node.
        link: The interface in the form of ``ip -json``.
    """
    name = link["ifname"]
    sysfs = f"/sys/class/net/{name}"
    lines = (line.partition(": ") for line in node.attempt("ethtool", "-i", name).stdout.splitlines())
    driver = {key: value for key, _, value in lines if value not in ("", "N/A")}
    features = node.json("ethtool", "--json", "-k", name)[0]
    return {
        "name": name,
        "mac_address": link["address"],
        "mtu": link["mtu"],
        "state": link["operstate"],
        "qdisc": link.get("qdisc"),
        "kind": link.get("linkinfo", {}).get("info_kind"),
        "driver": driver.get("driver"),
        "driver_version": driver.get("version"),
        "firmware_version": driver.get("firmware-version"),
        "pci_address": driver.get("bus-info"),
        "numa_node": _text(node, f"{sysfs}/device/numa_node"),
        "speed_mbps": _text(node, f"{sysfs}/speed"),
        "threaded_napi": _text(node, f"{sysfs}/threaded"),
        "receive_queues": link.get("num_rx_queues"),
        "transmit_queues": link.get("num_tx_queues"),
        "rps_cpus": {
            path.split("/")[-2]: mask for path, mask in node.read_files("rps_cpus", under=f"{sysfs}/queues").items()
        },
        "offloads": sorted(name for name, state in features.items() if isinstance(state, dict) and state["active"]),
    }


def _text(node: DutNode, path: str) -> str | None:
    return node.read_files(path).get(path)
