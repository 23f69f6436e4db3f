"""Whether a testbed is fit tonight: its tester must send and receive every frame over a cable before the first test."""

from __future__ import annotations

from lossratio.dut import CABLE
from lossratio.errors import TrafficError
from lossratio.runs.job import Job, Testbed, TesterDemand
from lossratio.testbed import open_testbed
from lossratio.traffic import REPEATS, load_profile
from lossratio.trials import Measurer, TrialInput, TrialOutput
from lossratio.units import format_frame_rate, parse_frame_rate

_TRIAL_SECONDS = 1.0


class UnfitTesterError(TrafficError):
    """The tester cannot do tonight what it must be able to do."""


def check_tester(job: Job, testbed: Testbed, demand: TesterDemand) -> None:
    """Measures the tester over a cable.

    Raises:
        UnfitTesterError: If it misses frames at the load that is demanded.
        LossRatioError: If it cannot be measured.
    """
    load = parse_frame_rate(demand.load)
    profile = load_profile(demand.profile, frame_size=demand.frame_size)
    opened = open_testbed(job.cable_of(testbed, demand), dut=CABLE)
    try:
        with opened.ready_for(profile) as ready:
            for number in range(1, demand.trials + 1):
                output = _measured(ready.measurer, TrialInput(_TRIAL_SECONDS, load))
                if output.lost_frames or output.unsent_frames:
                    behind = max((each.lateness or 0.0 for each in output.directions), default=0.0)
                    raise UnfitTesterError(
                        f"{testbed.topology.name} is not fit tonight: at {format_frame_rate(load)} per interface over "
                        f"a cable, its tester lost {output.lost_frames or 0:,} frames and could not send "
                        f"{output.unsent_frames or 0:,} (trial {number}, behind by up to {behind * 1e3:.1f} ms). Look "
                        f"for other work on its node, and for faults of the cable."
                    )
    finally:
        opened.close()


def _measured(measurer: Measurer, trial: TrialInput) -> TrialOutput:
    """Measures again where frames were not sent: a machine that stood still once is no reason to lose a night."""
    for _ in range(REPEATS):
        output = measurer.measure(trial)
        if output.lost_frames or not output.unsent_frames:
            return output
    return measurer.measure(trial)
