"""MLRsearch (RFC 9971): goals, load classification, search results, and the controller that chooses trials."""

from lossratio.mlrsearch.as_before import Answer as Answer, Question as Question
from lossratio.mlrsearch.bursts import (
    is_of_sut as is_of_sut,
    of_sut as of_sut,
    with_late_frames as with_late_frames,
    without_generators_faults as without_generators_faults,
    without_starvation as without_starvation,
)
from lossratio.mlrsearch.classification import (
    Bound as Bound,
    Criterion as Criterion,
    Tally as Tally,
    conditional_throughput as conditional_throughput,
)
from lossratio.mlrsearch.constancy import (
    Change as Change,
    Inconstancy as Inconstancy,
    LevelLoss as LevelLoss,
    LossUnit as LossUnit,
    inconstancy_in as inconstancy_in,
    level_loss_in as level_loss_in,
)
from lossratio.mlrsearch.controller import MLRsearch as MLRsearch
from lossratio.mlrsearch.evidence import (
    Evidence as Evidence,
    RelevantBounds as RelevantBounds,
    classify as classify,
    evidence_of as evidence_of,
)
from lossratio.mlrsearch.forecast import Forecast as Forecast
from lossratio.mlrsearch.goal import (
    NDR as NDR,
    PDR as PDR,
    RFC2544 as RFC2544,
    TST009 as TST009,
    SearchGoal as SearchGoal,
    SearchGoalWarning as SearchGoalWarning,
)
from lossratio.mlrsearch.grid import LoadGrid as LoadGrid
from lossratio.mlrsearch.hints import EARLIER_SEARCHES as EARLIER_SEARCHES
from lossratio.mlrsearch.purpose import Purpose as Purpose
from lossratio.mlrsearch.result import (
    GoalResult as GoalResult,
    IrregularReason as IrregularReason,
    SearchResult as SearchResult,
    goal_result as goal_result,
)
from lossratio.mlrsearch.rules import GoalView as GoalView
from lossratio.mlrsearch.stages import GoalBounds as GoalBounds, Stage as Stage, Target as Target
from lossratio.mlrsearch.zone import LoadShare as LoadShare, Zone as Zone, zone_in as zone_in
