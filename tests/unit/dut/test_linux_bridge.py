"""A real bridge in a network namespace, and real frames through it."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from dut_lab import FailingShell, NamespaceShell, hop

from lossratio.dut import create_dut
from lossratio.dut.changes import Changes
from lossratio.dut.linux.nftables import check_unclaimed, take_claim
from lossratio.errors import DutError, NodeError
from lossratio.nodes.node import DutNode

pytestmark = pytest.mark.netns


@pytest.fixture
def set_up(dut_lab):
    def set_up(**options):
        dut = dut_lab.create("linux_bridge", **options)
        dut.set_up(*dut_lab.macs)
        return dut

    return set_up


@pytest.mark.smoke
def test_frames_pass_unchanged_both_ways(dut_lab, set_up):
    bridge = set_up()
    macs = bridge.destination_macs(*dut_lab.macs)
    assert (macs.from_west, macs.from_east) == dut_lab.macs[::-1]
    for entry, destination in (("west", macs.from_west), ("east", macs.from_east)):
        flooded = dut_lab.flood(entry, destination, frames=100)
        assert (flooded.sent, flooded.received) == (100, 100)
        assert flooded.first[:6].hex(":") == destination


def test_a_bare_bridge_has_no_known_truth_and_puts_no_rule_in_the_way(dut_lab, set_up):
    bridge = set_up()
    assert bridge.options.modelled_as() is None
    assert bridge.recovery_time == 0.0
    assert "chain" not in dut_lab.on_dut("nft", "list", "ruleset")


@pytest.mark.smoke
def test_tear_down_brings_back_exactly_what_was_there(dut_lab, set_up):
    before = dut_lab.snapshot()
    bridge = set_up(police="50 kfps")
    assert dut_lab.snapshot() != before
    bridge.tear_down()
    assert dut_lab.snapshot() == before
    bridge.tear_down()
    assert dut_lab.snapshot() == before


def test_interfaces_that_were_down_aliased_and_spoke_ipv6_are_so_again(dut_lab, set_up):
    for name in ("dut0", "dut1"):
        dut_lab.on_dut("sysctl", "-qw", f"net.ipv6.conf.{name}.accept_dad=0", f"net.ipv6.conf.{name}.disable_ipv6=0")
    dut_lab.on_dut("ip", "link", "set", "dev", "dut0", "alias", "port of a lab")
    dut_lab.on_dut("ip", "link", "set", "dev", "dut1", "down")
    before = dut_lab.snapshot()
    assert before["links"]["dut0"]["addr_info"]
    bridge = set_up()
    assert not dut_lab.links()["dut0"]["addr_info"]
    bridge.tear_down()
    assert dut_lab.snapshot() == before


def test_a_set_up_that_fails_at_any_step_is_undone(dut_lab, set_up):
    bridge = set_up(police="50 kfps")
    # The words that name the change only, as an alias has the time, too.
    steps = [shlex.split(line.partition(" <<< ")[0])[:6] for line in bridge.describe()["commands"]]
    bridge.tear_down()
    before = dut_lab.snapshot()
    assert len(steps) > 10
    for step in range(len(steps)):
        shell = FailingShell(dut_lab.lab, "dut", steps, step)
        failing = create_dut("linux_bridge", shell, hop(), {"police": "50 kfps"})
        with pytest.raises(DutError, match="no luck"):
            failing.set_up(*dut_lab.macs)
        assert dut_lab.snapshot() == before, f"after {steps[step]}"
        failing.tear_down()


@pytest.mark.parametrize("is_done", [True, False])
def test_a_set_up_that_is_interrupted_is_undone(dut_lab, is_done):
    before = dut_lab.snapshot()
    step = [["ip", "link", "add", "name", "lr-dut0"]]
    shell = FailingShell(dut_lab.lab, "dut", step, 0, KeyboardInterrupt, is_done=is_done)
    with pytest.raises(KeyboardInterrupt):
        create_dut("linux_bridge", shell, hop(), {}).set_up(*dut_lab.macs)
    assert dut_lab.snapshot() == before


def test_changes_that_a_lost_connection_left_are_undone_by_the_next_tear_down(dut_lab):
    before = dut_lab.snapshot()
    shell = FailingShell(dut_lab.lab, "dut", [["ip", "link", "set", "dev", "dut1", "master"]], 0, ConnectionError)
    shell.stays_lost = True
    bridge = create_dut("linux_bridge", shell, hop(), {})
    with pytest.raises(NodeError, match="could not be undone"):
        bridge.set_up(*dut_lab.macs)
    assert dut_lab.snapshot() != before
    shell.stays_lost = False
    bridge.tear_down()
    assert dut_lab.snapshot() == before


def test_setting_up_again_changes_nothing(dut_lab, set_up):
    bridge = set_up(police="50 kfps")
    after = dut_lab.snapshot()
    bridge.set_up(*dut_lab.macs)
    assert dut_lab.snapshot() == after
    with pytest.raises(DutError, match="Tear it down first"):
        bridge.set_up(*dut_lab.macs[::-1])


def test_an_interface_that_somebody_has_set_up_is_refused_and_stays_as_it_is(dut_lab, set_up):
    set_up()
    after = dut_lab.snapshot()
    for kind in ("linux_bridge", "linux_router"):
        with pytest.raises(DutError, match="interface dut0 is already set up, as linux_bridge of lossratio, set up by"):
            dut_lab.create(kind).set_up(*dut_lab.macs)
    assert dut_lab.snapshot() == after


def test_an_interface_is_claimed_by_one_of_two_that_try_at_once(dut_lab):
    node = DutNode(dut_lab.shell)
    links = dut_lab.links()
    winner, loser = Changes(node), Changes(node)
    take_claim(winner, node, "linux_bridge", ["dut1"], links)
    with pytest.raises(DutError, match="interface dut1 is already set up, as linux_bridge of lossratio"):
        take_claim(loser, node, "linux_router", ["dut0", "dut1"], links)
    loser.roll_back()
    check_unclaimed(node, ["dut0"])
    winner.roll_back()
    check_unclaimed(node, ["dut0", "dut1"])


def test_a_full_bucket_passes_its_burst_in_each_direction_and_every_frame_is_accounted_for(dut_lab, set_up):
    bridge = set_up(police="1 fps", burst=200)
    macs = bridge.destination_macs(*dut_lab.macs)
    before = bridge.read_counters()
    # One frame a second trickles into the bucket; on a machine this busy, a few may.
    assert dut_lab.flood("west", macs.from_west, frames=300).received == pytest.approx(200, abs=5)
    assert dut_lab.flood("east", macs.from_east, frames=250).received == pytest.approx(200, abs=5)
    counted = bridge.read_counters().since(before)
    assert counted.received == {"west": 300, "east": 250}
    assert counted.dropped["policer west>east"] == pytest.approx(100, abs=5)
    assert counted.dropped["policer east>west"] == pytest.approx(50, abs=5)
    assert counted.unaccounted == 0
    assert bridge.recovery_time == 200.0


def test_reset_fills_the_bucket_again(dut_lab, set_up):
    bridge = set_up(police="1 fps", burst=200)
    destination = bridge.destination_macs(*dut_lab.macs).from_west
    assert dut_lab.flood("west", destination, frames=300).received == pytest.approx(200, abs=5)
    assert dut_lab.flood("west", destination, frames=300).received < 20
    bridge.reset()
    assert bridge.read_counters().dropped["policer west>east"] == 0
    assert dut_lab.flood("west", destination, frames=300).received == pytest.approx(200, abs=5)


@pytest.mark.quiet
def test_a_policer_passes_rate_times_duration_plus_burst(dut_lab, set_up):
    # A full bucket loses tokens while the sender stalls. After 1000 frames it has room for a quarter of a second.
    bridge = set_up(police="4 kfps", burst=2000)
    flooded = dut_lab.flood("west", bridge.destination_macs(*dut_lab.macs).from_west, seconds=0.5)
    least, most = (4000 * seconds + 2000 for seconds in flooded.seconds)
    assert flooded.sent > 1.2 * most
    assert least - 3 <= flooded.received <= most + 3


def test_the_description_is_data_and_has_the_commands_to_repeat_it(dut_lab, set_up):
    description = json.loads(json.dumps(set_up(police="50 kfps").describe()))
    assert description["kind"] == "linux_bridge"
    assert description["options"]["police"] == 50_000
    assert description["modelled_as"] == {"model": "policer", "rate": 50_000.0, "burst": 1000}
    assert any(line.startswith("ip link add name lr-dut0 type bridge stp_state 0") for line in description["commands"])
    assert description["interfaces"]["dut0"]["driver"] == "veth"
    assert description["interfaces"]["dut0"]["mac_address"] == dut_lab.lab.mac("dut", "dut0")
    assert "generic-receive-offload" in str(description["interfaces"]["lr-dut0"]["offloads"])
    assert description["kernel"].startswith("Linux ")
    assert description["tools"]["nft"].startswith("nftables v")
    assert any(entry.get("rule", {}).get("table") == "lossratio-dut0" for entry in description["nftables"])


class BootedWithASecret(NamespaceShell):
    """A shell of a node whose kernel's command line holds a secret."""

    def run(self, *command, **given):
        result = super().run(*command, **given)
        own = Path("/proc/cmdline").read_text().strip()
        return replace(result, stdout=result.stdout.replace(own, "root=/dev/sda isolcpus=2-3 luks.key=hunter2"))


def test_of_the_kernel_s_command_line_only_what_matters_is_described(dut_lab):
    dut = create_dut("linux_bridge", BootedWithASecret(dut_lab.lab, "dut"), hop(), {})
    dut.set_up(*dut_lab.macs)
    description = dut.describe()
    dut.tear_down()
    assert description["kernel_parameters"] == ["isolcpus=2-3"]
    assert "hunter2" not in json.dumps(description)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (("ip", "link", "set", "dev", "dut1", "down"), "interface dut1 no longer exists, or was set down"),
        (("ip", "link", "set", "dev", "dut1", "nomaster"), "interface dut1 is no longer in lr-dut0"),
        (("ip", "link", "delete", "dev", "lr-dut0"), "interface lr-dut0 no longer exists"),
        (("nft", "flush", "ruleset"), "the nftables table bridge lossratio-dut0 no longer exists"),
        (("nft", "flush", "table", "bridge", "lossratio-dut0"), "table bridge lossratio-dut0 was changed"),
        (
            ("nft", "add table bridge x; add chain bridge x y {type filter hook forward priority 9; policy drop;}"),
            "the nftables table bridge x was added",
        ),
        (("ip", "link", "add", "name", "third", "master", "lr-dut0", "type", "veth"), "interface third was put into"),
        (("ip", "link", "set", "dev", "lr-dut0", "address", "02:00:00:00:00:99"), "MAC address of interface lr-dut0"),
        (
            ("tc", "qdisc", "add", "dev", "dut1", "root", "tbf", "rate", "1mbit", "burst", "9kb", "latency", "9ms"),
            "the queueing discipline of interface dut1 was .*noqueue.*, and is now .*tbf",
        ),
        (("tc", "qdisc", "add", "dev", "dut0", "clsact"), "the queueing discipline of interface dut0 was"),
    ],
)
def test_a_bridge_that_was_tampered_with_does_not_verify(dut_lab, set_up, harm, message):
    bridge = set_up(police="50 kfps")
    bridge.verify()
    dut_lab.on_dut(*harm)
    with pytest.raises(DutError, match=message):
        bridge.verify()


class LosingACard(NamespaceShell):
    """Its card goes away while the state of the node is read, which takes a while on a slow one."""

    is_due = False

    def run(self, *command, **given):
        if self.is_due and "queues" in command:
            self.is_due = False
            super().run("ip", "link", "delete", "dev", "dut1")
        return super().run(*command, **given)


def test_a_card_that_goes_away_is_named_and_nothing_that_went_with_it(dut_lab):
    session = LosingACard(dut_lab.lab, "dut")
    # The bridge has the least address of its ports, so this address goes with the card.
    dut_lab.on_dut("ip", "link", "set", "dev", "dut1", "address", "02:00:00:00:00:01")
    bridge = create_dut("linux_bridge", session, hop(), {})
    bridge.set_up(*dut_lab.macs)
    session.is_due = True
    with pytest.raises(DutError, match=r"set-up: interface dut1 no longer exists, or was set down\. Tear it down"):
        bridge.verify()
    with pytest.raises(DutError, match="could not be restored"):
        bridge.tear_down()


def test_a_bridge_that_polices_and_is_reset_verifies(dut_lab, set_up):
    bridge = set_up(police="2 kfps")
    for _ in range(2):
        dut_lab.flood("west", bridge.destination_macs(*dut_lab.macs).from_west, frames=100)
        bridge.verify()
        bridge.reset()
    bridge.verify()


def test_settings_that_cannot_be_restored_are_named_and_the_rest_is_restored(dut_lab, set_up):
    before = dut_lab.snapshot()
    bridge = set_up()
    dut_lab.on_dut("ip", "link", "delete", "dev", "lr-dut0")
    with pytest.raises(DutError, match=r"could not be restored completely.* ip link delete dev lr-dut0: Cannot find"):
        bridge.tear_down()
    assert dut_lab.snapshot() == before


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (("ip", "link", "delete", "dev", "dut1"), "DUT1 has no interface 'dut1'; it has dut0, lo, lr-dut0"),
        (
            ("nft", "flush", "ruleset"),
            r"DUT1: the counter policed_west_east no longer exists. There are: none\. Tear the DUT down",
        ),
    ],
)
def test_an_interface_that_is_gone_when_counters_are_read_is_reported(dut_lab, set_up, harm, message):
    bridge = set_up(police="50 kfps")
    dut_lab.on_dut(*harm)
    with pytest.raises(DutError, match=message):
        bridge.read_counters()


def test_of_a_node_that_was_rebooted_nothing_is_left_to_undo(dut_lab, set_up, caplog):
    bridge = set_up()
    dut_lab.shell.boot_id = "another boot"
    with pytest.raises(DutError, match="DUT1 has been rebooted"):
        bridge.verify()
    bridge.tear_down()
    assert "DUT1 has been rebooted since its linux_bridge was set up, so there is nothing to undo." in caplog.messages


def test_a_dut_that_is_not_set_up_says_so(dut_lab):
    bridge = dut_lab.create("linux_bridge")
    for ask in (bridge.verify, bridge.describe, bridge.read_counters, bridge.reset):
        with pytest.raises(DutError, match="DUT1: the linux_bridge is not set up"):
            ask()
    bridge.tear_down()


def test_frames_walk_the_rules_of_a_filter(dut_lab, set_up):
    bridge = set_up(rules=700)
    assert dut_lab.flood("west", bridge.destination_macs(*dut_lab.macs).from_west, frames=10).received == 10
    assert dut_lab.on_dut("nft", "list", "ruleset").count("meta mark") == 700


def test_reconfiguration_adds_entries_for_addresses_of_nobody(dut_lab, set_up):
    before = dut_lab.snapshot()
    bridge = set_up()
    bridge.reconfigure(7)
    assert dut_lab.on_dut("bridge", "fdb").count("02:ff:00:00:00:0") == 7
    assert dut_lab.flood("east", bridge.destination_macs(*dut_lab.macs).from_east, frames=10).received == 10
    bridge.tear_down()
    assert dut_lab.snapshot() == before


def test_tunnels_end_in_the_bridge_and_go_with_it(dut_lab, set_up):
    before = dut_lab.snapshot()
    bridge = set_up(vxlan=True)
    links = dut_lab.links()
    assert {links[name]["linkinfo"]["info_kind"] for name in ("lr-dut0.w", "lr-dut0.e")} == {"vxlan"}
    assert bridge.destination_macs(*dut_lab.macs).from_west == dut_lab.lab.mac("dut", "dut0")
    bridge.verify()
    bridge.tear_down()
    assert dut_lab.snapshot() == before


def test_telemetry_counts_what_passed_in_the_meantime(dut_lab, set_up):
    bridge = set_up()
    macs = bridge.destination_macs(*dut_lab.macs)
    dut_lab.flood("west", macs.from_west, frames=5)
    with bridge.telemetry() as report:
        dut_lab.flood("west", macs.from_west, frames=40)
    assert report["interfaces"]["dut0"]["rx"]["packets"] == report["interfaces"]["dut1"]["tx"]["packets"] == 40
    assert all(count >= 0 for cpu in report["softnet"].values() for count in cpu.values())
    queues = [queue for queue in report["queues"] if queue["interface"] == "dut0"]
    assert [(queue["queue"], queue["frames"]) for queue in queues] in ([(0, 40)], [])
    assert sum(cpu["frames"] for cpu in report["cpus"]) >= 40
    assert all(cpu["softirq"] is None or 0.0 <= cpu["softirq"] <= 1.0 for cpu in report["cpus"])
    assert "unavailable" in report["perf"] or {event["event"] for event in report["perf"]} >= {"task-clock", "cycles"}


def test_a_bridge_that_was_restarted_forwards_as_before(dut_lab, set_up):
    bridge = set_up(police="50 kfps")
    before = dut_lab.on_dut("bridge", "fdb", "show")
    changes = Path("/sys/class/net") / bridge.stem
    carrier = dut_lab.on_dut("cat", f"{changes}/carrier_changes")
    bridge.restart()
    assert dut_lab.on_dut("cat", f"{changes}/carrier_changes") != carrier
    bridge.verify()
    assert dut_lab.on_dut("bridge", "fdb", "show") == before
    flooded = dut_lab.flood("west", bridge.destination_macs(*dut_lab.macs).from_west, frames=100)
    assert (flooded.sent, flooded.received) == (100, 100)
