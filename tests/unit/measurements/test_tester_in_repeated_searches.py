"""What the tester did to bursts and overloads is not the SUT's."""

import pytest
from measurement_examples import PROFILE, place
from perfect_sut import PerfectTestbed, drops_always, drops_at_times, steadily

from lossratio.errors import TesterError
from lossratio.measurements.back_to_back import BackToBackRequest, measure_back_to_back
from lossratio.measurements.confirmation import Confirmation, ConfirmationRequest
from lossratio.measurements.measure import measure
from lossratio.measurements.recovery import RecoveryRequest, measure_recovery
from lossratio.measurements.soak.measure import SoakRequest, find_critical_load
from lossratio.plrsearch import Verdict


def test_bursts_with_unsent_frames_have_no_length(tmp_path):
    request = BackToBackRequest(profile=PROFILE, throughput=3e5, repeats=2)
    with pytest.raises(TesterError, match=r"5 bursts in a row say nothing about the SUT"):
        measure_back_to_back(PerfectTestbed(tmp_path, steadily), request, place(tmp_path / "run"))


def test_a_burst_whose_frames_the_generator_dropped_is_sent_again(tmp_path):
    request = BackToBackRequest(profile=PROFILE, throughput=3e5, repeats=5)
    result = measure_back_to_back(PerfectTestbed(tmp_path, drops_at_times), request, place(tmp_path / "run"))
    assert result.back_to_back.least_frames == result.longest_burst_frames
    assert len(result.trials) > 5


def test_a_recovery_among_generator_drops_is_not_known(tmp_path):
    request = RecoveryRequest(profile=PROFILE, throughput=2e5, duration=5.0, limit=2.0, repeats=2)
    result = measure_recovery(PerfectTestbed(tmp_path, drops_always), request, place(tmp_path / "run"))
    assert result.reason.startswith("the generator itself dropped")
    assert all(time.generator_drop_frames for time in result.recovery.times)


@pytest.mark.whole
def test_a_soak_test_takes_frames_that_the_generator_dropped_for_forwarded(tmp_path):
    request = SoakRequest(profile=PROFILE, timeout=60.0)
    result = find_critical_load(PerfectTestbed(tmp_path, drops_always), request, place(tmp_path / "run"))
    assert result.critical_load.stated.per_interface_fps == pytest.approx(400_000, rel=0.01)


def test_a_confirmation_takes_them_for_forwarded_too(tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=1e5, loss_ratio=1e-4)
    result = measure(Confirmation(), PerfectTestbed(tmp_path, drops_always), request, place(tmp_path / "run"))
    assert result.statement.verdict is Verdict.VERIFIED
