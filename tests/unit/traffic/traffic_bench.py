"""Namespaces with an agent that several tests use: making both anew costs more than most trials do."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_session import PYTHON, LocalSession
from netns import NetnsLab
from traffic_lab import two_nodes

from lossratio.traffic import AgentClient

NODES = {"tg": ("tg0", "tg1"), "dut1": ("dut0", "dut1")}
SET_BACK = """
nft flush ruleset
ip neigh flush all
for interface in "$@"; do
    ethtool -K $interface gro off
    printf 'qdisc del dev %s %s\\n' $interface root $interface ingress
done | tc -force -batch - 2>/dev/null
[ -e /sys/class/net/br0 ] && ip link set br0 type bridge fdb_flush
ip -json address && ip -json route && tc -json qdisc
"""
"""Undoes what tests do to a node: rules, queues, offloads, and what it has learned; then says what it is like."""
COUNTED = {"ifindex", "link_index", "promiscuity", "xdp", "valid_life_time", "preferred_life_time"}
"""What a lab's state does not depend on: names say which link is which, and an agent may still have its ports."""


@dataclass
class Bench:
    """Namespaces as `two_nodes` makes them, with a bridge, and an agent on the TG."""

    lab: NetnsLab
    agent: AgentClient
    state: list[str]
    """What the nodes were like at first."""

    def set_back(self) -> bool:
        """Whether the bench is as it was at first, after what tests usually do was undone."""
        conversation = self.agent._conversation
        is_at_rest = conversation._is_open and conversation._pulse is None
        if not is_at_rest:
            return False
        self.lab.end_processes(but=1)
        if set_back(self.lab) != self.state:
            return False
        # The next test shares the program on the node, and nothing of the controller's side.
        self.agent = AgentClient("TG", conversation.process)
        return True

    def close(self) -> None:
        """Ends the agent, and takes the namespaces down."""
        self.agent.close()
        self.lab.close()


def made_bench(lab: NetnsLab, directory: Path) -> Bench:
    """A bench in namespaces that are new."""
    with ExitStack() as made:
        made.enter_context(lab)
        two_nodes(lab, bridge="br0")
        agent = made.enter_context(AgentClient.start(LocalSession(lab, "tg", directory), python=PYTHON))
        bench = Bench(lab, agent, set_back(lab))
        made.pop_all()
    return bench


def set_back(lab: NetnsLab) -> list[str]:
    """Undoes what tests do to the nodes; their links, addresses, routes and queues then."""
    return [
        json.dumps(without(json.loads(line), COUNTED), sort_keys=True)
        for node, interfaces in NODES.items()
        for line in lab.run(node, "sh", "-c", SET_BACK, "sh", *interfaces).stdout.splitlines()
    ]


def without(value: Any, names: set[str]) -> Any:
    """What JSON says, without the fields of these names."""
    if isinstance(value, list):
        return [without(each, names) for each in value]
    if isinstance(value, dict):
        return {name: without(each, names) for name, each in value.items() if name not in names}
    return value
