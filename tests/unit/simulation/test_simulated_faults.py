from pathlib import Path

import pytest

from lossratio.errors import TopologyError
from lossratio.measurements.measurement import TestPlace
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.results.findings import doubts_of
from lossratio.results.model import TestIdentity
from lossratio.results.note import NoteKind
from lossratio.results.run_directory import RunDirectory
from lossratio.simulation import ConstantLoss, FrameFaults, SimulatedMeasurer
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials.counters import Integrity, IntegrityError
from lossratio.trials.trial_input import TrialInput

SIMULATED = Path(__file__).parents[3] / "topologies" / "simulated.yaml"
PROFILE = load_profile("ethip4-udp", frame_size=64)


def test_copies_and_damage_never_make_up_for_loss():
    faults = FrameFaults(duplicated=0.01, corrupted=0.02)
    measurer = SimulatedMeasurer(ConstantLoss(loss_ratio=0.01), seed=1, faults=faults)
    output = measurer.measure(TrialInput(duration=1.0, load=1e6))
    (direction,) = output.directions
    assert direction.corrupted_frames == pytest.approx(0.99 * 0.02 * 1e6, rel=0.05)
    assert direction.duplicated_frames == pytest.approx(0.97 * 0.01 * 1e6, rel=0.05)
    assert output.loss_ratio == pytest.approx(1.0 - 0.99 * 0.98, rel=0.02)


def lab(directory, faults):
    file = directory / "faulty.yaml"
    file.write_text(SIMULATED.read_text().replace("sut: {", f"sut: {{faults: {faults}, "))
    return file


def measured(directory, faults, integrity=Integrity.DOUBT):
    place = TestPlace(TestIdentity(name="MRR", suite="Faulty"), RunDirectory(directory))
    testbed = open_testbed(lab(directory, faults))
    return measure_mrr(testbed, MrrRequest(profile=PROFILE, max_load=20e3, trials=2, integrity=integrity), place)


def test_a_simulated_testbed_shows_what_becomes_of_a_dut_with_faults(tmp_path):
    result = measured(tmp_path, "{duplicated: 1 %}")
    assert NoteKind.INTEGRITY in {doubt.kind for doubt in doubts_of([result])[0]}
    assert measured(tmp_path, "{duplicated: 1 %}", Integrity.OFF).trials[0].directions[0].examined_frames is None
    with pytest.raises(IntegrityError, match="duplicated"):
        measured(tmp_path, "{duplicated: 1 %}", Integrity.FAIL)


def test_faults_that_nobody_knows_are_refused(tmp_path):
    with pytest.raises(TopologyError, match=r"reordered: .*Give 'duplicated' and 'corrupted'"):
        measured(tmp_path, "{reordered: 1 %}")
