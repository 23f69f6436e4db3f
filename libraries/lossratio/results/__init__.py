"""What was measured, as data: conditions, trials, results of all kinds, the directory of a run."""




from lossratio.results.bounds import BoundsSoFar
from lossratio.results.soak import CriticalLoad
from lossratio.results.soak import CurvePoint
from lossratio.results.soak import DensityPoint
from lossratio.results.latency import DirectionLatency
from lossratio.results.telemetry import DutTelemetry
from lossratio.results.comparable import FORCED
from lossratio.results.soak import FitCheck
from lossratio.results.soak import FittedFunction
from lossratio.results.frame_loss import FrameLoss
from lossratio.results.verdict import GENERATOR_LIMIT
from lossratio.results.spread import GoalSpread
from lossratio.results.histograms import Histogram
from lossratio.results.soak import IntervalPoint
from lossratio.results.latency import LatencyAtLoad
from lossratio.results.frame_loss import LossAtLoad
from lossratio.results.mrr import MRR_TRIALS
from lossratio.results.mrr import MRR_TRIAL_DURATION
from lossratio.results.facts import NodeFacts
from lossratio.results.soak import SoakLimit
from lossratio.results.telemetry import TelemetryTrial
from lossratio.results.bounds import bounds_history
from lossratio.results.comparable import caveats_of
from lossratio.results.facts import controller_facts
from lossratio.results.comparable import differing_aspects
from lossratio.results.comparable import digest_of
from lossratio.results.verdict import dropped_by_generator
from lossratio.results.frame_loss import ends_without_loss
from lossratio.results.text import format_frames_per_second
from lossratio.results.text import format_interval
from lossratio.results.latency_text import format_microseconds
from lossratio.results.text import format_regularity
from lossratio.results.frame_loss import frame_loss
from lossratio.results.spread import goal_spread
from lossratio.results.comparable import is_at_limit
from lossratio.results.comparable import is_too_slow
from lossratio.results.latency import latency_at_load
from lossratio.results.latency_text import latency_lines
from lossratio.results.text import message
from lossratio.results.latency_text import name_load
from lossratio.results.facts import node_facts
from lossratio.results.reconfiguration import reconfiguration_loss
from lossratio.results.bounds import search_goal

from lossratio.results.conditions import Conditions
from lossratio.results.findings import Finding
from lossratio.results.frame_integrity import FrameIntegrity
from lossratio.results.model import FrameLossResult
from lossratio.results.conditions import FrameSizeShare
from lossratio.results.model import Goal
from lossratio.results.model import GoalReport
from lossratio.results.model import LatencyResult
from lossratio.results.conditions import LoadOrigin
from lossratio.results.conditions import LoadSemantics
from lossratio.results.conditions import MaxLoad
from lossratio.results.model import MrrResult
from lossratio.results.model import Outcome
from lossratio.results.model import RESULT
from lossratio.results.model import ReconfigurationResult
from lossratio.results.model import Result
from lossratio.results.run_directory import RunDirectory
from lossratio.results.trials import STALL
from lossratio.results.build import SearchSetup
from lossratio.results.model import SoakResult
from lossratio.results.build import SoakSetup
from lossratio.results.model import TestIdentity
from lossratio.results.model import TestResult
from lossratio.results.build import TestRun
from lossratio.results.model import ThroughputResult
from lossratio.results.conditions import Traffic
from lossratio.results.trials import Trial
from lossratio.results.timing import TrialTiming
from lossratio.results.repair import damages_in
from lossratio.results.build import describe_goal
from lossratio.results.conditions import describe_testbed
from lossratio.results.trials import describe_trials
from lossratio.results.frame_integrity import faults_with_sizes
from lossratio.results.findings import findings_of
from lossratio.results.frame_integrity import integrity_lines
from lossratio.results.frame_integrity import integrity_of
from lossratio.results.conditions import load_semantics
from lossratio.results.frame_integrity import low_rate_check
from lossratio.results.build import mrr_result
from lossratio.results.run_directory import read_result
from lossratio.results.build import reconfiguration_result
from lossratio.results.repair import repair
from lossratio.results.run_directory import result_name
from lossratio.results.run_directory import result_stems
from lossratio.results.repair import results_lost
from lossratio.results.repair import results_set_aside
from lossratio.results.run_directory import search_name
from lossratio.results.build import soak_result
from lossratio.results.build import throughput_result
from lossratio.results.timing import trial_timing
from lossratio.results.trial_text import trials_in_words
from lossratio.results.ramp import with_ramp
from lossratio.results.run_directory import write_whole

__all__ = [
    "BoundsSoFar",
    "Conditions",
    "CriticalLoad",
    "CurvePoint",
    "DensityPoint",
    "DirectionLatency",
    "DutTelemetry",
    "FORCED",
    "Finding",
    "FitCheck",
    "FittedFunction",
    "FrameIntegrity",
    "FrameLoss",
    "FrameLossResult",
    "FrameSizeShare",
    "GENERATOR_LIMIT",
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
    "MRR_TRIALS",
    "MRR_TRIAL_DURATION",
    "MaxLoad",
    "MrrResult",
    "NodeFacts",
    "Outcome",
    "RESULT",
    "ReconfigurationResult",
    "Result",
    "RunDirectory",
    "STALL",
    "SearchSetup",
    "SoakLimit",
    "SoakResult",
    "SoakSetup",
    "TelemetryTrial",
    "TestIdentity",
    "TestResult",
    "TestRun",
    "ThroughputResult",
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
    "node_facts",
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
