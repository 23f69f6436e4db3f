"""How the archive grows with testbeds: runs of many testbeds are sent to one archive, and the trend of all is computed.

Every testbed is measured on the simulator once, and its run is sent by a process of its own, as in a lab; then one
history has them all. A run here has as many tests as are asked for, each with all its trials.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click

from lossratio.history.analysis import TrendRequest, analyse
from lossratio.history.archive import ObjectStore, Outbox, mirror_history
from lossratio.measurements.measurement import TestPlace
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.mlrsearch import NDR, PDR
from lossratio.results.model import TestIdentity
from lossratio.results.run_directory import RunDirectory
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile

SIMULATED = Path(__file__).parents[1] / "topologies" / "simulated.yaml"


def measure(directory: Path, tests: int) -> float:
    """Measures NDR and PDR a number of times on the simulator; returns the seconds of processor time per test."""
    testbed = open_testbed(SIMULATED)
    began = time.process_time()
    for number in range(tests):
        place = TestPlace(TestIdentity(name=f"64B-{number}-ndrpdr", suite="Suite"), RunDirectory(directory))
        find_conditional_throughput(
            testbed, SearchRequest(goals=(NDR, PDR), profile=load_profile("ethip4-udp", frame_size=64)), place
        )
    return (time.process_time() - began) / tests


def send_as(testbed: str, run: Path, root: Path) -> float:
    """Sends a copy of a run that names another testbed; returns the seconds it took."""
    copy = root / testbed
    shutil.copytree(run, copy)
    for file in (copy / "results").glob("*.json"):
        data = json.loads(file.read_text())
        data["conditions"]["testbed"]["name"] = testbed
        file.write_text(json.dumps(data))
    began = time.monotonic()
    outbox = Outbox(root / f"outbox-{testbed}", ObjectStore(str(root / "archive")))
    outbox.add(copy)
    outbox.send()
    seconds = time.monotonic() - began
    shutil.rmtree(copy)
    return seconds


@click.command(help=__doc__)
@click.option("--testbeds", multiple=True, type=int, default=(10, 100, 1000), show_default=True, help="How many.")
@click.option("--tests", default=5, show_default=True, help="Tests in each run.")
@click.option("--processes", default=2, show_default=True, help="How many send at once.")
def main(testbeds: tuple[int, ...], tests: int, processes: int) -> None:
    """Sends runs of more and more testbeds to one archive, and prints how long everything takes."""
    click.echo(f"{'testbeds':>8}  {'send, s per run':>15}  {'series':>13}  {'first mirror, s':>15}  {'trend, s':>8}")
    with tempfile.TemporaryDirectory() as temporary:
        run = Path(temporary) / "run"
        per_test = measure(run, tests)
        for count in testbeds:
            root = Path(temporary) / str(count)
            root.mkdir()
            names = [f"lab-{number:04}" for number in range(count)]
            with ProcessPoolExecutor(processes) as pool:
                seconds = list(pool.map(send_as, names, [run] * count, [root] * count))
            began = time.monotonic()
            history = mirror_history(ObjectStore(str(root / "archive")), root / "cache")
            mirrored = time.monotonic()
            analysis = analyse(history, TrendRequest())
            trend_seconds = time.monotonic() - mirrored
            median = sorted(seconds)[len(seconds) // 2]
            rows = sum(1 for _ in analysis.trends)
            click.echo(f"{count:>8}  {median:>15.3f}  {rows:>13,}  {mirrored - began:>15.2f}  {trend_seconds:>8.2f}")
        click.echo(f"The controller's own processor time: {per_test:.2f} s per NDR and PDR search, reports included.")


if __name__ == "__main__":
    main()
