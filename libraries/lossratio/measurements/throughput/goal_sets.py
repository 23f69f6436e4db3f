"""Sets of search goals as people name them: for a search, or for all searches of a run."""

from __future__ import annotations

from lossratio.errors import SearchError
from lossratio.measurements.throughput.goal_file import load_goals
from lossratio.measurements.throughput.goals import PRESETS, NdrPdrGoals
from lossratio.mlrsearch import SearchGoal


def goal_set_from(description: str) -> tuple[SearchGoal, ...]:
    """Makes a set of search goals out of what people write.

    Args:
        description: The name of a set (``csit``, ``quick``); presets by name (``NDR, TST009``); or a file of goals.

    Raises:
        SearchError: If there is no such set, preset or file, or the file is wrong.
    """
    text = description.strip()
    if text in NdrPdrGoals.__members__:
        return NdrPdrGoals[text].value
    if text.endswith((".yaml", ".yml")):
        return load_goals(text)
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name.upper() not in PRESETS]
    if unknown:
        raise SearchError(
            f"There is no set of search goals {text!r}. Say {' or '.join(NdrPdrGoals.__members__)}, presets by name "
            f"({', '.join(PRESETS)}), or a file that ends with .yaml."
        )
    return tuple(PRESETS[name.upper()] for name in names)
