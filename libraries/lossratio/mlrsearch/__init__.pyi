"""The public names, listed once: type checkers read them here, and the room imports each on first use."""

from .as_before import Answer as Answer, Question as Question
from .bursts import (
    is_of_sut as is_of_sut,
    of_sut as of_sut,
    with_late_frames as with_late_frames,
    without_generators_faults as without_generators_faults,
    without_starvation as without_starvation,
)
from .classification import (
    Bound as Bound,
    Criterion as Criterion,
    Tally as Tally,
    conditional_throughput as conditional_throughput,
)
from .constancy import (
    Change as Change,
    Inconstancy as Inconstancy,
    LevelLoss as LevelLoss,
    LossUnit as LossUnit,
    inconstancy_in as inconstancy_in,
    level_loss_in as level_loss_in,
)
from .controller import MLRsearch as MLRsearch
from .evidence import (
    Evidence as Evidence,
    RelevantBounds as RelevantBounds,
    classify as classify,
    evidence_of as evidence_of,
)
from .forecast import Forecast as Forecast
from .goal import (
    NDR as NDR,
    PDR as PDR,
    RFC2544 as RFC2544,
    TST009 as TST009,
    SearchGoal as SearchGoal,
    SearchGoalWarning as SearchGoalWarning,
)
from .grid import LoadGrid as LoadGrid
from .hints import EARLIER_SEARCHES as EARLIER_SEARCHES
from .purpose import Purpose as Purpose
from .result import (
    GoalResult as GoalResult,
    IrregularReason as IrregularReason,
    SearchResult as SearchResult,
    goal_result as goal_result,
)
from .rules import GoalView as GoalView
from .stages import GoalBounds as GoalBounds, Stage as Stage, Target as Target
from .zone import LoadShare as LoadShare, Zone as Zone, zone_in as zone_in
