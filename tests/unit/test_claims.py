"""Every claim of the README has its proof beside it: a test, a record of benchmarks, or a command that CI gives."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROSE = (ROOT / "README.rst").read_text().partition("\n**Your own testbed.**")[0]

CLAIMS = {
    "or a device that you cannot log in to": ("testbed/test_black_box.py", "def test_"),
    "are counted separately from frames that the generator failed to send": (
        "test_counters.py",
        "a_generator_that_sent_nothing_is_all_loss_and_all_unsent",
    ),
    "is an error, never a number": ("testbed/test_repair.py", "a_trial_during_which_the_testbed_was_lost_is_not"),
    "gets no credit.": ("test_integrity.py", "a_copy_never_makes_up_for_a_lost_frame"),
    "A single search by MLRsearch (RFC 9971) finds NDR and PDR together": (
        "mlrsearch/test_mlrsearch_controller.py",
        "a_knee_is_enclosed_by_every",
    ),
    "Each trial is on disk before the next one starts": (
        "test_trial.py",
        "each_result_is_on_disk_before_the_next_trial",
    ),
    "An interrupted search continues where it stopped": (
        "runs/test_resume.py",
        "a_run_that_was_stopped_goes_on_and_is_one_run",
    ),
    "You need Linux, Python 3.10 or later": ("test_packaging.py", "the_lowest_versions_that_are_tested_are_those"),
    "no lab, no traffic generator and no root access": (
        "local_testbed/test_testbed_nodes.py",
        "all_of_this_holds_for_an_ordinary_user",
    ),
    "builds a testbed from network namespaces": ("commands/test_init.py", "enter_alone_ends_with_a_number_measured_or"),
    "a trial of one second passes 51,000 frames without loss": ("../../libraries/lossratio/commands/demo.py", "truth("),
    "removes the testbed at the end": (
        "local_testbed/test_testbed_life.py",
        "a_testbed_that_was_taken_down_has_left_nothing",
    ),
    "between the bounds, 50,846 and 51,100 fps": ("../../tools/release-check", "demo"),
    "is far too busy, the demo simulates the bridge and says why": (
        "commands/test_demo.py",
        "where_the_machine_is_too_busy_for_less_traffic_the_demo_is",
    ),
    "shows in about a minute what the network forwards": (
        "../../benchmarks/records/between.md",
        "44 of 45 runs enclose",
    ),
    "If it is only busy, the demo sets a lower limit for the bridge": (
        "commands/test_demo.py",
        "where_the_machine_is_too_busy_the_demo_sends_less",
    ),
}
"""Words of each claim: the file of its proof, below tests/unit, and words of it."""


def test_each_claim_in_the_list_is_in_the_readme_and_has_its_proof():
    prose = " ".join(PROSE.split())
    assert [claim for claim in CLAIMS if claim not in prose] == []
    proofs = [(ROOT / "tests" / "unit" / file, words) for file, words in CLAIMS.values()]
    assert [words for file, words in proofs if words not in file.read_text()] == []


def test_each_sentence_that_promises_something_is_in_the_list():
    bullets = re.split(r"^- ", PROSE, flags=re.MULTILINE)[1:]
    said = [" ".join(bullet.split("\n\n")[0].split()) for bullet in bullets]
    assert len(said) == 4
    assert [words for words in said if not any(claim in words for claim in CLAIMS)] == []
