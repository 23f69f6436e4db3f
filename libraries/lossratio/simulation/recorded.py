"""A SUT that is the record of another one: trials that were measured once, at some loads, are measured again.

A record is a journal, or a file of JSON lines with a line for each trial in the order measured:

{"load": 450000, "frames": 4499999, "lost": 22153}

`load` is per interface in frames per second, `frames` were sent, and so many of them were `lost`. The duration of a
recorded trial does not matter: a trial of a search loses the same share, whatever its own duration.
"""

import json
import math
from bisect import bisect_left, bisect_right
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass as pydantic_dataclass

from lossratio.errors import SearchError
from lossratio.simulation.sut import STRICT, RunningSut, Traffic, WithoutTruth
from lossratio.trials import read_journal

NOTHING = 0.5
"""Frames that a trial without loss counts as between two loads, where a logarithm is needed."""
_ROUNDING = 1e-6
Sequence = NDArray[np.float64]
"""The trials at one load, in the order measured: a row of frames lost, at least `NOTHING`, and a row of frames sent."""


@pydantic_dataclass(frozen=True, config=STRICT)
class Recorded(WithoutTruth):
    """A SUT that loses what another one lost in recorded trials.

    Each trial of a search takes the next trial of the record, from a random one on, so the record's order in time is
    kept. Beyond the recorded loads, the lowest one's trials lose the same share, and the highest one's forward the same
    rate.
    """

    file: Path
    """The record."""
    between: Literal["interpolated", "either"] = "interpolated"
    """The loss between two recorded loads: by the same trial at both, in logarithms of the loss ratio; or that of
    either load by chance, the nearer one more often."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the record, in the order measured."""
        return (self.file,)

    def loads(self) -> tuple[float, ...]:
        """The recorded loads, ascending, in frames per second per interface."""
        return tuple(_record(self.files))

    def fewest_trials(self, low: float, high: float) -> int:
        """The least number of trials at a load from one to another, and at the next ones around them."""
        record = _record(self.files)
        loads = list(record)
        first = max(0, bisect_right(loads, low) - 1)
        last = min(len(loads) - 1, bisect_left(loads, high))
        return min(int(record[load].shape[1]) for load in loads[first : last + 1])

    def lossy(self, loss_ratio: float) -> dict[float, float]:
        """The share of trials that lost more than a ratio, by recorded load."""
        record = _record(self.files).items()
        return {
            load: float(np.mean(np.floor(lost) > loss_ratio * sent))
            for load, (lost, sent) in record
        }

    def start(self, rng: np.random.Generator) -> RunningSut:
        """Begins at a random trial of the record."""
        record = _record(self.files)
        loads, logs = list(record), np.log(list(record))
        number = int(rng.integers(max(sequence.shape[1] for sequence in record.values())))
        ratio = 0.0
        sent = 0
        lost = 0

        def lost_frames(traffic: Traffic) -> int:
            nonlocal number, ratio, sent, lost
            if not traffic.continues:
                place = float(np.interp(math.log(traffic.load), logs, np.arange(len(loads))))
                if self.between == "either":
                    place = math.floor(place + rng.random())
                below = record[loads[math.floor(place)]]
                above = record[loads[math.ceil(place)]]
                ratio = _loss_ratio(below, above, place - math.floor(place), number)
                if traffic.load > loads[-1]:
                    ratio = 1.0 - (1.0 - ratio) * loads[-1] / traffic.load
                number += 1
                sent = 0
                lost = 0

            sent += traffic.frames
            before = lost
            lost = math.ceil(ratio * sent * (1.0 - _ROUNDING))
            return lost - before

        return lost_frames


def _loss_ratio(below: Sequence, above: Sequence, share: float, number: int) -> float:
    """The loss ratio of a trial between two loads, so far from the lower to the upper one; 0: less than a frame."""
    first, second = (np.log(sequence[:, number % sequence.shape[1]]) for sequence in (below, above))
    lost, sent = np.exp(first + share * (second - first))
    if lost >= 1.0 - _ROUNDING:
        return float(lost / sent)
    return 0.0


@lru_cache
def _record(files: tuple[Path, ...]) -> dict[float, Sequence]:
    trials: dict[float, list[tuple[float, float]]] = {}
    for file in files:
        for number, (load, frames, lost) in enumerate(_trials(file), 1):
            if not (0.0 < load < math.inf and frames > 0 and 0 <= lost <= frames):
                raise SearchError(
                    f"{file}, trial {number}: {lost} of {frames} frames lost at {load} frames/s is not a possible "
                    "trial."
                )
            trials.setdefault(load, []).append((max(NOTHING, lost), frames))
        if not trials:
            raise SearchError(f"{file} has no trials to replay.")
    return {load: np.array(trials[load]).T for load in sorted(trials)}


def _trials(file: Path) -> list[tuple[float, float, float]]:
    """Load, frames sent and frames lost of each trial."""
    try:
        first, *_ = lines = file.read_text().splitlines() or [""]
        if '"lost"' not in first:
            return [
                (
                    trial.load,
                    trial.load * trial.duration,
                    trial.loss_ratio * trial.load * trial.duration,
                )
                for trial in read_journal(file).results
            ]

        records = [json.loads(line) for line in lines if line.strip()]
        return [
            (float(record["load"]), float(record["frames"]), float(record["lost"]))
            for record in records
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SearchError(
            f"{file} is neither a journal nor a record of trials, such as "
            f'{{"load": 450000, "frames": 4499999, "lost": 22153}} in each line: {error!r}.'
        ) from error
