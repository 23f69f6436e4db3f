"""MLRsearch with the settings of FD.io CSIT: parameters of `lossratio.mlrsearch.MLRsearch`.

CSIT's settings, and their names here:

- goals NDR and PDR (1 s trials, 21 s, exceed ratio 50 %, width 0.5 %): `GOALS`;
- minimum load 9001 frames/s per interface, which leaves room for 9000 frames/s of latency traffic: `MIN_LOAD`;
- a warm-up trial of 1 s at max load, whose result is ignored; the search ends when the minimum load is an upper bound
  for any goal ("fail fast"), and after 1200 s: `controller`;
- every trial takes 0.5 s besides its traffic, which counts towards its effective duration, so that 7 trials prove a
  lower bound, not 11: `TRIAL_OVERHEAD` and `MEASURER_ARGUMENTS`;
- a surplus of received frames counts as loss: `NEGATIVE_LOSS`, for `lossratio.trials.counters`;
- the forwarding rate at max load (MRR) as the first candidate load, the forwarding rate at that load as the second one,
  smaller candidates first: our controller does this with any parameters, but lacks CSIT's targets of 1 s and 4.58 s at
  four and two goal widths. If both loads are overloaded, it draws a line through both forwarding rates. On a SUT with
  the same forwarding rate at both loads, this line leads to the second candidate.

Two algorithms of a study search like this. `CSIT` searches for NDR and PDR, and its trials have CSIT's overhead.
`AS_CSIT` searches for any goals, with the overhead of the study. In both, the loads are those of the study.
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from lossratio.mlrsearch import NDR, PDR, MLRsearch, SearchGoal
from lossratio.trials import Measurer
from lossratio_study.algorithms import Algorithm, Goals
from lossratio_study.outcome import Outcome, searched
from lossratio_study.suts import Overhead, Subject

GOALS: Final = (NDR, PDR)

MIN_LOAD: Final = 9001.0
"""Frames per second per interface."""

TRIAL_OVERHEAD: Final = 0.5
"""Seconds that a trial of CSIT takes besides its traffic."""

TIMEOUT: Final = 1200.0
"""Seconds after which a search ends unfinished."""

WARM_UP_DURATION: Final = 1.0
"""Seconds."""

NEGATIVE_LOSS: Final = "csit"
"""The policy of `lossratio.trials.counters.output_from_counters`."""

MEASURER_ARGUMENTS: Final = MappingProxyType({"overhead": TRIAL_OVERHEAD, "count_overhead": True})
"""Arguments with which a `lossratio.simulation.SimulatedMeasurer` spends and counts time as CSIT's measurer does."""


def controller(max_load: float, *, min_load: float = MIN_LOAD, goals: Sequence[SearchGoal] = GOALS) -> MLRsearch:
    """Makes the controller of a search with CSIT's settings.

    Args:
        max_load: Largest load, frames per second per interface; CSIT computes it from the limits of the NICs.
        min_load: Smallest load, frames per second per interface.
        goals: The search goals.

    Raises:
        SearchError: If the loads make no sense.
    """
    return MLRsearch(goals, min_load, max_load, timeout=TIMEOUT, warm_up_duration=WARM_UP_DURATION, fail_fast=True)


def _search(goals: Goals, subject: Subject, measurer: Measurer) -> Outcome:
    return searched(controller(subject.max_load, min_load=subject.min_load, goals=goals), measurer)


def _are_csits(goals: Goals) -> bool:
    return tuple(goals) == GOALS


CSIT = Algorithm("CSIT", _search, _are_csits, overhead=Overhead(TRIAL_OVERHEAD, counted=True))
AS_CSIT = Algorithm("as CSIT", _search)
