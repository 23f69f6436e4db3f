"""VPP's suites as users run them, and tests of FD.io CSIT beside the suites here.

    VPP_HOME=/opt/vpp TREX_HOME=/opt/trex python benchmarks/suites.py vpp
    python benchmarks/suites.py csit CLONE

CLONE is a clone of the repository of FD.io CSIT.
"""

from __future__ import annotations

import ast
import inspect
import os
import random
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from robot.api import TestSuite

from lossratio.dut.vpp import Feature, Vpp
from lossratio.dut.vpp.configuration import HOME_VARIABLE
from lossratio.errors import ReportError
from lossratio.files.shipped import SUITES
from lossratio.keywords import Catalogue
from lossratio.results.findings import findings_of
from lossratio.results.model import TestResult
from lossratio.results.run_directory import RunDirectory
from lossratio_study.csit_coverage import csit_coverage


@click.group(help=__doc__)
def main() -> None:
    """Suites of VPP."""


ROOT = Path(__file__).parent.parent
TREX = ROOT / "topologies" / "local-trex.yaml"
BRISK = ROOT / "benchmarks" / "brisk.yaml"
LONGEST = 1800.0
"""Seconds that a test may take."""


@dataclass(frozen=True)
class Case:
    """A test of a suite."""

    suite: Path
    name: str
    catalogue: str
    """Arguments of the catalogue that makes it."""
    twin: str
    """Name of its twin without DUTs; empty: this topology has no cable."""
    twin_catalogue: str


@main.command()
@click.argument("names", nargs=-1)
@click.option("--goals", default=str(BRISK), help="What throughput is searched with; by default benchmarks/brisk.yaml.")
@click.option("--include", default="ndrpdr", show_default=True, help="Tag of the tests.")
@click.option("--cable/--no-cable", default=True, show_default=True, help="Whether the cable is measured, too.")
@click.option("--cores", default="1", show_default=True, help="Cores of each VPP.")
@click.option("--max-rate", default="500 kfps", show_default=True, help="Largest rate of the embedded generator.")
@click.option(
    "--telemetry", default="on", show_default=True, help="Whether features are proved by a trial after each search."
)
@click.option("--through", default="", help="Command that runs each test, such as 'flock /tmp/testbed timeout 180'.")
@click.option("--outputs", type=Path, help="Where outputs of Robot Framework stay; by default nowhere.")
@click.option("--names-only", is_flag=True, help="Shows the tests' names.")
def vpp(
    names: tuple[str, ...],
    goals: str,
    include: str,
    cable: bool,
    cores: str,
    max_rate: str,
    telemetry: str,
    through: str,
    outputs: Path | None,
    names_only: bool,
) -> None:
    """Runs every suite of VPP (or tests with NAMES in their names), beside the same traffic over a cable.

    Each test is a run of Robot Framework of its own, at its suite's first frame size and on one core, through one or
    two VPPs in network namespaces; after the rows, it prints how many lines each feature of VPP has. VPP runs where the
    environment variable VPP_HOME says that it is installed, TRex where TREX_HOME does.
    """
    if HOME_VARIABLE not in os.environ and not names_only:
        raise click.ClickException(f"{HOME_VARIABLE} is not set. Set it to the directory in which VPP is installed")
    variables = {"GOALS": goals, "LATENCY": "off", "TELEMETRY": telemetry}
    options = ("--include", include, *(f"--variable={name}:{value}" for name, value in variables.items()))
    twins: dict[tuple[str, str], str] = {}
    click.echo(f"{'test':72} {'found':>24} {'cable':>12} {'s':>5} {'load':>5}")
    with TemporaryDirectory() as temporary:
        directory = outputs or Path(temporary)
        for case in cases(topologies_with(max_rate, Path(temporary)), include, cores):
            if names and not any(name in case.name for name in names):
                continue
            if names_only:
                click.echo(case.name)
                continue
            load, began = os.getloadavg()[0], time.monotonic()
            result, problem = ran(case.suite, case.name, case.catalogue, options, through, directory)
            took = time.monotonic() - began
            cell = "-"
            if cable and case.twin and result is not None and result.error is None:
                key = (result.conditions.traffic.name, case.name.partition("-")[0])
                if key not in twins:
                    twin, _ = ran(case.suite, case.twin, case.twin_catalogue, options, through, directory)
                    twins[key] = "-" if twin is None else first_value(twin)
                cell = twins[key]
            value = problem if result is None else result.error or first_value(result)
            click.echo(f"{case.name:72} {value:>24} {cell:>12} {took:5.0f} {load:5.1f}{problem and '  ' + problem}")
    if not names_only:
        click.echo(f"\n{'feature':16} {'lines':>5} {'without texts':>13}  options")
        for feature in Vpp.all_options().kinds:
            lines, code = lines_of(feature)
            click.echo(f"{feature.__name__:16} {lines:5} {code:13}  {', '.join(feature.own_fields())}")


def lines_of(feature: type[Feature]) -> tuple[int, int]:
    """Lines of a class, and how many of them are neither empty nor documentation."""
    source = inspect.getsource(feature)
    lines = source.splitlines()
    nodes = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr))
    texts = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    documented = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in texts)
    empty = sum(not line.strip() for line in lines)
    return len(lines), len(lines) - documented - empty


def topologies_with(max_rate: str, directory: Path) -> tuple[Path, Path]:
    """Topologies with one DUT, and with two DUTs and a cable, whose generator may send up to a maximum rate."""
    files = directory / "local.yaml", directory / "local-3n.yaml"
    for file in files:
        text = (ROOT / "topologies" / file.name).read_text(encoding="utf-8")
        file.write_text(re.sub(r"max_rate: [\w ]+", f"max_rate: {max_rate}", text), encoding="utf-8")
    return files


def cases(topologies: tuple[Path, Path], include: str, cores: str) -> Iterator[Case]:
    """All tests of VPP's suites with a tag, each at one frame size."""
    one_dut, cable_and_two_duts = topologies
    for suite in sorted((ROOT / "tests" / "performance").glob("vpp_*.robot")):
        text = suite.read_text(encoding="utf-8")
        sizes = re.search(r"^Metadata +Frame Sizes +(\S+)", text, re.MULTILINE)
        least = re.search(r"^Metadata +Cores +(\d+)", text, re.MULTILINE)
        ending = f"{sizes[1] if sizes else '64B'}:{max(cores, least[1] if least else '1')}"
        topology = TREX if "with TRex" in text else cable_and_two_duts if "duts=2" in text else one_dut
        catalogue, twin_catalogue = f"{topology}:{ending}", f"{cable_and_two_duts}:{ending}:0"
        tests = names_of(suite, catalogue, include)
        twins = names_of(suite, twin_catalogue, include) if topology is not TREX else [""] * len(tests)
        yield from (Case(suite, name, catalogue, twin, twin_catalogue) for name, twin in zip(tests, twins, strict=True))


def names_of(suite: Path, catalogue: str, include: str) -> list[str]:
    """Names of the tests that a catalogue makes of a suite."""
    expanded = TestSuite.from_file_system(str(suite))
    expanded.visit(Catalogue(*catalogue.split(":")))
    expanded.filter(included_tags=[include])
    return [test.name for test in expanded.all_tests]


def ran(
    suite: Path, test: str, catalogue: str, options: tuple[str, ...], through: str, directory: Path
) -> tuple[TestResult | None, str]:
    """Runs a test; returns its result, and the reason why it failed."""
    # Tests of two suites may have the same name.
    output = directory / suite.stem / test
    robot = (sys.executable, "-m", "robot", "--outputdir", str(output), "--log", "NONE", "--report", "NONE", *options)
    expanded = ("--test", test, "--prerunmodifier", f"lossratio.keywords.Catalogue:{catalogue}", str(suite))
    command = (*shlex.split(through), *robot, *expanded)
    run = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    try:
        results = list(RunDirectory(output).results())
    except ReportError:
        results = []
    lines = [line for line in run.stdout.splitlines() if "Error: " in line or line.startswith("Parent suite setup")]
    ended = [] if run.returncode < 200 else [f"ended with status {run.returncode}"]
    return next(iter(results), None), "; ".join(dict.fromkeys((*lines, *ended)))


def first_value(result: TestResult) -> str:
    """The first finding of a result, such as NDR."""
    return next((finding.in_short for finding in findings_of([result])), "-")


@main.command()
@click.argument("clone", type=click.Path(exists=True, path_type=Path))
@click.option("--drawn", default=60, show_default=True, help="Number of tests.")
@click.option("--seed", default=102, show_default=True, help="Seed of the draw.")
def csit(clone: Path, drawn: int, seed: int) -> None:
    """Draws tests of FD.io CSIT's weekly jobs for VPP from a clone of CSIT, and says what differs here."""
    ours = tuple(SUITES.path(name) for name in SUITES.names())
    coverage = csit_coverage(clone, ours, "csit-vpp-perf-ndrpdr-weekly-*")
    tests = [(job, test, judged) for job, judgements in coverage.jobs.items() for test, judged in judgements.items()]
    if not tests:
        raise click.ClickException(f"{clone} has no weekly jobs of VPP. Name a clone of FD.io CSIT")
    for number in sorted(random.Random(seed).sample(range(len(tests)), min(drawn, len(tests)))):
        job, test, judged = tests[number]
        differs = "; ".join(f"{aspect}: {theirs} / {mine}" for aspect, (theirs, mine) in judged.differences.items())
        where = job.rpartition("master-")[2]
        click.echo(f"{number:4}  {judged.verdict.value:9}  {where}  {test.id}  {differs}".rstrip())


if __name__ == "__main__":
    main()
