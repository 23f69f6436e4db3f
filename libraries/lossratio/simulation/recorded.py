"""A SUT that replays the record of another SUT: trials that were once measured at some loads are measured again.

A record is a journal, or a file of JSON lines with a line for each trial in the order measured:

{"load": 450000, "frames": 4499999, "lost": 22153}

`load` is per interface in frames per second, `frames` were sent, and `lost` of them were lost. The duration of a
recorded trial does not matter: a trial of a search loses the same share, no matter how long it is.
"""

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lossratio.errors import SearchError
from lossratio.simulation.sut import RunningSut, Traffic, WithoutTruth, sut_model
from lossratio.trials import TrialResult, read_journal

NOTHING = 0.5
"""A trial without loss counts as this many lost frames between two loads, where a logarithm is needed."""
_ROUNDING = 1e-6
Between = Literal["interpolated", "either"]
Sequence = NDArray[np.float64]
"""The trials at one load, in the order measured: a row of frames lost, at least `NOTHING`, and a row of frames sent."""


@sut_model
class Recorded(WithoutTruth):
    """A SUT that loses as many frames as another SUT lost in recorded trials.

    Each trial of a search takes the next trial of the record, beginning with a random one, so the record's order in
    time is kept. Below the recorded loads, trials lose the same share as at the lowest load. Above them, trials forward
    the same rate as at the highest load.
    """

    file: Path
    """The record."""
    between: Between = "interpolated"
    """The loss between two recorded loads: interpolated between the same trial at both loads, in logarithms of the loss
    ratio, or the loss at either load at random (more often at the nearer one)."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the record, in the order measured."""
        return (self.file,)

    def loads(self) -> tuple[float, ...]:
        """The recorded loads, ascending, in frames per second per interface."""
        return tuple(_record(self.files))

    def fewest_trials(self, low: float, high: float) -> int:
        """The minimum number of trials at a load within a range, including the next loads around the range."""
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
        replay = Replay(_record(self.files), rng, self.between)
        ratio = 0.0
        sent = 0
        lost = 0

        def lost_frames(traffic: Traffic) -> int:
            nonlocal ratio, sent, lost
            if not traffic.continues:
                ratio = replay.loss_ratio(traffic.load)
                sent = 0
                lost = 0

            sent += traffic.frames
            before = lost
            lost = math.ceil(ratio * sent * (1.0 - _ROUNDING))
            return lost - before

        return lost_frames


class Replay:
    """The trials of a record, beginning with a random one."""

    def __init__(
        self, record: Mapping[float, Sequence], rng: np.random.Generator, between: Between
    ) -> None:
        """Begins at a random trial.

        Args:
            record: The trials by load, ascending, in frames per second; see `record_of`.
            rng: Random numbers.
            between: See `Recorded`.
        """
        self._record = record
        self._loads = list(record)
        self._logs = np.log(self._loads)
        self._rng = rng
        self._between = between
        self._number = int(rng.integers(max(sequence.shape[1] for sequence in record.values())))

    def loss_ratio(self, load: float) -> float:
        """The loss ratio of the next trial.

        Args:
            load: Its load, in frames per second.
        """
        place = float(np.interp(math.log(load), self._logs, np.arange(len(self._loads))))
        if self._between == "either":
            place = math.floor(place + self._rng.random())
        below = self._record[self._loads[math.floor(place)]]
        above = self._record[self._loads[math.ceil(place)]]
        ratio = _loss_ratio(below, above, place - math.floor(place), self._number)
        self._number += 1
        if load > self._loads[-1]:
            return 1.0 - (1.0 - ratio) * self._loads[-1] / load
        return ratio


def record_of(trials: Iterable[tuple[float, float, float]]) -> dict[float, Sequence]:
    """The record of trials, in the order measured.

    Args:
        trials: Load of each trial (frames per second), frames sent and frames lost.

    Returns:
        An array for each load, with a column for each trial. The first row has the frames lost (at least `NOTHING`),
        and the second one the frames sent.
    """
    by_load: dict[float, list[tuple[float, float]]] = {}
    for load, frames, lost in trials:
        by_load.setdefault(load, []).append((max(NOTHING, lost), frames))
    return {load: np.array(by_load[load]).T for load in sorted(by_load)}


def _loss_ratio(below: Sequence, above: Sequence, share: float, number: int) -> float:
    """The loss ratio at a share of the way from the lower to the upper load; 0: less than a frame is lost."""
    first, second = (np.log(sequence[:, number % sequence.shape[1]]) for sequence in (below, above))
    lost, sent = np.exp(first + share * (second - first))
    if lost >= 1.0 - _ROUNDING:
        return float(lost / sent)
    return 0.0


def _record(files: tuple[Path, ...]) -> dict[float, Sequence]:
    """The record of some files, which is read again only if a file has been written since."""
    return _record_as_of(files, tuple(map(_written, files)))


def _written(file: Path) -> tuple[int, int]:
    """When a file was written, and how large it is; zeros: it cannot be read."""
    try:
        state = file.stat()
    except OSError:
        return 0, 0
    return state.st_mtime_ns, state.st_size


@lru_cache
def _record_as_of(
    files: tuple[Path, ...], written: tuple[tuple[int, int], ...]
) -> dict[float, Sequence]:
    trials: list[tuple[float, float, float]] = []
    for file in files:
        of_file = _trials(file)
        for number, (load, frames, lost) in enumerate(of_file, 1):
            if not (0.0 < load < math.inf and frames > 0 and 0 <= lost <= frames):
                raise SearchError(
                    f"{file}, trial {number}: {lost} of {frames} frames lost at {load} frames/s is impossible. Its "
                    "load and frames must be above 0, and no more frames can be lost than were sent."
                )
        if not (trials or of_file):
            raise SearchError(f"{file} has no trials to replay.")
        trials += of_file
    return record_of(trials)


def counted(trial: TrialResult) -> tuple[float, float, float]:
    """Load (frames per second), frames sent and frames lost of a trial, per interface."""
    frames = trial.load * trial.duration
    if not trial.loss_ratio:
        return trial.load, frames, 0.0
    # One lost frame counts as less than a frame if the load is not a whole number of frames.
    return trial.load, frames, max(1.0, trial.loss_ratio * frames)


def _trials(file: Path) -> list[tuple[float, float, float]]:
    """Load, frames sent and frames lost of each trial."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        if not lines or '"lost"' not in lines[0]:
            return [*map(counted, read_journal(file).results)]

        records = [json.loads(line) for line in lines if line.strip()]
        return [
            (float(record["load"]), float(record["frames"]), float(record["lost"]))
            for record in records
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SearchError(
            f"{file} is neither a journal nor a record of trials, such as "
            f'{{"load": 450000, "frames": 4499999, "lost": 22153}} in each line: {_in_words(error)}.'
        ) from error


def _in_words(error: Exception) -> str:
    """Why a record cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, KeyError):
        return f"a line has no {error}"
    if isinstance(error, OSError):
        return str(error.strerror)
    return str(error)
