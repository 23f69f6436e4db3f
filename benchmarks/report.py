"""How long the report of a run takes: reading its results, the pictures, and the page.

python benchmarks/report.py --tests 200 --trials 100
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import TypeVar

import click

from lossratio.measurements.measurement import TestPlace
from lossratio.measurements.throughput.measure import SearchRequest, find_conditional_throughput
from lossratio.measurements.throughput.result import ThroughputResult
from lossratio.mlrsearch import NDR, PDR
from lossratio.report.listener import ReportFormat, render, write_report
from lossratio.report.run import read_run
from lossratio.results.model import TestIdentity
from lossratio.results.run_directory import RunDirectory
from lossratio.testbed.live import open_testbed
from lossratio.traffic import load_profile

SIMULATED = Path(__file__).parents[1] / "topologies" / "simulated.yaml"
T = TypeVar("T")


@click.command()
@click.option("--tests", default=200, show_default=True, help="Number of tests in the run.")
@click.option("--trials", default=100, show_default=True, help="Number of trials of each test.")
def main(tests: int, trials: int) -> None:
    """Writes a run of simulated searches, and measures how long its report takes."""
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder) / "run")
        result = searched(trials, Path(folder) / "search")
        for number in range(tests):
            name = f"64B-{number}c-eth-l2bdbase-ndrpdr"
            run.write(result.model_copy(update={"test": TestIdentity(name=name, suite="Benchmark")}))
        click.echo(f"{tests} tests of {len(result.trials)} trials")
        click.echo(f"{'step':<24}{'elapsed s':>10}{'CPU s':>10}")
        read = timed("read results", lambda: read_run(run.path))
        timed("doubts", lambda: read.doubts)
        page = timed("make page", lambda: render(ReportFormat.HTML, [read]))
        timed("write it", lambda: write_report(run.path / "lossratio.html", page))
        click.echo(f"the page has {len(page.encode()) / 1e6:.1f} MB")


def timed(name: str, step: Callable[[], T]) -> T:
    """Runs a step, and prints a row with what it took."""
    elapsed, cpu = time.perf_counter(), time.process_time()
    result = step()
    click.echo(f"{name:<24}{time.perf_counter() - elapsed:>10.2f}{time.process_time() - cpu:>10.2f}")
    return result


def searched(trials: int, directory: Path) -> ThroughputResult:
    """The result of a search on a simulated SUT, with so many trials: some of its own, or those over and over."""
    place = TestPlace(TestIdentity(name="benchmark", suite="Benchmark"), RunDirectory(directory))
    request = SearchRequest((NDR, PDR), load_profile("ethip4-udp", frame_size=64))
    result = find_conditional_throughput(open_testbed(SIMULATED), request, place)
    repeated = enumerate(islice(cycle(result.trials), trials), start=1)
    numbered = tuple(trial.model_copy(update={"number": number}) for number, trial in repeated)
    return result.model_copy(update={"trials": numbered})


if __name__ == "__main__":
    main()
