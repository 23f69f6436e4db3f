"""Soak tests measured: judged on devices with a known truth, and with real frames.

    python study/benchmarks/soak.py judge --seconds 60 300 --seeds 3
    python study/benchmarks/soak.py judge --seconds 300 --drawn 0 60 --drawn-seed 7 --store judged.jsonl
    python study/benchmarks/soak.py judge --kinds
    python study/benchmarks/soak.py show "batches of 32" --seconds 300
    python study/benchmarks/soak.py frames --device batches --runs 3

A search is *right* if the load that is stated first is .9 to 1.0 of the truth. It is *wrong* if it is regular and above
the truth, and *in sight* if the losses that decide are not rarer than the result says. A result *covers* the truth if
that is between the verified and the contradicted load. It is *true as stated* if it covers the truth, or if the
verified load is above it only because of losses that are not in sight: about these, a result claims nothing. Time is
simulated, and seeds are fixed: a table repeats itself.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from zlib import crc32

import numpy as np
from soaks import real_frames
from soaks.devices import CAPACITY, FAMILIES, KINDS, Family, Pause, Stalls
from soaks.drawn import SEED, family_named

from lossratio.plrsearch import CountedLoad, SearchByCounts
from lossratio.simulation import SimulatedMeasurer
from lossratio.trials import TrialResult, run_search

OVERHEAD = 0.5
"""Seconds that a trial takes beside its traffic."""
CLOCK = 20e-6
"""Relative tolerance for a right load: a generator's clock is no better."""
_CLOSE = 0.05
"""Numbers in sentences are true within this share."""
_NEAR = 0.01
"""Trials within this share of the stated load are near it."""


@dataclass(frozen=True)
class Judgement:
    """What a search stated, and whether it is right."""

    device: str
    """Name of the device."""
    seconds: float
    """Seconds of the search."""
    seed: int
    """Seed of its measurer."""
    healthy: bool
    """Whether the device is healthy."""
    share: float
    """The stated load as a share of the truth."""
    right: bool
    """Whether it is .9 to 1.0."""
    regular: bool
    """Whether the result has no doubt."""
    in_sight: bool
    """Whether the losses that decide are frequent enough to be seen, as the result says."""
    covered: bool
    """Whether the truth is between the verified and the contradicted load."""
    as_stated: bool
    """Whether both are true as they are stated: the verified one about losses that are in sight."""
    said: int
    """Number of statements that `false` is about."""
    near: float
    """Share of the seconds of traffic within 1 % of the stated load."""
    cpu_s: float
    """Seconds of CPU."""
    false: tuple[str, ...]
    """What the search says and is not so."""

    @property
    def wrong(self) -> bool:
        """Whether the result is regular and above the truth."""
        return self.regular and self.share > 1.0 + CLOCK


def main() -> None:
    """Runs the sub-command of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    judge_it = commands.add_parser("judge", help="judge searches of many devices")
    judge_it.add_argument("--seconds", nargs="+", type=float, default=[60.0, 300.0])
    judge_it.add_argument("--seeds", type=int, default=1, help="searches of each device and time")
    judge_it.add_argument("--seed", type=int, default=0, help="seed of the first of them")
    judge_it.add_argument("--families", nargs="+", default=list(FAMILIES), help="default: all of them")
    judge_it.add_argument("--kinds", action="store_true", help="the kinds of `KINDS` instead")
    judge_it.add_argument("--drawn", nargs=2, type=int, metavar=("FIRST", "LAST"), help="drawn devices instead")
    judge_it.add_argument("--drawn-seed", type=int, default=SEED, help=f"their seed (default: {SEED})")
    judge_it.add_argument("--store", type=Path, help="JSON lines file that keeps the judgements")
    judge_it.set_defaults(command=judge)
    show_it = commands.add_parser("show", help="show the trials of a search")
    show_it.add_argument("name", help="name of a family or a kind, or 'drawn 17'")
    show_it.add_argument("--seconds", type=float, default=300.0)
    show_it.add_argument("--drawn-seed", type=int, default=SEED)
    show_it.set_defaults(command=show)

    frames_of = commands.add_parser("frames", help="search for the critical load of devices with real frames")
    real_frames.add_options(frames_of)

    arguments = parser.parse_args()
    arguments.command(arguments)


def judge(arguments: argparse.Namespace) -> None:
    """Judges searches of devices."""
    names = list(KINDS) if arguments.kinds else arguments.families
    if arguments.drawn:
        names = [f"drawn {number}" for number in range(*arguments.drawn)]

    for seconds in arguments.seconds:
        judged = []
        for name in names:
            family = family_named(name, arguments.drawn_seed)
            for seed in range(arguments.seed, arguments.seed + arguments.seeds):
                judged.append(searched(name, family, seconds, seed))
                _keep(judged[-1], arguments.store)
        print(f"{seconds:5.0f} s {summary(judged)}", flush=True)


def _keep(run: Judgement, store: Path | None) -> None:
    """Prints a search that is not right, and adds it to the file."""
    if not run.right or run.wrong or run.false:
        marks = " wrong" * run.wrong + " irregular" * (not run.regular)
        print(f"  {run.device:32} {run.share:8.4f}{marks} {'; '.join(run.false)}", flush=True)
    if store is not None:
        with store.open("a") as file:
            file.write(json.dumps(asdict(run), default=float) + "\n")


def searched(name: str, family: Family, seconds: float, seed: int) -> Judgement:
    """A search of a device, judged."""
    trials: list[TrialResult] = []
    limits = (family.target, 1e-4 * family.capacity, 1.6 * family.capacity)
    measurer = SimulatedMeasurer(family.device, seed=crc32(name.encode()) + seed, overhead=OVERHEAD)
    begun = time.process_time()
    search = SearchByCounts(*limits, timeout=seconds)
    found = run_search(search, measurer, on_trial=trials.append)
    cpu = time.process_time() - begun

    scale = family.scale_at(measurer.now, len(trials))
    truth = family.critical_load(scale)
    rarest = family.device.rarest(found.stated, scale, family.target, found.trial_s)
    only_short = "long" in family.traits and found.long_s is None
    in_sight = not only_short and not family.lowest and rarest <= found.rarest_s
    near = sum(trial.duration for trial in trials if abs(trial.load / found.stated - 1.0) <= _NEAR)
    low, high = found.verified or 0.0, found.contradicted or math.inf
    share = found.stated / truth

    at_least, at_most = low <= truth * (1.0 + CLOCK), high >= truth * (1.0 - CLOCK)
    near_share = near / sum(trial.duration for trial in trials)

    # Record: the judgement.
    return Judgement(
        device=name,
        seconds=seconds,
        seed=seed,
        healthy=family.healthy,
        share=share,
        right=0.9 <= share <= 1.0 + CLOCK,
        regular=found.is_regular,
        in_sight=in_sight,
        covered=at_least and at_most,
        as_stated=(at_least or not in_sight) and at_most,
        said=said(found),
        near=near_share,
        cpu_s=cpu,
        false=tuple(untrue(found, family, share, in_sight=in_sight)),
    )


def said(found: CountedLoad) -> int:
    """Number of statements about the losses, and that a load is verified."""
    told = (found.verified, *found.changes, found.once or None, found.batch, found.bucket, found.single_pause)
    return sum(statement is not None for statement in told)


def untrue(found: CountedLoad, family: Family, share: float, *, in_sight: bool) -> list[str]:
    """What a search says and is not so of a device, at a stated load that is this share of the truth."""
    device = family.device
    false = []

    if found.verified is not None and share > 1.0 + CLOCK and in_sight:
        false.append("verified")
    if found.changes and "changes" not in family.traits:
        false.append("changed")
    if found.once and "once" not in family.traits:
        false.append("once")
    sizes = [device.batch, *(stalls.frames for stalls in device.pauses if isinstance(stalls, Stalls))]
    if found.batch is not None and not any(_is_close(found.batch, size) for size in sizes):
        false.append("batch")
    if found.bucket is not None and not _is_close(found.bucket.frames, device.bucket * CAPACITY):
        false.append("bucket")
    seen = found.single_pause
    if seen is not None:
        pauses = [pause for pause in device.pauses if isinstance(pause, Pause)]
        told = [(seen.length_s, pause.length, seen.ring_frames, pause.ring) for pause in pauses]
        if not any(_is_close(length, true) and _is_close(ring, held) for length, true, ring, held in told):
            false.append("pause")
    return false


def _is_close(said: float, true: float) -> bool:
    return math.isclose(said, true, rel_tol=_CLOSE)


def summary(runs: Sequence[Judgement]) -> str:
    """The figures of searches."""
    healthy = [run for run in runs if run.healthy]
    regular = [run for run in runs if run.regular]
    wrong = [run for run in runs if run.wrong]
    within = sum(1.0 - _NEAR <= run.share <= 1.0 + CLOCK for run in healthy)
    doubted = sum(not run.regular for run in healthy)
    tenth, median = np.quantile([run.near for run in runs], [0.1, 0.5])
    cpu = np.median([run.cpu_s for run in runs])

    parts = [
        f"right {sum(run.right for run in runs)} of {len(runs)}",
        f"regular and above {len(wrong)}, in sight {sum(run.in_sight for run in wrong)}",
        f"healthy: {doubted} of {len(healthy)} irregular, {within} within 1 %",
        f"irregular {len(runs) - len(regular)}",
        f"regular and covered {sum(run.covered for run in regular)} of {len(regular)}",
        f"true as stated {sum(run.as_stated for run in regular)}",
        f"false {sum(len(run.false) for run in runs)} of {sum(run.said for run in runs)}",
        f"near {median:.2f} (tenth {tenth:.2f})",
        f"CPU {cpu:.2f} s",
    ]
    return "; ".join(parts)


def show(arguments: argparse.Namespace) -> None:
    """Shows what each trial of a search lost, and what the search says."""
    family = family_named(arguments.name, arguments.drawn_seed)
    trials: list[TrialResult] = []
    limits = (family.target, 1e-4 * family.capacity, 1.6 * family.capacity)
    search = SearchByCounts(*limits, timeout=arguments.seconds)
    measurer = SimulatedMeasurer(family.device, seed=crc32(arguments.name.encode()), overhead=OVERHEAD)
    found = run_search(search, measurer, on_trial=trials.append)
    truth = family.critical_load(family.scale_at(search.elapsed, search.trials))
    for (load, seconds), same in groupby(trials, attrgetter("load", "duration")):
        print(f"{load / truth:8.4f}, {seconds:g} s:", *(trial.output.lost_frames for trial in same))
    print(found.statement, *found.sentences, found.reason or "regular", sep="\n")


if __name__ == "__main__":
    main()
