"""The message of a Robot test is what it measured."""

import pytest
from robot_runs import run_suite, write_suite

from lossratio.keywords.library import with_short_values

LONG = """
First
    ${result} =    Measure MRR    64B    trials=1
    Measure MRR    ${result}
Rate
    Measure MRR    64B    max_load=${{'x' * 5000}}
Number
    Measure MRR    64B    trials=${{'x' * 5000}}
Truth
    Measure MRR    64B    bidirectional=${{'x' * 5000}}
Word
    Measure MRR    64B    integrity=${{'x' * 5000}}
Goals
    Find NDR And PDR    64B    goals=${{'x' * 5000}}
List
    Measure MRR    64B    max_load=${{[1] * 5000}}
Profile
    Measure MRR    64B    profile=${{'x' * 5000}}
"""


@pytest.mark.whole
def test_the_message_of_a_test_has_all_its_measurements(tmp_path):
    tests = "Both\n    Measure MRR    64B    trials=2\n    Measure MRR    128B    trials=2\n"
    (test,) = run_suite(write_suite(tmp_path, tests)).tests.values()
    assert test.message.count("MRR: forwards") == 2
    text = " ".join(test.message.split())
    assert ["of 64 B each" in text, "of 128 B each" in text] == [True, True]


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    return run_suite(write_suite(tmp_path_factory.mktemp("wrong"), LONG))


def test_a_wrong_value_is_one_short_line_in_messages_and_in_the_log(wrong):
    assert len(wrong.tests) == 8
    for name, test in wrong.tests.items():
        assert test.failed
        assert len(test.message) < 700, name
        assert "\n" not in test.message, name
    found = [text for text in wrong.messages if "cannot be converted" in text]
    assert len(found) >= 6
    assert max(map(len, found)) < 700


def test_the_result_of_another_keyword_as_a_value_is_named(wrong):
    assert wrong.tests["First"].message.endswith(
        "...' (MrrResult) that cannot be converted to FrameSize: an object of the class MrrResult is not a frame size, "
        "such as '64B'."
    )


def test_other_messages_stay_as_they_are():
    for text in ("x" * 5000, "Argument 'a' got value 'b' that cannot be converted to integer.", "a\nb"):
        assert with_short_values(text) == text
