"""Two VPPs in a row: plainly, and with tunnels between them that only the right keys open."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from dut_lab import PAYLOAD, DutLab, NamespaceShell
from real_vpp import HOME, needs_vpp, skip_without_plugins
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from lossratio.dut import create_dut
from lossratio.dut.vpp import Vpp
from lossratio.dut.vpp.features.secure_tunnels import IpsecAsync, WireGuard
from lossratio.dut.vpp.features.steps import shown
from lossratio.errors import DutError, NotMeasuredHereError
from lossratio.nodes import Core
from lossratio.testbed.set_up import address_path
from lossratio.topology import Hop, Interface, Port

STAND_IN = Path(__file__).with_name("vpp_stand_in")

pytestmark = pytest.mark.netns
MANY = {"ipsec": 10_000, "ipsec_algorithms": "aes256gcm"}


class Chain(DutLab):
    """Namespaces ``tg``, ``DUT1`` and ``DUT2`` in a row, and the VPPs on them, which are set up."""

    def __init__(self, lab, home: str, **options) -> None:
        self.lab = lab
        for namespace in ("tg", "DUT1", "DUT2"):
            lab.namespace(namespace)
        lab.veth("tg", "tg0", "DUT1", "dut0")
        lab.veth("DUT1", "dut1", "DUT2", "dut0")
        lab.veth("DUT2", "dut1", "tg", "tg1")
        self.macs = (lab.mac("tg", "tg0"), lab.mac("tg", "tg1"))
        self.duts = tuple(self._dut(name, {"home": home, "forwarding": "ip4", **options}) for name in ("DUT1", "DUT2"))
        for dut in self.duts:
            dut.chain = self.duts

    def _dut(self, name: str, options):
        shell = NamespaceShell(self.lab, name)
        shell.name = name
        ports = (Port(name, f"port{number}", Interface(name=f"dut{number}", link=f"link{number}")) for number in (0, 1))
        return create_dut("vpp", shell, Hop(name, *ports), options)

    def set_up(self, undo: ExitStack) -> None:
        for dut in self.duts:
            dut.check()
        from_tg, neighbours_of_duts = address_path(self.duts, *self.macs)
        for dut, neighbours in zip(self.duts, neighbours_of_duts, strict=True):
            undo.callback(dut.tear_down)
            dut.set_up(*neighbours)
        self.entrances = {"west": from_tg.from_west, "east": from_tg.from_east}

    def send(self, frames: int, destinations: int = 1, version: int = 4) -> list[int]:
        """Frames that arrived, eastward and westward."""
        asked = {"frames": frames, "destinations": destinations, "version": version}
        self.flooded = [self.flood(entry, mac, **asked) for entry, mac in self.entrances.items()]
        return [one.received for one in self.flooded]

    def wire(self) -> int:
        """Bytes that the first VPP has sent to the second one."""
        return int(self.duts[0].packets_of_kernel()["east"]["tx"]["bytes"])

    def ask(self, command: str) -> list[str]:
        return [dut._control.ask(command) for dut in self.duts]


@pytest.fixture
def chain(netns_lab) -> Iterator:
    with ExitStack() as undo:

        def set_up(home: str = HOME, **options) -> Chain:
            skip_without_plugins({"home": home, "forwarding": "ip4", **options})
            chain = Chain(netns_lab, home, **options)
            chain.set_up(undo)
            return chain

        yield set_up


@pytest.mark.parametrize("home", [str(STAND_IN), pytest.param(HOME, marks=needs_vpp)])
def test_frames_pass_two_vpps_and_every_one_is_accounted_for(chain, home):
    duts = (lab := chain(home)).duts
    before = [dut.read_counters() for dut in duts]
    assert lab.send(100) == [100, 100]
    for dut, earlier in zip(duts, before, strict=True):
        counted = dut.read_counters().since(earlier)
        assert counted.received == counted.transmitted == {"west": 100, "east": 100}
    assert duts[0].describe()["cores"]["beside"] == []
    assert len({dut.daemons[0].directory for dut in duts}) == 2


def counts(text: str) -> list[int]:
    """Packets of each security association."""
    return [int(count) for count in re.findall(r"tx/rx:\[packets:(\d+) ", text)]


@pytest.mark.parametrize("options", [pytest.param(MANY, id="10000"), {"ipsec": 4, "ipsec_lookup": "policy"}])
@pytest.mark.parametrize("_", [pytest.param(None, marks=needs_vpp, id="vpp")])
def test_every_tunnel_carries_frames_and_keys_are_nowhere(chain, options, _):
    lab = chain(**options)
    assert lab.send(2 * options["ipsec"], options["ipsec"]) == [2 * options["ipsec"]] * 2
    for text in lab.ask("show ipsec sa detail"):
        assert counts(text) == [2] * 2 * options["ipsec"]
    for dut in lab.duts:
        assert not re.search("[0-9a-f]{32}", str(dut.describe()))
        assert not list(Path(dut.daemons[0].directory).glob("secret*"))
        assert dut._control.check(dut.options.shown_in("proved", dut._ports))


@pytest.mark.vpp
@pytest.mark.skipif(not HOME, reason="needs a VPP: set VPP_HOME")
def test_every_wireguard_tunnel_carries_frames(chain):
    lab = chain(wireguard=8)
    assert lab.send(16, 8) == [16, 16]
    assert all(
        int(count) >= 2 for text in lab.ask("show interface") for count in re.findall(r"wg\d+ [^w]*?ip4 +(\d+)", text)
    )


@pytest.mark.vpp
@pytest.mark.skipif(not HOME, reason="needs a VPP: set VPP_HOME")
def test_one_worker_forwards_and_another_one_encrypts(chain, tmp_path, monkeypatch):
    cores = tuple(Core((number,), numa_node=0) for number in range(4))
    monkeypatch.setattr("lossratio.dut.linux.cores.read_cores", lambda node: cores)
    options = {"ipsec": 4, "ipsec_async": True, "cores": 2, "queues": 1}
    skip_without_plugins({"forwarding": "ip4", **options})
    lab = chain(shown_four_cpus(tmp_path), **options)
    assert lab.send(400, 4) == [400, 400]
    for dut, text in zip(lab.duts, lab.ask("show runtime"), strict=True):
        forwards, encrypts = (
            re.findall(r"^(\S+) .* ([1-9]\d*) +0 +\S+ +\S+\s*$", part, re.MULTILINE)
            for part in text.split("---------------")[1:]
        )
        assert {"af-packet-input": "800"}.items() <= dict(forwards).items()
        assert dict(encrypts) == {"crypto-deq": "800"}
        assert dut._control.check(list(shown(IpsecAsync, dut.options, "verified", dut._ports)))


def test_a_scheduler_that_is_missing_is_missed_before_the_set_up(netns_lab, tmp_path, monkeypatch):
    (tmp_path / "bin").symlink_to(STAND_IN / "bin")
    (tmp_path / "lib" / "vpp_plugins").mkdir(parents=True)
    (tmp_path / "lib" / "vpp_plugins" / "ipip_plugin.so").touch()
    cores = tuple(Core((number,), numa_node=0) for number in range(4))
    monkeypatch.setattr("lossratio.dut.linux.cores.read_cores", lambda node: cores)
    first, _ = Chain(netns_lab, str(tmp_path), ipsec=1, ipsec_async=True, cores=2, queues=1).duts
    with pytest.raises(DutError, match=r"ipsec_async needs VPP's plugin crypto_sw_scheduler, and"):
        first.check()


def shown_four_cpus(directory: Path) -> str:
    """A VPP that sees four CPUs, whatever the machine has, and whose workers share one as ordinary programs."""
    (directory / "bin").mkdir()
    (directory / "online").write_text("0-3\n")
    for each in (*Path(HOME).glob("[!b]*"), Path(HOME, "bin", "vppctl")):
        (directory / each.relative_to(HOME)).symlink_to(each)
    (directory / "bin" / "vpp").write_text(
        f"""#!/bin/sh
[ "$1" = -c ] || exec {HOME}/bin/vpp "$@"
sed -i 's/corelist-workers.*/&\\n  use-pthreads/' "$2"
mount='mount --bind {directory}/online /sys/devices/system/cpu/online'
exec unshare --mount sh -c "$mount && exec chrt --other 0 {HOME}/bin/vpp \\"\\$@\\"" vpp "$@"
"""
    )
    (directory / "bin" / "vpp").chmod(0o755)
    return str(directory)


@pytest.mark.vpp
@pytest.mark.skipif(not HOME, reason="needs a VPP: set VPP_HOME")
def test_nothing_passes_with_another_key(chain, monkeypatch):
    shared = Vpp._links_between

    def private(dut, *given):
        return tuple(replace(port, secret=dut._secret) for port in shared(dut, *given))

    monkeypatch.setattr(Vpp, "_links_between", private)
    lab = chain(ipsec=2)
    assert lab.send(10, 2) == [0, 0]
    for dut in lab.duts:
        with pytest.raises(DutError, match="does not show that every packet had the right key"):
            dut._control.check(dut.options.shown_in("proved", dut._ports))


@pytest.mark.vpp
@pytest.mark.skipif(not HOME, reason="needs a VPP: set VPP_HOME")
def test_a_wireguard_tunnel_without_a_handshake_is_an_error_of_the_set_up(chain, monkeypatch):
    key_pairs = WireGuard.key_pairs

    def private(options, wire, local, remote):
        return key_pairs(options, replace(wire, secret=os.urandom(8)), local, remote)

    sooner = WireGuard.steps.verified.replace("15 + ", "1 + ")
    monkeypatch.setattr(WireGuard, "steps", replace(WireGuard.steps, verified=sooner))
    monkeypatch.setattr(WireGuard, "key_pairs", private)
    with pytest.raises(DutError, match="does not show handshakes of all 2 tunnels"):
        chain(wireguard=2)


def test_programs_that_poll_never_share_cpus_with_another_dut_of_the_machine(netns_lab, monkeypatch):
    cores = [Core((number,), numa_node=0) for number in range(4)]
    monkeypatch.setattr("lossratio.dut.linux.cores.read_cores", lambda node: tuple(cores))
    _, second = Chain(netns_lab, str(STAND_IN), sockets="af_xdp").duts
    assert second.cpus == (0, 3)
    cores.pop()
    with pytest.raises(
        NotMeasuredHereError, match=r"only 0 remain.* Other cores are in use by DUT1 on the same machine"
    ):
        _ = second.cpus
    _, second = Chain(netns_lab, str(STAND_IN)).duts
    assert second._choose_cores().beside == ("DUT1",)


def test_a_test_of_a_longer_chain_is_not_measured_here_before_anything_is_touched(dut_lab):
    with pytest.raises(NotMeasuredHereError, match=r"ipsec needs a path through 2 DUTs, but this one goes through 1\."):
        dut_lab.create("vpp", home=str(STAND_IN), forwarding="ip4", ipsec=1).check()


def test_a_chain_that_is_too_long_is_an_error_of_the_suite(netns_lab):
    first, _ = Chain(netns_lab, str(STAND_IN), forwarding="ip4", geneve=1).duts
    with pytest.raises(DutError, match=r"goes through 2\. Set up the testbed with duts=1\."):
        first.check()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ipsec": 40_000}, "at most 32,000"),
        ({"wireguard": 9000}, "at most 8,192"),
        ({"geneve": 1025}, "at most 1,024"),
        (
            {"ipsec": 1, "ipsec_algorithms": "aes256cbc"},
            "is not an algorithm of VPP: write it as in FD.io CSIT's suites",
        ),
        ({"ipsec_udp": True}, "ipsec_udp: also set ipsec, the number of tunnels"),
        ({"ipsec": 1, "ipsec_async": True}, "set cores=2"),
        ({"ipsec_async": True, "cores": 2, "queues": 1}, "ipsec_async: also set ipsec, the number of tunnels"),
        ({"ipsec": 1, "wireguard": 1}, "leave one out"),
    ],
)
def test_what_tunnels_cannot_do_is_an_error(dut_lab, options, message):
    with pytest.raises(DutError, match=message):
        dut_lab.create("vpp", forwarding="ip4", **options)


def layers(packet) -> list:
    return [packet, *layers(packet.payload)] if packet else []


OVERLAYS = {
    "srv6 1": ({"forwarding": "ip6", "srv6": 1}, "show sr localsids", r"Good traffic:\s+\[100 "),
    "srv6 2": ({"forwarding": "ip6", "srv6": 2}, "show sr localsids", r"(Good traffic:\s+\[100 .*){2}"),
    "srv6 kept": (
        {"forwarding": "ip6", "srv6": 2, "srv6_decapsulation": False},
        "show sr localsids",
        r"Good traffic:\s+\[100 ",
    ),
    **{
        f"srv6 {kind}": (
            {"forwarding": "ip6", "srv6_proxy": kind},
            "show interface memif2/0",
            r"rx packets\s+10\d\s.*rx bytes",  # VPP's own messages (ICMPv6) may be among them.
        )
        for kind in ("dynamic", "masquerading", "static")
    },
    "gtpu": ({"gtpu": True}, "show interface gtpu_tunnel0", r"rx packets\s+100\s.*tx packets\s+100\s"),
    **{
        f"srv6 {kind}, container": (
            {"forwarding": "ip6", "srv6_proxy": kind, "container": True},
            "show interface memif2/0",
            r"rx packets\s+10\d\s.*rx bytes",
        )
        for kind in ("dynamic", "masquerading", "static")
    },
    **{
        f"vxlan {forwarding}": (
            {"forwarding": forwarding, "vxlan_between": True},
            "show errors",
            r"100\s+vxlan4-encap\s+.*",
        )
        for forwarding in ("l2bd", "l2xc")
    },
    "vlan": ({"forwarding": "l2bd", "vlan": 100, "vlan_between": True}, "show interface", r"host-dut\d\.100\s"),
    "classify": ({"classify": True}, "show classify tables", r"\n\s+0\s+1\s|active elements 1"),
    "allowlist": ({"allowlist": True}, "show errors", r"100\s+ip4-adl-allowlist\s"),
    "mark": ({"mark": "AF22"}, "show errors", r"100\s+ip4-policer-classify\s"),
    "bond": ({"forwarding": "l2xc", "bond": True}, "show bond", r"lacp\s+l34\s+1\s+1"),
}


@pytest.mark.vpp
@pytest.mark.skipif(not HOME, reason="needs a VPP: set VPP_HOME")
@pytest.mark.parametrize(("options", "command", "shown"), OVERLAYS.values(), ids=OVERLAYS)
def test_headers_are_between_two_vpps_and_at_the_ends_as_long_as_results_say(chain, options, command, shown):
    lab = chain(**options)
    version = 6 if options.get("forwarding") == "ip6" else 4
    before = lab.wire()
    assert lab.send(100, version=version) == [100, 100]
    for text in lab.ask(command):
        assert re.search(shown, text, re.DOTALL), text
    sent = {4: 57, 6: 77}[version]
    length = sent + lab.duts[0].options.encapsulation_overhead
    # A bond speaks LACP besides.
    assert 100 * length <= lab.wire() - before <= 100 * length + ("bond" in options) * 2000
    assert tuple(len(one.first) - sent for one in lab.flooded) == lab.duts[0].options.growth
    for one in lab.flooded if any(lab.duts[0].options.growth) else ():
        assert [IPv6, IPv6ExtHdrSegmentRouting, IPv6] == [type(layer) for layer in layers(Ether(one.first))[1:4]]


@pytest.mark.vpp
@pytest.mark.skipif(not HOME, reason="needs a VPP: set VPP_HOME")
def test_packets_larger_than_the_link_between_two_vpps_come_whole(chain):
    lab = chain(gtpu=True, gtpu_mtu=576)
    packet = IP(src="198.18.0.1", dst="198.19.0.1") / UDP(sport=1, dport=2) / Raw(bytes(900) + PAYLOAD)
    flooded = lab.flood("west", "", frames=50, raw=[bytes(Ether(dst=lab.entrances["west"], src=lab.macs[0]) / packet)])
    assert (flooded.received, len(flooded.first)) == (50, 14 + len(packet))
    sent, received = lab.ask("show errors")
    assert re.search(r"100\s+ip4-frag\s", sent), sent
    assert re.search(r"50\s+ip4-local-full-reassembly\s+successful", received), received
