"""Results of soak tests and of a reconfiguration, for the tests of their reports."""

from report_examples import MAX_LOAD, MIN_LOAD, conditions, counted_trial, run

from lossratio.measurements import Measurement
from lossratio.measurements.reconfiguration import ReconfigurationResult, reconfiguration_loss
from lossratio.measurements.soak.result import CriticalLoad, CurvePoint, FittedFunction, PlrsearchEstimate, SoakResult
from lossratio.plrsearch import CountedStatement, Verdict, why_set_aside
from lossratio.results import describe_trials
from lossratio.results.conditions import LoadOrigin
from lossratio.trials.journal_lines import JournalEntry
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput

MEAN, STDEV = 150_000.0, 500.0
TRIALS = [JournalEntry.of(counted_trial(load, lost=lost)) for load, lost in ((149e3, 0), (150e3, 1), (160e3, 10_000))]


STATEMENT = {
    "verdict": Verdict.VERIFIED,
    "load_per_interface_fps": MEAN,
    "highest_load_per_interface_fps": MEAN,
    "trials": 60,
    "frames": 180_000_000,
    "lost_frames": 0,
    "lossy_trials": 0,
    "burst_frames": 1.0,
    "least_loss_ratio": 0.0,
    "most_loss_ratio": 2e-8,
    "extrapolation_factor": 0.2,
    "largest_burst_frames": 4.9,
    "unseen_burst_trials": 16.8,
}
OPEN = {
    "verdict": Verdict.EXTRAPOLATED,
    "trials": 20,
    "frames": 6_000_000,
    "most_loss_ratio": 6e-7,
    "extrapolation_factor": 6.0,
    "largest_burst_frames": None,
    "missing_frames": 30_000_000,
    "missing_s": 7200.0,
}
"""A load that lacks frames only."""


def critical_load(**fields):
    """A verified load without any doubt; `statement` has fields that differ."""
    rate = conditions().rate
    said = {
        "stated": rate(MEAN),
        "verified": rate(MEAN),
        "contradicted": rate(MEAN + STDEV),
        "statement": CountedStatement(**STATEMENT | fields.pop("statement", {})),
        "reason": None,
        "limit": None,
        "line": None,
        "rarest_s": 75.0,
        "trial_s": 2.0,
        "long_s": 20.0,
        "clump_frames": 1.0,
        "batch_frames": None,
        "once_frames": 0.0,
        "change_ratios": (),
        "bucket": None,
        "pauses": None,
        "process": (),
        "ended_by": "timeout",
    }
    return CriticalLoad(**said | fields)


def lacking_frames():
    """A load that is not verified, only because that takes more frames."""
    return critical_load(verified=None, statement=OPEN)


def fitted():
    """PLRsearch's estimate, with two curves."""
    rate = conditions().rate
    loads = [MEAN + STDEV * step / 4 for step in range(-12, 13)]
    curve = tuple(
        CurvePoint(load_per_interface_fps=load, loss_ratio=10.0 ** (-9 + i / 4)) for i, load in enumerate(loads)
    )
    of_each = {"mean": rate(MEAN), "stdev": rate(STDEV), "curve": curve}
    likeliest = {"mrr_per_interface_fps": MEAN + 100.0, "spread_per_interface_fps": 50.0}
    return PlrsearchEstimate(
        mean=rate(MEAN),
        stdev=rate(STDEV),
        median=rate(MEAN),
        least_95=rate(MEAN - 2 * STDEV),
        most_95=rate(MEAN + 2 * STDEV),
        functions=tuple(FittedFunction(name=name, **of_each, **likeliest) for name in ("stretch", "erf")),
    )


def max_load():
    return conditions().max_load(MAX_LOAD, LoadOrigin.GENERATOR)


def soak(*, target=1e-7, error=None, trials=TRIALS, found=None, **fields):
    """A soak test with this critical load, or the usual one with these fields."""
    test_run = run("64B-1c-ethip4-ip4base-soak", error=error)
    found = None if error else found or critical_load(**fields)
    stated = Measurement(test_run, None, tuple(trials), None).stated(max_load(), found and found.reason)
    return SoakResult(
        **stated | {"trials": describe_trials(trials, why_set_aside=why_set_aside)},
        target_loss_ratio=target,
        settings={},
        min_load=test_run.conditions.rate(MIN_LOAD),
        critical_load=found,
    )


def reconfiguration(*, error=None):
    test_run = run("64B-1c-ethip4-ip4base-reconf", error=error)
    loss = None if error else reconfiguration_loss(conditions().rate(1e5), 5_000)
    return ReconfigurationResult(**Measurement(test_run, None, (), None).stated(max_load()), loss=loss)


def stalled(lateness, lost=10, duration=1.0):
    load = int(MEAN / duration)
    counters = DirectionCounters("a>b", load, load, load - lost, lateness_s=lateness)
    output = TrialOutput(lost / load, sent_frames=load, lost_frames=lost, unsent_frames=0, directions=(counters,))
    return JournalEntry.of(TrialResult(TrialInput(duration, MEAN), output))
