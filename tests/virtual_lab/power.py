"""A DUT that forwards by itself when it has booted, and says when it began."""

from __future__ import annotations

from machines import Machine

BOOTED = 60.0
"""The longest that firmware and the loading of a kernel may take, and the end of a kernel before, in seconds."""
_SCRIPT = """#!/bin/sh
set -e
ip link add lab0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0
for name in {interfaces} lab0; do
    echo 1 >/proc/sys/net/ipv6/conf/$name/disable_ipv6
    [ $name = lab0 ] || ip link set dev $name master lab0
    ip link set dev $name up
done
cut -d ' ' -f 1 /proc/uptime >/run/bridge-is-up
"""
_UNIT = """[Unit]
DefaultDependencies=no
Wants={devices}
After={devices}

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/lab-bridge

[Install]
WantedBy=sysinit.target
"""


def bridge_at_boot(machine: Machine) -> None:
    """Has a machine bridge its first two cards now, and whenever it has booted; its disk keeps that.

    The clocks of `uptime_at_bridge` then are those of the boot.
    """
    names = [machine.interface(number) for number in (0, 1)]
    script = _SCRIPT.format(interfaces=" ".join(names))
    unit = _UNIT.format(devices=" ".join(f"sys-subsystem-net-devices-{name}.device" for name in names))
    machine.write("/usr/local/sbin/lab-bridge", script)
    machine.write("/etc/systemd/system/lab-bridge.service", unit)
    machine.shell(
        "chmod +x /usr/local/sbin/lab-bridge; systemctl daemon-reload; systemctl enable --now lab-bridge; sync",
        seconds=300.0,
    )


def no_bridge_at_boot(machine: Machine) -> None:
    """Undoes `bridge_at_boot`."""
    machine.shell("systemctl disable --now lab-bridge; ip link del lab0; sync", seconds=300.0)


def uptime_at_bridge(machine: Machine) -> float:
    """Seconds from the start of the machine's kernel until it bridged."""
    return float(machine.run("cat", "/run/bridge-is-up"))
