"""The report that RFC 2544 asks for: its chapters, the conditions, and what differs from the RFC, in three formats."""

import csv
import io
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lossratio.drawing import html_fragment
from lossratio.errors import storing
from lossratio.files import parse_json
from lossratio.measurements.rfc2544.chapters import CHAPTERS
from lossratio.measurements.rfc2544.differences import Difference, differences_of, verdict_of
from lossratio.measurements.rfc2544.run import Rfc2544Part, Rfc2544Run, Rfc2544Test
from lossratio.results import (
    Note,
    aggregate_of,
    doubts_of,
    findings_of,
    message,
    view_of,
    write_whole,
)
from lossratio.values import format_duration

REPORT_FORMAT = "lossratio-rfc2544/2"
"""Format of the JSON file."""
NAME = "rfc2544"
"""Name of the files, without their suffix."""


@dataclass(frozen=True)
class Rfc2544Report:
    """A report in three formats."""

    html: str
    """One page, which needs no network and no scripts."""
    json: str
    """Everything, for programs."""
    csv: str
    """A row for each test and frame size, for spreadsheets."""


def rfc2544_report(run: Rfc2544Run) -> Rfc2544Report:
    """Makes the report of a run."""
    differences = differences_of(run)
    results = [part.result for part in run.parts if part.result is not None]
    doubted = doubts_of(results)
    # Record: what the template shows.
    page = html_fragment(
        __package__,
        "report.html.jinja",
        run=run,
        goal=next(
            (result.goals[0].goal for result in run.results_of(Rfc2544Test.THROUGHPUT)), None
        ),
        conditions=results[0].conditions if results else None,
        took=format_duration((run.ended - run.started).total_seconds()),
        forecast=format_duration(run.forecast.seconds),
        measured=format_duration(
            sum(trial.elapsed_s for result in results for trial in result.trials)
        ),
        chapters=[chapter for chapter in CHAPTERS if run.of(chapter.test)],
        differences=differences,
        verdict=verdict_of(differences),
        results=results,
        words=[message(result, results) for result in results],
    )
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()

    doubts = _doubts_of_parts(run, doubted)
    for part, about in zip(run.parts, doubts, strict=True):
        kinds = "; ".join(doubt.kind.value for doubt in about)
        where = {"frame_size": part.frame_size, "test": part.test.value, "doubts": kinds}
        rows = list(values_of(part)) or [{"outcome": "failed", "reason": part.problem}]
        writer.writerows({**where, **row} for row in rows)

    return Rfc2544Report(page, _as_json(run, differences, doubts), text.getvalue())


def _doubts_of_parts(run: Rfc2544Run, doubted: Iterable[Sequence[Note]]) -> list[Sequence[Note]]:
    """The doubts about each part of a run; a part without a result has none."""
    of_results = iter(doubted)
    return [() if part.result is None else next(of_results) for part in run.parts]


def write_rfc2544_report(run: Rfc2544Run, directory: Path) -> tuple[Path, ...]:
    """Writes the report into a directory, in three files named ``rfc2544``, or ``rfc2544-2`` if the names are taken.

    Raises:
        StorageError: If a file cannot be written.
    """
    texts = asdict(rfc2544_report(run))
    names = (NAME if number == 1 else f"{NAME}-{number}" for number in itertools.count(1))
    name = next(name for name in names if _is_free(directory / f"{name}.json", run.test.full_name))
    paths = {suffix: directory / f"{name}.{suffix}" for suffix in texts}
    for suffix, path in paths.items():
        with storing(f"write the report {path}", "Free some space, and resume the run."):
            directory.mkdir(parents=True, exist_ok=True)
            write_whole(path, texts[suffix].encode())
    return tuple(paths.values())


def _is_free(path: Path, test_name: str) -> bool:
    """Whether the file of a report is missing, or belongs to the same test in a resumed run."""
    try:
        return bool(parse_json(path.read_bytes()).get("test") == test_name)
    except OSError:
        return True
    except (ValueError, AttributeError):
        # The file of this name is not a report.
        return False


def values_of(part: Rfc2544Part) -> Iterator[dict[str, Any]]:
    """The quantities of a part, as numbers: rates are aggregates, in frames per second."""
    if part.result is None:
        return

    for finding in findings_of([part.result]):
        yield {
            "quantity": finding.quantity,
            "outcome": finding.outcome.value,
            "value": aggregate_of(finding.value),
            "unit": finding.unit.name if finding.has_value else None,
            "stdev": aggregate_of(finding.deviation),
            "lower_bound": aggregate_of(finding.lower_bound),
            "upper_bound": aggregate_of(finding.upper_bound),
            "reason": finding.reason,
        }

    # Some results have no single value.
    for row in view_of(part.result).rfc2544_rows(part.result):
        yield {
            "quantity": row.quantity,
            "outcome": "measured",
            "value": row.value,
            "unit": row.unit,
            "stdev": row.deviation,
            "reason": row.note,
        }


def _as_json(
    run: Rfc2544Run, differences: Sequence[Difference], doubts: Sequence[Sequence[Note]]
) -> str:
    settings = {
        test.value: request.settings.model_dump(mode="json")
        for test, request in run.requests.items()
    }

    # Record: the fields of the file.
    data = {
        "format": REPORT_FORMAT,
        "test": run.test.full_name,
        "started": run.started.isoformat(),
        "ended": run.ended.isoformat(),
        "forecast_s": run.forecast.seconds,
        "settings": settings,
        "compliance": verdict_of(differences),
        "differences": [asdict(item) for item in differences],
        "parts": [_part_as_json(*part) for part in zip(run.parts, doubts, strict=True)],
    }
    return json.dumps(data, indent=1) + "\n"


def _part_as_json(part: Rfc2544Part, doubts: Iterable[Note]) -> dict[str, Any]:
    result = None
    if part.result is not None:
        result = part.result.model_dump(mode="json", exclude={"trials"})

    return {
        "frame_size": part.frame_size,
        "test": part.test.value,
        "problem": part.problem,
        "doubts": [{"kind": doubt.kind.value, "text": doubt.text} for doubt in doubts],
        "values": list(values_of(part)),
        "result": result,
    }


_COLUMNS = (
    *("frame_size", "test", "quantity", "outcome", "value", "unit"),
    *("stdev", "lower_bound", "upper_bound", "reason", "doubts"),
)
