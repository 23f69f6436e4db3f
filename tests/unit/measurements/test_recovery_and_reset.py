"""System recovery (RFC 2544, section 26.5) and reset (RFC 6201), on SUTs whose times are known."""

from __future__ import annotations

import math
import re
import sys
from time import monotonic, sleep
from types import SimpleNamespace

import pytest
import yaml
from local_testbeds import local_topology, needs_testbed, own_state
from measurement_examples import PROFILE, SIMULATED, place

from lossratio.errors import DutError, SearchError, TrafficError
from lossratio.measurements import Spread, time_in_words
from lossratio.measurements.back_to_back import BackToBackRequest, measure_back_to_back
from lossratio.measurements.recovery import RecoveryRequest, measure_recovery, recovery_time
from lossratio.measurements.reset import ResetRequest, ResettingMeasurer, command_reset, measure_reset
from lossratio.measurements.reset_times import reset_time
from lossratio.measurements.rfc2544.chapters import CHAPTERS
from lossratio.report import read_run, render
from lossratio.results import NoteKind, Outcome, doubts_of, findings_of, message, read_result
from lossratio.results.contradictions import contradictions_of
from lossratio.testbed import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import DirectionCounters, Outage, Silence, StepCounters, Timeline, TrialInput

CAPACITY = 150e3


@pytest.fixture
def testbed_of(tmp_path_factory):
    """Opens a simulated testbed with another model of the SUT."""

    def testbed_of(**sut):
        topology = yaml.safe_load(SIMULATED.read_text())
        topology["nodes"]["DUT1"]["sut"] = sut
        file = tmp_path_factory.mktemp("topology") / "simulated.yaml"
        file.write_text(yaml.safe_dump(topology))
        return open_testbed(file)

    return testbed_of


def slow(recovery=0.25, **more):
    return {"model": "device", "capacity": CAPACITY, "recovery": recovery, **more}


RECOVERY = RecoveryRequest(profile=PROFILE, throughput=CAPACITY / 2, max_load=100e3, repeats=3, duration=1.0, limit=2.0)
"""Both directions together have the capacity."""


def test_the_recovery_time_is_that_of_the_model(testbed_of, tmp_path):
    result = measure_recovery(testbed_of(**slow()), RECOVERY, place(tmp_path))
    assert result.outcome is Outcome.MEASURED
    frame = 1.0 / (result.after.per_interface_fps)
    for time in result.recovery.times:
        assert time.recovery_s == pytest.approx(0.25, abs=3 * frame)
        assert time.overload_lost_frames > 0
    assert result.recovery.average_s == pytest.approx(0.25, abs=3 * frame)
    assert result.overload.per_interface_fps == pytest.approx(1.1 * CAPACITY / 2)
    assert result.after.per_interface_fps == pytest.approx(0.55 * CAPACITY / 2)


def test_a_recovery_is_kept_and_shown(testbed_of, tmp_path):
    where = place(tmp_path)
    result = measure_recovery(testbed_of(**slow()), RECOVERY, where)
    assert read_result(where.directory.result_path(where.test.full_name)) == result
    (finding,) = findings_of([result])
    assert (finding.unit.name, finding.unit.lower_is_better) == ("s", True)
    assert finding.value == result.recovery.average_s
    text = message(result)
    assert "system recovery (RFC 2544, section 26.5), 3 repetitions" in text
    assert "overload for 1 s" in text
    assert "system recovery" in render("html", [read_run(tmp_path)])


def test_averages_that_do_not_follow_from_the_repetitions_are_refused(testbed_of, tmp_path):
    recovery = measure_recovery(testbed_of(**slow()), RECOVERY, place(tmp_path, "recovery"))
    reset = measure_reset(testbed_of(**restarting()), RESET, place(tmp_path, "reset"))
    for result, values in ((recovery, {"recovery": recovery.recovery}), (reset, {"reset": reset.reset})):
        assert list(contradictions_of(result)) == []
        ((name, said),) = values.items()
        for change in ({"average_s": 0.1}, {"times": said.times[:2]}):
            changed = result.model_copy(update={name: said.model_copy(update=change)})
            assert list(contradictions_of(changed)) != []


def test_a_sut_without_memory_recovers_at_once(testbed_of, tmp_path):
    testbed = testbed_of(model="sharp_knee", capacity=CAPACITY)
    result = measure_recovery(testbed, RECOVERY, place(tmp_path))
    assert (result.outcome, result.recovery.average_s, result.recovery.stdev_s) == (Outcome.MEASURED, 0.0, 0.0)


def test_the_overload_is_the_maximum_load_at_most(testbed_of, tmp_path):
    result = measure_recovery(testbed_of(**slow()), RECOVERY.but(max_load=76e3), place(tmp_path))
    assert result.overload.per_interface_fps == 76e3
    assert result.after.per_interface_fps == 38e3


@pytest.mark.parametrize(
    ("change", "sut", "reason"),
    [
        ({"max_load": CAPACITY / 2}, slow(), "not overloaded: the throughput is the maximum load"),
        ({"throughput": CAPACITY / 4}, slow(), "Check the given throughput"),
        ({}, slow(recovery=60.0), "did not recover within the limit: .* 2 s after"),
    ],
)
def test_what_is_no_recovery_time_is_no_number(testbed_of, tmp_path, change, sut, reason):
    result = measure_recovery(testbed_of(**sut), RECOVERY.but(**change), place(tmp_path))
    assert result.outcome is Outcome.IRREGULAR
    (finding,) = findings_of([result])
    assert finding.value in (None, 0.0)
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(finding.reason)
    assert finding.reason in message(result)
    assert message(result).startswith("System recovery: the time until no more frames are missing is not known.")


def test_an_overload_that_the_generator_did_not_send_is_no_low_throughput(testbed_of, tmp_path):
    testbed = testbed_of(**slow())
    testbed.generator = testbed.generator.model_copy(update={"max_rate": 70e3})
    reason = measure_recovery(testbed, RECOVERY, place(tmp_path)).reason
    assert re.fullmatch(r"not overloaded: .* The generator left up to [\d.]+ % of its frames unsent", reason)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"throughput": None}, "The throughput of this traffic is not known"),
        ({"repeats": 0}, "repeats must be at least 1, not 0"),
        ({"overload": 1.0}, "overload must be above 1, not 1"),
        ({"limit": 0.0}, "limit must be above 0 s"),
        ({"duration": 0.0}, "duration must be above 0 s"),
    ],
)
def test_a_recovery_that_makes_no_sense_is_refused(testbed_of, tmp_path, change, problem):
    with pytest.raises(SearchError, match=problem):
        measure_recovery(testbed_of(**slow()), RECOVERY.but(**change), place(tmp_path))


def test_the_direction_that_takes_longest_counts():
    def direction(name, last_lost):
        steps = StepCounters(0.0, 1.0, 10, 10, 1, 0.5), StepCounters(1.0, 2.0, 10, 10, 1, last_lost)
        return Timeline(name, 0.0, 0.0, 0.0, 10.0, steps)

    assert recovery_time([direction("one", 1.2), direction("two", 1.7)]).direction == "two"
    assert recovery_time([direction("one", 2.9), direction("two", 1.7)]).recovery_s is None


RESET = ResetRequest(profile=PROFILE, throughput=50e3, repeats=3, lead=1.0, limit=2.0)


def restarting(downtime=0.5):
    return {"model": "device", "capacity": CAPACITY, "downtime": downtime}


def test_the_reset_time_is_that_of_the_model_by_both_methods(testbed_of, tmp_path):
    result = measure_reset(testbed_of(**restarting()), RESET, place(tmp_path))
    assert result.outcome is Outcome.MEASURED
    frame = 1.0 / 50e3
    for time in result.reset.times:
        assert time.time_stamp_s == pytest.approx(0.5, abs=2 * frame)
        assert time.loss_method_s == pytest.approx(0.5, abs=2 * frame)
        assert (time.outages, time.lost_beside_frames) == (1, 0)
    assert result.reset.average_s == pytest.approx(0.5, abs=2 * frame)


def test_a_reset_is_kept_and_shown(testbed_of, tmp_path):
    where = place(tmp_path)
    result = measure_reset(testbed_of(**restarting()), RESET, where)
    assert read_result(where.directory.result_path(where.test.full_name)) == result
    (finding,) = findings_of([result])
    assert (finding.unit.lower_is_better, finding.value) == (True, result.reset.average_s)
    text = message(result)
    assert "reset (RFC 6201): software reset of the devices, 3 trials" in text
    assert "by time stamps" in text
    assert "  resolution              0.02 ms, the time between two frames\n" in text
    assert re.search(r"ms by time stamps; 25,00\d frames lost, as many as are sent in \d+(\.\d+)? ms\n", text)
    assert "by frame loss" in text


def test_loss_outside_of_the_outage_does_not_count_and_is_a_doubt(testbed_of, tmp_path):
    overloaded = RESET.but(throughput=80e3, max_load=80e3, limit=0.4)
    result = measure_reset(testbed_of(**restarting(downtime=0.3)), overloaded, place(tmp_path))
    frame = 1.0 / 80e3
    for time in result.reset.times:
        # A share of 1/16 of the frames is lost at any time.
        assert time.lost_beside_frames > 1000
        assert time.loss_method_s == pytest.approx(time.time_stamp_s, abs=2 * frame)
    ((doubt,),) = doubts_of([result])
    assert doubt.kind is NoteKind.LOSS_BESIDE_RESET


def test_a_reset_without_further_loss_has_no_doubt(testbed_of, tmp_path):
    assert doubts_of([measure_reset(testbed_of(**restarting()), RESET, place(tmp_path))]) == [()]


def test_a_device_that_does_not_come_back_is_no_number_and_is_reset_once(testbed_of, tmp_path):
    result = measure_reset(testbed_of(**restarting(downtime=60.0)), RESET, place(tmp_path))
    assert (result.outcome, len(result.trials)) == (Outcome.IRREGULAR, 1)
    (finding,) = findings_of([result])
    assert (finding.value, finding.lower_bound) == (None, 2.0)
    assert message(result).startswith("Reset (")
    assert "the device does not forward again within 2 s." in message(result).splitlines()[0]
    assert "did not come back within the limit of 2 s" in message(result)


def test_a_reset_that_does_nothing_is_an_error_unless_it_may_be_hitless(testbed_of, tmp_path):
    idle = RESET.but(reset=lambda: None, reset_name="a hook")
    testbed = testbed_of(**restarting())
    with pytest.raises(TrafficError, match=r"No frame was lost after the reset \(a hook\): it had no effect"):
        measure_reset(testbed, idle, place(tmp_path, "idle"))
    result = measure_reset(testbed, idle.but(hitless=True), place(tmp_path, "hitless"))
    assert (result.outcome, result.reset.average_s) == (Outcome.MEASURED, 0.0)
    assert "no loss" in message(result)


def test_a_model_without_an_outage_is_known_to_forward_through_its_reset(tmp_path):
    result = measure_reset(open_testbed(SIMULATED), RESET, place(tmp_path))
    assert (result.outcome, result.reset.average_s) == (Outcome.MEASURED, 0.0)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (f"{sys.executable} -c 'raise SystemExit(\"no such box\")'", "exit status 1: .*: no such box"),
        ("sleep 60", "longer than 0.1 s: sleep 60"),
    ],
)
def test_a_reset_command_that_fails_is_one_error(testbed_of, tmp_path, command, problem):
    timeout = 0.1 if problem.startswith("longer") else 120.0
    request = RESET.but(reset=command_reset(command, timeout=timeout))
    with pytest.raises(DutError, match=problem):
        measure_reset(testbed_of(**restarting()), request, place(tmp_path))


def test_a_reset_command_may_print_what_is_no_text():
    command_reset(f"{sys.executable} -c 'import os; os.write(1, bytes([0xFC]))'")()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"throughput": None}, "The throughput of this traffic is not known"),
        ({"repeats": 0}, "repeats must be at least 1, not 0"),
        ({"lead": 0.0}, "lead must be above 0 s"),
        ({"limit": -1.0}, "limit must be above 0 s"),
    ],
)
def test_a_reset_that_makes_no_sense_is_refused(testbed_of, tmp_path, change, problem):
    with pytest.raises(SearchError, match=problem):
        measure_reset(testbed_of(**restarting()), RESET.but(**change), place(tmp_path))


def test_resets_that_were_interrupted_are_not_repeated(testbed_of, tmp_path):
    testbed = testbed_of(**restarting())

    def stop(progress):
        if progress.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_reset(testbed, RESET, place(tmp_path), stop)
    measured = []
    result = measure_reset(testbed, RESET, place(tmp_path, resume=tmp_path), measured.append)
    assert (len(measured), len(result.trials)) == (1, 3)
    assert result.reset.average_s == pytest.approx(0.5, abs=1e-4)


def test_a_device_that_keeps_all_frames_in_a_reset_is_an_error_with_the_silence():
    steps = (StepCounters(0.0, 3.0, 300, 300, 0),)
    quiet = Timeline("a>b", 0.0, 0.0, 0.0, 100.0, steps, silences=(Silence(1.0, 1.25),))
    source = SimpleNamespace(
        now=lambda: 1.0,
        wait=lambda seconds: None,
        start_traffic=lambda load, watch: None,
        stop_traffic=lambda wait: SimpleNamespace(timelines=(quiet,), directions=()),
    )
    measurer = ResettingMeasurer(source, lambda: None, RESET)
    with pytest.raises(TrafficError, match=r"kept forwarding, or buffered frames during a gap of 250 ms\. Check"):
        measurer.measure(TrialInput(3.0, 100.0))


def test_a_direction_that_ended_first_left_no_frame_unsent():
    outage = Outage(20, 1.1, 1.29, 1.09, 1.3)
    flowed = {"a>b": 3.0, "b>a": 3.04}
    lines = tuple(
        Timeline(name, 1.0, 0.0, 0.0, 100.0, (StepCounters(0.0, end, 300, 300, 20),), (outage,), 1)
        for name, end in flowed.items()
    )
    ways = tuple(DirectionCounters(name, round(100 * end), round(100 * end), 280) for name, end in flowed.items())
    source = SimpleNamespace(
        now=lambda: 2.0,
        wait=lambda seconds: None,
        start_traffic=lambda load, watch: None,
        stop_traffic=lambda wait: SimpleNamespace(timelines=lines, directions=ways, late=0),
    )
    output = ResettingMeasurer(source, lambda: None, RESET).measure(TrialInput(3.0, 100.0))
    assert (output.unsent_frames, output.lost_frames) == (0, 44)


def test_of_several_outages_the_longest_one_counts_by_both_methods():
    steps = StepCounters(0.0, 1.0, 100, 100, 3), StepCounters(1.0, 2.0, 200, 200, 30)
    outages = Outage(3, 0.5, 0.52, 0.49, 0.53), Outage(20, 1.1, 1.29, 1.09, 1.3), Outage(10, 1.5, 1.59, 1.49, 1.6)
    reset = reset_time([Timeline("a>b", 0.0, 0.0, 0.0, 100.0, steps, outages, 3)])
    assert (reset.lost_frames, reset.lost_beside_frames, reset.outages) == (20, 13, 2)
    assert reset.time_stamp_s == pytest.approx(0.21)
    assert reset.whole_s == pytest.approx(0.51)
    assert reset.loss_method_s == pytest.approx(0.2)


def test_loss_of_the_very_last_frames_does_not_mean_that_the_device_is_gone():
    steps = StepCounters(0.0, 1.0, 100, 100, 0), StepCounters(1.0, 2.0, 200, 200, 25)
    outage, at_the_end = Outage(20, 1.1, 1.29, 1.09, 1.3), Outage(1, 2.99, 2.99, 2.98, None)
    reset = reset_time([Timeline("a>b", 0.0, 0.0, 0.0, 100.0, steps, (outage, at_the_end), 2)])
    assert (reset.outages, reset.time_stamp_s) == (2, pytest.approx(0.21))
    longer = Outage(5, 2.95, 2.99, 2.94, None)
    assert reset_time([Timeline("a>b", 0.0, 0.0, 0.0, 100.0, steps, (outage, longer), 2)]).time_stamp_s is None
    assert reset_time([Timeline("a>b", 0.0, 0.0, 0.0, 100.0, steps, (at_the_end,), 1)]).time_stamp_s is None


def test_where_frames_wait_in_the_device_the_reset_time_is_the_silence():
    steps = StepCounters(0.0, 1.0, 100, 100, 0), StepCounters(1.0, 2.0, 200, 200, 45)
    # The device keeps 5 frames, stands still from 1.0 to 1.5 s, and sends these right before the next one.
    outage = Outage(45, 1.05, 1.49, 1.501, 1.502)
    other = Silence(1.6, 2.6)
    silences = Silence(0.999, 1.5), other
    reset = reset_time([Timeline("a>b", 0.0, 0.0, 0.0, 100.0, steps, (outage,), 1, silences)])
    assert reset.time_stamp_s == pytest.approx(0.501)
    assert reset.whole_s == pytest.approx(0.501)
    assert reset.loss_method_s == pytest.approx(0.45)


def test_a_silence_without_lost_frames_is_no_reset():
    steps = StepCounters(0.0, 1.0, 100, 100, 0), StepCounters(1.0, 2.0, 200, 200, 0)
    reset = reset_time([Timeline("a>b", 0.0, 0.0, 0.0, 100.0, steps, (), 0, (Silence(1.0, 1.2),))])
    assert (reset.outages, reset.time_stamp_s, reset.whole_s) == (0, 0.0, 0.0)


POLICED, BUCKET, BURSTS = 10_000, 50, 40_000.0
"""Frames per second of a policer, frames in its bucket, and the rate of bursts."""

PACING = 0.3e-3
"""Seconds by which a busy machine moves a burst's frames at least once in some searches."""

ONE_WAY = load_profile("ethip4-udp", frame_size=64, bidirectional=False)


@pytest.fixture(scope="class")
def bridge(tmp_path_factory):
    with own_state():
        file = local_topology(tmp_path_factory.mktemp("topology"), "rfc2544")
        with open_testbed(file, dut="linux_bridge", options={"police": POLICED, "burst": BUCKET}) as testbed:
            yield testbed


@needs_testbed
@pytest.mark.netns
class TestWithRealFrames:
    def test_bursts_are_those_of_the_policers_arithmetic(self, bridge, tmp_path):
        request = BackToBackRequest(
            profile=ONE_WAY, throughput=POLICED, max_load=BURSTS, repeats=4, longest_burst=0.005, settle=0.05
        )
        result = measure_back_to_back(bridge, request, place(tmp_path))
        truth = math.floor((BUCKET - POLICED / BURSTS) / (1 - POLICED / BURSTS))
        error = math.ceil((1 + POLICED * PACING) / (1 - POLICED / BURSTS))
        assert result.back_to_back.most_frames == pytest.approx(truth, abs=error)
        assert 0 < result.kept_rate.per_interface_fps < 1.05 * BURSTS

    def test_a_policer_recovers_at_once(self, bridge, tmp_path):
        request = RecoveryRequest(
            profile=ONE_WAY, throughput=POLICED, max_load=2.0 * POLICED, repeats=3, duration=0.2, limit=0.3
        )
        result = measure_recovery(bridge, request, place(tmp_path))
        assert min(time.recovery_s for time in result.recovery.times) <= 1 / POLICED + result.resolution_s
        assert all(time.overload_lost_frames > 0 for time in result.recovery.times)

    def test_a_reset_takes_as_long_as_the_bridge_is_down_at_least(self, bridge, tmp_path):
        (dut,) = bridge.duts
        down = []

        def reset():
            dut.node.run("ip", "link", "set", "dev", dut.stem, "down")
            began = monotonic()
            sleep(0.1)
            down.append(monotonic() - began)
            dut.node.run("ip", "link", "set", "dev", dut.stem, "up")

        request = ResetRequest(
            profile=ONE_WAY, throughput=2000.0, reset=reset, reset_name="bridge down", repeats=2, lead=0.2, limit=0.3
        )
        result = measure_reset(bridge, request, place(tmp_path))
        assert len(down) == len(result.reset.times) == 2
        for measured, least in zip(result.reset.times, down, strict=True):
            assert measured.time_stamp_s >= least
            assert measured.loss_method_s >= least - 2 / 2000.0

    def test_a_reset_that_takes_the_link_down_is_an_outage_and_not_the_wires_fault(self, bridge, tmp_path):
        (dut,) = bridge.duts
        down = []
        # The kernel looks at links once a second at most, and a bridge uses a port that it has seen to be up.
        forwards = "until ip -o link show dev dut1 | grep -q 'state UP'; do sleep 0.01; done"

        def reset():
            began = monotonic()
            dut.node.run("sh", "-c", f"ip link set dev dut1 down; sleep 0.1; ip link set dev dut1 up; {forwards}")
            down.append(monotonic() - began)

        request = ResetRequest(
            profile=ONE_WAY, throughput=2000.0, reset=reset, reset_name="line card", repeats=2, lead=0.2, limit=0.5
        )
        result = measure_reset(bridge, request, place(tmp_path))
        assert len(down) == len(result.reset.times) == 2
        for measured, most, trial in zip(result.reset.times, down, result.trials, strict=True):
            # While its sender stalls, frames are not where their times say.
            stall = trial.lateness_s
            assert 0.1 <= measured.time_stamp_s <= most + 3 / 2000.0 + stall
            assert measured.loss_method_s == pytest.approx(measured.time_stamp_s, abs=3 / 2000.0 + stall)

    def test_a_link_that_a_reset_leaves_down_is_a_device_that_does_not_come_back(self, bridge, tmp_path):
        (dut,) = bridge.duts

        def reset():
            dut.node.run("ip", "link", "set", "dev", "dut0", "down")

        request = ResetRequest(
            profile=ONE_WAY, throughput=2000.0, reset=reset, reset_name="line card", repeats=2, lead=0.2, limit=0.3
        )
        try:
            result = measure_reset(bridge, request, place(tmp_path))
        finally:
            dut.node.run("ip", "link", "set", "dev", "dut0", "up")
        assert (result.outcome, len(result.trials)) == (Outcome.IRREGULAR, 1)
        assert "did not come back within the limit of 0.3 s" in message(result)
        assert "a reboot takes away what lossratio set up on DUT1 (linux_bridge)" in message(result).replace("\n ", "")

    def test_the_restart_of_a_bridge_is_an_outage(self, bridge, tmp_path):
        result = measure_reset(
            bridge, ResetRequest(profile=ONE_WAY, throughput=5000.0, repeats=1, lead=0.2, limit=0.3), place(tmp_path)
        )
        assert result.settings.reset_name == "software reset of the devices"
        assert result.reset.average_lost_frames > 0
        assert 0.0 < result.reset.average_s < 0.3


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.000008721, "below 0.19 ms"), (0.0, "below 0.19 ms"), (0.00019, "0.19 ms"), (2.0, "2000 ms")],
)
def test_no_time_is_finer_than_frames_can_show(seconds, words):
    assert time_in_words(seconds, 0.00019) == words


class Twice(Spread):
    """Two repetitions of something."""

    times: tuple[None, ...] = (None, None)


def test_a_spread_says_where_frames_cannot_show_its_ends():
    spread = Twice(**Spread.of([0.0001, 0.0003]))
    assert spread.in_words(0.0002) == "below 0.2 ms, 0.3 ms, 0.14142 ms"
    assert next(iter(spread.lines("average", finest=0.00025))).endswith("below 0.25 ms")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("reboot 'box", "No closing"),
        ("/nowhere/reset box", "cannot be run: /nowhere/reset box: there is no program '/nowhere/reset'"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_before_any_traffic(command, said):
    with pytest.raises(SearchError, match=said):
        command_reset(command)


def test_a_single_repetition_shows_no_standard_deviation(testbed_of, tmp_path):
    recovered = measure_recovery(testbed_of(**slow()), RECOVERY.but(repeats=1), place(tmp_path / "recovery"))
    reset = measure_reset(testbed_of(**restarting()), RESET.but(repeats=1), place(tmp_path / "reset"))
    for result in (recovered, reset):
        (finding,) = findings_of([result])
        assert finding.value is not None
        assert finding.deviation is None
        assert "stddev" not in message(result)


@pytest.mark.parametrize("repeats", [1, 2])
def test_a_report_of_rfc_2544_has_the_spread_of_reset_times(testbed_of, tmp_path, repeats):
    result = measure_reset(testbed_of(**restarting()), RESET.but(repeats=repeats), place(tmp_path))
    chapter = next(chapter for chapter in CHAPTERS if chapter.title.startswith("Reset"))
    assert chapter.cells["min, max, stddev"](result) == result.reset.in_words()
