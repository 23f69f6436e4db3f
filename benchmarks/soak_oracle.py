"""The largest share of drawn devices for which any method could state a right load: an oracle instead of a search.

    python benchmarks/soak_oracle.py --seconds 60 300 1800 --drawn 0 2000

For a device with one kind of pause, the oracle knows everything but how often it pauses and for how long, and
from which distribution both were drawn. In the given time it sees each pause that overflows the ring at the maximum
load of a search, with its exact length. No trials show as much. It states the load that is most probably .9 to 1.0 of
the truth. Other devices count as right.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import numpy as np
from soak_devices import CAPACITY, Family, Pause, Stalls
from soak_drawn import LEAST, PAUSE_LENGTHS, PAUSES_EVERY, SHORTER_IF_VARIED, family_named

MOST = 1.6 * CAPACITY
"""The maximum load of the searches of `soak_judge.py`, in frames per second."""
_OFTEN, _LONG = 240, 400
"""Points of the grids of periods and of lengths."""


@dataclass(frozen=True)
class Known:
    """What the oracle concludes: possible critical loads, and their probabilities."""

    loads: np.ndarray
    """Frames per second."""
    chances: np.ndarray
    """Their probabilities, which add up to 1."""

    def best(self) -> float:
        """Largest probability of stating .9 to 1.0 of the critical load."""
        order = np.argsort(self.loads)
        loads = self.loads[order]
        below = np.concatenate([[0.0], np.cumsum(self.chances[order])])
        ends = np.searchsorted(loads, loads / 0.9, side="right")
        return float((below[ends] - below[np.searchsorted(loads, loads)]).max())


def main() -> None:
    """Asks the oracle about the devices of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", nargs="+", type=float, default=[60.0, 300.0, 1800.0])
    parser.add_argument("--drawn", nargs=2, type=int, metavar=("FIRST", "LAST"), default=(0, 2000))
    arguments = parser.parse_args()
    found: dict[float, dict[str, list[float]]] = {seconds: {} for seconds in arguments.seconds}
    for number in range(*arguments.drawn):
        family = family_named(f"drawn {number}")
        for seconds, kinds in found.items():
            kind, chance = asked(family, number, seconds)
            kinds.setdefault(kind, []).append(chance)
    for seconds, kinds in found.items():
        print(
            f"{seconds:.0f} s:", *(f"{kind} {len(each)}: {np.mean(each):.3f};" for kind, each in sorted(kinds.items()))
        )
        every = np.concatenate(list(kinds.values()))
        print(f"  all {len(every)}: {every.mean():.3f} +- {every.std() / np.sqrt(len(every)):.3f}")


def asked(family: Family, number: int, seconds: float) -> tuple[str, float]:
    """The kind of a drawn device, and the oracle's probability of a right load after that many seconds of pauses."""
    if len(family.device.pauses) != 1:
        return ("several pauses" if family.device.pauses else "no pauses"), 1.0
    pause = family.device.pauses[0]
    others = replace(family, device=replace(family.device, pauses=()))
    most = others.critical_load(family.scale_at(seconds, 10_000))
    rng = np.random.default_rng([number, int(seconds)])
    if isinstance(pause, Stalls):
        # Such a device is drawn only if its stalls lose less than the target: other losses decide.
        return "stalls", 1.0
    if pause.jitter is not None:
        return "jittered pauses", 1.0
    kind = "exponential pauses" if pause.varies else "pauses of other lengths" if pause.spread else "equal pauses"
    return kind, _of_pauses(pause, most, family.target, seconds, rng).best()


def _spaced(low: float, high: float, number: int) -> np.ndarray:
    return np.asarray(np.geomspace(low, high, number + 1)[:-1] * (high / low) ** (0.5 / number))


def _of_pauses(pause: Pause, most: float, target: float, seconds: float, rng: np.random.Generator) -> Known:
    number = rng.poisson(seconds / pause.every)
    lengths = pause.length * (1.0 + pause.spread * rng.uniform(-1.0, 1.0, number))
    if pause.varies:
        lengths = rng.exponential(pause.length, number)
    overflows = pause.ring / MOST
    seen = lengths[lengths > overflows]

    fill = pause.ring / CAPACITY / (SHORTER_IF_VARIED if pause.varies else 1.0)
    low, high = (fill * factor for factor in PAUSE_LENGTHS)
    if len(seen) and not pause.varies:
        # The length is between what the longest and the shortest one that were seen allow.
        low = max(low, seen.max() / (1.0 + pause.spread))
        high = min(high, seen.min() / (1.0 - pause.spread)) if pause.spread else low
    # All lengths are equally likely beforehand.
    length = low + (high - low) * (np.arange(_LONG) + 0.5)[None, :] / _LONG
    every = _spaced(*PAUSES_EVERY, _OFTEN)[:, None]
    if pause.varies:
        share = np.exp(-overflows / length)
        log_density = -len(seen) * np.log(length) - (seen - overflows).sum() / length
    elif pause.spread:
        share = np.clip(((1.0 + pause.spread) * length - overflows) / (2.0 * pause.spread * length), 0.0, 1.0)
        # The probability of the lengths that were seen, among those that overflow.
        log_density = -len(seen) * np.log(length * np.maximum(share, 1e-300))
    else:
        share = (length > overflows).astype(float)
        log_density = 0.0 * length
    return _concluded(seconds / every * share, len(seen), log_density, _allowed(pause, every, length, most, target))


def _allowed(pause: Pause, every: np.ndarray, length: np.ndarray, most: float, target: float) -> np.ndarray:
    """The critical load of pauses that come so often and are so long, in frames per second."""
    shape = len(every), length.shape[1]
    low = np.full(shape, np.log(1e-4 * CAPACITY))
    high = np.full(shape, np.log(most))
    for _ in range(25):
        middle = 0.5 * (low + high)
        full = pause.ring / np.exp(middle)
        if pause.varies:
            lost = length * np.exp(-full / length)
        elif pause.spread:
            longest = (1.0 + pause.spread) * length
            shortest = (1.0 - pause.spread) * length
            over = np.maximum(longest - full, 0.0)
            lost = np.where(full < shortest, length - full, over**2 / (4.0 * pause.spread * length))
        else:
            lost = np.maximum(length - full, 0.0)
        is_below = lost < target * every
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray(np.exp(0.5 * (low + high)))


def _concluded(expected: np.ndarray, seen: int, log_density: np.ndarray | float, loads: np.ndarray) -> Known:
    """The critical loads after so many events where so many are expected; too low ones are not drawn."""
    log_chance = seen * np.log(np.maximum(expected, 1e-300)) - expected + log_density
    log_chance = np.where(loads > LEAST * CAPACITY, log_chance, -np.inf)
    chances = np.exp(log_chance - log_chance.max())
    return Known(loads.ravel(), (chances / chances.sum()).ravel())


if __name__ == "__main__":
    main()
