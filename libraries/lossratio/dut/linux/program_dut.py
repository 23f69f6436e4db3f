"""DUTs that are programs on a Linux node: on interfaces of the kernel, or on cards taken from the kernel."""

import math
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field

from lossratio.dut.base import DestinationMacs, DutOptions, Tool
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon, make_directory
from lossratio.dut.linux.cores import LSCPU, CoreChoice, cores_of_path, describe_cores
from lossratio.dut.linux.interfaces import check_interfaces, read_links
from lossratio.dut.linux.node_dut import NodeDut
from lossratio.dut.linux.reports import RINGS_OF
from lossratio.dut.linux.state import boot_id
from lossratio.errors import DutError, NotMeasuredHereError
from lossratio.nodes import INTERFACES_OF_CARD, DutNode
from lossratio.topology import Port

_DEVICES = "/sys/bus/pci/devices"
BIFURCATED = ("mlx4_core", "mlx5_core")
"""Drivers whose cards a program and the kernel can use at the same time."""
_KB_OF_MB = 1024


class ProgramOptions(DutOptions):
    """The options of every DUT that is a program."""

    cores: int = Field(default=1, ge=1, le=64)
    """Number of physical cores that forward (default: 1), each with all of its hardware threads, on the NUMA node of
    the interfaces. The system keeps the machine's first core, and the program's main thread gets the next one. If the
    cards are on two NUMA nodes, each node has half of the cores."""
    queues: int | None = Field(default=None, ge=1, le=64)
    """Number of receive queues of each interface. Default: on cards that the program polls, one for each hardware
    thread that forwards; on kernel interfaces, one, but all that an interface has if VPP uses AF_XDP."""


class SocketOptions(ProgramOptions):
    """The options of a program that can use both kinds of sockets."""

    sockets: Literal["packet", "af_xdp"] = "packet"
    """How the program gets the frames of the kernel's interfaces: ``packet`` (AF_PACKET; the default) or ``af_xdp``
    (past the kernel's network stack). Cards have no sockets."""

    @property
    def uses_af_xdp(self) -> bool:
        """Whether it asks for AF_XDP."""
        return self.sockets == "af_xdp"


OptionsT_co = TypeVar("OptionsT_co", bound=ProgramOptions, covariant=True)


class ProgramDut(NodeDut[OptionsT_co]):
    """A DUT that is a program on the node.

    The topology file decides how the program gets an interface. If the file gives the ``pci_address``, and also the
    interface's ``driver`` or the node's ``uio_driver`` (or no ``name``), the card is taken from the kernel, and given
    back afterwards. Otherwise, the program uses the kernel's interface through a packet socket. A kind implements
    `launch`, and the methods that `NodeDut` names.
    """

    socket_settle_time: ClassVar[float] = 0.1
    """Seconds that frames may wait in front of the program on kernel interfaces."""
    places_queues: ClassVar[bool] = False
    """Whether workers on each card's NUMA node can have that card's receive queues."""

    @abstractmethod
    def launch(
        self, changes: Changes, directory: str, cores: CoreChoice, west_mac: str, east_mac: str
    ) -> list[Daemon]:
        """Starts and configures the program, with all its files in a directory on the node.

        It returns the programs that must run until the tear-down. The MAC addresses are those of the neighbours.
        """

    @property
    def uses_cards(self) -> bool:
        """Whether it takes cards from the kernel.

        Raises:
            DutError: If only one of its interfaces is a card.
        """
        west, east = map(self.hop.is_card, self.hop.ports)
        if west != east:
            raise DutError(
                f"{self.kind} needs both interfaces of {self.hop.node_name} from the kernel (give a 'name' and no "
                f"'driver' in the topology file), or both as cards (give 'pci_address' and 'driver')."
            )
        return west

    @property
    def running(self) -> Daemon:
        """The first of its programs, which must be running."""
        _ = self.present
        self.check_running()
        return self.daemons[0]

    @property
    def settle_time(self) -> float:
        """Seconds that frames may wait in front of the program."""
        if self.uses_cards:
            return 0.01
        return self.socket_settle_time

    @property
    def program_files(self) -> tuple[str, ...]:
        """The files with the process ids of its programs."""
        return tuple(daemon.program.pid for daemon in self.daemons)

    @property
    def tools_needed(self) -> tuple[Tool, ...]:
        """Its tools, and the program that lists the CPUs."""
        return (*super().tools_needed, LSCPU)

    @property
    def hugepages_needed(self) -> int:
        """Megabytes of hugepages that it needs for cards."""
        return 1024

    @property
    def kernel_interfaces(self) -> tuple[str, ...]:
        """Both interfaces, or none if cards are taken from the kernel."""
        if self.uses_cards:
            return ()
        return (self.west, self.east)

    def port_name(self, port: Port) -> str:
        """Name of the Linux interface of a port, or the PCI address of its card.

        Raises:
            DutError: If the topology file gives the port neither.
        """
        if not self.uses_cards:
            return super().port_name(port)
        if port.interface.pci_address is None:
            raise DutError(f"{self.kind} needs the 'pci_address' of {port} in the topology file.")
        return port.interface.pci_address

    def check_ports(self) -> None:
        """Checks the interfaces; with cards, their drivers and the hugepages."""
        if not self.uses_cards:
            check_interfaces(self.node, (self.west, self.east))
            return
        for address, driver in self.cards:
            check_pci(self.node, address, driver)
        check_hugepages(self.node, self.hugepages_needed)

    def check_kind(self) -> None:
        """Checks that there are enough cores."""
        self._choose_cores()

    def build(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Takes the cards, silences the kernel on its interfaces, and starts the program."""
        self.daemons = []
        self.quieten(changes)
        cores = self._choose_cores()
        directory = make_directory(changes, self.kind)
        for address, driver in self.cards:
            bind(changes, self.node, address, driver)
        if isinstance(self.options, SocketOptions) and self.options.uses_af_xdp:
            detach_afterwards(changes, self.node, self.kernel_interfaces)
        self.daemons = self.launch(changes, directory, cores, west_mac, east_mac)

    def restart(self) -> None:
        """Kills its programs, and starts and configures them again."""
        present = self.present
        self.start_anew(present.changes, *present.neighbours)
        self.take_state()

    def start_anew(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Kills its programs, and launches them with new directories."""
        for daemon in reversed(self.daemons):
            self.node.run(*daemon.program.stop("KILL"))
        directory = make_directory(changes, self.kind)
        self.daemons = self.launch(changes, directory, self._choose_cores(), west_mac, east_mac)

    def facts(self) -> dict[str, Any]:
        """The CPUs, and the cards."""
        cores = self._choose_cores()
        lists = {
            name: list(getattr(cores, name)) for name in ("workers", "far", "of_east", "beside")
        }
        return {
            "cores": {**asdict(cores), **lists, "described": describe_cores(cores)},
            "cards": {address: pci_facts(self.node, address) for address, _ in self.cards},
        }

    def own_macs(self) -> DestinationMacs:
        """MAC addresses of its own interfaces.

        Raises:
            DutError: If a card has another driver, and no ``mac_address``.
        """
        return DestinationMacs(
            from_west=self._mac(self.hop.west), from_east=self._mac(self.hop.east)
        )

    def _mac(self, port: Port) -> str:
        if port.interface.mac_address is not None:
            return port.interface.mac_address.lower()
        name = self.port_name(port)
        if self.uses_cards:
            names = pci_interfaces(self.node, name)
            if not names:
                raise DutError(
                    f"{port}: the kernel does not know the card's MAC address, because another driver has the card. "
                    "Give its 'mac_address' in the topology file."
                )
            name = names[0]
        return str(read_links(self.node, name)[name]["address"])

    @property
    def cards(self) -> list[tuple[str, str]]:
        """PCI address and driver of each card; none if the kernel keeps the interfaces."""
        if not self.uses_cards:
            return []
        driver = self.hop.uio_driver
        return [
            (self.port_name(port), card_driver(port.interface.driver, driver))
            for port in self.hop.ports
        ]

    @property
    def polls(self) -> bool:
        """Whether its workers always keep their CPUs busy, so that no other DUT can use these CPUs."""
        return True

    def _choose_cores(self) -> CoreChoice:
        """Chooses cores that no earlier DUT of the chain has on the same machine."""
        before = self.chain[: self.chain.index(self)]
        same = [
            dut
            for dut in before
            if isinstance(dut, ProgramDut) and boot_id(dut.node) == boot_id(self.node)
        ]
        taken = frozenset(cpu for dut in same for cpu in dut.cpus)

        try:
            return cores_of_path(
                self.node, self.hop, self.options.cores, halves=self.places_queues, taken=taken
            )
        except NotMeasuredHereError as error:
            if not same:
                raise

            names = tuple(dut.hop.node_name for dut in same)
            if self.polls:
                raise NotMeasuredHereError(
                    f"{error} Other cores are in use by {', '.join(names)} on the same machine."
                ) from error

            choice = cores_of_path(
                self.node, self.hop, self.options.cores, halves=self.places_queues
            )
            return replace(choice, beside=names)

    @property
    def cpus(self) -> tuple[int, ...]:
        """The CPUs that it runs on."""
        choice = self._choose_cores()
        return (choice.main, *choice.workers)


def detach_afterwards(changes: Changes, node: DutNode, interfaces: Sequence[str]) -> None:
    """Has the undo detach XDP programs from interfaces, once all changes after this call have been undone.

    AF_XDP libraries attach an XDP program, which a killed program may leave behind.

    Raises:
        DutError: If there are no interfaces, or one has an XDP program already.
    """
    if not interfaces:
        raise node.error(
            "sockets=af_xdp needs kernel interfaces, but the topology file has cards for DPDK. Leave out "
            "sockets, or give the interfaces a 'name' and no 'driver'."
        )

    links = read_links(node, *interfaces)
    for name in interfaces:
        if "xdp" in links[name]:
            number = links[name]["xdp"].get("prog", {}).get("id", "unknown")
            raise node.error(
                f"interface {name} already has an XDP program ({number}), but AF_XDP needs its own. If the program "
                f"is not needed, stop its owner, or detach it (ip link set dev {name} xdp off, or xdpgeneric off)."
            )
        for mode in ("xdp", "xdpgeneric"):
            changes.clean_up("ip", "link", "set", "dev", name, mode, "off")


def card_driver(driver: str | None, uio_driver: str | None) -> str:
    """The driver that a card is bound to for a program, from the drivers of interface and node in the topology file.

    The interface's driver may also be the kernel's own.
    """
    if driver is not None and driver in BIFURCATED:
        return driver
    return uio_driver or driver or "vfio-pci"


def check_pci(node: DutNode, address: str, driver: str) -> None:
    """Checks that a card can be taken from the kernel by a driver, e.g. ``vfio-pci``, and has no other use.

    The address is the card's PCI address, e.g. ``0000:3b:00.0``.

    Raises:
        DutError: If the node lacks the card or the driver, or uses an interface of the card.
    """
    if node.attempt("test", "-d", f"{_DEVICES}/{address}").exit_status != 0:
        raise DutError(
            f"{node.name} has no PCI device {address}. Correct it in the topology file (see lspci -D)."
        )
    if node.attempt("test", "-d", f"/sys/bus/pci/drivers/{driver}").exit_status != 0:
        raise node.error(
            f"the kernel has not loaded the driver {driver!r} for PCI device {address}. Load it (modprobe "
            f"{driver}); vfio-pci also needs the IOMMU switched on."
        )
    interfaces = pci_interfaces(node, address)
    if interfaces:
        check_interfaces(node, interfaces)


def check_hugepages(node: DutNode, megabytes: int) -> None:
    """Checks that enough memory in hugepages is free; a megabyte has 2^20 bytes.

    Raises:
        DutError: If less is free; the message has the command that reserves it.
    """
    fields = dict(re.findall(r"^(\w+):\s*(\d+)", node.run("cat", "/proc/meminfo"), re.MULTILINE))
    size = int(fields.get("Hugepagesize", "0"))
    free_pages = int(fields.get("HugePages_Free", "0"))
    free = free_pages * size // _KB_OF_MB
    if free < megabytes:
        # The sysctl's value has the pages that other programs use, too.
        used_pages = int(fields.get("HugePages_Total", "0")) - free_pages
        needed_pages = math.ceil(megabytes * _KB_OF_MB / size) if size else 0
        raise node.error(
            f"hugepages missing: {megabytes} MB are needed, and {free} MB are free. "
            f"Reserve them (sysctl vm.nr_hugepages={used_pages + needed_pages} for pages of {size} kB), best at boot."
        )


def bound_driver(node: DutNode, address: str) -> str | None:
    """Name of a card's driver; None if it has none."""
    link = node.attempt("readlink", f"{_DEVICES}/{address}/driver")
    if link.exit_status == 0:
        return link.stdout.strip().rpartition("/")[2]
    return None


def pci_interfaces(node: DutNode, address: str) -> Sequence[str]:
    """Names of the Linux interfaces of a card; none if the kernel does not have the card."""
    ask = f'{INTERFACES_OF_CARD}interfaces_of_card "$1"'
    paths = node.run("sh", "-c", ask, "interfaces", f"{_DEVICES}/{address}").split()
    return [path.rpartition("/")[2] for path in paths]


def pci_facts(node: DutNode, address: str) -> dict[str, Any]:
    """Vendor, device, driver and NUMA node of a card, as JSON data for the test report."""
    names = (
        "vendor",
        "device",
        "subsystem_vendor",
        "subsystem_device",
        "numa_node",
        "current_link_speed",
    )
    texts = node.read_files(*(f"{_DEVICES}/{address}/{name}" for name in names))
    values = {path.rpartition("/")[2]: text for path, text in texts.items()}
    return {"driver": bound_driver(node, address), **values}


# A driver makes its interface anew: it is down, and has another name until udev has renamed it.
_PUT_BACK = (
    INTERFACES_OF_CARD
    + RINGS_OF
    + r"""
address=$1 name=$2 mtu=$3 state=$4 rings=$5
tries=0
until [ -e "/sys/class/net/$name" ] || [ "$tries" -ge 30 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
if [ ! -e "/sys/class/net/$name" ]; then
    set -- $(interfaces_of_card "/sys/bus/pci/devices/$address")
    [ $# -eq 1 ] || { echo "PCI device $address has no interface $name any more" >&2; exit 1; }
    ip link set dev "${1##*/}" name "$name" || exit 1
fi
# Sizes that are right already would be an error.
[ "$(rings_of "$name")" = "$rings" ] || ethtool -G "$name" $rings || exit 1
# A program that was killed leaves its card running. The driver of vmxnet3 then starts nothing, and the card goes on
# with the program's rings, until the driver stops it.
ip link set dev "$name" up
ip link set dev "$name" down
ip link set dev "$name" mtu "$mtu" "$state"
"""
)
"""Restores name, ring sizes, MTU and state of a card's interface, once the card is back at its driver."""
_IFF_UP = 0x1


def _put_interfaces_back(changes: Changes, node: DutNode, address: str) -> None:
    """Makes the undo restore the settings that the interfaces of a card lose when its driver is unbound."""
    for name in pci_interfaces(node, address):
        directory = f"/sys/class/net/{name}"
        texts = node.read_files(f"{directory}/flags", f"{directory}/mtu")
        flags = int(texts.get(f"{directory}/flags", "0"), 16)
        state = "up" if flags & _IFF_UP else "down"
        mtu = texts.get(f"{directory}/mtu")
        if mtu is not None:
            rings = node.run("sh", "-c", f'{RINGS_OF}rings_of "$1"', "rings", name).strip()
            changes.put_back("sh", "-c", _PUT_BACK, "put-back", address, name, mtu, state, rings)


def bind(changes: Changes, node: DutNode, address: str, driver: str) -> None:
    """Binds a card to a driver. The undo binds it to its present driver again.

    Its interface then gets its name, MTU, state and sizes of rings back. Other settings of the driver, such as the CPUs
    of its interrupts, do not come back. The address is the card's PCI address, e.g. ``0000:3b:00.0``.

    Raises:
        DutError: If the driver did not take the card.
    """
    before = bound_driver(node, address)
    if before == driver or driver in BIFURCATED:
        return

    unbind = ("tee", f"{_DEVICES}/{address}/driver/unbind")
    override = ("tee", f"{_DEVICES}/{address}/driver_override")
    probe = ("tee", "/sys/bus/pci/drivers_probe")
    given = f"{address}\n"
    _put_interfaces_back(changes, node, address)
    # The undo runs backwards: unbind, remove the override, and probe, which finds the earlier driver.
    if before is not None:
        changes.run(*unbind, stdin=given, undo=probe, undo_stdin=given)
    changes.run(*override, stdin=f"{driver}\n", undo=override, undo_stdin="\n")
    changes.run(*probe, stdin=given, undo=unbind, undo_stdin=given)
    if bound_driver(node, address) != driver:
        raise node.error(
            f"the driver {driver!r} did not take PCI device {address}. See the kernel's messages there (dmesg); "
            "vfio-pci needs an IOMMU (intel_iommu=on), and every device of the same IOMMU group."
        )
