"""Results as data: conditions, trials, the directory of a run, and the registry of kinds of measurement."""

from lossratio.results.conditions import (
    Conditions as Conditions,
    FrameSizeShare as FrameSizeShare,
    LoadOrigin as LoadOrigin,
    LoadSemantics as LoadSemantics,
    MaxLoad as MaxLoad,
    Traffic as Traffic,
    describe_testbed as describe_testbed,
    load_semantics as load_semantics,
)
from lossratio.results.contradictions import (
    ROUNDING as ROUNDING,
    differences as differences,
    same_value as same_value,
)
from lossratio.results.device import (
    Device as Device,
    Role as Role,
    options_that_count as options_that_count,
    what_differs as what_differs,
)
from lossratio.results.doubts import (
    OF_STALLS as OF_STALLS,
    drift as drift,
    least_news as least_news,
    spells as spells,
    stalls_that_decided as stalls_that_decided,
    time_dependence_in as time_dependence_in,
)
from lossratio.results.ends import (
    Ends as Ends,
    agreed_change as agreed_change,
    at_most as at_most,
    ends_of as ends_of,
    ends_of_trial as ends_of_trial,
    share_in_words as share_in_words,
    stored_ends as stored_ends,
    unsent_share_of as unsent_share_of,
)
from lossratio.results.erratic_losses import erratic as erratic
from lossratio.results.findings import (
    apart_by_device as apart_by_device,
    caveats_of as caveats_of,
    differing_aspects as differing_aspects,
    digest_of as digest_of,
    doubts_of as doubts_of,
    findings_of as findings_of,
    loss_places_in as loss_places_in,
    message as message,
    notes_of as notes_of,
    provenance as provenance,
)
from lossratio.results.frame_integrity import (
    faults_with_sizes as faults_with_sizes,
    integrity_of as integrity_of,
    low_rate_check as low_rate_check,
)
from lossratio.results.identity import (
    ID as ID,
    VARIATION as VARIATION,
    identity_of as identity_of,
    names_of_tests_in as names_of_tests_in,
    namesakes_of as namesakes_of,
    suite_identity as suite_identity,
    suite_identity_of as suite_identity_of,
    with_any_values as with_any_values,
)
from lossratio.results.kinds import (
    Kind as Kind,
    installed_kinds as installed_kinds,
    kind_names as kind_names,
    kind_of as kind_of,
    kind_of_journal as kind_of_journal,
)
from lossratio.results.losses import LossPattern as LossPattern, LossPlaces as LossPlaces
from lossratio.results.machines import (
    NodeFacts as NodeFacts,
    ToolVersions as ToolVersions,
    controller_facts as controller_facts,
)
from lossratio.results.model import (
    INTERRUPTED as INTERRUPTED,
    TERMINATED as TERMINATED,
    Outcome as Outcome,
    TestIdentity as TestIdentity,
    TestResult as TestResult,
    TestRun as TestRun,
)
from lossratio.results.note import (
    SHOWN as SHOWN,
    Note as Note,
    NoteKind as NoteKind,
    Rule as Rule,
    Weight as Weight,
    as_text as as_text,
    caveat as caveat,
    doubt as doubt,
    headline as headline,
    in_short as in_short,
    noted as noted,
    numbers as numbers,
    rule as rule,
)
from lossratio.results.offered import (
    LEAST_UNSENT as LEAST_UNSENT,
    Offered as Offered,
    against_stalls as against_stalls,
    load_in_words as load_in_words,
    offered_in as offered_in,
    offered_in_words as offered_in_words,
    unsent_share as unsent_share,
)
from lossratio.results.pictures import Picture as Picture
from lossratio.results.quantity import (
    Finding as Finding,
    Shown as Shown,
    aggregate_field as aggregate_field,
    aggregate_of as aggregate_of,
    number_of as number_of,
)
from lossratio.results.queue_drops import (
    LEAST_FRAMES_EACH as LEAST_FRAMES_EACH,
    UNEVEN_TIMES as UNEVEN_TIMES,
    QueueDrops as QueueDrops,
    queue_drops_in as queue_drops_in,
)
from lossratio.results.repair import (
    repair as repair,
    results_lost as results_lost,
    results_set_aside as results_set_aside,
    unreadable_in as unreadable_in,
)
from lossratio.results.rules import (
    OF_ALL_KINDS as OF_ALL_KINDS,
    OVER_TIME as OVER_TIME,
    USUAL as USUAL,
)
from lossratio.results.run_directory import (
    Claim as Claim,
    RunDirectory as RunDirectory,
    read_result as read_result,
    result_name as result_name,
    result_stems as result_stems,
    search_name as search_name,
    write_whole as write_whole,
)
from lossratio.results.trial_timing import TrialTiming as TrialTiming, trial_timing as trial_timing
from lossratio.results.trials import (
    NONE_LOST as NONE_LOST,
    Trial as Trial,
    are_lost_in_words as are_lost_in_words,
    describe_trials as describe_trials,
    faulty_in_words as faulty_in_words,
    format_loss as format_loss,
    in_good_trials as in_good_trials,
    in_trials_of as in_trials_of,
    in_trials_without_loss as in_trials_without_loss,
    not_lost_in_words as not_lost_in_words,
    share_missing_in_words as share_missing_in_words,
    trials_in_words as trials_in_words,
    withdrawn_in_words as withdrawn_in_words,
)
from lossratio.results.twins import common_name as common_name
from lossratio.results.view import (
    CsitExportError as CsitExportError,
    LatencyPoint as LatencyPoint,
    Rfc2544Row as Rfc2544Row,
    View as View,
    csit_rate as csit_rate,
    head as head,
    quick_goals_in as quick_goals_in,
    view_of as view_of,
)
from lossratio.results.wording import (
    apart_in_words as apart_in_words,
    format_frames_per_second as format_frames_per_second,
    format_interval as format_interval,
    frames_in_words as frames_in_words,
    in_columns as in_columns,
    in_full as in_full,
    rate_in_words as rate_in_words,
    size_in_words as size_in_words,
    value_line as value_line,
    way_in_words as way_in_words,
    written_in_full as written_in_full,
)
