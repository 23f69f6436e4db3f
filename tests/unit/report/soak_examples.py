"""Results of soak tests and of a reconfiguration, for the tests of their reports."""

from dataclasses import replace

from report_examples import MAX_LOAD, MIN_LOAD, conditions, counted_trial, run

from lossratio.measurements import Measurement
from lossratio.measurements.reconfiguration import ReconfigurationResult, reconfiguration_loss
from lossratio.measurements.soak.result import CriticalLoad, CurvePoint, FittedFunction, SoakResult
from lossratio.plrsearch import FitCheck, GuardStatement, IntervalPoint, Verdict, why_set_aside
from lossratio.results import describe_trials
from lossratio.results.conditions import LoadOrigin
from lossratio.trials.journal_lines import JournalEntry
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput

MEAN, STDEV = 150_000.0, 500.0
TRIALS = [JournalEntry(counted_trial(load, lost=lost)) for load, lost in ((149e3, 0), (150e3, 1), (160e3, 10_000))]


GUARD = {
    "verdict": Verdict.EXTRAPOLATED,
    "load_per_interface_fps": 149.9e3,
    "highest_load_per_interface_fps": 150e3,
    "trials": 4,
    "frames": 6_000_000,
    "lost_frames": 0,
    "lossy_trials": 0,
    "burst_frames": 1.0,
    "least_loss_ratio": 0.0,
    "most_loss_ratio": 6e-7,
    "extrapolation_factor": 6.0,
    "missing_frames": 30_000_000,
    "missing_s": 7200.0,
}


def critical_load(*, limit=None, misfit=()):
    rate = conditions().rate
    loads = [MEAN + STDEV * step / 4 for step in range(-12, 13)]
    curve = tuple(
        CurvePoint(load_per_interface_fps=load, loss_ratio=10.0 ** (-9 + i / 4)) for i, load in enumerate(loads)
    )
    history = tuple(
        IntervalPoint(
            trials=trials,
            elapsed_s=5.0 * trials,
            mean_per_interface_fps=MEAN,
            least_95_per_interface_fps=MEAN - 6 * STDEV / trials,
            most_95_per_interface_fps=MEAN + 6 * STDEV / trials,
            median_per_interface_fps=MEAN,
        )
        for trials in (1, 2, 3)
    )
    return CriticalLoad(
        mean=rate(MEAN),
        median=rate(MEAN),
        stdev=rate(STDEV),
        least_95=rate(MEAN - 2 * STDEV),
        most_95=rate(MEAN + 2 * STDEV),
        functions=tuple(
            FittedFunction(name=name, mean=rate(MEAN), stdev=rate(STDEV), weight=0.5, curve=curve)
            for name in ("stretch", "erf")
        ),
        history=history,
        guard=GuardStatement(**GUARD),
        chance_stdev_ratio=0.001,
        shared_stdev_ratio=0.001,
        trial_s=2.0,
        rarest_s=60.0,
        ended_by="timeout",
        limit=limit,
        misfit=misfit,
        fit=FitCheck(
            chi_squared_per_trial=1.1,
            function_distance_stdevs=0.5,
            replicates_chi_squared=None,
            replicates_freedom=0,
            scatter="chance",
            batch_frames=1.0,
        ),
    )


def max_load():
    return conditions().max_load(MAX_LOAD, LoadOrigin.GENERATOR)


def soak(*, target=1e-7, error=None, trials=TRIALS, **fields):
    test_run = run("64B-1c-ethip4-ip4base-soak", error=error)
    found = None if error else critical_load(**fields)
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
    return JournalEntry(TrialResult(TrialInput(duration, MEAN), output))


def whole():
    """A soak test with everything that was inferred."""
    result = soak()
    found = result.critical_load
    inferred = {
        "mrr_per_interface_fps": MEAN + 100.0,
        "spread_per_interface_fps": 50.0,
        "capacity_stdev_per_interface_fps": 20.0,
        "log_evidence": -321.5,
        "at_min_ratio": 0.0,
        "at_max_ratio": 0.0,
    }
    functions = tuple(function.model_copy(update=inferred) for function in found.functions)
    return result.model_copy(update={"critical_load": found.model_copy(update={"functions": functions})})


def guarded(**fields):
    result = whole()
    statement = replace(result.critical_load.guard, **fields)
    critical = result.critical_load.model_copy(update={"guard": statement})
    return result.model_copy(update={"critical_load": critical})


def verified(rarest, protocol, elapsed=300.0):
    """The result with a verified load, and what it is worth."""
    result = guarded(verdict=Verdict.VERIFIED, protocol_s=protocol, missing_frames=None, missing_s=None)
    critical = result.critical_load
    last = replace(critical.history[-1], elapsed_s=elapsed)
    fields = {"verified": critical.least_95, "rarest_s": rarest, "history": (*critical.history[:-1], last)}
    return result.model_copy(update={"critical_load": critical.model_copy(update=fields)})
