"""Cores for a DUT's workers, in FD.io CSIT's meaning: "1c" is one physical core with all of its SMT siblings."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from lossratio.dut.base import Tool
from lossratio.errors import NotMeasuredHereError
from lossratio.nodes import Core, DutNode, cores_in
from lossratio.topology import Hop, Port

LSCPU = Tool("lscpu", "util-linux")


@dataclass(frozen=True)
class CoreChoice:
    """The CPUs that a DUT's program runs on."""

    main: int
    """CPU of its main thread."""
    workers: tuple[int, ...]
    """CPUs of its workers: all siblings of each of their cores."""
    numa_node: int
    """The NUMA node of the workers; if each card has its own workers, the node of the west card's workers."""
    shared: bool
    """Whether the main thread shares the operating system's core because there are too few cores."""
    has_siblings: bool = False
    """Whether both hardware threads of each core are workers."""
    far: tuple[str, ...] = ()
    """Interfaces on another NUMA node, so that each of their frames crosses from one node to the other."""
    of_east: tuple[int, ...] = ()
    """The workers that poll the east card, if that is on a different NUMA node from the west card. The other half polls
    the west card. Empty: all workers poll both cards."""
    beside: tuple[str, ...] = ()
    """DUTs of the same path that have the same CPUs because there are too few CPUs."""

    @property
    def by_side(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The workers that poll the west card, and the workers that poll the east card."""
        of_west = tuple(cpu for cpu in self.workers if cpu not in self.of_east)
        return of_west, self.of_east or of_west


def read_cores(node: DutNode) -> tuple[Core, ...]:
    """The node's physical cores, in the order of their first CPUs."""
    return cores_in(
        node.json("lscpu", "--json", "--online", "--extended=CPU,CORE,SOCKET,NODE") or {}
    )


def choose_cores(cores: Sequence[Core], count: int, numa_node: int, *, where: str) -> CoreChoice:
    """Chooses the cores of a DUT's workers on one NUMA node.

    The operating system keeps the machine's first core, and the main thread gets the next one on the NUMA node, as in
    CSIT. If that leaves too few cores, the main thread shares the operating system's core.
    """
    rest = _cores_on(cores, count, numa_node, where)
    shared = len(rest) == count
    main = cores[0].cpus[0] if shared else rest[0].cpus[0]
    workers = rest if shared else rest[1 : count + 1]
    cpus = tuple(cpu for core in workers for cpu in core.cpus)
    return CoreChoice(main, cpus, numa_node, shared, has_siblings=len(cpus) > len(workers))


def choose_cores_of_both(
    cores: Sequence[Core], count: int, numa_nodes: tuple[int, int], *, where: str
) -> CoreChoice:
    """Chooses the cores of workers that poll cards on two NUMA nodes: half of them on the node of each card.

    A single core is on the node of the west card, and polls both.

    Args:
        cores: The node's physical cores.
        count: Number of physical cores for workers.
        numa_nodes: NUMA nodes of the west and of the east card.
        where: Name of the node, for errors.

    Raises:
        NotMeasuredHereError: If the number is odd, or a NUMA node has too few cores that are alike.
    """
    west, east = numa_nodes
    if count == 1:
        return choose_cores(cores, 1, west, where=where)

    cards = f"{where}: {count} physical cores were requested. The west card is on NUMA node {west} and the east one on "
    if count % 2:
        raise NotMeasuredHereError(
            f"{cards}{east}, and both need the same number of cores: request 1 or an even number."
        )

    try:
        choice = choose_cores(cores, count // 2, west, where=where)
        others = _cores_on(cores, count // 2, east, where)[: count // 2]
    except NotMeasuredHereError as error:
        raise NotMeasuredHereError(
            f"{cards}{east}, and each node gives half of them. {error}"
        ) from error

    cpus = tuple(cpu for core in others for cpu in core.cpus)
    if len(cpus) != len(choice.workers):
        raise NotMeasuredHereError(
            f"{cards}{east}, but the cores there have different numbers of threads online. Switch "
            "on the same number of threads in every core."
        )
    return replace(choice, workers=(*choice.workers, *cpus), of_east=cpus)


def _cores_on(cores: Sequence[Core], count: int, numa_node: int, where: str) -> list[Core]:
    """The cores of a NUMA node without the operating system's core; at least as many as requested."""
    rest = [core for core in cores[1:] if core.numa_node == numa_node]
    if len(rest) < count:
        raise NotMeasuredHereError(
            f"{where}: {count} physical cores were requested on NUMA node {numa_node}, but only {len(rest)} remain "
            "besides those of the operating system. Request fewer, or use interfaces on another NUMA node."
        )
    return rest


def cores_of_path(
    node: DutNode, hop: Hop, count: int, *, halves: bool, taken: Collection[int] = ()
) -> CoreChoice:
    """Chooses the cores of a DUT's workers on the NUMA node of its interfaces."""
    are_cards = all(map(hop.is_card, hop.ports))

    def numa_node_of(port: Port) -> int:
        address = port.interface.pci_address if are_cards else None
        if address is None:
            place = f"/sys/class/net/{port.interface.name}/device"
        else:
            place = f"/sys/bus/pci/devices/{address}"

        # A virtio card's interface belongs to a virtio device, whose parent has the file. A virtual interface has none.
        own, of_parent = f"{place}/numa_node", f"{place}/../numa_node"
        texts = node.read_files(own, of_parent)
        # The file of a device without a NUMA node contains -1.
        return max(0, int(texts.get(own, texts.get(of_parent, "0"))))

    west, east = map(numa_node_of, hop.ports)
    every = read_cores(node)
    cores = (*every[:1], *(core for core in every[1:] if not {*taken}.intersection(core.cpus)))
    if west == east:
        return choose_cores(cores, count, west, where=node.name)
    if halves and are_cards:
        choice = choose_cores_of_both(cores, count, (west, east), where=node.name)
    else:
        choice = choose_cores(cores, count, west, where=node.name)
    if choice.of_east:
        return choice

    interface = hop.east.interface
    name = interface.pci_address if are_cards else interface.name
    return replace(choice, far=(name or hop.east.name,))


_COUNTS = (1, 2, 4)
"""Numbers of cores that suites request, as FD.io CSIT's do."""


def core_choices(node: DutNode, hop: Hop) -> Iterator[str]:
    """The CPUs that programs on a DUT's cards would get, and why; nothing if the kernel keeps the interfaces."""
    if not all(map(hop.is_card, hop.ports)):
        return
    for count in _COUNTS:
        try:
            choice = cores_of_path(node, hop, count, halves=True)
        except NotMeasuredHereError as error:
            yield f"cores={count}: {error}"
        else:
            yield f"cores={count}: {describe_cores(choice)}"
            if choice.of_east:
                yield f"cores={count}, programs other than VPP and testpmd: workers on the west card's node alone"


def describe_cores(choice: CoreChoice) -> str:
    """The CPUs of a choice, and what they are for, in a line."""
    of_west, of_east = choice.by_side
    main = f"main thread {choice.main}"
    if choice.shared:
        main += " (shared with the operating system)"
    if choice.beside:
        main = f"on the CPUs of {', '.join(choice.beside)}, too: {main}"

    if choice.of_east:
        return (
            f"{main}, workers {cpu_list(of_west)} for the west card on NUMA node {choice.numa_node} and "
            f"{cpu_list(of_east)} for the east card on the other node"
        )

    if choice.far:
        far = f"; {', '.join(choice.far)} is on another node, and its frames cross"
    else:
        far = ""

    return f"{main}, workers {cpu_list(choice.workers)} on NUMA node {choice.numa_node}{far}"


def cpu_list(cpus: Sequence[int]) -> str:
    """CPU numbers in the form that most programs read, e.g. ``2,18``."""
    return ",".join(str(cpu) for cpu in cpus)
