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
_INTERFACE_SETTINGS = (
    "net/ipv4/conf/{}/forwarding",
    "net/ipv4/conf/{}/rp_filter",
    "net/ipv4/conf/{}/send_redirects",
    "net/ipv6/conf/{}/disable_ipv6",
    "net/ipv6/conf/{}/force_forwarding",
    "net/ipv6/conf/{}/forwarding",
)
# Not the whole command line: that may hold what belongs into no report.
_KERNEL_PARAMETERS = {
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "irqaffinity",
    "isolcpus",
    "mitigations",
    "nohz_full",
    "nosmt",
    "processor.max_cstate",
    "rcu_nocbs",
}
_OS_RELEASE = "/etc/os-release"
_CPU_INFO = "/proc/cpuinfo"


def node_facts(node: DutNode, tools: Sequence[Tool], interfaces: Sequence[str]) -> dict[str, Any]:
    """Kernel, distribution, CPUs and their governors, tool versions, and the settings of the kernel that matter.

    Args:
        node: The node.
        tools: Programs that the set-up used.
        interfaces: Interfaces that the test traffic goes through.
    """
    settings = [*_NODE_SETTINGS, *(each.format(name) for name in interfaces for each in _INTERFACE_SETTINGS)]
    return {
        "kernel": node.run("uname", "-srvm").strip(),
        "kernel_parameters": _kernel_parameters(node),
        "operating_system": _field(node, _OS_RELEASE, "PRETTY_NAME", "=").strip('"'),
        "cpu": {
            "model": _field(node, _CPU_INFO, "model name", ":"),
            "online": _text(node, "/sys/devices/system/cpu/online"),
            "numa_nodes": _text(node, "/sys/devices/system/node/online"),
            "governors": _governors(node),
        },
        "tools": tool_versions(node, tools),
        "sysctls": {
            path.removeprefix("/proc/sys/"): text
            for path, text in node.read_files(*(f"/proc/sys/{each}" for each in settings)).items()
        },
    }


def interface_facts(node: DutNode, link: Link) -> dict[str, Any]:
    """Addresses, size, driver, queues, offloads, steering and place of an interface.

    Args:
        node: The node.
        link: The interface as ``ip -json`` tells it.
    """
    name = link["ifname"]
    sysfs = f"/sys/class/net/{name}"
    told = (line.partition(": ") for line in node.attempt("ethtool", "-i", name).stdout.splitlines())
    driver = {key: value for key, _, value in told if value not in ("", "N/A")}
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


def _kernel_parameters(node: DutNode) -> list[str]:
    parameters = (_text(node, "/proc/cmdline") or "").split()
    return [each for each in parameters if each.partition("=")[0] in _KERNEL_PARAMETERS]


def _governors(node: DutNode) -> list[str]:
    return sorted(set(node.read_files("scaling_governor", under="/sys/devices/system/cpu/cpufreq").values()))


def _text(node: DutNode, path: str) -> str | None:
    return node.read_files(path).get(path)


def _field(node: DutNode, path: str, name: str, separator: str) -> str:
    lines = (_text(node, path) or "").splitlines()
    fields = (line.partition(separator) for line in lines)
    return next((value.strip() for key, _, value in fields if key.strip() == name), "unknown")
