"""Mutants of what is kept and shown: trials, results, histories, comparisons of builds, and exit statuses."""

from mutations.mutation import Mutation

RESULTS = (
    Mutation(
        "a sentence says that the SUT lost frames that were only late",
        "results/trials.py",
        "for part in (missing.not_lost, faulty_in_words(counting)) if part]",
        "for part in (faulty_in_words(counting),) if part]",
        (
            "measurements/test_sentences.py::"
            "test_frames_that_were_late_or_not_sent_are_not_lost_where_a_goal_allows_loss",
        ),
    ),
    Mutation(
        "the page says that a device forwards at most what late frames or the generator allowed",
        "report/overview.py",
        "    if row.is_at_limit:",
        "    if row.is_at_limit and row.lower_bound is not None:",
        ("report/test_report_page.py::test_bounds_at_the_generators_limit_claim_no_bound_that_there_is_not",),
    ),
    Mutation(
        "two bands of the generator are a doubt about the SUT",
        "results/doubts.py",
        "            not _tester_took_part(group)\n",
        "            True\n",
        (
            "report/test_doubts.py::"
            "test_bands_of_the_generator_are_none_of_the_sut_although_it_would_have_bands_at_another_load",
        ),
    ),
    Mutation(
        "a server has as many connections as its clients want",
        "../../otg/libraries/lossratio_otg/http_server.py",
        "threading.BoundedSemaphore(MOST_CONNECTIONS)",
        "threading.Semaphore(1 << 20)",
        (
            "../../otg/tests/test_http_server.py::test_there_are_so_many_connections_at_most_and_answers_in_the_making_are_not_cut",
        ),
    ),
    Mutation(
        "a page of another site whose name leads here is answered",
        "../../otg/libraries/lossratio_otg/http_server.py",
        "if not self.server.is_own(host[1]):",
        "if not host[1]:",
        ("../../otg/tests/test_http_server.py::test_a_name_of_somebody_else_that_leads_here_is_refused",),
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
        "a test without a value is a regression of the device, whoever lost its frames",
        "results/ends.py",
        "if _sut_lost_nothing(finding):",
        "if False:",
        ("test_nobody_wrongly_blamed.py::test_a_test_without_a_value_because_of_its_tester_is_no_regression",),
    ),
    Mutation(
        "drops of a queue explain losses of other trials",
        "results/queue_drops.py",
        "        unexplained += max(0, own - dropped)\n",
        "        unexplained += own - dropped\n",
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
        "results/device.py",
        "        if Role.TESTED not in field.metadata:\n            counted[name] = value",
        "        if Role.TESTED not in field.metadata:\n            pass",
        ("dut/test_options_that_count.py",),
    ),
    Mutation(
        "a device that is replaced goes on in its series",
        "history/devices.py",
        "groups.setdefault(identity, [])",
        "groups.setdefault(identities[0], [])",
        ("history/test_devices.py",),
    ),
    Mutation(
        "a device that takes turns with another one counts as replaced",
        "history/devices.py",
        "if other[0] <= rows[-1]:",
        "if False:",
        ("history/test_devices.py",),
    ),
    Mutation(
        "bands may be one width of the goal apart",
        "history/bands.py",
        "LEAST_WIDTHS = 2.5",
        "LEAST_WIDTHS = 0.5",
        ("history/test_bands_and_widths.py",),
    ),
    Mutation(
        "foreign frames are no doubt",
        "results/doubts.py",
        "lambda trial: sum(map(foreign_frames_of, trial.directions)),",
        "lambda trial: 0,",
        ("report/test_doubts.py",),
    ),
    Mutation(
        "the demo is content with an irregular result of a busy machine",
        "commands/demo.py",
        "reason = _irregular_in(outcome.directory)",
        "reason = None",
        ("commands/test_demo.py::test_where_a_number_is_irregular_the_demo_sends_less_and_says_why",),
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
        """                if has_header(path):
                    file.close()
                    raise _written_elsewhere(path)
""",
        "",
        ("test_never_overwritten.py::test_a_journal_that_another_process_begins_at_the_same_moment_is_kept",),
    ),
    Mutation(
        "trials that another process added a moment ago are cut off",
        "trials/journal.py",
        "if file.seek(0, os.SEEK_END) != contents.file_bytes:",
        "if not contents.file_bytes:",
        ("test_never_overwritten.py::test_trials_that_another_process_adds_at_the_same_moment_are_kept",),
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
