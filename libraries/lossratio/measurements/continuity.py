"""Whether a run that is continued is still measuring the same devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lossratio.errors import SearchError
from lossratio.results import Conditions, RunDirectory


def check_versions(earlier: RunDirectory, conditions: Conditions) -> None:
    """Checks that the DUTs have the versions that the earlier part of the run was measured with.

    Args:
        earlier: The directory of the run that is continued.
        conditions: What is measured now.

    Raises:
        SearchError: If a DUT of the same kind has another version; names both.
        ReportError: If a result of the earlier part cannot be read.
    """
    if not (earlier.path / "results").is_dir():
        return
    for result in earlier.results():
        changes = ", ".join(_changes(result.conditions.duts, conditions.duts))
        if changes:
            raise SearchError(
                f"The run in {earlier.path} cannot be continued: {changes}. It has results of the earlier version. "
                f"Put that back, begin a new run, or insist on it: lossratio run --resume {earlier.path} --force."
            )


def _changes(before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name in before.keys() & now.keys():
        old, new = before[name], now[name]
        if old.get("kind") == new.get("kind") and old.get("version") != new.get("version"):
            yield f"{name} ({new.get('kind')}) was version {old.get('version')}, and is {new.get('version')} now"
