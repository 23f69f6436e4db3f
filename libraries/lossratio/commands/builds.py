"""The commands ``lossratio ab`` and ``lossratio bisect``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lossratio.errors import BuildError
from lossratio.exit_status import ExitStatus

if TYPE_CHECKING:
    from lossratio.builds import BuildBench

FILE = click.Path(path_type=Path)


def _measured_with(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that both commands have."""
    options = (
        click.argument("suites", metavar="TEST...", nargs=-1, type=FILE, required=True),
        click.option("--topology", metavar="FILE", type=FILE, required=True, help="The testbed."),
        click.option("--test", "tests", metavar="NAME", multiple=True, help="Only tests with this name, or pattern."),
        click.option("--include", metavar="TAG", multiple=True, help="Only tests with this tag, or pattern of tags."),
        click.option("--quantity", help="Only this quantity, e.g. NDR or MRR."),
        click.option(
            "--least-change",
            type=click.FloatRange(min=0.0, max=100.0, min_open=True, max_open=True),
            default=1.0,
            show_default=True,
            help="Per cent; smaller changes do not matter.",
        ),
        click.option("--limit", type=click.IntRange(min=8), default=40, show_default=True, help="Most measurements."),
        click.option(
            "--output", metavar="DIR", type=FILE, required=True, help="Where runs go. A comparison in it is continued."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.option("--set-up-a", metavar="COMMAND", required=True, help="Sets build A up, e.g. the parent of a patch.")
@click.option("--set-up-b", metavar="COMMAND", required=True, help="Sets build B up, e.g. the patch.")
@click.option(
    "--certainty",
    type=click.FloatRange(min=50.0, max=100.0, max_open=True),
    default=95.0,
    show_default=True,
    help="Per cent; the share of comparisons that claim no difference where there is none is this at least.",
)
@click.option("--markdown", metavar="FILE", type=FILE, help="Write the verdicts as a comment for a pull request, too.")
@_measured_with
def ab(set_up_a: str, set_up_b: str, certainty: float, markdown: Path | None, **given: Any) -> None:
    """Compare two builds of the SUT: measure TEST on both until the verdict is clear.

    TEST are files or directories with suites. The builds are measured in turns, A B B A. Their set-up commands run in
    a shell before each measurement.

    Exit status: 0 B is no slower, 3 B is slower, 1 undecided at the limit; or that of the run that failed.
    """
    # Imported here because Robot Framework and all that measures take a while; a wrong option need not wait for them.
    from lossratio.builds import (
        AbRequest,
        Build,
        BuildRecord,
        ComparisonVerdict,
        compare_builds,
        comparison_comment,
        describe_comparison,
        set_up_build,
    )
    from lossratio.report import write_report

    bench = _bench(given)
    commands = {Build.A: set_up_a, Build.B: set_up_b}
    record = BuildRecord(given["output"], {"set_up_a": set_up_a, "set_up_b": set_up_b, **_asked(given)})

    def measure(build: Build, record: BuildRecord) -> Any:
        if not set_up_build(commands[build], build.value):
            raise BuildError(f"The set-up of build {build.value} says that it cannot be measured.", ExitStatus.FAILED)
        return bench.measure(record.next_directory(build.value))

    request = AbRequest(given["least_change"] / 100, given["limit"], certainty / 100)
    results = compare_builds(request, record, measure, click.echo)
    for name, result in results.items():
        click.echo(describe_comparison(name, result))
    if markdown is not None:
        write_report(markdown, comparison_comment(results, record, request))
    verdicts = {result.verdict for result in results.values()}
    if ComparisonVerdict.SLOWER in verdicts:
        sys.exit(ExitStatus.REGRESSION)
    if ComparisonVerdict.UNDECIDED in verdicts:
        sys.exit(ExitStatus.FAILED)


@click.command()
@click.option("--good", metavar="REV", required=True, help="A revision without the change.")
@click.option("--bad", metavar="REV", required=True, help="A later one with it.")
@click.option("--repository", metavar="DIR", type=FILE, default=Path(), help="The git repository. Left out: this one.")
@click.option(
    "--set-up",
    metavar="COMMAND",
    required=True,
    help="Sets up the revision in $LOSSRATIO_REVISION; exit status 125: it cannot be measured.",
)
@_measured_with
def bisect(good: str, bad: str, repository: Path, set_up: str, **given: Any) -> None:
    """Find the revision that changed the throughput of TEST.

    Measurements are repeated as often as the noise needs it.

    Exit status: 0 found, 1 undecided at the limit or no change that matters; or that of the run that failed.
    """
    from lossratio.builds import (
        Bisection,
        BisectionVerdict,
        BuildRecord,
        describe_bisection,
        revisions_between,
        set_up_build,
        subject_of,
    )
    from lossratio.builds import bisect as search_revisions

    bench = _bench(given)
    revisions = revisions_between(good, bad, repository)
    asked = {"good": revisions[0], "bad": revisions[-1], "set_up": set_up, **_asked(given)}
    record = BuildRecord(given["output"], asked)

    def measure(revision: str, record: BuildRecord) -> Any:
        is_set_up = set_up_build(set_up, revision, "LOSSRATIO_REVISION")
        return bench.measure(record.next_directory(revision)) if is_set_up else None

    search = Bisection(revisions, least_change=given["least_change"] / 100, limit=given["limit"])
    click.echo(f"{len(revisions) - 1} revisions could have changed the throughput.")
    result = search_revisions(search, record, measure, click.echo)
    click.echo(describe_bisection(result, subject_of(repository)))
    if result.verdict is not BisectionVerdict.FOUND:
        sys.exit(ExitStatus.FAILED)


def _bench(given: dict[str, Any]) -> BuildBench:
    from lossratio.builds import BuildBench
    from lossratio.runs import RunRequest

    options = tuple(part for name in given["tests"] for part in ("--test", name))
    request = RunRequest((given["topology"],), given["suites"], given["include"], options, purpose="builds compared")
    return BuildBench(request, given["quantity"], lambda caveat: click.echo(f"Note: {caveat}", err=True))


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    """The settings that must be the same when a comparison is continued."""
    names = ("suites", "topology", "tests", "include", "quantity", "least_change")
    return {
        name: [str(item) for item in value] if isinstance(value := given[name], tuple) else str(value) for name in names
    }
