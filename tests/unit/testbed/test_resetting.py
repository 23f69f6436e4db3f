"""DUTs are reset before each trial where their options ask for that."""

from __future__ import annotations

from dataclasses import dataclass, field

from lossratio.dut import DutOptions
from lossratio.testbed.repair import resetting
from lossratio.trials.trial import TrialInput, TrialOutput

TRIAL = TrialInput(1.0, 1e4)


@dataclass
class Recorder:
    """Records what is done, as a measurer and as a DUT."""

    options: DutOptions
    log: list[str] = field(default_factory=list)

    @property
    def resets(self):
        return self.options.reset

    def reset(self):
        self.log.append("reset")

    def measure(self, trial):
        self.log.append("trial")
        return TrialOutput(0.0)


def test_a_dut_that_asks_for_it_is_reset_before_each_trial():
    recorder = Recorder(DutOptions(reset=True))
    measurer = resetting(recorder, [recorder])
    for _ in range(2):
        measurer.measure(TRIAL)
    assert recorder.log == ["reset", "trial", "reset", "trial"]


def test_any_other_dut_is_left_alone():
    recorder = Recorder(DutOptions())
    assert resetting(recorder, [recorder]) is recorder
