"""One version's part of `since.py`: a testbed of its own, and a trial for each line of input.

It uses only what all versions have; names that have changed are looked for under both.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

SETTLE_TIME = 0.005
LINK = ("since0", "since1")
STREAMS = Path(__file__).with_name("two_streams.yaml")


def main() -> None:
    """Builds the testbed, and answers."""
    name, topology = sys.argv[1:]
    session_class = _first("NodeSession", "lossratio.nodes", "lossratio.ssh")
    topologies, traffic = import_module("lossratio.topology"), import_module("lossratio.traffic")
    local = import_module("lossratio.testbed.local").LocalTestbed
    with ExitStack() as stack:
        own = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "local.yaml"
        own.write_text(Path(topology).read_text(encoding="utf-8").replace("name: local\n", f"name: since-{name}\n"))
        testbed = stack.enter_context(local.use(topologies.load_topology(own))).topology
        tg = stack.enter_context(session_class.connect(testbed.tg_name, testbed.nodes[testbed.tg_name]))
        tg.run("ip", "link", "add", LINK[0], "type", "veth", "peer", "name", LINK[1])
        for port in LINK:
            tg.run("ip", "link", "set", "dev", port, "up")
            tg.run("ethtool", "-K", port, "gro", "on")
        hop = testbed.path().hops[0]
        dut = stack.enter_context(session_class.connect(hop.node_name, testbed.nodes[hop.node_name]))
        bridge = import_module("lossratio.dut").create_dut("linux_bridge", dut, hop, {})
        agent = stack.enter_context(traffic.AgentClient.start(tg, python=sys.executable))
        ports = tuple(str(port.interface.name) for port in (testbed.path().west, testbed.path().east))
        bridge.set_up(*(agent.facts.interfaces[port] for port in ports))
        stack.callback(bridge.tear_down)
        configured: tuple[Any, ...] = ()
        impossible: set[str] = set()
        for line in sys.stdin:
            case, generator, path, both, load, seconds = json.loads(line)
            traffic_of_case = str(STREAMS) if "streams" in case else "ethip4-udp"
            figures: dict[str, float] | None = None
            if generator in impossible:
                print("null", flush=True)
                continue
            try:
                if configured != (generator, path, both, traffic_of_case):
                    names = LINK if path == "link" else ports
                    pair = traffic.PortPair(*(traffic.TrafficPort(port, port) for port in names))
                    profile = traffic.load_profile(traffic_of_case, frame_size=64, bidirectional=both)
                    wanted = traffic.make_configuration(profile, [pair], settle_time=SETTLE_TIME)
                    agent.configure(wanted, generator=generator)
                    configured = (generator, path, both, traffic_of_case)
                started = time.monotonic()
                counters = _trial(agent, load, seconds)
                overhead = time.monotonic() - started - seconds - SETTLE_TIME
                figures = {"overhead, ms": 1e3 * overhead, **_figures([vars(way) for way in counters], seconds)}
            except Exception as error:  # noqa: BLE001 - it is reported, and the other version goes on
                print(f"{name}: {generator}, {path}: {error}", file=sys.stderr)
                configured = ()
                impossible.update({generator} if "no generator" in str(error) else ())
            print(json.dumps(figures), flush=True)


def _trial(agent: Any, load: float, seconds: float) -> Any:
    """The counters of a trial; the agents of earlier versions have no plans."""
    program = import_module("lossratio.agent")
    if hasattr(program, "Plan"):
        return agent.run(program.Plan(((load, seconds),))).directions
    return agent.trial(load, seconds)


def _figures(ways: list[dict[str, Any]], seconds: float) -> dict[str, float]:
    sent, unsent, intended = (_sum(ways, name) for name in ("sent", "unsent", "intended"))
    return {"sent, kfps": sent / seconds / 1e3, "unsent, %": 100 * unsent / intended}


def _sum(ways: list[dict[str, Any]], name: str) -> int:
    return sum(way[name] if name in way else way[f"{name}_frames"] for way in ways)


def _first(name: str, *modules: str) -> Any:
    for module in modules:
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"No {name} in {modules}")


if __name__ == "__main__":
    main()
