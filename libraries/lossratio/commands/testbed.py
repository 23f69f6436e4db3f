"""The command ``lossratio check``, and the commands of ``lossratio lab`` for files, testbeds and reservations."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import click

from lossratio import testbed as testbeds, topology as topologies
from lossratio.commands.parameters import (
    DURATION,
    FILE_TO_WRITE,
    OneOf,
    WholeNumber,
    argument,
    command,
    option,
)
from lossratio.dut.vpp import vpp_problem
from lossratio.errors import LinkError, NodeError, ProfileError, TopologyError
from lossratio.files import Problem, describe_problem, shell_word
from lossratio.nodes import NodeSession, is_public_key
from lossratio.testbed.local import LocalTestbed, describe, status as running_testbeds
from lossratio.testbed.reservation import TOKEN_VARIABLE, Claim, Lease, clear, holder_of
from lossratio.topology import Topology, TrafficPath, load_topology
from lossratio.traffic import (
    PROFILE_READERS,
    check_sends_streams,
    convert_profile,
    load_generator,
    load_profile,
    profile_text,
    read_profile,
)
from lossratio.values import format_duration, format_frame_rate

_SMALLEST = "64B"
_SMALLEST_IPV6 = "78B"
_LARGEST = "1518B"


@dataclass(frozen=True)
class _Paths:
    nic: str | None = option("Draw the path over NICs of this model.", metavar="MODEL")
    duts: int | None = option(
        "Draw the path through the first N DUTs.", metavar="N", type=WholeNumber(min=0)
    )
    links: int = option(
        "Draw N parallel paths.",
        metavar="N",
        type=WholeNumber(min=1),
        default=1,
        show_default=False,
    )


@command()
def check(
    file: Path = argument(),
    *,
    chosen: _Paths,
    connect: bool = option("Log in to each node, and show its system and what it lacks."),
    probe: bool = option(
        "With --connect: send some frames from each port to find faults in the cabling."
    ),
    profile: str = option(
        "Check whether the generator can send this traffic profile. With --probe, send frames of this profile.",
        default="ethip4-udp",
        metavar="NAME|FILE",
    ),
    frame_size: tuple[str, ...] = option(
        "The sizes of these frames. Default: 64B (IPv6: 78B) and 1518B.", metavar="SIZE"
    ),
) -> None:
    """Check a topology FILE, and draw what it describes.

    Without --connect, no node is touched.
    """
    if probe and not connect:
        raise click.UsageError("--probe also needs --connect. Give both.")
    for size in frame_size:
        load_profile(profile, frame_size=size)

    topology = load_topology(file)
    paths = topology.paths(chosen.links, duts=chosen.duts, nic=chosen.nic)
    problems = list(_problems(topology, paths))
    if problems:
        raise TopologyError(
            "\n".join(describe_problem(file, where, text) for where, text in problems)
        )

    check_sends_streams(topology, read_profile(profile))
    click.echo(describe_topology(file, topology, paths))
    if connect:
        _connect(topology, chosen)
        if probe and topology.testbed != "simulated":
            _probe(topology, chosen, profile, frame_size)
    elif topology.testbed == "lab":
        click.echo("No node was checked: --connect logs in to the nodes, and shows what they lack.")


@command()
def up(file: Path = argument(default=Path("local"))) -> None:
    """Build the local testbed of a topology FILE. It stays until lossratio lab down removes it."""
    click.echo(describe(LocalTestbed.up(load_topology(file), keep=True)))


@command()
def down(name: str | None = argument()) -> None:
    """Remove the local testbed NAME, or all that lossratio lab up built."""
    staying = [
        running for running in running_testbeds() if running.keep and name in (None, running.name)
    ]
    for running in staying:
        running.down()
        click.echo(f"Testbed {running.name} is down.")
    if not staying:
        click.echo("No testbed is up." if name is None else f"No testbed {name} is up.")


def _problems(topology: Topology, paths: Sequence[TrafficPath]) -> Iterator[Problem]:
    """Finds everything in the file that would make the set-up of a measurement fail, on any of these paths."""
    wired = [
        port
        for ports in topology.links().values()
        for port in ports
        if port.node_name in topology.tg_names
    ]
    yield from topology.generator_problems(wired, len(paths))
    generator = topology.nodes[topology.tg_name].generator
    if isinstance(generator, topologies.RealGenerator):
        try:
            load_generator(generator.kind)
        except TopologyError as error:
            yield ("nodes", topology.tg_name, "generator"), str(error)

    yield from topology.twin_problems()
    for hop in (hop for path in paths for hop in path.hops):
        if (problem := vpp_problem(hop)) is not None:
            yield ("nodes", hop.node_name, "vpp", "driver"), problem

    for name, node in topology.nodes.items():
        if node.host_key is not None and not is_public_key(node.host_key):
            yield (
                ("nodes", name, "host_key"),
                "this is not a public key. It must be a line like 'ssh-ed25519 AAAA...'",
            )
        if node.sut is not None:
            try:
                testbeds.check_sut_model(node.sut)
            except ValueError as error:
                yield ("nodes", name, "sut"), str(error)


def _connect(topology: Topology, chosen: _Paths) -> None:
    """Logs in on every node, and shows what it is, what it lacks, and what would be chosen on it for these paths."""
    if topology.testbed == "simulated":
        click.echo("The testbed is simulated: there is no node to connect to.")
        return
    reports = testbeds.inspect_nodes(topology, **vars(chosen))
    for report in reports:
        click.echo(testbeds.describe_node(report))
    faulty = [report.name for report in reports if report.problems]
    if faulty:
        raise NodeError(f"There are problems on {', '.join(faulty)}; they are listed above.")


def _probe(topology: Topology, chosen: _Paths, profile: str, frame_sizes: Sequence[str]) -> None:
    sizes = frame_sizes or (_SMALLEST_IPV6 if "ip6" in profile else _SMALLEST, _LARGEST)
    report = testbeds.probe_cabling(topology, **vars(chosen), profile=profile, frame_sizes=sizes)
    click.echo("Cabling:")
    for line in testbeds.describe_cabling(report):
        click.echo(line)
    if report.problems:
        raise LinkError("The probe found problems with the cabling; they are listed above.")


def describe_topology(file: Path, topology: Topology, paths: Sequence[TrafficPath]) -> str:
    """The testbed of a topology file in a few lines, with a drawing."""
    generator = topology.nodes[topology.tg_name].generator
    limit = None if generator is None else generator.max_rate
    lines = [
        f"{file}: topology {topology.name}, testbed {topology.testbed}. The file is valid.",
        topologies.draw_topology(topology, paths),
    ]
    if generator is not None:
        if limit is not None:
            load = f"{format_frame_rate(limit)} per interface"
        else:
            load = "unknown: searches need max_load="

        ports = [port for path in paths for port in path.ports]
        if limit is None and any(
            port.interface.speed is not None or topology.nic_model(port) for port in ports
        ):
            load = "from NIC models and link speeds"
        lines.append(f"  generator: {generator.kind}, maximum load {load}")

    if isinstance(generator, topologies.TrexGenerator) and generator.home is None:
        lines.append(
            f"  MISSING: the directory of TRex on {topology.tg_name} is not known. Set the generator's 'directory', "
            f"or set {topologies.TREX_HOME} here"
        )

    notes = (*_unknown_models(topology, paths), *_other_addresses(topology, paths))
    return "\n".join((*lines, *notes))


def _unknown_models(topology: Topology, paths: Sequence[TrafficPath]) -> Iterator[str]:
    """NIC models without known limits, which may be misspelt. Searches would begin at the speed of the link."""
    models = {
        port.interface.model: port
        for path in paths
        for port in path.ports
        if topology.nic_model(port) is None
    }
    for model, port in models.items():
        if model is not None:
            alike = get_close_matches(model.lower(), topologies.NIC_MODELS, n=1)
            if alike:
                meant = f" Is {topologies.NIC_MODELS[alike[0]].name} meant?"
            else:
                meant = ""

            yield (
                f"  NOTE: {port}: the limits of the NIC model {model!r} are not known. Set them in 'nics', or correct "
                f"the model.{meant}"
            )


def _other_addresses(topology: Topology, paths: Sequence[TrafficPath]) -> Iterator[str]:
    """Addresses of the TG's ports that test traffic does not have, unless the file asks for the lab's addresses."""
    if topology.addresses == "lab":
        return
    for port in (port for path in paths for port in path.tg_ports):
        for own in port.interface.address:
            blocks = (topologies.WEST, topologies.EAST)
            if not any(own.ip in getattr(block, f"ipv{own.version}") for block in blocks):
                yield (
                    f"  NOTE: {port}: its address {own} is not in 198.18.0.0/15 or 2001:2::/48, the networks of "
                    "test traffic. If the device routes, give it routes to these networks, or set "
                    "'addresses: lab' in the file"
                )


@command("import")
def import_command(
    tool: str = argument(type=OneOf(["containerlab", *PROFILE_READERS])),
    file: Path = argument(),
    *,
    tgs: tuple[str, ...] = option(
        "The lab node that runs the generator. Give it twice for one node at each end of the path.",
        "--tg",
        metavar="NODE",
    ),
    duts: tuple[str, ...] = option(
        "A node on the path. Give several in the order of the path.", "--dut", metavar="NODE"
    ),
    name: str | None = option(
        "The name of the traffic profile, if its file has none.", metavar="NAME"
    ),
    output: Path | None = option("The file to write.", metavar="FILE", type=FILE_TO_WRITE),
) -> None:
    """Turn the FILE of another tool into a topology file (for a lab) or a traffic profile."""
    if tool in PROFILE_READERS:
        if tgs or duts:
            raise ProfileError(
                f"{tool} describes traffic. Only --name and --output can be used with it: leave the other options out."
            )
        _import_profile(tool, file, name, output)
        return

    if name is not None:
        raise TopologyError(
            "--name names a traffic profile. A lab already has a name: leave --name out."
        )

    lab = topologies.read_containerlab(file)
    text = topologies.import_lab(lab, file, tgs=tgs, duts=duts)
    if output is None:
        click.echo(text, nl=False)
        return
    _write_new(output, text)
    load_topology(output)
    click.echo(f"Written: {output}. Next: lossratio check {shell_word(output)} --connect")


def _import_profile(tool: str, file: Path, name: str | None, output: Path | None) -> None:
    converted = convert_profile(tool, file, name)
    text = profile_text(converted)
    if output is None:
        click.echo(text, nl=False)
        return
    _write_new(output, text)
    size = converted.frame_size or "64B"
    click.echo(f"Written: {output}. Next: measure with profile={output} and frame_size={size}")


def _write_new(output: Path, text: str) -> None:
    """Writes a file, and shows its remarks.

    Raises:
        TopologyError: If there already is such a file.
    """
    if output.exists():
        raise TopologyError(
            f"{output} already exists. Remove it, or name another file with --output."
        )

    output.write_text(text, encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("# "):
            click.echo(line[2:])


@command()
def reserve(
    file: Path = argument(),
    *,
    seconds: float = option("How long, e.g. 2h.", "--for", type=DURATION),
    wait: float | None = option("Wait at most this long for it, e.g. 2h.", type=DURATION),
    purpose: str = option("The reason, shown to other users.", default=""),
) -> None:
    """Reserve the testbed of a topology FILE for some time, e.g. to work by hand."""
    with ExitStack() as undo:
        session, claim = _opened(file, undo, purpose=purpose, seconds=seconds)
        lease = Lease.take((session, claim), wait=wait or 0.0)
        lease.leave()
    click.echo(
        f"The testbed is reserved for {claim.owner}, for {format_duration(seconds)}. To use it in runs, first enter "
        "this line in the shell:"
    )
    click.echo(f"export {TOKEN_VARIABLE}={lease.token}")


@command()
def release(
    file: Path = argument(),
    force: bool = option(
        "Release it even if somebody else has reserved it, and end the programs of that user there."
    ),
) -> None:
    """End the reservation of the testbed of a topology FILE."""
    with ExitStack() as undo:
        holder = clear(*_opened(file, undo), force=force)
    click.echo("The testbed is free.")
    if holder is not None:
        click.echo(f"It was reserved for {holder}.")


@command()
def status(files: tuple[Path, ...] = argument("[FILE...]")) -> None:
    """Show who has reserved the testbeds of topology FILEs. Without a FILE, show the local testbeds that are up."""
    if not files:
        _show_local()
    for file in files:
        _show_holder(file)


def _show_local() -> None:
    """Shows the local testbeds that are up, and how to log in on their nodes."""
    there = running_testbeds()
    for running in there:
        click.echo(describe(running))
    if not there:
        click.echo("No testbed is up.")


def _show_holder(file: Path) -> None:
    """Shows who has reserved a testbed."""
    with ExitStack() as undo:
        holder = holder_of(*_opened(file, undo))
    if holder is None:
        click.echo(f"{file}: free")
        return
    click.echo(f"{file}: reserved for {holder}; ends {holder.end}")


def _opened(
    file: Path, undo: ExitStack, *, purpose: str = "", seconds: float | None = None
) -> tuple[NodeSession, Claim]:
    topology = load_topology(file)
    wanted: testbeds.Candidate = testbeds.candidate(
        file, topology, purpose=purpose, seconds=seconds
    )
    if wanted.claim is None:
        why = "its file has 'reservation: null'"
        way_out = ""
        if topology.testbed == "simulated":
            why = "it is simulated, and nothing of it is shared"
        elif topology.reservation is not None:
            why = "it is not up, and each run builds its own"
            way_out = f" To keep it up: lossratio lab up {shell_word(file)}"
        raise TopologyError(f"{file}: this testbed has no reservation: {why}.{way_out}")
    return undo.enter_context(testbeds.log_in(wanted)), wanted.claim
