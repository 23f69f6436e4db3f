"""Devices of a real kernel, between real cards, which others have set up: tagged frames, and bonds with LACP."""

from __future__ import annotations

import contextlib
import re
from contextlib import contextmanager

from layouts import bonded_lab_file, closed_lab_file
from machines import wait_until
from measuring import FRAMES, PATIENTLY, count_frames, count_through, received

from lossratio.testbed import open_testbed

BRIDGE = "ip link add lab0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0; ip link set lab0 up"
QUIET = "echo 1 >/proc/sys/net/ipv6/conf/{0}/disable_ipv6; ip link set {0} up"


def in_bridge(name):
    return f"{QUIET.format(name)}; ip link set {name} master lab0"


@contextmanager
def made(machine, *commands, undo):
    """What commands made on a machine, for as long."""
    with contextlib.ExitStack() as undoing:
        undoing.callback(machine.shell, undo, check=False)
        machine.shell("set -e; " + "; ".join(commands))
        yield


@contextmanager
def bridge_of_vlans(machine, west, east):
    """A bridge of VLAN 100 in the west and VLAN 200 in the east."""
    names = machine.interface(west), machine.interface(east)
    with made(
        machine,
        BRIDGE,
        *map(QUIET.format, names),
        f"ip link add link {names[0]} name lab.w type vlan id 100",
        f"ip link add link {names[1]} name lab.e type vlan id 200",
        *map(in_bridge, ("lab.w", "lab.e")),
        undo="ip link del lab.w; ip link del lab.e; ip link del lab0",
    ):
        yield


def test_tagged_frames_cross_cards_that_take_tags_off(lab, tmp_path):
    """The cards are of virtio and e1000e. As the driver of e1000e sends nothing for XDP, packet sockets do."""
    west = 2
    topology = closed_lab_file(lab, "vlan", west, west + 1, "auto")
    with bridge_of_vlans(lab["DUT1"], west, west + 1):
        result = count_frames(topology, tmp_path, profile="dot1q-vlan100-vlan200")
    assert received(result) == [(FRAMES, FRAMES)]


def bond(machine, *numbers):
    """Commands that make a bond with LACP of cards."""
    address = machine.mac(numbers[0])
    yield f"ip link add lab-bond address {address} type bond mode 802.3ad miimon 100 lacp_rate fast min_links 1"
    for number in numbers:
        name = machine.interface(number)
        yield f"ip link set {name} down; ip link set {name} master lab-bond"
    yield QUIET.format("lab-bond")


def test_a_bond_with_lacp_goes_on_when_one_of_its_cables_is_pulled(lab, tmp_path):
    tg, dut = lab["TG"], lab["DUT1"]
    back = "ip link del lab-bond; ip link set {} up; ip link set {} up".format(*map(tg.interface, (0, 1)))
    with (
        made(tg, *bond(tg, 0, 1), undo=back),
        made(
            dut,
            BRIDGE,
            *bond(dut, 0, 1),
            *map(in_bridge, ("lab-bond", dut.interface(4))),
            undo="ip link del lab-bond; ip link del lab0",
        ),
    ):
        wait_until(lambda: _bonded(tg) == _bonded(dut) == 2, "both cables in one bond at both ends")
        with open_testbed(bonded_lab_file(lab, "lab-bond", 4), recovery=PATIENTLY) as opened:
            assert received(count_through(opened, tmp_path)) == [(FRAMES, FRAMES)]
            with lab.unplugged("a"):
                wait_until(lambda: _bonded(tg) == _bonded(dut) == 1, "one cable of the bond is left")
                assert received(count_through(opened, tmp_path)) == [(FRAMES, FRAMES)]


def _bonded(machine):
    """How many cards are in the bond's active aggregator, by agreement with the other end."""
    said = machine.run("cat", "/proc/net/bonding/lab-bond")
    partner = re.search(r"Partner Mac Address: (\S+)", said)[1]
    return 0 if partner == "00:00:00:00:00:00" else int(re.search(r"Number of ports: (\d+)", said)[1])
