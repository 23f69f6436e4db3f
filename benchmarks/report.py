"""How long the report of a run takes: reading its results, the page, and opening it in Chromium; and how large it is.

    python benchmarks/report.py --tests 2000 --trials 60

Without Chromium, the page is not opened.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import count, cycle, islice
from pathlib import Path
from statistics import median
from typing import TypeVar

import click
from browser import CHROMIUM, browser

from lossratio.measurements.measurement import TestPlace
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.measurements.throughput.result import ThroughputResult
from lossratio.mlrsearch import NDR, PDR
from lossratio.report import render, write_report
from lossratio.report.run import read_run
from lossratio.results.model import TestIdentity
from lossratio.results.note import noted
from lossratio.results.run_directory import RunDirectory
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile

SIMULATED = Path(__file__).parents[1] / "topologies" / "simulated.yaml"
_OPEN_LAST = """(async () => {
    const began = performance.now();
    const details = [...document.querySelectorAll("details.test")].pop();
    details.open = true;
    while (!details.querySelector("svg")) await new Promise(done => setTimeout(done, 5));
    return (performance.now() - began) / 1000;
})()"""


@click.command()
@click.option("--tests", default=200, show_default=True, help="Number of tests in the run.")
@click.option("--trials", default=60, show_default=True, help="Least number of trials of a test.")
@click.option(
    "--searches", default=50, show_default=True, help="Number of searches that differ; tests have them in turn."
)
def main(tests: int, trials: int, searches: int) -> None:
    """Writes a run of simulated searches, and measures how long its report takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = RunDirectory(folder / "run")
        found = (searched(folder / f"search{number}", number) for number in count())
        results = list(islice((result for result in found if len(result.trials) >= trials), min(searches, tests)))
        for number, result in enumerate(islice(cycle(results), tests)):
            name = f"64B-{number}c-eth-l2bdbase-ndrpdr"
            remarks = (noted(f"This is test {number}."),)
            test = TestIdentity(name=name, suite="Benchmark", tags=("64b", f"{number % 7}c"))
            later = timedelta(hours=number)
            times = {"started": result.started + later, "ended": result.ended + later}
            run.write(result.model_copy(update={"test": test, "remarks": remarks, **times}))
        each = sum(len(result.trials) for result in results) / len(results)
        click.echo(f"{tests} tests of {each:.0f} trials on average, {trials} at least")
        click.echo(f"{'step':<40}{'elapsed s':>10}{'CPU s':>10}")
        read = timed("read results", lambda: read_run(run.path))
        timed("doubts", lambda: read.doubts)
        page = timed("make page", lambda: render("html", [read]))
        path = run.path / "lossratio.html"
        timed("write it", lambda: write_report(path, page))
        click.echo(f"the page has {len(page.encode()) / 1e6:.1f} MB")
        assert not read.problems
        open_page(path)


def open_page(path: Path) -> None:
    """Opens a page and its last section, and prints how long both take; the median of five times."""
    if CHROMIUM is None:
        click.echo("not opened: no Chromium is installed")
        return
    with browser() as chromium:
        opened, sections = [], []
        for _ in range(5):
            opened.append(chromium.open(path))
            sections.append(float(chromium.run(_OPEN_LAST)))
        click.echo(f"opens in {median(opened):.2f} s (Chromium), its last section in {median(sections):.2f} s")


def searched(directory: Path, number: int) -> ThroughputResult:
    """The result of a search on a simulated SUT, which differs for each number."""
    directory.mkdir()
    topology = directory / "topology.yaml"
    text = SIMULATED.read_text().replace("seed: 1", f"seed: {number + 1}")
    knee = f"performance_spectrum, capacity: {150 + 1.37 * number} kfps, jitter: 0.006"
    topology.write_text(text.replace("sharp_knee, capacity: 150 kfps", knee))
    place = TestPlace(TestIdentity(name="benchmark", suite="Benchmark"), RunDirectory(directory))
    request = SearchRequest(goals=(NDR, PDR), profile=load_profile("ethip4-udp", frame_size=64))
    return find_conditional_throughput(open_testbed(topology), request, place)


T = TypeVar("T")


def timed(name: str, step: Callable[[], T]) -> T:
    """Runs a step, and prints a row with its time."""
    elapsed, cpu = time.perf_counter(), time.process_time()
    result = step()
    click.echo(f"{name:<40}{time.perf_counter() - elapsed:>10.2f}{time.process_time() - cpu:>10.2f}")
    return result


if __name__ == "__main__":
    main()
