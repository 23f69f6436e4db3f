"""Devices made of XDP in a network namespace, and real frames through them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import bpf_objects
import numpy as np
import pytest
from at_least_one import at_least_one
from dut_lab import NamespaceShell
from examples import examples_in
from frame_samples import cycle, of_each_kind, smallest_size, spec
from local_session import PYTHON, LocalSession
from local_testbeds import local_topology, needs_testbed
from waiting import wait_until
from whole_trials import run_trial, whole

from lossratio.bpf import Table, program_info, why_impossible
from lossratio.bpf.system_call import call_bpf
from lossratio.dut.base import SIDES
from lossratio.dut.xdp import XdpOptions
from lossratio.dut.xdp.device.device import FILTERED_FROM, Forwarder, Way, filtered_addresses, table_of_connections
from lossratio.errors import DutError
from lossratio.traffic import AgentClient, PortPair, TrafficPort, load_profile, make_configuration

NO_BPF = why_impossible()
pytestmark = [pytest.mark.netns, pytest.mark.skipif(NO_BPF is not None, reason=f"no BPF here: {NO_BPF}")]

EVERY = 50


@pytest.fixture
def set_up(dut_lab):
    with dut_lab.setting_up("xdp") as set_up:
        yield set_up


@pytest.fixture
def native(dut_lab):
    """The TG's ends of the links take frames that a driver sends for a program."""
    for name in ("tg0", "tg1"):
        dut_lab.lab.run("tg", "ethtool", "-K", name, "gro", "on")
    return dut_lab


@pytest.fixture
def write_object(dut_lab, tmp_path):
    """Writes an object file, with a program for the interfaces of the lab."""

    def write(name="forward.o", **options):
        numbers = [dut_lab.links()[name]["ifindex"] for name in ("dut0", "dut1")]
        path = tmp_path / name
        path.write_bytes(bpf_objects.elf(bpf_objects.redirect(*numbers), **options))
        return path

    return write


def programs(dut_lab):
    """Numbers of the programs on the interfaces."""
    return {name: link["xdp"]["prog"]["id"] for name, link in dut_lab.links().items() if "xdp" in link}


@pytest.mark.smoke
@pytest.mark.parametrize("options", [{}, {"forwarding": "mac"}, {"forwarding": "filter", "rules": 1000}])
def test_frames_pass_both_ways_and_every_one_is_accounted_for(dut_lab, set_up, options):
    device = set_up(**options)
    assert device.facts()["attached"] == "generic"
    dut_lab.assert_accounted_for(device)


@pytest.mark.parametrize("options", [{}, {"forwarding": "mac"}])
def test_programs_are_in_the_driver_where_both_drivers_send_for_programs(native, set_up, options):
    device = set_up(**options)
    assert device.describe()["attached"] == "native"
    native.assert_accounted_for(device)


def test_addresses_are_those_of_a_forwarder(dut_lab, set_up):
    device = set_up(forwarding="mac")
    entry = device.destination_macs(*dut_lab.macs).from_west
    assert entry == dut_lab.lab.mac("dut", "dut0")
    first = dut_lab.flood("west", entry, frames=5).first
    assert first[:6].hex(":") == dut_lab.macs[1]
    assert first[6:12].hex(":") == dut_lab.lab.mac("dut", "dut1")


def test_tear_down_brings_back_exactly_what_was_there(dut_lab, set_up, write_object):
    before = dut_lab.snapshot()
    for options in ({"faults": "delay", "every": 9}, {"object": write_object()}):
        device = set_up(**options)
        assert set(programs(dut_lab)) == {"dut0", "dut1"}
        device.verify()
        device.tear_down()
        device.tear_down()
        assert dut_lab.snapshot() == before
    assert not any(daemon.is_alive() for daemon in device.daemons)


def test_programs_go_with_their_process_and_the_next_set_up_is_fresh(dut_lab, set_up):
    device = set_up()
    dut_lab.kill(*device.daemons)
    wait_until(lambda: not programs(dut_lab))
    with pytest.raises(DutError, match=r"the XDP program of interface dut0 was .*, and is now none"):
        device.verify()
    with pytest.raises(
        DutError, match=r"lossratio-xdp has died .sh /tmp/.*/device.\. Its last output: attached .*set it up again"
    ):
        device.read_counters()
    device.tear_down()
    device.set_up(*dut_lab.macs)
    device.verify()


def test_a_restart_attaches_the_programs_anew(dut_lab, set_up, write_object):
    device = set_up()
    killed = programs(dut_lab)
    device.restart()
    assert set(programs(dut_lab).values()).isdisjoint(killed.values())
    device.verify()
    dut_lab.assert_accounted_for(device)
    device.tear_down()
    device = set_up(object=write_object())
    replaced = programs(dut_lab)
    device.restart()
    assert set(programs(dut_lab).values()).isdisjoint(replaced.values())
    device.verify()


def test_a_program_of_somebody_else_is_named_and_stays(dut_lab, set_up, write_object):
    theirs = ("object", str(write_object()), "section", "xdp")
    dut_lab.on_dut("ip", "link", "set", "dev", "dut1", "xdpgeneric", *theirs)
    there = programs(dut_lab)
    with pytest.raises(DutError, match=rf"interface dut1 already has an XDP program: {there['dut1']} .forward."):
        set_up()
    assert programs(dut_lab) == there
    dut_lab.on_dut("ip", "link", "set", "dev", "dut1", "xdpgeneric", "off")
    set_up()


def test_frames_pass_a_users_object_and_one_that_was_detached_does_not_verify(dut_lab, set_up, write_object):
    device = set_up(object=write_object(section="xdp/mine"), section="xdp/mine")
    dut_lab.assert_accounted_for(device)
    facts = device.facts()
    assert {program["name"] for program in facts["programs"].values()} == {"forward"}
    assert len(facts["object_sha256"]) == 64
    with pytest.raises(DutError, match="a xdp has no table for 3 new entries"):
        device.reconfigure(3)
    dut_lab.on_dut("ip", "link", "set", "dev", "dut1", "xdpgeneric", "off")
    with pytest.raises(DutError, match=r"the XDP program of interface dut1 was .*, and is now none"):
        device.verify()


def test_an_object_is_loaded_where_the_file_system_for_bpf_lies_hidden_and_none_is_left(dut_lab, set_up, write_object):
    hide = "mount -t bpf bpf /sys/fs/bpf && mkdir /run/sys && mount -t sysfs sys /run/sys && mount --move /run/sys /sys"
    dut_lab.on_dut("sh", "-c", hide)
    before = dut_lab.on_dut("cat", "/proc/mounts")
    set_up(object=write_object()).tear_down()
    assert dut_lab.on_dut("cat", "/proc/mounts") == before


def test_a_users_program_that_no_driver_takes_for_the_mtu_is_behind_it_and_the_facts_say_why(
    native, set_up, write_object
):
    for namespace, names in (("tg", ("tg0", "tg1")), ("dut", ("dut0", "dut1"))):
        for name in names:
            native.lab.run(namespace, "ip", "link", "set", "dev", name, "mtu", "9216")
    with pytest.raises(DutError, match=r"MTU is too large .*or set attach=generic"):
        set_up(object=write_object(), attach="native")
    device = set_up(object=write_object())
    facts = device.facts()
    assert facts["attached"] == "generic"
    assert "MTU is too large" in facts["not_native_because"]
    device.tear_down()
    facts = set_up(object=write_object(section="xdp.frags"), section="xdp.frags").facts()
    assert (facts["attached"], "not_native_because" in facts) == ("native", False)


class OldIp(NamespaceShell):
    """A shell of a node whose ``ip`` was built without libbpf."""

    def run(self, *command, **given):
        result = super().run(*command, **given)
        return type(result)(result.command, result.exit_status, result.stdout.replace("libbpf", "old"), result.stderr)


def test_an_object_that_cannot_be_loaded_is_one_error_and_nothing_is_changed(dut_lab, set_up, write_object, tmp_path):
    before = dut_lab.snapshot()
    (tmp_path / "source.c").write_text("int main;")
    for options, message in (
        ({"object": tmp_path / "missing.o"}, r"The BPF object .*missing.o cannot be read: No such file"),
        ({"object": tmp_path / "source.c"}, r"source.c is not a BPF object. Compile it with clang"),
        ({"object": write_object(), "section": "tc"}, r"ip link set dev dut0 .* failed"),
        ({"pinned": "/sys/fs/bpf/nothing"}, r"ip link set dev dut0 .* pinned /sys/fs/bpf/nothing failed"),
    ):
        with pytest.raises(DutError, match=message):
            set_up(**options)
        assert dut_lab.snapshot() == before
    dut_lab.shell = OldIp(dut_lab.lab, "dut")
    with pytest.raises(DutError, match=r"the program ip cannot load BPF objects .*Install one with libbpf"):
        set_up(object=write_object())


PIN = """
import ctypes, struct, sys
from lossratio.bpf import *
from lossratio.bpf.system_call import call_bpf
table = Table.create("devices", 4, 4, 64, "tx_port")
descriptor = table.descriptor
number_of_arriving = (0x61, 0x12, 12, 0)
leave_by = (0x18, 0x11, 0, descriptor), (0, 0, 0, 0), (0xB7, 3, 0, 0), (0x85, 0, 0, 51), (0x95, 0, 0, 0)
code = b"".join(struct.pack("<BBhi", *one) for one in (number_of_arriving, *leave_by))
program = Program(code, "by_map")
path = ctypes.create_string_buffer(sys.argv[1].encode())
call_bpf(6, struct.pack("=QI", ctypes.addressof(path), program.descriptor), "a pin")
"""


def test_a_pinned_program_gets_the_interfaces_into_its_map(dut_lab, set_up):
    dut_lab.on_dut("sh", "-c", "mkdir /run/bpf && mount -t bpf bpf /run/bpf")
    dut_lab.on_dut(sys.executable, "-c", PIN, "/run/bpf/by_map")
    device = set_up(pinned="/run/bpf/by_map", map="tx_port")
    dut_lab.assert_accounted_for(device)
    with device.telemetry() as report:
        pass
    entries = report["xdp"]["dut0"]["maps"]["tx_port"]["entries"]
    numbers = [dut_lab.links()[name]["ifindex"] for name in ("dut0", "dut1")]
    (way,) = (value for key, value in entries.items() if key == struct.pack("=I", numbers[0]).hex())
    assert way[:8] == struct.pack("=I", numbers[1]).hex()
    device.tear_down()
    with pytest.raises(DutError, match=r"has no map 'exits'; it has tx_port"):
        set_up(pinned="/run/bpf/by_map", map="exits")


def test_an_object_of_a_compiler_gets_the_interfaces_into_its_map(dut_lab, set_up, tmp_path):
    (tmp_path / "map.o").write_bytes(bpf_objects.elf(bpf_objects.redirect_by_map(), map_name="way_out"))
    dut_lab.assert_accounted_for(set_up(object=tmp_path / "map.o", map="way_out"))


HOW_TO = (Path(__file__).parents[3] / "docs" / "how-to" / "benchmark-an-xdp-program.md").read_text()


@pytest.mark.skipif(
    shutil.which("clang") is None or not Path("/usr/include/bpf").is_dir(), reason="no clang, or libbpf"
)
def test_the_how_to_s_program_compiles_and_forwards(dut_lab, set_up, tmp_path):
    (source,) = examples_in(HOW_TO, "c")
    (tmp_path / "redirect.c").write_text(source)
    compile_it = next(line.strip() for line in HOW_TO.splitlines() if line.strip().startswith("clang"))
    subprocess.run(["sh", "-c", compile_it], check=True, cwd=tmp_path)
    dut_lab.assert_accounted_for(set_up(object=tmp_path / "main.o", map="way_out"))


@needs_testbed
def test_the_how_to_s_comparison_finds_the_program_that_loses_frames(tmp_path, lossratio):
    (command,) = examples_in(HOW_TO, "sh")
    for name, loses_half in (("main", False), ("patch", True)):
        code = bpf_objects.redirect_by_map(loses_half=loses_half)
        (tmp_path / f"{name}.o").write_bytes(bpf_objects.elf(code, map_name="way_out"))
    name, *arguments = shlex.split(command.replace("lab.yaml", shlex.quote(str(local_topology(tmp_path, "xdp")))))
    assert name == "lossratio"
    finished = lossratio(*arguments, "--max-load", "2 kpps", "--trial-duration", "0.1 s")
    assert finished.status == 3, finished.err
    assert "forwarding rate: B is slower than A by " in finished.out


def test_telemetry_has_run_counts_where_the_kernel_counts_and_what_the_maps_hold(dut_lab, set_up):
    device = set_up(forwarding="filter", rules=3, faults="drop", every=10)
    macs = device.destination_macs(*dut_lab.macs)
    with device.telemetry() as report:
        dut_lab.flood("west", macs.from_west, frames=20)
    west = report["xdp"]["dut0"]
    assert west["counts"] == {"seen": 20, "filtered": 0, "dropped": 2, "duplicated": 0, "delayed": 0}
    assert set(west["maps"]) == {"lossratio_count", "lossratio_drop"}
    enable_stats = 32
    stats, _ = call_bpf(enable_stats, struct.pack("=I", 0), "counting")
    with device.telemetry() as report:
        dut_lab.flood("west", macs.from_west, frames=20)
    os.close(stats)
    assert report["xdp"]["dut0"]["runs"] >= 20
    assert report["xdp"]["dut0"]["run_nanoseconds"] > 0
    json.dumps(report)


def test_a_reconfiguration_updates_the_table_of_a_filter_and_traffic_goes_on(dut_lab, set_up):
    device = set_up(forwarding="filter")
    device.reconfigure(700)
    dut_lab.assert_accounted_for(device)
    device.verify()
    (program,) = (number for name, number in programs(dut_lab).items() if name == "dut0")
    (table,) = (table for table in map(Table.open, program_info(program).maps) if table.name == "lossratio_drop")
    assert len(table.entries(1000)) == 700
    device.tear_down()
    with pytest.raises(DutError, match="a xdp has no table for 3 new entries"):
        set_up().reconfigure(3)


def frame_from(source):
    """An IPv4 frame with this source address."""
    return bytes(12) + b"\x08\x00\x45" + bytes(11) + struct.pack(">I", source) + bytes(34)


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        (0xC6120001, bpf_objects.XdpAction.REDIRECT),
        (FILTERED_FROM, bpf_objects.XdpAction.DROP),
        (FILTERED_FROM + 99, bpf_objects.XdpAction.DROP),
        (FILTERED_FROM + 100, bpf_objects.XdpAction.REDIRECT),
        (0xC6120099, bpf_objects.XdpAction.DROP),
    ],
)
def test_a_filter_drops_what_its_rules_and_its_table_name(source, verdict):
    table = filtered_addresses()
    table.update(struct.pack(">I", 0xC6120099), bytes(4))
    forwarder = Forwarder(Way("filter", leaving=1, macs=None, rules=100, every=1, faults=()), table)
    assert bpf_objects.run_once(forwarder.program, frame_from(source)) == (verdict.value, frame_from(source))
    short = frame_from(source)[:33]
    assert bpf_objects.run_once(forwarder.program, short) == (bpf_objects.XdpAction.REDIRECT.value, short)


def test_the_kernel_takes_a_filter_of_as_many_rules_as_there_may_be():
    (most,) = (bound.le for bound in XdpOptions.model_fields["rules"].metadata if hasattr(bound, "le"))
    forwarder = Forwarder(
        Way("filter", leaving=1, macs=None, rules=most, every=1, faults=("drop", "duplicate", "delay")),
        filtered_addresses(),
    )
    last = frame_from(FILTERED_FROM + most - 1)
    assert bpf_objects.run_once(forwarder.program, last) == (bpf_objects.XdpAction.DROP.value, last)


@pytest.mark.parametrize(
    ("profile", "size"), [*((name, "smallest") for name in of_each_kind()), ("ethip4-udp", "IMIX_v4_1")]
)
def test_what_a_reflector_sends_back_is_what_the_tg_expects(profile, size):
    """Addresses are swapped whatever the headers, and no checksum is wrong afterwards."""
    reflector = Forwarder(Way("back", leaving=1, macs=None, rules=None, every=1, faults=(), reflects=True), None)
    sent = spec(profile, smallest_size(profile) if size == "smallest" else size)
    plain, returned = (cycle(frames).frames(np.arange(20)) for frames in (sent, sent.reflected()))
    differ = 0
    for frame, back, length in zip(plain[0], returned[0], plain[1], strict=True):
        verdict, data = bpf_objects.run_once(reflector.program, frame[:length].tobytes())
        assert verdict == bpf_objects.XdpAction.REDIRECT.value
        # The outermost addresses differ in VXLAN, too, whose inner ones stay.
        assert data == data[:12] + back[12:length].tobytes()
        assert (data[:6], data[6:12]) == (frame[6:12].tobytes(), frame[:6].tobytes())
        differ += data[12:] != frame[12:length].tobytes()
    assert differ == 20


@pytest.mark.parametrize(
    "frame",
    [
        b"\xff" * 6 + bytes(6) + b"\x08\x00" + bytes(46),
        bytes(12) + b"\x08\x06" + bytes(46),
        bytes(12) + b"\x81\x00\0\1\x08\x00" + bytes(10),
        bytes(12) + b"\x86\xdd" + bytes(30),
    ],
    ids=["broadcast", "ARP", "cut off", "cut off, IPv6"],
)
def test_a_reflector_leaves_what_is_no_test_traffic_alone(frame):
    reflector = Forwarder(Way("back", leaving=1, macs=None, rules=None, every=1, faults=(), reflects=True), None)
    assert bpf_objects.run_once(reflector.program, frame) == (bpf_objects.XdpAction.PASS.value, frame)


def segment(source, destination, ports, protocol=17):
    """An IPv4 frame of UDP, TCP or something else."""
    addresses = struct.pack(">II", source, destination)
    return bytes(12) + b"\x08\x00\x45" + bytes(8) + bytes([protocol]) + bytes(2) + addresses + bytes(ports) + bytes(30)


@pytest.mark.parametrize("count", [1000, pytest.param(100_000, marks=pytest.mark.whole)])
def test_a_hash_takes_exactly_as_many_connections_as_it_has_entries(count):
    connections = table_of_connections("hash", count)
    ways = [Way(name, leaving=1, macs=None, rules=None, every=1, faults=(), opens=name == "west") for name in SIDES]
    west, east = (Forwarder(way, None, connections).program for way in ways)
    verdicts = [bpf_objects.run_once(west, segment(number, 9, (0, 1, 0, 2)))[0] for number in range(count + 5)]
    assert verdicts.count(bpf_objects.XdpAction.REDIRECT.value) == connections.count() == count
    for frame, action in (
        (segment(7, 9, (0, 1, 0, 2)), bpf_objects.XdpAction.REDIRECT),
        (segment(7, 9, (0, 1, 0, 3)), bpf_objects.XdpAction.DROP),
        (segment(7, 9, (0, 1, 0, 2), protocol=6), bpf_objects.XdpAction.DROP),
        (segment(7, 9, (0, 1, 0, 3), protocol=61), bpf_objects.XdpAction.REDIRECT),
    ):
        assert bpf_objects.run_once(west, frame)[0] == action.value
    for frame, action in (
        (segment(9, 7, (0, 2, 0, 1)), bpf_objects.XdpAction.REDIRECT),
        (segment(9, 7, (0, 1, 0, 2)), bpf_objects.XdpAction.DROP),
        (segment(7, 9, (0, 1, 0, 2)), bpf_objects.XdpAction.DROP),
    ):
        assert bpf_objects.run_once(east, frame)[0] == action.value
    connections.clear()
    assert connections.count() == 0
    assert bpf_objects.run_once(east, segment(9, 7, (0, 2, 0, 1)))[0] == bpf_objects.XdpAction.DROP.value
    assert connections.count() == 0


def trial(agent, generator, load=2000.0, duration=0.25):
    """A trial of both directions, 500 frames each."""
    traffic = load_profile("ethip4-udp", frame_size=64)
    pair = PortPair(TrafficPort("port0", "tg0"), TrafficPort("port1", "tg1"))
    agent.configure(
        make_configuration(traffic, [pair], settle_time=0.8), generator=generator, options={"catch_up": 10.0}
    )
    return whole(run_trial, agent, load, duration)


@pytest.mark.parametrize("generator", ["afpacket", "xdp"])
def test_receivers_see_exactly_the_share_that_a_device_drops_duplicates_and_delays(native, set_up, tmp_path, generator):
    with AgentClient.start(LocalSession(native.lab, "tg", tmp_path), python=PYTHON) as agent:
        for faults, expected in (("duplicate", (500, 10, 0)), ("drop,delay", (490, 0, 10))):
            device = set_up(faults=faults, every=EVERY, delay=0.005, attach="native")
            before = device.read_counters()
            directions = trial(agent, generator)
            device.verify()
            counted = device.read_counters().since(before)
            device.tear_down()
            for direction in at_least_one(directions):
                assert (direction.sent_frames, direction.corrupted_frames, direction.misdelivered_frames) == (500, 0, 0)
                assert (
                    direction.received_frames,
                    direction.duplicated_frames,
                    direction.reordered_frames,
                ) == expected, faults
            # A trial before may have ended within a round of so many frames.
            share = pytest.approx(counted.details["seen west>east"] / EVERY, abs=1)
            assert counted.dropped["dropped west>east"] == (share if "drop" in faults else 0)
            assert counted.details["duplicated west>east"] == (share if "duplicate" in faults else 0)
            assert counted.details["delayed west>east"] == (share if "delay" in faults else 0)
