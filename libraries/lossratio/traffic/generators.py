"""Gets at the generator that a topology names; a new kind of generator is one more case here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lossratio.nodes import NodeSession
from lossratio.topology import Port, RealGenerator, TrexGenerator
from lossratio.traffic.generator_access import EmbeddedAccess, GeneratorAccess
from lossratio.traffic.trex_access import TrexAccess


def open_generator(
    generator: RealGenerator, session: NodeSession, interfaces: Mapping[str, str], cpus: int, ports: Sequence[Port]
) -> GeneratorAccess:
    """Gets at the generator of a TG.

    Args:
        generator: The generator as the topology has it.
        session: The log-in on the TG.
        interfaces: MAC addresses of the TG's network interfaces, by name.
        cpus: How many CPUs the TG has.
        ports: Its ports on the way of the traffic: pairs, west before east.

    Raises:
        TopologyError: If the topology says too little about it, or asks for what the TG does not have.
    """
    if isinstance(generator, TrexGenerator):
        return TrexAccess(generator, session, interfaces, cpus, ports)
    return EmbeddedAccess(interfaces, generator.catch_up)
