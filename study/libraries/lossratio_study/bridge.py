"""A bridge between the ports of a local testbed, for benchmarks that talk to the traffic agent themselves."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lossratio.dut import create_dut
from lossratio.nodes import NodeSession
from lossratio.topology import Topology
from lossratio.traffic import AgentClient


@contextmanager
def bridged(topology: Topology, agent: AgentClient, options: Mapping[str, Any]) -> Iterator[None]:
    """Makes the first DUT of a testbed a bridge, until the end of the block.

    Args:
        topology: The testbed, with how its nodes are reached.
        agent: The agent on the TG.
        options: Options of `linux_bridge`.
    """
    path = topology.path()
    hop = path.hops[0]
    macs = [agent.facts.interfaces[str(port.interface.name)] for port in (path.west, path.east)]
    with NodeSession.connect(hop.node_name, topology.nodes[hop.node_name]) as session:
        dut = create_dut("linux_bridge", session, hop, options)
        dut.check()
        dut.set_up(*macs)
        try:
            yield
        finally:
            dut.tear_down()
