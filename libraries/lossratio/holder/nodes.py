"""Builds the nodes' namespaces and the links between them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from lossratio.holder import child, system
from lossratio.holder.plan import LinkEnd, Plan

MTU = 9216
"""MTU of the test links, bytes."""

_FIRST_INDEX = 10
_CARRIER_TIMEOUT = 5.0
_QUIET_IPV6 = {
    "disable_ipv6": 1,
    "addr_gen_mode": 1,
    "accept_ra": 0,
    "autoconf": 0,
    "router_solicitations": 0,
    "dad_transmits": 0,
}
"""What new interfaces of a node begin with. A DUT that routes IPv6 sets ``disable_ipv6`` of its interfaces to 0; the
rest keeps the kernel from sending anything then: no link-local address, no router or neighbour solicitation."""


def build(plan: Plan, report: Callable[[Any], None]) -> None:
    """Builds all nodes and links in a process that may be spared, and reports the ids of the nodes' processes.

    The report is ``{"visible": {name: id as /proc shows it}, "own": [ids in this PID namespace]}``.

    Raises:
        OSError: If the kernel forbids it.
        BuildError: If a node or a link cannot be built.
    """
    if not plan.privileged:
        system.unshare_user(0, 0)
    keepers = {name: child.fork(partial(_be_node, name)) for name in plan.nodes}
    visible = {name: keeper.report() for name, keeper in keepers.items()}
    for name in plan.nodes:
        _enter(visible[name])
        _quiet_new_interfaces(name)
    for index, (one, other) in enumerate(plan.links):
        _enter(visible[one.node])
        _ip(plan, one.node, [_pair(index, one, other, keepers[other.node].pid)])
    for name in plan.nodes:
        _enter(visible[name])
        _start_interfaces(plan, name)
    for name in plan.nodes:
        _enter(visible[name])
        _wait_until_running(name, _interfaces(plan, name))
    report({"visible": visible, "own": [keeper.pid for keeper in keepers.values()]})


def _be_node(name: str, report: Callable[[Any], None]) -> None:
    system.unshare(system.NEW_NET | system.NEW_MOUNT | system.NEW_IPC)
    _mount_own_sys(name)
    system.mount("tmpfs", "/run", "tmpfs", system.NO_SUID | system.NO_DEVICES, "mode=755")
    report(system.visible_pid())
    while True:
        signal.pause()


def _mount_own_sys(name: str) -> None:
    """Mounts a /sys that shows the interfaces of this network namespace, rather than the machine's."""
    try:
        system.mount("sysfs", "/sys", "sysfs")
    except PermissionError:
        # Where the machine's own /sys is read-only, as in many containers, no other may be writable.
        try:
            system.mount("sysfs", "/sys", "sysfs", system.READ_ONLY)
        except OSError as error:
            raise child.BuildError(f"node {name} cannot have its own /sys ({error})") from error


def _quiet_new_interfaces(name: str) -> None:
    directory = Path("/proc/sys/net/ipv6/conf/default")
    if not directory.exists():
        return
    for setting, value in _QUIET_IPV6.items():
        try:
            (directory / setting).write_text(str(value))
        except OSError as error:
            raise child.BuildError(f"node {name}: cannot set {directory / setting}: {error.strerror}") from error


def _pair(index: int, one: LinkEnd, other: LinkEnd, other_pid: int) -> str:
    # Two ends with the same interface index, each in its own namespace, would look to the kernel like no pair, and it
    # would take note of their carrier only within a second.
    ends = (
        f"name {end.interface} index {_FIRST_INDEX + 2 * index + side} mtu {MTU}"
        + ("" if end.mac_address is None else f" address {end.mac_address}")
        for side, end in enumerate((one, other))
    )
    return f"link add {next(ends)} type veth peer {next(ends)} netns {other_pid}"


def _interfaces(plan: Plan, name: str) -> list[str]:
    return [end.interface for pair in plan.links for end in pair if end.node == name]


def _start_interfaces(plan: Plan, name: str) -> None:
    interfaces = _interfaces(plan, name)
    for interface in interfaces:
        system.switch_offloads_off(interface)
    ups = (f"link set dev {interface} addrgenmode none up" for interface in interfaces)
    _ip(plan, name, ["link set lo up", *ups])


def _wait_until_running(name: str, interfaces: list[str]) -> None:
    # A bridge leaves a port out until then.
    deadline = time.monotonic() + _CARRIER_TIMEOUT
    while waiting := [interface for interface in interfaces if not system.is_running(interface)]:
        if time.monotonic() > deadline:
            raise child.BuildError(f"node {name}: no carrier on {', '.join(waiting)}")
        time.sleep(0.002)


def _enter(visible_pid: int) -> None:
    descriptor = os.open(f"/proc/{visible_pid}/ns/net", os.O_RDONLY)
    try:
        system.enter(descriptor, system.NEW_NET)
    finally:
        os.close(descriptor)


def _ip(plan: Plan, name: str, lines: Iterable[str]) -> None:
    done = subprocess.run([plan.tools.ip, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode != 0:
        raise child.BuildError(f"node {name}: {' '.join(done.stderr.split())}")
