"""What a warm trial costs beyond its own duration and the DUT's settle time, over SSH on loopback.

Builds the local testbed (unless it is up), bridges the two links, and times whole trials: from the measurer being asked
to its answer, through SSH, to the agent and back. A trial that was measured again takes its duration once more. As a
median hides this, the share of such trials is printed, too.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, median, quantiles

import click

from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials.trial import Measurer
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput

AIM = 0.020
"""Seconds that the median should not exceed."""

TOPOLOGY = Path(__file__).parent.parent / "topologies" / "local.yaml"


@click.command(help=__doc__)
@click.option("--topology", default=TOPOLOGY, type=click.Path(path_type=Path), help="The testbed to measure on.")
@click.option("--trials", default=50, show_default=True, help="Trials per duration.")
@click.option("--load", default=10_000.0, show_default=True, help="Frames per second in each direction.")
@click.option("--frame-size", default="64", show_default=True, help="Bytes with FCS, or IMIX_v4_1.")
def main(topology: Path, trials: int, load: float, frame_size: str) -> None:
    """Measures, and prints a table."""
    testbed = open_testbed(topology, dut="linux_bridge")
    try:
        with testbed.ready_for(load_profile("ethip4-udp", frame_size=frame_size)) as ready:
            settle_time = ready.conditions.timing.wait_after_s
            click.echo(f"Overhead per trial in ms, beyond duration and {settle_time * 1e3:g} ms of settling:")
            names = " ".join(f"{name:>7}" for name in ("trials", "min", "median", "mean", "90 %", "max"))
            click.echo(f"{'duration s':>10} {names}  measured again")
            for duration in (0.01, 0.1, 1.0):
                outputs = measure(ready.measurer, TrialInput(duration, load), trials)
                overheads = [(output.elapsed or 0.0) - duration - settle_time for output in outputs]
                again = sum(output.repeats > 0 for output in outputs)
                tenths = quantiles(overheads, n=10)
                shown = (min(overheads), median(overheads), fmean(overheads), tenths[-1], max(overheads))
                numbers = [f"{1e3 * x:7.1f}" for x in shown]
                verdict = "ok" if median(overheads) <= AIM else f"above {AIM * 1e3:g} ms"
                click.echo(f"{duration:10g} {trials:7d} {' '.join(numbers)}  {again} of {trials}; {verdict}")
    finally:
        testbed.close()


def measure(measurer: Measurer, trial: TrialInput, trials: int) -> list[TrialOutput]:
    """Performs so many trials, after a cold one that does not count."""
    measurer.measure(trial)
    return [measurer.measure(trial) for _ in range(trials)]


if __name__ == "__main__":
    main()
