"""The goal sets that searches are compared on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, SearchGoal, SearchGoalWarning


@dataclass(frozen=True)
class GoalSet:
    """The goals of one search.

    Attributes:
        name: Short name for tables.
        title: Description.
        goals: The search goals.
        countable_overhead: Whether the overhead of a trial may count towards the goals' duration sums. False
            where a trial of 60 s would count 60.5 s of a sum of 120 s: one trial would decide, and verify no loss.
    """

    name: str
    title: str
    goals: tuple[SearchGoal, ...]
    countable_overhead: bool = True


def _one_trial(loss_ratio: float) -> SearchGoal:
    return SearchGoal(loss_ratio, 0.0, 30.0, 30.0, 0.005, 1.0, name=f"loss {loss_ratio * 100:g} %, one trial")


def _csit(loss_ratio: float) -> SearchGoal:
    with warnings.catch_warnings():
        # Goals with a width below the loss ratio are compared here on purpose.
        warnings.simplefilter("ignore", SearchGoalWarning)
        return SearchGoal(loss_ratio, 0.5, 1.0, 21.0, 0.005, 1.0, name=f"loss {loss_ratio * 100:g} %")


GOAL_SETS: Mapping[str, GoalSet] = MappingProxyType(
    {
        goal_set.name: goal_set
        for goal_set in (
            GoalSet("G1", "NDR and PDR of CSIT", (NDR, PDR)),
            GoalSet("G2", "RFC 2544", (RFC2544,)),
            GoalSet("G3", "TST009", (TST009,), countable_overhead=False),
            GoalSet("G4", "quick NDR", (SearchGoal(0.0, 0.5, 1.0, 5.0, 0.01, 1.0, name="quick NDR"),)),
            GoalSet("G5", "loss 0, 0.1, 0.5, 1 %", (_csit(0.0), _csit(0.001), _csit(0.005), _csit(0.01))),
            GoalSet("G6", "NDR and PDR by single trials, as CSIT had them first", (_one_trial(0.0), _one_trial(0.005))),
        )
    }
)
"""All goal sets by name."""
