"""The types that all rooms share: a trial's input and output, counters, the journal, controllers and measurers."""

from lossratio.trials.causes import (
    FAR_BELOW as FAR_BELOW,
    STALL as STALL,
    USUAL_BATCH as USUAL_BATCH,
    CountedFrames as CountedFrames,
    MissingFrames as MissingFrames,
    known_missing as known_missing,
    loss_ratio_without_tester as loss_ratio_without_tester,
    missing_frames as missing_frames,
    most_lost_in_bursts as most_lost_in_bursts,
    offered_load as offered_load,
    sut_loss_ratio as sut_loss_ratio,
)
from lossratio.trials.changed_fields import (
    LOOK_AT_DUT as LOOK_AT_DUT,
    LOOK_FOR_COPIES as LOOK_FOR_COPIES,
    LOOK_FOR_WAYS as LOOK_FOR_WAYS,
    changes_in_words as changes_in_words,
    fields_in_words as fields_in_words,
    ways_to_expect as ways_to_expect,
)
from lossratio.trials.counters import (
    IN_FLIGHT as IN_FLIGHT,
    START_TOLERANCE as START_TOLERANCE,
    CountersError as CountersError,
    Examination as Examination,
    Integrity as Integrity,
    IntegrityError as IntegrityError,
    LatencyCounters as LatencyCounters,
    LatencyOutput as LatencyOutput,
    NegativeLoss as NegativeLoss,
    NegativeLossError as NegativeLossError,
    OneWayLatency as OneWayLatency,
    check_integrity as check_integrity,
    contradictions as contradictions,
    faults_in_words as faults_in_words,
    output_from_counters as output_from_counters,
    with_examination as with_examination,
)
from lossratio.trials.digest import (
    DigestError as DigestError,
    add_digest as add_digest,
    take_digest as take_digest,
)
from lossratio.trials.journal import (
    Journal as Journal,
    adopt_journal as adopt_journal,
    is_being_written as is_being_written,
    lock as lock,
)
from lossratio.trials.journal_lines import (
    Addition as Addition,
    JournalEntry as JournalEntry,
    WithdrawnTrial as WithdrawnTrial,
)
from lossratio.trials.journal_reading import (
    JournalContents as JournalContents,
    UnknownJournalError as UnknownJournalError,
    has_header as has_header,
    read_good_part as read_good_part,
    read_journal as read_journal,
)
from lossratio.trials.late import LateFrames as LateFrames, with_late_frames as with_late_frames
from lossratio.trials.losses import (
    FlowClasses as FlowClasses,
    Losses as Losses,
    read_counts as read_counts,
)
from lossratio.trials.record import (
    Frames as Frames,
    Microseconds as Microseconds,
    Observed as Observed,
    Seconds as Seconds,
    read_record as read_record,
)
from lossratio.trials.search import run_search as run_search
from lossratio.trials.timeline import (
    MOST_OUTAGES as MOST_OUTAGES,
    BurstRateError as BurstRateError,
    Outage as Outage,
    Silence as Silence,
    Step as Step,
    StepCounters as StepCounters,
    Timeline as Timeline,
)
from lossratio.trials.trial import (
    Controller as Controller,
    Measurer as Measurer,
    TrialResult as TrialResult,
)
from lossratio.trials.trial_input import (
    Exchange as Exchange,
    TrialInput as TrialInput,
    sendable as sendable,
)
from lossratio.trials.trial_output import (
    BlamedSide as BlamedSide,
    ChangedField as ChangedField,
    DirectionCounters as DirectionCounters,
    Incident as Incident,
    QueueCounters as QueueCounters,
    Reaction as Reaction,
    StreamCounters as StreamCounters,
    StreamFrames as StreamFrames,
    TrialOutput as TrialOutput,
)
