"""PLRsearch's estimates under a varying capacity beside a brute force, on random lists of trials.

    PYTHONPATH=libraries python benchmarks/soak_brute_force.py --lists 200 --store brute-force.jsonl

The brute force shares the fitting functions, the prior and the critical loads of given parameters with the library, and
nothing else: neither the likelihood's integral over a trial's own capacity, nor the place and the nodes of the integral
over the parameters. A trial's integral is a trapezoidal sum: over the logarithm of the mean count where the count is
the sharper factor, else over the capacity. Over log a and log s it is an adaptive Gauss-Legendre quadrature, one within
the other, and over log m one with panels by density, and breaks where the critical load meets its limits.

The brute force of a list with a line in the store is not computed again; the library's estimate is, so that one store
serves before and after a change. The lines of `tests/unit/plrsearch/data/brute-force.jsonl` are those of `--lists 200
--most-trials 10` that took the shortest time, and two lists of 24 trials of four queues whose shares are 1 % apart.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.polynomial.legendre import leggauss, legvander
from numpy.typing import NDArray

from lossratio.plrsearch import LikelihoodName, Weighting
from lossratio.plrsearch.estimate import estimate_from_counts
from lossratio.plrsearch.likelihood import Prior
from lossratio.plrsearch.model import (
    FUNCTIONS,
    CriticalLoadQuestion,
    Curves,
    FittingFunction,
    TrialCounts,
    critical_load,
    mrr_of_critical_load,
)
from lossratio.plrsearch.quadrature import posteriors

Array = NDArray[np.float64]

ORDER = 6
"""Nodes of a panel."""
SMOOTH = 2e-4
"""Largest last coefficients of a panel that is not halved, as a share of the integral."""
DEEP = 26.0
"""Nats below the maximum where nothing matters."""
JUMP = 5.0
"""Nats between neighbouring nodes above which a panel near the maximum is halved."""
BEYOND = 11.0
"""Nats above the largest load at which the integral over log a ends."""
POINTS_AT_ONCE = 400_000
ERROR = 0.02
"""Allowed error of a mean, in posterior standard deviations."""
EVIDENCE_ERROR = 0.05
"""Allowed error of an evidence, in nats."""
CERTAIN = 0.05
"""Error that the library states of its posterior, up to which it is not a misfit."""

_NODES, _WEIGHTS = leggauss(ORDER)
_TO_COEFFICIENTS = np.linalg.inv(legvander(_NODES, ORDER - 1))
_INNER_NODES, _INNER_WEIGHTS = leggauss(10)
_Z = np.arange(-24, 25) * 0.5
_LOG_Z = -0.5 * _Z**2 - 0.5 * np.log(2.0 * np.pi) + np.log(0.5)


def main() -> None:
    """Computes the lists that are not in the store, and prints all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=int, default=20, help="how many lists (default: 20)")
    parser.add_argument("--first", type=int, default=0, help="number of the first list (default: 0)")
    parser.add_argument("--most-trials", type=int, default=5000, help="longest list (default: 5000)")
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no list after so many seconds")
    parser.add_argument("--store", type=Path, help="JSON lines file that keeps the comparisons")
    arguments = parser.parse_args()
    store = _stored(arguments.store)
    compared = []
    started = time.monotonic()
    for number in range(arguments.first, arguments.first + arguments.lists):
        key = f"{number} of up to {arguments.most_trials}"
        if key not in store and time.monotonic() - started >= arguments.seconds:
            continue
        counts, question, kind = random_list(number, arguments.most_trials)
        if key not in store:
            store[key] = {"list": key, "kind": kind, **as_rows(counts, question), **reference(counts, question)}
            if arguments.store:
                with arguments.store.open("a") as file:
                    file.write(json.dumps(store[key]) + "\n")
        compared.append({"list": key, "kind": kind, "trials": len(counts), **comparison(counts, question, store[key])})
        print(json.dumps(compared[-1]), flush=True)
    print(summary(compared))


def summary(lists: Sequence[dict[str, Any]]) -> str:
    """How many functions' means and evidences agree with the brute force."""
    parts = [part for entry in lists for part in entry["functions"].values() if part["matters"]]
    if not parts:
        return "no lists"
    far = [part for part in parts if abs(part["mean_error"]) > ERROR]
    lost = [part for part in parts if abs(part["evidence_error"]) > EVIDENCE_ERROR]
    silent = [part for part in far if part["error"] <= CERTAIN]
    errors = np.abs([part["mean_error"] for part in parts])
    return (
        f"{len(lists)} lists, {len(parts)} functions that matter: {len(far)} means off by more than {ERROR:g} stdev "
        f"({len(silent)} of them with a certificate), {len(lost)} evidences by more than {EVIDENCE_ERROR:g} nats; "
        f"median error {np.median(errors):.2g} stdev, most {errors.max():.2g}; seconds of CPU of an estimate: median "
        f"{np.median([entry['seconds'] for entry in lists]):.2g}, most {max(entry['seconds'] for entry in lists):.2g}"
    )


def _stored(path: Path | None) -> dict[str, dict[str, Any]]:
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    return {entry["list"]: entry for entry in map(json.loads, lines)}


def random_list(number: int, most_trials: int) -> tuple[TrialCounts, CriticalLoadQuestion, str]:
    """Trials of a SUT of the model's family: capacities of 1 kfps to 400 Mfps, 1 trial to `most_trials`.

    Every fourth list is scaled by 1,000 (loads and counts), every fifth is in another order, and every tenth is a
    single trial.
    """
    rng = np.random.default_rng([number, 16])
    function = FUNCTIONS[int(rng.integers(2))]
    capacity = 10.0 ** rng.uniform(3.0, np.log10(4e8))
    knee, deviation = capacity * 10.0 ** rng.uniform(-4.5, -1.5), capacity * 10.0 ** rng.uniform(-5.0, -1.3)
    trials = 1 if number % 10 == 9 else max(1, round(10.0 ** rng.uniform(0.0, np.log10(most_trials))))
    duration, target = 10.0 ** rng.uniform(0.0, 1.3), 10.0 ** rng.choice([-7.0, -5.0, -3.0])
    width = 3.0 * (knee + deviation)
    places = capacity + width * rng.uniform(-2.0, 1.0, min(trials, 40))
    overload = rng.random(trials) < 0.3
    loads = np.where(overload, rng.uniform(1.05, 2.0, trials) * capacity, rng.choice(places, trials))
    loads = np.maximum(loads, 0.05 * capacity)
    own = np.maximum(capacity + deviation * rng.standard_normal(trials), knee)
    rates = np.exp(function.log_loss_rate(loads, own, np.full(trials, knee)))
    frames = np.maximum(np.round(loads * duration), 1.0)
    lost = np.minimum(rng.poisson(np.minimum(rates * frames / loads, 1e15)), frames)
    rows = np.stack([loads, frames / loads, lost], axis=1)
    limits, kind = np.array([capacity * 10.0 ** rng.uniform(-3.0, -0.3), capacity * rng.uniform(1.05, 3.0)]), "plain"
    if number % 4 == 3:
        rows, limits, kind = rows * [1000.0, 1.0, 1000.0], 1000.0 * limits, "scaled"
    if number % 5 == 4:
        rows, kind = rng.permutation(rows), f"{kind}, permuted"
    question = CriticalLoadQuestion(float(target), float(limits[0]), float(limits[1]))
    loads, exposure, lost = rows.T
    return TrialCounts(loads, exposure, lost, np.cumsum(exposure), exposure), question, kind


def as_rows(counts: TrialCounts, question: CriticalLoadQuestion) -> dict[str, Any]:
    """The list itself, so that a store can be read without this program."""
    return {
        "question": [question.target_loss_ratio, question.min_load, question.max_load],
        "load, exposure, lost": np.stack([counts.load, counts.exposure, counts.lost], axis=1).tolist(),
    }


def reference(counts: TrialCounts, question: CriticalLoadQuestion) -> dict[str, Any]:
    """The brute force's numbers, by function, and its CPU time."""
    started = time.process_time()
    near = estimate_from_counts(counts, question, LikelihoodName.POISSON, Weighting.EVIDENCE)
    known = {}
    for function in FUNCTIONS:
        mean, stdev, log_evidence = brute_force(counts, question, function, near.functions[function.name].mean)
        known[function.name] = {"mean": mean, "stdev": stdev, "log_evidence": log_evidence}
    return {"brute_force_seconds": time.process_time() - started, "functions": known}


def comparison(counts: TrialCounts, question: CriticalLoadQuestion, known: dict[str, Any]) -> dict[str, Any]:
    """Errors of the library's estimate, by function, and its CPU time."""
    started = time.process_time()
    found = {part.name: part for part in posteriors(counts, question, LikelihoodName.VARYING)}
    seconds = time.process_time() - started
    best = max(part["log_evidence"] for part in known["functions"].values())
    return {
        "seconds": seconds,
        "functions": {
            name: {
                "mean_error": (found[name].mean - part["mean"]) / max(part["stdev"], 1e-9 * question.max_load),
                "stdev_error": found[name].stdev / max(part["stdev"], 1e-9 * question.max_load) - 1.0,
                "evidence_error": found[name].log_evidence - part["log_evidence"],
                "error": found[name].error,
                "matters": part["log_evidence"] > best - 6.0,
            }
            for name, part in known["functions"].items()
        },
    }


@dataclass(frozen=True)
class Values:
    """An integrand at some points: its logarithm, and mean and mean square of the critical load below the integral.

    The critical load is counted from a reference, so that no digits are lost.
    """

    log: Array
    mean: Array
    square: Array


def adaptive(evaluate: Callable[[Array], Values], edges: Array, best: float = -np.inf) -> tuple[float, float, float]:
    """The logarithm of an integral, and the critical load's mean and mean square.

    Args:
        evaluate: The integrand.
        edges: Edges of the first panels.
        best: Logarithm of a known height; what is far below does not matter.
    """
    low, high = edges[:-1], edges[1:]
    open_panels = np.stack([low, high], axis=1)
    kept: list[tuple[Array, Array, Array, Array]] = []
    for _ in range(40):
        half = 0.5 * (open_panels[:, 1] - open_panels[:, 0])
        nodes = open_panels[:, :1] + half[:, None] * (1.0 + _NODES)
        values = evaluate(nodes.ravel())
        shape = nodes.shape
        kept.append((open_panels, values.log.reshape(shape), values.mean.reshape(shape), values.square.reshape(shape)))
        panels = np.concatenate([part[0] for part in kept])
        log, mean, square = (np.concatenate([part[index] for part in kept]) for index in (1, 2, 3))
        half = 0.5 * (panels[:, 1] - panels[:, 0])
        top = max(float(log.max()), best)
        density = np.exp(log - top) * half[:, None]
        total = float(np.sum(density @ _WEIGHTS))
        centre = float(np.sum((density * mean) @ _WEIGHTS)) / max(total, 1e-300)
        stdev = np.sqrt(max(float(np.sum((density * square) @ _WEIGHTS)) / max(total, 1e-300) - centre**2, 1e-300))
        tails = sum(
            np.abs(part @ _TO_COEFFICIENTS.T)[:, -2:].max(axis=1)
            for part in (density, density * (mean - centre) / max(stdev, 1e-300))
        )
        rough = tails > SMOOTH * total
        near = log.max(axis=1) > log.max() - DEEP
        rough |= near & (np.abs(np.diff(log, axis=1)).max(axis=1) > JUMP) & (log.max() > best - DEEP)
        rough &= half > 1e-11
        if not rough.any():
            break
        kept = [(panels[~rough], log[~rough], mean[~rough], square[~rough])]
        middle = panels[rough].mean(axis=1)
        open_panels = np.concatenate(
            [np.stack([panels[rough, 0], middle], axis=1), np.stack([middle, panels[rough, 1]], axis=1)]
        )
    log_weight = np.log(half)[:, None] + np.log(_WEIGHTS)
    return _mixed(log + log_weight, mean, square)


def _mixed(log_mass: Array, mean: Array, square: Array) -> tuple[float, float, float]:
    log_total = float(scipy.special.logsumexp(log_mass))
    shares = np.exp(log_mass - log_total)
    return log_total, float(np.sum(shares * mean)), float(np.sum(shares * square))


class Slice:
    """The likelihood at one width of the knee: tables of the capacities that explain each count."""

    def __init__(self, counts: TrialCounts, trials: Array, function: FittingFunction, spread: float) -> None:
        self._counts, self._trials, self._function, self._spread = counts, trials, function, spread
        lost = counts.lost
        self._log_exposure = np.log(counts.exposure)
        root = np.sqrt(np.maximum(lost, 1.0))
        low = np.where(
            lost > 0, np.log(np.maximum(lost, 1.0)) - np.maximum(11.0 / root, 36.0 / np.maximum(lost, 1)), -36
        )
        high = np.where(lost > 0, np.log(np.maximum(lost, 1.0)) + np.minimum(11.0 / root, 4.0), 4.0)
        points = int(np.ceil(((high - low) * root / 0.45).max())) + 1
        step = (high - low) / (points - 1)
        log_mean = low[:, None] + step[:, None] * np.arange(points)
        self._capacity = self._explaining(log_mean)
        slope = function.log_loss(counts.load[:, None], self._capacity, np.full((1, 1), spread)).slope
        count = lost[:, None]
        log_density = np.where(count > 0, count * log_mean, log_mean) - np.exp(log_mean)
        log_density -= scipy.special.gammaln(count + 1.0)
        jacobian = np.where(count > 0, -np.log(-slope), 0.0)
        self._log_weight = log_density + jacobian + np.log(step)[:, None]
        middle = np.argmax(log_density, axis=1)
        self.width = -1.0 / (slope[np.arange(len(lost)), middle] * root)

    def _explaining(self, log_mean: Array) -> Array:
        """Capacities with these mean counts, by halving; not below the width of the knee."""
        wanted, load = log_mean - self._log_exposure[:, None], self._counts.load[:, None]
        spread = np.full((1, 1), self._spread)
        guess = np.maximum(self._function.explaining_mrr(load, wanted, spread), self._spread)
        for _ in range(4):
            loss = self._function.log_loss(load, guess, spread)
            guess = np.maximum(guess - (loss.log_rate - wanted) / loss.slope, self._spread)
        return guess

    def log_likelihood(self, mrr: Array, deviation: Array) -> Array:
        """Logarithm of the trials' probability at mrrs of shape (rows, points), deviations of shape (rows,)."""
        total = np.zeros(mrr.shape)
        sharp = self.width <= deviation[:, None]
        for pairs, compute, points in (
            (np.nonzero(sharp), self._over_counts, self._capacity.shape[1]),
            (np.nonzero(~sharp), self._over_capacities, len(_Z)),
        ):
            size = max(1, POINTS_AT_ONCE // (mrr.shape[1] * points))
            for at in range(0, len(pairs[0]), size):
                row, which = (part[at : at + size] for part in pairs)
                values = compute(mrr[row], deviation[row][:, None, None], which)
                np.add.at(total, row, self._trials[which][:, None] * values)
        return total

    def _over_counts(self, mrr: Array, own: Array, which: NDArray[np.intp]) -> Array:
        distance = (mrr[:, :, None] - self._capacity[which][:, None, :]) / own
        lossless = self._counts.lost[which] == 0
        terms = self._log_weight[which][:, None, :] - 0.5 * distance**2 - 0.5 * np.log(2.0 * np.pi) - np.log(own)
        if lossless.any():
            terms[lossless] = self._log_weight[which][lossless][:, None, :] + scipy.special.log_ndtr(distance[lossless])
        return _log_sum(terms)

    def _over_capacities(self, mrr: Array, own: Array, which: NDArray[np.intp]) -> Array:
        capacity = np.maximum(mrr[:, :, None] + own * _Z, self._spread)
        load, lost = self._counts.load[which][:, None, None], self._counts.lost[which][:, None, None]
        log_rate = self._function.log_loss_rate(load, capacity, np.full((1, 1, 1), self._spread))
        log_mean = log_rate + self._log_exposure[which][:, None, None]
        terms = lost * log_mean - np.exp(np.minimum(log_mean, 600.0)) - scipy.special.gammaln(lost + 1.0)
        return _log_sum(terms + _LOG_Z)


def _log_sum(terms: Array) -> Array:
    top = terms.max(axis=-1, keepdims=True)
    return np.asarray((top + np.log(np.sum(np.exp(terms - top), axis=-1, keepdims=True)))[..., 0])


def brute_force(
    counts: TrialCounts, question: CriticalLoadQuestion, function: FittingFunction, near: float
) -> tuple[float, float, float]:
    """Mean and standard deviation of the critical load, and the logarithm of the evidence.

    Args:
        counts: The trials.
        question: Target and limits.
        function: The fitting function.
        near: The critical load from which critical loads are counted.
    """
    columns = np.stack([counts.lost, counts.load, counts.exposure])
    _, first, multiplicity = np.unique(columns, axis=1, return_index=True, return_counts=True)
    groups, trials = counts.at(first), multiplicity.astype(float)
    prior = Prior(question.max_load / 2.0)
    lossy = counts.lost > 0
    forwarded = (counts.load - counts.lost / counts.exposure)[lossy]
    forwarded = forwarded[forwarded > 0]
    scale = float(np.median(forwarded)) if len(forwarded) else float(counts.load.max())
    deviations = np.log([1e-6 * scale, 0.1 * scale])
    ceiling = prior.highest_log_mrr(30.0)
    best = -np.inf

    def at_spread(log_spread: float) -> tuple[float, float, float]:
        nonlocal best
        own = Slice(groups, trials, function, float(np.exp(log_spread)))
        top = _highest(own, prior, deviations, log_spread, ceiling)
        if top < best - DEEP - 10.0:
            return top, 0.0, 0.0

        def at_deviations(log_deviation: Array) -> Values:
            return _rows(own, prior, question, function, near, log_spread, np.exp(log_deviation), ceiling, best)

        log_total, mean, square = adaptive(at_deviations, np.linspace(deviations[0], deviations[1], 5), best - 8.0)
        best = max(best, log_total)
        return log_total, mean, square

    def at_spreads(log_spread: Array) -> Values:
        parts = np.array([at_spread(float(one)) for one in log_spread])
        return Values(parts[:, 0], parts[:, 1], parts[:, 2])

    # Mrr and width of the knee may rise together: 5e-3 of the mass has been 3 nats above the maximum load.
    last = float(np.log(max(question.max_load, counts.load.max()))) + BEYOND
    log_total, mean, square = adaptive(at_spreads, np.linspace(1e-9, last, 11))
    return near + mean, float(np.sqrt(max(square - mean**2, 0.0))), log_total - float(np.log(np.ptp(deviations)))


def _highest(own: Slice, prior: Prior, deviations: Array, log_spread: float, ceiling: float) -> float:
    """About the highest density at this width of the knee, at 8 deviations."""
    return float(
        _zoomed(own, prior, np.exp(np.linspace(deviations[0], deviations[1], 8)), log_spread, ceiling)[1].max()
    )


def _zoomed(
    own: Slice, prior: Prior, deviation: Array, log_spread: float, ceiling: float
) -> tuple[Array, Array, Array, Array]:
    """The maximum of each row over log m and its height; all places looked at, and the densities there."""
    low, high = np.full(len(deviation), log_spread), np.full(len(deviation), ceiling)
    rows, every_x, every_y = np.arange(len(deviation)), [], []
    for _ in range(18):
        x = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, 11)
        y = own.log_likelihood(np.exp(x), deviation) + prior.log_density(x)
        every_x.append(x)
        every_y.append(y)
        most = np.argmax(y, axis=1)
        low, high = x[rows, np.maximum(most - 1, 0)], x[rows, np.minimum(most + 1, 10)]
        if np.all(np.ptp(y, axis=1) < 1.0) or np.all(high - low < 1e-12 * np.abs(high)):
            break
    x, y = np.concatenate(every_x, axis=1), np.concatenate(every_y, axis=1)
    most = np.argmax(y, axis=1)
    return x[rows, most], y[rows, most], x, y


def _rows(
    own: Slice,
    prior: Prior,
    question: CriticalLoadQuestion,
    function: FittingFunction,
    reference: float,
    log_spread: float,
    deviation: Array,
    ceiling: float,
    best: float,
) -> Values:
    """Integrals over log m: panels between places that are 1, 5, 13 and 28 nats below the maximum, and the limits."""
    mode, top, x, y = _zoomed(own, prior, deviation, log_spread, ceiling)
    count, spread = len(deviation), float(np.exp(log_spread))
    least = np.full(2 * count, spread)
    curves = Curves(function, least, least, np.repeat(deviation, 2))
    limits = np.tile([question.min_load, question.max_load], count)
    at_limits = np.log(mrr_of_critical_load(curves, question, limits, float(np.exp(ceiling)))).reshape(count, 2)
    cuts = [mode]
    for depth in (1.0, 5.0, 13.0, 28.0):
        deep = y < (top - depth)[:, None]
        cuts.append(np.where(deep & (x < mode[:, None]), x, log_spread).max(axis=1))
        cuts.append(np.where(deep & (x > mode[:, None]), x, ceiling).min(axis=1))
    inner = np.clip(at_limits, cuts[-2][:, None], cuts[-1][:, None])
    edges = np.sort(np.column_stack([*cuts, inner]), axis=1)
    half = 0.5 * np.diff(edges, axis=1)[:, :, None]
    log_mrr = (edges[:, :-1, None] + half * (1.0 + _INNER_NODES)).reshape(count, -1)
    with np.errstate(divide="ignore"):
        log_mass = (np.log(half) + np.log(_INNER_WEIGHTS)).reshape(count, -1) + prior.log_density(log_mrr)
    log_mass += own.log_likelihood(np.exp(log_mrr), deviation)
    known = log_mass > np.maximum(log_mass.max(axis=1, keepdims=True), best - 12.0) - DEEP
    own_deviation = np.broadcast_to(deviation[:, None], log_mrr.shape)[known]
    many = Curves(function, np.exp(log_mrr[known]), np.full(len(own_deviation), spread), own_deviation)
    offset = np.zeros(log_mrr.shape)
    offset[known] = critical_load(many, question) - reference
    log_total = scipy.special.logsumexp(log_mass, axis=1)
    shares = np.exp(log_mass - log_total[:, None])
    return Values(log_total, np.sum(shares * offset, axis=1), np.sum(shares * offset**2, axis=1))


if __name__ == "__main__":
    main()
