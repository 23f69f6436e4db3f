"""The probe of the cabling tells its own frames apart, however many it sends."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from lossratio import traffic
from lossratio.testbed import cabling_frames
from lossratio.testbed.cabling_frames import End, Probe
from lossratio.topology import Interface, Port
from lossratio.traffic.probe import Arrival, ProbeAnswer

MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")


@dataclass
class Wire:
    """An agent whose ports are connected, until somebody cuts the wire."""

    is_cut: bool = False

    def probe(self, ports: Sequence[str], sends: Sequence[tuple[str, bytes]], *_: Any, **__: Any) -> ProbeAnswer:
        (there,) = set(ports) - {port for port, _ in sends}
        arrivals = [] if self.is_cut else [Arrival(there, frame, len(frame), 1) for _, frame in sends]
        return ProbeAnswer(tuple(arrivals), (), is_storm=False)


@pytest.mark.whole
def test_frames_with_a_reused_number_are_not_taken_for_those_that_had_it_before():
    ports = [Port("TG", name, Interface(name=name)) for name in ("west", "east")]
    ends = [
        End(port, port.name, str(peer), SimpleNamespace(), None, None, MACS[number], number)
        for number, (port, peer) in enumerate(zip(ports, ports[::-1], strict=True))
    ]
    profile = traffic.load_profile("ethip4-udp", frame_size=64, bidirectional=True)
    pairs = [traffic.PortPair(*(traffic.TrafficPort(name, name) for name in ("west", "east")))]
    configuration = traffic.make_configuration(profile, pairs, settle_time=0.0)
    agent = Wire()
    probe = Probe(agent, ends, {64: configuration}, None, {})
    west, east = ends

    for _ in range(cabling_frames._FRAME_NUMBERS):
        (number,) = probe.send_from([west], configuration, 1)[west.name]
        assert probe.seen[west.name].numbers(east.name, [number]) == 1
        assert probe.seen[west.name].copies[east.name][number] == 1

    agent.is_cut = True
    numbers = probe.send_from([west], configuration, 5)[west.name]
    assert probe.seen[west.name].numbers(east.name, numbers) == 0
