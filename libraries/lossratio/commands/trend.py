"""The command ``lossratio trend``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lossratio.exit_status import ExitStatus
from lossratio.history import CONFIRM, FRESH, LAST, LEAST_CHANGE, LOOK_AT
from lossratio.report import FILE_NAMES, ReportFormat, junit_xml, write_report


def trend_rules(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that say what a change and an alarm are: fields of `lossratio.history.TrendRequest`."""
    options = (
        click.option(
            "--fresh",
            type=click.IntRange(min=1),
            default=FRESH,
            show_default=True,
            help="A change is news if it began among this many newest results.",
        ),
        click.option(
            "--last",
            type=click.IntRange(min=4),
            default=LAST,
            show_default=True,
            help="How many of the newest results make a trend.",
        ),
        click.option(
            "--least-change",
            type=click.FloatRange(min=0.0),
            default=100 * LEAST_CHANGE,
            show_default=True,
            help="Per cent; smaller changes raise no alarm.",
        ),
        click.option(
            "--confirm",
            type=click.IntRange(1, LOOK_AT),
            default=CONFIRM,
            show_default=True,
            help="How many of the three newest results must be worse to make an alarm; 1: one bad night is one.",
        ),
        click.option(
            "--annotations",
            type=click.Path(path_type=Path),
            help="YAML file of known changes. Left out: annotations.yaml in HISTORY, if there is one.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("history")
@click.option("--add", "runs", metavar="DIR", type=click.Path(path_type=Path), multiple=True, help="Add a run first.")
@click.option("--testbed", help="Only this testbed.")
@click.option("--test", default="*", help="Only tests whose full names match, e.g. '*64B*'.")
@click.option("--quantity", default="*", help="Only this quantity, e.g. NDR or MRR.")
@click.option(
    "--readings",
    is_flag=True,
    help="Also follow latency at each load, and the devices' telemetry: clocks per packet and others. No alarms.",
)
@trend_rules
@click.option("--alert", metavar="FILE", type=click.Path(path_type=Path), help="Send the alerts of this YAML file.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page with a picture for each test.")
@click.option(
    "--runs",
    "pages",
    metavar="URL",
    help="Where the pages of runs are, for links; {run} is the name of a run. Without {run}: URL/{run}/lossratio.html.",
)
@click.option("--json", "json_file", metavar="FILE", type=click.Path(path_type=Path), help="Write all trends as JSON.")
@click.option("--junit", type=click.Path(path_type=Path), help="Write a JUnit file.")
def trend(
    history: str,
    runs: tuple[Path, ...],
    testbed: str | None,
    test: str,
    quantity: str,
    readings: bool,
    fresh: int,
    last: int,
    least_change: float,
    confirm: int,
    annotations: Path | None,
    alert: Path | None,
    html: Path | None,
    pages: str | None,
    json_file: Path | None,
    junit: Path | None,
) -> None:
    """Report what changed lately in HISTORY, a folder or the URL of an archive.

    HISTORY is a folder of results, an archive in a folder, or an archive's URL (e.g. s3://bucket/path).

    Exit status: 0 no test got worse lately, 3 a test got worse or has no value any more, 1 undecided: too few results.
    """
    # Imported here because numpy, scipy, pyarrow and DuckDB take a while, and a wrong option need not wait for them.
    from lossratio.history import (
        Alerts,
        TrendRequest,
        add_runs,
        address_of_run,
        analyse,
        is_url,
        open_history,
        trend_cases,
        trend_json,
        trend_page,
        trend_text,
    )

    if is_url(history) and runs:
        raise click.UsageError("--add adds to a folder; runs go to an archive with 'lossratio send'.")
    # A mistake in the file of alerts is an error before anything is read, and not in the night of the first alarm.
    alerts = None if alert is None else Alerts.load(alert)
    folder = open_history(history)
    for problem in add_runs(folder, runs):
        click.echo(problem, err=True)
    request = TrendRequest(testbed, test, quantity, fresh, last, least_change / 100, annotations, confirm, readings)
    analysis = analyse(folder, request)
    click.echo(trend_text(analysis))
    if html is not None:
        added = {run.resolve().name: os.path.relpath(run / FILE_NAMES[ReportFormat.HTML], html.parent) for run in runs}
        write_report(html, trend_page(analysis, Path(history).name or history, address_of_run(pages, added)))
    if json_file is not None:
        write_report(json_file, trend_json(analysis))
    if junit is not None:
        write_report(junit, junit_xml({"trend": trend_cases(analysis)}))
    for line in () if alerts is None else alerts.send(analysis.trends):
        click.echo(line, err=True)
    if analysis.alarms:
        sys.exit(ExitStatus.REGRESSION)
    if not analysis.has_verdict:
        sys.exit(ExitStatus.FAILED)
