"""Causes outside of the device that counters name: PAUSE frames, allowances, rings, quotas, the kernel's backlog."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from waiting import PATIENCE, wait_until

from lossratio.nodes import NodeSession
from lossratio.testbed import fingerprint
from lossratio.testbed.changes import Way, changes_between, unanswered
from lossratio.testbed.counters import CAUSES
from lossratio.testbed.fingerprint import FingerprintReader
from lossratio.trials import TrialInput, TrialOutput

OUTPUT = TrialOutput(0.1, sent_frames=1000, lost_frames=100, unsent_frames=0)
V1 = "cpu"
# Names that drivers have for the same thing, as ethtool -S prints them.
NAMED = [
    ("mlx5", "rx_prio3_pause", "received 17 frames of PAUSE or PFC"),
    ("mlx5", "rx_pause_ctrl_phy", "received 17 frames of PAUSE or PFC"),
    ("ixgbe", "rx_flow_control_xoff", "received 17 frames of PAUSE or PFC"),
    ("i40e", "port.link_xoff_rx", "received 17 frames of PAUSE or PFC"),
    ("i40e", "port.rx_priority_3_xoff", "received 17 frames of PAUSE or PFC"),
    ("ice", "tx_priority_3_xoff.nic", "sent 17 frames of PAUSE or PFC"),
    ("ice", "link_xoff_rx.nic", "received 17 frames of PAUSE or PFC"),
    ("hns3", "mac_rx_pfc_pri3_pkt_num", "received 17 frames of PAUSE or PFC"),
    ("cxgb4", "rx_ppp3_frames", "received 17 frames of PAUSE or PFC"),
    ("bnxt", "tx_pfc_ena_frames_pri0", "sent 17 frames of PAUSE or PFC"),
    ("tg3", "tx_xoff_sent", "sent 17 frames of PAUSE or PFC"),
    ("ena", "pps_allowance_exceeded", "beyond an allowance"),
    ("ena", "bw_in_allowance_exceeded", "beyond an allowance"),
    ("mlx5", "rx_out_of_buffer", "had no room for 17 frames"),
    ("igb", "rx_no_buffer_count", "had no room for 17 frames"),
]
# Counters that move in every trial, that count something else, or that stand still.
SILENT = [
    *("rx_packets", "tx_packets", "rx_bytes", "rx_queue_0_packets", "tx_errors", "rx_crc_errors_phy", "collisions"),
    *(
        "rx_prio0_pause_duration",
        "rx_prio0_pause_transition",
        "tx_pause_storm_warning_events",
        "tx_prio3_pause_duration",
    ),
    *("rx_discards_phy", "rx_vport_unicast_packets", "tx_queue_3_xdp_xmit", "rx0_cache_full", "rx_csum_complete"),
    *("link_down_events_phy", "os2bmc_rx_by_bmc", "rx_flow_control_xon", "allowance"),
]


class Machine:
    """A machine whose /sys, /proc and ethtool are files of a test."""

    def __init__(self, path: Path, monkeypatch):
        self.path = path
        for file in ("bin", "net/eth0/device", "net/eth0/statistics", "cgroup", "cgroup/pod"):
            (path / file).mkdir(parents=True)
        self.write("net/eth0/mtu", "1500").write("net/eth0/flags", "0x1003").write("net/eth0/carrier", "1")
        self.write("self", "0::/pod").write("softnet", "00000001 00000000 0").write("cgroup/cpu.stat", "usage_usec 1")
        self.write("cgroup/pod/cpu.stat", "usage_usec 5\nnr_throttled 3").write("ethtool", "")
        self.write("bin/ethtool", f'#!/bin/sh\n[ "$1 $2" = "-S eth0" ] && cat {path}/ethtool')
        (path / "bin/ethtool").chmod(0o755)
        script = fingerprint._SCRIPT
        for real, fake in {
            "/sys/fs/cgroup": "cgroup",
            "/sys/class/net": "net",
            "/proc/self/cgroup": "self",
            "/proc/net/softnet_stat": "softnet",
            "/proc/interrupts": "interrupts",
            "/proc/pressure/cpu": "pressure",
        }.items():
            script = script.replace(real, str(path / fake))
        monkeypatch.setattr(fingerprint, "_SCRIPT", script)
        monkeypatch.setenv("PATH", f"{path}/bin:{os.environ['PATH']}")

    def write(self, file, text):
        (self.path / file).write_text(text + "\n")
        return self

    def pressure(self):
        """Seconds in which some process waited for a CPU."""
        with NodeSession.here("node") as session:
            reader = FingerprintReader({"node": session}, {})
            read = reader.read().nodes["node"].pressure
            reader.close()
        return read

    def told(self, deed, side="TG", output=OUTPUT):
        """What the fingerprints before and after a deed say about a trial between them."""
        with NodeSession.here("node") as session:
            reader = FingerprintReader({"node": session}, {"node": ["eth0"]})
            before = reader.read()
            deed()
            after = reader.read()
            reader.close()
        way = Way(("node",) if side == "TG" else ("other",), ())
        # Whatever else this machine does meanwhile is not the question.
        others = {"boot_id": "a", "stolen": None, "pressure": None, "awake": None, "asked": 0.0, "answered": 0.0}
        prints = [
            replace(one, nodes={"node": replace(one.nodes["node"], **others, uptime=uptime)})
            for uptime, one in ((1.0, before), (2.0, after))
        ]
        return [
            change
            for change in unanswered(changes_between(*prints, way), TrialInput(1.0, 1000.0), output)
            if change.is_counted
        ]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    return Machine(tmp_path, monkeypatch)


def statistics(**counts):
    return "NIC statistics:\n" + "\n".join(f"     {name}: {count}" for name, count in counts.items())


@pytest.mark.parametrize(("driver", "name", "words"), NAMED)
def test_a_counter_that_moved_names_the_cause_with_what_helps(machine, driver, name, words):
    machine.write("ethtool", statistics(rx_packets=5, **{name: 4}))
    (change,) = machine.told(lambda: machine.write("ethtool", statistics(rx_packets=99, **{name: 21})))
    assert "interface eth0 of node" in str(change)
    assert words in str(change) or "17 packets" in str(change)
    assert change.incident("stands").way_out == change.way_out


@pytest.mark.parametrize("name", SILENT)
def test_counters_of_other_things_name_nothing(machine, name):
    still = {"rx_prio3_pause": 4, "pps_allowance_exceeded": 8, "rx_out_of_buffer": 2}
    machine.write("ethtool", statistics(**still, **{name: 4}))
    assert machine.told(lambda: machine.write("ethtool", statistics(**still, **{name: 999}))) == []


@pytest.mark.parametrize(
    ("file", "text", "words", "side"),
    [
        ("cgroup/pod/cpu.stat", "nr_throttled 15", "the CPU quota of the cgroup of node stopped its programs 12", "TG"),
        (
            "cgroup/pod/cpu.stat",
            "nr_throttled 15",
            "the CPU quota of the cgroup of node stopped its programs 12",
            "DUT",
        ),
        (
            "softnet",
            "01 0000000f 0\n01 00000001 0",
            "the backlog of the kernel of node had no room for 16 frames",
            "TG",
        ),
        ("net/eth0/statistics/rx_missed_errors", "7", "the receive ring of interface eth0 of node had no room", "TG"),
    ],
)
def test_files_of_the_kernel_name_a_cause(machine, file, text, words, side):
    (change,) = machine.told(lambda: machine.write(file, text), side)
    assert str(change).startswith(words)


@pytest.mark.parametrize(
    ("after", "missed", "named"),
    [
        ([(900, 5), (7, 0)], 4, ["one_cpu"]),
        # A card with room has no problem, and neither has one whose interrupts go to both CPUs.
        ([(900, 5), (7, 0)], 0, []),
        ([(900, 5), (7, 80)], 4, ["overrun"]),
        # Other cards, and interrupts without a number, do not count.
        ([(100, 5), (7, 0)], 4, ["overrun"]),
    ],
)
def test_a_full_ring_whose_interrupts_one_cpu_gets_is_named_with_what_spreads_them(machine, after, missed, named):
    (machine.path / "net/eth0/device/msi_irqs").mkdir()
    for number in (25, 126):
        machine.write(f"net/eth0/device/msi_irqs/{number}", "msix")

    def interrupts(first, second):
        rows = ((25, *first), (126, *second), (26, 1, sum(first)), ("NMI", 3, sum(second)))
        lines = [f" {number}:  {' '.join(map(str, counts))}  PCI-MSIX  eth0-rx" for number, *counts in rows]
        machine.write("interrupts", "\n".join(("      CPU0  CPU1", *lines)))

    def work():
        interrupts(*after)
        machine.write("net/eth0/statistics/rx_missed_errors", str(missed))

    machine.write("net/eth0/statistics/rx_missed_errors", "0")
    interrupts((100, 5), (7, 0))
    changes = machine.told(work)
    assert [change.rule.change for change in changes] == named
    assert all("ethtool -L eth0" in change.way_out for change in changes if change.rule.change == "one_cpu")


def test_the_counters_of_cgroup_v1_are_read_too(machine):
    for place in ("", "/pod"):
        (machine.path / f"cgroup/{V1}{place}").mkdir()
        machine.write(f"cgroup/{V1}{place}/cpu.stat", "nr_periods 9\nnr_throttled 1")
    machine.write("self", "4:memory:/elsewhere\n3:cpu,cpuacct:/pod/gone\n0::/")
    (change,) = machine.told(lambda: machine.write(f"cgroup/{V1}/pod/cpu.stat", "nr_periods 9\nnr_throttled 4"))
    assert "stopped its programs 3 times" in str(change)


def test_the_pressure_is_that_of_the_own_cgroup_and_of_the_machine_only_without_one(machine):
    some = "some avg10=9.00 avg60=9.00 avg300=9.00 total={}000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0"
    machine.write("pressure", some.format(9))
    assert machine.pressure() == 9.0
    (machine.path / "cgroup/unified/pod").mkdir(parents=True)
    machine.write("cgroup/unified/pod/cpu.pressure", some.format(4))
    assert machine.pressure() == 4.0
    # Version 2 alone has no folder of that name.
    (machine.path / "cgroup/unified/pod/cpu.pressure").unlink()
    machine.write("cgroup/pod/cpu.pressure", some.format(2))
    assert machine.pressure() == 2.0


@pytest.mark.parametrize(
    ("side", "output", "file"),
    [
        ("TG", replace(OUTPUT, loss_ratio=0.0, lost_frames=0), "cgroup/pod/cpu.stat"),
        # A device whose own rings are full is overloaded: that is what a search looks for.
        ("DUT", OUTPUT, "net/eth0/statistics/rx_missed_errors"),
    ],
)
def test_what_did_no_harm_and_what_the_device_itself_does_is_no_cause(machine, side, output, file):
    text = "nr_throttled 15" if "cgroup" in file else "7"
    assert machine.told(lambda: machine.write(file, text), side, output) == []


def test_a_shared_machine_says_nothing_of_one_node(machine):
    with NodeSession.here("node") as session:
        reader = FingerprintReader({"TG": session, "DUT": session}, {})
        before = reader.read()
        machine.write("softnet", "00000001 0000000f 0")
        after = reader.read()
        reader.close()
    changes = changes_between(before, after, Way(("TG",), ()))
    assert not any(change.rule.change == "backlog" for change in changes)


def test_each_cause_has_its_rows():
    assert {cause.change for cause in CAUSES} == {
        "held",
        "holds",
        "allowance",
        "overrun",
        "quota",
        "one_cpu",
        "backlog",
    }


# A share that a busy machine gives to everybody.
LIMITS = {"cpu.cfs_quota_us": ("-1", "5000"), "cpu.max": ("max 100000", "5000 100000")}


def _cgroup():
    for root in (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")):
        quota = next(name for name in LIMITS if ("cfs" in name) == (root.name == V1))
        place = root / f"lossratio-test-{os.getpid()}"
        try:
            place.mkdir()
        except OSError:
            continue
        if (place / quota).exists():
            return place, quota
        place.rmdir()
    pytest.skip("no cgroup of its own can be made here")


def _burnt(place, burn):
    subprocess.run(["sh", "-c", f'echo $$ > "{place}/cgroup.procs"; {burn}'], check=True, timeout=PATIENCE)


@pytest.mark.netns
@pytest.mark.whole
def test_a_real_quota_is_named_and_a_cgroup_without_one_is_not():
    place, quota = _cgroup()
    burn = "i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done"
    try:
        with NodeSession.here("node") as session:
            # The reader's shell is in the cgroup, as the generator is.
            session.prefix = ("sh", "-c", f'echo $$ > "{place}/cgroup.procs"; exec "$@"', "sh")
            reader = FingerprintReader({"node": session}, {})
            told = []
            for limit in LIMITS[quota]:
                (place / quota).write_text(limit)
                before = reader.read()
                _burnt(place, burn)
                after = reader.read()
                changes = changes_between(before, after, Way(("node",), ()))
                told.append(any(change.rule.change == "quota" for change in changes))
            reader.close()
        assert told == [False, True]
    finally:
        wait_until(lambda: not (place / "cgroup.procs").read_text())
        place.rmdir()


@pytest.mark.netns
@pytest.mark.whole
def test_real_pressure_of_a_cgroup_is_its_own_and_not_that_of_the_machine():
    roots = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
    root = next((root for root in roots if (root / "cgroup.controllers").exists()), None)
    if root is None or not (root / "cpu.pressure").exists():
        pytest.skip("the kernel has no cgroups of version 2 with pressure")
    place = root / f"lossratio-pressure-{os.getpid()}"
    try:
        place.mkdir()
    except OSError:
        pytest.skip("no cgroup of its own can be made here")
    burn = "burn() { i=0; while [ $i -lt 600000 ]; do i=$((i + 1)); done; }; taskset -pc 0 $$; burn & burn & wait"
    try:
        with NodeSession.here("node") as session:
            session.prefix = ("sh", "-c", f'echo $$ > "{place}/cgroup.procs"; exec "$@"', "sh")
            reader = FingerprintReader({"node": session}, {})
            told = []
            for deed in (lambda: subprocess.run(["sh", "-c", burn], check=True), lambda: _burnt(place, burn)):
                before = reader.read()
                deed()
                changes = changes_between(before, reader.read(), Way(("node",), ()))
                told.append([change.rule.change for change in changes if change.rule.change == "pressure"])
            reader.close()
        assert told == [[], ["pressure"]]
    finally:
        wait_until(lambda: not (place / "cgroup.procs").read_text())
        place.rmdir()
