"""Whether a change of PLRsearch changes estimates or searches: a digest of each of some 400, to the last bit.

Run it before the change and after it; the second run reports each one that is no longer the same:

python benchmarks/soak_digests.py before.tsv
python benchmarks/soak_digests.py after.tsv --beside before.tsv

Estimates are those of simulated trials: a few to a few hundred, around the knee and across it, of healthy SUTs and of
others, under each likelihood. Searches use each selection and each likelihood.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
from joblib import Parallel, delayed
from soak_cases import CASES, MAX_LOAD, MIN_LOAD, TARGET
from soak_suts import CAPACITY

from lossratio.plrsearch import CriticalLoadEstimate, LikelihoodName, PLRsearch, SelectionName, Weighting, estimate
from lossratio.simulation import SimulatedMeasurer
from lossratio.trials import TrialInput, TrialResult, run_search

PROBABILITIES = (0.005, 0.025, 0.5, 0.975, 0.995)
NUMBERS = (1, 3, 8, 30, 90, 240)
TARGETS = (TARGET, 1e-3)
SEARCH_SECONDS = 120.0


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--beside", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="File of an earlier run.")
@click.option("--sut", "suts", multiple=True, type=click.Choice(list(CASES)), help="SUT; all if none is given.")
@click.option("--jobs", default=1, show_default=True, help="Processes; -1: one for each core.")
def main(file: Path, beside: Path | None, suts: tuple[str, ...], jobs: int) -> None:
    """Writes the digests of many estimates and searches to FILE, one line for each."""
    names = suts or tuple(CASES)
    parts = Parallel(n_jobs=jobs)(
        [delayed(_estimates)(name, number) for name in names for number in NUMBERS]
        + [delayed(_searches)(name) for name in names]
    )
    digests = dict(pair for part in parts for pair in part)
    file.write_text("".join(f"{name}\t{digest}\n" for name, digest in digests.items()))
    click.echo(f"{len(digests)} estimates and searches: {file}")
    if beside is not None:
        earlier = dict(line.split("\t") for line in beside.read_text().splitlines())
        different = sorted(name for name, digest in digests.items() if earlier.get(name) != digest)
        click.echo("\n".join([*different, f"{len(different)} of {len(digests)} differ"]))


def _estimates(name: str, number: int) -> list[tuple[str, str]]:
    """Digests of the estimates from simulated trials, under each likelihood."""
    digests = []
    for seed, (target, width) in enumerate(zip(TARGETS, (0.02, 0.3), strict=True)):
        rng = np.random.default_rng(number + seed)
        measurer = SimulatedMeasurer(CASES[name].sut, seed=number + seed)
        inputs = [TrialInput(5.0, CAPACITY * float(rng.uniform(1.0 - width, 1.0 + width))) for _ in range(number)]
        results = [TrialResult(trial, measurer.measure(trial)) for trial in inputs]
        for likelihood in LikelihoodName:
            estimated = estimate(
                results, target_loss_ratio=target, min_load=MIN_LOAD, max_load=MAX_LOAD, likelihood=likelihood
            )
            digests.append((f"{name}, {number} trials, {target:g}, {likelihood.value}", _digest(_figures(estimated))))
    return digests


def _searches(name: str) -> list[tuple[str, str]]:
    """Digests of searches on a SUT: of each trial and of the result."""
    digests = []
    for selection in SelectionName:
        for likelihood in LikelihoodName:
            results: list[TrialResult] = []
            search = PLRsearch(
                TARGET, MIN_LOAD, MAX_LOAD, timeout=SEARCH_SECONDS, selection=selection, likelihood=likelihood
            )
            result = run_search(search, SimulatedMeasurer(CASES[name].sut, seed=1), on_trial=results.append)
            lines = [f"{trial.duration!r} {trial.load!r} {trial.loss_ratio!r}" for trial in results]
            lines += [repr(result.stopped_by), *map(repr, result.history), *_figures(result)]
            digests.append((f"{name}, search, {selection.value}, {likelihood.value}", _digest(lines)))
    return digests


def _figures(estimated: CriticalLoadEstimate) -> Iterator[str]:
    """All that an estimate says, with all digits."""
    yield repr((estimated.mean, estimated.stdev, estimated.interval(0.95), estimated.limits, estimated.misfit))
    for combination in map(estimated.description.mixed, Weighting):
        yield repr((combination, [combination.quantile(probability) for probability in PROBABILITIES]))
    for function in estimated.functions.values():
        loads = np.linspace(*function.interval(0.9), 5).tolist()
        yield repr((function.name, function.mean, function.stdev, getattr(function, "mode", None)))
        yield repr(function.loss_ratio(loads).tolist())


def _digest(lines: Iterator[str] | list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


if __name__ == "__main__":
    main()
