"""Cards are taken from the kernel and given back, on a node whose sysfs behaves as the kernel's."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from lossratio.dut import create_dut
from lossratio.dut.changes import Changes
from lossratio.dut.linux import core_choices
from lossratio.dut.linux.program_dut import (
    ProgramDut,
    bind,
    bound_driver,
    card_driver,
    check_hugepages,
    check_pci,
    pci_interfaces,
)
from lossratio.dut.linux.reports import interface_facts
from lossratio.dut.vpp.configuration import placement_commands
from lossratio.dut.vpp.startup import Card, lines_for_iommu, startup_configuration
from lossratio.errors import DutError
from lossratio.nodes import CommandResult, Core
from lossratio.nodes.node import DutNode
from lossratio.topology import Hop, Interface, Port, VppStart

WEST, EAST = "0000:18:00.0", "0000:18:00.1"
ENVIRONMENT_LENGTH = 3
STARTED_AND_STOPPED = ("link set dev eth0 up", "link set dev eth0 down")
"""Commands that end what a killed program has left running on a card."""


class SysfsNode:
    """A node with two cards, whose /sys is a directory; writing to its files does what the kernel does."""

    name = "DUT1"

    def __init__(self, root, *, probes=True):
        self._bus = root / "bus" / "pci"
        self._root = root
        self._probes = probes
        self.rings = root / "rings"
        self._stand_ins = f"""
            ip() {{ echo "$*" >>{root}/ip; }}
            ethtool() {{
                case $1 in
                -g) [ ! -f {self.rings} ] || cat {self.rings} ;;
                -G) echo "$*" >>{root}/ip ;;
                -i) echo "driver: ice" ;;
                --json) echo "[{{}}]" ;;
                esac
            }}
        """
        for driver in ("ice", "vfio-pci"):
            (self._bus / "drivers" / driver).mkdir(parents=True)
        for address in (WEST, EAST):
            device = self._bus / "devices" / address
            (device / "net" / f"eth{address[-1]}").mkdir(parents=True)
            (device / "driver_override").write_text("(null)\n")
            (device / "numa_node").write_text("1\n")
            (device / "driver").symlink_to(self._bus / "drivers" / "ice")

    def run(self, *command, timeout=30.0, check=True, stdin=None):
        line = [self._here(word) for word in command[ENVIRONMENT_LENGTH:]]
        if line == ["cat", "/proc/meminfo"]:
            text = "MemTotal: 64 kB\nHugePages_Total: 13\nHugePages_Free: 3\nHugepagesize: 2048 kB\n"
            return CommandResult(command, 0, text, "")
        if line[0] == "tee":
            return self._write(command, line[1], stdin)
        if line[0] == "sh":
            # Nobody may touch an interface of this machine.
            line[2] = f"{self._stand_ins}\n{line[2]}"
        done = subprocess.run(line, input=stdin or "", capture_output=True, text=True, check=False)
        return CommandResult(command, done.returncode, done.stdout.replace(str(self._root), "/sys"), done.stderr)

    def _here(self, word):
        return word.replace("/sys/", f"{self._root}/").replace("/proc/irq/", f"{self._root}/irq/")

    def _write(self, command, path, text):
        if path.endswith("/unbind"):
            (self._bus / "devices" / text.strip() / "driver").unlink()
        elif path.endswith("/drivers_probe"):
            device = self._bus / "devices" / text.strip()
            wanted = (device / "driver_override").read_text().strip()
            driver = "ice" if wanted in ("(null)", "") else wanted
            if self._probes or driver == "ice":
                (device / "driver").symlink_to(self._bus / "drivers" / driver)
        else:
            (self._root / path).write_text(text)
        return CommandResult(command, 0, "", "")


@pytest.fixture
def node(plain_path):
    return DutNode(SysfsNode(plain_path))


def test_a_card_goes_to_another_driver_and_back(node):
    changes = Changes(node)
    bind(changes, node, WEST, "vfio-pci")
    assert (bound_driver(node, WEST), bound_driver(node, EAST)) == ("vfio-pci", "ice")
    changes.roll_back()
    assert bound_driver(node, WEST) == "ice"


@pytest.mark.parametrize(("flags", "state"), [("0x1003", "up"), ("0x1002", "down")])
@pytest.mark.parametrize("is_renamed", [False, True])
def test_an_interface_gets_its_name_mtu_and_state_back(node, plain_path, flags, state, is_renamed):
    known = plain_path / "class" / "net" / "eth0"
    known.mkdir(parents=True)
    (known / "flags").write_text(f"{flags}\n")
    (known / "mtu").write_text("9000\n")
    changes = Changes(node)
    bind(changes, node, WEST, "vfio-pci")
    if is_renamed:
        # The driver has named it, and nobody renames it on this machine.
        known.rename(known.with_name("eth7"))
        (plain_path / "bus/pci/devices" / WEST / "net/eth0").rename(plain_path / "bus/pci/devices" / WEST / "net/eth7")
    changes.roll_back()
    said = (plain_path / "ip").read_text().splitlines()
    renamed = ["link set dev eth7 name eth0"] * is_renamed
    assert said == [*renamed, *STARTED_AND_STOPPED, f"link set dev eth0 mtu 9000 {state}"]


# As ethtool 6.1 prints it. The driver makes its rings anew, with its own sizes.
RINGS = """Ring parameters for eth0:
Pre-set maximums:
RX:\t\t4096
RX Mini:\tn/a
TX:\t\t4096
Current hardware settings:
RX:\t\t{}
RX Mini:\tn/a
TX:\t\t{}
RX Buf Len:\t\tn/a
"""


@pytest.mark.parametrize(("after", "said"), [((256, 512), ["-G eth0 rx 1024 tx 2048"]), ((1024, 2048), [])])
def test_an_interface_gets_the_sizes_of_its_rings_back(node, plain_path, after, said):
    known = plain_path / "class" / "net" / "eth0"
    known.mkdir(parents=True)
    (known / "flags").write_text("0x1003\n")
    (known / "mtu").write_text("1500\n")
    (plain_path / "rings").write_text(RINGS.format(1024, 2048))
    changes = Changes(node)
    bind(changes, node, WEST, "vfio-pci")
    (plain_path / "rings").write_text(RINGS.format(*after))
    changes.roll_back()
    commands = [*said, *STARTED_AND_STOPPED, "link set dev eth0 mtu 1500 up"]
    assert (plain_path / "ip").read_text().splitlines() == commands


def of_interrupt(root, number, cpus):
    (root / "irq" / number).mkdir(parents=True)
    (root / "irq" / number / "smp_affinity_list").write_text(f"{cpus}\n")


@pytest.mark.parametrize("is_virtio", [False, True])
def test_the_facts_of_an_interface_have_its_rings_and_the_cpus_of_its_interrupts(node, plain_path, is_virtio):
    card = plain_path / "bus/pci/devices" / WEST
    (card / "msi_irqs").mkdir()
    for number, cpus in (("30", "0-3"), ("31", "2")):
        (card / "msi_irqs" / number).touch()
        of_interrupt(plain_path, number, cpus)
    if is_virtio:
        as_virtio(plain_path, WEST)
    else:
        (plain_path / "class/net/eth0").mkdir(parents=True)
        (plain_path / "class/net/eth0/device").symlink_to(card)
    (plain_path / "rings").write_text(RINGS.format(1024, 2048))

    link = {"ifname": "eth0", "address": "02:00:00:00:00:01", "mtu": 1500, "operstate": "UP", "flags": []}
    (facts,) = interface_facts(node, [link]).values()
    assert facts["driver"] == "ice"
    assert facts["rings"] == {"rx": 1024, "tx": 2048}
    assert facts["interrupt_cpus"] == ["0-3", "2"]


def test_an_interface_that_does_not_come_back_is_named(node, plain_path):
    known = plain_path / "class" / "net" / "eth0"
    known.mkdir(parents=True)
    (known / "flags").write_text("0x1003\n")
    (known / "mtu").write_text("1500\n")
    changes = Changes(node)
    bind(changes, node, WEST, "vfio-pci")
    known.rename(plain_path / "gone")
    (plain_path / "bus/pci/devices" / WEST / "net/eth0").rmdir()
    with pytest.raises(DutError, match=r"PCI device 0000:18:00\.0 has no interface eth0 any more"):
        changes.roll_back()


def test_a_card_that_has_the_driver_already_keeps_it(node):
    first, second = Changes(node), Changes(node)
    bind(first, node, WEST, "vfio-pci")
    bind(second, node, WEST, "vfio-pci")
    second.roll_back()
    assert bound_driver(node, WEST) == "vfio-pci"


def test_a_card_of_a_driver_that_programs_share_with_the_kernel_stays_there(node):
    changes = Changes(node)
    bind(changes, node, WEST, "mlx5_core")
    assert (bound_driver(node, WEST), changes.commands) == ("ice", [])


def test_a_card_that_does_not_go_to_the_driver_is_given_back(plain_path):
    node = DutNode(SysfsNode(plain_path, probes=False))
    changes = Changes(node)
    with pytest.raises(DutError, match=r"DUT1: the driver 'vfio-pci' did not take PCI device 0000:18:00\.0.*IOMMU"):
        bind(changes, node, WEST, "vfio-pci")
    (plain_path / "bus/pci/devices" / WEST / "driver").symlink_to(plain_path / "bus/pci/drivers/vfio-pci")
    changes.roll_back()
    assert bound_driver(node, WEST) == "ice"


@pytest.mark.parametrize(
    ("address", "driver", "message"),
    [
        ("0000:99:00.0", "vfio-pci", r"DUT1 has no PCI device 0000:99:00\.0\. Correct it in the topology file"),
        (WEST, "igb_uio", r"has not loaded the driver 'igb_uio'.*modprobe igb_uio"),
    ],
)
def test_a_missing_card_or_driver_is_named(node, address, driver, message):
    with pytest.raises(DutError, match=message):
        check_pci(node, address, driver)


def as_virtio(root, address):
    """Makes a card one of virtio: its interface belongs to the virtio device that it carries."""
    card = root / "bus" / "pci" / "devices" / address
    carried = card / "virtio2"
    carried.mkdir()
    (card / "net").rename(carried / "net")
    interface = carried / "net" / f"eth{address[-1]}"
    (interface / "device").symlink_to(carried)
    (root / "class" / "net").mkdir(parents=True, exist_ok=True)
    (root / "class" / "net" / interface.name).symlink_to(interface)


def test_the_interface_of_a_virtio_card_is_found(plain_path):
    node = DutNode(SysfsNode(plain_path))
    as_virtio(plain_path, EAST)
    assert [pci_interfaces(node, address) for address in (WEST, EAST)] == [["eth0"], ["eth1"]]


def test_a_virtio_cards_numa_node_is_that_of_its_pci_device(plain_path, monkeypatch):
    of_a_server(monkeypatch)
    node = SysfsNode(plain_path)
    for address in (WEST, EAST):
        as_virtio(plain_path, address)
    dut = create_dut("testpmd", node, hop({"name": "eth0"}, {"name": "eth1"}), {})
    assert ProgramDut.facts(dut)["cores"]["numa_node"] == 1


def test_missing_hugepages_are_said_with_how_to_reserve_them_beside_those_in_use(node):
    with pytest.raises(
        DutError, match=r"hugepages missing: 1024 MB are needed, and 6 MB are free.*nr_hugepages=522 for"
    ):
        check_hugepages(node, 1024)
    check_hugepages(node, 6)


def hop(west, east):
    return Hop(
        "DUT1", Port("DUT1", "port0", Interface(link="a", **west)), Port("DUT1", "port1", Interface(link="b", **east))
    )


@pytest.mark.parametrize("kind", ["testpmd", "ovs", "vpp"])
def test_a_driver_in_the_topology_means_that_the_card_is_taken(node, kind):
    named = {"name": "eth0", "pci_address": WEST, "driver": "vfio-pci"}
    dut = create_dut(kind, node, hop(named, {"pci_address": EAST}), {})
    assert isinstance(dut, ProgramDut)
    assert (dut.west, dut.east, dut.kernel_interfaces) == (WEST, EAST, ())


def test_a_node_that_names_a_driver_for_user_space_has_its_cards_taken(node):
    ports = ({"name": "eth0", "pci_address": WEST}, {"name": "eth1", "pci_address": EAST})
    kernel, cards = hop(*ports), replace(hop(*ports), uio_driver="vfio-pci")
    assert not create_dut("testpmd", node, kernel, {}).uses_cards
    assert create_dut("testpmd", node, cards, {}).uses_cards
    assert create_dut("linux_bridge", node, cards, {}).kernel_interfaces == ("eth0", "eth1")


def test_the_interfaces_of_a_switch_on_cards_have_names_that_the_kernel_takes(node):
    cards = hop({"pci_address": WEST}, {"pci_address": EAST})
    assert create_dut("ovs", node, cards, {}).stem == "lr-00-18-00.0"


def test_a_switch_without_dpdk_says_which_one_to_choose_for_cards(plain_path, monkeypatch):
    program = plain_path / "ovs-vswitchd"
    program.write_text("#!/bin/sh\necho 'ovs-vswitchd (Open vSwitch) 3.1.0'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(plain_path), prepend=":")
    switch = create_dut("ovs", SysfsNode(plain_path), hop({"pci_address": WEST}, {"pci_address": EAST}), {})
    with pytest.raises(DutError, match="update-alternatives --set ovs-vswitchd /usr/lib/openvswitch-switch-dpdk/"):
        switch.check_dpdk()

    program.write_text("#!/bin/sh\necho 'ovs-vswitchd (Open vSwitch) 3.1.0'; echo 'DPDK 22.11.11'\n")
    switch.check_dpdk()


@pytest.mark.parametrize(
    ("driver", "uio_driver", "bound"),
    [
        (None, None, "vfio-pci"),
        ("igb_uio", None, "igb_uio"),
        ("ice", "vfio-pci", "vfio-pci"),
        ("mlx5_core", "vfio-pci", "mlx5_core"),
    ],
)
def test_a_cards_driver_is_the_nodes_unless_the_kernel_shares_it(driver, uio_driver, bound):
    assert card_driver(driver, uio_driver) == bound


@pytest.mark.parametrize(
    ("west", "east", "message"),
    [
        ({"name": "eth0"}, {"pci_address": EAST, "driver": "vfio-pci"}, "both interfaces of DUT1 from the kernel"),
        ({"driver": "vfio-pci", "name": "eth0"}, {"pci_address": EAST}, r"needs the 'pci_address' of DUT1\.port0"),
    ],
)
def test_interfaces_that_do_not_go_together_are_refused(node, west, east, message):
    with pytest.raises(DutError, match=message):
        create_dut("testpmd", node, hop(west, east), {})


def of_a_server(monkeypatch):
    """Two NUMA nodes of four cores each, and no checks of cards and memory."""
    cores = tuple(Core((number,), number // 4) for number in range(8))
    for module in ("linux.cores", "vpp.path"):
        monkeypatch.setattr(f"lossratio.dut.{module}.read_cores", lambda _: cores)
    for check in ("check_pci", "check_hugepages"):
        monkeypatch.setattr(f"lossratio.dut.linux.program_dut.{check}", lambda *_: None)


@pytest.mark.parametrize(
    ("driver", "message"),
    [
        ("rdma", r"rdma is for cards that the kernel keeps .*PCI device 0000:18:00\.0 has the driver ice"),
        ("avf", r"avf is for virtual functions, but PCI device 0000:18:00\.0 is not one\. Make one there \(echo 1 > "),
    ],
)
def test_cards_that_do_not_go_with_vpps_driver_are_refused_with_the_way_out(plain_path, monkeypatch, driver, message):
    of_a_server(monkeypatch)
    ports = ({"pci_address": WEST, "driver": "vfio-pci"}, {"pci_address": EAST, "driver": "vfio-pci"})
    path = replace(hop(*ports), vpp=VppStart(driver=driver))
    dut = create_dut("vpp", SysfsNode(plain_path), path, {})
    with pytest.raises(DutError, match=message):
        dut.check_ports()


@pytest.mark.parametrize(("driver", "bound"), [("rdma", "mlx5_core"), ("avf", "vfio-pci")])
def test_a_driver_for_cards_is_never_left_out_for_packet_sockets(plain_path, driver, bound):
    path = replace(hop({"name": "eth0"}, {"name": "eth1", "pci_address": EAST}), vpp=VppStart(driver=driver))
    dut = create_dut("vpp", SysfsNode(plain_path), path, {})
    message = rf"VPP's driver {driver} is for cards, and DUT1\.port0 and DUT1\.port1 would stay .*'driver: {bound}'"
    with pytest.raises(DutError, match=message):
        dut.check_ports()


def test_a_virtual_function_goes_with_vpps_driver_for_them(plain_path, monkeypatch):
    of_a_server(monkeypatch)
    node = SysfsNode(plain_path)
    for address in (WEST, EAST):
        (plain_path / "bus" / "pci" / "devices" / address / "physfn").symlink_to(plain_path)
    ports = ({"pci_address": WEST, "driver": "vfio-pci"}, {"pci_address": EAST, "driver": "vfio-pci"})
    create_dut("vpp", node, replace(hop(*ports), vpp=VppStart(driver="avf")), {}).check_ports()


def test_a_card_on_another_numa_node_than_the_workers_is_named(plain_path, monkeypatch):
    of_a_server(monkeypatch)
    ports = ({"pci_address": WEST, "driver": "vfio-pci"}, {"pci_address": EAST, "driver": "vfio-pci"})
    dut = create_dut("testpmd", SysfsNode(plain_path), hop(*ports), {})
    facts = ProgramDut.facts(dut)
    cores = facts["cores"]
    assert facts["cards"][WEST]["numa_node"] == "1"
    assert (cores["numa_node"], cores["workers"], cores["far"]) == (1, [5], [])
    (plain_path / "bus" / "pci" / "devices" / WEST / "numa_node").write_text("0\n")
    assert ProgramDut.facts(dut)["cores"]["far"] == [EAST]


def on_two_numa_nodes(plain_path, kind, **options):
    ports = ({"pci_address": WEST, "driver": "vfio-pci"}, {"pci_address": EAST, "driver": "vfio-pci"})
    dut = create_dut(kind, SysfsNode(plain_path), hop(*ports), options)
    (plain_path / "bus" / "pci" / "devices" / EAST / "numa_node").write_text("0\n")
    return dut


def test_vpp_has_the_queues_of_each_card_on_workers_of_its_numa_node(plain_path, monkeypatch):
    of_a_server(monkeypatch)
    dut = on_two_numa_nodes(plain_path, "vpp", cores=4)
    cores = dut._choose_cores()
    assert cores.by_side == ((5, 6), (1, 2))
    west, east = dut._vpp_cards(cores)
    # VPP's worker 0 is on CPU 1.
    assert (west.queues, west.workers, east.queues, east.workers) == (2, (2, 3), 2, (0, 1))
    assert [command.text for command in placement_commands((west, east))] == [
        "set interface rx-placement west queue 0 worker 2",
        "set interface rx-placement west queue 1 worker 3",
        "set interface rx-placement east queue 0 worker 0",
        "set interface rx-placement east queue 1 worker 1",
    ]
    assert "corelist-workers 5,6,1,2" in startup_configuration("/run/one", cores, (west, east))
    more = on_two_numa_nodes(plain_path / "more", "vpp", cores=2, queues=3)
    assert [card.queues for card in more._vpp_cards(more._choose_cores())] == [3, 3]


def test_vpp_spreads_queues_itself_where_both_cards_are_on_one_numa_node(plain_path, monkeypatch):
    of_a_server(monkeypatch)
    ports = ({"pci_address": WEST, "driver": "vfio-pci"}, {"pci_address": EAST, "driver": "vfio-pci"})
    dut = create_dut("vpp", SysfsNode(plain_path), hop(*ports), {"cores": 2})
    cards = dut._vpp_cards(dut._choose_cores())
    assert [(card.queues, card.workers) for card in cards] == [(2, ()), (2, ())]
    assert list(placement_commands(cards)) == []


# Capability registers of an IOMMU of 48 bits, and of one of 39.
WIDE, NARROW = "8d2078c106f0466", "d2008c22260286"


@pytest.mark.parametrize(
    ("registers", "startup", "lines"),
    [
        ([], {}, ()),
        ([WIDE], {}, ()),
        ([WIDE, NARROW], {}, ("dpdk base-virtaddr 0x2000000000",)),
        ([NARROW], {"dpdk": "iova-mode pa"}, ()),
    ],
)
def test_dpdks_memory_in_vpp_is_where_a_narrow_iommu_reaches_it(node, plain_path, registers, startup, lines):
    for number, register in enumerate(registers):
        directory = plain_path / f"class/iommu/dmar{number}/intel-iommu"
        directory.mkdir(parents=True)
        (directory / "cap").write_text(f"{register}\n")
    card = Card(WEST, "west", 1, 1024)
    assert lines_for_iommu(node, VppStart(startup=startup), [card]) == lines
    assert lines_for_iommu(node, VppStart(startup=startup), []) == ()


def test_testpmds_threads_take_turns_between_the_cards(plain_path, monkeypatch):
    of_a_server(monkeypatch)
    dut = on_two_numa_nodes(plain_path, "testpmd", cores=4)
    started = []
    monkeypatch.setattr(dut, "run_program", lambda changes, program, directory, name: started.extend(program))
    dut.launch(Changes(dut.node), "/run/one", dut._choose_cores(), "02::", "03::")
    # Testpmd gives its threads west queue 0, east queue 0, west queue 1, east queue 1.
    assert "0@4,1@5,2@1,3@6,4@2" in started
    assert {"--nb-cores=4", "--rxq=2", "--txq=2"} <= set(started)
    other = on_two_numa_nodes(plain_path / "other", "testpmd", cores=4, queues=4)
    with pytest.raises(DutError, match=r"each card a queue for each of the 2 threads .* Leave out queues"):
        other.check_kind()


def test_what_programs_would_get_is_said_before_a_measurement(plain_path, monkeypatch):
    of_a_server(monkeypatch)
    dut = on_two_numa_nodes(plain_path, "vpp")
    assert list(core_choices(dut.node, dut.hop)) == [
        f"cores=1: main thread 4, workers 5 on NUMA node 1; {EAST} is on another node, and its frames cross",
        "cores=2: main thread 4, workers 5 for the west card on NUMA node 1 and 1 for the east card on the other node",
        "cores=2, programs other than VPP and testpmd: workers on the west card's node alone",
        "cores=4: main thread 4, workers 5,6 for the west card on NUMA node 1 and 1,2 for the east card on the other "
        "node",
        "cores=4, programs other than VPP and testpmd: workers on the west card's node alone",
    ]
    assert list(core_choices(dut.node, hop({"name": "eth0"}, {"name": "eth1"}))) == []
    single = tuple(Core((number,), 1) for number in range(5))
    monkeypatch.setattr("lossratio.dut.linux.cores.read_cores", lambda _: single)
    refused = list(core_choices(dut.node, dut.hop))[1]
    assert refused.startswith("cores=2: DUT1: 2 physical cores were requested. The west card is on NUMA node 1 and the")
    assert "on NUMA node 0, but only 0 remain" in refused
