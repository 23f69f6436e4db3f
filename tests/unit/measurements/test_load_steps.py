"""A generator that sends only whole loads: every measurement asks for loads that it can send, and states these."""

from __future__ import annotations

import pytest
from every_kind import REFUSED, ask, methods
from measurement_examples import ROOT

from lossratio import open_testbed
from lossratio.errors import SearchError
from lossratio.topology import SimulatedGenerator
from lossratio.traffic import load_profile
from lossratio.trials import Step, TrialInput

STEP = 100.0


@pytest.fixture
def testbed(tmp_path, monkeypatch):
    monkeypatch.setattr(SimulatedGenerator, "load_step", STEP)
    with open_testbed(ROOT / "topologies" / "simulated.yaml", results=tmp_path) as opened:
        yield opened


def loads_of(result):
    return {trial.load_per_interface_fps for trial in result.trials}


@pytest.mark.parametrize("method", [method for method in methods() if method.id not in REFUSED])
def test_every_trial_has_a_load_that_can_be_sent(testbed, method):
    result = ask(testbed, method)
    loads = loads_of(result)
    assert loads
    assert not {load for load in loads if load % STEP}
    # The largest load at which latency is measured is stated as it was given.
    assert result.kind == "latency" or result.max_load.rate.per_interface_fps % STEP == 0


@pytest.mark.whole
def test_a_maximum_load_that_cannot_be_sent_is_lowered(testbed):
    result = testbed.ndr_pdr("64B", min_load="50 kfps", max_load="333333 fps")
    assert not {load for load in loads_of(result) if load % STEP}
    assert result.max_load.rate.per_interface_fps == 333_300


@pytest.mark.whole
def test_a_search_proves_sendable_bounds_within_the_width(testbed):
    result = testbed.ndr_pdr("64B", min_load="50 kfps").goals[0].result
    lower, upper = (getattr(result, f"relevant_{end}_bound").per_interface_fps for end in ("lower", "upper"))
    assert lower % STEP == upper % STEP == 0
    assert lower <= 75_000 < upper <= lower / 0.995


def test_too_coarse_a_step_is_refused_before_the_first_trial(testbed):
    with pytest.raises(SearchError, match="steps of 100 frames/s, too coarse"):
        testbed.ndr_pdr("64B", goals="quick", min_load="9 kfps")


def test_directions_with_a_share_of_the_load_need_a_larger_step(testbed):
    def step(share):
        profile = load_profile("ethip4-udp", frame_size=64)
        fields = {name: getattr(profile, name) for name in type(profile).model_fields}
        return testbed.load_step(type(profile)(**{**fields, "load_share": share}))

    assert (step(1.0), step(0.5), step(1 / 3), step(0.37)) == (STEP, 2 * STEP, 3 * STEP, 100 * STEP)


@pytest.mark.parametrize("trial", [TrialInput(1.0, 1234.5), TrialInput.burst(99, 1234.5)])
def test_a_trial_keeps_its_duration_or_its_frames(trial):
    sent = trial.sendable(100.0)
    assert (sent.load, sent.frames) == (1200.0, trial.frames)
    assert sent.duration == (1.0 if trial.frames is None else 99 / 1200.0)
    assert sent.sendable(100.0) == sent
    assert trial.sendable(0.0) is trial


def test_a_schedule_has_steps_that_can_be_sent():
    sent = TrialInput.schedule(Step(1.0, 149.0), Step(2.0, 10.0)).sendable(100.0)
    assert [step.load for step in sent.steps] == [100.0, 100.0]
