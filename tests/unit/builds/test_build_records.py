"""The record of a comparison or a bisection: damaged ones, and those of other requests."""

import pytest

from lossratio.errors import JobError
from lossratio.runs.builds import BuildRecord

HEADER = '{"format": "lossratio-builds/3", "asked": {}}\n'
LINE = '{"build": "A", "directory": "001-A", "measured": {"values": {"T MRR": [1000.0, 1000.0, 0.0]}}}\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", r" is not a record of measurements"),
        ("x", r" is not a record of measurements"),
        ("[]\n", r" is not a record of measurements"),
        (HEADER + "[]\n", r", line 2, cannot be read: must hold fields"),
        (HEADER + '{"a": 1}\n', r", line 2, cannot be read: build: this field is required"),
        (
            HEADER + LINE.replace("1000.0,", '"x",', 1),
            r", line 2, cannot be read: measured\.values\.T MRR\.0: must be a number, not 'x'",
        ),
        (HEADER + LINE + "{\n", r", line 3, cannot be read: broken at line 1"),
    ],
)
def test_a_damaged_record_is_named_with_its_line_and_the_way_out(tmp_path, text, problem):
    (tmp_path / "measurements.jsonl").write_text(text)
    with pytest.raises(JobError, match=rf"measurements\.jsonl{problem}.*To start over, use another --output\.$"):
        BuildRecord(tmp_path, {})


def test_a_mistake_in_a_request_can_be_corrected_until_something_was_measured(tmp_path):
    BuildRecord(tmp_path, {"topology": "lcal"})
    BuildRecord(tmp_path, {"topology": "local"})
    (tmp_path / "001-A").mkdir()
    with pytest.raises(JobError, match=r"belongs to another request: topology was 'local', and is now 'lab7'"):
        BuildRecord(tmp_path, {"topology": "lab7"})


def test_a_record_of_other_builds_is_refused(tmp_path):
    (tmp_path / "measurements.jsonl").write_text(HEADER + LINE)
    with pytest.raises(JobError, match=r"line 2, belongs to build 'A', but 'B' was to be measured there"):
        BuildRecord(tmp_path, {}).measurement(0, "B", measure=None)
