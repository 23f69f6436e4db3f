"""What the tests of real traffic do all the time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from netns import NetnsLab

from lossratio.traffic import AgentClient, PortPair, TrafficPort, load_profile, make_configuration

WEST = TrafficPort("port0", "tg0")
EAST = TrafficPort("port1", "tg1")
PAIR = PortPair(WEST, EAST)


def configure(
    agent: AgentClient, frame_size: int | str = 64, settle_time: float = 0.2, west: TrafficPort = WEST, **options: Any
) -> Mapping[str, Any]:
    """Makes an agent ready to send UDP."""
    profile = load_profile("ethip4-udp", frame_size=frame_size, **options)
    return agent.configure(make_configuration(profile, [PortPair(west, EAST)], settle_time=settle_time))


def drop(lab: NetnsLab, interface: str, condition: str) -> None:
    """Drops frames that arrive on an interface of the DUT."""
    hook = f'type filter hook ingress device "{interface}" priority 0;'
    rules = f"table netdev faults {{\nchain {interface} {{\n{hook}\n{condition} drop\n}}\n}}\n"
    lab.run("dut1", "nft", "-f", "-", input=rules)


def received_by(lab: NetnsLab, interface: str) -> int:
    """Frames that an interface of the DUT has received so far."""
    links = json.loads(lab.run("dut1", "ip", "-json", "-stats", "link", "show", "dev", interface).stdout)
    return int(links[0]["stats64"]["rx"]["packets"])
