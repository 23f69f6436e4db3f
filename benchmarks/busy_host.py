"""First numbers of an ordinary user beside busy programs: `lossratio init`, a whole search of its lab, and the demo.

Run it as an ordinary user. Each busy program has a session of its own, as other users' programs have. The truth is
what the policer lets through, by its rate and burst.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click
from busy_programs import busy_programs

from lossratio.measurements.throughput import ThroughputResult
from lossratio.results import RunDirectory, doubts_of
from lossratio.simulation import sut_from

COMMAND = (sys.executable, "-m", "lossratio")
ANSWERS = 20 * "\n"
"""Enter, more often than `init` asks."""
WHOLE = ("--variable", "GOALS:csit", "--variable", "LATENCY:off", "--variable", "TELEMETRY:off")
KINDS = ("init", "whole", "demo")


@dataclass(frozen=True)
class Measured:
    """A run as a user sees it."""

    kind: str
    seconds: float
    """The time of the whole command."""
    status: int
    """Its exit status."""
    load_average: float
    """The load average of one minute at its end."""
    result: ThroughputResult | None
    """The result; None: there is none."""


@click.command(help=__doc__)
@click.option("--runs", default=10, show_default=True, help="Runs of each kind, in turns.")
@click.option("--kind", "kinds", multiple=True, default=KINDS, type=click.Choice(KINDS), help="What to run.")
@click.option("--programs", default=4, show_default=True, help="Busy programs.")
@click.option("--minutes", default=60.0, show_default=True, help="No run begins later than this.")
@click.option("--keep", type=click.Path(path_type=Path), help="Directory for all runs; otherwise they are removed.")
def main(runs: int, kinds: tuple[str, ...], programs: int, minutes: float, keep: Path | None) -> None:
    """Measures, and prints a line for each goal."""
    end = time.monotonic() + 60.0 * minutes
    right = dict.fromkeys(kinds, 0)
    made = dict.fromkeys(kinds, 0)
    with tempfile.TemporaryDirectory() as temporary, busy_programs(programs, in_sessions=True):
        for run in range(runs):
            for kind in kinds:
                if time.monotonic() > end:
                    break
                directory = (keep or Path(temporary)) / f"{kind}-{run}"
                measured = measure(kind, directory.absolute())
                made[kind] += 1
                right[kind] += show(measured)
    for kind in kinds:
        click.echo(f"{kind}: {right[kind]} of {made[kind]} runs have a right and regular number for each goal")


def measure(kind: str, directory: Path) -> Measured:
    """Runs one kind, as a user types it."""
    results = directory / "results"
    if kind == "init":
        command: tuple[str, ...] = ("init", str(directory))
    elif kind == "whole":
        # The lab is written, but not measured: the answers end before that question.
        subprocess.run([*COMMAND, "init", directory], input=8 * "\n", text=True, capture_output=True, check=False)
        lab = directory / "lab1"
        named = ("--topology", f"{lab}.yaml", "--include", "ndrpdrAND64b", f"{lab}.robot")
        command = ("run", *named, "--output", str(results), *WHOLE)
    else:
        directory.mkdir(parents=True)
        command = ("demo", "--output", str(results))

    began = time.monotonic()
    done = subprocess.run([*COMMAND, *command], input=ANSWERS, text=True, capture_output=True, check=False)
    seconds = time.monotonic() - began
    (directory / "console.txt").write_text(done.stdout + done.stderr)
    found = RunDirectory(results).results() if results.is_dir() else ()
    result = found[0] if found and isinstance(found[0], ThroughputResult) else None
    return Measured(kind, seconds, done.returncode, os.getloadavg()[0], result)


def show(measured: Measured) -> bool:
    """Prints a run; returns whether it has a right and regular number for each goal, measured with real frames."""
    began = f"{measured.kind:>5}  load {measured.load_average:4.1f}  {measured.seconds:4.0f} s"
    result = measured.result
    if result is None or result.conditions is None:
        click.echo(f"{began}  no result, exit status {measured.status}")
        return False

    bridge = result.conditions.duts["DUT1"]
    is_simulated = result.conditions.testbed.is_simulated
    policer = sut_from(cast(dict[str, Any], bridge.get("modelled_as") or bridge["model"]))
    repeats = sum(trial.repeats for trial in result.trials)
    click.echo(
        f"{began}  {len(result.trials)} trials, {repeats} repeats{', SIMULATED' if is_simulated else ''}, "
        f"doubts: {', '.join(sorted({doubt.kind.value for doubt in doubts_of([result])[0]})) or 'none'}"
    )
    is_right = not is_simulated and measured.status == 0
    for report in result.goals:
        goal, found = report.goal, report.result
        truth = policer.truth(
            loss_ratio=goal.loss_ratio, duration=goal.final_trial_duration_s, exceed_ratio=goal.exceed_ratio
        )
        if found is None or found.relevant_lower_bound is None or found.relevant_upper_bound is None or truth is None:
            click.echo(f"       {goal.name}: no bounds{'' if found is None else f' ({found.reason})'}")
            is_right = False
            continue
        lower = found.relevant_lower_bound.per_interface_fps
        upper = found.relevant_upper_bound.per_interface_fps
        encloses = lower <= truth <= upper
        is_right = is_right and encloses and found.regular
        verdict = "right" if encloses else "NOT BETWEEN THE BOUNDS"
        click.echo(
            f"       {goal.name}: {lower:,.0f} to {upper:,.0f}, truth {truth:,.0f}: {verdict}, "
            f"{found.reason or 'regular'}"
        )
    return is_right


if __name__ == "__main__":
    main()
