"""Files of search goals, for labs and nightly runs that have goals of their own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from lossratio.errors import SearchError
from lossratio.measurements.throughput.goals import GoalFields
from lossratio.mlrsearch import SearchGoal, SearchGoalWarning
from lossratio.yaml_file import Problem, load_yaml_file


class GoalFile(BaseModel):
    """Search goals by name; a search has all of them. Read it with `load_goals`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    format: Literal["lossratio-goals/1"]
    """Format of the file."""
    description: str = ""
    """What the goals are for."""
    goals: dict[str, GoalFields] = Field(min_length=1)
    """The goals by their names, in the order of results."""


def load_goals(path: str | Path) -> tuple[SearchGoal, ...]:
    """Reads and checks a file of search goals.

    Raises:
        SearchError: If the file is missing, is not YAML, or a goal is none; each problem with file, line and field.
    """
    with warnings.catch_warnings():
        # What is advised against is said where the goal is used, in the result's remarks.
        warnings.simplefilter("ignore", SearchGoalWarning)
        file = load_yaml_file(path, GoalFile, SearchError, _problems)
        return tuple(fields.goal(name) for name, fields in file.goals.items())


def _problems(file: GoalFile) -> Iterator[Problem]:
    for name, fields in file.goals.items():
        try:
            fields.goal(name)
        except SearchError as error:
            yield ("goals", name), str(error)
