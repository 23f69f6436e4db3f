"""Devices drawn at random, for `soak.py`. Those of a new seed are devices that no rule was made with.

Number 17 is always the same one. One of four is healthy; the others lose frames in batches, pause, change, vary, have
bit errors or a bucket, and some do two of these.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

from soaks.devices import (
    CAPACITY,
    FAMILIES,
    KINDS,
    Device,
    Family,
    Pause,
    Rate,
    Stalls,
    after,
    after_all,
    knee,
    m_m_1,
    normal,
    queues,
    sharp,
    step,
    warming,
    warming_up,
)

SEED = 2026
"""The usual seed of the devices, which makes tables repeatable."""
_LEAST = 0.05
"""Minimum critical load of a device, as a share of its capacity."""
_RINGS = (512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0)
_PAUSES_EVERY = 0.05, 40.0
"""The shortest and longest mean seconds between pauses."""
_PAUSE_LENGTHS, _SHORTER_IF_VARIED = (0.3, 6.0), 3.0
"""The shortest and longest pause, as a share of the seconds in which a ring fills up at the capacity; and how much
shorter pauses are on average if their lengths are exponentially distributed."""
_HEALTHY_SHARE = 0.25
"""Share of the devices that are healthy."""
_TWO_SHARE = 0.2
"""Share of the others that have two faults."""


def family_named(name: str, seed: int = SEED) -> Family:
    """The family or kind of that name, or the device drawn with that number: ``drawn 17``."""
    known = {**FAMILIES, **KINDS}
    if name in known:
        return known[name]
    return _drawn(int(name.removeprefix("drawn ")), seed)


def _drawn(number: int, seed: int) -> Family:
    rng = np.random.default_rng([seed, number])
    device = Device(_knee(rng))
    if rng.random() < _HEALTHY_SHARE:
        if rng.random() < 0.3:
            device = Device(sharp, drawn=normal(_between(rng, 5e-4, 5e-3)))
        return Family(device, True, frozenset({"varies"} if device.drawn else ()))

    while True:
        faults = rng.permutation(len(_FAULTS))[: 1 + (rng.random() < _TWO_SHARE)]
        found, traits = device, ""
        for fault in faults:
            found, more = _FAULTS[fault](found, rng)
            traits += f" {more}"
        family = Family(found, False, frozenset(traits.split()))
        # A bucket is that of a sharp knee, and not of a pausing one.
        is_possible = not found.bucket or found.knee is sharp
        if is_possible and family.critical_load(found.scale(10_000, 1e5)) > _LEAST * CAPACITY:
            return family


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """All orders of magnitude are equally likely."""
    return float(low * (high / low) ** rng.random())


def _knee(rng: np.random.Generator) -> Rate:
    kind = rng.integers(5)
    if kind == 0:
        return queues(rng.uniform(1.0, _between(rng, 1.01, 1.4), rng.integers(2, 17)).tolist())
    if kind == 1:
        places = int(_between(rng, 128, 2048))
        return lambda load: m_m_1(load, places)
    if kind == 2:
        return knee(_between(rng, 5e4, 3e5), "erf")
    return knee(_between(rng, 1e3, 1e5))


def _batches(device: Device, rng: np.random.Generator) -> tuple[Device, str]:
    batch = float(round(_between(rng, 8, 256)))
    return replace(device, batch=batch, varied_batch=bool(rng.random() < 0.25)), "batches"


def _pauses(device: Device, rng: np.random.Generator) -> tuple[Device, str]:
    ring = float(rng.choice(_RINGS))
    length = ring / CAPACITY * rng.uniform(*_PAUSE_LENGTHS)
    every = _between(rng, *_PAUSES_EVERY)
    kind = rng.integers(4)
    # Table: how lengths and periods of pauses differ.
    pause = (
        Pause(every, length, ring),
        Pause(every, length, ring, jitter=rng.uniform(0.0, 0.4)),
        Pause(every, length, ring, spread=rng.uniform(0.1, 0.8)),
        Pause(every, length / _SHORTER_IF_VARIED, ring, varies=True),
    )[kind]
    return replace(device, pauses=(*device.pauses, pause)), "pauses"


def _stalls(device: Device, rng: np.random.Generator) -> tuple[Device, str]:
    stalls = Stalls(_between(rng, 5.0, 100.0), round(_between(rng, 5, 200)))
    return replace(device, pauses=(*device.pauses, stalls)), "pauses"


def _changes(device: Device, rng: np.random.Generator) -> tuple[Device, str]:
    change = _between(rng, 0.002, 0.03) * rng.choice([-1.0, 1.0])
    time = rng.uniform(10.0, 200.0)
    # Table: how a device changes.
    scale = (
        after(int(rng.integers(3, 40)), 1.0 - abs(change)),
        step(time, change),
        warming(0.3 * change, time),
        warming_up(abs(change), 0.1 * time),
        after_all(step(time, change), step(2.0 * time, -0.5 * change)),
    )[rng.integers(5)]
    return replace(device, scale=scale), "changes"


def _varies(device: Device, rng: np.random.Generator) -> tuple[Device, str]:
    deviation = _between(rng, 5e-4, 4e-3)
    freedom = rng.uniform(4.0, 12.0)

    def heavy(share: np.ndarray) -> np.ndarray:
        return np.asarray(1.0 + deviation * stats.t.ppf(share, freedom))

    return replace(device, knee=sharp, drawn=heavy if rng.random() < 0.5 else normal(deviation)), "varies"


def _errors(device: Device, rng: np.random.Generator) -> tuple[Device, str]:
    return replace(device, errors=_between(rng, 3e-9, 0.8e-7)), ""


def _bucket(device: Device, rng: np.random.Generator) -> tuple[Device, str]:
    return replace(device, knee=sharp, exact=True, bucket=_between(rng, 1e-3, 0.1)), "long"


_FAULTS = (_batches, _pauses, _pauses, _pauses, _stalls, _changes, _varies, _errors, _bucket)
"""What may be wrong with a device; pauses are as frequent as they are among real ones."""
