"""The CPUs and the memory of a TRex server: chosen as in FD.io CSIT, as far as the TG has them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lossratio.errors import TopologyError
from lossratio.nodes import Core, Hardware
from lossratio.topology import Port, TrexGenerator

MBUF_FACTOR_ARGUMENT = "--mbuf-factor"
"""The argument of TRex's program that multiplies its number of packet buffers."""
_FEW_CPUS = 3
# FD.io CSIT's numbers: maximum cores for a single pair of ports and for each of several pairs, megabytes, buffers.
_CORES_OF_PAIR = 16
_CORES_OF_EACH_PAIR = 8
_MEMORY = 8192
_MEMORY_OF_SEVERAL = 16384
_MBUF_FACTOR = 32


@dataclass(frozen=True)
class ServerChoice:
    """The choices for a server, from the topology file and the TG's hardware."""

    low_end: bool
    """Whether all threads of the server share one CPU, and sleep between frames."""
    master: int | None = None
    """CPU of its master thread; None: TRex chooses all CPUs."""
    latency: int | None = None
    """CPU of its thread for latency and received frames; None: as above."""
    pairs: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """NUMA node of each pair of ports, and the CPUs that send for the pair."""
    limit_memory: int | None = None
    """Megabytes of hugepages on each NUMA node; None: TRex's own number."""
    mbuf_factor: float | None = None
    """Factor of the numbers of packet buffers; None: TRex's own."""
    pin_cores: bool = False
    """Whether each core sends on one port only."""
    because: tuple[str, ...] = ()
    """The reasons, for people."""


def choose_server(
    generator: TrexGenerator, ports: Sequence[Port], cpus: int, hardware: Hardware | None = None
) -> ServerChoice:
    """Chooses cores and memory of a server as FD.io CSIT does, as far as the TG has them.

    Raises:
        TopologyError: If ``pin_cores`` is set, and each pair of ports has only one core.
    """
    _check_cores(generator, len(ports), cpus)
    if generator.low_end is not None:
        low_end = generator.low_end
    else:
        low_end = not generator.cores and cpus < _FEW_CPUS

    reasons = []
    if low_end and generator.low_end is None:
        if generator.wishes_for_cores:
            without = f"; {' and '.join(generator.wishes_for_cores)}: without effect"
        else:
            without = ""

        reasons.append(f"{cpus} CPUs: all threads of TRex share one{without}")

    choice = ServerChoice(
        low_end, limit_memory=generator.limit_memory, mbuf_factor=generator.mbuf_factor
    )
    if generator.cores:
        choice = replace(
            choice,
            master=generator.master_core,
            latency=generator.latency_core,
            pairs=tuple((pair.socket, pair.threads) for pair in generator.cores),
        )
        reasons.append("CPUs from the topology file")
    elif hardware is not None and not low_end:
        numa_nodes = [
            _numa_node(hardware, pair, reasons)
            for pair in zip(ports[::2], ports[1::2], strict=True)
        ]
        choice = _with_cores(choice, generator, numa_nodes, hardware.cores, reasons)

    if hardware is not None and not low_end:
        choice = _with_memory(choice, generator, len(ports) // 2, hardware, reasons)
    several = any(len(threads) > 1 for _, threads in choice.pairs)
    if generator.pin_cores and not several:
        raise TopologyError(
            "The generator's 'pin_cores' needs two or more cores for each pair of ports: TRex refuses to send with one."
        )

    if generator.pin_cores is not None:
        pinned = generator.pin_cores
    else:
        pinned = several and not generator.software

    return replace(choice, pin_cores=pinned, because=tuple(reasons))


def _numa_node(hardware: Hardware, pair: tuple[Port, Port], reasons: list[str]) -> int:
    cards = [hardware.cards.get((port.interface.pci_address or "").lower()) for port in pair]
    numa_nodes = [0 if card is None else card.numa_node for card in cards]
    if len(set(numa_nodes)) > 1:
        reasons.append(
            f"{pair[0]} is on NUMA node {numa_nodes[0]}, and {pair[1]} on {numa_nodes[1]}: cores and memory of "
            f"{numa_nodes[0]} serve both because TRex uses one NUMA node for a pair"
        )
    return numa_nodes[0]


def _with_cores(
    choice: ServerChoice,
    generator: TrexGenerator,
    numa_nodes: Sequence[int],
    cores: Sequence[Core],
    reasons: list[str],
) -> ServerChoice:
    """Gives the first core of the first pair's NUMA node to the master, and the next one to latency."""
    most = generator.cores_per_pair or (
        _CORES_OF_PAIR if len(numa_nodes) == 1 else _CORES_OF_EACH_PAIR
    )
    free = {}
    for node in numa_nodes:
        free[node] = [core for core in cores if core.numa_node == node]
    first = numa_nodes[0]
    others = free[first]

    if len(others) < _FEW_CPUS:
        # Virtual machines often have few cores with two threads each.
        others = [Core((cpu,), first) for core in others for cpu in core.cpus]
        free[first] = others

    if len(others) >= _FEW_CPUS:
        free[first] = others[2:]
    count = min(len(free[node]) // numa_nodes.count(node) for node in numa_nodes)
    if len(others) < _FEW_CPUS or count < 1:
        reasons.append(
            f"NUMA nodes {sorted(set(numa_nodes))} of the cards have too few CPUs for a main thread, a thread for "
            "latency and one for each pair of ports: TRex chooses one CPU for each pair"
        )
        return choice

    count = min(count, most)
    pairs = []
    for node in numa_nodes:
        taken = free[node][:count]
        free[node] = free[node][count:]
        threads = [core.cpus[0] for core in taken]
        if generator.hyper_threads:
            threads += [cpu for core in taken for cpu in core.cpus[1:]]
        pairs.append((node, tuple(threads)))

    siblings = any(len(core.cpus) > 1 for core in cores)
    use = ("send, too" if generator.hyper_threads else "stay idle") if siblings else "do not exist"
    reasons.append(
        f"{count} of at most {most} cores for each pair of ports, on the NUMA node of its cards; the first core is for "
        f"the main thread, and the second one for latency; siblings {use}"
    )
    return replace(choice, master=others[0].cpus[0], latency=others[1].cpus[0], pairs=tuple(pairs))


def _with_memory(
    choice: ServerChoice,
    generator: TrexGenerator,
    pairs: int,
    hardware: Hardware,
    reasons: list[str],
) -> ServerChoice:
    usual = _MEMORY if pairs == 1 else _MEMORY_OF_SEVERAL
    numa_nodes = {node for node, _ in choice.pairs} or {0}
    # All hugepages, not only the free ones: a running server is adopted if it was started like this.
    there = max(
        min(hardware.hugepages.get(node, 0) for node in numa_nodes), generator.hugepages or 0
    )
    limit = choice.limit_memory

    if limit is None and there:
        limit = min(usual, there)
        if limit < usual:
            less = f" because there are no more (CSIT uses {usual} MB)"
        else:
            less = ""

        reasons.append(f"{limit} MB of hugepages on each NUMA node of the cards{less}")

    factor = choice.mbuf_factor
    if factor is None and limit is not None and MBUF_FACTOR_ARGUMENT not in generator.arguments:
        # CSIT's factor goes with CSIT's memory.
        factor = max(1.0, float(_MBUF_FACTOR * min(limit, usual) // usual))
        reasons.append(
            f"{factor:g} times as many packet buffers as TRex's default, because memory allows it"
        )

    return replace(choice, limit_memory=limit, mbuf_factor=factor)


def _check_cores(generator: TrexGenerator, ports: int, cpus: int) -> None:
    if not generator.cores:
        return
    if len(generator.cores) != ports // 2:
        raise TopologyError(
            f"The generator's 'cores' are for {len(generator.cores)} pairs of ports, but the traffic uses "
            f"{ports // 2}. Set an entry for each pair."
        )
    threads = [thread for pair in generator.cores for thread in pair.threads]
    largest = max(*threads, generator.master_core or 0, generator.latency_core or 0)
    if largest >= cpus:
        raise TopologyError(
            f"The generator's 'cores' name CPU {largest}, but the TG has only CPUs 0 to {cpus - 1}. Correct 'cores'."
        )
