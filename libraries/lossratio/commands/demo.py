"""The command ``lossratio demo``."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from lossratio.commands.parameters import command, option
from lossratio.exit_status import ExitStatus

if TYPE_CHECKING:
    from lossratio.runs import RunOutcome, RunRequest

_JOB = Path(__file__).parents[1] / "resources" / "demo.yaml"
_SENDS = {
    "xdp": "from inside the kernel",
    "afpacket": "through packet sockets, as the kernel takes no XDP programs here",
}
_OF_THIS_MACHINE = (ExitStatus.FAILED, ExitStatus.INFRASTRUCTURE, ExitStatus.UNAVAILABLE)


@command()
def demo(output: Path = option("Directory for the results.", default=Path("results/demo"), metavar="DIR")) -> None:
    """Measure this machine's Linux bridge with real frames, behind a policer whose truth is known.

    The testbed is made of network namespaces, and vanishes in the end. Where this machine cannot build it, or is too
    busy to measure, the bridge is simulated, and the reason is shown. The generator that sent is shown, too.

    Exit status: that of `lossratio run`.
    """
    # Imported here because all that reaches a testbed takes a while.
    from lossratio.runs import RunRequest

    real = RunRequest((Path("local"),), (), (), ("--outputdir", str(output)), job=_JOB)
    outcome = measured_or_simulated(real, replace(real, topologies=(Path("simulated"),)))
    if outcome.directory is not None and outcome.status is ExitStatus.PASSED:
        _show_truth(outcome.directory)
        click.echo(f"The page of this measurement: {(outcome.directory / 'lossratio.html').resolve()}")
    elif outcome.error is not None:
        click.echo(f"Error: {outcome.error}", err=True)
    sys.exit(int(outcome.status))


def measured_or_simulated(real: RunRequest, simulated: RunRequest) -> RunOutcome:
    """Measures on a local testbed; where this machine cannot, or is too busy, simulates, and shows the reason."""
    # Imported here because all that reaches a testbed takes a while.
    from lossratio.results import in_columns
    from lossratio.runs import run
    from lossratio.testbed.local import why_unavailable

    reason = why_unavailable()
    outcome = None if reason else run(real)
    if outcome is not None and outcome.status in _OF_THIS_MACHINE:
        reason = outcome.error or "this machine could not measure it, as shown above."
    if outcome is None or reason:
        click.echo(in_columns(f"Simulated instead of real: {reason}"))
        outcome = run(simulated)
    return outcome


def _show_truth(directory: Path) -> None:
    """Compares the bounds with what the policer's rate and burst mean for each goal; a real generator is shown, too."""
    from lossratio.measurements.throughput import ThroughputResult
    from lossratio.results import RunDirectory
    from lossratio.simulation import sut_from

    (result,) = RunDirectory(directory).results()
    if not isinstance(result, ThroughputResult) or result.conditions is None:
        return
    bridge = result.conditions.duts["DUT1"]
    policer = sut_from(cast(dict[str, Any], bridge.get("modelled_as") or bridge["model"]))
    click.echo("The truth, which the rate and the burst of the policer give:")
    for goal, found in ((report.goal, report.result) for report in result.goals):
        truth = policer.truth(
            loss_ratio=goal.loss_ratio, duration=goal.final_trial_duration_s, exceed_ratio=goal.exceed_ratio
        )
        if truth is None or found is None or not found.relevant_lower_bound or not found.relevant_upper_bound:
            continue
        lower, upper = found.relevant_lower_bound.per_interface_fps, found.relevant_upper_bound.per_interface_fps
        verdict = "between the bounds" if lower <= truth <= upper else "NOT between the bounds"
        click.echo(f"  {goal.name}  {truth:,.0f} fps per interface: {verdict}, {lower:,.0f} and {upper:,.0f} fps")
    if result.conditions.generator["kind"] != "simulated":
        _show_generator()


def _show_generator() -> None:
    """Measures how much the generator sends and receives without a DUT."""
    from lossratio.errors import LossRatioError
    from lossratio.measurements.open_testbed import open_testbed

    try:
        with tempfile.TemporaryDirectory() as results, open_testbed("local-cable-xdp", results=results) as cable:
            result = cable.mrr("64B", bidirectional=False, trials=3, trial_duration=0.5)
    except LossRatioError as error:
        click.echo(f"The generator alone could not be measured: {error}")
        return
    if result.mrr is not None and result.conditions is not None:
        way = _SENDS[str(result.conditions.generator["kind"])]
        click.echo(f"The generator alone, {way}: {result.mrr.mean.per_interface_fps:,.0f} fps over a cable.")
