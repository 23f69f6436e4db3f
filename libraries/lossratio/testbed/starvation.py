"""The time in which a DUT's program could have forwarded frames but had no CPU."""

import math

from lossratio.testbed.fingerprint import NodePrint
from lossratio.trials import TrialInput, TrialOutput

SHORT_WAIT = 1e-4
"""Seconds that a thread of a DUT's program usually waits at most, on average, until it gets a CPU that it shares."""
LEAST_WAIT = 0.01
"""If such a thread waits for at least this many seconds beyond its usual waits, the trial is doubtful."""


def longest_wait(then: NodePrint, now: NodePrint) -> tuple[float, str]:
    """Seconds for which a thread of the DUT's programs had no CPU, and its name, for the thread that waited longest.

    A thread that sleeps often waits a little each time, even on a CPU of its own. Such waits are left out.
    """
    waits = [(0.0, "")]
    for number, thread in now.threads.items():
        before = then.threads.get(number, thread)
        waited = thread.waited - before.waited
        usual = SHORT_WAIT * (thread.runs - before.runs)
        if waited >= LEAST_WAIT + usual:
            waits.append((waited, thread.name))
    return max(waits)


def frames_meanwhile(seconds: float, trial: TrialInput, output: TrialOutput) -> int:
    """How many frames of a trial came in these seconds. A wait costs no more frames than came meanwhile."""
    rates = (each.sent_frames / (each.elapsed_s or trial.duration) for each in output.directions)
    return math.ceil(sum(rates) * seconds)
