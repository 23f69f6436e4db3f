"""How many searches for the throughput of policers enclose the truth, with the generator inside the kernel (xdp).

Each policer has a local testbed of its own. A search takes some ten seconds.
"""

from __future__ import annotations

import math
import os
import tempfile
from itertools import product
from pathlib import Path

import click
from generator_in_kernel import ROOT, UDP, computing, row

from lossratio.measurements import TestPlace
from lossratio.measurements.throughput import SearchRequest, find_conditional_throughput
from lossratio.mlrsearch import SearchGoal
from lossratio.results import RunDirectory, TestIdentity, doubts_of
from lossratio.testbed import open_testbed
from lossratio.traffic import load_profile

POLICERS = (2_900, 20_000, 200_000, 340_000, 700_000, 1_500_000)
"""Rates of the policers in frames per second."""

BUCKETS = (0.02, 0.001)
"""What their buckets hold, in seconds of traffic. The shallow one drops frames that the generator makes up for after a
longer stall."""

POLICED_SECONDS = 0.5
"""Seconds of a trial of their searches."""


@click.command(help=__doc__)
@click.option("--runs", default=5, show_default=True, help="Searches for each policer.")
@click.option("--beside", "besides", multiple=True, default=(0, 4, 15), help="Programs beside the searches.")
@click.option("--bucket", "buckets", multiple=True, default=BUCKETS, help="Seconds of traffic in a policer's bucket.")
@click.option("--policer", "rates", multiple=True, default=POLICERS, help="Its rate in frames per second.")
def main(runs: int, besides: tuple[int, ...], buckets: tuple[float, ...], rates: tuple[int, ...]) -> None:
    """Measures, and prints tables."""
    text = (ROOT / "topologies" / "local-xdp.yaml").read_text()
    with tempfile.TemporaryDirectory() as directory:
        own = Path(directory) / "policers.yaml"
        own.write_text(text.replace("name: local-xdp", f"name: policers-{os.getpid()}").replace("1 Mfps", "4 Mfps"))
        for beside, bucket, rate in product(besides, buckets, rates):
            policer(own, runs, beside, bucket, rate)


def policer(file: Path, runs: int, beside: int, bucket: float, rate: int) -> None:
    """Searches for a policer's throughput, one way: do the bounds enclose the truth, or is there a doubt?"""
    goal = SearchGoal(0.0, 0.5, final_trial_duration=POLICED_SECONDS, duration_sum=1.5, width=0.005, name="no loss")
    profile = load_profile(UDP, frame_size=64, bidirectional=False)
    counts = dict.fromkeys(("enclosed", "with a doubt", "WRONG"), 0)
    seen: list[str] = []
    burst = math.ceil(rate * bucket)
    options = {"police": rate, "burst": burst}
    with open_testbed(file, dut="linux_bridge", options=options) as testbed, computing(beside):
        # The kernel counts whole nanoseconds per frame.
        truth = 1e9 / (10**9 // rate) + (burst - 1) / POLICED_SECONDS
        request = SearchRequest(goals=(goal,), profile=profile, min_load=truth / 10, max_load=2 * truth)
        for run in range(runs):
            place = TestPlace(TestIdentity(name=f"{beside} {rate} {run}", suite="policers"), RunDirectory(file.parent))
            result = find_conditional_throughput(testbed, request, place)
            found = result.goals[0].result
            assert found is not None
            lower, upper = found.relevant_lower_bound, found.relevant_upper_bound
            least = 0.0 if lower is None else lower.per_interface_fps
            most = math.inf if upper is None else upper.per_interface_fps
            # Two frames more or less in a trial.
            encloses = least <= truth + 4 and truth - 4 <= most
            doubts = [*doubts_of([result])[0], *([found.reason] if found.reason else [])]
            counts["enclosed" if encloses else "with a doubt" if doubts else "WRONG"] += 1
            seen += [f"{least / 1e3:.3f} to {most / 1e3:.3f}{': ' if doubts else ''}{'; '.join(map(str, doubts))}"]
    row(
        f"xdp: policer, {truth / 1e3:.1f} kfps, bucket of {1e3 * bucket:g} ms, beside {beside} programs",
        *(f"{count} {name}" for name, count in counts.items() if count),
        f"load {os.getloadavg()[0]:.0f}",
    )
    for line in seen:
        click.echo(f"    {line}")


if __name__ == "__main__":
    main()
