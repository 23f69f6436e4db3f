"""Values in words, for messages and pages: every number with its unit."""

import re
import textwrap
from collections.abc import Callable
from itertools import count

from lossratio.results.conditions import Conditions
from lossratio.values import (
    FRAMES_PER_SECOND,
    Rate,
    Unit,
    format_bit_rate,
    format_frame_rate,
    range_in_words,
)

_LABEL_WIDTH = len("conditional throughput")
_COLUMNS = 100
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=[^\d\s])")
_NO_BREAK = "\u00a0"


def in_columns(text: str) -> str:
    """Text with long lines broken, because the console of a CI system neither wraps them nor shows more columns."""
    rows = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        # A number stays beside its unit.
        joined = _BEFORE_UNIT.sub(_NO_BREAK, line)
        rows += textwrap.wrap(
            joined,
            _COLUMNS,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return "\n".join(rows).replace(_NO_BREAK, " ")


def format_frames_per_second(rate: float) -> str:
    """Formats a frame rate to the last digit that matters, without a unit prefix, e.g. ``14,880,952 fps``.

    Args:
        rate: Frames per second.
    """
    return f"{rate:,.{0 if rate >= 10_000 else 2}f} fps"


def format_interval(least: Rate | float | None, most: Rate | float | None) -> str:
    """Formats the interval between two bounds, per interface.

    Examples are ``149.77 to 150.52 kfps``, ``from 200.00 kfps`` and ``below 9.0010 kfps``.

    Args:
        least: Frames per second per interface; None: there is no lower bound.
        most: Frames per second per interface; None: there is no upper bound.
    """
    lower, upper = (
        bound.per_interface_fps if isinstance(bound, Rate) else bound for bound in (least, most)
    )
    if lower is not None and upper is not None and lower < upper:
        low, high = format_frame_rate(lower), format_frame_rate(upper)
        is_one_unit = low != high and low.split()[1] == high.split()[1]
        return range_in_words(low.split()[0] if is_one_unit else low, high)
    if lower is not None:
        return f"from {format_frame_rate(lower)}"
    return "no bounds" if upper is None else f"below {format_frame_rate(upper)}"


def value_line(label: str, value: Rate | float | str | None, unit: Unit = FRAMES_PER_SECOND) -> str:
    """Formats a line with a value, aligned with other such lines; a rate is in all its units, and words are unchanged.

    Args:
        label: The name of the value.
        value: A rate, a number in the unit, or words; None: no value.
        unit: The unit of a number.
    """
    if isinstance(value, Rate):
        value = (
            f"{format_frames_per_second(value.per_interface_fps):>14} per interface"
            f" {format_frames_per_second(value.aggregate_fps):>15} aggregate, "
            f"L1 {format_bit_rate(value.aggregate_l1_bps)}"
        )
    elif not isinstance(value, str):
        value = "none" if value is None else unit.format(value)
    return f"  {label:<{_LABEL_WIDTH}}  {value}"


def per_interface(*loads: float) -> str:
    """A load, or two, in words, e.g. ``100.00 kfps per interface``.

    Args:
        loads: Frames per second.
    """
    return f"{' to '.join(dict.fromkeys(map(format_frame_rate, loads)))} per interface"


def in_full(rate: float) -> str:
    """A frame rate per interface to the last digit that matters, e.g. ``400,000 fps per interface``.

    Args:
        rate: Frames per second.
    """
    return f"{format_frames_per_second(rate)} per interface"


def written_in_full(unit: Unit) -> Callable[[float], str]:
    """What writes a number in a unit to the last digit that matters; frame rates are per interface.

    Args:
        unit: The unit.
    """
    return in_full if unit is FRAMES_PER_SECOND else unit.format


def rate_in_words(rate: float, what: str = "") -> str:
    """A rate in a sentence, e.g. ``74,830 frames/s of 64 B each way``; below 1,000, it has four digits: ``5.972``.

    Args:
        rate: Per second.
        what: The words after the number, which begin with what is counted, such as ``frames/s``; empty: no words.
    """
    number = f"{rate:,.0f}" if rate >= 1_000.0 else f"{rate:.4g}"
    if number == "1":
        what = what.replace("s/s", "/s", 1)
    return f"{number} {what}".rstrip()


def apart_in_words(write: Callable[[float], str], one: float, other: float) -> tuple[str, str]:
    """Two numbers in words that differ if the numbers do, with more digits than usual if these are rounded alike.

    Args:
        write: Writes a number and its unit, without a prefix of the unit.
        one: The first number.
        other: The second number.
    """
    words = write(one), write(other)
    if words[0] != words[1] or one == other:
        return words
    _, _, unit = words[0].partition(" ")
    digits = next(digits for digits in count(1) if round(one, digits) != round(other, digits))
    return f"{one:,.{digits}f} {unit}", f"{other:,.{digits}f} {unit}"


def frames_in_words(conditions: Conditions) -> str:
    """What a rate per interface counts, in a sentence, e.g. ``frames/s of 64 B each way``."""
    return f"frames/s of {size_in_words(conditions)} {way_in_words(conditions)}"


def size_in_words(conditions: Conditions) -> str:
    """The size of the frames, e.g. ``64 B`` or ``353.8 B on average``."""
    traffic = conditions.traffic
    if len(traffic.frame_sizes) > 1:
        return f"{traffic.average_frame_size_bytes:.4g} B on average"
    return f"{traffic.frame_sizes[0].size_bytes} B"


def way_in_words(conditions: Conditions) -> str:
    """How a rate per interface applies to the directions of the traffic, e.g. ``each way``."""
    load = conditions.load
    if len(load.directions) == 1:
        return "one way"
    if set(load.shares_ratio) == {1.0}:
        return "each way"
    return "per interface"
