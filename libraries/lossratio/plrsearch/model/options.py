"""The options of PLRsearch by name: likelihoods, weightings, selections, and reasons to stop."""

from enum import Enum
from typing import TypeVar

from lossratio.errors import SearchError


class LikelihoodName(str, Enum):
    """How a trial's count of lost frames is distributed around the fitting function's mean."""

    VARYING = "varying"
    """Poisson, around a capacity that varies normally from trial to trial; its variation is inferred."""
    POISSON = "poisson"
    """Poisson (draft 4.3.1). It is right and sharp for a SUT that never varies. For other SUTs, the interval is far too
    narrow."""
    GEOMETRIC = "geometric"
    """Geometric (FD.io CSIT's code): no matter how many frames a trial loses, its mean is uncertain by about 100 %."""


class Weighting(str, Enum):
    """How the two fitting functions are combined."""

    EVIDENCE = "evidence"
    """By the probability of the trials under each function: the function that fits better prevails."""
    EQUAL = "equal"
    """Half each (draft 5.3): the difference of the functions remains in the estimate as a systematic error."""


class SelectionName(str, Enum):
    """How the loads of trials are chosen."""

    POSTERIOR = "posterior"
    """Where a trial should reduce the uncertainty most. Some trials are in overload, where they show the capacity."""
    CSIT = "csit"
    """The rule, the Monte Carlo and the fitting functions of FD.io CSIT's code."""


class StopReason(str, Enum):
    """Why a search is over."""

    TIMEOUT = "timeout"
    """The time for trials is used up."""
    PRECISION = "precision"
    """The 95 % interval is as narrow as requested."""
    MIN_LOAD = "minimum load"
    """More than the target is lost at the minimum load, so the critical load is below, where no trial is possible."""
    MISFIT = "misfit"
    """The model does not fit the trials, and the search was asked to end in this case."""


Choice = TypeVar("Choice", bound=Enum)


def chosen(options: type[Choice], given: Choice | str, what: str) -> Choice:
    """The option with a name.

    Raises:
        SearchError: If there is no such option.
    """
    try:
        return options(given)
    except ValueError as error:
        raise SearchError(
            f"No {what} {given!r}: choose one of {[option.value for option in options]}."
        ) from error
