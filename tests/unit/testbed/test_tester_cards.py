"""Cards of the TG go to the generator's driver and back, on a machine whose sysfs behaves as the kernel's."""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import shlex
import shutil
import subprocess
from dataclasses import replace

import pytest

from lossratio.agent import Question
from lossratio.errors import TesterError, TopologyError
from lossratio.nodes import CommandResult, NodeProcess, read_hardware
from lossratio.testbed.next_hops import check_can_ask
from lossratio.testbed.tester_cards import card_problems, taken_cards
from lossratio.topology import Interface, Node, Port

WEST, EAST = "0000:18:00.0", "0000:18:00.1"
LSCPU = {"cpus": [{"cpu": cpu, "core": cpu % 4, "socket": 0, "node": 0} for cpu in range(8)]}


class Keeper(NodeProcess):
    """The process on the node that keeps the last will; it only notes what it is given."""

    def __init__(self, lines):
        self.lines = lines

    def read_line(self, *_):
        return "1"

    def write_line(self, text, /):
        self.lines.append(text)

    def close(self):
        return 0


class Machine:
    """A TG with two cards and hugepages, whose /sys is a directory; writing to its files does what the kernel does."""

    name = "TG"

    def __init__(self, root, *, driver="ice", iommu=True, most_pages=10_000):
        self._most_pages = most_pages
        self.settle_in(root)
        self.will: list[str] = []
        self.usual = driver
        for name in ("ice", "vfio-pci", "igb_uio", "mlx5_core"):
            (self._bus / "drivers" / name).mkdir(parents=True)
        for address in (WEST, EAST):
            device = self._bus / "devices" / address
            device.mkdir(parents=True)
            (device / "driver_override").write_text("(null)\n")
            (device / "numa_node").write_text("1\n")
            (device / "vendor").write_text("0x8086\n")
            (device / "device").write_text("0x1592\n")
            (device / "driver").symlink_to(self._bus / "drivers" / driver)
            if iommu:
                (device / "iommu_group").symlink_to(root / "iommu_groups" / "31")
        self.pages.parent.mkdir(parents=True)
        self.pages.write_text("512\n")

    def settle_in(self, root):
        self.root, self._bus = root, root / "bus" / "pci"
        self.pages = root / "devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"

    def run(self, *command, timeout=30.0, check=True, stdin=None):
        line = [word.replace("/sys/", f"{self.root}/") for word in command]
        if line[:1] == ["env"]:
            line = line[3:]
        if line[0] == "tee":
            self.write(line[1], stdin)
            return CommandResult(command, 0, "", "")
        line = [word.replace("lscpu --json", f"echo '{json.dumps(LSCPU)}' #") for word in line]
        done = subprocess.run(line, input=stdin or "", capture_output=True, text=True, check=False)
        return CommandResult(command, done.returncode, done.stdout.replace(str(self.root), "/sys"), done.stderr)

    def start(self, *command):
        return Keeper(self.will)

    def restore(self):
        pass

    def driver(self, address):
        link = self._bus / "devices" / address / "driver"
        return link.readlink().name if link.is_symlink() else None

    def write(self, path, text):
        if path.endswith("/unbind"):
            (self._bus / "devices" / text.strip() / "driver").unlink()
        elif path.endswith("/drivers_probe"):
            device = self._bus / "devices" / text.strip()
            wanted = (device / "driver_override").read_text().strip()
            if (device / "driver").is_symlink():
                # A device that has a driver keeps it.
                return
            (device / "driver").symlink_to(self._bus / "drivers" / (self.usual if wanted in ("(null)", "") else wanted))
        elif path.endswith("nr_hugepages"):
            self.pages.write_text(f"{min(int(text), self._most_pages)}\n")
        else:
            (self.root / path).write_text(text)


def trex_node(uio_driver="vfio-pci", **fields):
    return Node.model_validate(
        {
            "type": "TG",
            "host": "tg",
            "uio_driver": uio_driver,
            "generator": {"kind": "trex", "directory": "/opt/trex", **fields},
            "interfaces": {port.name: port.interface for port in PORTS},
        }
    )


PORTS = [
    Port("TG", "west", Interface(link="a", pci_address=WEST, mac_address="02:00:00:00:00:01")),
    Port("TG", "east", Interface(link="b", pci_address=EAST.upper(), mac_address="02:00:00:00:00:02")),
]


def problems(machine, node):
    return list(card_problems(node, PORTS, read_hardware(machine, [WEST, EAST])))


def test_hardware_is_read_from_sysfs(plain_path):
    hardware = read_hardware(Machine(plain_path), [WEST, "0000:99:00.0"])
    card = hardware.cards[WEST]
    assert (card.driver, card.numa_node, card.iommu_group, card.device) == ("ice", 1, "31", "0x8086:0x1592")
    assert (card.speed, card.firmware) == (None, None)
    assert list(hardware.cards) == [WEST]
    assert hardware.hugepages == {1: 1024}
    assert [core.cpus for core in hardware.cores] == [(0, 4), (1, 5), (2, 6), (3, 7)]


def test_cards_and_hugepages_are_taken_and_given_back(plain_path):
    machine = Machine(plain_path)
    with taken_cards(machine, trex_node(hugepages=2048), PORTS):
        assert (machine.driver(WEST), machine.driver(EAST)) == ("vfio-pci", "vfio-pci")
        assert machine.pages.read_text() == "1024\n"
    assert (machine.driver(WEST), machine.driver(EAST)) == ("ice", "ice")
    assert machine.pages.read_text() == "512\n"


def test_each_change_is_recorded_on_the_node_before_it_is_made(plain_path):
    machine = Machine(plain_path)
    made = []
    write = machine.write

    def watched(path, text):
        made.append((path.rpartition("/")[2], len([line for line in machine.will if line.startswith("+")])))
        write(path, text)

    machine.write = watched
    with taken_cards(machine, trex_node(hugepages=2048), PORTS):
        records = [number for _, number in made]
    assert records == list(range(1, len(records) + 1))
    assert machine.will[-1] == "."


def undone(machine, root):
    """The machine after its controller was killed at this moment, and the keeper of its will has run all commands."""
    shutil.copytree(machine.root, root, symlinks=True)
    dead = copy.copy(machine)
    dead.settle_in(root)
    commands = []
    for line in machine.will:
        if line.startswith("+"):
            commands.append(line[1:])
        elif line == "-":
            commands.pop()
    for command in reversed(commands):
        words = shlex.split(command)
        path = words[-1].replace("/sys/", f"{root}/")
        # A shell goes on after a failed command, such as one for a card that has no driver yet.
        with contextlib.suppress(FileNotFoundError):
            Machine.write(dead, path, base64.b64decode(words[1]).decode())
    return dead


@pytest.mark.whole
def test_after_sigkill_at_any_moment_the_will_gives_everything_back(plain_path):
    machine = Machine(plain_path / "sys")
    write, moments = machine.write, []

    def watched(path, text):
        moments.append(undone(machine, plain_path / f"before {len(moments)}"))
        write(path, text)
        moments.append(undone(machine, plain_path / f"after {len(moments)}"))

    machine.write = watched
    with taken_cards(machine, trex_node(hugepages=2048), PORTS):
        taken = len(moments)
    assert taken >= 14
    assert len(moments) > taken
    for dead in moments:
        assert (dead.driver(WEST), dead.driver(EAST), dead.pages.read_text()) == ("ice", "ice", "512\n")
        for address in (WEST, EAST):
            assert (dead.root / "bus/pci/devices" / address / "driver_override").read_text().strip() in ("", "(null)")


def test_a_failure_gives_back_what_was_taken(plain_path):
    machine = Machine(plain_path, most_pages=600)
    error = pytest.raises(TesterError, match=r"TG: 2048 MB .* NUMA node 1, .* room for 88 of 512 more pages")
    with error, taken_cards(machine, trex_node(hugepages=2048), PORTS):
        pytest.fail("it has no room")
    assert machine.pages.read_text() == "512\n"
    assert machine.driver(WEST) == "ice"


def test_an_igb_uio_card_needs_no_iommu(plain_path):
    machine = Machine(plain_path, iommu=False)
    assert "needs an IOMMU" in problems(machine, trex_node())[0]
    with pytest.raises(TesterError, match=r"needs an IOMMU.*igb_uio"), taken_cards(machine, trex_node(), PORTS):
        pytest.fail("there is no IOMMU")
    with taken_cards(machine, trex_node("igb_uio"), PORTS):
        assert machine.driver(EAST) == "igb_uio"


@pytest.mark.parametrize(("mode", "count"), [("Y", 0), ("N", 2)])
def test_vfio_needs_no_iommu_in_its_mode_without(plain_path, mode, count):
    machine = Machine(plain_path, iommu=False)
    parameter = plain_path / "module/vfio/parameters/enable_unsafe_noiommu_mode"
    parameter.parent.mkdir(parents=True)
    parameter.write_text(f"{mode}\n")
    found = problems(machine, trex_node())
    assert len(found) == count
    assert all("modprobe vfio enable_unsafe_noiommu_mode=1" in problem for problem in found)


def test_cards_that_share_with_the_kernel_stay_there(plain_path):
    machine = Machine(plain_path, driver="mlx5_core")
    with taken_cards(machine, trex_node(), PORTS):
        assert machine.driver(WEST) == "mlx5_core"


def test_without_uio_driver_nothing_is_bound_and_a_card_of_the_kernel_is_a_problem(plain_path):
    machine = Machine(plain_path)
    assert "has the driver ice" in problems(machine, trex_node(None))[0]
    error = pytest.raises(TesterError, match="Set 'uio_driver: vfio-pci'")
    with error, taken_cards(machine, trex_node(None), PORTS):
        pytest.fail("the kernel has the cards")
    bound = Machine(plain_path / "bound", driver="vfio-pci")
    with taken_cards(bound, trex_node(None), PORTS):
        assert bound.driver(WEST) == "vfio-pci"
    assert bound.driver(WEST) == "vfio-pci"


def test_a_gateway_cannot_be_asked_through_a_card_of_a_generator_without_single_frames():
    question = Question("None", "10.1.0.2", "10.1.0.1", "")
    error = pytest.raises(
        TopologyError, match=r"TG.west: the MAC address of its gateway 10.1.0.1 .*'west_mac' or 'east_mac'"
    )
    with error:
        check_can_ask(trex_node(), [(PORTS[0], question)])
    named = replace(PORTS[0], interface=PORTS[0].interface.model_copy(update={"name": "eth2"}))
    with error:
        check_can_ask(trex_node(), [(named, question)])
    # One of mlx5_core stays with the kernel, and packet sockets have no card.
    check_can_ask(trex_node(uio_driver=None), [(named, question)])
    check_can_ask(trex_node(uio_driver=None, software=True), [(named, question)])


def test_a_card_that_is_not_there_is_named(plain_path):
    machine = Machine(plain_path)
    other = [PORTS[0], Port("TG", "east", Interface(link="b", pci_address="0000:99:00.0"))]
    found = list(card_problems(trex_node(), other, read_hardware(machine, [WEST, "0000:99:00.0"])))
    assert found == ["port east: there is no PCI device 0000:99:00.0; correct it in the topology file (lspci -D)"]
