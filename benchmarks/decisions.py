"""The maximum cost of one decision of a search, for trials that contradict each other and that nobody asked for.

A decision is `record()` of a trial and the `next_trial()` after it. The controller takes any trial, so these lists have
many loads that pass and fail by chance, loads off the grid, trials of other lengths, and goals of many kinds. The last
two kinds are searches of SUTs on which chance decides over 20 to 40 % of the loads. Digests tell whether versions
choose the same trials:

python benchmarks/decisions.py before.tsv
python benchmarks/decisions.py after.tsv --beside before.tsv
"""

from __future__ import annotations

import hashlib
import random
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, median

import click

from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, LoadGrid, MLRsearch, SearchGoal, SearchGoalWarning
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput

MUST = 0.050
"""Seconds of CPU that a decision takes at most."""

MIN, MAX = 9001.0, 14_880_952.0
"""Frames per second."""

RATIOS = (0.0, 0.0005, 0.001, 0.005, 0.01, 0.05)

warnings.simplefilter("ignore", SearchGoalWarning)

GOALS: Mapping[str, Sequence[SearchGoal]] = {
    "CSIT": (NDR, PDR),
    "RFC 2544": (RFC2544,),
    "TST009": (TST009,),
    "CSIT and 60 s": (NDR, PDR, RFC2544, TST009),
    "six ratios": [SearchGoal(ratio, 0.5, 1.0, 21.0, 0.005, 1.0) for ratio in RATIOS],
    "six ratios, 60 trials": [SearchGoal(ratio, 0.5, 1.0, 60.0, 0.005, 1.0) for ratio in RATIOS],
    "two widths": (SearchGoal(0.0, 0.5, 1.0, 21.0, 0.05, 1.0), SearchGoal(0.005, 0.5, 1.0, 21.0, 0.001, 1.0)),
    "exceed ratios": [SearchGoal(0.001, share, 1.0, 40.0, 0.005, 1.0) for share in (0.1, 0.3, 0.5, 0.7, 0.9)],
    "all kinds": (NDR, PDR, TST009, SearchGoal(0.0, 0.5, 1.0, 5.0, 0.01)),
}
"""Goals by the name of their set."""

OPTIONS = ("plain", "early verdicts", "hints")

DURATIONS = {"full": (1.0,), "mixed": (0.5, 1.0, 1.0, 7.7, 60.0)}
"""Seconds of the trials that nobody asked for."""


@dataclass(frozen=True)
class Case:
    """One list of trials for one set of goals."""

    kind: str
    """Name of the kind of list."""
    goals: str
    """Name of the set of goals."""
    option: str
    """Other arguments of the search."""
    seed: int

    def __str__(self) -> str:
        return f"{self.kind}, {self.goals}, {self.option}, seed {self.seed}"


@dataclass(frozen=True)
class Measured:
    """What the decisions of a case cost."""

    name: str
    seconds: tuple[float, ...]
    """CPU time of each decision."""
    digest: str
    """A digest of all trials that were chosen."""

    def __str__(self) -> str:
        figures = (f"{1e3 * figure:.3f}" for figure in (max(self.seconds), mean(self.seconds), median(self.seconds)))
        return "\t".join((self.name, *figures, self.digest))


Chances = Callable[[float], float]
"""The probability that a trial at a load loses frames."""


def zone(first: float, last: float, least: float = 0.0, most: float = 1.0) -> Chances:
    """Loss begins at one load (frames/s), and has its largest probability from another load on."""

    def chance(load: float) -> float:
        share = (load - first) / (last - first)
        return least + (most - least) * min(1.0, max(0.0, share))

    return chance


def outcome(rng: random.Random, trial: TrialInput, chance: Chances) -> TrialResult:
    """A trial that loses a share by chance."""
    loss = 10.0 ** rng.uniform(-6.0, -1.0) if rng.random() < chance(trial.load) else 0.0
    is_early = trial.certain_above is not None and loss > trial.certain_above
    return TrialResult(trial, TrialOutput(loss, decided_after=0.1 * trial.duration if is_early else None))


def evenly(rng: random.Random, loads: Sequence[float], durations: Sequence[float]) -> Iterator[TrialInput]:
    """Trials at these loads, in any order, without an end."""
    while True:
        yield TrialInput(rng.choice(durations), rng.choice(loads))


def off_grid(rng: random.Random, first: float, last: float, number: int) -> list[float]:
    """Loads anywhere."""
    return [rng.uniform(first, last) for _ in range(number)]


def on_grid(rng: random.Random, first: float, last: float, number: int, goals: Sequence[SearchGoal]) -> list[float]:
    """Loads of the search's own grid."""
    grid = LoadGrid(MIN, MAX, min(goal.width for goal in goals))
    low = round(grid.position(first))
    high = round(grid.position(last))
    return [grid.load(rng.randint(low, high)) for _ in range(number)]


@dataclass(frozen=True)
class Kind:
    """How the trials of a list come about."""

    chance: Chances
    loads: tuple[float, float]
    """The loads of the trials that nobody asked for, in frames per second."""
    number: int
    """Number of their loads."""
    grid: bool
    """Whether they are on the grid."""
    durations: str
    asked: float
    """The share of trials that the search asked for."""
    trials: int = 200


KINDS: Mapping[str, Kind] = {
    "20 contested loads": Kind(zone(4e6, 9e6), (4e6, 9e6), 20, True, "full", 0.0, 400),
    "200 contested loads": Kind(zone(4e6, 9e6), (4e6, 9e6), 200, True, "full", 0.0),
    "contested, mixed lengths": Kind(zone(4e6, 9e6), (4e6, 9e6), 60, True, "mixed", 0.0),
    "half asked for": Kind(zone(4e6, 9e6, 0.2, 0.8), (5e6, 8e6), 12, True, "full", 0.5),
    "coins, off the grid": Kind(zone(1e6, 2e6, 0.5, 0.5), (1e6, 12e6), 20, False, "full", 0.3),
    "300 loads without a contest": Kind(zone(6e6, 6.001e6), (5e4, 14e6), 300, True, "full", 0.0, 300),
    "300 loads below, some coins above": Kind(zone(12e6, 14e6, 0.0, 0.5), (5e4, 14e6), 300, True, "full", 0.2, 400),
    "300 loads off the grid": Kind(zone(6e6, 6.001e6), (5e4, 14e6), 300, False, "mixed", 0.1, 300),
    "300 loads in a few widths": Kind(zone(6e6, 6.001e6), (5.8e6, 6.2e6), 300, False, "full", 0.1, 300),
    "a search of a zone of 20 %": Kind(zone(8e6, 10e6), (8e6, 10e6), 1, True, "full", 1.0, 400),
    "a search of a zone of 40 %": Kind(zone(5e6, 9e6, 0.0, 0.6), (5e6, 9e6), 1, True, "full", 1.0, 400),
}
"""The kinds of lists by name."""


def measured(case: Case) -> Measured:
    """Goes through a list, and measures each decision."""
    kind = KINDS[case.kind]
    goals = GOALS[case.goals]
    rng = random.Random(str(case))
    hints = [] if case.option != "hints" else [night(goals, kind.chance)]
    controller = MLRsearch(
        goals,
        MIN,
        MAX,
        hints=hints,
        early_verdict=case.option == "early verdicts",
        memory_rest=15.0 if case.option == "plain" else 0.0,
        fail_fast=False,
    )
    lay = on_grid(rng, *kind.loads, kind.number, goals) if kind.grid else off_grid(rng, *kind.loads, kind.number)
    others = evenly(rng, lay, DURATIONS[kind.durations])
    seconds = []
    chosen = hashlib.sha256()
    trial = controller.next_trial()
    for _ in range(kind.trials):
        if trial is None or rng.random() >= kind.asked:
            if kind.asked == 1.0:
                break
            trial = next(others)
        result = outcome(rng, trial, kind.chance)
        start = time.process_time()
        controller.record(result)
        trial = controller.next_trial()
        seconds.append(time.process_time() - start)
        chosen.update(f"{trial!r} {controller.purpose!r}".encode())
    return Measured(str(case), tuple(seconds), chosen.hexdigest()[:16])


def night(goals: Sequence[SearchGoal], chance: Chances) -> list[TrialResult]:
    """The trials of an earlier search."""
    controller = MLRsearch(goals, MIN, MAX)
    rng = random.Random(1)
    while controller.trials < 200 and (trial := controller.next_trial()) is not None:
        controller.record(outcome(rng, trial, chance))
    return list(controller.evidence)


@click.command(help=__doc__)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--beside", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="File of another version.")
@click.option("--seeds", default=1, show_default=True, help="Lists of each kind.")
@click.option("--only", default="", help="Only cases whose names this regular expression finds.")
def main(file: Path, beside: Path | None, seeds: int, only: str) -> None:
    """Measures all cases, and prints the worst ones."""
    cases = [
        Case(kind, goals, option, seed)
        for kind in KINDS
        for goals in GOALS
        for option in OPTIONS
        for seed in range(seeds)
    ]
    # Each case runs in a new process, so that no search uses what another one has computed.
    with get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        rows = pool.map(measured, [case for case in cases if re.search(only, str(case))], chunksize=1)
    rows.sort(key=lambda row: -max(row.seconds))
    file.write_text("".join(f"{row}\n" for row in rows))
    for row in rows[:20]:
        click.echo(f"{1e3 * max(row.seconds):8.1f} {1e3 * mean(row.seconds):8.2f}  {row.name}")
    above = sum(max(row.seconds) > MUST for row in rows)
    click.echo(
        f"{len(rows)} lists, {sum(len(row.seconds) for row in rows)} decisions; above {MUST * 1e3:g} ms: {above}"
    )
    if beside is not None:
        earlier = {line.split("\t")[0]: line.split("\t")[-1] for line in beside.read_text().splitlines()}
        for row in rows:
            if earlier[row.name] != row.digest:
                click.echo(f"differs: {row.name}")


if __name__ == "__main__":
    main()
