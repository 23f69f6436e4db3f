"""Brings DUTs back to how they were after their set-up before each trial, where a suite asks for that."""

from __future__ import annotations

from collections.abc import Sequence

from lossratio.dut import Dut, DutOptions
from lossratio.trials import Measurer, TrialInput, TrialOutput


class ResettingMeasurer:
    """Performs trials with another measurer, and resets DUTs before each of them; a `lossratio.trials.trial.Measurer`.

    Args:
        measurer: Performs the trials.
        duts: The DUTs to reset.
    """

    def __init__(self, measurer: Measurer, duts: Sequence[Dut[DutOptions]]) -> None:
        self._measurer = measurer
        self._duts = duts

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Resets the DUTs, and performs one trial.

        Raises:
            LossRatioError: If a DUT cannot be reset, or the trial could not be performed.
        """
        for dut in self._duts:
            dut.reset()
        return self._measurer.measure(trial)


def resetting(measurer: Measurer, duts: Sequence[Dut[DutOptions]]) -> Measurer:
    """The measurer, with those DUTs reset before each trial whose options ask for that."""
    asked = [dut for dut in duts if dut.options.reset]
    return ResettingMeasurer(measurer, asked) if asked else measurer
