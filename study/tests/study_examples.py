"""What several tests of studies need: a SUT without noise, a small goal set, a plan of few cells, and rows made up."""

from __future__ import annotations

from lossratio.mlrsearch import SearchGoal
from lossratio.simulation import SharpKnee
from lossratio_study.search import GoalSet
from lossratio_study.study import NO_OVERHEAD, Study
from lossratio_study.suts import Subject

CAPACITY = 1e6
KNEE = Subject("sharp knee", 0, SharpKnee(CAPACITY), 1e3, 1e7)
QUICK = SearchGoal(0.0, 0.5, 1.0, 5.0, 0.01, 1.0, name="quick")
QUICK_SET = GoalSet("quick", "quick NDR", (QUICK,))


def small_study(**changes):
    settings = {
        "family_set": "development",
        "families": ("sharp knee", "jitter"),
        "goal_sets": ("G4",),
        "algorithms": ("lossratio",),
        "overheads": (NO_OVERHEAD,),
        "seeds": (0, 1),
        "repeats": 1,
    }
    return Study(**(settings | changes))


def rows(pandas, *searches, **common):
    """A data frame with a row for each search; what a search does not say is the same everywhere."""
    default = {
        "goal_set": "G1",
        "family": "sharp knee",
        "seed": 0,
        "repeat": 0,
        "overhead": 0.0,
        "counted": False,
        "algorithm": "lossratio",
        "goal": "NDR",
        "goal_number": 0,
        "elapsed": 10.0,
        "trials": 10,
        "controller_seconds": 0.001,
        "certificate": 5.0,
        "faults": "",
        "lower": 99.0,
        "upper": 99.5,
        "throughput": 99.0,
        "regular": True,
        "truth": 100.0,
    }
    return pandas.DataFrame([default | common | search for search in searches])
