"""One table says who is to blame for what changed between two fingerprints; each row, and what explains what."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest
from fingerprint_examples import GOOD, NOW, SEEN, UP, WAY, later, with_node, with_port

from lossratio.errors import DutError, LinkError, TesterError, TrafficError
from lossratio.testbed.changes import changes_between, error_of, faults_in, guilty_of
from lossratio.testbed.fingerprint import Fingerprint, NodePrint
from lossratio.testbed.rules import FOUND_DOWN, RULES
from lossratio.values.exit_status import FailureKind, kind_of_error

ROOT = Path(__file__).parents[3]


def test_nothing_is_seen_on_a_testbed_that_stays_as_it_is():
    assert changes_between(GOOD, NOW, WAY) == ()
    assert faults_in(GOOD, WAY) == ()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.guilty} {rule.change}")
def test_each_row_of_the_table_is_seen_and_said_in_words(rule):
    (change,) = changes_between(GOOD, SEEN[rule.guilty, rule.change], WAY)
    assert change.rule is rule
    assert "{" not in f"{change} {change.way_out}"
    for word in (change.node if rule.guilty in ("TG", "DUT") else "").split(", "):
        assert word in str(change)
    assert change.interface is None or change.interface in str(change)
    assert change.incident("stands").guilty == rule.guilty


@pytest.mark.parametrize(
    ("side", "error", "kind"),
    [
        ("TG", TesterError, FailureKind.INFRASTRUCTURE),
        ("wire", LinkError, FailureKind.INFRASTRUCTURE),
        ("DUT", DutError, FailureKind.TEST),
    ],
)
def test_the_guilty_side_decides_the_error_and_with_it_the_exit_status(side, error, kind):
    rule = next(rule for rule in RULES if rule.guilty is side and rule.act in ("fail", "repair"))
    raised = error_of(changes_between(GOOD, SEEN[rule.guilty, rule.change], WAY))
    assert (type(raised), kind_of_error(raised), guilty_of(raised)) == (error, kind, side)
    assert guilty_of(TrafficError("something else")) is None


@pytest.mark.parametrize(("end", "other"), [(("TG", "tg0"), ("DUT1", "dut0")), (("DUT1", "dut0"), ("TG", "tg0"))])
def test_an_end_that_was_set_down_explains_that_the_other_has_no_carrier(end, other):
    now = with_port(NOW, *end, is_up=False, has_carrier=False, carrier_changes=3)
    now = with_port(now, *other, has_carrier=False, carrier_changes=3)
    assert [(change.node, change.rule.change) for change in changes_between(GOOD, now, WAY)] == [(end[0], "down")]
    faults = faults_in(now, WAY)
    assert [(change.node, change.rule.change) for change in faults] == [(end[0], FOUND_DOWN)]
    # Perhaps it has never been up.
    told = f"interface {end[1]} of {end[0]} is down. Set it up (ip link set dev {end[1]} up)."
    assert str(error_of(faults)).endswith(told)


def test_a_carrier_that_both_ends_miss_is_the_wires_fault_and_is_named_by_both_ends():
    now = with_port(with_port(NOW, "TG", "tg0", has_carrier=False), "DUT1", "dut0", has_carrier=False)
    error = error_of(changes_between(GOOD, now, WAY))
    assert isinstance(error, LinkError)
    assert "the link TG.tg0 - DUT1.dut0 is lost, although both of its ends are set up" in str(error)


def test_of_a_link_that_is_there_again_nobody_claims_that_its_ends_were_set_up():
    now = with_port(with_port(NOW, "TG", "tg0", carrier_changes=4), "DUT1", "dut0", carrier_changes=4)
    error = error_of(changes_between(GOOD, now, WAY))
    assert isinstance(error, LinkError)
    assert "the link TG.tg0 - DUT1.dut0 was lost for a while. Look at" in str(error)


@pytest.mark.parametrize("mtu", [1499, 1501, 9216])
def test_an_mtu_is_changed_where_it_was_raised_too(mtu):
    (change,) = changes_between(GOOD, with_port(NOW, "DUT1", "dut1", mtu=mtu), WAY)
    assert str(change) == f"the MTU of interface dut1 of DUT1 was 1500, and is now {mtu}"


def test_of_several_changes_the_uppermost_rows_decides_and_the_others_are_said_besides():
    now = with_port(with_port(NOW, "DUT1", "dut1", mtu=300), "TG", "tg1", mtu=400)
    error = error_of(changes_between(GOOD, now, WAY))
    assert isinstance(error, TesterError)
    assert "Also: the MTU of interface dut1 of DUT1 was 1500, and is now 300" in str(error)


@pytest.mark.parametrize(("other_boot", "is_seen"), [("boot of TG", False), ("boot of DUT1", True)])
def test_waiting_for_a_cpu_says_nothing_on_a_machine_that_is_the_dut_too(other_boot, is_seen):
    before, after = (with_node(state, "DUT1", boot_id=other_boot) for state in (GOOD, SEEN["TG", "pressure"]))
    assert bool(changes_between(before, after, WAY)) is is_seen


def test_programs_wait_for_a_cpu_for_no_more_than_all_of_the_time():
    before, after = (with_node(state, "DUT1", boot_id="boot of DUT1") for state in (GOOD, NOW))
    (change,) = changes_between(before, with_node(after, "TG", pressure=1.001), WAY)
    assert str(change) == "processes on TG waited for a CPU for 100 % of the time"


def test_an_answer_that_took_long_is_no_standstill():
    slow = with_node(NOW, "TG", answered=NOW.nodes["TG"].answered + 30.0)
    assert changes_between(GOOD, slow, WAY) == ()
    next_one = later(slow, 1.0)
    assert changes_between(slow, with_node(next_one, "TG", asked=52.0, uptime=UP + 1.0), WAY) == ()


def test_facts_that_a_kernel_does_not_report_are_no_change():
    silent = Fingerprint({name: NodePrint() for name in GOOD.nodes}, NOW.controller)
    assert changes_between(silent, silent, WAY) == ()


def test_the_reference_has_every_row_of_the_table_in_its_order():
    page = (ROOT / "docs" / "reference" / "doubts.md").read_text()
    rows = [
        f"| {', '.join(rule.guilty for rule in alike)} | {sentence} | {act} |"
        for (sentence, act), alike in groupby(RULES, key=lambda rule: (rule.sentence, rule.act))
    ]
    assert [line for line in page.splitlines() if line in rows] == rows
