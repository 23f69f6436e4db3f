"""Cores for a DUT's workers, in FD.io CSIT's meaning: "1c" is one physical core with all of its SMT siblings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lossratio.dut.linux.requirements import Tool
from lossratio.errors import DutError
from lossratio.nodes import DutNode

LSCPU = Tool(("lscpu", "--version"), "util-linux")


@dataclass(frozen=True)
class Core:
    """A physical core.

    Attributes:
        cpus: Its logical CPUs that are online: SMT siblings.
        numa_node: The NUMA node that it is on; 0 where the machine knows none.
    """

    cpus: tuple[int, ...]
    numa_node: int


@dataclass(frozen=True)
class CoreChoice:
    """The CPUs that a DUT's program runs on.

    Attributes:
        main: CPU of its main thread.
        workers: CPUs of its workers: all siblings of each core that was asked for.
        numa_node: The NUMA node that the workers are on.
        shared: Whether the main thread is on the core that is left to the operating system, as there are so few.
    """

    main: int
    workers: tuple[int, ...]
    numa_node: int
    shared: bool


def read_cores(node: DutNode) -> tuple[Core, ...]:
    """The node's physical cores, in the order of their first CPUs.

    Raises:
        DutError: If the node does not tell.
    """
    told = node.json("lscpu", "--json", "--online", "--extended=CPU,CORE,SOCKET,NODE") or {}
    cpus: dict[tuple[int, int], list[int]] = {}
    numa_nodes: dict[tuple[int, int], int] = {}
    for row in told.get("cpus", ()):
        core = (_number(row.get("socket")), int(row["core"]))
        cpus.setdefault(core, []).append(int(row["cpu"]))
        numa_nodes[core] = _number(row.get("node"))
    cores = (Core(tuple(sorted(each)), numa_nodes[core]) for core, each in cpus.items())
    return tuple(sorted(cores, key=lambda core: core.cpus[0]))


def choose_cores(cores: Sequence[Core], count: int, numa_node: int, *, where: str) -> CoreChoice:
    """Chooses the cores of a DUT's workers on one NUMA node.

    The machine's first core is left to the operating system, and the next one on the NUMA node is the main thread's, as
    in CSIT. Where that leaves too few, the main thread shares the operating system's core.

    Args:
        cores: The machine's cores.
        count: How many of them the workers get.
        numa_node: The NUMA node that the interfaces are on.
        where: Name of the node, for errors.

    Raises:
        DutError: If there are not so many.
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
    return CoreChoice(main, tuple(cpu for core in workers for cpu in core.cpus), numa_node, shared)


def numa_node_of(node: DutNode, *, name: str | None = None, pci_address: str | None = None) -> int:
    """The NUMA node that an interface is on; 0 where it is on none, as virtual ones are.

    Args:
        node: Where the interface is.
        name: Its name in Linux.
        pci_address: Its PCI address, which is known also while the kernel does not have it.
    """
    place = f"/sys/class/net/{name}/device" if pci_address is None else f"/sys/bus/pci/devices/{pci_address}"
    file = f"{place}/numa_node"
    # A device that belongs to no NUMA node says -1.
    return max(0, int(node.read_files(file).get(file, "0")))


def cpu_list(cpus: Sequence[int]) -> str:
    """CPU numbers as most programs read them, e.g. ``2,18``."""
    return ",".join(str(cpu) for cpu in cpus)


def _number(value: object) -> int:
    text = str(value)
    return int(text) if text.isdecimal() else 0
