"""How long the report of a run takes: reading its results, the pictures, and the page.

python benchmarks/report.py --tests 200 --trials 100
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

import click

from lossratio.journal import JournalEntry
from lossratio.mlrsearch import NDR, PDR, MLRsearch
from lossratio.report.build import SearchSetup, TestRun, throughput_result
from lossratio.report.conditions import (
    Conditions,
    FrameSizeShare,
    LoadOrigin,
    LoadSemantics,
    Traffic,
    describe_testbed,
)
from lossratio.report.facts import NodeFacts, controller_facts
from lossratio.report.formats import ReportFormat, render, write_report
from lossratio.report.model import TestIdentity, ThroughputResult
from lossratio.report.run import read_run
from lossratio.report.run_directory import RunDirectory
from lossratio.report.timing import trial_timing
from lossratio.simulation.knees import SmoothKnee
from lossratio.simulation.measurer import SimulatedMeasurer
from lossratio.topology import load_topology
from lossratio.trial import TrialResult

ROOT = Path(__file__).parents[1]
MAX_LOAD = 400_000.0
T = TypeVar("T")


@click.command()
@click.option("--tests", default=200, show_default=True, help="Number of tests in the run.")
@click.option("--trials", default=100, show_default=True, help="Number of trials of each test.")
def main(tests: int, trials: int) -> None:
    """Writes a run of simulated searches, and tells how long its report takes."""
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder) / "run")
        result = searched(trials)
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


def searched(trials: int) -> ThroughputResult:
    """The result of a search on a simulated SUT, cut to so many trials, or repeated until there are so many."""
    controller = MLRsearch((NDR, PDR), 9_001.0, MAX_LOAD)
    measurer = SimulatedMeasurer(SmoothKnee(mrr=300_000.0, spread=20_000.0), seed=1, directions=2, overhead=0.02)
    entries: list[JournalEntry] = []
    while (trial := controller.next_trial()) is not None:
        entries.append(JournalEntry(TrialResult(trial, measurer.measure(trial)), str(controller.purpose)))
        controller.record(entries[-1].result)
    entries = (entries * (trials // len(entries) + 1))[:trials]
    now = datetime.now(timezone.utc)
    run = TestRun(TestIdentity(name="benchmark", suite="Benchmark"), now, now, conditions())
    max_load = run.conditions.max_load(MAX_LOAD, LoadOrigin.GENERATOR, link_speed=1e9)
    setup = SearchSetup("MLRsearch", {}, (NDR, PDR), 9_001.0, max_load)
    return throughput_result(run, setup, controller.result(), entries)


def conditions() -> Conditions:
    """Conditions of a simulated measurement."""
    file = "topologies/simulated.yaml"
    topology = load_topology(ROOT / file)
    return Conditions(
        testbed=describe_testbed(topology, file, [topology.path()]),
        nodes={"TG": NodeFacts(), "DUT1": NodeFacts()},
        controller=controller_facts(),
        generator={"kind": "simulated"},
        duts={"DUT1": {"kind": "linux_bridge"}},
        traffic=Traffic(
            name="ethip4-udp",
            frame_sizes=(FrameSizeShare(size_bytes=64, share_ratio=1.0),),
            average_frame_size_bytes=64.0,
            frame_format="Ethernet II, IPv4, UDP",
            addresses="198.18.0.0/16 and 198.19.0.0/16",
            modifiers="none",
            ip_versions={"IPv4": 1.0},
            pattern="bidirectional",
            profile={},
        ),
        load=LoadSemantics(directions=("west>east", "east>west"), aggregate_factor=2),
        timing=trial_timing(
            learning="before the search",
            wait_before=0.0,
            wait_after=0.005,
            recovery=0.02,
            tolerance=10e-6,
            negative_loss="retry",
        ),
    )


if __name__ == "__main__":
    main()
