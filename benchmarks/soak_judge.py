"""Soak tests judged: searches of many families of devices, of 60, 300 and 1,800 s, and what their results say.

    python benchmarks/soak_judge.py --seconds 60 300 --seeds 3 --store judged.jsonl
    python benchmarks/soak_judge.py --seconds 300 --families "batches of 32" --verbose
    python benchmarks/soak_judge.py --seconds 300 --drawn 0 60
    python benchmarks/soak_judge.py --speed

A search is *right* if the load that is stated first is .9 to 1.0 of the truth. It is *right in its scope* if it is so
without the losses that are too rare, as the result says, to be seen. It is *wrong and confident* if it is above the
truth, and nothing beside it says so. Time is simulated, and seeds are fixed: a table repeats itself.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from soak_devices import FAMILIES, Family, Pause
from soak_drawn import family_named

from lossratio.plrsearch import CriticalLoadEstimate, PLRsearch, Verdict, estimate
from lossratio.plrsearch.model import TrialCounts
from lossratio.simulation import SimulatedMeasurer
from lossratio.trials import TrialResult, run_search
from lossratio.units import parse_frame_rate

OVERHEAD = 0.5
"""Seconds that a trial takes beside its traffic."""
CLOCK = 20e-6
"""Relative tolerance for a right load: a generator's clock is no better."""


def main() -> None:
    """Runs the searches of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", nargs="+", type=float, default=[60.0, 300.0])
    parser.add_argument("--seeds", type=int, default=3, help="searches of each family and time (default: 3)")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), help="default: all but drawn ones")
    parser.add_argument("--drawn", nargs=2, type=int, metavar=("FIRST", "LAST"), help="devices drawn at random instead")
    parser.add_argument("--store", type=Path, help="JSON lines file that keeps the searches")
    parser.add_argument("--verbose", action="store_true", help="also say what each search says")
    parser.add_argument("--speed", action="store_true", help="seconds of CPU for estimates of 150 and 720 trials")
    arguments = parser.parse_args()
    if arguments.drawn:
        first, last = arguments.drawn
        arguments.families = [f"drawn {number}" for number in range(first, last)]
    if arguments.speed:
        speed(arguments.families)
        return
    for seconds in arguments.seconds:
        judged = []
        for name in arguments.families:
            runs = [
                search(name, seconds, arguments.first_seed + seed, arguments.verbose) for seed in range(arguments.seeds)
            ]
            judged += runs
            print(_line(name, seconds, runs), flush=True)
            if arguments.store:
                with arguments.store.open("a") as store:
                    store.writelines(json.dumps(run, default=float) + "\n" for run in runs)
        print(_summary(seconds, judged), flush=True)


def stated_load(found: CriticalLoadEstimate) -> tuple[float | None, bool]:
    """The load that is stated first, and whether it is stated without a reservation."""
    if hasattr(found, "verified"):
        return found.stated, found.is_regular
    return found.median, found.misfit.fits and found.limits is None


def search(name: str, seconds: float, seed: int, verbose: bool = False) -> dict[str, Any]:
    """The judgement of one search."""
    family = family_named(name)
    results: list[TrialResult] = []
    low, high = 1e-4 * family.capacity, 1.6 * family.capacity
    begun = time.process_time()
    controller = PLRsearch(family.target, low, high, timeout=seconds)
    measurer = SimulatedMeasurer(family.device, seed=crc32(name.encode()) + seed, overhead=OVERHEAD)
    found = run_search(controller, measurer, on_trial=results.append)
    stated, confident = stated_load(found)
    cpu = time.process_time() - begun
    scale = family.scale_at(controller.elapsed, controller.trials)
    truth = family.critical_load(scale)
    ratio = family.device.ratio(stated, scale) / family.target if stated else math.nan
    share = stated / truth if stated else math.nan
    least, most = found.interval(0.95)
    run = {
        "family": name,
        "seconds": seconds,
        "seed": seed,
        "share": share,
        "targets": ratio,
        "right": bool(stated and 0.9 <= share <= 1.0 + CLOCK),
        "right_in_scope": _is_right_in_scope(family, found, scale),
        "confident": confident,
        "wrong": bool(confident and stated and share > 1.0 + CLOCK),
        "flagged": not confident,
        "covered": least <= truth * (1.0 + CLOCK) and most >= truth * (1.0 - CLOCK),
        "width": (most - least) / truth,
        "error": found.median / truth - 1.0,
        "trials": controller.trials,
        "cpu": cpu,
        "says": said(found),
        "false": [words for words in said(found) if is_false(words, family, found, scale)],
        "scope": getattr(found, "rarest_s", None),
        "unseen": _unseen(family, found, scale),
    }
    if verbose:
        print(name, seed, {key: run[key] for key in ("share", "targets", "error", "width", "flagged", "scope")})
        print("   ", *(line[:180] for line in said(found)), sep="\n      ")
    return run


def _is_right_in_scope(family: Family, found: CriticalLoadEstimate, scale: float) -> bool:
    """Whether the stated load is .9 to 1.0 of the truth, which may leave out losses as rare as the result says."""
    truth = family.critical_load(scale)
    stated = found.stated
    if stated <= truth * (1.0 + CLOCK):
        return bool(stated >= 0.9 * truth)

    def is_within(load: float) -> bool:
        rarest = family.device.rarest(load, scale, family.target, found.trial_s or 0.0)
        return rarest > found.rarest_s or family.device.ratio(load, scale) <= family.target

    return is_within(stated) and not is_within(stated / 0.9)


def _unseen(family: Family, found: CriticalLoadEstimate, scale: float) -> bool:
    """Whether the result says that the losses that decide may not have been seen: too rare, or in long trials only."""
    if "long" in family.traits and found.guard.protocol_s is None:
        return True
    if family.lowest:
        # The device was never that slow, or only for a short time.
        return True
    rarest = family.device.rarest(found.stated, scale, family.target, found.trial_s or 0.0)
    return rarest > found.rarest_s


def said(found: CriticalLoadEstimate) -> list[str]:
    """The sentences of a result."""
    sentences = list(getattr(found, "sentences", ()))
    return [*found.misfit.reasons, *sentences, str(found.guard)]


def is_false(words: str, family: Family, found: CriticalLoadEstimate, scale: float) -> bool:
    """Whether a sentence is not true of the device."""
    traits = family.traits
    truth = family.critical_load(scale)
    if "each trial loses" in words and "once" not in traits:
        return True
    if words.startswith("verified"):
        return found.guard.load_per_interface_fps > truth * (1.0 + CLOCK) and not _unseen(family, found, scale)
    told = {
        "Frames are lost in batches": "batches" in traits,
        "Frames are lost in pauses": "pauses" in traits,
        "Forwarding rates in overload": _differ(words, found.description.counts),
        "than before at the same loads": "changes" in traits,
        "with at least as much load": _is_seen(words, found.counts),
        "In short trials": "long" in traits,
        "in trials of 20 s": "long" in traits or "pauses" in traits or "changes" in traits,
        "contradicted": found.median > truth * (1.0 + CLOCK),
    }
    if words.startswith("Frames are lost in") and not _is_told(words, family):
        return True
    return next((not true for start, true in told.items() if start in words), False)


def _differ(words: str, counts: TrialCounts) -> bool:
    """Whether forwarding rates in overload differ as much as a sentence says, at the load with most such trials."""
    said = re.search(r"deviation of ([\d.]+) %", words)
    if said is None:
        return False
    is_overload = counts.lost > 1e-3 * counts.load * counts.exposure
    loads, trials = np.unique(counts.load[is_overload], return_counts=True)
    there = is_overload & (counts.load == loads[np.argmax(trials)])
    forwarded = counts.load[there] - counts.lost[there] / counts.exposure[there]
    seen = 100.0 * float(forwarded.std(ddof=1) / forwarded.mean())
    return bool(0.5 * seen <= float(said[1]) <= 2.0 * seen)


def _is_seen(words: str, counts: TrialCounts) -> bool:
    """Whether a trial lost so many frames more than another trial with at least as much load, as a sentence says."""
    said = re.search(r"at ([\d.]+ \w+) lost about ([\d,]+) frames more", words)
    if said is None:
        return False
    load, more = parse_frame_rate(said[1]), float(said[2].replace(",", ""))
    is_one = np.abs(counts.load / load - 1.0) < 1e-4
    is_other = counts.load >= load * (1.0 - 1e-4)
    if not is_one.any():
        return False
    return bool(counts.lost[is_one].max() - counts.lost[is_other].min() >= 0.99 * more)


def _is_told(words: str, family: Family) -> bool:
    """Whether the numbers of a sentence about batches or pauses are those of the device, as far as it has just one."""
    device = family.device
    numbers = [float(number.replace(",", "")) for number in re.findall(r"(?:about|of) ([\d.,]*\d)", words)]
    if "in batches" in words:
        return device.batch == 1.0 or abs(numbers[0] / device.batch - 1.0) < (0.35 if device.varied_batch else 0.15)
    pauses = [pause for pause in device.pauses if isinstance(pause, Pause)]
    if len(pauses) != 1 or pauses[0].together > 1:
        return True
    pause = pauses[0]
    if abs(numbers[1] / (1e6 * pause.length) - 1.0) > 0.25:
        return False
    return len(numbers) < 3 or abs(numbers[2] / pause.ring - 1.0) < 0.3


def _line(name: str, seconds: float, runs: list[dict[str, Any]]) -> str:
    mean = {key: np.mean([run[key] for run in runs]) for key in ("right", "wrong", "flagged", "covered", "cpu")}
    shares = " ".join(f"{run['share']:.5f}" for run in runs[:4])
    errors = " ".join(f"{100.0 * run['error']:+.2g}" for run in runs[:4])
    width = 100.0 * float(np.median([run["width"] for run in runs]))
    marks = "".join(f" {key} {value:4.2f}" for key, value in mean.items())
    return f"{name:28} {seconds:5.0f}{marks}  stated/truth {shares}  error % {errors}  width % {width:.2g}"


def _summary(seconds: float, runs: list[dict[str, Any]]) -> str:
    healthy = [run for run in runs if family_named(run["family"]).healthy]
    says = sum(len(run["says"]) for run in runs)
    false = sum(len(run["false"]) for run in runs)
    wrong = [run for run in runs if run["wrong"]]
    return (
        f"== {seconds:.0f} s: {len(runs)} searches, right {np.mean([run['right'] for run in runs]):.3f}, "
        f"in their scope {np.mean([run['right_in_scope'] for run in runs]):.3f}, "
        f"confident above the truth {len(wrong)} (wrong, as the scope does not say so: "
        f"{sum(not run['unseen'] for run in wrong)}), "
        f"healthy flagged {sum(run['flagged'] for run in healthy)} of {len(healthy)}, "
        f"covered {np.mean([run['covered'] for run in runs]):.3f}, of the regular ones "
        f"{np.mean([run['covered'] for run in runs if run['confident']]):.3f}, false sentences {false} of {says}, "
        f"CPU {np.median([run['cpu'] for run in runs]):.2f} s (most {max(run['cpu'] for run in runs):.2f})"
    )


def speed(names: list[str]) -> None:
    """CPU seconds of one estimate of 150 and of 720 trials of each family, beside their search."""
    for trials in (150, 720):
        taken = {}
        for name in names:
            family = family_named(name)
            results: list[TrialResult] = []
            low, high = 1e-4 * family.capacity, 1.6 * family.capacity
            search = PLRsearch(family.target, low, high, timeout=2.5 * trials)
            measurer = SimulatedMeasurer(family.device, seed=crc32(name.encode()), overhead=OVERHEAD)
            run_search(search, measurer, on_trial=results.append)
            begun = time.process_time()
            found = estimate(results, target_loss_ratio=family.target, min_load=low, max_load=high)
            found.interval(0.95), found.misfit, found.guard.verdict is Verdict.VERIFIED
            taken[name] = time.process_time() - begun
        worst = max(taken, key=lambda name: taken[name])
        print(
            f"{trials} trials: median {1e3 * float(np.median(list(taken.values()))):.0f} ms, "
            f"most {1e3 * taken[worst]:.0f} ms ({worst})"
        )


if __name__ == "__main__":
    main()
