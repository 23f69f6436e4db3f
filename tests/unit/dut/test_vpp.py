"""VPP, where `VPP_HOME` says that there is one, and everywhere a stand-in that answers as VPP was seen to."""

from __future__ import annotations

import os
import re
import subprocess
import time
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from real_vpp import HOME, skip_without
from vpp_lab import STAND_IN, assert_passes

from lossratio.bpf import why_impossible
from lossratio.dut import create_dut, parse_options
from lossratio.dut.vpp.control import LastCommand, VppControl
from lossratio.dut.vpp.features.feature import Command, Shown, both_ports
from lossratio.dut.vpp.features.secure_tunnels import ENGINE
from lossratio.dut.vpp.features.steps import shown_by
from lossratio.dut.vpp.reports import parse_errors, parse_interfaces
from lossratio.errors import DutError
from lossratio.nodes import DutNode
from lossratio.topology import EAST, WEST
from lossratio.traffic import load_profile
from lossratio.traffic.frame_headers import frames_spec

pytestmark = pytest.mark.netns

needs_bpf = pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}")
HOMES = [pytest.param(str(STAND_IN), id="stand-in")]
if HOME:
    HOMES.append(pytest.param(HOME, id="vpp", marks=pytest.mark.vpp))


@pytest.fixture(params=HOMES)
def set_up(request, dut_lab):
    with dut_lab.setting_up("vpp", home=request.param) as set_up:
        yield set_up


@pytest.mark.smoke
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"forwarding": "l2bd", "acl": 50},
        {"forwarding": "ip4", "police": "100 Mbps"},
        {"forwarding": "ip4", "routes": 2000},
        {"forwarding": "ip6"},
        pytest.param({"sockets": "af_xdp"}, marks=needs_bpf),
        pytest.param({"sockets": "af_xdp", "forwarding": "ip4"}, marks=needs_bpf),
    ],
)
def test_frames_pass_both_ways_and_every_one_is_accounted_for(dut_lab, set_up, options):
    dut = set_up(**options)
    assert_passes(dut_lab, dut, version=6 if options.get("forwarding") == "ip6" else 4)
    dut.reset()
    dut.verify()


@pytest.mark.parametrize(
    ("options", "goes_first"), [({}, True), pytest.param({"sockets": "af_xdp"}, False, marks=needs_bpf)]
)
def test_vpp_goes_before_ordinary_programs_where_it_sleeps(set_up, options, goes_first):
    is_granted = subprocess.run(["chrt", "-r", "5", "true"], check=False, capture_output=True).returncode == 0
    daemon = set_up(**options).daemons[0]
    pid = int(Path(daemon.directory, "vpp.pid").read_text().split()[0])
    policies = {os.sched_getscheduler(int(thread.name)) for thread in Path(f"/proc/{pid}/task").iterdir()}
    assert policies == {os.SCHED_RR if goes_first and is_granted else os.SCHED_OTHER}


@needs_bpf
def test_frames_come_by_a_program_that_goes_when_vpp_was_killed(dut_lab, set_up):
    before = dut_lab.snapshot()
    dut = set_up(sockets="af_xdp")
    assert any("create interface af_xdp host-if dut0" in command for command in dut.describe()["commands"])
    if dut.options.home != str(STAND_IN):
        assert all("xdp" in dut_lab.links()[name] for name in ("dut0", "dut1"))
    dut_lab.kill(*dut.daemons)
    dut.tear_down()
    assert dut_lab.snapshot() == before
    assert not any("xdp" in dut_lab.links()[name] for name in ("dut0", "dut1"))


def test_tunnels_are_configured_with_the_ends_that_traffic_has(set_up):
    dut = set_up(forwarding="l2bd", vxlan=True)
    commands = "\n".join(dut.describe()["commands"])
    assert "create vxlan tunnel src 198.19.0.2 dst 198.18.0.1 vni 24" in commands
    assert "create vxlan tunnel src 198.18.0.2 dst 198.19.0.1 vni 25" in commands


def test_the_description_has_the_whole_configuration(set_up):
    facts = set_up().describe()
    assert facts["version"].startswith("vpp v")
    assert any("main-core" in line for line in facts["startup"])
    assert "vppctl set interface l2 xconnect host-dut0 host-dut1" in facts["commands"]


@pytest.mark.parametrize(("forwarding", "line"), [("ip4", "ip route add count 250 "), ("l2bd", "l2fib add 02:ff:00:")])
def test_reconfiguration_adds_entries(dut_lab, set_up, forwarding, line):
    dut = set_up(forwarding=forwarding)
    dut.reconfigure(500)
    path = dut.describe()["commands"][-1].rpartition(" ")[2]
    assert line in dut_lab.on_dut("cat", path)
    assert_passes(dut_lab, dut)


def test_after_each_command_workers_are_awake_for_half_a_second(set_up):
    dut = set_up(forwarding="ip4")
    dut.read_counters()
    assert 0.0 < dut.wakeful_time <= 0.55
    time.sleep(dut.wakeful_time)
    assert dut.wakeful_time == 0.0


@pytest.mark.skipif(not HOME, reason="needs a VPP: set VPP_HOME")
@pytest.mark.vpp
def test_a_real_vpp_sleeps_when_this_time_is_over(dut_lab):
    def used(dut):
        """Seconds of CPU that the worker has had."""
        pid = dut_lab.on_dut("cat", dut.program_files[0]).split()[0]
        line = f"for task in /proc/{pid}/task/*; do grep -q vpp_wk $task/comm && cat $task/schedstat; done"
        return sum(int(each.split()[0]) for each in dut_lab.on_dut("sh", "-c", line).splitlines()) / 1e9

    with dut_lab.setting_up("vpp", home=HOME) as set_up:
        dut = set_up()
        for _ in range(3):
            dut.read_counters()
            time.sleep(dut.wakeful_time)
            before = used(dut)
            time.sleep(0.5)
            assert used(dut) - before < 0.05


def test_a_command_that_fails_wakes_vpp_too(monkeypatch):
    class Node:
        def run(self, *_, **__):
            raise DutError("no answer")

    control = VppControl(DutNode(Node()), "/usr", "/run/one", LastCommand())
    assert control.last.wakeful_time == 0.0
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    with pytest.raises(DutError):
        control.ask("show version")
    monkeypatch.setattr(time, "monotonic", lambda: 100.25)
    assert control.last.wakeful_time == pytest.approx(0.3)


def test_a_cross_connect_has_nothing_to_reconfigure(set_up):
    with pytest.raises(DutError, match="has no table for 5 new entries"):
        set_up().reconfigure(5)


def test_telemetry_has_what_the_graph_nodes_did(dut_lab, set_up):
    dut = set_up()
    macs = dut.destination_macs(*dut_lab.macs)
    dut_lab.flood("west", macs.from_west, frames=50)
    with dut.telemetry() as report:
        dut_lab.flood("west", macs.from_west, frames=400)
    assert {"show runtime", "show errors", "interfaces", "softnet", "perf"} <= report.keys()
    # The stand-in has no graph nodes.
    if report["workers"]:
        assert sum(worker["frames"] for worker in report["workers"]) == 400


def test_the_performance_monitor_counts_in_a_trial_of_its_own(set_up):
    dut = set_up()
    skip_without(dut.options.home, "perfmon")
    assert "perfmon context-switches" in dut.probes()
    with dut.probe("perfmon context-switches") as report:
        pass
    assert report["perfmon context-switches"]
    assert ("perfmon_context_switches_per_second", "1/s") in {
        (each["name"], each["unit"]) for each in report["statistics"]
    }


def test_a_command_that_vpp_refuses_fails_the_set_up_which_is_undone(dut_lab, set_up):
    before = dut_lab.snapshot()
    dut = set_up(forwarding="ip4")
    with pytest.raises(DutError, match=r"DUT1: VPP refused 'set nonsense now': set.*unknown input"):
        dut._control.configure(dut.present.changes, Command("set nonsense now"))
    dut.tear_down()
    assert dut_lab.snapshot() == before


def test_what_vpp_does_not_show_is_an_error(set_up):
    control = set_up()._control
    shown = Shown("show version", "vpp v", "its version")
    assert control.check([shown]) == {"show version": "its version"}
    with pytest.raises(DutError, match=r"DUT1: VPP's 'show mode' does not show a bridge: l.*"):
        control.check([shown, Shown("show mode", "l2 bridge", "a bridge")])


def test_routes_to_a_million_hosts_a_side_are_to_addresses_that_nobody_has():
    ports = both_ports(("host-a", "host-b"), ("02:00:00:00:00:01", "02:00:00:00:00:02"))
    options = parse_options("vpp", {"forwarding": "ip4", "routes": 2_000_000})
    added = [command.text.split() for command in options.forwarding_commands(*ports) if " count " in command.text]
    assert sum(int(words[4]) for words in added) == 2_000_000
    assert {words[7] for words in added} == {"198.18.255.253", "198.19.255.253"}
    profile = load_profile("ethip4-ip4scale2m-rnd", frame_size=64)
    eastward = frames_spec(profile.directions[0], WEST, EAST)
    (field,) = (field for field in eastward.fields if field.count == 1_000_000)
    first = next(words[5] for words in added if words[-1] == "host-b")
    assert (str(IPv4Address(field.first)), field.seed) == (first.removesuffix("/32"), profile.seed)


def test_a_long_file_of_commands_has_more_time(set_up, monkeypatch):
    dut, given = set_up(), []
    monkeypatch.setattr(VppControl, "ask", lambda _, text, seconds: given.append(seconds) or "")
    for lines in (10, 5000):
        dut._control.configure(dut.present.changes, Command("set nonsense\n" * lines))
    assert given == [30.0, 500.0]


RULES = {"acl": 5, "police": "50 Mbps"}


@pytest.mark.parametrize(
    ("version", "plugins", "options", "message"),
    [
        ("26.10", ("acl",), RULES, r"DUT1: police needs VPP's plugin policer, and \S+ has no policer_plugin\.so"),
        ("26.02", (), RULES, r"DUT1: acl needs VPP's plugin acl, and \S+ has no acl_plugin\.so\. Install it there"),
        ("26.02", ("acl",), RULES, None),
        (
            "20.05",
            ("adl",),
            {"forwarding": "ip4", "allowlist": True},
            r"DUT1: allowlist needs VPP 20\.09 or later, but \S+/bin/vpp is 20\.05\.",
        ),
        (
            "26.10",
            (),
            {"sockets": "af_xdp"},
            r"DUT1: sockets=af_xdp needs VPP's plugin af_xdp, and \S+ has no af_xdp_plugin\.so",
        ),
        (
            "26.10",
            ("memif", "vhost"),
            {"process": "vhost", "vm": "vpp"},
            r"DUT1: vm=vpp needs VPP's plugin dpdk, and \S+ has no dpdk_plugin\.so\. .*vpp-plugin-dpdk",
        ),
    ],
)
def test_what_this_vpp_lacks_is_missed_before_the_set_up(
    dut_lab, tmp_path, monkeypatch, version, plugins, options, message
):
    # QEMU need not be here.
    monkeypatch.setattr("lossratio.dut.vpp.path.tools_of_others", lambda _: ())
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib" / "vpp_plugins").mkdir(parents=True)
    (tmp_path / "bin" / "vppctl").touch()
    vpp = tmp_path / "bin" / "vpp"
    vpp.write_text(f"#!/bin/sh\necho vpp v{version}-rc0\n")
    vpp.chmod(0o755)
    for name in plugins:
        (tmp_path / "lib" / "vpp_plugins" / f"{name}_plugin.so").touch()
    dut = dut_lab.create("vpp", home=str(tmp_path), **options)
    if message is None:
        dut.check()
    else:
        with pytest.raises(DutError, match=message):
            dut.check()


def test_a_vpp_without_an_engine_that_encrypts_is_an_error_and_sockets_have_short_paths(set_up):
    control = set_up()._control
    assert len(f"{control.directory}/vhost0.sock") < 108
    (engine,) = shown_by(ENGINE)
    if re.search(engine.pattern, control.ask(engine.command)):
        pytest.skip("this VPP has an engine that encrypts")
    with pytest.raises(DutError, match=r"'show crypto engines' does not show an engine that encrypts"):
        control.check([engine])


def test_a_vpp_that_was_killed_is_one_error_and_the_next_set_up_is_fresh(dut_lab, set_up):
    dut = set_up()
    # VPP's shared memory, which the stand-in does not have.
    shared = f"/dev/shm/{Path(dut.daemons[0].directory).name}-global_vm"
    dut.node.run("touch", shared)
    dut_lab.kill(dut.daemons[0])
    with pytest.raises(DutError, match=r"DUT1: vpp has died"):
        dut.verify()
    dut.tear_down()
    assert dut.node.attempt("test", "-e", shared).exit_status == 1
    dut.set_up(*dut_lab.macs)
    assert_passes(dut_lab, dut)


DIES_AT_ITS_START = "#!/bin/sh\n[ \"$1\" = --version ] && exit\necho 'unknown section' >&2\nexit 1\n"
DIES_AT_AN_INTERFACE = (
    (STAND_IN / "bin" / "vpp")
    .read_text()
    .replace("def make(self, name):", "def make(self, name):\n        sys.exit('unknown section')")
)


@pytest.mark.parametrize("program", [DIES_AT_ITS_START, DIES_AT_AN_INTERFACE], ids=["start", "interface"])
def test_a_vpp_that_dies_in_the_set_up_says_why_and_leaves_nothing(dut_lab, tmp_path, program):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "vppctl").symlink_to(STAND_IN / "bin" / "vppctl")
    vpp = tmp_path / "bin" / "vpp"
    vpp.write_text(program)
    vpp.chmod(0o755)
    before = dut_lab.snapshot()
    with pytest.raises(DutError, match=r"DUT1: vpp has died .*Its last output: unknown section\."):
        dut_lab.create("vpp", home=str(tmp_path)).set_up(*dut_lab.macs)
    assert dut_lab.snapshot() == before


def test_policers_have_the_cpus_clock(dut_lab, set_up):
    clock = set_up(forwarding="ip4", police="50 Mbps").describe()["clock"]
    assert clock["policers_hz"] == pytest.approx(clock["measured_hz"], rel=1e-3)
    assert clock["starts"] in range(1, 6)


def test_a_vpp_that_is_not_there_is_missed_with_its_packages(dut_lab):
    dut = create_dut("vpp", dut_lab.shell, dut_lab.create("vpp").hop, {"home": "/nowhere"})
    with pytest.raises(DutError, match=r"DUT1 lacks /nowhere/bin/vpp\. Install it there: apt-get install .*vpp"):
        dut.check()


def test_counters_are_read_as_vpp_prints_them():
    interfaces = """\
              Name               Idx    State  MTU (L3/IP4/IP6/MPLS)     Counter          Count
host-dut0                         1      up          9000/0/0/0     rx packets                     7
                                                                    rx bytes                     420
                                                                    drops                          2
                                                                    tx-error                       1
local0                            0     down          0/0/0/0
"""
    counts = {"rx packets": 7, "rx bytes": 420, "drops": 2, "tx-error": 1}
    assert parse_interfaces(interfaces) == {"host-dut0": counts, "local0": {}}
    errors = """\
   Count                  Node                              Reason               Severity
         5           policer-input                        policed                  error
         9              l2-input                      L2 input packets              info
"""
    assert parse_errors(errors) == {"policer-input: policed": 5}


def test_a_vpp_that_was_restarted_is_another_program_with_the_same_configuration(dut_lab, set_up):
    dut_lab.assert_restarts(set_up())
