"""The how-to about black boxes, executed as it stands in namespaces that nobody else sees."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from examples import examples_in
from netns import run_alone

from lossratio.dut import DestinationMacs
from lossratio.errors import DutError
from lossratio.results.run_directory import RunDirectory
from lossratio.testbed.opening import open_testbed
from lossratio.testbed.set_up import checked_duts
from lossratio.testbed.testbed import dut_request
from lossratio.topology import load_topology

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "how-to" / "measure-a-black-box.md").read_text()


def blocks(language):
    return examples_in(TEXT, language)


@pytest.fixture
def topology(tmp_path):
    file = tmp_path / "box.yaml"
    file.write_text(blocks("yaml")[0])
    return file


def in_the_shell(path, *lines):
    """Executes lines where nobody else sees them."""
    return run_alone("\n".join(("mount -t tmpfs tmpfs /run", "set -e", *lines)), cwd=path)


OWN_HOOK = """
A Keyword Is A Hook
    Use Hook    counters    Counters Of My Own    12
    ${counters} =    Call Hook    counters
    Should Be Equal As Integers    ${counters}[received][west]    12
    Run Keyword And Expect Error    *no hook 'stop'*    Use Hook    stop    No Operation
    Run Keyword And Expect Error    *no black box LEFT*    Call Hook    reset    node=LEFT


*** Keywords ***
Counters Of My Own
    [Arguments]    ${west}
    VAR    &{received}    west=${west}
    VAR    &{counters}    received=${received}
    RETURN    ${counters}
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root enters namespaces without a log-in")
ROBOT = f"{sys.executable} -m robot --pythonpath {ROOT / 'libraries'} "


@pytest.mark.netns
@needs_root
def test_the_how_to_is_true(tmp_path, topology):
    (tmp_path / "box.robot").write_text(blocks("robotframework")[0])
    build, probe, run, *_ = blocks("sh")
    # The other test of the page takes a minute, and a simulated bucket proves the same.
    options = f"--test WithRest --outputdir {tmp_path / 'run'} "
    in_the_shell(tmp_path, build, run.replace("robot ", ROBOT + options, 1))
    (result,) = RunDirectory(tmp_path / "run").results()
    assert any(remark.text.startswith("the device does not seem to remember trials") for remark in result.remarks)
    # A trial of half a second passes the rate and the bucket.
    assert result.mrr.mean.per_interface_fps == pytest.approx(2000 + 3000 / 0.5, rel=0.1)
    assert result.conditions.duts["BOX"]["hold"] == 0.1
    assert probe == "lossratio check box.yaml --connect --probe\n"


@pytest.mark.netns
@needs_root
def test_the_probe_and_the_hooks_of_the_how_to_are_true(tmp_path, topology):
    _, fragment, *_ = blocks("yaml")
    with_hooks = tmp_path / "hooks.yaml"
    with_hooks.write_text(re.sub(r"(type: DUT *#.*\n)", lambda line: line.group(1) + fragment, topology.read_text()))
    assert load_topology(with_hooks).nodes["BOX"].hooks.reset.command == "nft -f police.nft"
    (tmp_path / "hooks.robot").write_text(blocks("robotframework")[1] + OWN_HOOK)
    build, probe, *_ = blocks("sh")
    robot = f"{ROBOT}--outputdir {tmp_path / 'run'} --variable TOPOLOGY:hooks.yaml hooks.robot"
    shown = in_the_shell(tmp_path, build, probe.replace("lossratio ", f"{sys.executable} -m lossratio "), robot)
    for way in ("TG.west > TG.east", "TG.east > TG.west"):
        assert f"  {way}: frames of 64 and 1518 bytes come out\n" in shown
    assert "PROBLEM" not in shown


def test_options_of_a_black_box_are_checked_before_anything_is_touched(topology):
    assert load_topology(topology).nodes["BOX"].place == ""
    with pytest.raises(DutError, match="DUT black_box cannot be set up: it has no option 'rst'"):
        open_testbed(topology, dut="black_box", options={"rst": True})


def test_only_a_black_box_needs_no_way_to_its_node(topology):
    paths = load_topology(topology).paths(1)
    with pytest.raises(DutError, match=r"^BOX: a linux_bridge is set up by commands, .* dut=black_box\.$"):
        checked_duts(dut_request("linux_bridge", {}), paths, {})
    ((box,),) = checked_duts(dut_request("black_box", {"west_mac": "02:00:00:00:00:01"}), paths, {})
    assert box.destination_macs("02:00:00:00:00:0a", "02:00:00:00:00:0b") == DestinationMacs(
        from_west="02:00:00:00:00:01", from_east="02:00:00:00:00:0a"
    )
    with pytest.raises(
        DutError, match=r"BOX: a black_box cannot be reset before each trial unless it has a hook.*rest=2 s"
    ):
        checked_duts(dut_request("black_box", {"reset": "true"}), paths, {})


TRANSLATES = """
table bridge police {
  chain forward {
    type filter hook forward priority 0
    iifname in0 ip saddr set 198.18.200.1
  }
}
"""
SUITE = """
*** Settings ***
Resource          lossratio/resources/performance.resource
Suite Setup       Set Up Testbed    box.yaml    dut=black_box    {option}
Suite Teardown    Tear Down Testbed


*** Test Cases ***
MRR And Latency
    Measure MRR    64B    trials=1    trial_duration=0.2 s    max_load=1 kfps
    Measure Latency    1 kfps    frame_size=64B    duration=0.5 s
"""


@pytest.mark.netns
@needs_root
def test_a_box_that_translates_addresses_is_measured_once_that_is_said(tmp_path, topology):
    (tmp_path / "plain.robot").write_text(SUITE.format(option=""))
    (tmp_path / "said.robot").write_text(SUITE.format(option="translates=True"))
    build, *_ = blocks("sh")
    (tmp_path / "translates.nft").write_text("flush ruleset" + TRANSLATES)
    lines = (
        build,
        "ip netns exec box nft -f translates.nft",
        f"{ROBOT} --outputdir plain plain.robot && exit 1 || true",
        f"{ROBOT} --outputdir said said.robot",
    )
    shown = in_the_shell(tmp_path, *lines)
    assert "a black box has the option 'translates'" in " ".join(shown.split())
    mrr, latency = RunDirectory(tmp_path / "said").results()
    assert mrr.mrr.mean.per_interface_fps > 900
    assert latency.conditions.duts["BOX"]["translates"] is True
