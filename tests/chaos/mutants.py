"""Mutants: small mistakes that are put into a copy of the library, each of which the tests must notice.

`make mutants` makes them one by one, and runs the tests that must fail. A mutant that they pass has survived: then the
exit status is 1, and a test is missing. It is 2 if the named tests fail without the mistake, too, or cannot be run.

Each mutation is a row of `MUTATIONS`. Its text must be in its file exactly once; after a change of the library, a test
says which rows must follow it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_OUT = {".venv", ".git", "build", "dist", "results"}
"""What no test needs, at the top."""

LIMIT = 300.0
"""Seconds for the tests of a mutant. One that takes longer is noticed, too: it goes on for ever."""

PASSED, FAILED = 0, 1


@dataclass(frozen=True)
class Mutation:
    """A mistake."""

    name: str
    """What is wrong with it, in words."""
    file: str
    """The file, below ``libraries/lossratio``."""
    old: str
    """The right text."""
    new: str
    """The wrong one."""
    tests: tuple[str, ...]
    """Test files, or single tests, below ``tests/unit``: at least one test must fail."""

    def text_in(self, root: Path) -> str:
        """The whole file with the mistake.

        Raises:
            LookupError: If the right text is not there, or more than once.
        """
        path = root / "libraries" / "lossratio" / self.file
        text = path.read_text() if path.exists() else ""
        if text.count(self.old) != 1:
            raise LookupError(f"{self.name}: {self.file} has {text.count(self.old)} times: {self.old}")
        return text.replace(self.old, self.new)


MUTATIONS = (
    Mutation(
        "a single look says when TRex's traffic began, even if TRex was late then",
        "traffic/agent/trex/pace.py",
        "if last - first < 0.5 * self._duration:",
        "if False:",
        (
            "traffic/test_trex_pace.py::test_frames_after_the_begin_show_when_it_was_unless_they_are_late_or_seldom_looked_at",
        ),
    ),
    Mutation(
        "members of a structure in Python are in another order than in C",
        "traffic/agent/xdp/send_program.py",
        '"u64 left, number, index, fraction"',
        '"u64 left, index, number, fraction"',
        ("test_bpf.py::test_structures_in_python_are_those_that_the_compiler_lays_out",),
    ),
    Mutation(
        "other users of a node may read the keys of tunnels",
        "dut/vpp/control.py",
        "umask 077\n",
        "",
        ("dut/test_vpp_keys.py::test_nobody_else_reads_the_keys_and_their_file_is_gone_afterwards",),
    ),
    Mutation(
        "the keys of tunnels outlive a controller that was killed",
        "dut/vpp/control.py",
        """trap 'rm -f -- "$file"' EXIT""",
        "",
        ("dut/test_vpp_keys.py::test_of_a_controller_that_dies_while_vpp_reads_the_keys_nothing_is_left",),
    ),
    Mutation(
        "a server has as many connections as its clients want",
        "http_server.py",
        "threading.BoundedSemaphore(MOST_CONNECTIONS)",
        "threading.Semaphore(1 << 20)",
        ("test_http_server.py::test_there_are_so_many_connections_at_most_and_answers_in_the_making_are_not_cut",),
    ),
    Mutation(
        "a page of another site whose name leads here is answered",
        "http_server.py",
        "if not self.server.is_own(host[1]):",
        "if not host[1]:",
        ("test_http_server.py::test_a_name_of_somebody_else_that_leads_here_is_refused",),
    ),
    Mutation(
        "the size of a full table is a rate",
        "measurements/connection_tables.py",
        "if is_spoilt(slow.output) or _lost(slow) < LEAST_LOST:",
        "if True:",
        (
            "measurements/test_connection_rate.py::test_a_table_that_is_full_is_no_rate_and_a_resumed_search_says_it_again",
            "measurements/test_connection_mrr.py::test_a_table_that_is_full_is_no_rate",
            "measurements/test_devices_with_tables.py::test_a_table_is_no_rate_and_its_kind_is_named",
        ),
    ),
    Mutation(
        "a limited rate before a table with a little more room is a full table",
        "measurements/connection_tables.py",
        "if _established(slow) > _AS_MANY * _established(fast):",
        "if False:",
        (
            "measurements/test_devices_with_tables.py::test_a_rate_that_is_limited_is_found_whatever_comes_after_it",
            "measurements/test_connection_mrr.py::test_connections_that_are_lost_for_another_reason_show_no_full_table",
        ),
    ),
    Mutation(
        "a reset that does nothing is one",
        "measurements/connections.py",
        "if again and not unasked:",
        "if False:",
        ("measurements/test_devices_with_tables.py::test_a_table_is_no_rate_and_its_kind_is_named",),
    ),
    Mutation(
        "the frames of the check of a path fill a table",
        "traffic/checks.py",
        """    for attempt in range(_ATTEMPTS):
        reset()
""",
        """    for attempt in range(_ATTEMPTS):
""",
        ("testbed/test_reset_before_traffic.py",),
    ),
    Mutation(
        "frames that a busy node has no room to note are lost",
        "traffic/agent/core/passes.py",
        "unsent = min(unsent + overlooked,",
        "unsent = min(unsent,",
        (
            "traffic/test_connections_of_both_ends.py::"
            "test_frames_that_a_busy_node_has_no_room_for_are_unsent_connections",
        ),
    ),
    Mutation(
        "an MTU that was raised is no change",
        "testbed/changes.py",
        "if then.mtu != now.mtu:",
        "if (then.mtu or 0) > (now.mtu or 0):",
        ("testbed/test_blame.py",),
    ),
    Mutation(
        "a lease is taken over without its token",
        "testbed/reservation/keeper/main.py",
        'is_own = lease["token"] == self._request.get("succeeds")',
        'is_own = "succeeds" in self._request',
        ("reservation/test_lease.py::test_a_lease_is_not_taken_over_with_another_token_than_its_own",),
    ),
    Mutation(
        "copies of frames pass with integrity=fail",
        "trials/counters.py",
        "if direction.faulty\n    ]\n    if faulty:",
        "if direction.faulty > direction.duplicated\n    ]\n    if faulty:",
        ("test_integrity.py",),
    ),
    Mutation(
        "a used-up disk quota is no full disk",
        "exit_status.py",
        "(errno.ENOSPC, errno.EDQUOT, errno.EFBIG)",
        "(errno.ENOSPC, errno.EFBIG)",
        ("runs/test_full_disk.py::test_a_test_that_failed_as_robots_output_did_not_fit_is_run_again",),
    ),
    Mutation(
        "after an early verdict only the settle time is waited for",
        "traffic/agent/core/early_verdict.py",
        "quiet = max(settle_time, QUIET_SECONDS)",
        "quiet = settle_time",
        ("traffic/test_early_verdicts.py::test_after_an_early_verdict_frames_are_awaited_as_long_as_they_come",),
    ),
    Mutation(
        "an early verdict that proved wrong stands",
        "traffic/measurer.py",
        "if output.decided_after is not None and output.loss_ratio <= certain_above:",
        "if output.decided_after is not None and output.loss_ratio < 0.0:",
        (
            "traffic/test_early_verdicts.py::"
            "test_a_verdict_that_was_none_is_measured_again_with_more_frames_allowed_for_on_their_way",
        ),
    ),
    Mutation(
        "trials that nothing proves are continued",
        "trials/journal_reading.py",
        "if line.verified:",
        "if line:",
        ("test_journal.py",),
    ),
    Mutation(
        "late frames of any traffic are those of the trial before",
        "trials/late.py",
        "self._traffic.appendleft(_Traffic())",
        "self._traffic.appendleft(_Traffic(*vars(self._traffic[0]).values()) if self._traffic else _Traffic())",
        ("test_late_frames.py",),
    ),
    Mutation(
        "xdp counts late frames of any traffic at one place",
        "traffic/agent/xdp/receive_program.py",
        "return tag // TAGS_OF_TRAFFIC % MOST_TRAFFIC",
        "return 0 * tag",
        (
            "traffic/test_xdp_frames.py::test_late_frames_are_of_the_traffic_whose_tag_they_have_however_much_came_after",
        ),
    ),
    Mutation(
        "each device pays for the wait that one needs which holds frames",
        "testbed/live.py",
        "most_quiet = _LATE_WAITS if late_frames.total else 1",
        "most_quiet = _LATE_WAITS",
        ("testbed/test_wait_for_late_frames.py",),
    ),
    Mutation(
        "the end of the wait for late frames does not move when some come",
        "testbed/live.py",
        "if late_frames.total > before:",
        "if False:",
        ("testbed/test_wait_for_late_frames.py",),
    ),
    Mutation(
        "connections that the tester did not open are the device's",
        "measurements/connection_teardown.py",
        "if opened != wanted and missing is not None and missing.by_tester:",
        "if False:",
        ("measurements/test_connection_teardown.py",),
    ),
    Mutation(
        "a share of all connections that is lost is a full table",
        "measurements/connection_tables.py",
        "if is_spoilt(few.output) or few.loss_ratio >= _SAME_SHARE * slow.loss_ratio:",
        "if False:",
        ("measurements/test_connection_mrr.py",),
    ),
    Mutation(
        "connections that were only late are a full table",
        "measurements/connection_tables.py",
        "if _came_late(fast.output) or is_spoilt(fast.output):",
        "if is_spoilt(fast.output):",
        ("measurements/test_connection_mrr.py",),
    ),
    Mutation(
        "drops of the generator are loss beside a reset",
        "measurements/reset.py",
        "for time in times) - not_by_sut",
        "for time in times)",
        ("test_nobody_wrongly_blamed.py::test_drops_of_the_generator_are_no_loss_beside_a_reset",),
    ),
    Mutation(
        "a test without a value is a regression of the device, whoever lost its frames",
        "results/ends.py",
        "if _sut_lost_nothing(finding):",
        "if False:",
        ("test_nobody_wrongly_blamed.py::test_a_test_without_a_value_because_of_its_tester_is_no_regression",),
    ),
    Mutation(
        "a measurement does not say which field of its frames differs",
        "traffic/agent/afpacket/examination.py",
        '"changed": [vars(change) for change in seen.changes[:_MOST_CHANGES]],',
        '"changed": [],',
        ("traffic/test_traffic_integrity.py::test_what_differs_in_the_first_faulty_frame_is_said",),
    ),
    Mutation(
        "drops of a queue explain losses of other trials",
        "results/queue_drops.py",
        "        unexplained += max(0, own - dropped)\n",
        "        unexplained += own - dropped\n",
        ("test_queue_drops.py",),
    ),
    Mutation(
        "drops before an attempt count as the attempt's",
        "testbed/queues.py",
        "        self._is_begun = True\n        self._is_newest = False\n",
        "        self._is_begun = True\n",
        ("test_queue_drops.py",),
    ),
    Mutation(
        "late frames are frames that the SUT lost",
        "trials/causes.py",
        "lost_by_sut=known.lost_by_sut - late",
        "lost_by_sut=known.lost_by_sut",
        ("test_late_frames.py",),
    ),
    Mutation(
        "a load that was not offered is no doubt",
        "results/offered.py",
        "for share, load in shares if share > LEAST_UNSENT]",
        "for share, load in shares if share > 1.0]",
        ("report/test_unsent.py",),
    ),
    Mutation(
        "a starved generator makes a larger regression",
        "results/ends.py",
        "return min(as_they_are, at_their_most, key=abs)",
        "return as_they_are",
        ("report/test_both_ends.py",),
    ),
    Mutation(
        "a verdict needs no change of the values at their most",
        "results/ends.py",
        "not as_they_are * at_their_most > 0.0",
        "False",
        ("report/test_both_ends.py",),
    ),
    Mutation(
        "options of a device do not distinguish series",
        "results/identity.py",
        "        if Role.TESTED not in field.metadata:\n            counted[name] = value",
        "        if Role.TESTED not in field.metadata:\n            pass",
        ("dut/test_options_that_count.py",),
    ),
    Mutation(
        "a device that is replaced goes on in its series",
        "history/series.py",
        "if one == device[-1]}",
        "if True}",
        ("history/test_devices.py",),
    ),
    Mutation(
        "results that may be of two devices are given to one",
        "history/devices.py",
        "if group.identity.device is None and len(devices) > 1:",
        "if False:",
        ("history/test_devices.py",),
    ),
    Mutation(
        "hints come from other devices",
        "measurements/throughput/earlier.py",
        "if device is not None and result.conditions.device not in (None, device):",
        "if False:",
        ("test_devices_apart.py",),
    ),
    Mutation(
        "bands may be one width of the goal apart",
        "history/bands.py",
        "LEAST_WIDTHS = 2.5",
        "LEAST_WIDTHS = 0.5",
        ("history/test_bands_and_widths.py",),
    ),
    Mutation(
        "a soak asks all trials below its load at once",
        "plrsearch/estimate/guard.py",
        "    for start in below:\n",
        "    for start in below[:1]:\n",
        (
            "plrsearch/test_guard.py::test_quiet_trials_far_below_do_not_hide_what_two_queues_lose_just_below_the_reported_load",
        ),
    ),
    Mutation(
        "a quiet load is verified although lower ones are not quiet",
        "plrsearch/estimate/guard.py",
        "starts = (load, (1.0 - NEAR) * load)",
        "starts = (load, load)",
        ("plrsearch/test_guard.py::test_the_load_that_is_verified_is_the_highest_one_that_the_trials_show",),
    ),
    Mutation(
        "batches are worth as much as single losses",
        "plrsearch/estimate/bounds.py",
        "burst = max(batch, chi_squared / freedom)",
        "burst = max(1.0, chi_squared / freedom)",
        ("plrsearch/test_guard.py::test_quiet_trials_of_a_device_that_loses_frames_in_batches_are_worth_as_much_less",),
    ),
    Mutation(
        "round loads make batches",
        "plrsearch/variation/replicates.py",
        "len(np.unique(passed[those])) < _PASSED or ",
        "",
        ("plrsearch/test_replicates.py::test_round_loads_make_no_batches",),
    ),
    Mutation(
        "a last batch that is not full changes the size of batches",
        "plrsearch/variation/replicates.py",
        "has_rest & (passed",
        "False & (passed",
        ("plrsearch/test_replicates.py::test_a_last_batch_that_is_not_full_changes_nothing",),
    ),
    Mutation(
        "short trials that lose a few frames show losses that come once",
        "plrsearch/variation/once.py",
        "least = max(times * mean + _SURE * by_chance, _LEAST * mean * len(short))",
        "least = times * mean",
        ("plrsearch/test_once.py::test_pauses_that_most_trials_see_do_not_come_once",),
    ),
    Mutation(
        "losses that come once are a change of the device",
        "plrsearch/variation/inference.py",
        "change = Change.of(counts)",
        "change = Change.of(not_short)",
        ("plrsearch/test_once.py::test_losses_that_come_once_are_no_sign_of_a_change",),
    ),
    Mutation(
        "a short trial without loss is a sign of a large bucket",
        "plrsearch/selection.py",
        "if self._is_comparing and not lost",
        "if is_short and not lost",
        ("plrsearch/test_once.py::test_short_trials_without_loss_are_no_sign_of_a_large_bucket",),
    ),
    Mutation(
        "pauses may overlap",
        "plrsearch/variation/pauses.py",
        "if fit.length_s < fit.every_s]",
        "if fit.length_s > 0.0]",
        ("plrsearch/test_pauses.py::test_no_pauses_are_longer_than_the_time_between_them",),
    ),
    Mutation(
        "long trials without loss do not count",
        "plrsearch/variation/inference.py",
        "return max(limited, self.passed_in_long, self.question.min_load)",
        "return max(limited, self.question.min_load)",
        ("plrsearch/test_verifying.py::test_long_trials_without_loss_disprove_a_lower_rate_in_the_long_run",),
    ),
    Mutation(
        "each capacity that varies has a lower bound",
        "plrsearch/variation/bounded.py",
        "if np.ptp(passed) > least * stdev:",
        "if np.ptp(passed) > 9.0 * stdev:",
        ("plrsearch/test_bounded.py::test_a_capacity_without_a_lower_bound_has_one_by_chance_in_few_searches",),
    ),
    Mutation(
        "a capacity that was seen once is the lowest of a few",
        "plrsearch/variation/bounded.py",
        "return bool(is_equal[0] and np.count_nonzero(is_equal) >= least)",
        "return bool(np.count_nonzero(is_equal) >= least)",
        ("plrsearch/test_bounded.py::test_a_capacity_that_was_seen_only_once_is_not_the_lowest_of_a_few",),
    ),
    Mutation(
        "a capacity that varies follows the load",
        "plrsearch/variation/rare.py",
        "return float((lossy.lost / lossy.sent).max()) < _OF_LOADS * apart",
        "return apart > 0.0",
        ("plrsearch/test_rare.py::test_a_capacity_that_varies_does_not_follow_the_load",),
    ),
    Mutation(
        "a SUT that was only faster for a time is followed on",
        "plrsearch/faster.py",
        "if lost > _SLOW * frames or self._following >= _MOST_FOLLOWING:",
        "if self._following >= _MOST_FOLLOWING:",
        ("plrsearch/test_faster.py::test_a_sut_that_is_slow_again_is_not_followed_any_more",),
    ),
    Mutation(
        "one pair of trials shows how much all of them scatter",
        "plrsearch/variation/replicates.py",
        "if np.count_nonzero(which) < _PAIRS:",
        "if not which.any():",
        (
            "plrsearch/test_change.py::"
            "test_a_sut_that_becomes_much_faster_has_changed_although_two_equal_trials_differ_by_as_much",
        ),
    ),
    Mutation(
        "a load in overload that loses nothing any more is left for one that is hardly higher",
        "plrsearch/overload.py",
        "self._reach *= _MUCH_FARTHER",
        "self._reach *= _FARTHER",
        ("plrsearch/test_overload.py::test_a_load_that_lost_frames_before_is_tried_nine_times_before_it_is_left",),
    ),
    Mutation(
        "short trials contradict others",
        "plrsearch/variation/change.py",
        "return np.where(counts.is_short, np.inf, usual)",
        "return usual",
        ("plrsearch/test_change.py::test_short_trials_are_not_compared_with_others",),
    ),
    Mutation(
        "what was before a change is remembered",
        "plrsearch/variation/inference.py",
        "    usual = counts.at(is_after & ~counts.is_long & ~counts.is_short)\n",
        "    usual = counts.at(~counts.is_long & ~counts.is_short)\n",
        ("plrsearch/test_change.py::test_what_was_before_a_change_is_forgotten_and_the_change_is_said",),
    ),
    Mutation(
        "a reset that takes a link down is the wire's fault",
        "testbed/changes.py",
        'for change in ("carrier", "flapped", "damaged")),',
        'for change in ("flapped", "damaged")),',
        ("testbed/test_watch.py",),
    ),
    Mutation(
        "latency frames keep step with the load",
        "traffic/agent/afpacket/latency.py",
        "return tuple(sorted(random.sample(range(frames_within(duration, load)), frames_within(duration, rate))))",
        "return tuple(range(0, frames_within(duration, load), max(1, round(load / rate))))"
        "[: frames_within(duration, rate)]",
        ("traffic/test_traffic_latency.py::test_latency_frames_do_not_keep_step_with_anything",),
    ),
    Mutation(
        "copies of earlier frames are late frames",
        "traffic/agent/core/generator.py",
        "late = min(arrived, missing)",
        "late = arrived",
        ("traffic/test_traffic_measurer.py",),
    ),
    Mutation(
        "foreign frames are no doubt",
        "results/doubts.py",
        "(sum(map(foreign_frames_of, trial.directions)) for trial in trials),",
        "(0 for trial in trials),",
        ("report/test_doubts.py",),
    ),
    Mutation(
        "a search jumps far down from one unlucky load",
        "mlrsearch/rules/look.py",
        "return _proof_of_jump(view, index) or Choice(",
        "return Choice(",
        ("mlrsearch/test_mlrsearch_hard_suts.py::test_a_jump_far_down_is_taken_from_a_load_that_more_trials_proved",),
    ),
    Mutation(
        "the generator's limit is the SUT's NDR for CSIT",
        "measurements/throughput/view.py",
        "outcome.regular or outcome.reason == mlrsearch.IrregularReason.MAX_LOAD_IS_LOWER_BOUND",
        "True",
        ("report/test_csit_export.py",),
    ),
    Mutation(
        "the last trial of a search has no rest",
        "traffic/measurer.py",
        "self._begin_traffic(trial.rest)",
        "self._begin_traffic()",
        ("traffic/test_traffic_measurer.py",),
    ),
    Mutation(
        "trials in which the generator stalled prove an upper bound alone",
        "mlrsearch/bursts.py",
        "(direction.lateness_s or 0.0) <= STALL",
        "(direction.lateness_s or 0.0) <= 10.0 * STALL",
        ("report/test_verdict.py::test_trials_without_stalls_alone_may_prove_a_bound",),
    ),
    Mutation(
        "the demo is content with an irregular result of a busy machine",
        "commands/run.py",
        "reason = _irregular_in(outcome.directory)",
        "reason = None",
        ("commands/test_demo.py::test_where_a_number_is_irregular_the_demo_sends_less_and_says_why",),
    ),
    Mutation(
        "a search never rests before its last trial",
        "mlrsearch/rested.py",
        "TrialInput(self._duration, self._grid.load(index), rest=self._rest)",
        "TrialInput(self._duration, self._grid.load(index))",
        ("mlrsearch/test_mlrsearch_rested.py",),
    ),
    Mutation(
        "frames that were not sent hide a memory of loss",
        "mlrsearch/rest_answers.py",
        "if sut_loss_ratio(result) > allowed:",
        "if result.loss_ratio > allowed:",
        ("mlrsearch/test_mlrsearch_rested.py",),
    ),
    Mutation(
        "trials that are alike count as independent ones",
        "mlrsearch/sequential.py",
        "return math.ceil(expected / changes - _ROUNDING)",
        "return 1",
        ("mlrsearch/test_mlrsearch_sequential.py",),
    ),
    Mutation(
        "a busy host repeats trials that the generator sent in time",
        "testbed/changes.py",
        'answered = (_BY_KEY["TG", "stolen"], _BY_KEY["TG", "pressure"])',
        'answered = (_BY_KEY["TG", "stolen"],)',
        ("testbed/test_watch.py",),
    ),
    Mutation(
        "the Id of a folder names none of its suites",
        "results/identity.py",
        "        given = _id_of_folder(folder)\n",
        "        given = None\n",
        ("test_identity.py::test_an_id_of_a_folder_reaches_its_suites",),
    ),
    Mutation(
        "two processes may claim one test",
        "trials/journal.py",
        "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        ("test_never_overwritten.py::test_a_test_that_another_run_has_claimed_is_not_measured_until_that_run_ends",),
    ),
    Mutation(
        "a journal that another process began a moment ago is emptied",
        "trials/journal.py",
        """        if has_header(path):
            file.close()
            raise _written_elsewhere(path)
""",
        "",
        ("test_never_overwritten.py::test_a_journal_that_another_process_begins_at_the_same_moment_is_kept",),
    ),
    Mutation(
        "the result of another measurement is replaced",
        "results/run_directory.py",
        "began is not None and began[0] in path.read_bytes()",
        "path.exists()",
        ("test_never_overwritten.py::test_the_result_of_a_script_that_ended_at_the_same_moment_is_kept",),
    ),
    Mutation(
        "builds of two devices are compared",
        "builds/record.py",
        "if wanted not in (None, device):",
        "if False:",
        ("builds/test_one_device.py::test_a_record_that_is_continued_knows_the_device_of_earlier_builds",),
    ),
    Mutation(
        "files that differ in ordering numbers alone are one series",
        "results/identity.py",
        "    return sorted(file for file in others if not _id_of_file(file))",
        "    return []",
        ("test_identity.py::test_files_whose_names_differ_in_what_is_no_part_of_a_name_are_namesakes",),
    ),
)


def left_out(directory: str, names: Sequence[str]) -> set[str]:
    """The names in a directory that are not copied."""
    return {name for name in names if name == "__pycache__" or (directory == str(ROOT) and name in LEFT_OUT)}


def status_of(tree: Path, tests: Sequence[str], limit: float = LIMIT) -> int:
    """Runs tests of a copy with the library of that copy, until one fails.

    Returns:
        The exit status of pytest, or `FAILED` if it did not end within the limit (seconds).
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(tree / "libraries"), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [*command, *(f"tests/unit/{test}" for test in tests)],
        cwd=tree,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
        return FAILED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="WORDS", default="", help="mutations with these words in their names")
    options = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if options.only in mutation.name]
    survivors, broken = 0, 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        tree = Path(directory) / "tree"
        shutil.copytree(ROOT, tree, ignore=left_out)
        every = sorted({test for mutation in chosen for test in mutation.tests})
        if status_of(tree, every, 10 * LIMIT) != PASSED:
            print(f"BROKEN    without any mistake, too: {' '.join(every)}", flush=True)
            broken += 1
        for mutation in chosen if not broken else ():
            path = tree / "libraries" / "lossratio" / mutation.file
            right, wrong = path.read_text(), mutation.text_in(tree)
            path.write_text(wrong)
            status = status_of(tree, mutation.tests)
            path.write_text(right)
            word = {PASSED: "SURVIVED", FAILED: "noticed"}.get(status, "BROKEN")
            survivors, broken = survivors + (word == "SURVIVED"), broken + (word == "BROKEN")
            print(f"{word:9} {mutation.name} ({mutation.file}; {' '.join(mutation.tests)})", flush=True)
    print(f"{len(chosen)} mutants, {survivors} survived, {broken} broken")
    sys.exit(2 if broken else bool(survivors))


if __name__ == "__main__":
    main()
