"""Results as data: conditions, trials, the directory of a run, and the registry of kinds of measurement."""

from lossratio.results.conditions import (
    Conditions,
    FrameSizeShare,
    LoadOrigin,
    LoadSemantics,
    MaxLoad,
    Traffic,
    describe_testbed,
    load_semantics,
    with_ramp,
)
from lossratio.results.contradictions import ROUNDING, differences, same_value
from lossratio.results.doubts import Doubt, DoubtKind, generator_stalls
from lossratio.results.facts import NodeFacts, ToolVersions, controller_facts
from lossratio.results.findings import (
    FORCED,
    caveats_of,
    differing_aspects,
    digest_of,
    doubts_of,
    findings_of,
    is_at_limit,
    is_too_slow,
)
from lossratio.results.frame_integrity import faults_with_sizes, integrity_of, low_rate_check
from lossratio.results.kinds import Kind, kind_names, kind_of, kind_of_journal, view_of
from lossratio.results.model import WITHOUT_DIGEST, Outcome, TestIdentity, TestResult, TestRun
from lossratio.results.repair import damages_in, repair, results_lost, results_set_aside
from lossratio.results.run_directory import (
    RunDirectory,
    read_result,
    result_name,
    result_stems,
    search_name,
    write_whole,
)
from lossratio.results.text import (
    LABEL_WIDTH,
    format_frames_per_second,
    format_interval,
    load_per_interface,
    message,
    rate_line,
)
from lossratio.results.timing import TrialTiming, trial_timing
from lossratio.results.trials import STALL, Trial, describe_trials, dropped_by_generator, trials_in_words
from lossratio.results.view import Finding, Picture, View, failure_line

__all__ = [
    "FORCED",
    "LABEL_WIDTH",
    "ROUNDING",
    "STALL",
    "WITHOUT_DIGEST",
    "Conditions",
    "Doubt",
    "DoubtKind",
    "Finding",
    "FrameSizeShare",
    "Kind",
    "LoadOrigin",
    "LoadSemantics",
    "MaxLoad",
    "NodeFacts",
    "Outcome",
    "Picture",
    "RunDirectory",
    "TestIdentity",
    "TestResult",
    "TestRun",
    "ToolVersions",
    "Traffic",
    "Trial",
    "TrialTiming",
    "View",
    "caveats_of",
    "controller_facts",
    "damages_in",
    "describe_testbed",
    "describe_trials",
    "differences",
    "differing_aspects",
    "digest_of",
    "doubts_of",
    "dropped_by_generator",
    "failure_line",
    "faults_with_sizes",
    "findings_of",
    "format_frames_per_second",
    "format_interval",
    "generator_stalls",
    "integrity_of",
    "is_at_limit",
    "is_too_slow",
    "kind_names",
    "kind_of",
    "kind_of_journal",
    "load_per_interface",
    "load_semantics",
    "low_rate_check",
    "message",
    "rate_line",
    "read_result",
    "repair",
    "result_name",
    "result_stems",
    "results_lost",
    "results_set_aside",
    "same_value",
    "search_name",
    "trial_timing",
    "trials_in_words",
    "view_of",
    "with_ramp",
    "write_whole",
]
