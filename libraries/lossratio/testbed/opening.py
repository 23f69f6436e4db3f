"""Opens testbeds: of real nodes in a lab or in network namespaces of this machine, or simulated ones."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from lossratio import traffic
from lossratio.dut import BLACK_BOX, CABLE
from lossratio.errors import LinkError, TesterError, TopologyError
from lossratio.files import TOPOLOGIES
from lossratio.nodes import NO_CREDENTIALS, Credentials, NodeSession, gather_facts
from lossratio.testbed.changes import Way, error_of, faults_in
from lossratio.testbed.fingerprint import FingerprintReader
from lossratio.testbed.inspection import (
    PortState,
    check_link_speeds,
    check_presence,
    read_ports,
    with_names,
)
from lossratio.testbed.live import LiveTestbed
from lossratio.testbed.local import reachable
from lossratio.testbed.set_up import LiveSetUp, checked_duts, log_in_on_all, set_up_link
from lossratio.testbed.testbed import (
    DEFAULT_RECOVERY,
    Recovery,
    Testbed,
    TestbedRequest,
    dut_request,
)
from lossratio.testbed.tester_cards import taken_cards, takes_cards
from lossratio.topology import (
    Hooks,
    RealGenerator,
    Topology,
    TrafficPath,
    XdpGenerator,
    load_topology,
)
from lossratio.traffic import TrafficProfile, check_sends_streams
from lossratio.values import checked


def _open(request: TestbedRequest) -> LiveTestbed:
    """Logs in on all nodes, checks and sets up the DUTs, and starts the traffic agent."""
    with ExitStack() as undo:
        # A generator's broken package is found before anything is touched.
        traffic.load_generator(_generator(request.topology).kind)
        topology = reachable(request.topology, undo)
        paths = topology.paths(request.links, duts=request.duts, nic=request.nic)
        generator = beside_the_dut(request, _generator(topology))
        purpose = (
            f"measuring {'DUTs that others set up' if request.dut is None else request.dut.kind}"
        )
        # All paths go through the same nodes.
        sessions, leases = log_in_on_all(
            topology, paths[0], undo, purpose=purpose, credentials=request.credentials
        )
        tg = sessions[topology.tg_name]
        tester = topology.nodes[topology.tg_name]
        ports = _checked_ports(request, topology, paths, sessions)
        paths = tuple(with_names(path, ports, takes_cards=takes_cards(tester)) for path in paths)
        duts = checked_duts(
            request.dut, paths, sessions, has_lab_addresses=topology.addresses == "lab"
        )
        agent = undo.enter_context(
            traffic.start_agent(
                generator,
                *(sessions[name] for name in paths[0].tg_names),
                patience=request.recovery.patience,
            )
        )
        facts = agent.facts
        tg_ports = [port for path in paths for port in path.tg_ports]
        node = traffic.GeneratorNode(tg, facts.interfaces, facts.cpus, device_cpus(request))
        opened = traffic.open_generator(generator, node, tg_ports)

        if takes_cards(tester):
            undo.enter_context(taken_cards(tg, tester, tg_ports))
            # What the kernel reported about interfaces that it no longer has.
            ports = tuple(state for state in ports if state.port.node_name != topology.tg_name)

        undo.callback(opened.close)
        macs = {str(state.port): state.state.mac_address for state in ports}
        macs |= {str(port): opened.mac_address(port) for port in tg_ports}
        with _naming_links_that_are_down(sessions, Way.of(paths)):
            links = tuple(
                set_up_link(path, own, sessions, (macs[str(path.west)], macs[str(path.east)]), undo)
                for path, own in zip(paths, duts, strict=True)
            )

        set_up = LiveSetUp(
            links,
            ports,
            opened,
            leases,
            sessions,
            facts={name: gather_facts(session).facts for name, session in sessions.items()},
            descriptions={dut.hop.label: dut.described() for link in links for dut in link.duts},
        )
        return LiveTestbed(request, set_up, agent, undo.pop_all())


def _checked_ports(
    request: TestbedRequest,
    topology: Topology,
    paths: Sequence[TrafficPath],
    sessions: Mapping[str, NodeSession],
) -> tuple[PortState, ...]:
    """Reads the ports of the paths on all nodes with ports of their own: a tester that is a device has none.

    Raises:
        TopologyError: If interfaces are missing, or a link has another speed than in the topology file.
    """
    with_ports = {
        name: session for name, session in sessions.items() if not topology.nodes[name].has_tester
    }
    ports = read_ports([port for path in paths for port in path.ports], with_ports)
    for path in paths:
        check_presence(request.file, path, ports, with_ports)
    check_link_speeds(ports)
    return ports


@contextmanager
def _naming_links_that_are_down(sessions: Mapping[str, NodeSession], way: Way) -> Iterator[None]:
    """If a link does not come up, finds out whether the TG's end is down. The DUT's end is already restored by then."""
    try:
        yield
    except LinkError as error:
        with closing(
            FingerprintReader(sessions, {name: way.interfaces(name) for name in sessions})
        ) as reader:
            faults = [fault for fault in faults_in(reader.read(), way) if fault.rule.guilty == "TG"]
        if not faults:
            raise
        raise TesterError(f"{error_of(faults)} The error was: {error}") from error


def _generator(topology: Topology) -> RealGenerator:
    generator = topology.nodes[topology.tg_name].generator
    if not isinstance(generator, RealGenerator):
        raise TopologyError(
            f"Topology {topology.name}: real nodes need a real generator, such as afpacket."
        )
    return generator


def beside_the_dut(request: TestbedRequest, generator: RealGenerator) -> RealGenerator:
    """A TG's generator, which may use a local testbed's last CPUs if the kernel is the DUT."""
    is_kernel = request.dut is not None and request.dut.options.is_kernel
    if is_kernel and request.topology.testbed == "local" and isinstance(generator, XdpGenerator):
        return generator.model_copy(update={"device_cpus": ()})
    return generator


def device_cpus(request: TestbedRequest) -> tuple[int, ...]:
    """The CPUs of a local testbed's TG on which devices under test forward, as far as their options say so."""
    is_local = request.topology.testbed == "local"
    if is_local and request.dut is not None:
        return request.dut.options.kernel_cpus
    return ()


@checked(TopologyError)
def open_testbed(
    topology: str | Path,
    *,
    dut: str | None = None,
    options: Mapping[str, Any] | None = None,
    credentials: Credentials = NO_CREDENTIALS,
    duts: int | None = None,
    nic: str | None = None,
    recovery: Recovery = DEFAULT_RECOVERY,
    links: int = 1,
    traffics: Sequence[TrafficProfile] = (),
) -> Testbed:
    """Opens a testbed and sets up its DUTs; close it at the end.

    Args:
        topology: The topology file, or the name of one that comes with lossratio, e.g. ``local`` or ``simulated``.
        dut: Kind of the DUTs, e.g. ``linux_bridge``; None: the DUTs stay as they are (``black_box`` if one has hooks).
        options: The kind's options by name, e.g. ``{"police": "50 kfps"}``.
        credentials: Secrets for logging in on all nodes, if keys are not enough; see `lossratio.nodes.Credentials`.
        duts: How many DUTs are on the path, in the order of the file; None: all.
        nic: NIC model that the DUTs' ports on the path must have, e.g. ``Intel-E810CQ``; None: any.
        recovery: How often and how long faults of the infrastructure are repaired.
        links: Number of parallel paths that the traffic takes at once; each has its own DUTs, or its own part of them.
        traffics: The traffic that will be sent, if known.

    Raises:
        LossRatioError: If the file, the kind, an option or the traffic is wrong (before anything is touched), or the
            testbed cannot be set up (changes made until then are undone).
    """
    if dut == CABLE:
        duts = 0
    file = TOPOLOGIES.path(topology)
    read = load_topology(topology)
    if dut is None and any(node.hooks != Hooks() for node in read.nodes.values()):
        dut = BLACK_BOX
    request = TestbedRequest(
        read, file, dut_request(dut, options or {}), credentials, duts, nic, recovery, links
    )
    # A missing path, or traffic that cannot be sent, is an error before anything is touched.
    _ = request.paths
    for profile in traffics:
        check_sends_streams(read, profile)
    if request.topology.testbed == "simulated":
        # The models of SUTs load scipy, for which real testbeds need not wait.
        from lossratio.testbed.simulated import SimulatedTestbed

        return SimulatedTestbed(request)
    return _open(request)


def check_sut_model(model: dict[str, Any]) -> None:
    """Checks the model of a SUT in a topology file.

    Raises:
        ValueError: If the model or one of its parameters is unknown or wrong.
    """
    # As above: a check of a lab needs no scipy.
    from lossratio.testbed.simulated import sut_of

    sut_of(model)
