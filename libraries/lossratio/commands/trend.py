"""The commands ``lossratio trend`` and ``lossratio ack``."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lossratio.commands.parameters import argument, command, option
from lossratio.exit_status import ExitStatus
from lossratio.history import CONFIRM, FRESH, LAST, LEAST_CHANGE, LOOK_AT
from lossratio.report import FILE_NAMES, ReportFormat, junit_xml, write_report

if TYPE_CHECKING:
    from lossratio.history import History, TrendRequest


@dataclass(frozen=True)
class TrendRules:
    """What a change and an alarm are: fields of `lossratio.history.TrendRequest`."""

    fresh: int = option(
        "A change is news if it began among this many newest results.", type=click.IntRange(min=1), default=FRESH
    )
    last: int = option("How many of the newest results make a trend.", type=click.IntRange(min=4), default=LAST)
    least_change: float = option(
        "Per cent; smaller changes raise no alarm.", type=click.FloatRange(min=0.0), default=100 * LEAST_CHANGE
    )
    confirm: int = option(
        "How many of the three newest results must be worse to make an alarm; 1: one bad night is one.",
        type=click.IntRange(1, LOOK_AT),
        default=CONFIRM,
    )
    annotations: Path | None = option(
        "YAML file of known changes. Left out: annotations.yaml in HISTORY, if there is one."
    )

    def request(self, **others: Any) -> TrendRequest:
        """The request with other fields."""
        from lossratio.history import TrendRequest

        return TrendRequest(**{**vars(self), "least_change": self.least_change / 100, **others})


def opened_history(history: str, runs: Sequence[Path]) -> History:
    """A history with some runs added."""
    from lossratio.history import add_runs, is_url, open_history

    if is_url(history) and runs:
        raise click.UsageError("--add adds to a folder; runs go to an archive with 'lossratio send'.")
    folder = open_history(history)
    for problem in add_runs(folder, runs):
        click.echo(problem, err=True)
    return folder


@command()
def trend(
    history: str = argument(),
    *,
    runs: tuple[Path, ...] = option("Add a run first.", "--add", metavar="DIR"),
    testbed: str | None = option("Only this testbed."),
    test: str = option("Only tests whose full names match, e.g. '*64B*'.", default="*", show_default=False),
    quantity: str = option("Only this quantity, e.g. NDR or MRR.", default="*", show_default=False),
    readings: bool = option(
        "Also follow latency at each load, and the devices' telemetry: clocks per packet and others. No alarms."
    ),
    rules: TrendRules,
    alert: Path | None = option("Send the alerts of this YAML file.", metavar="FILE"),
    html: Path | None = option("Write a page with a picture for each test."),
    pages: str | None = option(
        "Where the pages of runs are, for links; {run} is the name of a run. Without {run}: URL/{run}/lossratio.html.",
        "--runs",
        metavar="URL",
    ),
    json_file: Path | None = option("Write all trends as JSON.", "--json", metavar="FILE"),
    junit: Path | None = option("Write a JUnit file."),
) -> None:
    """Report what changed lately in HISTORY, a folder or the URL of an archive.

    HISTORY is a folder of results, an archive in a folder, or an archive's URL (e.g. s3://bucket/path).

    Exit status: 0 no test got worse lately, 3 a test got worse or has no value any more, 1 undecided: too few results.
    """
    # Imported here because numpy, scipy, pyarrow and DuckDB take a while, and a wrong option need not wait for them.
    from lossratio.history import Alerts, address_of_run, analyse, trend_cases, trend_json, trend_page, trend_text

    # A mistake in the file of alerts is an error before anything is read, and not in the night of the first alarm.
    alerts = None if alert is None else Alerts.load(alert)
    folder = opened_history(history, runs)
    chosen = rules.request(testbed=testbed, test=test, quantity=quantity, readings=readings)
    analysis = analyse(folder, chosen)
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


@command()
def ack(
    history: str = argument(),
    why: str = argument(),
    *,
    by: str | None = option("Who says so. Left out: the name of this user.", metavar="NAME"),
    keep_open: bool = option("Only note WHY, e.g. who looks at it: the alarms stay open."),
    testbed: str | None = option("Only alarms of this testbed."),
    test: str = option("Only alarms of tests whose full names match, e.g. '*64B*'.", default="*", show_default=False),
    quantity: str = option("Only alarms of this quantity, e.g. NDR or MRR.", default="*", show_default=False),
    rules: TrendRules,
    alert: Path | None = option("Send WHY to the alerts of this YAML file that sent the alarm.", metavar="FILE"),
) -> None:
    """Explain the open alarms of HISTORY: WHY is known, and they are alarms no more.

    Each gets its own line in the file of known changes, with its day, who explained it, and why.

    Exit status: 0 alarms are explained, 2 no alarm is open.
    """
    from lossratio.history import Alerts, describe_trend, explain_alarms, is_url, open_history, put_annotations

    alerts = None if alert is None else Alerts.load(alert)
    folder = open_history(history)
    chosen = rules.request(testbed=testbed, test=test, quantity=quantity)
    explained = explain_alarms(folder, chosen, why, by or getpass.getuser(), keeps_open=keep_open)
    if not explained:
        raise click.UsageError(f"No such alarm is open in {history}.")
    if is_url(history) and rules.annotations is None:
        put_annotations(history, folder)
    for alarm in explained:
        click.echo(f"{'noted' if keep_open else 'explained'}: {describe_trend(alarm)}")
    for line in () if alerts is None else alerts.send(explained):
        click.echo(line, err=True)
