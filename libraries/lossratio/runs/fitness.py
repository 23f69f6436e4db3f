"""Whether the tester of a testbed is fit for a job: it sends and receives the demanded load over a cable."""

from lossratio.dut import CABLE
from lossratio.errors import TrafficError
from lossratio.runs.job import Job, Testbed, TesterDemand
from lossratio.testbed import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import TrialInput, TrialOutput
from lossratio.units import format_frame_rate, parse_frame_rate

_TRIAL_SECONDS = 1.0


class UnfitTesterError(TrafficError):
    """The tester does not send and receive the load that the job demands."""


def check_tester(job: Job, testbed: Testbed, demand: TesterDemand) -> None:
    """Measures whether the tester sends and receives the demanded load over a cable, without a lost or unsent frame.

    Raises:
        UnfitTesterError: If the tester does not do that.
        LossRatioError: If the testbed cannot be opened, or a trial cannot be performed.
    """
    load = parse_frame_rate(demand.load)
    profile = load_profile(demand.profile, frame_size=demand.frame_size)
    with (
        open_testbed(job.cable_of(testbed, demand), dut=CABLE, traffics=[profile]) as opened,
        opened.ready_for(profile) as ready,
    ):
        trial = TrialInput(_TRIAL_SECONDS, load).sendable(opened.load_step(profile))
        for number in range(1, demand.trials + 1):
            output = ready.measurer.measure(trial)
            if output.lost_frames or output.unsent_frames:
                raise _unfit(testbed, load, number, output)


def _unfit(testbed: Testbed, load: float, number: int, output: TrialOutput) -> UnfitTesterError:
    """The error about a trial in which frames were lost or not sent."""
    behind = max((direction.lateness_s or 0.0 for direction in output.directions), default=0.0)
    lost = f"{output.lost_frames or 0:,}"
    unsent = f"{output.unsent_frames or 0:,}"
    if output.unsent_frames:
        cause = "other work on its machine"
    else:
        cause = "faults of the cable"

    return UnfitTesterError(
        f"The traffic generator of testbed {testbed.topology.name} is too slow: at {format_frame_rate(load)} per "
        f"interface over a cable, it could not send {unsent} frames and lost {lost} (trial {number}, late by up to "
        f"{behind * 1e3:.1f} ms). Look for {cause}."
    )
