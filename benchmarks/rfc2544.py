"""Error of back-to-back frames, system recovery and reset beside a known truth; and all tests of RFC 2544 with `quick`.

    python benchmarks/rfc2544.py                 # real frames, on the local testbed
    python benchmarks/rfc2544.py --simulated     # seconds, without namespaces

The truths: a policer of rate R with a bucket of B frames passes bursts of floor((B - R/L) / (1 - R/L)) frames at the
rate L. It recovers at once, as half of the overload is below its rate. A bridge that is down for a known time forwards
nothing for so long; the time is that of the node's clock around the two commands, whose middle counts. Simulated
devices have their times in their model.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import yaml

from lossratio.measurements import TestPlace
from lossratio.measurements.back_to_back import BackToBackRequest, measure_back_to_back
from lossratio.measurements.recovery import RecoveryRequest, measure_recovery
from lossratio.measurements.reset import ResetRequest, measure_reset
from lossratio.measurements.rfc2544 import QUICK, Rfc2544Request, run_rfc2544, write_rfc2544_report
from lossratio.results import RunDirectory, TestIdentity
from lossratio.testbed import Testbed, open_testbed
from lossratio.traffic import load_profile

TOPOLOGIES = Path(__file__).parent.parent / "topologies"
PROFILE = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
RATE, BURST_RATE = 10_000, 40_000
BUCKETS = (50, 1000, 10_000)
DOWN = 0.25
SIZES = (64, 128, 256, 512, 1024, 1280, 1518)

_CYCLE = """
t0=$(date +%s%N); ip link set dev "$1" down; t1=$(date +%s%N); sleep "$2"
t2=$(date +%s%N); ip link set dev "$1" up; t3=$(date +%s%N)
echo $t0 $t1 $t2 $t3
"""


def _place(directory: Path, name: str) -> TestPlace:
    return TestPlace(TestIdentity(name=name, suite="rfc2544"), RunDirectory(directory))


def _row(name: str, truth: float, values: list[float], unit: str) -> None:
    errors = [abs(value - truth) for value in values]
    click.echo(
        f"{name:<34} truth {truth:>10,.4f} {unit:<6}  median {statistics.median(values):>10,.4f}  "
        f"error: median {statistics.median(errors):.4f}, most {max(errors):.4f}, of {len(values)}"
    )


def _bursts(file: Path, directory: Path, repeats: int) -> None:
    share = RATE / BURST_RATE
    for bucket in BUCKETS:
        truth = math.floor((bucket - share) / (1.0 - share))
        with open_testbed(file, dut="linux_bridge", options={"police": RATE, "burst": bucket}) as testbed:
            request = BackToBackRequest(
                PROFILE, RATE, BURST_RATE, repeats, longest_burst=max(0.02, 2.0 * truth / BURST_RATE), settle=0.1
            )
            result = measure_back_to_back(testbed, request, _place(directory, f"bursts {bucket}"))
        values = result.back_to_back
        assert values is not None
        _row(f"back-to-back, bucket {bucket}", truth, [search.longest_frames for search in values.searches], "frames")


def _recovery(testbed: Testbed, directory: Path, repeats: int, truth: float, throughput: float) -> None:
    request = RecoveryRequest(PROFILE, throughput, 2.0 * throughput, repeats, 1.0, limit=1.0)
    result = measure_recovery(testbed, request, _place(directory, "recovery"))
    assert result.recovery is not None
    _row("system recovery", truth, [time.recovery_s or 0.0 for time in result.recovery.times], "s")


def _reset(testbed: Testbed, directory: Path, repeats: int, truth: float | None) -> None:
    truths: list[float] = []

    def cycle() -> None:
        (dut,) = testbed.duts
        node: Any = dut
        clock = [int(text) / 1e9 for text in node.node.run("sh", "-c", _CYCLE, "cycle", node.stem, str(DOWN)).split()]
        truths.append((clock[2] + clock[3] - clock[0] - clock[1]) / 2.0)

    request = ResetRequest(
        PROFILE, 5_000.0, reset=None if truth is not None else cycle, repeats=repeats, lead=0.5, limit=0.5
    )
    result = measure_reset(testbed, request, _place(directory, "reset"))
    assert result.reset is not None
    times = result.reset.times
    stamps, lost = [time.time_stamp_s or 0.0 for time in times], [time.loss_method_s for time in times]
    known = truths or [truth or 0.0] * len(times)
    _row("reset by time stamps", 0.0, [value - real for value, real in zip(stamps, known, strict=True)], "s")
    _row("reset by frame loss", 0.0, [value - real for value, real in zip(lost, known, strict=True)], "s")


def _simulated(directory: Path, **model: object) -> Path:
    topology = yaml.safe_load((TOPOLOGIES / "simulated-device.yaml").read_text())
    topology["nodes"]["DUT1"]["sut"] = {"model": "device", "capacity": RATE, **model}
    file = directory / "simulated.yaml"
    file.write_text(yaml.safe_dump(topology))
    return file


def _testbeds(simulated: bool, directory: Path) -> Iterator[tuple[str, Testbed]]:
    if simulated:
        file = _simulated(directory, recovery=0.1, downtime=DOWN)
        yield "recovery", open_testbed(file)
        yield "reset", open_testbed(file)
    else:
        local = TOPOLOGIES / "local.yaml"
        yield "recovery", open_testbed(local, dut="linux_bridge", options={"police": RATE, "burst": 200})
        yield "reset", open_testbed(local, dut="linux_bridge")


@click.command(help=__doc__)
@click.option("--simulated", is_flag=True, help="Simulated devices instead of real frames.")
@click.option("--repeats", default=20, show_default=True, help="Repetitions of each measurement.")
@click.option("--whole/--no-whole", default=True, help="All six tests over the frame sizes, with quick settings.")
def main(simulated: bool, repeats: int, whole: bool) -> None:
    """Measures, and prints a line for each truth."""
    directory = Path(tempfile.mkdtemp(prefix="lossratio-rfc2544-"))
    file = TOPOLOGIES / ("simulated.yaml" if simulated else "local.yaml")
    _bursts(file, directory, repeats)
    for test, testbed in _testbeds(simulated, directory):
        with testbed:
            if test == "recovery":
                _recovery(testbed, directory, repeats, 0.1 if simulated else 0.0, RATE)
            else:
                _reset(testbed, directory, repeats, DOWN if simulated else None)
    if whole:
        profiles = [load_profile("ethip4-udp", frame_size=size, bidirectional=False) for size in SIZES]
        options = {"police": RATE, "burst": 200}
        name = "simulated-device.yaml" if simulated else "local.yaml"
        began = time.monotonic()
        with open_testbed(
            TOPOLOGIES / name, dut=None if simulated else "linux_bridge", options={} if simulated else options
        ) as testbed:
            request = Rfc2544Request(profiles, settings=QUICK, max_load=None if simulated else BURST_RATE)
            run = run_rfc2544(testbed, request, _place(directory, "all"))
        click.echo(
            f"all tests, quick: {len(run.parts)} in {time.monotonic() - began:.1f} s; {run.problems or 'no problem'}"
        )
        for path in write_rfc2544_report(run, directory):
            click.echo(str(path))


if __name__ == "__main__":
    main()
