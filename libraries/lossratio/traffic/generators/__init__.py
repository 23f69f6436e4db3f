"""Generators by kind: lossratio's own, and generators of other packages."""

from collections.abc import Sequence
from typing import Any

from lossratio.errors import ProfileError, TrafficError
from lossratio.files import distribution_of
from lossratio.nodes import NodeSession
from lossratio.topology import GENERATORS, Port, RealGenerator, Topology
from lossratio.traffic.client import AgentClient
from lossratio.traffic.generators.base import Generator, GeneratorNode
from lossratio.traffic.profile import ProfileFile


def load_generator(kind: str) -> type[Generator[Any]]:
    """Imports the class of a kind of generator.

    Raises:
        TopologyError: If there is no such kind, or its package is unfit.
    """
    return GENERATORS.load_class(kind, Generator)


def open_generator(
    settings: RealGenerator, node: GeneratorNode, ports: Sequence[Port]
) -> Generator[RealGenerator]:
    """Makes the controller's side of a TG's generator; see `Generator` for errors."""
    generator: Generator[RealGenerator] = load_generator(settings.kind)(settings, node, ports)
    entry = GENERATORS.find(settings.kind)
    generator.distribution = None if entry in GENERATORS.own else distribution_of(entry)
    return generator


def start_agent(
    settings: RealGenerator, *sessions: NodeSession, patience: float | None = None
) -> AgentClient:
    """Starts the agent on a TG, with the Python named in the topology file; on both nodes if the TG has two.

    See `AgentClient.start` for errors, and `Generator.check_python`.

    Args:
        settings: The generator, as in the topology file.
        sessions: The log-in on the TG, or on each of its two nodes.
        patience: Seconds that an answer may take beyond the requested time; None: as the generator's settings say.
    """
    if patience is None:
        patience = settings.answer_timeout
    for session in sessions:
        load_generator(settings.kind).check_python(settings, session)
    return AgentClient.start(*sessions, python=settings.python, patience=patience)


def check_sends_streams(topology: Topology, profile: ProfileFile) -> None:
    """Makes sure that the generator of a topology can send a profile's streams, if there are any.

    Raises:
        ProfileError: If it cannot.
        TopologyError: If there is no such kind of generator, or its package is unfit.
    """
    if not profile.streams:
        return
    settings = topology.generator
    can = isinstance(settings, RealGenerator) and load_generator(settings.kind).sends_streams
    if not can:
        kind = settings.kind if isinstance(settings, RealGenerator) else "of a simulated testbed"
        raise ProfileError(
            f"Topology {topology.name}: the generator {kind} does not send the 'streams' of traffic profile "
            f"{profile.name}. Use 'kind: afpacket', 'kind: xdp' or 'kind: auto', or a profile without streams."
        )

    nodes = topology.tg_names
    if len(nodes) > 1:
        raise ProfileError(
            f"Topology {topology.name}: the 'streams' of traffic profile {profile.name} can be counted only where "
            f"one node sends and receives, but this testbed has {len(nodes)} nodes of type TG: {', '.join(nodes)}. "
            "Give both ports to one TG, or use a profile without streams."
        )


def check_connections(settings: object, connections: int) -> None:
    """Makes sure that a generator can keep this many connections at once; a simulated one always can.

    Raises:
        TrafficError: If it cannot.
    """
    if not isinstance(settings, RealGenerator):
        return
    problem = load_generator(settings.kind).connections_problem(settings, connections)
    if problem is not None:
        raise TrafficError(problem)


def check_early_verdicts(settings: object) -> None:
    """Makes sure that a generator can end a trial as soon as its verdict is certain; a simulated one always can.

    Raises:
        TrafficError: If it cannot.
    """
    if isinstance(settings, RealGenerator) and not load_generator(settings.kind).ends_trials_early:
        raise TrafficError(
            f"The generator {settings.kind} cannot end a trial early because its counters are not read while "
            "traffic is running. Measure with early_verdict=off, or with the generator afpacket or xdp."
        )
