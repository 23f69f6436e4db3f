"""Our suites are still the tests of FD.io CSIT's weekly jobs: facts about these, without a clone of CSIT.

`docs/csit.py` writes the facts, and the page with the figure, from a clone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from robot.running.builder import TestSuiteBuilder as Builder

from lossratio.files.shipped import SUITES
from lossratio.keywords import SuiteExpander
from lossratio_study.csit_coverage import CoverageVerdict
from lossratio_study.csit_suites import CsitSuites, Described, nodes_of

FACTS = json.loads(Path(__file__).with_name("csit_weekly.json").read_text())
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "csit-coverage.md"
OURS = sorted({entry["ours"] for entry in FACTS if entry["ours"]})
NAME = re.compile(r"\w+-(?:(?P<cores>\d+)c-)?(?P<suite>.+)-ndrpdr")


def expanded(name: str, **points: str) -> dict[tuple[str, int], list]:
    """The tests of a suite of ours, by CSIT's name and the number of nodes."""
    root = Builder().build(SUITES.path(name))
    root.visit(SuiteExpander(**points))
    found: dict[tuple[str, int], list] = {}
    for test in root.all_tests:
        if match := NAME.fullmatch(test.name):
            for nodes in (nodes_of(test),) if nodes_of(test) else (2, 3):
                found.setdefault((match["suite"], nodes), []).append(test)
    return found


@pytest.mark.parametrize("name", OURS)
def test_a_suite_is_as_much_the_test_of_csit_as_the_page_says(name, tmp_path):
    entries = [entry for entry in FACTS if entry["ours"] == name]
    tests = expanded(name, frame_sizes="64B", cores=entries[0]["tests"][0][1])
    suites = CsitSuites(tmp_path)
    for entry in entries:
        _, nodes, suite = entry["suite"]
        theirs = Described(entry["frames"], entry["ports"], entry["setup"], frozenset(entry["tags"]))
        (own,) = tests[suite, nodes]
        assert sorted(theirs.differences(suites.ours(own, nodes))) == entry["differs"], suite


@pytest.mark.whole
@pytest.mark.parametrize("name", OURS)
def test_a_suite_has_the_sizes_and_cores_of_the_same_tests(name):
    have = {key: {test.name.lower() for test in tests} for key, tests in expanded(name).items()}
    for entry in FACTS:
        if entry["ours"] == name:
            _, nodes, suite = entry["suite"]
            for size, cores, verdict, _ in entry["tests"]:
                if verdict == CoverageVerdict.SAME.value:
                    size_in_name = size if size == "imix" else f"{size}b"
                    assert f"{size_in_name}-{cores}c-{suite}-ndrpdr" in have[suite, nodes]


def test_the_page_has_the_figure_of_the_facts_and_it_is_no_lower_than_it_was():
    counts: Counter[str] = Counter()
    for entry in FACTS:
        for _, _, verdict, count in entry["tests"]:
            counts[verdict] += count
    total = sum(counts.values())
    row = re.search(r"\| `csit-vpp-perf-ndrpdr-weekly-\*` \| (.*) \|", PAGE.read_text())
    numbers = [counts[verdict.value] for verdict in CoverageVerdict]
    share = counts["same"] / total
    assert row is not None
    assert row[1] == " | ".join((f"{total:,}", f"{100 * share:.1f} % same", *(f"{number:,}" for number in numbers)))
    assert (share >= 0.92, counts["name only"]) == (True, 0)
