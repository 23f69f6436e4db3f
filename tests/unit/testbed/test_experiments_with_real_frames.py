"""What is tried after a search without a load, with real frames: the cause is found, or no remedy is named."""

from __future__ import annotations

import pytest
from local_testbeds import local_topology, needs_testbed, own_state

from lossratio.measurements.open_testbed import open_testbed
from lossratio.measurements.throughput import require_lower_bounds
from lossratio.nodes import NodeSession
from lossratio.testbed.local import LocalTestbed
from lossratio.topology import load_topology

pytestmark = [pytest.mark.netns, needs_testbed]
GOALS = {"name": "whole", "loss_ratio": 0, "final_trial_duration": "0.5 s", "duration_sum": "1 s", "width": "5 %"}
# Table: a rule for frames that arrive at the device, and the change that lets them pass; None: nothing does.
CAUSES = {
    "large frames": ("meta length > 1000 numgen random mod 10 0", "with frames of 759 B instead of 1,518 B"),
    "some frames": ("numgen random mod 10 0", None),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A testbed that is there to stay, its file, and a session on its device."""
    directory = tmp_path_factory.mktemp("experiments")
    file = local_topology(directory, "experiments")
    # A busy machine stalls the generator for longer than users allow.
    file.write_text(file.read_text().replace("catch_up: 5 ms", "catch_up: 400 ms"))
    with own_state():
        testbed = LocalTestbed.up(load_topology(file), keep=True)
        with NodeSession.connect("DUT1", testbed.topology.nodes["DUT1"]) as session:
            yield file, session
        testbed.down()


def searched(kept, frame_size, options=None, **settings):
    """The result of a search without a load, and its error."""
    file, _ = kept
    with open_testbed(file, results=file.parent, dut="linux_bridge", options=options or {}) as testbed:
        result = testbed.ndr_pdr(frame_size, goals=GOALS, max_load="20 kfps", bidirectional=False, **settings)
    with pytest.raises(AssertionError) as caught:
        require_lower_bounds(result)
    return result, str(caught.value)


@pytest.fixture(params=CAUSES)
def lossy(kept, request):
    """A device that loses frames, and what lets them pass."""
    condition, change = CAUSES[request.param]
    _, session = kept
    hook = 'type filter hook ingress device "dut0" priority 0;'
    session.run("nft", f"add table netdev faults; add chain netdev faults c {{ {hook} }}")
    session.run("nft", f"add rule netdev faults c {condition} drop")
    yield change
    session.run("nft", "delete table netdev faults")


def test_what_lets_real_frames_pass_is_named_after_it_was_tried(kept, lossy, monkeypatch):
    # Trials of a busy machine take longer than their frames.
    monkeypatch.setattr("lossratio.measurements.throughput.experiments.SECONDS", 120.0)
    result, error = searched(kept, 1518)
    tried = result.experiments
    assert [one.change for one in tried.helpful] == ([] if lossy is None else [lossy])
    assert tried.unchanged_passed == 0
    assert ("With frames of 759 B" in error) is (lossy is not None)
    # The load is not the cause.
    assert result.smaller_load is None or not result.smaller_load.passed


def test_real_frames_pass_at_the_smaller_load_that_is_advised(kept):
    result, error = searched(kept, 64, {"police": "5 kfps"}, min_load="10 kfps")
    assert result.smaller_load.passed
    assert result.smaller_load.load_per_interface_fps == pytest.approx(1000.0)
    assert "A trial of 0.5 s at 1.0000 kfps per interface lost no frames and met whole" in error
    assert "min_load=1000 fps" in error
