"""What a soak test says of a device that loses real frames as software does: in batches."""

from __future__ import annotations

import subprocess
import sys

import batching_device
import numpy as np
import pytest
from traffic_lab import configure
from whole_trials import run_trial

from lossratio.plrsearch import estimate
from lossratio.trials import TrialInput, TrialOutput, TrialResult

pytestmark = [pytest.mark.netns, pytest.mark.quiet]

ATTEMPTS = 5


def lossy_trials(agent, lab, loads, duration, *device):
    """Trials through the device, one after the other, as PLRsearch gets them: those that lack frames do not count."""
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
def test_the_size_of_batches_of_real_frames_is_said(agent, bridged, batch):
    loads = np.repeat([6400.0, 8000.0], 10)
    trials = list(lossy_trials(agent, bridged, loads, 0.2, batch, 0.3, 1e9, 0.0, 1000))
    found = estimate(trials, target_loss_ratio=1e-3, min_load=100.0, max_load=20e3)
    assert found.description.batch == pytest.approx(batch, rel=0.1)
    assert any(f"Frames are lost in batches of {batch} or of a multiple" in sentence for sentence in found.sentences)
