"""Every claim of the README is an act that a test performs: the list of these tests."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROSE = (ROOT / "README.rst").read_text().partition("\n**Your own testbed.**")[0]

DEMO = "commands/test_demo.py::test_where_no_testbed_can_be_built_the_demo_is_simulated_and_says_why"
CLAIMS = {
    "or a device that you cannot log in to": "testbed/test_black_box.py::test_the_how_to_is_true",
    "are counted separately from frames that the generator failed to send": (
        "test_counters.py::test_a_generator_that_sent_nothing_is_all_loss_and_all_unsent"
    ),
    "is an error, never a number": (
        "testbed/test_repair.py::test_a_trial_during_which_the_testbed_was_lost_is_not_believed"
    ),
    "gets no credit.": "test_integrity.py::test_a_copy_never_makes_up_for_a_lost_frame",
    "A single search by MLRsearch (RFC 9971) finds NDR and PDR together": (
        "mlrsearch/test_mlrsearch_controller.py::test_a_knee_is_enclosed_by_every_goal"
    ),
    "Each trial is on disk before the next one starts": (
        "test_trial.py::test_each_result_is_on_disk_before_the_next_trial_starts"
    ),
    "An interrupted search continues where it stopped": (
        "runs/test_resume.py::test_a_run_that_was_stopped_goes_on_and_is_one_run"
    ),
    "You need Linux, Python 3.10 or later": (
        "test_packaging.py::test_the_lowest_versions_that_are_tested_are_those_that_are_allowed"
    ),
    "no lab, no traffic generator and no root access": (
        "local_testbed/test_testbed_nodes.py::test_all_of_this_holds_for_an_ordinary_user"
    ),
    "builds a testbed from network namespaces": (
        "commands/test_init.py::test_enter_alone_makes_a_lab_that_can_be_measured"
    ),
    "a trial of one second passes 51,000 frames without loss": DEMO,
    "removes the testbed at the end": (
        "local_testbed/test_testbed_life.py::test_a_testbed_that_was_taken_down_has_left_nothing"
    ),
    "between the bounds, 50,846 and 51,100 fps": DEMO,
    "is far too busy, the demo simulates the bridge and says why": (
        "commands/test_demo.py::test_where_the_machine_is_too_busy_for_less_traffic_the_demo_is_simulated_and_says_why"
    ),
    "shows in about a minute what the network forwards": (
        "commands/test_between.py::test_a_policer_between_two_hosts_is_enclosed_from_their_names"
    ),
    "If it is only busy, the demo sets a lower limit for the bridge": (
        "commands/test_demo.py::test_where_the_machine_is_too_busy_the_demo_sends_less_and_says_why"
    ),
}
"""Words of each claim, and the test that performs it, below tests/unit."""


def test_each_claim_in_the_list_is_in_the_readme_and_has_a_test():
    prose = " ".join(PROSE.split())
    assert [claim for claim in CLAIMS if claim not in prose] == []
    tests = [test.split("::") for test in CLAIMS.values()]
    assert [name for file, name in tests if f"\ndef {name}(" not in (ROOT / "tests/unit" / file).read_text()] == []


def test_each_sentence_that_promises_something_is_in_the_list():
    bullets = re.split(r"^- ", PROSE, flags=re.MULTILINE)[1:]
    said = [" ".join(bullet.split("\n\n")[0].split()) for bullet in bullets]
    assert len(said) == 4
    assert [words for words in said if not any(claim in words for claim in CLAIMS)] == []
