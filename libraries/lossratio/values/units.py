"""Reads quantities with units, such as ``10 kfps``, ``0.5 %``, ``2 min`` and ``25 Gbps``, and writes them.

Keywords and files have units. All other code computes in plain numbers: frames per second, seconds, bits per second.
"""

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from itertools import count

from lossratio.values.checked_arguments import is_number, shortened

_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
_SMALL, _ROUNDING = 10.0, 1e-6
_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_NUMBER = rf"\s*((?:(?:{_DIGITS})?\.)?{_DIGITS}(?:[eE][+-]?[0-9]+)?)\s*"
_FRAME_UNIT = "pps|fps|frames/s|packets/s"
_CONNECTION_UNIT = "cps|connections/s"
_FRAME_RATE = re.compile(_NUMBER + rf"([kKMG]?)\s*({_FRAME_UNIT}|{_CONNECTION_UNIT})?\s*")
_BARE_GIGA = re.compile(_NUMBER + r"G\s*")
_OF_BITS = re.compile(r".*[0-9]\s*[kKMG]?(?:bps|bits?|bits?/s|b/s)\s*", re.IGNORECASE)
_LEAST_BARE = 1000.0
"""A smaller rate needs its unit, because people often write ``20`` for 20 kfps or 20 Mfps."""
_BIT_RATE = re.compile(_NUMBER + r"([kKMG]?)\s*(?:bps|bit/s|b/s)?\s*")
_RATIO = re.compile(_NUMBER + r"(%?)\s*")
_LARGEST_RATE = 1e18
"""Frames or bits per second. A larger rate is a mistake, and its products would be too large for floating point."""
LONGEST_DURATION = 1e9
"""Seconds, which are 31 years. A longer duration is a mistake, and may be too long for a clock."""
LONGEST_TRIAL = 604_800.0
"""Seconds, which are a week. A longer trial is a mistake."""
LONGEST_WAIT = 3600.0
"""Seconds. A longer time without counted frames before a trial, such as a rest, is a mistake."""
_LIKE_DURATIONS = "write it like '2 min' or '30 s'"
_WHOLE_NUMBER = re.compile(rf"\s*([+-]?{_DIGITS}(?:\.0*)?(?:[eE]\+?[0-9]+)?)\s*")
_BYTES = re.compile(_NUMBER + r"(?:B|bytes?)?\s*")

LARGEST_NUMBER = 10**15
"""A larger number of frames, connections or repetitions is a mistake."""

L1_OVERHEAD = 20
"""Bytes that Ethernet adds to a frame on the wire: preamble, start of frame delimiter and interframe gap."""


@dataclass(frozen=True)
class Unit:
    """The unit of a measured quantity, and which of two values is better."""

    name: str
    """The unit as in texts and tables, e.g. ``fps``, ``frames`` or ``s``."""
    lower_is_better: bool = False
    """Whether the lower of two values is better, as with times and losses."""

    def is_better(self, change: float) -> bool:
        """Whether a change (new minus old value, absolute or relative to the old value; not zero) is for the better."""
        return (change < 0.0) is self.lower_is_better

    def format(self, value: float) -> str:
        """Writes a value with at least five digits, e.g. ``50.250 kfps``, ``0.0125 s`` or ``12,345 frames``."""
        if self.name == FRAMES_PER_SECOND.name:
            return format_frame_rate(value)
        if value >= 10_000:
            return f"{value:,.0f} {self.name}"
        return f"{_without_rounding_error(value):.5g} {self.name}"


FRAMES_PER_SECOND = Unit("fps")
"""The unit of rates; values are per interface unless stated otherwise."""


def parse_frame_rate(text: str | float) -> float:
    """Reads a frame rate such as ``10 kfps``, ``1.5 Mfps`` or ``64000``, in frames per second.

    Connections per second are read in the same way (``10 kcps``): each is opened by one frame.

    Raises:
        ValueError: If it is not a positive rate, may be a link's bit rate, or is a text below 1000 without a unit.
    """
    what, example = "a frame rate", "10 kfps"
    if _BARE_GIGA.fullmatch(str(text)):
        raise ValueError(
            f"{_shown(text)} looks like a bit rate; write a frame rate like '10 kfps'. If it is a frame rate, write "
            "its unit, Gfps."
        )
    if _OF_BITS.fullmatch(str(text)):
        raise ValueError(
            f"{_shown(text)} is not a frame rate but a bit rate; write it like '10 kfps', in frames per second."
        )

    rate = _parse_scaled(text, _FRAME_RATE, what, example)
    is_bare = isinstance(text, str) and not text.strip()[-1].isalpha()
    if is_bare and rate < _LEAST_BARE:
        raise ValueError(
            f"{rate:g} has no unit; write '{rate:g} kfps' or '{rate:g} Mfps', or '{rate:g} fps' if it is that low."
        )
    return rate


def counts_connections(text: str) -> bool:
    """Whether a rate is in connections per second, such as ``10 kcps``."""
    match = _FRAME_RATE.fullmatch(text)
    return match is not None and match[3] in _CONNECTION_UNIT.split("|")


def parse_bit_rate(text: str | float) -> float:
    """Reads a bit rate such as ``10 Gbps``, in bits per second.

    Raises:
        ValueError: If it is not a positive rate.
    """
    return _parse_scaled(text, _BIT_RATE, "a bit rate", "10 Gbps")


def parse_ratio(text: str | float) -> float:
    """Reads a ratio such as ``0.5 %`` or ``0.005``, both of which are 0.005.

    Raises:
        ValueError: If it is not a finite number.
    """
    if is_number(text):
        value = float(text)
    else:
        match = _RATIO.fullmatch(str(text))
        value = float(match[1]) / (100.0 if match[2] else 1.0) if match else math.nan
    if not math.isfinite(value):
        raise ValueError(
            f"{_shown(text)} is not a ratio; write it like '0.5 %' or '0.005'.{_with_point(text)}"
        )
    return value


def parse_bytes(text: str | int) -> int:
    """Reads a size such as ``64B`` or ``1518``, in bytes.

    Raises:
        ValueError: If it is not a whole number of bytes.
    """
    match = _BYTES.fullmatch(str(text))
    if not match or not float(match[1]).is_integer():
        raise ValueError(f"{_shown(text)} is not a size in bytes; write it like '64B'.")
    return int(float(match[1]))


def parse_whole_number(text: str | float) -> int:
    """Reads a whole number such as ``3``, ``10_000`` or ``1e6``.

    Raises:
        ValueError: If it is not a whole number, or is larger than `LARGEST_NUMBER`.
    """
    number = math.nan
    if isinstance(text, str):
        match = _WHOLE_NUMBER.fullmatch(text)
        if match:
            number = float(match[1])
    elif is_number(text):
        number = text
    if abs(number) > LARGEST_NUMBER:
        raise ValueError(f"{_shown(text)} is too large; the largest number is {LARGEST_NUMBER:,}.")
    if not float(number).is_integer():
        raise ValueError(
            f"{_shown(text)} is not a whole number; write it like '3'.{_with_point(text)}"
        )
    return int(number)


def parse_number(text: str | float) -> float:
    """Reads a finite number such as ``0.5``.

    Raises:
        ValueError: If it is not a finite number.
    """
    number = math.nan
    if not isinstance(text, bool):
        with suppress(ValueError, OverflowError):
            number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{_shown(text)} is not a number; write it like '0.5'.{_with_point(text)}")
    return number


def parse_duration(text: object) -> float:
    """Reads a positive duration as `read_seconds` does, such as ``2 min`` or ``30``, in seconds.

    Raises:
        ValueError: If it is not a positive, finite duration.
    """
    seconds = read_seconds(text)
    if seconds <= 0:
        raise ValueError(f"{_shown(text)} is not a positive duration; {_LIKE_DURATIONS}.")
    return seconds


def read_seconds(written: object) -> float:
    """Reads a duration, in seconds: a text as Robot Framework writes it, a number of seconds, or a `timedelta`.

    Raises:
        ValueError: If it is none of these, or nobody can wait for it: it is longer than `LONGEST_DURATION`.
    """
    seconds = _seconds(written)
    if seconds > LONGEST_DURATION:
        raise ValueError(f"{_shown(written)} is longer than 31 years; {_LIKE_DURATIONS}.")
    if math.isnan(seconds):
        raise ValueError(
            f"{_shown(written)} is not a duration; {_LIKE_DURATIONS}.{_with_point(written)}"
        )
    return seconds


def _seconds(written: object) -> float:
    """A duration in seconds; not a number: it is none."""
    # YAML's `yes` is True, which equals 1 in Python, and must not mean one second.
    if isinstance(written, bool):
        return math.nan
    if isinstance(written, timedelta):
        return written.total_seconds()
    if is_number(written):
        return float(written)

    # Imported here, because importing Robot Framework takes longer than many commands do.
    from robot.utils import timestr_to_secs

    with suppress(ValueError):
        return float(timestr_to_secs(str(written), round_to=None))
    return math.nan


def prefix_of(value: float) -> tuple[str, float]:
    """The prefix of a unit, with its scale, that gives a value the shortest number, e.g. ``k`` and 1000.

    Args:
        value: The value in the unit itself. Below 1000, it has no prefix.
    """
    for prefix in ("G", "M", "k"):
        if value >= _PREFIXES[prefix]:
            return prefix, _PREFIXES[prefix]
    return "", 1.0


def format_frame_rate(rate: float) -> str:
    """Writes a frame rate with five digits, e.g. ``50.250 kfps``.

    Args:
        rate: Frames per second.
    """
    return _format_scaled(rate, "fps")


def format_bit_rate(rate: float) -> str:
    """Writes a bit rate with five digits, e.g. ``33.600 Mbit/s``.

    Args:
        rate: Bits per second.
    """
    return _format_scaled(rate, "bit/s")


def format_ratio(ratio: float) -> str:
    """Writes a ratio in per cent, e.g. ``0.5 %``. Only the whole is ``100 %``: more digits tell the rest from it."""
    per_cent = ratio * 100
    return f"{_not_quite(100.0, per_cent) or f'{per_cent:.4g}'} %"


def format_one_in(ratio: float) -> str:
    """Writes a small ratio as ``one in 1,000``, or in per cent if it is not near one in a whole number."""
    number = round(1.0 / ratio)
    if number > 1 and abs(number * ratio - 1.0) < 0.01:
        return f"one in {number:,}"
    return format_ratio(ratio)


def printable(text: str) -> str:
    """Escapes characters that are invisible, move a cursor, change colours, reverse the text, or are not in Unicode.

    Tabs and ends of lines stay.
    """
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def in_one_line(text: str) -> str:
    """A printable text in one line, with single spaces."""
    return " ".join(printable(text).split())


def change_in_words(change: float, *, is_least: bool = False) -> str:
    """A change as a share of the earlier value in words, e.g. ``fell by 5.00 %``.

    Args:
        change: The change; infinite if the value was zero.
        is_least: Whether the change may be larger.
    """
    if math.isinf(change):
        return "rose from zero"
    way = "rose" if change > 0.0 else "fell"
    at_least = "at least " if is_least else ""
    return f"{way} by {at_least}{format_change_size(change)}"


def format_change(change: float, *, is_least: bool = False) -> str:
    """Writes a change as a share of the earlier value, with its sign, e.g. ``-12.23 %``.

    Args:
        change: The change; infinite if the value was zero.
        is_least: Whether the change may be larger.
    """
    if math.isinf(change):
        return "from zero"
    sign = "-" if change < 0.0 else "+"
    or_more = " or more" if is_least else ""
    return f"{sign}{format_change_size(change)}{or_more}"


def format_change_size(change: float) -> str:
    """Writes the size of a finite change as a share of the earlier value, without its sign, e.g. ``12.23 %``.

    From 1,000 % on, it is whole. Only a change by the whole value is ``100.00 %``, and a small change that does not
    reach a whole percentage is not rounded to it: limits of changes are such percentages.
    """
    per_cent = 100 * abs(change)
    digits = 2 if per_cent < 1_000.0 else 0
    nearest = float(round(per_cent))
    is_below_small = nearest - per_cent > _ROUNDING and nearest < _SMALL
    told = _not_quite(nearest if is_below_small else 100.0, per_cent)
    return f"{told or f'{per_cent:,.{digits}f}'} %"


def format_target(ratio: float) -> str:
    """Writes a target loss ratio, e.g. ``1e-7`` or ``0.005``."""
    return re.sub(r"e([+-])0+", r"e\1", f"{ratio:.4g}")


def range_in_words(least: str, most: str) -> str:
    """A range in words, from the words for its ends. If these are the same after rounding, they stand for the range."""
    return least if least == most else f"{least} to {most}"


def format_limits(least: float, most: float) -> str:
    """Writes both ends of an interval with two digits, rounded outwards, so that it contains the computed interval."""
    return range_in_words(_rounded(least, ROUND_FLOOR), format_most(most))


def format_most(most: float) -> str:
    """Writes an upper limit with two digits, rounded up, e.g. ``1.1e-05`` or ``26,000``."""
    return _rounded(most, ROUND_CEILING)


def format_about(number: float) -> str:
    """Writes a number with two significant digits, such as ``7.6`` or ``930,000``."""
    rounded = float(f"{number:.2g}")
    if rounded < 10.0:
        return f"{rounded:g}"
    return f"{rounded:,.0f}"


def counted(number: int, what: str, several: str | None = None) -> str:
    """A number of something in words, e.g. ``1 search`` or ``2,000 searches``.

    Args:
        number: The number.
        what: The word for one of them.
        several: The word for several of them; None: the same word with an s.
    """
    if number == 1:
        return f"1 {what}"
    return f"{number:,} {several or f'{what}s'}"


def trials_counted(number: int) -> str:
    """A number of trials in words."""
    return counted(number, "trial")


def as_sentence(words: str) -> str:
    """Words with a capital letter at the beginning."""
    return f"{words[:1].upper()}{words[1:]}"


def and_more(number: int) -> str:
    """The end of a list of which only a part is shown, e.g. ``, and 2 more``; empty if nothing is left out."""
    if not number:
        return ""
    return f", and {number:,} more"


def results_counted(number: int) -> str:
    """A number of results in words."""
    return counted(number, "result")


def tests_counted(number: int) -> str:
    """A number of tests in words."""
    return counted(number, "test")


def format_short_duration(seconds: float) -> str:
    """Writes a duration in whole seconds where there is little room, such as ``1min 5s``."""
    from robot.utils import secs_to_timestr

    return str(secs_to_timestr(round(seconds), compact=True))


def format_duration(seconds: float) -> str:
    """Writes a duration in whole seconds for a sentence, such as ``1 min 5 s``."""
    return re.sub(r"([0-9])([a-z])", r"\1 \2", format_short_duration(seconds))


def format_exact_duration(seconds: float) -> str:
    """Writes a duration without rounding, in the largest unit of which it is a whole number, e.g. ``7 days``."""
    for unit, length in (("day", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        number = seconds / length
        if number >= 1.0 and number.is_integer():
            return counted(int(number), unit) if unit == "day" else f"{number:,.0f} {unit}"
    return f"{seconds:,.10g} s"


def format_precise_time(seconds: float) -> str:
    """Writes a time with five digits, e.g. ``12.345 ms``, or ``150.25 s`` from 10 s on."""
    if seconds >= 10.0:
        return f"{seconds:.5g} s"
    return f"{1000.0 * _without_rounding_error(seconds):.5g} ms"


def l1_bandwidth(frame_rate: float, frame_size: float) -> float:
    """Bandwidth on the wire (layer 1) in bits per second.

    Args:
        frame_rate: Frames per second.
        frame_size: Bytes of a frame, or of all frames on average, with the frame check sequence.
    """
    return frame_rate * (frame_size + L1_OVERHEAD) * 8


def _without_rounding_error(value: float) -> float:
    """A value, or zero: a standard deviation of less than a picosecond is only a rounding error."""
    return round(value, 12)


def _not_quite(whole: float, per_cent: float) -> str:
    """A percentage near a whole one with the digits that tell them apart; empty: they are equal, or not near."""
    if per_cent == whole or round(per_cent, 2) != whole:
        return ""
    digits = next(digits for digits in count(3) if round(per_cent, digits) != whole)
    return f"{per_cent:.{digits}f}"


def _parse_scaled(text: str | float, pattern: re.Pattern[str], what: str, example: str) -> float:
    match = pattern.fullmatch(str(text))
    if match:
        value = float(match[1]) * _PREFIXES["k" if match[2] == "K" else match[2]]
    else:
        value = math.nan

    if value == 0.0:
        raise ValueError(f"{_shown(text)} is not above 0; write {what} like {example!r}.")
    if not math.isfinite(value):
        raise ValueError(
            f"{_shown(text)} is not {what}; write it like {example!r}.{_with_point(text)}"
        )
    if value > _LARGEST_RATE:
        raise ValueError(f"{_shown(text)} is too large for {what}; write it like {example!r}.")
    return value


def _shown(value: object) -> str:
    """A value as errors show it, which may be too long to be shown whole."""
    return shortened(repr(value))


def _with_point(text: object) -> str:
    """A hint on how to write a number that has a comma, after a blank; empty if the text has no comma."""
    if "," not in str(text):
        return ""
    return " Write numbers with a point for fractions and without commas: 1.5, 100000 or 100_000."


def _rounded(value: float, rounding: str) -> str:
    # The shortest digits of a number, because the binary form of 1e-5 is slightly above 1e-5.
    rounded = float(Context(prec=2, rounding=rounding).create_decimal(repr(float(value))))
    return f"{rounded:.2g}" if rounded < 100.0 else f"{rounded:,.0f}"


def _format_scaled(value: float, unit: str) -> str:
    prefix, scale = prefix_of(value)
    if not prefix:
        return f"{value:.5g} {unit}"
    scaled = value / scale
    digits = max(0, 4 - int(math.log10(scaled)))
    return f"{scaled:.{digits}f} {prefix}{unit}"
