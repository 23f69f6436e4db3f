"""Mutants of testbeds: the devices, the nodes, and the traffic between them."""

from mutations.mutation import Mutation

TESTBEDS = (
    Mutation(
        "members of a structure in Python are in another order than in C",
        "agent/xdp/send_program.py",
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
        "agent/core/passes.py",
        "unsent = min(unsent + counts.overlooked,",
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
        'before["token"] == request["token"]',
        '"token" in request',
        (
            "reservation/test_lease.py::test_a_lease_is_not_taken_over_with_another_token_than_its_own",
            "reservation/test_keeper.py",
        ),
    ),
    Mutation(
        "after an early verdict only the settle time is waited for",
        "agent/core/early_verdict.py",
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
        "xdp counts late frames of any traffic at one place",
        "agent/xdp/receive_program.py",
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
        "a measurement does not say which field of its frames differs",
        "agent/afpacket/examination.py",
        '"changed": [vars(change) for change in seen.changes[:_MOST_CHANGES]],',
        '"changed": [],',
        ("traffic/test_traffic_integrity.py::test_what_differs_in_the_first_faulty_frame_is_said",),
    ),
    Mutation(
        "drops before an attempt count as the attempt's",
        "testbed/queues.py",
        "        self._is_newest = False\n\n    def read(self)",
        "\n    def read(self)",
        ("test_queue_drops.py",),
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
        "agent/afpacket/latency.py",
        "return tuple(sorted(random.sample(range(frames_within(duration, load)), frames_within(duration, rate))))",
        "return tuple(range(0, frames_within(duration, load), max(1, round(load / rate))))"
        "[: frames_within(duration, rate)]",
        ("traffic/test_traffic_latency.py::test_latency_frames_do_not_keep_step_with_anything",),
    ),
    Mutation(
        "copies of earlier frames are late frames",
        "agent/core/generator.py",
        "late = min(arrived, missing)",
        "late = arrived",
        ("traffic/test_traffic_measurer.py",),
    ),
    Mutation(
        "the last trial of a search has no rest",
        "traffic/measurer.py",
        "self._pauses.begin_traffic(trial.rest, forgets=opens)",
        "self._pauses.begin_traffic(forgets=opens)",
        ("traffic/test_traffic_measurer.py",),
    ),
    Mutation(
        "a busy host repeats trials that the generator sent in time",
        "testbed/changes.py",
        '_TAKEN = (_BY_KEY["TG", "stolen"], _BY_KEY["TG", "pressure"])',
        '_TAKEN = (_BY_KEY["TG", "stolen"],)',
        ("testbed/test_watch.py",),
    ),
    Mutation(
        "a CPU that was not there explains frames that the generator sent in time",
        "testbed/changes.py",
        "if not output.unsent_frames:",
        "if False:",
        ("testbed/test_watch.py",),
    ),
    Mutation(
        "a quota on one node of the TG hides what happened on the other one",
        "testbed/changes.py",
        "if change.node not in limited",
        "if not limited",
        ("testbed/test_watch.py",),
    ),
)
