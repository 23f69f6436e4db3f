"""A quantity is read in the same way wherever it is written: files, keywords, options, and the Python API."""

from __future__ import annotations

from datetime import timedelta

import click
import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from lossratio.commands import parameters
from lossratio.keywords import arguments
from lossratio.topology import FrameRate as FileRate
from lossratio.values.quantities import Duration, FileDuration, FileShare, FrameRate, Share


def of_pydantic(kind):
    return TypeAdapter(kind).validate_python


def of_click(kind):
    return lambda value: kind.convert(value, None, None)


READERS = {
    "duration": (
        of_pydantic(FileDuration),
        of_pydantic(Duration),
        of_click(parameters.DURATION),
        lambda value: arguments.to_duration(value).total_seconds(),
    ),
    "rate": (of_pydantic(FileRate), of_pydantic(FrameRate), of_click(parameters.FRAME_RATE), arguments.to_frame_rate),
    "share": (of_pydantic(FileShare), of_pydantic(Share), of_click(parameters.RATIO), arguments.to_share),
}
RIGHT = [
    ("duration", "2 min", 120.0),
    ("duration", "500 ms", 0.5),
    ("duration", 30, 30.0),
    ("duration", np.float32(1.5), 1.5),
    ("duration", timedelta(minutes=1), 60.0),
    ("rate", "10 kfps", 10_000.0),
    ("rate", "1.5 Mpps", 1_500_000.0),
    ("rate", 64_000, 64_000.0),
    ("share", "0.5 %", 0.005),
    ("share", "1e-7", 1e-7),
    ("share", np.float64(0.25), 0.25),
]
WRONG = [
    ("duration", "forever", "'forever' is not a duration; write it like '2 min' or '30 s'"),
    ("duration", "1,5 s", "'1,5 s' is not a duration; .* with a point for fractions"),
    ("duration", "100 years", "is not a duration|is longer than 31 years"),
    ("duration", 10**400, "is longer than 31 years"),
    ("duration", float("inf"), "is longer than 31 years"),
    ("duration", float("nan"), "nan is not a duration"),
    ("rate", "0 kfps", "'0 kfps' is not above 0; write a frame rate like '10 kfps'"),
    ("rate", "100 Mbit/s", "'100 Mbit/s' is not a frame rate but a bit rate"),
    ("rate", "20", "20 has no unit; write '20 kfps' or '20 Mfps', or '20 fps'"),
    ("rate", float("nan"), "nan is not a frame rate"),
    ("share", "half", "'half' is not a ratio; write it like '0.5 %' or '0.005'"),
    ("share", float("inf"), "inf is not a ratio"),
]


@pytest.mark.parametrize(("kind", "written", "number"), RIGHT)
def test_a_quantity_is_the_same_number_in_files_keywords_options_and_scripts(kind, written, number):
    assert [read(written) for read in READERS[kind]] == [number] * 4


@pytest.mark.parametrize(("kind", "written", "answer"), WRONG)
def test_a_wrong_quantity_has_the_same_answer_everywhere(kind, written, answer):
    for read in READERS[kind]:
        with pytest.raises((ValueError, ValidationError, click.BadParameter), match=answer):
            read(written)


@pytest.mark.parametrize(
    ("kind", "given", "number"), [(int, np.int64(3), 3), (float, np.float32(0.5), 0.5), (float, 3, 3.0)]
)
def test_a_number_of_a_keyword_may_be_of_numpy(kind, given, number):
    assert arguments.CONVERTERS[kind](given) == number
