"""Measurements over two parallel links at once: real namespaces, real frames, a policer on each link as the truth."""

from __future__ import annotations

import os
from contextlib import closing

import pytest
from local_testbeds import needs_testbed
from measurement_examples import PROFILE, ROOT, SIMULATED, place

from lossratio.errors import DutError, TopologyError
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.mlrsearch import SearchGoal
from lossratio.nodes import NodeSession
from lossratio.testbed.local import LocalTestbed
from lossratio.testbed.opening import open_testbed
from lossratio.topology import load_topology

TWO_LINKS = ROOT / "topologies" / "local-2links.yaml"
# The bucket holds what a sender makes up for after a stall.
RATE, BURST, CATCH_UP = 2_000, 1_000, "100 ms"
LOSS_FREE = SearchGoal(0.0, 0.75, 1.0, 1.0, 0.05, name="no loss")

real = [pytest.mark.netns, needs_testbed]


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A testbed with two links, and the file that describes it; its state directory is its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "links.yaml"
    text = TWO_LINKS.read_text().replace("name: local-2links", f"name: links-{os.getpid()}")
    file.write_text(text.replace("catch_up: 5 ms", f"catch_up: {CATCH_UP}"))
    testbed = LocalTestbed.up(load_topology(file), keep=True)
    yield file, testbed
    testbed.down()


def test_more_links_than_there_are_is_an_error_before_anything_is_touched():
    with pytest.raises(
        TopologyError, match=r"local-2links\.yaml:6: nodes: .* 3 parallel links were requested, but there are 2"
    ):
        open_testbed(TWO_LINKS, links=3)


def test_a_simulated_testbed_with_parallel_links_is_refused(tmp_path):
    file = tmp_path / "simulated.yaml"
    more = "port1: {link: link1}\n      port2: {link: b}\n      port3: {link: c}"
    file.write_text(SIMULATED.read_text().replace("port1: {link: link1}", more))
    with pytest.raises(TopologyError, match="a simulated testbed has one link, but 2 parallel links"):
        open_testbed(file, links=2)


class TestRealFrames:
    pytestmark = real

    @pytest.mark.quiet
    def test_a_search_over_two_policed_bridges_encloses_the_truth(self, kept, tmp_path):
        options = {"police": f"{RATE} fps", "burst": BURST}
        with closing(open_testbed(kept[0], dut="linux_bridge", options=options, links=2)) as testbed:
            request = SearchRequest(goals=(LOSS_FREE,), profile=PROFILE, max_load=3.0 * RATE)
            result = find_conditional_throughput(testbed, request, place(tmp_path))
            flood = measure_mrr(
                testbed, MrrRequest(profile=PROFILE, max_load=3.0 * RATE, trials=1), place(tmp_path, "flood")
            )
        goal_result = result.goals[0].result
        truth = RATE + BURST / LOSS_FREE.final_trial_duration
        assert (
            goal_result.relevant_lower_bound.per_interface_fps
            <= truth
            <= goal_result.relevant_upper_bound.per_interface_fps
        )
        # Each of the four policers, two on each link, passes its own truth and no more.
        (trial,) = flood.trials
        for direction in trial.directions:
            assert direction.received_frames == pytest.approx(RATE * trial.duration_s + BURST, rel=0.02)

        conditions = result.conditions
        assert conditions.load.directions == ("port0>port1", "port1>port0", "port2>port3", "port3>port2")
        assert conditions.load.aggregate_factor == 4.0
        assert conditions.testbed.links == 2
        assert conditions.testbed.path[4:] == ("TG.port2", "DUT1.port2", "DUT1.port3", "TG.port3")
        assert [dut["kind"] for dut in conditions.duts.values()] == ["linux_bridge"] * 2
        assert list(conditions.duts) == ["DUT1 (link 1)", "DUT1 (link 2)"]

    def test_both_devices_are_put_back(self, kept):
        with closing(NodeSession.connect("DUT1", kept[1].topology.nodes["DUT1"])) as dut:
            before = dut.run("ip", "-brief", "link").stdout
            with closing(open_testbed(kept[0], dut="linux_bridge", options={"police": "10 kfps"}, links=2)):
                assert dut.run("ip", "-json", "link", "show", "type", "bridge").stdout.count('"ifname"') == 2
            assert sorted(dut.run("ip", "-brief", "link").stdout.split()) == sorted(before.split())

    def test_the_link_that_fails_is_named(self, kept, tmp_path, unseen):
        rule = "table netdev deaf { chain in { type filter hook ingress device dut2 priority -500; policy drop; }; }"
        with (
            closing(open_testbed(kept[0], dut="linux_bridge", links=2)) as testbed,
            closing(NodeSession.connect("DUT1", kept[1].topology.nodes["DUT1"])) as dut,
        ):
            dut.run("nft", rule)
            with pytest.raises(DutError) as raised:
                measure_mrr(testbed, MrrRequest(profile=PROFILE, max_load=1e3, trials=1), place(tmp_path))
            dut.run("nft", "delete", "table", "netdev", "deaf")
        assert "works in one direction only" in str(raised.value)
        assert "Parallel link 2 of 2, port2>port3: " in str(raised.value)
        assert "port0" not in str(raised.value)

    def test_programs_that_would_share_cores_are_refused(self, kept):
        with pytest.raises(DutError, match="the testpmd of each of 2 parallel links would use the same cores"):
            open_testbed(kept[0], dut="testpmd", links=2)
