"""The commands that read a history: ``lossratio trend`` and ``lossratio archive ack``."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from lossratio.commands.parameters import (
    FILE_TO_WRITE,
    ONLY_QUANTITY,
    PerCent,
    WholeNumber,
    argument,
    check_files_to_write,
    command,
    option,
    say,
)
from lossratio.files import shell_word
from lossratio.nodes import own_name
from lossratio.report import (
    PAGE,
    Verdict,
    history as histories,
    junit_xml,
    report_format,
    write_report,
)
from lossratio.report.history import LOOK_AT, TrendRequest
from lossratio.values import ExitStatus

_USUAL = TrendRequest()


@dataclass(frozen=True)
class RuleOptions:
    """The options for changes and alarms, with the names of the fields of `lossratio.report.history.TrendRequest`."""

    fresh: int = option(
        "A change can raise an alarm if it began among this many of the newest results.",
        type=WholeNumber(min=1),
        default=_USUAL.fresh,
    )
    last: int = option(
        "How many of the newest results the trend uses.",
        type=WholeNumber(min=4),
        default=_USUAL.last,
    )
    least_change: float = option(
        "Changes below this percentage raise no alarm.",
        type=PerCent(min=0.0),
        default=100 * _USUAL.least_change,
    )
    confirm: int = option(
        "An alarm needs this many worse results among the three newest ones. With 1, one bad night is enough.",
        type=WholeNumber(min=1, max=LOOK_AT),
        default=_USUAL.confirm,
    )
    annotations: Path | None = option(
        "YAML file of known changes. Default: annotations.yaml in HISTORY, if there is one."
    )

    def request(self, **others: Any) -> TrendRequest:
        """The request with other fields."""
        return TrendRequest(**{**vars(self), "least_change": self.least_change / 100, **others})


def _pattern(text: str) -> Any:
    """Declares an option that chooses series by a pattern; by default, all of them."""
    return option(text, default="*", show_default=False, metavar="PATTERN")


def _opened(history: str, runs: Sequence[Path]) -> histories.History:
    if histories.is_url(history) and runs:
        raise click.UsageError(
            "--add adds to a folder. To send runs to an archive, use 'lossratio archive send'."
        )
    folder = histories.open_history(history)
    for problem in histories.add_runs(folder, runs):
        say(problem, err=True)
    return folder


@command()
def trend(
    history: str = argument(),
    *,
    runs: tuple[Path, ...] = option("First add the run in DIR to HISTORY.", "--add", metavar="DIR"),
    testbed: str | None = option("Only this testbed.", metavar="NAME"),
    test: str = _pattern("Only tests with matching full names, e.g. '*64B*'."),
    quantity: str = _pattern(ONLY_QUANTITY),
    device: str = _pattern(
        "Only matching devices, with their options, e.g. 'linux_router, police=*'."
    ),
    readings: bool = option(
        "Also follow the latency at each load and telemetry such as clocks per packet. These raise no alarms."
    ),
    rules: RuleOptions,
    alert: Path | None = option("Send the alerts of this YAML file.", metavar="FILE"),
    html: Path | None = option("Write a page with a picture for each test.", type=FILE_TO_WRITE),
    pages: str | None = option(
        "Link to each run's page at this address. {run} stands for its name; without it: URL/{run}/lossratio.html.",
        "--runs",
        metavar="URL",
    ),
    json_file: Path | None = option(
        "Write all trends as JSON.", "--json", metavar="FILE", type=FILE_TO_WRITE
    ),
    junit: Path | None = option("Write a JUnit file.", type=FILE_TO_WRITE),
) -> None:
    """Report what changed recently in the results of HISTORY.

    HISTORY is a folder that --add fills, an archive in a folder, or an archive's URL (e.g. s3://bucket/path).

    Exit status: 0 if no alarm is open, 3 if a test got worse, 1 if a test no longer has a value, 4 if undecided: too
    few results, or the tester changed.
    """
    check_files_to_write(html=html, json=json_file, junit=junit)
    # A mistake in the file of alerts must be an error before anything is read, not in the night of the first alarm.
    alerts = None if alert is None else histories.Alerts.load(alert)
    folder = _opened(history, runs)
    chosen = rules.request(
        testbed=testbed, test=test, quantity=quantity, device=device, readings=readings
    )
    analysis = histories.analyse(folder, chosen)
    say(histories.trend_text(analysis))

    if html is not None:
        added = {
            run.resolve().name: os.path.relpath(run / report_format(PAGE).file_name, html.parent)
            for run in runs
        }
        links = histories.address_of_run(pages, added)
        write_report(html, histories.trend_page(analysis, Path(history).name or history, links))

    if json_file is not None:
        write_report(json_file, histories.trend_json(analysis))
    if junit is not None:
        write_report(junit, junit_xml({"trend": histories.trend_cases(analysis)}))
    for line in () if alerts is None else alerts.send(analysis.trends):
        say(line, err=True)
    if any(trend.verdict is Verdict.REGRESSION for trend in analysis.alarms):
        sys.exit(ExitStatus.REGRESSION)
    if analysis.alarms:
        sys.exit(ExitStatus.FAILED)
    if analysis.of_tester or not analysis.has_verdict:
        sys.exit(ExitStatus.UNDECIDED)


@command()
def ack(
    history: str = argument(),
    why: str = argument(),
    *,
    by: str | None = option(
        "The author of the reason. Default: the name of this user.", metavar="NAME"
    ),
    keep_open: bool = option(
        "Only add WHY as a note, e.g. who investigates it. The alarms stay open."
    ),
    testbed: str | None = option("Only alarms of this testbed.", metavar="NAME"),
    test: str = _pattern("Only alarms of tests with matching full names, e.g. '*64B*'."),
    quantity: str = _pattern("Only alarms of this quantity, e.g. NDR or MRR."),
    device: str = _pattern(
        "Only alarms of matching devices, with their options, e.g. 'linux_router, police=*'."
    ),
    rules: RuleOptions,
    alert: Path | None = option(
        "File of alerts (YAML): send WHY to everybody who received the alarm.", metavar="FILE"
    ),
) -> None:
    """Close the open alarms of HISTORY with the reason WHY.

    Each alarm gets a line in the file of known changes, with its day, the reason, and who gave it.

    Exit status: 0 if alarms are explained, 2 if no alarm is open.
    """
    author = by or own_name()
    if author is None:
        raise click.UsageError(
            "Your user has no name on this machine. Name the author of the reason: --by NAME"
        )
    alerts = None if alert is None else histories.Alerts.load(alert)
    folder = histories.open_history(history)
    chosen = rules.request(testbed=testbed, test=test, quantity=quantity, device=device)
    explained = histories.explain_alarms(folder, chosen, why, author, keeps_open=keep_open)
    if not explained:
        raise click.UsageError(
            f"{history} has no such open alarm. To list the open alarms: lossratio trend {shell_word(history)}"
        )
    if histories.is_url(history) and rules.annotations is None:
        histories.put_annotations(history, folder)
    for alarm in explained:
        say(f"{'noted' if keep_open else 'explained'}: {histories.describe_trend(alarm)}")
    for line in () if alerts is None else alerts.send(explained):
        say(line, err=True)
