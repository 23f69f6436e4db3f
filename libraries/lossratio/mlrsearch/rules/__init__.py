"""The choice of a goal's next trial: the rules in their order. The first rule that wants a trial gets it.

| rule | question | trial |
| --- | --- | --- |
| `hint` | Did earlier searches prove a pair of loads, and does no trial speak against it? | a trial of that pair |
| `plan` | Do all trials have one length? | at the pair of loads whose proof takes the least time per success |
| `halving` | Did many loads turn out otherwise, or by chance? | farther and farther away, proved to the end |
| `fading` | Did a long trial lose the few frames that a short one could not show? | where a long one loses one frame |
| `descent` | Did a load fail a target although it passed the coarser one? | a load farther down |
| `proof` | Is the coarser target done? | the pair of loads that it left |
| `look` | Otherwise: where is the bound? | one short trial where the bound is expected |

Each rule is a function with its name, and its constants stand in its module.
"""

from collections.abc import Callable

from lossratio.mlrsearch.rules import fading, look, plan, proof, unsteady
from lossratio.mlrsearch.rules.view import Choice, GoalView

Rule = Callable[[GoalView], Choice | None]
"""Gives the trial that the rule wants next; None: the rule has no say now."""

RULES: tuple[Rule, ...] = (
    proof.hint,
    plan.plan,
    unsteady.halving,
    fading.fading,
    proof.descent,
    proof.proof,
    look.look,
)
"""The rules in their order."""


def choose(view: GoalView) -> Choice | None:
    """The trial that helps a goal most; None if the goal's bounds are found, and no trial contradicts them."""
    if view.first_open is None:
        return plan.ask_again(view)
    return next((choice for rule in RULES if (choice := rule(view)) is not None), None)
