"""The set-up of DUTs on parallel paths, how they are restored, and how test reports describe the set-up."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from lossratio import traffic
from lossratio.dut import (
    BLACK_BOX,
    DestinationMacs,
    Dut,
    DutOptions,
    create_dut,
    load_kind,
    make_reflector,
)
from lossratio.dut.linux import NodeDut, ProgramDut, ProgramOptions
from lossratio.errors import DutError, NodeError
from lossratio.nodes import NO_CREDENTIALS, CommandResult, Credentials, NodeSession
from lossratio.results import (
    Conditions,
    NodeFacts,
    TrialTiming,
    controller_facts,
    describe_testbed,
    trial_timing,
)
from lossratio.testbed.inspection import PortState
from lossratio.testbed.reservation import Lease, make_claim
from lossratio.testbed.testbed import DutRequest, TestbedRequest
from lossratio.testbed.tester_cards import takes_cards
from lossratio.testbed.undo import LastWill, execute_last_wills, put_off_interruption
from lossratio.topology import EAST, WEST, Port, RealGenerator, Topology, TrafficPath
from lossratio.traffic import FALTERING, REPEATS, TrafficPort, TrafficProfile
from lossratio.trials import FAR_BELOW, START_TOLERANCE


def address_path(
    duts: Sequence[Dut[DutOptions]], west_mac: str, east_mac: str
) -> tuple[DestinationMacs, tuple[tuple[str, str], ...]]:
    """Finds the destinations on each link, beginning at the ends of the path.

    A bridge does not change frames, so frames have the same destination in front of it and behind it. A router changes
    the destination. The first destinations are for frames that leave the TG; then come those for frames that leave each
    DUT, on its west and its east side.
    """
    eastward = [east_mac]
    for dut in reversed(duts):
        eastward.insert(0, dut.destination_macs(west_mac, eastward[0]).from_west)
    westward = [west_mac]
    for dut in duts:
        westward.append(dut.destination_macs(westward[-1], east_mac).from_east)
    neighbours = tuple(zip(westward, eastward[1:], strict=False))
    return DestinationMacs(from_west=eastward[0], from_east=westward[-1]), neighbours


def checked_duts(
    request: DutRequest | None,
    paths: Sequence[TrafficPath],
    sessions: Mapping[str, NodeSession],
    *,
    has_lab_addresses: bool = False,
) -> tuple[tuple[Dut[DutOptions], ...], ...]:
    """Makes the objects for the DUTs of parallel paths, and checks that the DUTs can be set up.

    It changes nothing on the nodes, except that it undoes the changes of dead controllers. DUTs are from west to east.

    Raises:
        DutError: If a DUT cannot be set up; the message says what to do.
        NotMeasuredHereError: If a node has too few CPUs for the options.
        NodeError: If a node cannot be reached.
    """
    if request is None:
        return ((),) * len(paths)
    if has_lab_addresses and not load_kind(request.kind).lab_addresses:
        raise DutError(
            f"The topology file says 'addresses: lab', but a {request.kind} is set up with the benchmarking "
            f"addresses. To measure a device that is already set up with the lab's addresses, use dut={BLACK_BOX}; "
            "or leave out 'addresses'."
        )

    options = request.options.model_dump()
    missing = sorted({hop.node_name for path in paths for hop in path.hops} - sessions.keys())
    if missing and load_kind(request.kind).is_managed:
        raise DutError(
            f"{', '.join(missing)}: a {request.kind} is set up by commands, but the topology file does not say how "
            "to reach the node. Add 'host', 'netns', 'container' or 'pod', or measure it as it is with "
            f"dut={BLACK_BOX}."
        )

    duts = tuple(
        tuple(
            create_dut(
                request.kind, sessions.get(hop.node_name, _Unreachable(hop.node_name)), hop, options
            )
            for hop in path.hops
        )
        for path in paths
    )
    for dut in itertools.chain(*duts[1:]):
        # Otherwise, programs would share cores and halve each other's throughput.
        if isinstance(dut, ProgramDut):
            raise DutError(
                f"{dut.hop.node_name}: the {dut.kind} of each of {len(duts)} parallel links would use the same "
                "cores, and the result would show how they share them. Use one link, or a DUT in the kernel."
            )

    for path in duts:
        for dut in path:
            dut.chain = path

    for dut in itertools.chain(*duts):
        if isinstance(dut, NodeDut):
            execute_last_wills(sessions[dut.hop.node_name])
        dut.check()

    return duts


def log_in_on_all(
    topology: Topology,
    path: TrafficPath,
    undo: ExitStack,
    *,
    purpose: str,
    credentials: Credentials = NO_CREDENTIALS,
) -> tuple[dict[str, NodeSession], tuple[Lease, ...]]:
    """Reserves the testbed on the TG's nodes, and logs in on all nodes of the path that can be reached.

    No DUT is touched before the testbed is reserved, because that would cost another run's measurement frames.
    """
    sessions: dict[str, NodeSession] = {}
    leases: list[Lease] = []
    for tg_name in path.tg_names:
        node = topology.nodes[tg_name]
        sessions[tg_name] = undo.enter_context(NodeSession.connect(tg_name, node, credentials))
        claim = make_claim(topology, purpose=purpose, node_name=tg_name)
        if claim is None:
            continue
        if leases:
            # Both nodes may be one machine, with one reservation.
            claim = replace(claim, token=leases[0].token)
        leases.append(undo.enter_context(Lease.take((sessions[tg_name], claim))))

    for port in path.ports:
        name = port.node_name
        node = topology.nodes[port.node_name]
        if name not in sessions and node.place:
            sessions[name] = undo.enter_context(NodeSession.connect(name, node, credentials))

    if takes_cards(topology.nodes[topology.tg_name]):
        execute_last_wills(sessions[topology.tg_name])
    return sessions, tuple(leases)


class _Unreachable:
    """Stands for the log-in on a node that has none, because a black box runs nothing there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, *command: str, **options: Any) -> CommandResult:
        raise NodeError(
            f"Node {self.name} cannot be reached. Give it 'host', 'netns', 'container' or 'pod' in the topology file."
        )


def _set_up(
    dut: Dut[DutOptions],
    macs: tuple[str, str],
    sessions: Mapping[str, NodeSession],
    undo: ExitStack,
) -> None:
    if not dut.is_managed:
        return
    session = sessions[dut.hop.node_name]
    if isinstance(dut, NodeDut):
        dut.node.will = LastWill(session)
    undo.callback(_put_back, dut, session)
    dut.set_up(*macs)


def last_wills(duts: Iterable[Dut[DutOptions]]) -> Iterator[LastWill]:
    """The last wills, which restore the DUTs if this process dies."""
    return (
        dut.node.will
        for dut in duts
        if isinstance(dut, NodeDut) and isinstance(dut.node.will, LastWill)
    )


def _put_back(dut: Dut[DutOptions], session: NodeSession) -> None:
    """Restores a DUT, even if the connection to it was lost, or if Ctrl-C is pressed a second time meanwhile."""
    with put_off_interruption():
        for will in last_wills((dut,)):
            will.execute_at_end()
        try:
            session.restore()
        except NodeError as error:
            # A lost connection is not the DUT's fault.
            raise NodeError(
                f"{dut.hop.node_name} could not be restored to its earlier state: {error}"
            ) from error
        dut.tear_down()


UNKNOWN_SETTLE_TIME = 0.5
"""Seconds to wait for frames in flight through a DUT that lossratio did not set up."""


@dataclass(frozen=True)
class LiveLink:
    """One of the parallel paths with its DUTs set up."""

    path: TrafficPath
    """The path of its traffic."""
    duts: tuple[Dut[DutOptions], ...]
    """Its DUTs, from west to east; empty if lossratio did not set them up."""
    destinations: DestinationMacs | None
    """The destinations of frames that leave the TG; None: not known."""
    reflector: Dut[DutOptions] | None = None
    """The end of the path, if it is not the TG."""

    @property
    def settle_time(self) -> float:
        """Seconds for which frames may be in flight on the whole path."""
        if self.duts:
            return sum(dut.settle_time for dut in self.duts)
        return UNKNOWN_SETTLE_TIME


def traffic_port(port: Port, interface: str, destination: str | None) -> TrafficPort:
    """A port of the TG for the configuration of a generator."""
    own = tuple(str(address.ip) for address in port.interface.address)
    return TrafficPort(port.name, interface, destination, own)


def set_up_link(
    path: TrafficPath,
    duts: tuple[Dut[DutOptions], ...],
    sessions: Mapping[str, NodeSession],
    mac_addresses: tuple[str, str],
    undo: ExitStack,
) -> LiveLink:
    """Sets up all DUTs of one path, if any, and a reflector at its end, given the MAC addresses of both ends."""
    from_tg, neighbours_of_duts = address_path(duts, *mac_addresses)
    for dut, neighbours in zip(duts, neighbours_of_duts, strict=True):
        _set_up(dut, neighbours, sessions, undo)
    if not path.is_reflected:
        return LiveLink(path, duts, from_tg if duts else None)
    reflector = make_reflector(sessions[path.east.node_name], path.east)
    execute_last_wills(sessions[path.east.node_name])
    reflector.check()
    _set_up(reflector, (from_tg.from_east, from_tg.from_east), sessions, undo)
    return LiveLink(path, duts, from_tg, reflector)


@dataclass(frozen=True)
class LiveSetUp:
    """Everything that was found and set up when the testbed was opened."""

    links: tuple[LiveLink, ...]
    """The parallel paths; at least one."""
    ports: tuple[PortState, ...]
    """The states of all ports on them."""
    generator: traffic.Generator[RealGenerator]
    """The generator."""
    leases: tuple[Lease, ...]
    """The leases of the testbed, one on each node of the TG; none: this testbed is never reserved."""
    sessions: Mapping[str, NodeSession]
    """The log-ins, by node."""
    facts: Mapping[str, NodeFacts]
    """Facts of the nodes, by name."""
    descriptions: Mapping[str, dict[str, Any]]
    """Whole configuration of each DUT that was set up, by its label."""

    @property
    def tg_names(self) -> tuple[str, ...]:
        """The TG, or its two nodes."""
        return self.links[0].path.tg_names

    def loads_default_route(self, topology: Topology) -> bool:
        """Whether the TG's ports may carry default routes.

        They may only if traffic has the lab's addresses, each end of the path is on one of the TG's two nodes, and no
        end is reached over the network. A host's default route to the other end then leads through the device, and cuts
        nobody off.
        """
        nodes = [topology.nodes[name] for name in self.tg_names]
        is_reached = any(node.host is not None for node in nodes)
        return topology.addresses == "lab" and len(nodes) > 1 and not is_reached

    @property
    def duts(self) -> tuple[Dut[DutOptions], ...]:
        """The DUTs that were set up, link by link, from west to east on each."""
        return tuple(dut for link in self.links for dut in link.duts)

    @property
    def managed(self) -> tuple[Dut[DutOptions], ...]:
        """Everything to restore: the DUTs that were set up, and reflectors."""
        return (*self.duts, *(link.reflector for link in self.links if link.reflector is not None))

    def program_files(self) -> dict[str, tuple[str, ...]]:
        """The files with the ids of the programs that forward at present, by node."""
        files: dict[str, tuple[str, ...]] = {}
        for dut in self.duts:
            files[dut.hop.node_name] = (*files.get(dut.hop.node_name, ()), *dut.program_files)
        return files

    def restore(self) -> None:
        """Logs in again if a connection was lost, and checks that the testbed is ours."""
        for name in self.tg_names:
            self.sessions[name].restore()
        for lease in self.leases:
            lease.confirm()
        for session in self.sessions.values():
            session.restore()
        for will in last_wills(self.managed):
            will.keep()

    def check_leases(self) -> None:
        """Checks that the testbed is ours, as far as is known here.

        Raises:
            ReservationError: If it is not.
        """
        for lease in self.leases:
            lease.check()

    def reset_duts(self) -> None:
        """Resets DUTs to their state before a trial. Call this first, because frames fill tables and empty buckets."""
        for dut in self.duts:
            if dut.resets:
                dut.reset()

    def verify_duts(self) -> None:
        """Checks that everything is as it was set up.

        Raises:
            DutError: If something is different.
            NodeError: If a node cannot be reached.
        """
        for dut in self.managed:
            dut.verify()

    @property
    def translates(self) -> bool:
        """Whether a DUT changes addresses, so that frames do not come back as they were sent."""
        return any(dut.translates for dut in self.duts)

    @property
    def settle_time(self) -> float:
        """Seconds for which frames may be in flight on the longest path; the topology file may ask for more."""
        wanted = self.generator.settings.settle or 0.0
        return max(wanted, *(link.settle_time for link in self.links))

    @property
    def idle_time(self) -> float:
        """The maximum number of seconds that DUTs need to recover from a trial."""
        return max((dut.recovery_time for dut in self.duts), default=0.0)

    @property
    def wakeful_time(self) -> float:
        """Seconds until no DUT's program keeps a CPU busy because it was asked something."""
        return max((dut.wakeful_time for dut in self.duts), default=0.0)

    def port_pairs(
        self, destinations: Sequence[DestinationMacs | None]
    ) -> tuple[traffic.PortPair, ...]:
        """The ends of each path, with the generator's names for them."""

        def end(port: Port, mac: str | None) -> TrafficPort:
            if any(port in link.path.tg_ports for link in self.links):
                name = self.generator.port_name(port)
            else:
                name = str(port.interface.name)

            return traffic_port(port, name, mac)

        pairs = []
        for link, macs in zip(self.links, destinations, strict=True):
            west = end(link.path.west, None if macs is None else macs.from_west)
            east = end(link.path.east, None if macs is None else macs.from_east)
            pairs.append(traffic.PortPair(west, east, link.path.is_reflected))
        return tuple(pairs)

    def conditions(
        self, request: TestbedRequest, profile: TrafficProfile, generator_facts: Mapping[str, Any]
    ) -> Conditions:
        """The conditions of a measurement for test reports."""
        paths = [link.path for link in self.links]
        is_lab = request.topology.addresses == "lab"
        if is_lab:
            own = request.topology.sides(paths, profile.versions)
        else:
            own = ((WEST, EAST),)

        generator = {**self.generator.settings.model_dump(mode="json"), **generator_facts}
        if paths[0].is_reflected:
            generator["reflectors"] = [str(path.east) for path in paths]
            growth = (sum(request.growth), 0)
        else:
            growth = request.growth_of(profile)

        of_others = {"kind": None, "configured_by": "others"}
        labels = [hop.label for path in paths for hop in path.hops]
        load = profile.described_load(
            [(path.west.name, path.tg_ports[-1].name) for path in paths],
            encapsulation_overhead=request.encapsulation_overhead,
            growth=growth,
        )

        # Record: everything that a result says about its testbed.
        return Conditions(
            testbed=describe_testbed(request.topology, str(request.file), paths),
            nodes=dict(self.facts),
            controller=controller_facts(),
            generator=generator,
            duts={label: self.descriptions.get(label, of_others) for label in labels},
            traffic=profile.described(own),
            load=load,
            timing=self._timing(),
            device=request.device,
        )

    def _timing(self) -> TrialTiming:
        unsent = (
            f"they count as loss, but first the trial is repeated: up to {REPEATS} times, or "
            f"once if more than {FALTERING:.0%} of its frames are unsent. If that did not "
            "help at a load, such trials at this load or above are no longer repeated. "
            f"Loads below {FAR_BELOW:.0%} of what was already sent have up to {REPEATS} repeats"
        )
        # Record: a journal is resumed only with the same timing, word by word.
        return trial_timing(
            learning="before the search",
            learning_s=traffic.CHECK_DURATION,
            learning_fps=traffic.CHECK_LOAD,
            neighbours=(
                "static entries from the set-up of DUTs, or entries learned from the learning frames"
                if self.duts
                else "not changed: others set them up"
            ),
            wait_before_s=0.0,
            wait_after_s=self.settle_time,
            recovery_s=self.idle_time,
            tolerance_s=START_TOLERANCE,
            negative_loss=f"the trial is repeated up to {REPEATS} times; if it never helps, the measurement fails",
            unsent=unsent,
        )


def threads_and_cores(duts: Sequence[Dut[DutOptions]]) -> tuple[str, ...]:
    """Tags such as ``2t1c``, for two worker threads on one physical core, for each combination that DUTs have."""
    tags = (
        f"{len(dut.describe()['cores']['workers'])}t{dut.options.cores}c"
        for dut in duts
        if isinstance(dut.options, ProgramOptions)
    )
    return tuple(dict.fromkeys(tags))
