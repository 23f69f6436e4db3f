"""What the tests of real traffic do all the time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from netns import NetnsLab

from lossratio.traffic import AgentClient, PortPair, TrafficPort, load_profile, make_configuration

WEST = TrafficPort("port0", "tg0")
EAST = TrafficPort("port1", "tg1")
PAIR = PortPair(WEST, EAST)


CAPTURE = """
import socket, sys
frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
frames.bind((sys.argv[1], 3))
frames.settimeout(10)
print("ready", flush=True)
missing = int(sys.argv[2])
while missing:
    frame, (_, _, packet_type, *_) = frames.recvfrom(16384)
    if packet_type != socket.PACKET_OUTGOING:
        print(frame.hex(), flush=True)
        missing -= 1
"""


class Capture:
    """The first frames that arrive on an interface of the DUT."""

    def __init__(self, lab: NetnsLab, interface: str, count: int) -> None:
        script = (sys.executable, "-c", CAPTURE, interface, str(count))
        self._process = lab.popen("dut1", *script, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout.readline() == "ready\n"

    def frames(self) -> list[bytes]:
        """Waits for them."""
        return [bytes.fromhex(line) for line in self._process.stdout]


def configure(
    agent: AgentClient,
    frame_size: int | str = 64,
    settle_time: float = 0.2,
    west: TrafficPort = WEST,
    east: TrafficPort = EAST,
    profile: str = "ethip4-udp",
    **options: Any,
) -> Mapping[str, Any]:
    """Makes an agent ready to send a profile's frames, however late a busy machine lets it."""
    traffic = load_profile(profile, frame_size=frame_size, **options)
    configuration = make_configuration(traffic, [PortPair(west, east)], settle_time=settle_time)
    return agent.configure(configuration, options={"catch_up": 10.0})


def configure_connections(
    agent: AgentClient,
    generator: str = "xdp",
    settle_time: float = 0.1,
    west: TrafficPort = WEST,
    east: TrafficPort = EAST,
    profile: str = "ethip4-udp-connections",
    frame_size: int = 100,
) -> Mapping[str, Any]:
    """Makes an agent ready to open connections, and to do nothing else, however late a busy machine lets it."""
    traffic = load_profile(profile, frame_size=frame_size)
    configuration = make_configuration(traffic, [PortPair(west, east)], settle_time=settle_time)
    configuration = replace(configuration, connects=True, examines=False)
    return agent.configure(configuration, generator=generator, options={"catch_up": 10.0})


def two_nodes(lab: NetnsLab, bridge: str | None = None) -> NetnsLab:
    """Adds namespaces tg and dut1, with links tg0-dut0 and tg1-dut1, and a bridge in dut1."""
    lab.namespace("tg")
    lab.namespace("dut1")
    lab.veth("tg", "tg0", "dut1", "dut0")
    lab.veth("tg", "tg1", "dut1", "dut1")
    if bridge is not None:
        lab.bridge("dut1", bridge, "dut0", "dut1")
    return lab


def drop(lab: NetnsLab, interface: str, condition: str) -> None:
    """Drops frames that arrive on an interface of the DUT."""
    hook = f'type filter hook ingress device "{interface}" priority 0;'
    rules = f"table netdev faults {{\nchain {interface} {{\n{hook}\n{condition} drop\n}}\n}}\n"
    lab.run("dut1", "nft", "-f", "-", input=rules)


def hold(lab: NetnsLab, interface: str, bits_per_second: int) -> None:
    """Has an interface of the DUT keep frames that come faster, until it has sent them."""
    queue = ("tbf", "rate", f"{bits_per_second}bit", "burst", "2000", "limit", "100m")
    lab.run("dut1", "tc", "qdisc", "replace", "dev", interface, "root", *queue)


def received_by(lab: NetnsLab, interface: str, node: str = "dut1") -> int:
    """Frames that an interface of the DUT, or of another node, has received so far."""
    return _counted(lab, interface, node, "rx")


def sent_by(lab: NetnsLab, interface: str, node: str = "dut1") -> int:
    """Frames that an interface of the DUT, or of another node, has sent so far."""
    return _counted(lab, interface, node, "tx")


def _counted(lab: NetnsLab, interface: str, node: str, way: str) -> int:
    links = json.loads(lab.run(node, "ip", "-json", "-stats", "link", "show", "dev", interface).stdout)
    return int(links[0]["stats64"][way]["packets"])
