"""VPP's startup.conf: its CPUs, memory, plugins and cards, and further lines from the topology file."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lossratio.dut import texts
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import write_file
from lossratio.dut.dpdk import iommu_width
from lossratio.dut.linux.cores import CoreChoice, cpu_list
from lossratio.nodes import DutNode
from lossratio.topology import VppStart

_BUFFERS_OF_CARDS = 107_520
_BUFFER_SIZE = 2048
_BUFFER_HEADERS = 448
"""The maximum number of bytes of a buffer besides its data: VPP's headers, and DPDK's."""
_MANY_ENTRIES, _MOST_ENTRIES = 200_000, 5_000_000
_LARGE = "3G"
_MEBI = 2**20
_WIDE = 48
"""Bits of addresses at which DPDK's memory fits wherever the kernel puts it."""
_LOW_MEMORY = "dpdk base-virtaddr 0x2000000000"
"""Where DPDK's memory begins: above the memory of VPP's buffers, which is where DPDK would begin otherwise, and below
2^39."""
# Each line begins with its section.
_STARTUP = r"""
    unix nodaemon nosyslog nocolor nobanner cli-no-pager
    unix runtime-dir {{ directory }}
    unix cli-listen {{ directory }}/cli.sock
    socksvr socket-name {{ directory }}/api.sock
    statseg socket-name {{ directory }}/stats.sock
    statseg size {{ start.statseg_size or ("3G" if is_large else "64M") }}
    statseg page-size {{ start.statseg_page_size }}
    api-segment prefix {{ prefix }}
    cpu main-core {{ cores.main }}
    cpu corelist-workers {{ workers }}
    % if start.main_heap_size or is_large
        memory main-heap-size {{ start.main_heap_size or ("8G" if is_largest else "3G") }}
    % endif
    % if start.main_heap_page_size
        memory main-heap-page-size {{ start.main_heap_page_size }}
    % endif
    % if start.default_hugepage_size
        memory default-hugepage-size {{ start.default_hugepage_size }}
    % endif
    % if has_hugepages
        buffers buffers-per-numa {{ buffers }}
    % else
        buffers page-size default
        buffers buffers-per-numa {{ start.buffers_per_numa or 16384 }}
    % endif
    % if start.buffer_size
        buffers default data-size {{ start.buffer_size }}
    % endif
    % if cards and start.driver == "dpdk"
        plugins plugin dpdk_plugin.so { enable }
        dpdk no-multi-seg
        % for card in cards
            dpdk dev {{ card.address }} { name {{ card.name }} num-rx-queues {{ card.queues }} \
            num-rx-desc {{ card.descriptors }} num-tx-desc {{ card.descriptors }} }
        % endfor
    % else
        plugins plugin dpdk_plugin.so { disable }
    % endif
"""


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

    west, east = cores.by_side
    return card("west", addresses[0], west), card("east", addresses[1], east)


_SECTIONS = """
% for name, lines in sections.items() if lines
{{ name }} {
%   for line in lines
  {{ line }}
%   endfor
}
% endfor
"""


def startup_configuration(
    directory: str,
    cores: CoreChoice,
    cards: Sequence[Card],
    start: VppStart | None = None,
    *,
    has_hugepages: bool = False,
    entries: int = 0,
    lines: Iterable[str] = (),
) -> str:
    """The file's text.

    Without cards, VPP uses hugepages only if the options say so: by default, it would reserve more of them on the
    machine. VPP's largest table will have this many entries. The `lines` are further lines, each behind the name of its
    section.
    """
    start = start or VppStart()
    has_hugepages = has_hugepages or bool(cards)
    is_large = has_hugepages or entries > _MANY_ENTRIES
    own = texts.lines(
        _STARTUP,
        directory=directory,
        prefix=_prefix(directory),
        start=start,
        cores=cores,
        workers=cpu_list(cores.workers),
        cards=cards,
        has_hugepages=has_hugepages,
        is_large=is_large,
        is_largest=entries > _MOST_ENTRIES,
        buffers=_buffer_count(start, cores),
    )

    sections: dict[str, list[str]] = {}
    for line in (*(line for (line,) in own), *lines):
        section, _, rest = line.partition(" ")
        sections.setdefault(section, []).append(rest)
    for section, of_lab in start.startup.items():
        sections.setdefault(section, []).extend(of_lab)
    return texts.filled(_SECTIONS, sections=sections).lstrip()


def lines_for_iommu(node: DutNode, start: VppStart, cards: Sequence[Card]) -> Sequence[str]:
    """Lines that keep DPDK's memory at addresses that the node's IOMMU translates.

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
    return (_LOW_MEMORY,)


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
