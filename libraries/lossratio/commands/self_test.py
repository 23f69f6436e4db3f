"""The command ``lossratio self-test``."""

from pathlib import Path

import click

from lossratio.commands.parameters import FRAME_RATE, argument, command, option


@command()
def self_test(
    topology: Path = argument(),
    *,
    sizes: tuple[str, ...] = option("May be given again.", "--frame-size", default=("64",)),
    profile: str = option("What the traffic is.", default="ethip4-udp"),
    one_way: bool = option("Transmit from the first port only."),
    max_load: float | None = option("Try no more than this, e.g. '1 Mfps'.", metavar="RATE", type=FRAME_RATE),
    record: Path | None = option(
        "Write the limits into this file, for topologies to name as the 'self_test' of their generator."
    ),
    output: Path = option("Directory for the results.", default=Path("results/self-test")),
) -> None:
    """Find the largest load that the tester itself can send and receive.

    TOPOLOGY is a file in which a cable joins the ports of the TG, or the name local-cable.
    """
    # Imported here because all that reaches a testbed takes a while; a wrong option need not wait for it.
    from lossratio.measurements import Progress, TestPlace
    from lossratio.measurements.self_test import SelfTestRequest, check_cable, find_tester_limit
    from lossratio.results import RunDirectory, TestIdentity
    from lossratio.testbed import open_testbed
    from lossratio.topology import load_topology
    from lossratio.traffic import load_profile

    def tell(progress: Progress) -> None:
        click.echo(Progress(progress.number, progress.trial, progress.bounds, None).line(), err=True)

    traffics = [load_profile(profile, frame_size=size, bidirectional=False if one_way else None) for size in sizes]
    described = load_topology(topology)
    check_cable(topology, described, described.path())
    with open_testbed(topology) as testbed:
        for traffic in traffics:
            place = TestPlace(TestIdentity(name=f"self-test {traffic.frame_size}", suite=""), RunDirectory(output))
            request = SelfTestRequest(profile=traffic, max_load=max_load, record=record)
            click.echo(find_tester_limit(testbed, request, place, tell))
    if record is None:
        click.echo("To use it: --record FILE, and 'self_test: FILE' with the generator in the topology file.")
