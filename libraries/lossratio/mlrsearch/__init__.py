"""MLRsearch (RFC 9971): goals, load classification, search results, and the controller that chooses trials."""

from lossratio.mlrsearch.classification import Bound, Criterion, Tally, conditional_throughput
from lossratio.mlrsearch.constancy import Change, Inconstancy, LevelLoss, LossUnit, inconstancy_in, level_loss_in
from lossratio.mlrsearch.controller import MLRsearch, Purpose
from lossratio.mlrsearch.evidence import Evidence, RelevantBounds, classify, evidence_of
from lossratio.mlrsearch.forecast import Forecast
from lossratio.mlrsearch.goal import NDR, PDR, RFC2544, TST009, SearchGoal, SearchGoalWarning
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.hints import EARLIER_SEARCHES
from lossratio.mlrsearch.memory import ENOUGH, usual_rest
from lossratio.mlrsearch.result import GoalResult, IrregularReason, SearchResult, goal_result
from lossratio.mlrsearch.sequential import SequentialGoal
from lossratio.mlrsearch.stages import CoarseTarget, GoalBounds

__all__ = [
    "EARLIER_SEARCHES",
    "ENOUGH",
    "NDR",
    "PDR",
    "RFC2544",
    "TST009",
    "Bound",
    "Change",
    "CoarseTarget",
    "Criterion",
    "Evidence",
    "Forecast",
    "GoalBounds",
    "GoalResult",
    "Inconstancy",
    "IrregularReason",
    "LevelLoss",
    "LoadGrid",
    "LossUnit",
    "MLRsearch",
    "Purpose",
    "RelevantBounds",
    "SearchGoal",
    "SearchGoalWarning",
    "SearchResult",
    "SequentialGoal",
    "Tally",
    "classify",
    "conditional_throughput",
    "evidence_of",
    "goal_result",
    "inconstancy_in",
    "level_loss_in",
    "usual_rest",
]
