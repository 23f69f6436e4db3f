"""What a soak test says of a device that loses real frames as software does: in batches."""

from __future__ import annotations

import subprocess
import sys

import batching_device
import numpy as np
import pytest
from traffic_lab import configure
from whole_trials import run_trial

from lossratio.plrsearch import load_by_counts
from lossratio.trials import TrialInput, TrialOutput, TrialResult

pytestmark = [pytest.mark.netns, pytest.mark.quiet]

ATTEMPTS = 5


def lossy_trials(agent, lab, loads, duration, *device):
    """Trials through the device, one after the other, as a search gets them: those that lack frames do not count."""
    configure(agent, bidirectional=False)
    lab.run("dut1", "ip", "link", "set", "dev", "dut0", "nomaster")
    script = (sys.executable, batching_device.__file__, "dut0", "dut1", *map(str, device))
    running = lab.popen("dut1", *script, stdout=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "ready\n"
    for load in loads:
        for _ in range(ATTEMPTS):
            (way,) = run_trial(agent, load, duration)
            if way.sent_frames == round(load * duration):
                break
        lost = way.sent_frames - way.received_frames
        output = TrialOutput(lost / way.sent_frames, sent_frames=way.sent_frames, lost_frames=lost)
        yield TrialResult(TrialInput(duration, load), output)


@pytest.mark.parametrize("batch", [16, 32])
def test_batches_of_real_frames_show_in_the_scatter_of_counts(agent, bridged, batch):
    loads = np.repeat([6400.0, 8000.0], 10)
    trials = list(lossy_trials(agent, bridged, loads, 0.2, batch, 0.3, 1e9, 0.0, 1000))
    found = load_by_counts(trials, target_loss_ratio=1e-3, min_load=100.0, max_load=20e3)
    # The variance of a number of batches is .7 of its mean, if three tenths of them are lost; 18 degrees of freedom.
    assert 0.15 * batch < found.clump < 1.6 * batch
    assert (found.verified, found.contradicted) == (None, 6400.0)
