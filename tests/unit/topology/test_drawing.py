from __future__ import annotations

from pathlib import Path

from lossratio.topology import Interface, load_topology
from lossratio.topology.model import draw_topology

LOCAL_3N = Path(__file__).parents[3] / "topologies" / "local-3n.yaml"


def test_the_path_is_drawn_from_top_to_bottom_and_the_rest_is_listed():
    topology = load_topology(LOCAL_3N)
    assert draw_topology(topology, [topology.path()]).splitlines() == [
        "  TG    port0: tg0",
        "    |  link0",
        "  DUT1  port0: dut0",
        "  DUT1  port1: dut1",
        "    |  link1",
        "  DUT2  port0: dut0",
        "  DUT2  port1: dut1",
        "    |  link2",
        "  TG    port1: tg1",
        "  not on the path:",
        "    cable: TG.port2 -- TG.port3",
    ]


def test_models_are_drawn_with_their_limits_and_unused_ports_listed():
    topology = load_topology(LOCAL_3N)
    tg = topology.nodes["TG"]
    ports = {
        **tg.interfaces,
        "port0": tg.interfaces["port0"].model_copy(update={"model": "Intel-X710", "speed": 10e9}),
        "port1": tg.interfaces["port1"].model_copy(update={"model": "Acme-1"}),
        "port9": Interface(),
    }
    nodes = {**topology.nodes, "TG": tg.model_copy(update={"interfaces": ports})}
    changed = topology.model_copy(update={"nodes": nodes})
    drawn = draw_topology(changed, [changed.path()])
    assert "TG.port9: wired to nothing" in drawn
    assert "port0: tg0, Intel-X710, 10.000 Gbit/s, at most 14.881 Mfps, at most 10.000 Gbit/s" in drawn
    assert "port1: tg1, Acme-1, limits of this model not known" in drawn
