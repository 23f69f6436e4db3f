"""Search goals as users write them: the name of a preset, the fields of a goal of their own, or a file of goals."""

import ast
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from lossratio.errors import SearchError
from lossratio.files import Problem, load_yaml_file
from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, SearchGoal, SearchGoalWarning
from lossratio.values import FileDuration, FileModel, FileShare, did_you_mean, in_words, shown_value

_EXAMPLE = '{"loss_ratio": "0.1 %", "duration_sum": "5 s"}'
_SHARE_AFTER_SEARCH = 0.5
QUICK_NDR = SearchGoal(0.0, 0.5, 0.5, 2.0, 0.01, 0.5, name="QUICK_NDR")
"""A tenth of NDR's evidence: for trying things out, not for comparison with other numbers."""
QUICK_PDR = SearchGoal(0.005, 0.5, 0.5, 2.0, 0.01, 0.5, name="QUICK_PDR")
"""A tenth of PDR's evidence: for trying things out, not for comparison with other numbers."""
HALF_NDR = replace(NDR, duration_sum=11.0, name="HALF_NDR")
"""As NDR, with half the evidence, in about half the time. Not comparable with FD.io CSIT's numbers."""
HALF_PDR = replace(PDR, duration_sum=11.0, name="HALF_PDR")
"""As HALF_NDR, but for PDR."""
COARSE_NDR = replace(HALF_NDR, width=0.02, name="COARSE_NDR")
"""As HALF_NDR, with bounds farther apart, so that short stalls of a busy machine do not decide about a load."""
COARSE_PDR = replace(HALF_PDR, width=0.02, name="COARSE_PDR")
"""As COARSE_NDR, but for PDR."""

PRESETS: Mapping[str, SearchGoal] = {
    str(goal): goal
    for goal in (
        NDR,
        PDR,
        RFC2544,
        TST009,
        HALF_NDR,
        HALF_PDR,
        QUICK_NDR,
        QUICK_PDR,
        COARSE_NDR,
        COARSE_PDR,
    )
}
"""The goals that have a name."""


class NdrPdrGoals(Enum):
    """The pairs of goals for a search for NDR and PDR. Users write hyphens instead of the underscores in names."""

    csit = (NDR, PDR)
    csit_half = (HALF_NDR, HALF_PDR)
    quick = (QUICK_NDR, QUICK_PDR)
    coarse = (COARSE_NDR, COARSE_PDR)

    @property
    def title(self) -> str:
        """The name as users write it."""
        return self.name.replace("_", "-")

    @classmethod
    def titled(cls, title: str) -> "NdrPdrGoals | None":
        """The pair that has this name for users; None: there is none."""
        return next((pair for pair in cls if pair.title == title), None)


class GoalFields(FileModel):
    """A user's own goal; fields that are left out are as in CSIT's NDR and PDR."""

    loss_ratio: FileShare
    """Share of the frames of a trial that may be lost."""
    exceed_ratio: FileShare = NDR.exceed_ratio
    """Share of the duration sum in which trials may lose more."""
    final_trial_duration: FileDuration = NDR.final_trial_duration
    """Duration of full-length trials."""
    duration_sum: FileDuration = NDR.duration_sum
    """Total duration of the trials at one load that decide about the load."""
    width: FileShare = NDR.width
    """Largest distance of the relevant bounds, as a share of the upper one."""
    initial_trial_duration: FileDuration | None = None
    """Duration of the first trials; left out: MLRsearch's default."""
    stream: str | None = None
    """The stream of the traffic profile whose frames count; left out: all frames."""

    def goal(self, name: str | None) -> SearchGoal:
        """The goal.

        Raises:
            SearchError: If values make no sense.
        """
        return SearchGoal(**self.model_dump(exclude_none=True) | {"name": name})


class _NamedFields(GoalFields):
    name: str | None = None


class GoalFile(FileModel):
    """Search goals by name; a search has all of them. Read it with `load_goals`."""

    format: Literal["lossratio-goals/1"]
    """Format of the file."""
    description: str = ""
    """What the goals are for."""
    early_verdict: bool = False
    """Whether trials of these goals end as soon as their verdict is certain; the test can override this."""
    goals: dict[str, GoalFields] = Field(min_length=1)
    """The goals by their names; results have the same order."""


@dataclass(frozen=True)
class GoalSet:
    """The goals of one search."""

    goals: tuple[SearchGoal, ...]
    """The goals."""
    early_verdict: bool = False
    """Whether trials end as soon as their verdict is certain; the test can override this."""


def duration_after_search(goals: Iterable[SearchGoal], usual: float) -> float:
    """Seconds of a trial for latency or telemetry: the usual time, or half of the goals' duration sum if shorter."""
    return min(usual, _SHARE_AFTER_SEARCH * max(goal.duration_sum for goal in goals))


def goal_from(description: str | Mapping[str, Any] | SearchGoal) -> SearchGoal:
    """Makes a search goal from the name of a preset in any case, e.g. ``NDR``, or from a goal's fields (`GoalFields`).

    The fields are a mapping, or text such as ``{"loss_ratio": "0.1 %", "duration_sum": "5 s"}``.

    Raises:
        SearchError: If there is no such preset or field, or a value does not parse or is out of range.
    """
    if isinstance(description, SearchGoal):
        return description

    value: Any = description
    if isinstance(description, str):
        preset = PRESETS.get(description.strip().upper())
        if preset is not None:
            return preset
        if description.lstrip().startswith("{"):
            value = _fields_in(description)

    if not isinstance(value, Mapping):
        raise SearchError(
            f"There is no search goal {shown_value(description)}. The goals are {', '.join(PRESETS)}; "
            f"write your own goal like {_EXAMPLE}."
        )
    try:
        fields = _NamedFields.model_validate(dict(value))
        return fields.goal(fields.name)
    except ValidationError as error:
        faults = "; ".join(_fault(item) for item in error.errors())
        raise SearchError(f"The search goal {dict(value)} cannot be used: {faults}.") from error


def _fields_in(text: str) -> Any:
    """The fields of a goal that is written as JSON or as a dictionary of Python.

    Raises:
        SearchError: If they cannot be read, or a field is there twice.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        fields = ast.literal_eval(tree)
    except SyntaxError as error:
        raise SearchError(
            f"The search goal {shown_value(text)} cannot be read from character {error.offset} on. Write it like "
            f"{_EXAMPLE}, with two backslashes for each backslash if it is in a suite of Robot Framework."
        ) from error
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        # Lists as names are a TypeError. Python reports values that are nested too deeply by the last two.
        raise SearchError(
            f"The search goal {shown_value(text)} cannot be read: put the names of fields and each text in quotes, "
            f"and write numbers as digits, like {_EXAMPLE}."
        ) from error

    keys = tree.keys if isinstance(tree, ast.Dict) else ()
    counts = Counter(ast.unparse(key) for key in keys if key is not None)
    twice = [key for key, count in counts.items() if count > 1]
    if twice:
        raise SearchError(
            f"The search goal {shown_value(text)} has the field {twice[0]} twice. Leave one of them out."
        )
    return fields


def _fault(item: Any) -> str:
    field = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"there is no field {field!r}; the fields are {', '.join(_NamedFields.model_fields)}"
    if item["type"] == "missing":
        return f"{field} is missing"
    return f"{field}: {in_words(item)}"


def goal_set_from(description: str) -> GoalSet:
    """Makes a set of search goals from its name (``csit``), from presets by name (``NDR, TST009``), or from a file.

    Raises:
        SearchError: If there is no such set, preset or file, or the file is wrong.
    """
    if not isinstance(description, str):
        raise SearchError(
            f"A set of search goals is a text such as 'csit', not {shown_value(description)}."
        )
    text = description.strip()
    pair = NdrPdrGoals.titled(text)
    if pair is not None:
        return GoalSet(pair.value)
    if text.endswith((".yaml", ".yml")):
        return load_goals(text)

    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name.upper() not in PRESETS]
    if unknown:
        titles = [pair.title for pair in NdrPdrGoals]
        raise SearchError(
            f"There is no set of search goals {shown_value(text)}. Use {', '.join(titles)}, presets by name "
            f"({', '.join(PRESETS)}), or a file that ends with .yaml."
            f"{did_you_mean(unknown[0], [*titles, *PRESETS])}"
        )
    return GoalSet(tuple(PRESETS[name.upper()] for name in names))


def load_goals(path: str | Path) -> GoalSet:
    """Reads a file of search goals.

    Raises:
        SearchError: If the file cannot be used; the message has file, line and field of each problem.
    """
    with warnings.catch_warnings():
        # Warnings are ignored here. When a goal is used, the result's remarks have its warnings.
        warnings.simplefilter("ignore", SearchGoalWarning)
        file = load_yaml_file(path, GoalFile, SearchError, _problems)
        return GoalSet(
            tuple(fields.goal(name) for name, fields in file.goals.items()), file.early_verdict
        )


def _problems(file: GoalFile) -> Iterator[Problem]:
    for name, fields in file.goals.items():
        try:
            fields.goal(name)
        except SearchError as error:
            yield ("goals", name), str(error)


def goals_from(value: Any) -> tuple[SearchGoal, ...]:
    """Search goals of a request: the name of a set, or one or several goals, see `goal_from`.

    Raises:
        SearchError: If there is no such set or goal, or a value is out of range.
    """
    if isinstance(value, str):
        return goal_set_from(value).goals
    if isinstance(value, list | tuple):
        return tuple(goal_from(goal) for goal in value)
    return (goal_from(value),)
