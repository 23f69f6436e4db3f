"""What each mechanism of soak tests earns: the judge's searches without it.

    python benchmarks/soak_ablation.py --seconds 300 --seeds 2
    python benchmarks/soak_ablation.py --seconds 300 --seeds 1 --drawn 72000 72120 --store ablation.jsonl
    python benchmarks/soak_ablation.py --without "batches" "change of the SUT" --seconds 60

All families of `soak_judge.py`, or the drawn devices, are searched with all mechanisms, and then without each of them,
with the same seeds. The file of `--store` keeps each search as soon as it ends. A command that is given again goes on
with the searches that are missing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from soak_devices import FAMILIES
from soak_drawn import family_named
from soak_judge import search

from lossratio.plrsearch import CriticalLoadEstimate, PLRsearch, overload, selection
from lossratio.plrsearch.faster import Faster
from lossratio.plrsearch.model import TrialCounts
from lossratio.plrsearch.selection import PosteriorSelection
from lossratio.plrsearch.variation import Description, RareLoss, Replicates, Scatter, bounded, inference, local, pauses
from lossratio.plrsearch.variation.bounded import LowestCapacity
from lossratio.plrsearch.variation.bucket import Bucket
from lossratio.plrsearch.variation.change import Change
from lossratio.plrsearch.verifying import Verifying


class _Constant(Replicates):
    """Trials at equal loads, none of which has a capacity that varies."""

    @property
    def scatter(self) -> Scatter:
        scatter = super().scatter
        return Scatter.CHANCE if scatter is Scatter.VARYING else scatter


def _median(found: CriticalLoadEstimate) -> float:
    return found.median if found.verified is None else found.verified


_ALL = "nothing"
"""The name of the searches in which no mechanism is switched off."""
MECHANISMS: Mapping[str, tuple[tuple[Any, str, Any], ...]] = {
    _ALL: (),
    "change of the SUT": ((Change, "of", lambda counts: None),),
    "batches": ((Replicates, "batch", property(lambda self: 1.0)),),
    "capacity that varies": ((inference, "Replicates", _Constant),),
    "capacity that few trials show to vary": ((Replicates, "_surely_varies", False),),
    "lower loads if the capacity varies": ((Description, "heavier_tails", 0.0),),
    "overload trials that look again": ((overload, "_UNCLEAR", 0),),
    "beginning again after a change": ((Verifying, "_forget", lambda *_: None),),
    "losses below the load without loss": ((local, "_BELOW", 0.0),),
    "losses that do not come from the load": ((RareLoss, "of", lambda *_: None),),
    "capacity that overload shows to be constant": ((inference, "_may_vary_as_much", lambda *_: True),),
    "doubt because of rare losses": ((CriticalLoadEstimate, "_rare", None),),
    "pauses": ((Description, "pauses", None),),
    "lengths between exponential and equal": ((pauses, "_SHAPES", (1.0, 1e8)), (pauses, "_NEARLY_EQUAL", ())),
    "pauses that allow a verified load": ((Description, "allows_verified", False),),
    "bucket": ((Bucket, "of", lambda _: None),),
    "capacity between two bounds": ((LowestCapacity, "of", lambda _: None),),
    "capacity with few values": ((bounded, "_has_few_values", lambda _: False),),
    "losses that follow the load": ((inference, "passed_follows_load", lambda _: False),),
    "trials of a much faster SUT": ((Faster, "ask", lambda _: None),),
    "losses that come once": ((inference, "asked", lambda *_: None),),
    "long trials without loss in the line": ((TrialCounts, "with_more", lambda self, _: self),),
    "rate in the long run": ((Description, "in_long_run", property(lambda self: self.question.max_load)),),
    "line near the target": ((local, "_line", lambda *_: None),),
    "loads that pauses allow": ((Description, "most", property(lambda self: self.question.max_load)),),
    "lower loads": ((Verifying, "_lower", lambda *_, **__: None),),
    "higher loads": ((Verifying, "_raise_to", lambda *_: None),),
    "long trials": ((PLRsearch, "_is_ending", property(lambda self: False)),),
    "load that nothing speaks against": ((CriticalLoadEstimate, "stated", property(_median)),),
    "contested loads again": ((PosteriorSelection, "_contested", lambda *_: None),),
    "halving of wide ranges": ((selection, "_FOR_WIDE", 0),),
    "overload beyond what varies": (
        (selection, "_IN_OVERLOAD", 0.0),
        (selection, "_IF_CONSTANT", 0.0),
        (selection, "_IF_VARYING", 0.0),
    ),
}
"""What is switched off: attributes, and the values that they get."""


def main() -> None:
    """Runs the searches of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--without", nargs="+", default=list(MECHANISMS), choices=list(MECHANISMS))
    parser.add_argument("--drawn", nargs=2, type=int, metavar=("FIRST", "LAST"), help="devices drawn at random instead")
    parser.add_argument("--store", type=Path, help="JSON lines file that keeps the searches")
    arguments = parser.parse_args()
    families = list(FAMILIES)
    if arguments.drawn:
        families = [f"drawn {number}" for number in range(*arguments.drawn)]
    known = {}
    if arguments.store and arguments.store.exists():
        known = {_key(run): run for run in map(json.loads, arguments.store.read_text().splitlines())}

    names = [_ALL, *(name for name in arguments.without if name != _ALL)]
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    wanted = [
        {"family": family, "seed": seed, "seconds": arguments.seconds, "without": name}
        for family in families
        for seed in seeds
        for name in names
    ]
    for search_of in wanted:
        if _key(search_of) in known:
            continue
        run = known[_key(search_of)] = _without(**search_of)
        if arguments.store:
            with arguments.store.open("a") as store:
                store.write(json.dumps(run, default=float) + "\n")

    print(
        "| without | searches that differ | right | become right | no longer right | confident above the truth | "
        "of these, not by the scope | above | below .9 | healthy flagged | false sentences |"
    )
    print("| --- " * 11 + "|")
    for name in names:
        runs = [known[_key(search_of)] for search_of in wanted if search_of["without"] == name]
        before = [known[_key({**run, "without": _ALL})] for run in runs]
        print(_line(name, runs, before), flush=True)


def _key(run: Mapping[str, Any]) -> tuple[str, int, float, str]:
    """What tells a search from all others."""
    return run["family"], run["seed"], run["seconds"], run["without"]


def _without(family: str, seed: int, seconds: float, without: str) -> dict[str, Any]:
    """The judgement of one search without a mechanism."""
    with ExitStack() as stack:
        for place, attribute, value in MECHANISMS[without]:
            stack.enter_context(patch.object(place, attribute, value))
        return {**search(family, seconds, seed), "without": without}


def _line(name: str, runs: list[dict[str, Any]], before: list[dict[str, Any]]) -> str:
    pairs = list(zip(runs, before, strict=True))
    wrong = [run for run in runs if run["wrong"]]
    cells = (
        sum(any(run[key] != other[key] for key in ("share", "confident", "says")) for run, other in pairs),
        f"{np.mean([run['right'] for run in runs]):.3f}",
        sum(run["right"] and not other["right"] for run, other in pairs),
        sum(other["right"] and not run["right"] for run, other in pairs),
        len(wrong),
        sum(not run["unseen"] for run in wrong),
        sum(run["share"] > 1.00002 for run in runs),
        sum(run["share"] < 0.9 for run in runs),
        sum(run["flagged"] and family_named(run["family"]).healthy for run in runs),
        sum(len(run["false"]) for run in runs),
    )
    return f"| {name} | {' | '.join(str(cell) for cell in cells)} |"


if __name__ == "__main__":
    main()
