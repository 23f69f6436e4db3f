"""The SUTs of a study: models with drawn parameters, and the loads of the searches on them."""

import json
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import numpy as np
from pydantic.dataclasses import dataclass as pydantic_dataclass

from lossratio.errors import SearchError
from lossratio.simulation import GRACEFUL, Overload, Recorded, RunningSut, SimulatedMeasurer, Sut, Traffic, WithoutTruth
from lossratio.values import FAILURES


class Named(Protocol):
    """Anything that has a name."""

    @property
    def name(self) -> str:
        """Its name in tables."""


NamedT = TypeVar("NamedT", bound=Named)


def named(*objects: NamedT) -> Mapping[str, NamedT]:
    """Objects by their names."""
    return MappingProxyType({one.name: one for one in objects})


Draw = np.random.Generator
"""The random numbers that a SUT's parameters are drawn from."""


@dataclass(frozen=True)
class Overhead:
    """Time that each trial takes besides its traffic."""

    seconds: float
    """Its length."""
    counted: bool = False
    """Whether it counts towards the goals' duration sums (in the effective duration), as FD.io CSIT's does."""

    def __str__(self) -> str:
        if self.counted:
            return f"{self.seconds:g}-counted"
        return f"{self.seconds:g}"


NO_OVERHEAD = Overhead(0.0)


@dataclass(frozen=True)
class Subject:
    """A SUT that all algorithms search on."""

    family: str
    """Name of its family."""
    seed: int
    """Seed of its parameters."""
    sut: Sut | None
    """The model; None: it is a testbed's, and has none."""
    min_load: float
    """Smallest load of a search, in frames per second."""
    max_load: float
    """Largest load of a search, in frames per second."""
    max_rate: float | None = None
    """Frames per second that the generator can send; None: any number. Frames above that are unsent, and count as
    lost."""

    def measurer(self, overhead: Overhead, *stream: int) -> SimulatedMeasurer:
        """A measurer on the SUT, freshly started. The same stream of random numbers makes the same measurer.

        Raises:
            SearchError: If there is no model of the SUT.
        """
        if self.sut is None:
            raise SearchError(f"There is no model of the SUT of {self.family}.")
        entropy = np.random.SeedSequence((self.seed, _number(self.family), *stream))
        return SimulatedMeasurer(
            self.sut,
            seed=int(entropy.generate_state(1, np.uint64)[0]),
            overhead=overhead.seconds,
            count_overhead=overhead.counted,
            max_rate=self.max_rate,
        )


@dataclass(frozen=True)
class Family:
    """SUTs of one kind, with different parameters for each seed."""

    name: str
    """Its name in tables."""
    group: str
    """``quiet``, ``jittery``, ``mix`` or ``recorded``."""
    make: Callable[[Draw, float, Overload], Sut]
    """Draws a model for a largest load in frames per second, with a behaviour in overload (models without overload
    ignore it)."""
    max_loads: tuple[float, ...]
    """Largest loads of searches, in frames per second; one of them is drawn."""
    min_load: float
    """Smallest load of a search, in frames per second."""
    generator: float | None = None
    """The share of the largest load that the generator can send; None: all of it."""
    record: Recorded | None = None
    """The record of trials that the SUTs replay; None: the SUTs are drawn."""

    def subject(self, seed: int) -> Subject:
        """The SUT of a seed. With an odd seed it forwards less than its capacity in overload."""
        draw = np.random.default_rng((seed, _number(self.name)))
        max_load = float(draw.choice(self.max_loads))
        overload = GRACEFUL
        if seed % 2:
            overload = Overload(drop_cost=draw.uniform(0.05, 0.6), dip=draw.uniform(0.0, 0.1))
        max_rate = None if self.generator is None else self.generator * max_load
        return Subject(self.name, seed, self.make(draw, max_load, overload), self.min_load, max_load, max_rate)


@pydantic_dataclass(frozen=True)
class RecordedNights(Recorded):
    """A SUT that was searched in several nights: their trials are one record, in the order measured."""

    later: tuple[Path, ...] = ()
    """The records of the later nights, in their order."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of all nights."""
        return (self.file, *self.later)


def recorded_families(directory: Path) -> Mapping[str, Family]:
    """Recorded SUTs in a directory and below: a family for each record, by the name of its first file there.

    The journals of one test with the same traffic are one record. Each seed begins at another trial of the record.
    Searches are between the lowest and the highest recorded load.
    """
    nights: dict[str, list[Path]] = {}
    found = sorted(directory.rglob("*.jsonl"))
    files = [file for file in found if file.name != FAILURES and (file.is_file() or file.is_symlink())]
    for file in sorted(files, key=lambda file: str(_header(file).get("created", ""))):
        nights.setdefault(_test_of(file), []).append(file)

    families = {}
    for first, *later in nights.values():
        name = str(first.relative_to(directory))
        record = RecordedNights(first, later=tuple(later))
        loads = record.loads()
        families[name] = Family(name, "recorded", _always(record), (loads[-1],), loads[0], record=record)
    if not families:
        raise SearchError(f"There is no record of trials (*.jsonl) in {directory}.")
    return families


def _test_of(file: Path) -> str:
    """The origin of a file's trials: for a journal, the test with its traffic and device; otherwise the file itself."""
    header = _header(file)
    try:
        test = header["about"]["test"]
        search = header["search"]
        what = [test["suite"], test["name"], search.get("traffic"), search.get("dut")]
    except (LookupError, TypeError, AttributeError):
        return str(file)
    return json.dumps(what, sort_keys=True)


@lru_cache
def _header(file: Path) -> Mapping[str, Any]:
    """The header of a journal; of another record, its first trial; empty: there is neither."""
    try:
        with file.open(encoding="utf-8") as lines:
            first = json.loads(next(lines, "{}"))
    except (OSError, ValueError):
        # The error is shown when the trials are read.
        return {}
    return first if isinstance(first, dict) else {}


def _always(sut: Sut) -> Callable[[Draw, float, Overload], Sut]:
    def made(draw: Draw, max_load: float, overload: Overload) -> Sut:
        return sut

    return made


def log_uniform(draw: Draw, low: float, high: float) -> float:
    """Draws a number with a uniform logarithm."""
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def _number(name: str) -> int:
    return zlib.crc32(name.encode())


@dataclass(frozen=True)
class Series(WithoutTruth):
    """A SUT made of parts, such as a noisy worker in front of a link that stalls. Its truth is not known."""

    parts: tuple[Sut, ...]
    """The SUTs, in the order in which frames pass them."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """All parts in their initial states."""
        running = [part.start(rng) for part in self.parts]

        def lost_frames(traffic: Traffic) -> int:
            left = traffic.frames
            for part in running:
                if left:
                    left -= part(replace(traffic, frames=left))
            return traffic.frames - left

        return lost_frames


@dataclass(frozen=True)
class Scaled:
    """Another SUT that is made faster by a factor, as by a new version of its software."""

    part: Sut
    """The other SUT."""
    factor: float
    """How much faster this SUT is; above 0."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """Starts the other SUT, and gives it fewer or more frames."""
        running = self.part.start(rng)

        def lost_frames(traffic: Traffic) -> int:
            lost = running(replace(traffic, frames=max(1, round(traffic.frames / self.factor))))
            return min(traffic.frames, math.ceil(lost * self.factor))

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """The truth of the other SUT, times the factor."""
        truth = self.part.truth(loss_ratio=loss_ratio, duration=duration, exceed_ratio=exceed_ratio)
        return None if truth is None else truth * self.factor
