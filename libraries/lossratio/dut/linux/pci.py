"""Network cards that a program takes from the kernel: bound to another driver, and later to the earlier one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lossratio.dut.changes import Changes
from lossratio.dut.linux.interfaces import check_interfaces
from lossratio.errors import DutError
from lossratio.nodes import DutNode

_DEVICES = "/sys/bus/pci/devices"
_PROBE = "/sys/bus/pci/drivers_probe"
_NO_OVERRIDE = "\n"
_BIFURCATED = ("mlx4_core", "mlx5_core")
"""Drivers whose cards are used by programs and by the kernel together."""
_USUAL_DRIVER = "vfio-pci"
_MEBI = 1024


def card_driver(driver: str | None, uio_driver: str | None) -> str:
    """The driver that a card is bound to for a program.

    Args:
        driver: The interface's driver in the topology file, which may also be the kernel's own driver.
        uio_driver: The node's driver in the topology file, for all of its cards.
    """
    if driver is not None and driver in _BIFURCATED:
        return driver
    return uio_driver or driver or _USUAL_DRIVER


def check_pci(node: DutNode, address: str, driver: str) -> None:
    """Checks that a card can be taken from the kernel, and has no other use.

    Raises:
        DutError: If the card or the driver is missing, or the card's interface has another use; names the use.
    """
    if node.attempt("test", "-d", f"{_DEVICES}/{address}").exit_status != 0:
        raise DutError(
            f"{node.name} has no PCI device {address}. Correct it in the topology file (lspci -D lists them)."
        )
    if node.attempt("test", "-d", f"/sys/bus/pci/drivers/{driver}").exit_status != 0:
        raise DutError(
            f"{node.name}: the kernel has not loaded the driver {driver!r} for PCI device {address}. "
            f"Load it (modprobe {driver}); vfio-pci also needs an IOMMU that is switched on."
        )
    interfaces = pci_interfaces(node, address)
    if interfaces:
        check_interfaces(node, interfaces)


def check_hugepages(node: DutNode, megabytes: int) -> None:
    """Checks that enough memory in hugepages is free.

    Raises:
        DutError: If it is not; says how to reserve it.
    """
    fields = {
        name: value.split()[0]
        for name, _, value in (line.partition(":") for line in node.run("cat", "/proc/meminfo").splitlines())
        if value.strip()
    }
    size = int(fields.get("Hugepagesize", "0"))
    free = int(fields.get("HugePages_Free", "0")) * size // _MEBI
    if free < megabytes:
        pages = -(-megabytes * _MEBI // size) if size else 0
        raise DutError(
            f"{node.name}: hugepages missing: {megabytes} MB are needed, and {free} MB are free. "
            f"Reserve them (sysctl vm.nr_hugepages={pages} for pages of {size} kB), best at boot."
        )


def bound_driver(node: DutNode, address: str) -> str | None:
    """Name of a card's driver; None if it has none."""
    link = node.attempt("readlink", f"{_DEVICES}/{address}/driver")
    return link.stdout.strip().rpartition("/")[2] if link.exit_status == 0 else None


def pci_interfaces(node: DutNode, address: str) -> Sequence[str]:
    """Names of the Linux interfaces of a card; none if the kernel does not have the card."""
    names = node.attempt("ls", f"{_DEVICES}/{address}/net")
    return names.stdout.split() if names.exit_status == 0 else ()


def pci_facts(node: DutNode, address: str) -> dict[str, Any]:
    """Vendor, device, driver and NUMA node of a card, as JSON data for the test report."""
    names = ("vendor", "device", "subsystem_vendor", "subsystem_device", "numa_node", "current_link_speed")
    texts = node.read_files(*(f"{_DEVICES}/{address}/{name}" for name in names))
    values = {path.rpartition("/")[2]: text for path, text in texts.items()}
    return {"driver": bound_driver(node, address), **values}


def bind(changes: Changes, node: DutNode, address: str, driver: str) -> None:
    """Binds a card to a driver. The undo binds it to its present driver again.

    Raises:
        DutError: If the kernel refuses.
    """
    before = bound_driver(node, address)
    if before == driver or driver in _BIFURCATED:
        return
    unbind = ("tee", f"{_DEVICES}/{address}/driver/unbind")
    override = ("tee", f"{_DEVICES}/{address}/driver_override")
    probe = ("tee", _PROBE)
    given = f"{address}\n"
    # The undo runs backwards: unbind, remove the override, and probe, which finds the earlier driver.
    if before is not None:
        changes.run(*unbind, stdin=given, undo=probe, undo_stdin=given)
    changes.run(*override, stdin=f"{driver}\n", undo=override, undo_stdin=_NO_OVERRIDE)
    changes.run(*probe, stdin=given, undo=unbind, undo_stdin=given)
    if bound_driver(node, address) != driver:
        raise DutError(
            f"{node.name}: PCI device {address} did not go to the driver {driver!r}. See the kernel's messages there "
            f"(dmesg); vfio-pci needs an IOMMU (intel_iommu=on), and every device of the same IOMMU group."
        )
