"""PLRsearch measured: accuracy, speed beside a Monte Carlo of the draft's kind, time to an error, and coverage.

    python benchmarks/soak.py                       # everything, with few seeds
    python benchmarks/soak.py coverage --seeds 100 --store soak.jsonl --likelihood varying

What takes long is kept in the store, one line for each search, and not done again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from soak_monte_carlo import monte_carlo
from soak_suts import CASES, MAX_LOAD, MIN_LOAD, TARGET

from lossratio.plrsearch import CriticalLoadEstimate, LikelihoodName, PLRsearch, Weighting, estimate
from lossratio.plrsearch.counts import TrialCounts, collect
from lossratio.plrsearch.critical import CriticalLoadQuestion
from lossratio.plrsearch.integration import posteriors
from lossratio.plrsearch.updating import updated
from lossratio.simulation import SimulatedMeasurer, SmoothKnee
from lossratio.trial import TrialInput, TrialOutput, TrialResult, run_search

QUESTION = CriticalLoadQuestion(TARGET, MIN_LOAD, MAX_LOAD)
KNOWN_ANSWERS = Path(__file__).parents[1] / "tests" / "unit" / "plrsearch" / "data" / "known-answers.json"
TIMES = (60.0, 300.0, 1800.0)
OVERHEAD = 0.5
REPEATS = 5


def main() -> None:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections = {"accuracy": accuracy, "speed": speed, "sooner": sooner, "coverage": coverage}
    parser.add_argument("sections", nargs="*", help=f"any of {', '.join(sections)}; all if none is given")
    parser.add_argument("--seeds", type=int, default=3, help="searches of each kind (default: 3)")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first (default: 0)")
    parser.add_argument("--suts", nargs="+", default=list(CASES), choices=list(CASES), help="SUTs for coverage")
    parser.add_argument(
        "--timeout", type=float, default=1800.0, help="seconds of a search for coverage (default: 1800)"
    )
    parser.add_argument("--likelihood", default="varying", choices=[each.value for each in LikelihoodName])
    parser.add_argument("--selection", default="posterior", choices=["posterior", "draft"])
    parser.add_argument("--store", type=Path, help="JSON lines file that keeps what was searched")
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
            found, tolerance = _of_case(case, likelihood), case["tolerance"]
            errors = np.zeros(5)
            for name, each in found.functions.items():
                known = case["expected"][likelihood][name]
                quantiles = {float(share): load for share, load in known["quantiles"].items()}
                errors = np.maximum(
                    errors,
                    [
                        abs(each.mean / known["mean"] - 1.0) / tolerance["mean"],
                        abs(each.stdev - known["stdev"]) / max(tolerance["stdev"] * known["stdev"], 1e-300),
                        abs(each.mean_log / known["mean_log"] - 1.0) / tolerance["mean"],
                        max(abs(each.quantile(share) / load - 1.0) for share, load in quantiles.items())
                        / tolerance["quantiles"],
                        abs(each.log_evidence - known["log_evidence"]) / tolerance["log_evidence_abs"],
                    ],
                )
            print(f"{case['name']:50} {likelihood:10} " + " ".join(f"{error:8.2g}" for error in errors), flush=True)


def _of_case(case: dict, likelihood: str) -> CriticalLoadEstimate:
    results = [
        TrialResult(TrialInput(duration, load), TrialOutput(lost / sent, sent_frames=sent, lost_frames=lost))
        for duration, load, sent, lost in case["trials"]
    ]
    limits = {name: case[name] for name in ("target_loss_ratio", "min_load", "max_load")}
    return estimate(results, likelihood=likelihood, **limits)


def speed(_: argparse.Namespace) -> None:
    """CPU time of a full update and of one trial more, least of some repeats; and the Monte Carlo's."""
    print(f"{'trials':>7} {'likelihood':10} {'full update, ms':>16} {'one trial more, ms':>19}")
    for number in (150, 5000):
        counts = collect(_trials(number))
        for likelihood in LikelihoodName:
            full = _least_time(lambda known=counts, name=likelihood: posteriors(known, QUESTION, name))
            found = posteriors(counts, QUESTION, likelihood)
            one = TrialCounts(counts.load[:1] * 1.0001, counts.exposure[:1], counts.lost[:1])
            more = _least_time(
                lambda known=found, trial=one, name=likelihood: [updated(each, each, trial, name) for each in known]
            )
            print(f"{number:7} {likelihood.value:10} {1e3 * full:16.1f} {1e3 * more:19.2f}", flush=True)
    counts = collect(_trials(150))
    exact = posteriors(counts, QUESTION, LikelihoodName.POISSON)[0].moments
    trials = list(zip(counts.load.tolist(), counts.exposure.tolist(), counts.lost.astype(int).tolist(), strict=True))
    for seed in range(REPEATS):
        found = monte_carlo(trials, TARGET, MAX_LOAD, 5.0, seed)
        error = abs(found.mean - exact.mean) / exact.stdev
        print(
            f"Monte Carlo, 5 s of CPU: {found.samples_per_second:,.0f} samples/s, off by {error:.3g} stdev", flush=True
        )


def _trials(number: int) -> list[TrialResult]:
    """Trials at distinct loads around the knee of a stretch-shaped SUT."""
    rng = np.random.default_rng(1)
    measurer = SimulatedMeasurer(SmoothKnee(18e6, 5e4), seed=1)
    inputs = [TrialInput(5.1 + 0.1 * min(index, 140), rng.normal(17.6e6, 1e5)) for index in range(number)]
    return [TrialResult(each, measurer.measure(each)) for each in inputs]


def _least_time(task: object) -> float:
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        task()
        times.append(time.process_time() - started)
    return min(times)


def sooner(arguments: argparse.Namespace) -> None:
    """Errors after some seconds of search: the draft's way, and this one's."""
    ways = {
        "the draft's": {"selection": "draft", "likelihood": "poisson", "weighting": Weighting.EQUAL},
        "poisson": {"selection": "posterior", "likelihood": "poisson"},
        "varying": {"selection": "posterior", "likelihood": "varying"},
    }
    print(f"{'SUT':16} {'way':12} " + " ".join(f"{f'rms at {int(t)} s, %':>18}" for t in TIMES))
    for name in ("stretch", "erf"):
        for way, options in ways.items():
            errors = [
                [
                    _search(name, seed, seconds, options)["error_percent"]
                    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds)
                ]
                for seconds in TIMES
            ]
            print(f"{name:16} {way:12} " + " ".join(f"{_rms(each):18.4f}" for each in errors), flush=True)


def coverage(arguments: argparse.Namespace) -> None:
    """How often 95 % intervals cover the truth, how wide they are, and how often a misfit is flagged."""
    options = {"selection": arguments.selection, "likelihood": arguments.likelihood}
    known = dict(_stored(arguments.store))
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for name in arguments.suts:
            key = f"{name}/{arguments.selection}/{arguments.likelihood}/{arguments.timeout:g}/{seed}"
            if key not in known:
                known[key] = _search(name, seed, arguments.timeout, options)
                if arguments.store:
                    with arguments.store.open("a") as file:
                        file.write(json.dumps({"key": key, **known[key]}) + "\n")
    heads = ("coverage", "width, %", "rms, %", "equal: cov.", "width, %", "rms, %", "flagged")
    print(f"{'SUT':18} {'seeds':>5} " + " ".join(f"{head:>11}" for head in heads))
    for name in arguments.suts:
        prefix = f"{name}/{arguments.selection}/{arguments.likelihood}/{arguments.timeout:g}/"
        runs = [run for key, run in known.items() if key.startswith(prefix)]
        if runs:
            print(f"{name:18} {len(runs):5} {_summary(name, runs)}")


def _summary(name: str, runs: Sequence[dict]) -> str:
    """Coverage, width and error with the weights that were asked for and with equal ones, and the share of flags."""
    has_truth = CASES[name].critical_load is not None
    columns = []
    for prefix in ("", "equal_"):
        columns += [
            f"{np.mean([run[f'{prefix}covered'] for run in runs]):11.2f}" if has_truth else " " * 11,
            f"{np.median([run[f'{prefix}width_percent'] for run in runs]):11.4f}",
            f"{_rms([run[f'{prefix}error_percent'] for run in runs]):11.4f}" if has_truth else " " * 11,
        ]
    return " ".join([*columns, f"{np.mean([run['flagged'] for run in runs]):11.2f}"])


def _stored(path: Path | None) -> Iterator[tuple[str, dict]]:
    if path is not None and path.exists():
        for line in path.read_text().splitlines():
            run = json.loads(line)
            yield run.pop("key"), run


def _search(name: str, seed: int, seconds: float, options: dict) -> dict:
    """One search, and what became of it."""
    case = CASES[name]
    controller = PLRsearch(TARGET, MIN_LOAD, MAX_LOAD, timeout=seconds, **options)
    found = run_search(controller, SimulatedMeasurer(case.sut, seed=seed, overhead=OVERHEAD))
    truth = found.mean if case.critical_load is None else case.critical_load
    run = {
        "flagged": not found.misfit.fits,
        "reasons": [each.split(":")[0] for each in found.misfit.reasons],
        "trials": controller.trials,
    }
    for weighting, prefix in ((found.weighting, ""), (Weighting.EQUAL, "equal_")):
        combined = found.combinations[weighting]
        low, high = combined.interval(0.95)
        run[f"{prefix}covered"] = low <= truth <= high
        run[f"{prefix}width_percent"] = 100.0 * (high - low) / truth
        run[f"{prefix}error_percent"] = 100.0 * (combined.mean / truth - 1.0)
    return run


def _rms(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


if __name__ == "__main__":
    main()
