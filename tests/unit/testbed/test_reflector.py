"""Paths whose far end is on another machine: a reflector sends the frames back, and one clock has both times."""

from __future__ import annotations

import pytest
from local_testbeds import needs_testbed
from waiting import wait_until

from lossratio.bpf import why_impossible
from lossratio.errors import LossRatioError, TopologyError
from lossratio.measurements.open_testbed import open_testbed
from lossratio.topology import load_topology
from lossratio.traffic import load_profile
from lossratio.trials import TrialInput

TEXT = """
format: lossratio-topology/1
name: {name}
testbed: local
mtu: 3400
nodes:
  TG:
    type: TG
    generator: {{kind: {generator}, max_rate: 1 Mfps, catch_up: 100 ms}}
    interfaces:
      port0: {{name: tg0, link: link0}}
      {far_port}
  DUT1:
    type: DUT
    interfaces:
      port0: {{name: dut0, link: link0}}
      port1: {{name: dut1, link: link1}}
  {far_node}
"""
REFLECTOR = "FAR: {type: reflector, interfaces: {port0: {name: far0, link: link1}}}"
needs_xdp = pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}")


@pytest.fixture
def write(tmp_path):
    """Writes a topology whose path ends at a reflector, or at the TG's second port."""

    def write(far_node=REFLECTOR, far_port="", generator="xdp"):
        path = tmp_path / "topology.yaml"
        path.write_text(
            TEXT.format(name=f"t-{tmp_path.name[-8:]}", generator=generator, far_port=far_port, far_node=far_node)
        )
        return path

    return write


def trial(ready, load=5_000, duration=0.2):
    """A trial of which no frame stayed unsent; a busy machine may not let each be one."""
    for _ in range(20):
        output = ready.measurer.measure(TrialInput(duration, load))
        if not output.unsent_frames:
            break
    return output


@needs_xdp
@needs_testbed
@pytest.mark.netns
@pytest.mark.xdist_group("xdp")
class TestRoundTrips:
    @pytest.mark.smoke
    @pytest.mark.parametrize(("dut", "profile"), [("linux_router", "ethip4-udp"), ("xdp", "ethip6-ip6base")])
    def test_all_frames_come_back_intact_to_the_port_that_sent_them(self, write, dut, profile):
        traffic = load_profile(profile, frame_size=78)
        with open_testbed(write(), dut=dut) as testbed, testbed.ready_for(traffic) as ready:
            (direction,) = trial(ready).directions
            assert direction.name == "port0>port0"
            assert direction.sent_frames == direction.received_frames == direction.examined_frames == 1_000
            assert direction.faulty == 0
            assert ready.conditions.load.directions == ("port0>port0",)
            assert ready.conditions.generator["reflectors"] == ["FAR.port0"]
            # Each frame goes through the DUT twice.
            assert min(testbed.duts[0].read_counters().received.values()) >= 1_000

    def test_a_reflector_that_has_died_is_named(self, write):
        with open_testbed(write(), dut="linux_bridge") as testbed:
            profile = load_profile("ethip4-udp", frame_size=64)
            with testbed.ready_for(profile) as ready:
                trial(ready)
            (link,) = testbed._set_up.links
            daemon = link.reflector.daemons[0]
            link.reflector.node.run(*daemon.program.stop("KILL"))
            wait_until(lambda: not daemon.is_alive())
            with pytest.raises(LossRatioError, match="FAR"), testbed.ready_for(profile):
                pass


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"generator": "afpacket"}, "'kind: xdp', which sends and receives on one port"),
        ({"generator": "auto"}, "'kind: xdp', which sends and receives on one port"),
        ({"far_node": f"{REFLECTOR}\n  SECOND{REFLECTOR[3:].replace('link1', 'link2')}"}, "use at most one reflector"),
    ],
)
def test_one_reflector_and_a_generator_inside_the_kernel(write, changes, words):
    with pytest.raises(TopologyError, match=words):
        load_topology(write(**changes))


def test_the_path_ends_at_the_reflector(write):
    path = load_topology(write()).path()
    assert [str(port) for port in path.ports] == ["TG.port0", "DUT1.port0", "DUT1.port1", "FAR.port0"]
    assert path.is_reflected
    assert path.tg_ports == (path.west,)
