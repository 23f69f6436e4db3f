"""What one report of progress costs in a search, by the number of trials before it: the same after 5,000 as after ten.

Each trial has a load of its own near the capacity of the SUT, so that both goals of CSIT stay open. Function calls are
counted as well, because they are the same on every machine.

python benchmarks/progress.py
"""

from __future__ import annotations

import cProfile
import pstats
import random
import time
from statistics import median

import click

from lossratio.measurements import Progress
from lossratio.mlrsearch import NDR, PDR, MLRsearch
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput

AIM = 0.001
"""Seconds that a report of progress should not exceed."""
REPEATS = 20


@click.command()
@click.option("--trials", "numbers", default=(10, 100, 1000, 5000), multiple=True, show_default=True)
def main(numbers: tuple[int, ...]) -> None:
    """Measures how long one report of progress takes after so many trials."""
    click.echo(f"{'trials':>7} {'ms':>8} {'calls':>8}")
    for number in numbers:
        controller, last = searched(number)
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            show(controller, last)
            times.append(time.perf_counter() - start)
        profile = cProfile.Profile()
        profile.runcall(show, controller, last)
        calls = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
        verdict = "ok" if median(times) <= AIM else f"above {AIM * 1e3:g} ms"
        click.echo(f"{number:7d} {1e3 * median(times):8.3f} {calls:8d}  {verdict}")


def searched(trials: int) -> tuple[MLRsearch, TrialResult]:
    """A controller after so many trials, and the last of them."""
    controller, rng = MLRsearch([NDR, PDR], 9001.0, 1e6), random.Random(1)
    for load in (rng.uniform(4e5, 6e5) for _ in range(trials)):
        last = TrialResult(TrialInput(1.0, load), TrialOutput(max(0.0, 1.0 - 5e5 / load)))
        controller.record(last)
    return controller, last


def show(controller: MLRsearch, trial: TrialResult) -> str:
    """The line that the console shows after a trial."""
    return Progress(controller.trials, trial, controller.bounds, controller.forecast()).line()


if __name__ == "__main__":
    main()
