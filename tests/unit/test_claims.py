"""Every claim of the README has its proof beside it: a test, a record of benchmarks, or a command that CI gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROSE = re.split(r"\nOn your own testbed\n", (ROOT / "README.rst").read_text())[0]

CLAIMS = {
    "drives a traffic generator over SSH": ("local_testbed/test_testbed_nodes.py", "all_of_this_holds_for_an_ordinary"),
    "searches with MLRsearch (RFC 9971)": (
        "mlrsearch/test_mlrsearch_controller.py",
        "a_knee_is_enclosed_by_every_goal",
    ),
    "or a box that you cannot look into": ("testbed/test_black_box.py", "def test_"),
    "are three different things": ("test_counters.py", "a_generator_that_sent_nothing_is_all_loss_and_all_unsent"),
    "is an error, never a number": ("testbed/test_repair.py", "a_trial_during_which_the_testbed_was_lost_is_not"),
    "gets no credit for them": ("test_integrity.py", "a_copy_never_makes_up_for_a_lost_frame"),
    "One search finds the bounds of all goals": (
        "mlrsearch/test_mlrsearch_controller.py",
        "a_knee_is_enclosed_by_every",
    ),
    "NDR and PDR take 35 to 70 s": ("../../benchmarks/records/search-time.md", "quick NDR"),
    "Each trial is on disk before the next one starts": (
        "test_trial.py",
        "each_result_is_on_disk_before_the_next_trial",
    ),
    "An interrupted search goes on where it stopped": (
        "runs/test_resume.py",
        "a_run_that_was_stopped_goes_on_and_is_one_run",
    ),
    "You need Python 3.10 or later": ("test_packaging.py", "the_lowest_versions_that_are_tested_are_those"),
    "you can be root or an ordinary user": (
        "local_testbed/test_testbed_nodes.py",
        "all_of_this_holds_for_an_ordinary_user",
    ),
    "builds a testbed from network namespaces": ("commands/test_init.py", "enter_alone_ends_with_a_number_measured_or"),
    "Then it removes the testbed": (
        "local_testbed/test_testbed_life.py",
        "a_testbed_that_was_taken_down_has_left_nothing",
    ),
    "between the bounds, 50,942 and 51,197 fps": ("../../tools/release-check", "demo"),
    "is a page about the run": ("test_site.py", "no_page_fetches_anything_from_another_host"),
    "or is too busy, the demo simulates the bridge, and says why": (
        "commands/test_demo.py",
        "where_the_machine_is_too_busy_the_demo_is",
    ),
}
"""Words of each claim: the file of its proof, below tests/unit, and words of it."""


@pytest.mark.parametrize(("claim", "proof"), CLAIMS.items(), ids=CLAIMS)
def test_a_claim_of_the_readme_has_its_proof(claim, proof):
    file, words = proof
    assert claim in " ".join(PROSE.split())
    assert words in (ROOT / "tests" / "unit" / file).read_text()


def test_each_sentence_that_promises_something_is_in_the_list():
    bullets = re.split(r"^- ", PROSE, flags=re.MULTILINE)[1:]
    said = [" ".join(bullet.split("\n\n")[0].split()) for bullet in bullets]
    assert len(said) == 4
    assert [words for words in said if not any(claim in words for claim in CLAIMS)] == []
