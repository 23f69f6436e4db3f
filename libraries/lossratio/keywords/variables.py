"""The variables of performance suites, which change from run to run, and how their values are read."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from lossratio.errors import LossRatioError
from lossratio.keywords.arguments import to_member_of, to_path, to_truth_value
from lossratio.keywords.session import Doubts
from lossratio.measurements.throughput import Nightly, goal_set_from
from lossratio.traffic import check_frame_size
from lossratio.values import none_of, parse_frame_rate, parse_whole_number, shown_value


def _nightly(name: str) -> Nightly:
    # Imports of the library take it as it is written, and not in any case.
    known = {choice.value: choice for choice in Nightly}
    if name in known:
        return known[name]
    raise ValueError(none_of(known, name))


def _frame_sizes(sizes: str) -> None:
    for size in sizes.split(","):
        check_frame_size(size)


def _cores(numbers: str) -> None:
    for number in numbers.split(","):
        if parse_whole_number(number) < 1:
            raise ValueError(f"{shown_value(number)} is not above 0; write it like 1.")


_READ: Mapping[str, Callable[[str], Any]] = MappingProxyType(
    {
        "CORES": _cores,
        "DOUBTS": to_member_of(Doubts),
        "FRAME_SIZE": _frame_sizes,
        "GOALS": goal_set_from,
        "HINTS": to_path,
        "LATENCY": to_truth_value,
        "MIN_LOAD": parse_frame_rate,
        "NIGHTLY": _nightly,
        "RESUME": to_path,
        "SEARCH_EVERY": parse_whole_number,
        "TELEMETRY": to_truth_value,
    }
)
_FILES = (".yaml", ".yml")


def problem_with_variable(name: str, value: str) -> str | None:
    """What is wrong with the value of a variable that suites pass to the keyword library; None: nothing is known.

    Values with other variables, and files of goals, are read when the suite runs.
    """
    read = _READ.get(name)
    if read is None or "{" in value or value.endswith(_FILES):
        return None
    try:
        read(value)
    except (ValueError, LossRatioError) as error:
        return str(error)
    return None
