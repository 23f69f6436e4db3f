"""The modifiers of RFC 2544: commands meanwhile, filters, broadcast frames and random addresses."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from measurement_examples import SIMULATED, place
from rfc2544_examples import DEVICE, PROFILES, REQUEST
from waiting import wait_until

from lossratio.errors import DutError, SearchError
from lossratio.measurements.rfc2544 import Modifier, Rfc2544Test, modified, modifiers, rfc2544_report, run_rfc2544
from lossratio.measurements.rfc2544.compliance import requirements_of
from lossratio.measurements.rfc2544.judges import Status
from lossratio.testbed import open_testbed
from lossratio.traffic import load_profile


@pytest.fixture(scope="module")
def testbed():
    with open_testbed(DEVICE) as testbed:
        yield testbed


def note(path):
    return f'{sys.executable} -c \'open("{path}", "a").write("x")\''


def modified_run(testbed, tmp_path, modifier, *commands):
    profiles = [modified(PROFILES[0], modifier)]
    tests = (Rfc2544Test.THROUGHPUT,)
    request = replace(REQUEST, profiles=profiles, tests=tests, modifier=modifier, modifier_commands=commands)
    return run_rfc2544(testbed, request, place(tmp_path / "run"))


def status_of(run, section, level="SHOULD"):
    return next(item for item in requirements_of(run) if (item.section, item.level) == (section, level))


@pytest.mark.whole
def test_a_query_is_made_before_the_first_test_and_then_in_each_second(testbed, tmp_path, monkeypatch):
    monkeypatch.setitem(vars(modifiers), "_COMMANDS", {Modifier.MANAGEMENT: modifiers._Commands(1, 0.05, "")})
    asked = tmp_path / "asked"
    run = modified_run(testbed, tmp_path, Modifier.MANAGEMENT, note(asked))
    number = len(asked.read_text())
    assert number >= 1
    item = status_of(run, "11.2")
    assert item.status is Status.DIFFERENT
    assert item.why.startswith(f"{number} commands on the controller")
    assert item.why in rfc2544_report(run).html


def test_queries_that_fail_later_are_counted(testbed, tmp_path):
    flag = tmp_path / "once"
    once = f"{sys.executable} -c 'import os; os.mkdir(\"{flag}\")'"
    active = modifiers.ActiveModifier(Modifier.MANAGEMENT, [once], testbed)
    active._interval = 0.01
    with active:
        wait_until(lambda: active._failures)
    assert "failed, the first one: The command of the modifier failed with exit status 1" in active.report().note


def test_a_query_that_fails_at_once_is_one_error_and_nothing_is_measured(testbed, tmp_path):
    with pytest.raises(DutError, match="The command of the modifier failed with exit status 1: false"):
        modified_run(testbed, tmp_path, Modifier.MANAGEMENT, "false")
    assert not (tmp_path / "run").exists()


@pytest.mark.whole
def test_routing_updates_alternate(testbed, tmp_path):
    paths = [tmp_path / name for name in "ab"]
    active = modifiers.ActiveModifier(Modifier.ROUTING_UPDATES, [note(path) for path in paths], testbed)
    active._interval = 0.01
    with active:
        wait_until(lambda: paths[1].exists() and len(paths[1].read_text()) >= 3)
    first, second = (len(path.read_text()) for path in paths)
    assert first - second in (0, 1)
    run = modified_run(testbed, tmp_path, Modifier.ROUTING_UPDATES, *map(note, paths))
    assert status_of(run, "11.3", "MUST").status is Status.DONE


@pytest.mark.parametrize(
    ("modifier", "commands", "problem"),
    [
        (Modifier.MANAGEMENT, (), "'management' of RFC 2544 needs one command"),
        (Modifier.ROUTING_UPDATES, ("true",), "'routing updates' of RFC 2544 needs two commands that alternate"),
        (Modifier.ADDRESSES, ("true",), "modifier 'addresses' has no commands"),
        (None, ("true",), "run without a modifier has no commands"),
        (Modifier.FILTERS, (), "needs filters on the DUT: set the testbed up with them, e.g. dut=linux_bridge"),
    ],
)
def test_a_modifier_that_cannot_be_is_one_error(testbed, tmp_path, modifier, commands, problem):
    with pytest.raises(SearchError, match=problem):
        modified_run(testbed, tmp_path, modifier, *commands)
    assert not (tmp_path / "run").exists()


def test_filters_are_those_of_the_dut(tmp_path):
    with open_testbed(SIMULATED, dut="linux_bridge", options={"police": "10 kfps", "rules": 25}) as testbed:
        run = modified_run(testbed, tmp_path, Modifier.FILTERS)
    item = status_of(run, "11.4")
    assert (item.status, item.why[:14]) == (Status.DONE, "25 on the DUT,")


def test_broadcast_frames_are_a_share_of_the_traffic(testbed, tmp_path):
    run = modified_run(testbed, tmp_path, Modifier.BROADCAST)
    traffic = run.parts[0].result.conditions.traffic
    assert traffic.name == "ethip4-udp-broadcast"
    assert "1 % of the frames to the broadcast address" in traffic.modifiers
    assert traffic.profile["broadcast_share"] == 0.01
    assert status_of(run, "11.1").status is Status.DONE


def test_traffic_without_broadcast_frames_is_described_as_before():
    assert "broadcast_share" not in PROFILES[0].description_in_full()


def test_random_addresses_are_those_of_ipv4_only():
    directions = modified(PROFILES[0], Modifier.ADDRESSES).directions
    assert [direction.headers.flows for direction in directions] == [65280, 65280]
    with pytest.raises(SearchError, match=r"ethip6-udp: random addresses need plain IPv4"):
        modified(load_profile("ethip6-udp", frame_size=78), Modifier.ADDRESSES)
