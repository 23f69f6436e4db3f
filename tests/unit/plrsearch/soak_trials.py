"""Trials for the tests of searches for the critical load."""

from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput


def trial(load, lost, *, sent=None, unsent=0, duration=5.0):
    """One trial's result; all frames sent unless said otherwise."""
    sent = round(load * duration) if sent is None else sent
    output = TrialOutput(lost / sent, sent_frames=sent, lost_frames=lost, unsent_frames=unsent)
    return TrialResult(TrialInput(duration, load), output)
