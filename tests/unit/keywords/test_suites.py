"""The suites that users run: short, tagged as FD.io CSIT's, and clean for every topology."""

from __future__ import annotations

import io
import json
import re
from collections import defaultdict

import pytest
from at_least_one import at_least_one
from robot.api import TestSuite as Suite
from robot_runs import ROOT

from lossratio.keywords import Catalogue

pytestmark = pytest.mark.whole

PERFORMANCE = ROOT / "tests" / "performance"
SUITES = sorted(PERFORMANCE.glob("*.robot"))
ALONE = ({"reconf"}, {"b2b"}, {"recovery"}, {"reset"})
SIZES_OF_CONNECTIONS = {
    "udp_cps": {"64B"},
    "udp_tput": {"100B", "1518B"},
    "tcp_tput": {"100B", "1518B"},
    "udp_bidir": {"64B", "1518B", "IMIX"},
}
TOPOLOGIES = sorted((ROOT / "topologies").rglob("*.yaml"))


@pytest.fixture(scope="module")
def suites():
    """All suites, as they are written."""
    return Suite.from_file_system(PERFORMANCE)


@pytest.fixture(scope="module")
def catalogue(suites):
    suite = suites.deepcopy()
    suite.visit(Catalogue())
    return suite


def lines_of(suite):
    """A suite's lines; one that lists the tags of a variant, or of another value, is a line of a table."""
    of_a_value = re.compile(r"Metadata +\w+ \S+ {4}")
    return [line for line in suite.read_text().splitlines() if line.strip() and not of_a_value.match(line)]


def test_a_suite_takes_thirty_lines_at_most():
    assert len(SUITES) > 50
    assert [suite.stem for suite in SUITES if len(lines_of(suite)) > 30] == []


def test_a_suite_names_topology_encapsulation_configuration_verification_and_reference(suites):
    assert {each.source for each in suites.suites} == set(SUITES)
    labels = ("[Top]", "[Enc]", "[Cfg]", "[Ver]", "[Ref]")
    assert [(each.name, label) for each in suites.suites for label in labels if label not in each.doc] == []


def test_every_test_has_size_cores_and_type_in_its_tags_and_name(catalogue):
    tests = list(catalogue.all_tests)
    assert len(tests) > 100
    for test in tests:
        size, cores, *short, kind = test.name.split("-")
        assert {size, cores, kind, "-".join(short), "perftest"} <= set(test.tags), test.full_name


OF_TWO_SUITES = {"dot1q-l2bdbasemaclrn"}
"""Own tags with which CSIT names two suites: that of a single DUT, and that of two."""


def test_a_suites_own_tag_selects_exactly_that_suite(catalogue):
    own, sources = set(), defaultdict(set)
    for test in catalogue.all_tests:
        own.add(test.name.split("-", 2)[2].rpartition("-")[0])
        for tag in test.tags:
            sources[tag].add(test.source)
    assert {source for tag in own for source in sources[tag]} == set(SUITES)
    shared = {tag for tag in own if len(sources[tag]) > 1}
    assert shared == OF_TWO_SUITES
    assert [len(sources[tag]) for tag in shared] == [2]


def test_every_suite_has_every_type_of_test_for_every_size(catalogue):
    tests_of = defaultdict(list)
    for test in at_least_one(catalogue.all_tests):
        tests_of[test.source].append(test)
    for suite in SUITES:
        tests = tests_of[suite]
        sizes = {test.name.partition("-")[0] for test in tests}
        # FD.io CSIT measures connections with sizes of their own, and without soak tests.
        tags = {tag for test in tests for tag in test.tags}
        if own := next((SIZES_OF_CONNECTIONS[tag] for tag in SIZES_OF_CONNECTIONS if tag in tags), None):
            assert sizes == own
            assert {test.name.rpartition("-")[2] for test in tests} in ({"ndrpdr"}, {"ndrpdr", "mrr"})
            continue
        assert {"128B", "1518B", "IMIX"} <= sizes
        for size in at_least_one(sizes):
            kinds = {test.name.rpartition("-")[2] for test in tests if size in test.tags}
            assert kinds == {"ndrpdr", "mrr", "soak"} or kinds in ALONE, (suite.stem, size)


@pytest.fixture(scope="module")
def clean():
    """What was found clean, as `in_this_lab` has it."""
    return set()


def in_this_lab(suite, topology):
    """All that a dry run sees of an expanded suite but the names of its lab: its file, its tags, NIC and DUTs."""
    text = json.dumps(suite.to_dict(), sort_keys=True).replace(str(topology), "")
    return re.sub(r'"tags": \[[^]]*\]|"(duts|nic)=[^"]*"', "", text)


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda path: path.stem)
def test_every_suite_is_clean_for_every_topology(topology, clean, suites):
    # Most suites become the same in several labs: one dry run of them is enough.
    whole = suites.deepcopy()
    whole.visit(Catalogue(str(topology), "frame_sizes=78B", "cores=1"))
    assert {each.source for each in whole.suites} == set(SUITES)
    new = {in_this_lab(each, topology): each for each in whole.suites}
    new = {text: each for text, each in new.items() if text not in clean}
    whole.suites = new.values()
    console = io.StringIO()
    if new:
        quiet = {"output": None, "log": None, "report": None, "stdout": console, "stderr": console}
        result = whole.run(dryrun=True, pythonpath=[str(ROOT / "libraries")], **quiet)
        assert result.return_code == 0, console.getvalue()
    assert "[ WARN ]" not in console.getvalue()
    assert "[ ERROR ]" not in console.getvalue()
    clean.update(new)
