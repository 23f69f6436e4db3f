"""What was measured, as data: conditions, trials, results of all kinds, the directory of a run."""

from lossratio.results.bounds import BoundsSoFar, bounds_history, search_goal
from lossratio.results.build import (
    SearchSetup,
    SoakSetup,
    TestRun,
    describe_goal,
    mrr_result,
    reconfiguration_result,
    soak_result,
    throughput_result,
)
from lossratio.results.comparable import FORCED, caveats_of, differing_aspects, digest_of, is_at_limit, is_too_slow
from lossratio.results.conditions import (
    Conditions,
    FrameSizeShare,
    LoadOrigin,
    LoadSemantics,
    MaxLoad,
    Traffic,
    describe_testbed,
    load_semantics,
)
from lossratio.results.facts import NodeFacts, ToolVersions, controller_facts
from lossratio.results.findings import Finding, findings_of
from lossratio.results.frame_integrity import (
    FrameIntegrity,
    faults_with_sizes,
    integrity_lines,
    integrity_of,
    low_rate_check,
)
from lossratio.results.frame_loss import FrameLoss, LossAtLoad, ends_without_loss, frame_loss
from lossratio.results.histograms import Histogram
from lossratio.results.latency import DirectionLatency, LatencyAtLoad, latency_at_load
from lossratio.results.latency_text import format_microseconds, latency_lines, name_load
from lossratio.results.model import (
    RESULT,
    FrameLossResult,
    Goal,
    GoalReport,
    LatencyResult,
    MrrResult,
    Outcome,
    ReconfigurationResult,
    Result,
    SoakResult,
    TestIdentity,
    TestResult,
    ThroughputResult,
)
from lossratio.results.mrr import MRR_TRIAL_DURATION, MRR_TRIALS
from lossratio.results.ramp import with_ramp
from lossratio.results.reconfiguration import reconfiguration_loss
from lossratio.results.repair import damages_in, repair, results_lost, results_set_aside
from lossratio.results.run_directory import (
    RunDirectory,
    read_result,
    result_name,
    result_stems,
    search_name,
    write_whole,
)
from lossratio.results.soak import (
    CriticalLoad,
    CurvePoint,
    DensityPoint,
    FitCheck,
    FittedFunction,
    IntervalPoint,
    SoakLimit,
)
from lossratio.results.spread import GoalSpread, goal_spread
from lossratio.results.telemetry import DutTelemetry, TelemetryTrial
from lossratio.results.text import format_frames_per_second, format_interval, format_regularity, message
from lossratio.results.timing import TrialTiming, trial_timing
from lossratio.results.trial_text import trials_in_words
from lossratio.results.trials import STALL, Trial, describe_trials
from lossratio.results.verdict import GENERATOR_LIMIT, dropped_by_generator

__all__ = [
    "FORCED",
    "GENERATOR_LIMIT",
    "MRR_TRIALS",
    "MRR_TRIAL_DURATION",
    "RESULT",
    "STALL",
    "BoundsSoFar",
    "Conditions",
    "CriticalLoad",
    "CurvePoint",
    "DensityPoint",
    "DirectionLatency",
    "DutTelemetry",
    "Finding",
    "FitCheck",
    "FittedFunction",
    "FrameIntegrity",
    "FrameLoss",
    "FrameLossResult",
    "FrameSizeShare",
    "Goal",
    "GoalReport",
    "GoalSpread",
    "Histogram",
    "IntervalPoint",
    "LatencyAtLoad",
    "LatencyResult",
    "LoadOrigin",
    "LoadSemantics",
    "LossAtLoad",
    "MaxLoad",
    "MrrResult",
    "NodeFacts",
    "Outcome",
    "ReconfigurationResult",
    "Result",
    "RunDirectory",
    "SearchSetup",
    "SoakLimit",
    "SoakResult",
    "SoakSetup",
    "TelemetryTrial",
    "TestIdentity",
    "TestResult",
    "TestRun",
    "ThroughputResult",
    "ToolVersions",
    "Traffic",
    "Trial",
    "TrialTiming",
    "bounds_history",
    "caveats_of",
    "controller_facts",
    "damages_in",
    "describe_goal",
    "describe_testbed",
    "describe_trials",
    "differing_aspects",
    "digest_of",
    "dropped_by_generator",
    "ends_without_loss",
    "faults_with_sizes",
    "findings_of",
    "format_frames_per_second",
    "format_interval",
    "format_microseconds",
    "format_regularity",
    "frame_loss",
    "goal_spread",
    "integrity_lines",
    "integrity_of",
    "is_at_limit",
    "is_too_slow",
    "latency_at_load",
    "latency_lines",
    "load_semantics",
    "low_rate_check",
    "message",
    "mrr_result",
    "name_load",
    "read_result",
    "reconfiguration_loss",
    "reconfiguration_result",
    "repair",
    "result_name",
    "result_stems",
    "results_lost",
    "results_set_aside",
    "search_goal",
    "search_name",
    "soak_result",
    "throughput_result",
    "trial_timing",
    "trials_in_words",
    "with_ramp",
    "write_whole",
]
