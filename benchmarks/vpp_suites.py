"""Every suite of VPP as users run it, on this machine: what it finds, beside the same traffic over a cable.

Each suite is a run of Robot Framework of its own, at its first frame size and on one core, through one or two VPPs in
network namespaces. A table shows each test when its suite has ended; behind it is how long each feature of VPP is.
VPP runs where the environment variable VPP_HOME says that it is installed.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from lossratio.dut.vpp.configuration import VppOptions
from lossratio.dut.vpp.features import Feature
from lossratio.errors import ReportError
from lossratio.results.findings import findings_of
from lossratio.results.model import TestResult
from lossratio.results.run_directory import RunDirectory

ROOT = Path(__file__).parent.parent
ONE_DUT, CABLE_AND_TWO_DUTS = (ROOT / "topologies" / name for name in ("local.yaml", "local-3n.yaml"))
LONGEST = 1800.0
"""Seconds that a suite may take."""


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--goals", default="quick", show_default=True, help="What NDR and PDR are searched with.")
@click.option("--include", default="ndrpdr", show_default=True, help="Tag of the tests.")
@click.option("--cable/--no-cable", default=True, show_default=True, help="Whether the cable is measured, too.")
@click.option("--cores", default="1", show_default=True, help="Cores of each VPP.")
def main(names: tuple[str, ...], goals: str, include: str, cable: bool, cores: str) -> None:
    """Runs the suites with these letters in their names, or all of them."""
    click.echo(f"{'test':64} {'found':>12} {'cable':>12} {'s':>5}")
    for suite in sorted((ROOT / "tests" / "performance").glob("vpp_*.robot")):
        if names and not any(name in suite.stem for name in names):
            continue
        text = suite.read_text(encoding="utf-8")
        sizes = re.search(r"^Metadata +Frame Sizes +(\S+)", text, re.MULTILINE)
        size = sizes[1] if sizes else "64B"
        options = ("--variable", f"GOALS:{goals}", "--include", include)
        topology = CABLE_AND_TWO_DUTS if "duts=2" in text else ONE_DUT
        began = time.monotonic()
        found, problem = ran(suite, f"{topology}:{size}:{cores}", options)
        took = time.monotonic() - began
        twins = dict(of_cable(suite, f"{CABLE_AND_TWO_DUTS}:{size}:{cores}:0", options)) if cable else {}
        for result in found:
            value = result.error if result.error else first_value(result)
            twin = twins.get(result.conditions.traffic.name, "-")
            click.echo(f"{result.test.name:64} {value:>12} {twin:>12} {took / len(found):5.0f}")
        if not found or problem:
            click.echo(f"{suite.stem:64} {problem}")
    click.echo(f"\n{'feature':16} {'lines':>5}  options")
    for feature in (kind for kind in VppOptions.__bases__ if issubclass(kind, Feature)):
        own = [name for name in feature.model_fields if name not in Feature.model_fields]
        click.echo(f"{feature.__name__:16} {len(inspect.getsource(feature).splitlines()):5}  {', '.join(own)}")


def of_cable(suite: Path, catalogue: str, options: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """What the cable forwards, by the name of the traffic."""
    results, _ = ran(suite, catalogue, options)
    yield from ((result.conditions.traffic.name, first_value(result)) for result in results)


def ran(suite: Path, catalogue: str, options: tuple[str, ...]) -> tuple[list[TestResult], str]:
    """Runs a suite; returns its results, and the reason why a test failed without one."""
    with TemporaryDirectory() as directory:
        robot = (sys.executable, "-m", "robot", "--outputdir", directory, "--variable", "LATENCY:off", *options)
        expanded = ("--prerunmodifier", f"lossratio.keywords.Catalogue:{catalogue}", str(suite))
        run = subprocess.run((*robot, *expanded), capture_output=True, text=True, timeout=LONGEST, check=False)
        try:
            results = list(RunDirectory(Path(directory)).results())
        except ReportError:
            results = []
        lines = [line for line in run.stdout.splitlines() if "Error: " in line or line.startswith("Parent suite setup")]
        return results, "; ".join(dict.fromkeys(lines))


def first_value(result: TestResult) -> str:
    """The first finding of a result, such as NDR."""
    return next((finding.in_short for finding in findings_of([result])), "-")


if __name__ == "__main__":
    main()
