"""Builds are judged by their values as they are and at their most: had the frames passed that no build lost."""

import json
import random

import pytest

from lossratio.results import Ends
from lossratio.results.ends import ends_of_trial
from lossratio.runs.builds import (
    AbRequest,
    Bisection,
    BuildRecord,
    Measured,
    bisect,
    compare_builds,
    describe_bisection,
)
from lossratio.runs.builds.bisection import BisectionVerdict
from lossratio.runs.builds.outcome import ComparisonVerdict
from lossratio.runs.builds.words import comparison_comment, describe_comparison
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput

GOOD = (1e6, 1e6, 0.0)
STARVED = (0.42e6, 1.0e6, 0.58)
"""As much as the generator left unsent is missing."""
SLOWER = (0.6e6, 0.9e6, 0.3)
"""More is missing than the generator left unsent."""


def noisy(ends, randomness):
    factor = randomness.gauss(1.0, 0.002)
    return Ends(ends[0] * factor, ends[1] * factor, ends[2])


def compared(tmp_path, a, b, **more):
    randomness = random.Random(7)
    record = BuildRecord(tmp_path, {})
    request = AbRequest(**more)
    found = compare_builds(
        request,
        record,
        lambda build, directory: Measured({"S.64B NDR": noisy(a if build == "A" else b, randomness)}),
        lambda line: None,
    )
    return (
        found["S.64B NDR"],
        describe_comparison("S.64B NDR", found["S.64B NDR"]),
        comparison_comment(found, request),
    )


@pytest.mark.parametrize("more", [{}, {"limit": 100}])
def test_a_build_is_not_slower_because_the_generator_sent_less(tmp_path, more):
    result, text, comment = compared(tmp_path, GOOD, STARVED, **more)
    assert result.verdict is ComparisonVerdict.UNDECIDED
    assert "Up to 58 % of the frames at one load were unsent, late or dropped by the generator" in text
    assert "Up to 58 % of the frames" in comment


@pytest.mark.parametrize("more", [{}, {"limit": 100}])
def test_a_slower_build_behind_a_starved_generator_is_slower_by_the_smaller_difference(tmp_path, more):
    result, text, _ = compared(tmp_path, GOOD, SLOWER, **more)
    assert result.verdict is ComparisonVerdict.SLOWER
    assert result.difference == pytest.approx(-0.1, abs=0.005)
    assert "B is slower than A by 10.0" in text or "B is slower than A by 9.9" in text
    assert "Up to 30 % of the frames at one load were unsent" in text
    assert "; it differs by -40.0" in text or "; it differs by -39.9" in text


def test_where_nothing_is_missing_nothing_more_is_measured_or_said(tmp_path):
    result, text, _ = compared(tmp_path, GOOD, (0.9e6, 0.9e6, 0.0))
    assert (result.verdict, result.share, result.measured) == (ComparisonVerdict.SLOWER, 0.0, None)
    assert text.endswith(f"after {result.measurements} measurements.")
    lines = (tmp_path / "measurements.jsonl").read_text().splitlines()
    (value,) = json.loads(lines[1])["measured"]["values"].values()
    assert value[2] == 0.0


def test_a_comparison_that_is_continued_knows_both_ends(tmp_path):
    first, text, _ = compared(tmp_path, GOOD, SLOWER)
    record = BuildRecord(tmp_path, {})
    again = compare_builds(AbRequest(), record, None, lambda line: None)["S.64B NDR"]
    assert (again, describe_comparison("S.64B NDR", again)) == (first, text)


@pytest.mark.parametrize(
    ("changed", "verdict"), [(SLOWER, BisectionVerdict.FOUND), (STARVED, BisectionVerdict.UNDECIDED)]
)
def test_a_bisection_finds_what_both_ends_show(tmp_path, changed, verdict):
    randomness = random.Random(3)
    revisions = [f"r{number}" for number in range(17)]
    result = bisect(
        Bisection(revisions, limit=60),
        BuildRecord(tmp_path, {}),
        lambda revision, directory: Measured(
            {"S.64B NDR": noisy(changed if int(revision[1:]) >= 8 else GOOD, randomness)}
        ),
        lambda line: None,
    )
    assert result.verdict is verdict
    assert f"Up to {100 * changed[2]:.4g} % of the frames at one load were unsent" in describe_bisection(result, str)
    if verdict is BisectionVerdict.FOUND:
        assert result.candidates == ("r8",)
        assert result.change == pytest.approx(-0.1, abs=0.005)


def test_a_trial_has_its_ends_and_unsent_frames_are_the_cost_of_a_device_on_the_same_cpus():
    way = DirectionCounters("a>b", 1000, 800, 600, unsent_frames=200, generator_drop_frames=50)
    output = TrialOutput(
        0.4, sent_frames=800, lost_frames=200, unsent_frames=200, forwarding_rate=6e3, directions=(way,)
    )
    assert ends_of_trial(trial(output)) == (6e3, 6e3 * 850 / 600, 0.25)
    assert ends_of_trial(trial(output), unsent_is_cost=True) == (6e3, 6e3 * 650 / 600, 0.25)
    assert ends_of_trial(trial(TrialOutput(0.4))) == (6e3, 6e3, 0.0)


def test_a_trial_whose_frames_all_came_too_late_may_have_forwarded_them():
    way = DirectionCounters("a>b", 1000, 1000, 0)
    output = TrialOutput(1.0, sent_frames=1000, lost_frames=1000, unsent_frames=0, late_frames=990, directions=(way,))
    assert ends_of_trial(trial(output)) == (0.0, pytest.approx(9.9e3), 0.99)


def trial(output):
    return TrialResult(TrialInput(1.0, 10e3), output)


OPPOSITE = (0.8e6, 1.3e6, 0.38)
"""Slower as measured, and faster had the missing frames passed."""


def test_no_answer_stands_where_both_ends_differ_in_the_sign_of_the_change(tmp_path):
    randomness = random.Random(5)
    result = bisect(
        Bisection([f"r{number}" for number in range(17)], limit=60),
        BuildRecord(tmp_path / "bisect", {}),
        lambda revision, directory: Measured(
            {"S.64B NDR": noisy(OPPOSITE if int(revision[1:]) >= 8 else GOOD, randomness)}
        ),
        lambda line: None,
    )
    assert result.verdict is BisectionVerdict.UNDECIDED
    words = describe_bisection(result, str)
    assert words.startswith(
        f"Undecided, after {result.measurements} measurements: the change may come from frames that are "
        "missing but were not lost by any build"
    )
    assert "Up to 38 % of the frames at one load were unsent" in words
    compared_, text, _ = compared(tmp_path / "ab", GOOD, OPPOSITE)
    assert compared_.verdict is ComparisonVerdict.UNDECIDED
    assert "or dropped by the generator, and may explain the difference" in text


@pytest.mark.parametrize(
    ("a", "b", "difference"),
    [
        ((0.5e6, 1e6, 0.5), (1e6, 1e6, 0.0), 0.0),
        ((0.5e6, 0.8e6, 0.375), (1e6, 1e6, 0.0), 0.25),
        ((0.7e6, 1.0e6, 0.3), (0.49e6, 0.7e6, 0.3), -0.3),
        ((0.9e6, 1.0e6, 0.1), (0.3e6, 0.9e6, 0.67), -0.1),
    ],
    ids=["A alone is starved", "A is starved, and B is faster still", "alike", "unequal"],
)
def test_the_smaller_difference_is_printed_whichever_side_is_starved(tmp_path, a, b, difference):
    result, text, _ = compared(tmp_path, a, b)
    assert result.difference == pytest.approx(difference, abs=0.005)
    assert f"Up to {100 * max(a[2], b[2]):.4g} % of the frames" in text
    if difference == -0.3:
        assert "as measured" not in text, "both are the same"


def test_the_share_is_named_where_the_missing_frames_cannot_change_the_value(tmp_path):
    # Frames that could not be sent are the cost of a device on the same CPUs.
    _, text, comment = compared(tmp_path, GOOD, (0.8e6, 0.8e6, 0.2))
    assert "Up to 20 % of the frames at one load were unsent" in text
    assert "Up to 20 % of the frames" in comment
