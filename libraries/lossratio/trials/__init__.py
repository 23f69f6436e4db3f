"""The types that all rooms share: a trial's input and output, counters, the journal, controllers and measurers."""

from lossratio.trials.counters import (
    START_TOLERANCE,
    CountersError,
    NegativeLoss,
    NegativeLossError,
    contradictions,
    output_from_counters,
)
from lossratio.trials.digest import DigestError, add_digest, take_digest
from lossratio.trials.integrity import Examination, Integrity, check_integrity, faults_in_words, with_examination
from lossratio.trials.journal import (
    NO_DIGESTS,
    Journal,
    JournalContents,
    JournalEntry,
    UnknownJournalError,
    adopt_journal,
    read_good_part,
    read_journal,
)
from lossratio.trials.trial import (
    Controller,
    DirectionCounters,
    Incident,
    LatencyCounters,
    LatencyOutput,
    Measurer,
    TrialInput,
    TrialOutput,
    TrialResult,
    run_search,
)

__all__ = [
    "NO_DIGESTS",
    "START_TOLERANCE",
    "Controller",
    "CountersError",
    "DigestError",
    "DirectionCounters",
    "Examination",
    "Incident",
    "Integrity",
    "Journal",
    "JournalContents",
    "JournalEntry",
    "LatencyCounters",
    "LatencyOutput",
    "Measurer",
    "NegativeLoss",
    "NegativeLossError",
    "TrialInput",
    "TrialOutput",
    "TrialResult",
    "UnknownJournalError",
    "add_digest",
    "adopt_journal",
    "check_integrity",
    "contradictions",
    "faults_in_words",
    "output_from_counters",
    "read_good_part",
    "read_journal",
    "run_search",
    "take_digest",
    "with_examination",
]
