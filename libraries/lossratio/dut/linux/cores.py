"""Cores for a DUT's workers, in FD.io CSIT's meaning: "1c" is one physical core with all of its SMT siblings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lossratio.dut.linux.requirements import Tool
from lossratio.errors import DutError
from lossratio.nodes import Core, DutNode, cores_in

LSCPU = Tool(("lscpu", "--version"), "util-linux")


@dataclass(frozen=True)
class CoreChoice:
    """The CPUs that a DUT's program runs on.

    Attributes:
        main: CPU of its main thread.
        workers: CPUs of its workers: all siblings of each of their cores.
        numa_node: The NUMA node of the workers.
        shared: Whether the main thread shares the operating system's core, as there are too few cores.
        has_siblings: Whether both hardware threads of each core are workers.
        far: Interfaces that are on another NUMA node, so that each frame of theirs crosses from one to the other.
    """

    main: int
    workers: tuple[int, ...]
    numa_node: int
    shared: bool
    has_siblings: bool = False
    far: tuple[str, ...] = ()


def read_cores(node: DutNode) -> tuple[Core, ...]:
    """The node's physical cores, in the order of their first CPUs.

    Raises:
        DutError: If the node does not report them.
    """
    return cores_in(node.json("lscpu", "--json", "--online", "--extended=CPU,CORE,SOCKET,NODE") or {})


def choose_cores(cores: Sequence[Core], count: int, numa_node: int, *, where: str) -> CoreChoice:
    """Chooses the cores of a DUT's workers on one NUMA node.

    The operating system keeps the machine's first core, and the main thread gets the next one on the NUMA node, as in
    CSIT. If too few cores are left then, the main thread shares the operating system's core.

    Args:
        cores: The machine's cores.
        count: Number of cores for the workers.
        numa_node: The NUMA node of the interfaces.
        where: Name of the node, for errors.

    Raises:
        DutError: If there are too few cores.
    """
    rest = [core for core in cores[1:] if core.numa_node == numa_node]
    if len(rest) < count:
        raise DutError(
            f"{where}: {count} physical cores are asked for on NUMA node {numa_node}, and besides the operating "
            f"system's there are {len(rest)}. Ask for fewer, or use interfaces on another NUMA node."
        )
    shared = len(rest) == count
    main = cores[0].cpus[0] if shared else rest[0].cpus[0]
    workers = rest if shared else rest[1 : count + 1]
    cpus = tuple(cpu for core in workers for cpu in core.cpus)
    return CoreChoice(main, cpus, numa_node, shared, has_siblings=len(cpus) > len(workers))


def numa_node_of(node: DutNode, *, name: str | None = None, pci_address: str | None = None) -> int:
    """The NUMA node of an interface; 0 where it has none, as virtual interfaces.

    Args:
        node: The interface's node.
        name: Its name in Linux.
        pci_address: Its PCI address, which can be given also while the kernel does not have the interface.
    """
    place = f"/sys/class/net/{name}/device" if pci_address is None else f"/sys/bus/pci/devices/{pci_address}"
    file = f"{place}/numa_node"
    # The file of a device without a NUMA node holds -1.
    return max(0, int(node.read_files(file).get(file, "0")))


def cpu_list(cpus: Sequence[int]) -> str:
    """CPU numbers in the form that most programs read, e.g. ``2,18``."""
    return ",".join(str(cpu) for cpu in cpus)
