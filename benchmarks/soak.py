"""PLRsearch measured: accuracy, speed beside a Monte Carlo of the draft's kind, and time to an error.

    python benchmarks/soak.py                       # everything, with few seeds
    python benchmarks/soak.py stopping --seeds 100

For whole searches of many devices, see `soak_judge.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from soak_cases import CASES, MAX_LOAD, MIN_LOAD, TARGET
from soak_monte_carlo import monte_carlo

from lossratio.plrsearch import CriticalLoadEstimate, LikelihoodName, PLRsearch, StopReason, Weighting, estimate
from lossratio.plrsearch.controller import stopping_factor
from lossratio.plrsearch.likelihood.constant_capacity import PoissonLikelihood
from lossratio.plrsearch.likelihood.density import Model, Prior
from lossratio.plrsearch.model.counts import collect
from lossratio.plrsearch.model.critical_loads import CriticalLoadQuestion
from lossratio.plrsearch.model.functions import STRETCH
from lossratio.plrsearch.quadrature import posteriors
from lossratio.plrsearch.quadrature.constant_capacity import integrate
from lossratio.simulation import SimulatedMeasurer, SmoothKnee
from lossratio.trials import TrialInput, TrialOutput, TrialResult, run_search

QUESTION = CriticalLoadQuestion(TARGET, MIN_LOAD, MAX_LOAD)
KNOWN_ANSWERS = Path(__file__).parents[1] / "tests" / "unit" / "plrsearch" / "data" / "known-answers.json"
TIMES = (60.0, 300.0, 1800.0)
OVERHEAD = 0.5
STOPS = (
    ("stretch", 1e-3),
    ("stretch", 2e-4),
    ("erf", 2e-4),
    ("sharp", 1e-4),
    ("normal 0.4 %", 6e-3),
    ("normal 0.4 %", 3e-3),
)
"""SUTs, and precisions that end searches of them."""
REPEATS = 5
MONTE_CARLO_SECONDS = (1.0, 5.0)
QUADRATURE_ERROR = 0.01
"""Maximum allowed error of the quadrature, in standard deviations; the accuracy section shows the actual error."""


def main() -> None:
    """Runs the sections of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections = {
        "accuracy": accuracy,
        "speed": speed,
        "monte-carlo": monte_carlo_beside,
        "sooner": sooner,
        "stopping": stopping,
    }
    parser.add_argument("sections", nargs="*", help=f"any of {', '.join(sections)}; all if none is given")
    parser.add_argument("--seeds", type=int, default=3, help="searches of each kind (default: 3)")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first (default: 0)")
    arguments = parser.parse_args()
    unknown = set(arguments.sections) - set(sections)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}")
    for name in arguments.sections or sections:
        print(f"\n== {name} ==", flush=True)
        sections[name](arguments)


def accuracy(_: argparse.Namespace) -> None:
    """Largest errors against the known answers, in units of each case's own tolerance."""
    print(f"{'case':50} {'likelihood':10} {'mean':>8} {'stdev':>8} {'log mean':>9} {'quantile':>9} {'evidence':>9}")
    for case in json.loads(KNOWN_ANSWERS.read_text())["cases"]:
        for likelihood in ("poisson", "geometric"):
            estimated, tolerance = _of_case(case, likelihood), case["tolerance"]
            errors, nothing = np.zeros(5), 1e-18 * case["max_load"]
            for function in estimated.description.posteriors:
                name = function.name
                known = case["expected"][likelihood][name]
                quantiles = {float(share): load for share, load in known["quantiles"].items()}
                errors = np.maximum(
                    errors,
                    [
                        abs(function.mean / known["mean"] - 1.0) / tolerance["mean"],
                        abs(function.stdev - known["stdev"]) / max(tolerance["stdev"] * known["stdev"], nothing),
                        abs(np.log(function.critical_load) @ function.mass / known["mean_log"] - 1.0)
                        / tolerance["mean"],
                        max(abs(function.quantile(share) / load - 1.0) for share, load in quantiles.items())
                        / tolerance["quantiles"],
                        abs(function.log_evidence - known["log_evidence"]) / tolerance["log_evidence_abs"],
                    ],
                )
            print(f"{case['name']:50} {likelihood:10} " + " ".join(f"{error:8.2g}" for error in errors), flush=True)


def _of_case(case: dict[str, Any], likelihood: str) -> CriticalLoadEstimate:
    results = [
        TrialResult(TrialInput(duration, load), TrialOutput(lost / sent, sent_frames=sent, lost_frames=lost))
        for duration, load, sent, lost in case["trials"]
    ]
    limits = {name: case[name] for name in ("target_loss_ratio", "min_load", "max_load")}
    return estimate(results, likelihood=likelihood, **limits)


def speed(_: argparse.Namespace) -> None:
    """CPU time of an estimate for the result, and of an estimate for choosing a load; the minimum of some repeats."""
    print(f"{'trials':>7} {'likelihood':10} {'for the result, ms':>19} {'to choose by, ms':>17}")
    for number, repeats in ((150, REPEATS), (5000, 2)):
        counts = collect(_trials(number))
        for likelihood in LikelihoodName:
            full = _least_time(partial(posteriors, counts, QUESTION, likelihood), repeats)
            rough = _least_time(partial(posteriors, counts, QUESTION, likelihood, for_selection=True), repeats)
            print(f"{number:7} {likelihood.value:10} {1e3 * full:19.1f} {1e3 * rough:17.1f}", flush=True)


def monte_carlo_beside(_: argparse.Namespace) -> None:
    """The stretch function's posterior of 150 trials under Poisson: exactly, and by a Monte Carlo of the draft's kind.

    A Monte Carlo's error falls with the root of its time, once its samples are where the posterior is: hence
    the time for an error of `QUADRATURE_ERROR`.
    """
    counts = collect(_trials(150))
    model = Model(STRETCH, PoissonLikelihood(counts), Prior(MAX_LOAD / 2.0))
    exact = integrate(model, QUESTION)
    seconds = _least_time(lambda: integrate(model, QUESTION))
    trials = list(zip(counts.load.tolist(), counts.exposure.tolist(), counts.lost.astype(int).tolist(), strict=True))
    print(f"quadrature: {1e3 * seconds:.0f} ms of CPU, within {QUADRATURE_ERROR:g} stdev", flush=True)
    for budget in MONTE_CARLO_SECONDS:
        runs = [monte_carlo(trials, TARGET, MAX_LOAD, budget, seed) for seed in range(REPEATS)]
        error = _rms([(run.mean - exact.mean) / exact.stdev for run in runs])
        speed = np.mean([run.samples_per_second for run in runs])
        equal = f"; {QUADRATURE_ERROR:g} in {budget * (error / QUADRATURE_ERROR) ** 2:.3g} s" if error < 1.0 else ""
        print(
            f"Monte Carlo: {budget:g} s of CPU, {speed:,.0f} samples/s, rms error {error:.3g} stdev{equal}", flush=True
        )


def _trials(number: int) -> list[TrialResult]:
    """Trials at distinct loads around the knee of a stretch-shaped SUT."""
    rng = np.random.default_rng(1)
    measurer = SimulatedMeasurer(SmoothKnee(18e6, 5e4), seed=1)
    inputs = [TrialInput(5.1 + 0.1 * min(index, 140), rng.normal(17.6e6, 1e5)) for index in range(number)]
    return [TrialResult(trial, measurer.measure(trial)) for trial in inputs]


def _least_time(task: Callable[[], object], repeats: int = REPEATS) -> float:
    times = []
    for _ in range(repeats):
        started = time.process_time()
        task()
        times.append(time.process_time() - started)
    return min(times)


def sooner(arguments: argparse.Namespace) -> None:
    """Errors after some seconds of search: with CSIT's selection, and with ours.

    No trial depends on how long the search will go on, so the shorter searches are beginnings of the longest one.
    """
    ways = {
        "csit": {"selection": "csit", "likelihood": "geometric", "weighting": Weighting.EQUAL},
        "poisson": {"likelihood": "poisson"},
        "varying": {"likelihood": "varying"},
    }
    print(f"{'SUT':16} {'way':12} " + " ".join(f"{f'rms at {int(t)} s, %':>18}" for t in TIMES))
    for name in ("stretch", "erf"):
        for way, options in ways.items():
            errors = [
                _errors_on_the_way(name, seed, options)
                for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds)
            ]
            print(
                f"{name:16} {way:12} " + " ".join(f"{_rms(column):18.4f}" for column in np.transpose(errors)),
                flush=True,
            )


def _errors_on_the_way(name: str, seed: int, options: dict[str, Any]) -> list[float]:
    """Errors in % after each of `TIMES`, which are sorted."""
    case = CASES[name]
    truth = case.critical_load or math.nan
    results: list[TrialResult] = []
    controller = PLRsearch(TARGET, MIN_LOAD, MAX_LOAD, timeout=TIMES[-1], **options)
    run_search(controller, SimulatedMeasurer(case.sut, seed=seed, overhead=OVERHEAD), on_trial=results.append)
    ends = np.cumsum([result.elapsed for result in results])
    estimation = {option: options[option] for option in ("likelihood", "weighting") if option in options}
    return [
        100.0 * (_estimate(results[: int(np.sum(ends <= seconds))], **estimation).mean / truth - 1.0)
        for seconds in TIMES
    ]


def _estimate(results: Sequence[TrialResult], **options: Any) -> CriticalLoadEstimate:
    return estimate(results, target_loss_ratio=TARGET, min_load=MIN_LOAD, max_load=MAX_LOAD, **options)


def stopping(arguments: argparse.Namespace) -> None:
    """How often intervals cover the truth where a search ended because they were narrow.

    First come cheap searches, whose capacities are known to be normal and independent. After each trial, they examine
    the interval for the mean less 3.7 standard deviations, with as wide a target. Then come whole searches.
    """
    rng = np.random.default_rng(1)
    print(f"{'cheap: stops after about':>26} {'coverage of 1,000':>18} {'if not widened':>15}")
    for first, usual in ((12, 20), (12, 40), (12, 100), (12, 300), (150, 150), (150, 300), (150, 700)):
        shares = [_cheap_coverage(rng, first, usual, widened=widened) for widened in (True, False)]
        print(f"{usual:26} {shares[0]:18.3f} {shares[1]:15.3f}", flush=True)
    print(f"{'SUT':18} {'precision, %':>13} {'searches':>9} {'coverage':>9} {'trials (median)':>16}")
    for name, precision in STOPS:
        runs = [_stopped(name, seed, precision) for seed in _seeds(arguments)]
        ended = [run for run in runs if run is not None]
        covered = np.mean([run[0] for run in ended]) if ended else math.nan
        trials = np.median([run[1] for run in ended]) if ended else math.nan
        print(f"{name:18} {100.0 * precision:13.3g} {len(ended):9} {covered:9.3f} {trials:16.0f}", flush=True)


def _seeds(arguments: argparse.Namespace) -> range:
    return range(arguments.first_seed, arguments.first_seed + arguments.seeds)


def _cheap_coverage(rng: np.random.Generator, first: int, usual: int, *, widened: bool) -> float:
    """Share of 1,000 searches that cover; if not widened, half of them end after `usual` trials or sooner."""
    deviations, most = 3.7, 3000
    scale = math.sqrt(1.0 + 0.5 * deviations**2)
    number = np.arange(1.0, most + 1.0)
    wide = 1.96 + 2.4 / number + 10.0 / number**2
    factor = stopping_factor(number) if widened else np.ones(most)
    covered = 0
    for _ in range(1000):
        capacities = rng.standard_normal(most)
        mean = np.cumsum(capacities) / number
        variance = (np.cumsum(capacities**2) - number * mean**2) / np.maximum(number - 1.0, 1.0)
        stdev = np.sqrt(np.maximum(variance, 1e-12))
        half = factor * wide * stdev * scale / np.sqrt(number)
        narrow = (half <= 1.96 * scale / math.sqrt(usual)) & (number >= first)
        end = int(np.argmax(narrow)) if narrow.any() else most - 1
        covered += bool(abs(mean[end] - deviations * stdev[end] + deviations) <= half[end])
    return covered / 1000.0


def _stopped(name: str, seed: int, precision: float) -> tuple[bool, int] | None:
    """Whether the interval covers the truth, and the number of trials; None: precision did not end the search."""
    case = CASES[name]
    controller = PLRsearch(TARGET, MIN_LOAD, MAX_LOAD, precision=precision)
    ended = run_search(controller, SimulatedMeasurer(case.sut, seed=seed, overhead=OVERHEAD))
    if ended.stopped_by is not StopReason.PRECISION or case.critical_load is None:
        return None
    low, high = ended.interval(0.95)
    return low <= case.critical_load <= high, len(ended.counts)


def _rms(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


if __name__ == "__main__":
    main()
