"""Which faults are repaired, how often, and what is never measured again."""

from __future__ import annotations

import pytest

from lossratio.errors import DutError, LinkError, NodeError, ReservationError, TesterError, TrafficError
from lossratio.testbed.repair import RepairingMeasurer
from lossratio.testbed.testbed import Recovery
from lossratio.traffic import AgentRefusalError
from lossratio.trials.counters import CountersError, NegativeLossError
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput

TRIAL = TrialInput(1.0, 1000.0)
GOOD = TrialOutput(0.0)
BAD = TrialOutput(0.99)
LOST = TrafficError("Node TG: the connection was lost.")


class Script:
    """Answers with one thing after the other, and raises those that are errors."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def measure(self, trial):
        return self._next()

    def __call__(self):
        return self._next()

    def _next(self):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Unchanging:
    """A watch that sees nothing."""

    def __init__(self, verify=lambda: None):
        self._verify = verify

    def changes(self):
        return ()

    def queues(self, output):
        return ()

    def explain(self, error):
        return error, ()

    def go_on(self):
        return ()

    def trust(self, *, is_doubtful):
        if is_doubtful:
            self._verify()


def measurer(first, *repairs, check=lambda: None, watch=None, most=10):
    recovery = Recovery(pauses=(0.0, 0.0, 0.0), most=most)
    watch = watch or Unchanging()
    return RepairingMeasurer(first, repair=Script(*repairs), check=check, watch=watch, recovery=recovery)


@pytest.mark.parametrize(
    "fault",
    [
        LOST,
        NodeError("Node TG: no channel."),
        AgentRefusalError("Interface tg0 went down.", "interface_down"),
        AgentRefusalError("Interface tg0 was taken away.", "interface_replaced"),
        AgentRefusalError("The MTU of interface tg0 was 1500, and is 300.", "mtu_changed"),
        AgentRefusalError("The process that sends on tg0 died.", "sender_died"),
        AgentRefusalError("The counters of interface tg0 were set back.", "counters_reset"),
        AgentRefusalError("The TRex server does not answer.", "server_lost"),
    ],
)
def test_a_fault_of_the_infrastructure_is_repaired_and_reported(fault):
    output = measurer(Script(fault), Script(GOOD)).measure(TRIAL)
    assert (output.loss_ratio, output.repairs) == (0.0, (str(fault),))


@pytest.mark.parametrize(
    "error",
    [
        NegativeLossError("more frames were received than sent"),
        CountersError("A count is negative"),
        AgentRefusalError("Frames of 9000 bytes do not go through.", "unsupported"),
        DutError("DUT1 has died."),
    ],
)
def test_errors_that_are_no_fault_of_the_infrastructure_are_not_repaired(error):
    with pytest.raises(type(error)) as raised:
        measurer(Script(error)).measure(TRIAL)
    assert raised.value is error


def test_a_bad_result_is_a_result():
    assert measurer(Script(BAD, GOOD)).measure(TRIAL) == BAD


def test_repairs_that_fail_are_reported_and_end_with_the_last_error():
    gone = NodeError("Node TG: connection refused.")
    with pytest.raises(TrafficError, match=r"connection refused\. 3 repairs did not help") as raised:
        measurer(Script(LOST), gone, gone, gone).measure(TRIAL)
    assert raised.value.__cause__ is gone


@pytest.mark.parametrize("kind", [TesterError, LinkError])
def test_a_guilty_side_that_only_the_repairs_find_is_that_of_the_error(kind):
    repaired = kind("Somebody is to blame.")
    with pytest.raises(kind, match=r"^Somebody is to blame\. 3 repairs did not help\.$"):
        measurer(Script(LOST), repaired, repaired, repaired).measure(TRIAL)


def test_every_trial_has_all_attempts_but_a_measurement_has_only_so_many():
    one = measurer(Script(LOST), Script(GOOD, LOST), Script(GOOD, LOST), Script(GOOD), most=2)
    assert [len(one.measure(TRIAL).repairs) for _ in range(2)] == [1, 1]
    with pytest.raises(TrafficError, match=r"^Node TG: the connection was lost\.$"):
        one.measure(TRIAL)


def test_a_dut_that_is_found_dead_during_a_repair_is_reported_as_dead():
    dead = DutError("DUT1: testpmd has died. Its last output: segmentation fault")
    with pytest.raises(DutError, match="segmentation fault"):
        measurer(Script(LOST), dead, dead, dead).measure(TRIAL)


def test_no_trial_begins_on_a_testbed_that_is_not_ours_any_more():
    performed = Script(GOOD, GOOD)
    one = measurer(performed, check=Script(None, None, ReservationError("the reservation was lost")))
    one.measure(TRIAL)
    with pytest.raises(ReservationError):
        one.measure(TRIAL)
    assert performed.answers == [GOOD]


def test_a_trial_during_which_the_testbed_was_lost_is_not_believed():
    one = measurer(Script(GOOD), check=Script(None, ReservationError("the reservation was lost")))
    with pytest.raises(ReservationError):
        one.measure(TRIAL)


def test_a_reservation_that_is_lost_is_not_repaired():
    with pytest.raises(ReservationError):
        measurer(Script(LOST), ReservationError("its holder is now bob@desk")).measure(TRIAL)


@pytest.mark.parametrize(("received", "is_doubted"), [(0, True), (1, False)])
def test_losing_everything_in_a_direction_is_believed_of_a_dut_that_is_alive_only(received, is_doubted):
    directions = (
        DirectionCounters("west>east", intended_frames=10, sent_frames=10, received_frames=received),
        DirectionCounters("east>west", intended_frames=10, sent_frames=10, received_frames=10),
    )
    output = TrialOutput(0.5, directions=directions)
    assert measurer(Script(output)).measure(TRIAL) == output
    dead = Script(DutError("DUT1 has died."))
    one = measurer(Script(output), watch=Unchanging(verify=dead))
    if is_doubted:
        with pytest.raises(DutError):
            one.measure(TRIAL)
    else:
        assert one.measure(TRIAL) == output
