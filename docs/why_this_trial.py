"""Writes the example of the rule `plan` into `methodology/mlrsearch.md`, from a search of a simulated SUT.

Usage: why_this_trial.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from lossratio.mlrsearch import NDR, LoadGrid, MLRsearch
from lossratio.mlrsearch.rules.plan import Pair, best_pair
from lossratio.simulation import SimulatedMeasurer, SmoothKnee
from lossratio.trials import TrialResult

PAGE = Path(__file__).parent / "methodology" / "mlrsearch.md"
MIN_LOAD, MAX_LOAD = 10e3, 1e6
"""Frames per second."""
NUMBER = 16
"""The trial that the example explains."""
PAIRS = 4
"""How many pairs of loads are shown."""

_EXAMPLE = re.compile(r"(?<=<!-- example of plan, by docs/why_this_trial.py -->\n).*?(?=<!-- end -->)", re.DOTALL)
_WATCHED_FUNCTION = "lossratio.mlrsearch.rules.plan.best_pair"


class _Watched:
    """What `plan` computed for its latest choice."""

    def __init__(self) -> None:
        self.pairs: dict[tuple[int, int], Pair] = {}

    def best_pair(self, curves: Any, needed: Any, lowers: Any, uppers: Any) -> Pair:
        self.pairs = {}
        for lower, upper in zip(lowers, uppers, strict=True):
            self.pairs[int(lower), int(upper)] = best_pair(curves, needed, np.array([lower]), np.array([upper]))
        return best_pair(curves, needed, lowers, uppers)


def page(text: str) -> str:
    """The page with its example as the search is now."""
    return _EXAMPLE.sub("".join(f"{line}\n" for line in example()).replace("\\", r"\\"), text)


def example() -> Iterator[str]:
    """The trials of a search up to the one that is explained, and what `plan` computed for that."""
    watched = _Watched()
    measurer = SimulatedMeasurer(SmoothKnee(400e3, 20e3), seed=1)
    search = MLRsearch([NDR], MIN_LOAD, MAX_LOAD)
    yield "| trial | load | rule | loss |"
    yield "| ---: | ---: | --- | ---: |"
    with mock.patch(_WATCHED_FUNCTION, watched.best_pair):
        number = 0
        while (trial := search.next_trial()) is not None:
            number += 1
            rule = getattr(search.purpose, "rule", None)
            if number == NUMBER:
                yield f"| **{number}** | **{trial.load:,.0f}** | `{rule}` | ? |"
                break
            output = measurer.measure(trial)
            yield f"| {number} | {trial.load:,.0f} | `{rule}` | {100.0 * output.loss_ratio:.4f} % |"
            search.record(TrialResult(trial, output))

    yield ""
    yield (
        "| pair of loads | probability that it is the bounds | proof, lower load first | upper load first "
        "| trials per success |"
    )
    yield "| --- | ---: | ---: | ---: | ---: |"
    yield from _pairs_in_words(watched.pairs, LoadGrid(MIN_LOAD, MAX_LOAD, NDR.width))


def _pairs_in_words(pairs: dict[tuple[int, int], Pair], grid: LoadGrid) -> Iterator[str]:
    """A row for each of the pairs that cost the least, by load."""
    cheapest = sorted(pairs, key=pairs.__getitem__)[:PAIRS]
    for lower, upper in sorted(cheapest):
        pair = pairs[lower, upper]
        loads = f"{grid.load(lower):,.0f} and {grid.load(upper):,.0f}"
        share = f"{100.0 * pair.success:.0f} %"
        yield f"| {loads} | {share} | {pair.low_first:.1f} | {pair.high_first:.1f} | {pair.time_per_success:.0f} |"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
