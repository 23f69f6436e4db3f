"""Makes the kernel forward between some interfaces, and leaves all others alone as far as the kernel allows."""

from __future__ import annotations

from collections.abc import Sequence

from lossratio.dut.changes import Changes
from lossratio.dut.linux.interfaces import read_routes
from lossratio.errors import DutError
from lossratio.nodes import DutNode

_IPV4 = "/proc/sys/net/ipv4/conf"
_IPV6 = "/proc/sys/net/ipv6/conf"


def check_forwarding(node: DutNode, ip_version: int) -> None:
    """Checks that the kernel can be made to forward without losing its own default route.

    Raises:
        DutError: If it cannot.
    """
    if ip_version == 4:
        return
    if not node.read_files(f"{_IPV6}/all/forwarding"):
        raise DutError(f"{node.name}: the kernel has no IPv6 (disabled at boot?); use ip_version=4.")
    if _forwards_by_interface(node):
        return
    for route in read_routes(node):
        if route["dst"] == "default" and route.get("protocol") == "ra":
            raise DutError(
                f"{node.name}: its IPv6 default route through {route['dev']} comes from router advertisements, "
                f"and this kernel drops such routes when IPv6 forwarding is switched on (6.17 and later need not). "
                f"Give the node a static default route."
            )


def enable_forwarding(changes: Changes, node: DutNode, interfaces: Sequence[str], ip_version: int) -> None:
    """Switches forwarding on for the interfaces; redirects, source validation and automatic configuration off.

    Raises:
        DutError: If the kernel refuses it.
    """
    if ip_version == 4:
        _enable_ipv4(changes, interfaces)
    else:
        _enable_ipv6(changes, node, interfaces)


def _enable_ipv4(changes: Changes, interfaces: Sequence[str]) -> None:
    # Of these two the kernel takes the stricter of "all" and the interface's own. The global ip_forward is not touched:
    # it would make a router of every interface, and reset their other settings.
    for scope in ("all", *interfaces):
        changes.write(f"{_IPV4}/{scope}/rp_filter", "0")
        changes.write(f"{_IPV4}/{scope}/send_redirects", "0")
    for name in interfaces:
        changes.write(f"{_IPV4}/{name}/forwarding", "1")
        changes.write(f"{_IPV6}/{name}/disable_ipv6", "1", optional=True)


def _enable_ipv6(changes: Changes, node: DutNode, interfaces: Sequence[str]) -> None:
    for name in interfaces:
        changes.write(f"{_IPV6}/{name}/accept_ra", "0")
        changes.write(f"{_IPV6}/{name}/accept_dad", "0")
        changes.write(f"{_IPV6}/{name}/disable_ipv6", "0")
    if _forwards_by_interface(node):
        for name in interfaces:
            changes.write(f"{_IPV6}/{name}/force_forwarding", "1")
        return
    # Older kernels only forward if all interfaces do, and switching that back sets every interface to the same.
    every = f"{_IPV6}/all/forwarding"
    for path, value in node.read_files("forwarding", under=_IPV6).items():
        if path != every:
            changes.write_back(path, value)
    changes.write(every, "1")


def _forwards_by_interface(node: DutNode) -> bool:
    return bool(node.read_files(f"{_IPV6}/all/force_forwarding"))
