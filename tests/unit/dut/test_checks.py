"""What keeps a DUT from being set up is said before anything is touched; on real interfaces in a network namespace."""

from __future__ import annotations

import os

import pytest
from dut_lab import ENVIRONMENT_LENGTH, NamespaceShell, hop

from lossratio.dut import create_dut
from lossratio.dut.base import Tool
from lossratio.dut.linux import node_dut
from lossratio.dut.linux.node_dut import check_tools
from lossratio.errors import DutError, LinkError, NotMeasuredHereError
from lossratio.nodes import NOT_FOUND, CommandResult, DutNode

pytestmark = pytest.mark.netns

HOP = hop()


class PrefixedShell(NamespaceShell):
    """A shell that runs all commands by another one."""

    def __init__(self, lab, namespace, *prefix):
        super().__init__(lab, namespace)
        self._prefix = prefix

    def run(self, *command, **options):
        return super().run(*self._prefix, *command, **options)


class ShellWithoutNetAdmin(NamespaceShell):
    """A shell that may not write how frames are steered, like root of a user namespace."""

    def run(self, *command, **options):
        if command[-1].endswith("/rps_cpus"):
            command = ("setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", *command)
        return super().run(*command, **options)


class ShellWithout(NamespaceShell):
    """A shell on a node where some programs are not installed."""

    def __init__(self, lab, namespace, *programs):
        super().__init__(lab, namespace)
        self._missing = programs

    def run(self, *command, **options):
        program = command[ENVIRONMENT_LENGTH]
        absent = f"{program}-is-not-there" if program in self._missing else program
        return super().run(*command[:ENVIRONMENT_LENGTH], absent, *command[ENVIRONMENT_LENGTH + 1 :], **options)


def create(shell, kind="linux_bridge", path=HOP, **options):
    return create_dut(kind, shell, path, options)


def assert_refused(dut_lab, dut, message):
    before = dut_lab.snapshot()
    for attempt in (dut.check, lambda: dut.set_up(*dut_lab.macs)):
        with pytest.raises(DutError, match=message):
            attempt()
        assert dut_lab.snapshot() == before


def test_missing_programs_are_named_with_the_packages_to_install(dut_lab):
    dut = create(ShellWithout(dut_lab.lab, "dut", "nft", "bridge", "ethtool"))
    message = r"DUT1 lacks bridge, nft, ethtool\. Install it there: apt-get install ethtool iproute2 nftables\.$"
    assert_refused(dut_lab, dut, message)


def test_a_program_without_one_of_its_libraries_is_not_called_missing():
    class Node:
        name = "DUT1"

        def run(self, *command, **_):
            linker = "vpp: error while loading shared libraries: libvlib.so: cannot open shared object file"
            return CommandResult(command, NOT_FOUND, "", linker)

    with pytest.raises(DutError, match=r"DUT1: vpp is installed, but cannot be started: .*libvlib\.so: cannot open"):
        check_tools(DutNode(Node()), [Tool("vpp", "vpp")])


@pytest.mark.parametrize("by", ["kill -ILL $$", "sh -c 'kill -ILL $$'"])
def test_a_program_that_was_built_for_another_processor_is_refused_before_the_set_up(dut_lab, tmp_path, by):
    program = tmp_path / "bin" / "vpp"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{by}\n")
    program.chmod(0o755)
    dut = create_dut("vpp", dut_lab.shell, dut_lab.create("vpp").hop, {"home": str(tmp_path)})
    assert_refused(
        dut_lab, dut, r"DUT1: \S+/bin/vpp is installed, but a signal ended it .* built for another processor"
    )


def test_a_session_that_may_not_change_the_network_gets_an_error_with_the_way_out(dut_lab):
    powerless = ("setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin")
    dut = create(PrefixedShell(dut_lab.lab, "dut", *powerless))
    assert_refused(dut_lab, dut, r"DUT1: .*Operation not permitted.* root or CAP_NET_ADMIN")


def test_a_missing_interface_is_named_beside_those_that_there_are(dut_lab):
    dut = create(dut_lab.shell, path=hop("dut0", "dut9"))
    assert_refused(dut_lab, dut, "DUT1 has no interface 'dut9'; it has dut0, dut1, lo")


def test_an_interface_without_a_linux_name_is_refused(dut_lab):
    with pytest.raises(DutError, match=r"linux_bridge needs a Linux interface for DUT1\.port1: give its 'name'"):
        create(dut_lab.shell, path=hop("dut0", None))


def test_a_path_through_one_interface_only_is_refused(dut_lab):
    assert_refused(dut_lab, create(dut_lab.shell, path=hop("dut0", "dut0")), "in and out through the same interface")


def test_the_interface_of_the_default_route_is_refused(dut_lab):
    dut_lab.on_dut("ip", "address", "add", "192.0.2.1/24", "dev", "dut1")
    dut_lab.on_dut("ip", "route", "add", "default", "via", "192.0.2.2")
    assert_refused(dut_lab, create(dut_lab.shell), "interface dut1 carries the default route")


def test_the_interface_of_a_piece_of_the_default_route_is_refused(dut_lab):
    dut_lab.on_dut("ip", "route", "add", "0.0.0.0/1", "dev", "dut1")
    dut_lab.on_dut("ip", "route", "add", "128.0.0.0/1", "dev", "lo", "table", "7")
    assert_refused(dut_lab, create(dut_lab.shell), r"dut1 carries a part of the default route \(0\.0\.0\.0/1\)")


def test_an_interface_of_a_default_route_with_several_next_hops_is_refused(dut_lab):
    for number in (0, 1):
        dut_lab.on_dut("ip", "address", "add", f"192.0.2.{number * 16 + 1}/28", "dev", f"dut{number}")
    hops = ("nexthop", "via", "192.0.2.2", "nexthop", "via", "192.0.2.18")
    dut_lab.on_dut("ip", "route", "add", "default", "table", "100", *hops)
    assert_refused(dut_lab, create(dut_lab.shell), "interface dut0 carries the default route")


def test_an_interface_below_the_bridge_of_the_default_route_is_refused(dut_lab):
    dut_lab.lab.bridge("dut", "br0", "dut0")
    dut_lab.on_dut("ip", "address", "add", "192.0.2.1/24", "dev", "br0")
    dut_lab.on_dut("ip", "route", "add", "default", "via", "192.0.2.2")
    dut_lab.wait_for_links()
    assert_refused(dut_lab, create(dut_lab.shell), r"interface dut0 \(below br0\) carries the default route")


def test_an_interface_below_a_tunnel_that_the_ssh_session_comes_through_is_refused(dut_lab):
    tunnel = ("type", "vxlan", "id", "7", "remote", "192.0.2.2", "dstport", "4789", "dev", "dut1")
    dut_lab.on_dut("ip", "link", "add", "name", "tunnel0", *tunnel)
    dut_lab.on_dut("ip", "link", "set", "dev", "tunnel0", "up")
    dut_lab.on_dut("ip", "address", "add", "203.0.113.1/24", "dev", "tunnel0")
    shell = NamespaceShell(dut_lab.lab, "dut", {"SSH_CONNECTION": "203.0.113.9 50000 203.0.113.1 22"})
    assert_refused(dut_lab, create(shell), r"interface dut1 \(below tunnel0\) carries the SSH session")


def test_an_interface_whose_link_local_address_the_ssh_session_uses_is_refused(dut_lab):
    shell = NamespaceShell(dut_lab.lab, "dut", {"SSH_CONNECTION": "fe80::9%dut0 50000 fe80::1%dut0 22"})
    assert_refused(dut_lab, create(shell), "interface dut0 carries the SSH session")


def test_an_interface_that_is_in_a_bridge_is_busy(dut_lab):
    dut_lab.lab.bridge("dut", "br0", "dut1")
    dut_lab.wait_for_links()
    assert_refused(dut_lab, create(dut_lab.shell), "interface dut1 is busy: it is below br0")


@pytest.mark.smoke
def test_an_interface_with_an_address_is_busy(dut_lab):
    dut_lab.on_dut("ip", "address", "add", "192.0.2.1/24", "dev", "dut1")
    assert_refused(
        dut_lab, create(dut_lab.shell), r"dut1 is busy: it has the address 192\.0\.2\.1/24.*ip address delete"
    )


def test_the_two_ends_of_a_cable_within_the_node_are_not_below_each_other(dut_lab):
    dut_lab.lab.veth("dut", "near", "dut", "far")
    create(dut_lab.shell, path=hop("near", "far")).check()


def test_a_link_that_does_not_come_up_fails_the_set_up_which_is_undone(dut_lab, monkeypatch):
    monkeypatch.setattr(node_dut, "LINK_TIMEOUT", 0.2)
    dut_lab.lab.run("tg", "ip", "link", "set", "dev", "tg1", "down")
    dut_lab.wait_for_links("UP", "DOWN")
    before = dut_lab.snapshot()
    with pytest.raises(LinkError, match=r"DUT1: no link on dut1.* within 0\.2 s"):
        create(dut_lab.shell).set_up(*dut_lab.macs)
    assert dut_lab.snapshot() == before


def test_on_cpus_that_are_not_there_nothing_is_measured(dut_lab):
    with pytest.raises(NotMeasuredHereError, match="DUT1 has no CPU 4095 for rps_cpus"):
        create(dut_lab.shell, rps_cpus="0,4095").check()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root of the machine may steer")
def test_frames_are_steered_to_the_cpus(dut_lab):
    mask = "/sys/class/net/dut1/queues/rx-0/rps_cpus"
    before = dut_lab.snapshot()
    dut = create(dut_lab.shell, rps_cpus=0)
    dut.set_up(*dut_lab.macs)
    assert int(dut_lab.on_dut("cat", mask), 16) == 1
    dut.tear_down()
    assert dut_lab.snapshot() == before


def test_only_root_of_the_machine_itself_may_steer_and_the_set_up_is_undone(dut_lab):
    before = dut_lab.snapshot()
    shell = dut_lab.shell
    if os.geteuid() == 0:
        shell = ShellWithoutNetAdmin(dut_lab.lab, "dut")
    with pytest.raises(DutError, match=r"Only root on the machine itself may steer frames\. Leave out rps_cpus"):
        create(shell, rps_cpus=0).set_up(*dut_lab.macs)
    assert dut_lab.snapshot() == before
