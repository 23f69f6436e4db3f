"""VPP's startup.conf: its CPUs, memory, plugins and cards, and further lines from the topology file."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lossratio.dut.changes import Changes
from lossratio.dut.daemon import write_file
from lossratio.dut.dpdk import iommu_width
from lossratio.dut.linux.cores import CoreChoice, cpu_list
from lossratio.nodes import DutNode
from lossratio.topology import VppStart

_BUFFERS_OF_SOCKETS = 16_384
_BUFFERS_OF_CARDS = 107_520
_BUFFER_SIZE = 2048
_BUFFER_HEADERS = 448
"""The maximum number of bytes of a buffer besides its data: VPP's headers, and DPDK's."""
_MANY_ENTRIES, _MOST_ENTRIES = 200_000, 5_000_000
_LARGE, _LARGEST = "3G", "8G"
_SMALL_STATISTICS = "64M"
_MEBI = 2**20
_WIDE = 48
"""Bits of addresses at which DPDK's memory fits wherever the kernel puts it."""
_LOW_MEMORY = "base-virtaddr 0x2000000000"
"""Where DPDK's memory begins: above the memory of VPP's buffers, which is where DPDK would begin otherwise, and below
2^39."""


@dataclass(frozen=True)
class Card:
    """A card that VPP polls."""

    address: str
    """Its PCI address."""
    name: str
    """Name of its interface in VPP."""
    queues: int
    """Its receive queues."""
    descriptors: int
    """Descriptors of each queue."""
    workers: tuple[int, ...] = ()
    """VPP's numbers for the workers that poll it; empty: VPP spreads its queues over all workers."""


def both_cards(
    addresses: tuple[str, str], cores: CoreChoice, *, queues: int | None, descriptors: int
) -> tuple[Card, Card]:
    """The west and the east card, with their queues and the workers that poll them."""
    # VPP numbers its workers in the order of their CPUs.
    numbers = {cpu: number for number, cpu in enumerate(sorted(cores.workers))}

    def card(name: str, address: str, cpus: Sequence[int]) -> Card:
        polled_by = sorted(numbers[cpu] for cpu in cpus) if cores.of_east else ()
        return Card(address, name, queues or len(cpus), descriptors, tuple(polled_by))

    cpus_west, cpus_east = cores.by_side
    address_west, address_east = addresses
    return card("west", address_west, cpus_west), card("east", address_east, cpus_east)


def startup_configuration(
    directory: str,
    cores: CoreChoice,
    cards: Sequence[Card],
    start: VppStart | None = None,
    *,
    has_hugepages: bool = False,
    entries: int = 0,
    lines: Iterable[tuple[str, str]] = (),
) -> str:
    """The file's text.

    Without cards, VPP uses hugepages only if the options say so: by default, it would reserve more of them on the
    machine. VPP's largest table will have this many entries. The `lines` are additional lines, each with its section.
    """
    start = start or VppStart()
    has_hugepages = has_hugepages or bool(cards)
    is_large = has_hugepages or entries > _MANY_ENTRIES
    statistics = start.statseg_size or (_LARGE if is_large else _SMALL_STATISTICS)
    heap = _LARGEST if entries > _MOST_ENTRIES else _LARGE if is_large else None
    memory = {
        "main-heap-size": start.main_heap_size or heap,
        "main-heap-page-size": start.main_heap_page_size,
        "default-hugepage-size": start.default_hugepage_size,
    }
    known = {name: size for name, size in memory.items() if size is not None}

    # Table: the lines of each section.
    sections: dict[str, list[str]] = {
        "unix": [
            "nodaemon nosyslog nocolor nobanner cli-no-pager",
            f"runtime-dir {directory}",
            f"cli-listen {directory}/cli.sock",
        ],
        "socksvr": [f"socket-name {directory}/api.sock"],
        "statseg": [
            f"socket-name {directory}/stats.sock",
            f"size {statistics}",
            f"page-size {start.statseg_page_size}",
        ],
        "api-segment": [f"prefix {_prefix(directory)}"],
        "cpu": [f"main-core {cores.main}", f"corelist-workers {cpu_list(cores.workers)}"],
        "memory": [f"{name} {size}" for name, size in known.items()],
        "buffers": _buffers(start, cores, has_hugepages=has_hugepages),
        **_drivers(start.driver, cards),
    }

    for section, line in lines:
        sections.setdefault(section, []).append(line)
    for section, of_lab in start.startup.items():
        sections.setdefault(section, []).extend(of_lab)
    return "".join(_section(name, written) for name, written in sections.items() if written)


def _section(name: str, lines: Iterable[str]) -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f"{name} {{\n{body}}}\n"


def lines_for_iommu(
    node: DutNode, start: VppStart, cards: Sequence[Card]
) -> Sequence[tuple[str, str]]:
    """Lines that keep DPDK's memory at addresses that the node's IOMMU translates, by section.

    Some IOMMUs translate 39 bits only. VPP's buffers are where DPDK's memory would begin, so the kernel puts it far
    above that, and DPDK refuses to start. Lines about addresses that the lab has chosen are left alone.
    """
    if not cards or start.driver != "dpdk":
        return ()

    chosen = start.startup.get("dpdk", ())
    if any(line.startswith(("base-virtaddr", "iova-mode")) for line in chosen):
        return ()

    width = iommu_width(node)
    if width is None or width >= _WIDE:
        return ()
    return (("dpdk", _LOW_MEMORY),)


def write_startup(changes: Changes, directory: str, text: str) -> str:
    """Writes the file into VPP's directory, and returns its path.

    The undo also removes VPP's shared memory, which VPP leaves behind if it crashes or is killed.
    """
    shared = f"/dev/shm/{_prefix(directory)}"  # noqa: S108
    changes.clean_up("rm", "-f", "--", f"{shared}-global_vm", f"{shared}-vpe-api")
    path = f"{directory}/startup.conf"
    write_file(changes, path, text)
    return path


def _prefix(directory: str) -> str:
    return directory.rpartition("/")[2]


def hugepage_megabytes(start: VppStart, cores: CoreChoice, numa_nodes: int) -> int:
    """Megabytes of hugepages that VPP needs for the buffers of cards, and for heaps that are in hugepages."""
    buffer_size = (start.buffer_size or _BUFFER_SIZE) + _BUFFER_HEADERS
    needed = numa_nodes * _buffer_count(start, cores) * buffer_size
    heaps = (
        (start.main_heap_page_size, start.main_heap_size),
        (start.statseg_page_size, start.statseg_size),
    )
    for pages, size in heaps:
        if pages not in (None, "default", "4K"):
            needed += _size(size or _LARGE)
    return math.ceil(needed / _MEBI)


def _size(text: str) -> int:
    return int(text.rstrip("KMG")) * {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1], 1)


def _buffer_count(start: VppStart, cores: CoreChoice) -> int:
    # As in CSIT, twice as many if both threads of a core have queues.
    return start.buffers_per_numa or _BUFFERS_OF_CARDS * (2 if cores.has_siblings else 1)


def _buffers(start: VppStart, cores: CoreChoice, *, has_hugepages: bool) -> list[str]:
    if has_hugepages:
        lines = [f"buffers-per-numa {_buffer_count(start, cores)}"]
    else:
        lines = [
            "page-size default",
            f"buffers-per-numa {start.buffers_per_numa or _BUFFERS_OF_SOCKETS}",
        ]
    if start.buffer_size is None:
        return lines
    return [*lines, f"default data-size {start.buffer_size}"]


def _drivers(driver: str, cards: Sequence[Card]) -> dict[str, list[str]]:
    uses_dpdk = bool(cards) and driver == "dpdk"
    sections = {"plugins": [f"plugin dpdk_plugin.so {{ {'enable' if uses_dpdk else 'disable'} }}"]}
    if uses_dpdk:
        sections["dpdk"] = ["no-multi-seg"]
        for card in cards:
            queues = f"num-rx-queues {card.queues} num-rx-desc {card.descriptors} num-tx-desc {card.descriptors}"
            sections["dpdk"].append(f"dev {card.address} {{ name {card.name} {queues} }}")
    return sections
