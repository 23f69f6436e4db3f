"""Measurements: what all kinds share, and a folder for each kind.

Testbeds, devices, traffic (paramiko) and Robot Framework are imported within functions: that takes a while, and reports
do not need them.
"""

from lossratio.measurements.live_view import (
    OneLine as OneLine,
    Stages as Stages,
    live_on as live_on,
    without_line as without_line,
)
from lossratio.measurements.look_for_memory import (
    MEMORY_REST as MEMORY_REST,
    MEMORY_SECONDS as MEMORY_SECONDS,
)
from lossratio.measurements.measure import (
    FoundResult as FoundResult,
    InWords as InWords,
    MeasuredKind as MeasuredKind,
    PlannedKind as PlannedKind,
    PlannedTrials as PlannedTrials,
    RequestedKind as RequestedKind,
    Suite as Suite,
    check_arguments as check_arguments,
    measure as measure,
    warm_up_like as warm_up_like,
)
from lossratio.measurements.measurement import (
    Additions as Additions,
    Measurement as Measurement,
    Span as Span,
    TestPlace as TestPlace,
    what_stopped as what_stopped,
)
from lossratio.measurements.progress import (
    OnProgress as OnProgress,
    Progress as Progress,
    seconds_in_words as seconds_in_words,
    trial_in_words as trial_in_words,
)
from lossratio.measurements.request import (
    NOT_IN_FILES as NOT_IN_FILES,
    AfterThroughput as AfterThroughput,
    Audience as Audience,
    Request as Request,
    SettingsOf as SettingsOf,
    WarmUp as WarmUp,
    check_warm_up as check_warm_up,
)
from lossratio.measurements.spread import (
    SECONDS as SECONDS,
    Spread as Spread,
    TimesView as TimesView,
    resolution_lines as resolution_lines,
    time_in_words as time_in_words,
)
from lossratio.results import CsitExportError as CsitExportError, csit_rate as csit_rate
