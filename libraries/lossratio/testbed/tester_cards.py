"""The cards of the TG: taken from the kernel for a generator that drives them itself, and given back afterwards."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from lossratio.dut import Changes
from lossratio.dut.linux import BIFURCATED, bind, card_driver, check_pci
from lossratio.errors import DutError, TesterError
from lossratio.nodes import Card, DutNode, Hardware, NodeSession, read_hardware
from lossratio.testbed.undo import LastWill, put_off_interruption
from lossratio.topology import Node, Port, RealGenerator, TrexGenerator

_PAGES = "/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages"
_FOR_USER_SPACE = ("vfio-pci", "igb_uio", "uio_pci_generic", *BIFURCATED)


def takes_cards(node: Node) -> bool:
    """Whether the node's generator drives its cards itself, so that the kernel does not have them."""
    return isinstance(node.generator, RealGenerator) and node.generator.takes_cards


def card_problems(node: Node, ports: Sequence[Port], hardware: Hardware) -> Iterator[str]:
    """Finds reasons why a generator cannot have its cards, each with a remedy. Nothing is changed."""
    for port in ports:
        address = card_address(port)
        card = hardware.cards.get(address)
        if card is None:
            yield f"port {port.name}: there is no PCI device {address}; correct it in the topology file (lspci -D)"
            continue

        driver = _driver(node, port, card)
        has_iommu = card.iommu_group is not None or hardware.needs_no_iommu
        if driver == "vfio-pci" and not has_iommu:
            yield (
                f"port {port.name}: vfio-pci needs an IOMMU, and none is on for {address}: switch it on in the BIOS, "
                "and boot with intel_iommu=on iommu=pt (AMD: amd_iommu=on); or set 'uio_driver: igb_uio'; or, on a "
                "virtual machine, modprobe vfio enable_unsafe_noiommu_mode=1"
            )

        if driver not in _FOR_USER_SPACE:
            yield (
                f"port {port.name}: {address} has the driver {driver or 'none'}, but the generator needs a driver "
                "for user space. Set 'uio_driver: vfio-pci' for the node: each run then binds the card and restores "
                "it. Or bind it yourself"
            )


@contextmanager
def taken_cards(session: NodeSession, node: Node, ports: Sequence[Port]) -> Iterator[None]:
    """Binds the cards of a generator to the node's ``uio_driver``, and reserves hugepages; both are undone afterwards.

    Every change is recorded on the TG before it is made. If this process is killed, the next one that uses the TG
    undoes it.

    Raises:
        TesterError: If a card or hugepages cannot be used; the message says what to do.
    """
    hardware = read_hardware(session, [card_address(port) for port in ports])
    problems = list(card_problems(node, ports, hardware))
    if problems:
        raise TesterError(f"{session.name}: {'; '.join(problems)}.")

    tester = DutNode(session)
    tester.will = LastWill(session)
    changes = Changes(tester)

    with ExitStack() as undo:
        undo.callback(_give_back, changes, session)
        try:
            if isinstance(node.generator, TrexGenerator) and node.generator.hugepages is not None:
                _reserve(changes, tester, hardware, node.generator.hugepages)
            if node.uio_driver is not None:
                for port in ports:
                    address = card_address(port)
                    driver = _driver(node, port, hardware.cards[address])
                    if driver is not None and hardware.cards[address].driver != driver:
                        check_pci(tester, address, driver)
                        bind(changes, tester, address, driver)
        except DutError as error:
            raise TesterError(str(error)) from error

        yield


def _reserve(changes: Changes, tester: DutNode, hardware: Hardware, megabytes: int) -> None:
    for number in sorted({card.numa_node for card in hardware.cards.values()}):
        missing = megabytes - hardware.hugepages.get(number, 0)
        if missing <= 0:
            continue

        path = _PAGES.format(node=number)
        before = tester.read_files(path).get(path)
        if before is None:
            raise TesterError(
                f"{tester.name}: the kernel has no hugepages of 2 MB on NUMA node {number} ({path}). "
                "Leave out 'hugepages', or boot a kernel with such pages."
            )

        wanted = int(before) + -(-missing // 2)
        changes.write(path, str(wanted))
        there = int(tester.read_files(path).get(path, "0"))
        if there < wanted:
            raise TesterError(
                f"{tester.name}: {megabytes} MB of hugepages were requested on NUMA node {number}, but the kernel "
                f"found room for {there - int(before)} of {wanted - int(before)} more pages of 2 MB. Reserve them "
                "at boot (hugepages=...), or ask for fewer."
            )


def _give_back(changes: Changes, session: NodeSession) -> None:
    with put_off_interruption():
        session.restore()
        try:
            changes.roll_back()
        except DutError as error:
            raise TesterError(str(error)) from error


def _driver(node: Node, port: Port, card: Card) -> str | None:
    """The driver that a card must have: ``uio_driver`` if there is one, except for cards shared with the kernel."""
    if card.driver in BIFURCATED or node.uio_driver is None:
        return card.driver
    return card_driver(port.interface.driver, node.uio_driver)


def card_address(port: Port) -> str:
    """PCI address of a port of the TG, as Linux writes it."""
    # A port without an address was refused when the file was checked.
    return (port.interface.pci_address or "").lower()
