"""Facts of a node, and the hardware that generators and DUTs are placed on: each in one command over its session.

No other module asks for them. Facts that the node does not report (a tool is missing, a file is unreadable) are None or
missing, never an error.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lossratio.nodes.session import REPORT_SECONDS, CommandRunner
from lossratio.results import NodeFacts, ToolVersions

_REPORT = r"""
PATH=$PATH:/usr/sbin:/sbin; LC_ALL=C; export PATH LC_ALL
report() { name=$1; shift; answer=$("$@" 2>/dev/null) && printf '\036%s\n%s\n' "$name" "$answer"; }
"""
"""Shell code: ``report NAME COMMAND...`` gives a command's answer a name, for `_answers_of`."""
_BOOT_PARAMETERS = re.compile(
    r"(amd_iommu|amd_pstate|default_hugepagesz|hugepages|hugepagesz|idle|intel_idle\.max_cstate|intel_iommu|"
    r"intel_pstate|iommu|irqaffinity|isolcpus|mitigations|nohz|nohz_full|noht|nosmt|preempt|processor\.max_cstate|"
    r"rcu_nocbs|skew_tick|transparent_hugepage|tsc)(=.*)?"
)
"""Parameters of the kernel's command line that change a throughput. Others are left out: some hold secrets."""
_FACTS = r"""
report os_release cat /etc/os-release
report kernel uname -r
report kernel_version uname -srvm
report architecture uname -m
report lscpu lscpu -J
report cpu_model grep -m 1 "^model name" /proc/cpuinfo
report cpus getconf _NPROCESSORS_ONLN
report online_cpus cat /sys/devices/system/cpu/online
report online_numa_nodes cat /sys/devices/system/node/online
report governors sort -u /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor
report meminfo cat /proc/meminfo
report command_line cat /proc/cmdline
report tool.ip ip -V
report tool.nft nft --version
report tool.ethtool ethtool --version
report tool.python python3 --version
exit 0
"""

SPEED_UNIT = 1e6
"""Bits per second in the unit of the kernel's files ``speed``."""

INTERFACES_OF_CARD = r"""
interfaces_of_card() {
    for net in "$1"/net/* "$1"/virtio*/net/*; do [ ! -d "$net" ] || echo "$net"; done
}
"""
"""Shell code: ``interfaces_of_card DEVICE`` prints the directories of the Linux interfaces of a PCI device, by the
device's own directory. The interfaces of a virtio card are below the virtio device that the card carries."""

_HARDWARE = (
    INTERFACES_OF_CARD
    + r"""
report cores lscpu --json --online --extended=CPU,CORE,SOCKET,NODE
report no_iommu cat /sys/module/vfio/parameters/enable_unsafe_noiommu_mode
report hugepages grep -sH "" /sys/devices/system/node/node*/hugepages/hugepages-*kB/nr_hugepages
for address; do
    device=/sys/bus/pci/devices/$address
    report "card $address" ls -d "$device"
    report "driver $address" readlink "$device/driver"
    report "iommu_group $address" readlink "$device/iommu_group"
    for file in numa_node vendor device subsystem_device current_link_speed current_link_width; do
        report "$file $address" cat "$device/$file"
    done
    for net in $(interfaces_of_card "$device"); do
        report "speed $address" cat "$net/speed"
        report "carrier $address" cat "$net/carrier"
        report "ethtool $address" ethtool -i "${net##*/}"
    done
done
exit 0
"""
)


@dataclass(frozen=True)
class GatheredFacts:
    """Facts of a node, and details that only the description of a DUT shows; None: not reported."""

    facts: NodeFacts
    """The facts that each result has."""
    kernel_version: str | None = None
    """Name, release and version of the kernel, and the machine architecture."""
    online_cpus: str | None = None
    """The logical CPUs that are online, as a list of ranges."""
    online_numa_nodes: str | None = None
    """The NUMA nodes that are online, as a list of ranges."""


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
    """The driver that it is bound to; None: it has none."""
    device: str | None
    """Vendor and device, e.g. ``0x8086:0x1592``."""
    pcie: str | None
    """Speed and width of its PCI Express link."""
    iommu_group: str | None
    """Number of its IOMMU group; None: no IOMMU is switched on."""
    speed: float | None
    """Speed of its network link, bits per second; None: the link is down, or the kernel does not have the card."""
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
    """The requested cards that exist, by PCI address."""
    needs_no_iommu: bool = False
    """Whether vfio-pci takes cards without an IOMMU."""


def gather_facts(session: CommandRunner) -> GatheredFacts:
    """Asks a node for its facts, in one command."""
    answers = _answers_of(session, _FACTS)
    details = ("kernel_version", "online_cpus", "online_numa_nodes")
    return GatheredFacts(_from_answers(answers), **{name: answers.get(name) for name in details})


def read_hardware(session: CommandRunner, addresses: Sequence[str] = ()) -> Hardware:
    """Asks a node for its hardware, in one command."""
    answers = _answers_of(session, _HARDWARE, *addresses)
    cards = {
        address: _card(address, answers) for address in addresses if f"card {address}" in answers
    }
    return Hardware(
        cores=cores_in(_json(answers.get("cores", ""))),
        hugepages=_hugepages(answers.get("hugepages", "")),
        cards=cards,
        needs_no_iommu=answers.get("no_iommu") == "Y",
    )


def cores_in(listing: Mapping[str, Any]) -> tuple[Core, ...]:
    """The physical cores in the output of ``lscpu --json --online --extended=CPU,CORE,SOCKET,NODE``.

    A CPU whose core the kernel does not report, as on some virtual machines, is a core of its own.
    """
    cpus: dict[tuple[int | None, int], list[int]] = {}
    numa_nodes: dict[tuple[int | None, int], int] = {}
    for row in listing.get("cpus", ()):
        cpu = int(row["cpu"])
        number = _number(row.get("core"))
        core: tuple[int | None, int] = (None, cpu)
        if number is not None:
            core = (_number(row.get("socket")) or 0, number)

        cpus.setdefault(core, []).append(cpu)
        numa_nodes[core] = _number(row.get("node")) or 0
    cores = (Core(tuple(sorted(siblings)), numa_nodes[core]) for core, siblings in cpus.items())
    return tuple(sorted(cores, key=lambda core: core.cpus[0]))


def _answers_of(session: CommandRunner, script: str, *arguments: str) -> dict[str, str]:
    """The answers of a script that begins with `_REPORT`, by name; answers that the node does not give are missing."""
    command = ("sh", "-c", _REPORT + script, "report", *arguments)
    output = session.run(*command, timeout=REPORT_SECONDS, check=False).stdout
    parts = (part.partition("\n") for part in output.split("\x1e")[1:])
    return {name: answer.strip() for name, _, answer in parts if answer.strip()}


def _from_answers(answers: dict[str, str]) -> NodeFacts:
    cpu = _cpu_fields(answers.get("lscpu", ""))
    numa = {
        name.split(" ")[1]: value
        for name, value in cpu.items()
        if name.startswith("NUMA node") and "CPU" in name
    }
    memory = _assignments(answers.get("meminfo", ""), ":").get("MemTotal", "").split()
    governors = answers.get("governors", "").split()
    line = answers.get("command_line")
    tools = {
        name: answer.splitlines()[0] for name, answer in answers.items() if name.startswith("tool.")
    }
    boot_parameters = None
    if line is not None:
        boot_parameters = tuple(filter(_BOOT_PARAMETERS.fullmatch, line.split()))

    memory_bytes = None
    if memory and memory[0].isdecimal():
        memory_bytes = int(memory[0]) * 1024

    _, _, cpu_model = answers.get("cpu_model", "").partition(":")
    versions = {tool: tools.get(f"tool.{tool}") for tool in ToolVersions.model_fields}

    # Record: what a node reports about itself.
    return NodeFacts(
        os=_assignments(answers.get("os_release", ""), "=").get("PRETTY_NAME"),
        kernel=answers.get("kernel"),
        boot_parameters=boot_parameters,
        architecture=answers.get("architecture"),
        cpu_model=cpu.get("Model name") or cpu_model.strip() or None,
        cpus=_number(answers.get("cpus")),
        threads_per_core=_number(cpu.get("Thread(s) per core")),
        hypervisor=cpu.get("Hypervisor vendor"),
        numa_nodes=numa or None,
        governors=tuple(governors) or None,
        memory_bytes=memory_bytes,
        tools=ToolVersions(**versions),
    )


def _cpu_fields(text: str) -> dict[str, str]:
    try:
        return dict(_flattened(json.loads(text)["lscpu"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _flattened(fields: Any) -> Iterator[tuple[str, str]]:
    """The fields of lscpu's JSON data; newer versions nest groups of fields."""
    for field in fields:
        if field.get("data"):
            yield str(field["field"]).rstrip(":"), str(field["data"])
        yield from _flattened(field.get("children", ()))


def _json(text: str) -> Mapping[str, Any]:
    try:
        listing = json.loads(text)
    except ValueError:
        return {}
    if isinstance(listing, dict):
        return listing
    return {}


def _hugepages(text: str) -> dict[int, int]:
    reserved: dict[int, int] = {}
    for line in text.splitlines():
        path, _, count = line.rpartition(":")
        # .../node/node0/hugepages/hugepages-2048kB/nr_hugepages
        *_, numa_node, _, size, _ = path.split("/")
        megabytes = int(count) * int(size.removeprefix("hugepages-").removesuffix("kB")) // 1024
        number = int(numa_node.removeprefix("node"))
        reserved[number] = reserved.get(number, 0) + megabytes
    return reserved


def _card(address: str, answers: Mapping[str, str]) -> Card:
    def answer(name: str) -> str | None:
        return answers.get(f"{name} {address}")

    carrier = answer("carrier")
    ids = [text for text in (answer("vendor"), answer("device")) if text is not None]
    pcie = [
        text
        for text in (answer("current_link_speed"), answer("current_link_width"))
        if text is not None
    ]
    _, _, driver = (answer("driver") or "").rpartition("/")
    _, _, iommu_group = (answer("iommu_group") or "").rpartition("/")
    of_ethtool = _assignments(answer("ethtool") or "", ":")

    # Record: a card as the kernel shows it.
    return Card(
        address=address,
        # The file of a device without a NUMA node holds -1.
        numa_node=_number(answer("numa_node")) or 0,
        driver=driver or None,
        device=":".join(ids) or None,
        pcie=" x".join(pcie) or None,
        iommu_group=iommu_group or None,
        # A link that is down has the speed -1.
        speed=(_number(answer("speed")) or 0) * SPEED_UNIT or None,
        has_link=None if carrier is None else carrier == "1",
        firmware=of_ethtool.get("firmware-version") or None,
    )


def _assignments(text: str, sign: str) -> dict[str, str]:
    pairs = (line.partition(sign) for line in text.splitlines())
    return {name.strip(): value.strip().strip('"') for name, _, value in pairs}


def _number(value: object) -> int | None:
    text = str(value)
    if text.isdecimal():
        return int(text)
    return None
