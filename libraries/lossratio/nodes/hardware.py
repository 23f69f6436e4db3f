"""The hardware of a node that fast generators and DUTs are placed on: cores, cards, hugepages, IOMMU.

Everything is read in one command; what the node does not report is None, or missing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lossratio.nodes.facts import answers_of
from lossratio.nodes.session import CommandRunner

_SPEED_UNIT = 1e6
_KIBI = 1024

_SCRIPT = r"""
report cores lscpu --json --online --extended=CPU,CORE,SOCKET,NODE
report hugepages grep -sH "" /sys/devices/system/node/node*/hugepages/hugepages-*kB/nr_hugepages
for address; do
    device=/sys/bus/pci/devices/$address
    report "card $address" ls -d "$device"
    report "driver $address" readlink "$device/driver"
    report "iommu_group $address" readlink "$device/iommu_group"
    for file in numa_node vendor device subsystem_device current_link_speed current_link_width; do
        report "$file $address" cat "$device/$file"
    done
    for net in "$device"/net/*; do
        [ -d "$net" ] || continue
        report "speed $address" cat "$net/speed"
        report "carrier $address" cat "$net/carrier"
        report "ethtool $address" ethtool -i "${net##*/}"
    done
done
exit 0
"""


@dataclass(frozen=True)
class Core:
    """A physical core."""

    cpus: tuple[int, ...]
    """Its logical CPUs that are online: SMT siblings."""
    numa_node: int
    """Its NUMA node; 0 where the machine has none."""


@dataclass(frozen=True)
class Card:
    """A port of a network card, by its PCI address."""

    address: str
    """Its PCI address."""
    numa_node: int
    """Its NUMA node; 0 where the machine has none."""
    driver: str | None
    """The driver that it is bound to; None: none."""
    device: str | None
    """Vendor and device, e.g. ``0x8086:0x1592``."""
    pcie: str | None
    """Speed and width of its PCI Express link."""
    iommu_group: str | None
    """Number of its IOMMU group; None: no IOMMU is switched on."""
    speed: float | None
    """Speed of its network link, bits per second; None: down, or the kernel does not have the card."""
    has_link: bool | None
    """Whether its network link is up; None: the kernel does not have the card, or the port is down."""
    firmware: str | None
    """Version of its firmware; None: the kernel does not have the card, or `ethtool` is missing."""


@dataclass(frozen=True)
class Hardware:
    """The hardware of a node."""

    cores: tuple[Core, ...]
    """Its physical cores that are online, in the order of their first CPUs."""
    hugepages: Mapping[int, int]
    """Hugepages of all sizes, free or not, megabytes by NUMA node."""
    cards: Mapping[str, Card]
    """The cards that were asked for and are there, by PCI address."""


def read_hardware(session: CommandRunner, addresses: Sequence[str] = ()) -> Hardware:
    """Asks a node for its hardware, in one command."""
    answers = answers_of(session, _SCRIPT, *addresses)
    return Hardware(
        cores=cores_in(_json(answers.get("cores", ""))),
        hugepages=_hugepages(answers.get("hugepages", "")),
        cards={address: _card(address, answers) for address in addresses if f"card {address}" in answers},
    )


def cores_in(listing: Mapping[str, Any]) -> tuple[Core, ...]:
    """The physical cores in the output of ``lscpu --json --online --extended=CPU,CORE,SOCKET,NODE``."""
    cpus: dict[tuple[int, int], list[int]] = {}
    numa_nodes: dict[tuple[int, int], int] = {}
    for row in listing.get("cpus", ()):
        core = (_number(row.get("socket")), int(row["core"]))
        cpus.setdefault(core, []).append(int(row["cpu"]))
        numa_nodes[core] = _number(row.get("node"))
    cores = (Core(tuple(sorted(siblings)), numa_nodes[core]) for core, siblings in cpus.items())
    return tuple(sorted(cores, key=lambda core: core.cpus[0]))


def _json(text: str) -> Mapping[str, Any]:
    try:
        listing = json.loads(text)
    except ValueError:
        return {}
    return listing if isinstance(listing, dict) else {}


def _hugepages(text: str) -> dict[int, int]:
    reserved: dict[int, int] = {}
    for line in text.splitlines():
        path, _, count = line.rpartition(":")
        # .../node/node0/hugepages/hugepages-2048kB/nr_hugepages
        *_, numa_node, _, size, _ = path.split("/")
        megabytes = int(count) * int(size.removeprefix("hugepages-").removesuffix("kB")) // _KIBI
        number = int(numa_node.removeprefix("node"))
        reserved[number] = reserved.get(number, 0) + megabytes
    return reserved


def _card(address: str, answers: Mapping[str, str]) -> Card:
    def answer(name: str) -> str | None:
        return answers.get(f"{name} {address}")

    speed, carrier = answer("speed") or "", answer("carrier")
    tool = dict(line.partition(": ")[::2] for line in (answer("ethtool") or "").splitlines())
    ids = [text for text in (answer("vendor"), answer("device")) if text is not None]
    pcie = [text for text in (answer("current_link_speed"), answer("current_link_width")) if text is not None]
    return Card(
        address=address,
        numa_node=_number(answer("numa_node")),
        driver=_last(answer("driver")),
        device=":".join(ids) or None,
        pcie=" x".join(pcie) or None,
        iommu_group=_last(answer("iommu_group")),
        # A link that is down has the speed -1.
        speed=int(speed) * _SPEED_UNIT if speed.isdecimal() and int(speed) > 0 else None,
        has_link=None if carrier is None else carrier == "1",
        firmware=tool.get("firmware-version", "").strip() or None,
    )


def _last(path: str | None) -> str | None:
    return None if path is None else path.rpartition("/")[2]


def _number(value: object) -> int:
    # The file of a device without a NUMA node holds -1.
    text = str(value)
    return int(text) if text.isdecimal() else 0
