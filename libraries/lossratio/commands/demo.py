"""The commands that measure without a lab: ``lossratio demo`` and ``lossratio lab self-test``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from lossratio.commands.parameters import FRAME_RATE, argument, command, option
from lossratio.commands.run import VERBOSE, VERBOSE_RULES, show_problems
from lossratio.files import check_directory
from lossratio.values import ExitStatus

if TYPE_CHECKING:
    from lossratio.runs import RunOutcome, RunRequest

_RESOURCES = Path(__file__).parents[1] / "resources"
_JOB = _RESOURCES / "demo.yaml"
_JOB_OF_BUSY_MACHINES = _RESOURCES / "demo-busy.yaml"
_COULD_NOT = "this machine could not measure it, as shown above."
_OF_THIS_MACHINE = (ExitStatus.FAILED, ExitStatus.INFRASTRUCTURE, ExitStatus.UNAVAILABLE)
_LONGEST_DEMO = 150.0
"""Seconds for the demo's search before it begins again with less traffic. Where all frames leave in time, it takes some
60 s."""


@command()
def demo(
    output: Path | None = option(
        "Directory for the results. Default: a new one, results/demo.", metavar="DIR"
    ),
    *,
    verbose: bool = option(VERBOSE_RULES),
) -> None:
    """Measure the Linux bridge of this machine with real frames. A policer limits it to a known rate.

    The testbed is made of network namespaces, and is removed at the end. If this machine is too busy to send all
    frames in time, the demo measures again with a lower limit for the bridge. If the machine cannot build the testbed,
    or still cannot measure the bridge, the demo simulates the bridge, and shows the reason.

    Exit status: as for `lossratio run`.
    """
    from lossratio.runs import RunRequest

    check_directory(output or Path("results"), "--output")
    robot_options = (
        *(() if output is None else ("--outputdir", str(output))),
        *(VERBOSE if verbose else ()),
    )
    real = RunRequest((Path("local"),), (), (), robot_options, job=_JOB, name="demo")
    simulated = replace(real, topologies=(Path("simulated"),))
    slower = replace(real, job=_JOB_OF_BUSY_MACHINES)
    limited = replace(real, test_timeout=_LONGEST_DEMO)
    outcome = _measured_or_simulated(limited, simulated, slower)
    show_problems(outcome)

    if outcome.directory is not None and outcome.status is ExitStatus.PASSED:
        _show_truth(outcome.directory)
        click.echo("Next, your own network: lossratio between CLIENT SERVER")
    sys.exit(int(outcome.status))


def _measured_or_simulated(
    real: RunRequest, simulated: RunRequest, slower: RunRequest
) -> RunOutcome:
    """Measures on a local testbed. If this machine cannot do that, or is too busy, simulates it, and shows the reason.

    Args:
        real: The measurement on a local testbed.
        simulated: The same measurement on a simulated testbed.
        slower: The same measurement with less traffic, to try first if the machine is too busy, or if a goal's result
            is irregular.
    """
    from lossratio.results import in_columns
    from lossratio.runs import run
    from lossratio.testbed.local import why_unavailable

    reason = why_unavailable()
    outcome = None if reason else run(real)
    if outcome is not None:
        if outcome.status in _OF_THIS_MACHINE:
            reason = outcome.error or _COULD_NOT
        elif outcome.status is ExitStatus.PASSED:
            reason = _irregular_in(outcome.directory)
        if reason:
            click.echo(in_columns(f"Measuring again with a lower limit: {reason}"))
            outcome = run(slower)
            is_measured = outcome.status not in _OF_THIS_MACHINE
            reason = None if is_measured else outcome.error or _COULD_NOT

    if outcome is None or reason:
        click.echo(in_columns(f"Simulated instead of real: {reason}"))
        outcome = run(simulated)
    return outcome


def _irregular_in(directory: Path | None) -> str | None:
    """Why a goal's result of a run is irregular; None: all of them are regular, or there are none."""
    from lossratio.results import RunDirectory

    results: Sequence[Any] = () if directory is None else RunDirectory(directory).results()
    for report in (report for result in results for report in result.goals):
        if report.result is not None and not report.result.regular:
            return f"{report.goal.name} is irregular: {report.result.reason}."
    return None


def _show_truth(directory: Path) -> None:
    """Compares the bounds with the largest load that meets each goal, by the policer."""
    from lossratio.results import RunDirectory
    from lossratio.simulation import sut_from

    results: Sequence[Any] = RunDirectory(directory).results()
    (result,) = results
    if result.conditions is None:
        return

    bridge = result.conditions.duts["DUT1"]
    model = cast(dict[str, Any], bridge.get("modelled_as") or bridge["model"])
    policer = sut_from(model)
    which = "simulated policer" if result.conditions.testbed.is_simulated else "policer"
    limited = f"{model['rate']:,.0f} frames/s and a burst of {model['burst']:,} frames"
    click.echo(f"The true limits of the {which} ({limited}):")

    for goal, found in ((report.goal, report.result) for report in result.goals):
        truth = policer.truth(
            loss_ratio=goal.loss_ratio,
            duration=goal.final_trial_duration_s,
            exceed_ratio=goal.exceed_ratio,
        )
        if (
            truth is None
            or found is None
            or not found.relevant_lower_bound
            or not found.relevant_upper_bound
        ):
            continue
        lower, upper = (
            found.relevant_lower_bound.per_interface_fps,
            found.relevant_upper_bound.per_interface_fps,
        )
        if lower <= truth <= upper:
            verdict = "between the bounds"
        else:
            verdict = "NOT between the bounds"

        click.echo(
            f"  {goal.name}  {truth:,.0f} fps per interface: {verdict}, {lower:,.0f} and {upper:,.0f} fps"
        )


@command()
def self_test(
    topology: Path = argument(),
    *,
    sizes: tuple[str, ...] = option(
        "Frame size; you can give this option several times.",
        "--frame-size",
        default=("64",),
        metavar="SIZE",
    ),
    profile: str = option("The traffic profile.", default="ethip4-udp", metavar="NAME|FILE"),
    one_way: bool = option("Transmit from the first port only."),
    max_load: float | None = option(
        "The largest load to try, e.g. '1 Mfps'.", metavar="RATE", type=FRAME_RATE
    ),
    output: Path = option(
        "Directory for the results.", default=Path("results/self-test"), metavar="DIR"
    ),
) -> None:
    """Find the largest load that the tester itself can send and receive.

    TOPOLOGY is a file in which a cable joins the ports of the TG, or the name local-cable.
    """
    from lossratio.measurements import Progress, TestPlace
    from lossratio.measurements.self_test import SelfTestRequest, check_cable, find_tester_limit
    from lossratio.results import RunDirectory, TestIdentity
    from lossratio.testbed import open_testbed
    from lossratio.topology import load_topology
    from lossratio.traffic import load_profile

    def tell(progress: Progress) -> None:
        click.echo(
            Progress(progress.number, progress.trial, progress.bounds, None).line(), err=True
        )

    check_directory(output, "--output")
    traffics = [
        load_profile(profile, frame_size=size, bidirectional=False if one_way else None)
        for size in sizes
    ]
    described = load_topology(topology)
    check_cable(topology, described, described.path())
    with open_testbed(topology, traffics=traffics) as testbed:
        for traffic in traffics:
            place = TestPlace(
                TestIdentity(name=f"self-test {traffic.frame_size}", suite=""), RunDirectory(output)
            )
            request = SelfTestRequest(profile=traffic, max_load=max_load)
            click.echo(find_tester_limit(testbed, request, place, tell))
    click.echo("To use a limit, set the generator's 'max_rate' to it in the topology file.")
