"""No trial is believed before it is known what changed meanwhile, and when the DUTs were as they were set up."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest
from fingerprint_examples import GOOD, SEEN, WAY, later, node, with_node, with_port, without_node

from lossratio.errors import DutError, LinkError, NodeError, TesterError, TrafficError
from lossratio.testbed.changes import End, Way, changes_between, error_of, unanswered
from lossratio.testbed.fingerprint import FingerprintReader
from lossratio.testbed.repair import RepairingMeasurer
from lossratio.testbed.testbed import Recovery
from lossratio.testbed.watch import VERIFY_OFTEN_SECONDS, VERIFY_SECONDS, Watch, WatchedSource
from lossratio.traffic import REPEATS, Answer
from lossratio.trials.counters import LatencyOutput
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput

TRIAL = TrialInput(1.0, 1000.0)
GOOD_TRIAL = TrialOutput(0.0, elapsed=1.0)
SOON = later(GOOD)
TAMPERED = DutError("DUT1 is not as it was set up: the nftables table is gone.")


class Readings:
    """Fingerprints and errors, one after the other; the last one for ever."""

    def __init__(self, *readings):
        self._readings = list(readings)

    def read(self, **_):
        reading = self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]
        if isinstance(reading, Exception):
            raise reading
        return reading


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Verifier:
    """Verifies DUTs, until they are tampered with."""

    def __init__(self):
        self.error = None
        self.times = 0

    def __call__(self):
        self.times += 1
        if self.error is not None:
            raise self.error


def watching(*readings, verify=lambda: None, clock=None):
    watch = Watch(Readings(GOOD, *readings), WAY, verify, clock or Clock())
    watch.begin()
    return watch


class Trials:
    """Measures every trial without a loss, unless an error is due."""

    def __init__(self, *errors):
        self._errors = list(errors)
        self.measured = 0

    def measure(self, trial):
        self.measured += 1
        if self._errors:
            raise self._errors.pop(0)
        return GOOD_TRIAL


def measurer(trials, watch, repair=None):
    """A measurer whose repairs bring back whatever can be."""
    return RepairingMeasurer(
        trials, repair=repair or (lambda: trials), check=lambda: None, watch=watch, recovery=Recovery((0.0, 0.0, 0.0))
    )


def test_a_trial_is_verified_only_if_the_duts_were_looked_at_after_it():
    verify, clock = Verifier(), Clock()
    watch = watching(GOOD, verify=verify, clock=clock)
    one, verified = measurer(Trials(), watch), []
    for seconds in (1.0, 2.0, VERIFY_SECONDS + 1.0, VERIFY_SECONDS + 2.0):
        clock.now = seconds
        one.measure(TRIAL)
        verified.append(watch.is_verified)
    assert (verify.times, verified) == (1, [False, False, True, False])


def test_a_run_that_was_cut_off_before_has_its_duts_looked_at_more_often_until_the_next_measurement():
    verify, clock = Verifier(), Clock()
    watch = watching(GOOD, verify=verify, clock=clock)
    watch.verify_often()
    clock.now = VERIFY_OFTEN_SECONDS
    measurer(Trials(), watch).measure(TRIAL)
    assert (verify.times, watch.is_verified) == (1, True)
    watch.begin()
    clock.now += VERIFY_OFTEN_SECONDS
    measurer(Trials(), watch).measure(TRIAL)
    assert (verify.times, watch.is_verified) == (1, False)


def test_before_a_trial_during_which_a_look_would_be_due_the_duts_are_looked_at():
    verify, clock = Verifier(), Clock()
    watch = watching(GOOD, verify=verify, clock=clock)
    # Nothing is to be proved yet.
    assert not watch.verify_within(VERIFY_SECONDS)
    measurer(Trials(), watch).measure(TRIAL)
    clock.now = 5.0
    assert not watch.verify_within(VERIFY_SECONDS - 6.0)
    assert watch.verify_within(VERIFY_SECONDS - 5.0)
    assert (verify.times, watch.is_verified) == (1, True)
    measurer(Trials(), watch).measure(TRIAL)
    # The next trial finds and repairs this.
    verify.error = NodeError("Node DUT1: the connection is lost.")
    assert not watch.verify_within(VERIFY_SECONDS)
    verify.error = TAMPERED
    with pytest.raises(DutError):
        watch.verify_within(VERIFY_SECONDS)


def test_a_dut_that_was_found_different_and_is_put_back_proves_no_trial_of_this_measurement():
    verify, clock = Verifier(), Clock()
    watch = watching(GOOD, verify=verify, clock=clock)
    verify.error, clock.now = TAMPERED, VERIFY_SECONDS
    with pytest.raises(DutError):
        measurer(Trials(), watch).measure(TRIAL)
    verify.error = None
    watch.save_trials()
    assert not watch.is_verified
    with pytest.raises(DutError, match="nftables table is gone"):
        watch.verify()
    watch.begin()
    watch.verify()
    assert watch.is_verified


def test_a_change_of_the_dut_that_leaves_its_configuration_alone_casts_no_doubt_on_earlier_trials():
    watch = watching(GOOD, GOOD, SEEN["DUT", "mtu"])
    one = measurer(Trials(), watch)
    assert [one.measure(TRIAL).incidents for _ in range(2)] == [(), ()]
    with pytest.raises(DutError, match="dut1 of DUT1 was 1500, and is now 300"):
        one.measure(TRIAL)
    assert not watch.is_verified
    watch.save_trials()
    assert watch.is_verified


@pytest.mark.parametrize("seen", [("TG", "mtu"), ("wire", "carrier"), ("wire", "damaged"), ("TG", "rebooted")])
def test_a_trial_that_saw_a_change_of_tg_or_wire_is_thrown_away_and_repeated(seen):
    trials = Trials()
    output = measurer(trials, watching(SEEN[seen], SEEN[seen])).measure(TRIAL)
    (incident,) = output.incidents
    assert (trials.measured, len(output.repairs), incident.done) == (2, 1, "repaired")
    assert incident.change in output.repairs[0]


@pytest.mark.parametrize(
    "seen", [("TG", "stolen"), ("TG", "pressure"), ("TG", "suspended"), ("controller", "suspended")]
)
def test_a_starved_or_suspended_trial_is_repeated_at_once_and_its_time_counts(seen):
    after = SEEN[seen]
    trials = Trials()
    output = measurer(trials, watching(after, later(after))).measure(TRIAL)
    (incident,) = output.incidents
    assert (trials.measured, output.repeats, output.elapsed) == (2, 1, 2.0)
    assert (incident.guilty, incident.done) == ("TG" if seen[0] == "TG" else "controller", "repeated")


IN_TIME = DirectionCounters("there", 1000, 1000, 1000, lateness_s=5e-4)


@pytest.mark.parametrize("seen", ["stolen", "pressure"])
@pytest.mark.parametrize("lost", [0, 100])
def test_a_host_that_is_busy_with_other_work_costs_no_trial_whose_generator_says_that_it_was_in_time(seen, lost):
    class InTime(Trials):
        def measure(self, trial):
            ratio = lost / 1000
            return replace(super().measure(trial), loss_ratio=ratio, lost_frames=lost, directions=(IN_TIME,))

    trials = InTime()
    output = measurer(trials, watching(SEEN["TG", seen])).measure(TRIAL)
    assert (trials.measured, output.repeats, output.incidents) == (1, 0, ())


@pytest.mark.parametrize(
    ("seen", "told", "way_out"),
    [
        ("stolen", "the host of TG took 20 % of a CPU from it", "Reserve CPUs for TG on its host."),
        (
            "pressure",
            "processes on TG waited for a CPU for 60 % of the time",
            "Stop other programs on TG, or give its programs more CPUs.",
        ),
    ],
)
def test_cpu_time_that_others_took_is_the_cause_of_frames_that_the_generator_left_unsent(seen, told, way_out):
    unsent = replace(GOOD_TRIAL, unsent_frames=300, directions=(replace(IN_TIME, lateness_s=0.2),))
    after = SEEN["TG", seen]
    (change,) = unanswered(changes_between(GOOD, after, WAY), TRIAL, unsent)
    incident = change.incident("stands")
    assert (change.rule.act, incident.change, incident.way_out) == ("note", told, way_out)
    # With a quota, programs wait for that, and no other work is to blame.
    counts = SEEN["TG", "quota"].nodes["TG"].counts
    changes = unanswered(changes_between(GOOD, with_node(after, "TG", counts=counts), WAY), TRIAL, unsent)
    assert [change.rule.change for change in changes] == ["quota"]


def test_a_quota_on_one_node_of_the_tg_hides_nothing_that_happened_on_the_other_one():
    unsent = replace(GOOD_TRIAL, unsent_frames=300, directions=(replace(IN_TIME, lateness_s=0.2),))
    two = replace(GOOD, nodes={**GOOD.nodes, "TG2": node(("tg2",), "boot of TG2")})
    limited = with_node(two, "TG", counts=SEEN["TG", "quota"].nodes["TG"].counts)
    after = with_node(later(limited), "TG2", stolen=0.2)
    changes = unanswered(changes_between(two, after, Way(("TG", "TG2"), ())), TRIAL, unsent)
    assert [(change.rule.change, change.node) for change in changes] == [("quota", "TG"), ("stolen", "TG2")]


def starved(times):
    """A TG from which a host takes a fifth of a CPU all the time."""
    reading = GOOD
    for number in range(1, times + 1):
        reading = with_node(later(reading), "TG", stolen=0.2 * number)
        yield reading


def test_a_tg_that_is_starved_all_the_time_is_measured_with_a_doubt_and_in_bounded_time():
    trials = Trials()
    one = measurer(trials, watching(*starved(100)))
    outputs = [one.measure(TRIAL) for _ in range(6)]
    assert [output.repeats for output in outputs] == [REPEATS, REPEATS, REPEATS, 1, 0, 0]
    assert all(output.incidents[-1].done == "stands" for output in outputs)


def test_the_controllers_clock_that_is_set_is_noted_and_costs_no_trial():
    trials = Trials()
    output = measurer(trials, watching(SEEN["controller", "clock"])).measure(TRIAL)
    (incident,) = output.incidents
    assert (trials.measured, incident.guilty, incident.done) == (1, "controller", "stands")
    assert incident.change == "the time of day of the controller was set by -3601.0 s"


def test_an_error_of_the_agent_is_explained_by_what_changed():
    watch = watching(SEEN["TG", "down"])
    error, changes = watch.explain(TrafficError("Node TG: Cannot send on tg0: Network is down."))
    assert isinstance(error, TesterError)
    assert "interface tg0 of TG was set down" in str(error)
    assert str(error).endswith("The error was: Node TG: Cannot send on tg0: Network is down.")
    assert [change.rule.change for change in changes] == ["down"]


def test_a_harmless_change_does_not_hide_a_fault_that_lasts():
    lost = SEEN["wire", "carrier"]
    stolen = with_node(later(lost), "TG", stolen=0.2)
    watch = watching(lost, stolen, stolen)
    watch.changes()
    error, changes = watch.explain(TrafficError("Frames do not go through."))
    assert isinstance(error, LinkError)
    assert [change.rule.change for change in changes] == ["carrier", "stolen"]


def test_an_error_that_names_the_guilty_side_is_not_explained_again():
    watch = watching(SEEN["wire", "carrier"])
    with pytest.raises(LinkError) as raised, watch.blaming():
        watch.check_way()
    assert str(raised.value).count("is to blame") == 1


LOST = NodeError("Node DUT1: the connection is lost.")


@pytest.mark.parametrize("readings", [(SOON,), (LOST, without_node(SOON, "DUT1")), (LOST, without_node(SOON, "TG"))])
def test_an_error_that_nothing_explains_stays_as_it_is(readings):
    error = TrafficError("Node TG: the traffic agent has ended.")
    assert watching(*readings).explain(error) == (error, ())


def test_a_dut_that_neither_answers_nor_has_a_link_any_more_has_died():
    trials = Trials(TrafficError("Node TG: Interface tg0 went down."))
    with pytest.raises(DutError, match=r"DUT1 no longer answers, and its link TG.tg0 - DUT1.dut0 is down"):
        measurer(trials, watching(LOST, SEEN["DUT", "dead"])).measure(TRIAL)


class Source:
    """Traffic besides trials, without any trouble."""

    def latency(self, load, duration):
        return LatencyOutput((), ())

    def start_traffic(self, load, watch):
        pass

    def stop_traffic(self, late_wait):
        return Answer(())


@pytest.mark.parametrize("act", [lambda source: source.latency(1.0, 1.0), lambda source: source.stop_traffic(0.0)])
def test_a_dut_that_dies_of_traffic_besides_trials_is_to_blame_for_that(act):
    with pytest.raises(DutError, match="DUT1 no longer answers"):
        act(WatchedSource(Source(), watching(LOST, SEEN["DUT", "dead"])))


RESETS = [("DUT", change) for change in ("rebooted", "dead", "gone", "down")] + [
    ("wire", change) for change in ("carrier", "flapped", "damaged")
]


def stop_after_reset(watch):
    source = WatchedSource(Source(), watch)
    source.start_traffic(1.0, watch=True)
    source.stop_traffic(0.0)


@pytest.mark.parametrize("change", RESETS)
def test_what_a_reset_does_to_dut_and_link_is_no_error_while_it_is_measured(change):
    stop_after_reset(watching(SEEN[change], SOON))


@pytest.mark.parametrize("change", [change for change in SEEN if change not in RESETS])
def test_all_other_changes_are_as_fatal_during_a_reset_as_at_any_time(change):
    changes = watching(SEEN[change]).changes()
    watch = watching(SEEN[change])
    with pytest.raises(type(error_of(changes))) if any(seen.is_fatal for seen in changes) else nullcontext():
        stop_after_reset(watch)


def test_after_the_reset_a_change_is_fatal_again():
    watch = watching(SOON, SEEN["DUT", "down"])
    stop_after_reset(watch)
    with pytest.raises(DutError, match="was set down"):
        WatchedSource(Source(), watch).stop_traffic(0.0)


@pytest.mark.parametrize(
    ("change", "is_away"), [(change, change[1] not in ("flapped", "damaged")) for change in RESETS]
)
def test_a_dut_that_is_away_since_its_reset_need_not_be_as_it_was_set_up(change, is_away):
    watch = watching(SEEN[change])
    stop_after_reset(watch)
    with nullcontext() if is_away else pytest.raises(DutError), watch.allowing_absence():
        raise TAMPERED


def test_a_tg_that_does_not_answer_after_a_reset_is_an_error():
    with pytest.raises(NodeError, match="TG no longer answers"):
        stop_after_reset(watching(without_node(SOON, "TG")))


def test_a_node_that_is_lost_for_a_moment_after_a_trial_costs_this_trial_only():
    trials = Trials()
    output = measurer(trials, watching(LOST, LOST, without_node(SOON, "DUT1"), GOOD, SOON)).measure(TRIAL)
    assert (trials.measured, output.repairs, output.incidents) == (2, (str(LOST),), ())


def test_a_dut_that_cannot_be_verified_for_a_moment_costs_one_trial_that_counts_once():
    verify, clock = Verifier(), Clock()
    watch = watching(GOOD, verify=verify, clock=clock)
    one = measurer(Trials(), watch)
    one.measure(TRIAL)
    clock.now, verify.error = VERIFY_SECONDS, NodeError("Node DUT1: the connection is lost.")

    def repair():
        verify.error = None
        return Trials()

    one = measurer(Trials(), watch, repair)
    assert len(one.measure(TRIAL).repairs) == 1
    assert watch.is_verified


def test_a_part_that_never_comes_back_ends_the_repairs_at_once_with_the_error_of_the_guilty_side():
    slow = with_port(SEEN["wire", "carrier"], "TG", "tg1", has_carrier=True, speed=1000)
    repaired = []

    def repair():
        repaired.append(True)
        return Trials()

    with pytest.raises(LinkError, match=r"had 10000 Mbit/s, and now has 1000"):
        measurer(Trials(), watching(SEEN["wire", "carrier"], slow), repair).measure(TRIAL)
    assert len(repaired) == 1


def test_repairs_that_never_help_end_with_the_error_of_the_side_that_was_to_blame_first():
    def repair():
        raise TrafficError("Frames of 512 bytes do not go through tg0.")

    with pytest.raises(
        TesterError, match=r"^The TG is to blame: the MTU of .*3 repairs did not help\. The last error:"
    ):
        measurer(Trials(), watching(SEEN["TG", "mtu"]), repair).measure(TRIAL)


class Shells:
    """A log-in whose shells answer each line with the MTU of that moment, until an error is due instead."""

    def __init__(self, name):
        self.name = name
        self.mtu = 1500
        self.errors = []

    def start(self, *command):
        return Shell(self)


class Shell:
    """One of these shells: lines that nobody reads stay, and the next one comes behind them."""

    def __init__(self, session):
        self._session = session
        self._lines = []

    def write_line(self, text):
        port = f"port dut0 {self._session.mtu} 0x1 1 2 10000 0 0 0 0 0"
        self._lines.append(f"{port};boot b;cpu;pressure;uptime 1.0;awake -")

    def read_line(self, timeout):
        if self._session.errors:
            raise self._session.errors.pop(0)
        return self._lines.pop(0)

    def close(self):
        self._lines.clear()


@pytest.mark.parametrize(
    ("silent", "errors"),
    [("TG", [LOST, LOST]), ("TG", [KeyboardInterrupt()]), ("DUT1", [LOST, LOST]), ("DUT1", [KeyboardInterrupt()])],
)
def test_after_a_reading_that_failed_no_node_answers_with_an_earlier_state(silent, errors):
    sessions = {name: Shells(name) for name in ("TG", "DUT1")}
    watch = Watch(
        FingerprintReader(sessions, {}), Way(("TG",), ((End("TG", "dut0"), End("DUT1", "dut0")),)), lambda: None
    )
    watch.begin()
    sessions[silent].errors += errors
    with pytest.raises((NodeError, KeyboardInterrupt)):
        watch.changes()
    assert watch.changes() == ()
    sessions["DUT1"].mtu = 300
    assert [str(change) for change in watch.changes()] == ["the MTU of interface dut0 of DUT1 was 1500, and is now 300"]
