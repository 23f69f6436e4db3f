"""Whether the model fits the trials.

If it does not, its estimate is not a measurement, no matter how narrow its interval. A load that is verified without a
model does not depend on the fit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import scipy

from lossratio.plrsearch.model import LikelihoodName
from lossratio.plrsearch.quadrature import posteriors
from lossratio.plrsearch.variation import Description, Scatter, SeenCapacity
from lossratio.trials import Observed
from lossratio.units import as_sentence, format_about, format_frame_rate

_ENOUGH = 4
_PARAMETERS = 2
_IMPROBABLE = 0.002
"""Largest probability of a flagged sample under the model."""
_LARGEST_ERROR = 0.05
"""Largest error of an integral, in nats and in standard deviations."""
_MATTERS = 6.0
"""A function whose evidence is more than this many nats below the better function's does not matter."""


@dataclass(frozen=True)
class FitCheck(Observed):
    """How well the model fits the trials. Each value beyond its limit is a reason for a misfit."""

    chi_squared_per_trial: float | None
    """Chi-squared per trial around the likeliest Poisson curve; null: the likelihood is neither ``poisson`` nor
    ``geometric``, or too few trials lost frames."""
    function_distance_stdevs: float
    """Distance between the functions' mean critical loads, in their standard deviations; 0 if there is only one
    function. The distance is large in nearly all healthy runs under the Poisson likelihood, so it is no reason by
    itself."""
    replicates_chi_squared: float | None
    """Chi-squared per degree of freedom of trials at equal loads: about 1 if they only differ by chance; null: no loads
    are equal."""
    replicates_freedom: int
    """Its degrees of freedom."""
    scatter: str
    """How counts differ at equal loads: by ``chance``, in ``batches``, by ``events`` in some trials, by a ``varying``
    capacity, or ``unknown``."""
    batch_frames: float
    """Number of frames that are lost at once."""


@dataclass(frozen=True)
class Misfit:
    """How well the model fits."""

    reasons: tuple[str, ...]
    """Why the model does not fit, in words; empty if it fits."""
    fit: FitCheck
    """The numbers behind the reasons."""

    @property
    def fits(self) -> bool:
        """Whether nothing speaks against the model."""
        return not self.reasons


def check(description: Description) -> Misfit:
    """Checks the model against the trials."""
    replicates = description.replicates
    stated = description.likelihood
    chi_squared = np.zeros(0)
    distance = 0.0
    if description.local is None:
        one, other = description.posteriors
        stdev = max(float(np.hypot(one.stdev, other.stdev)), 1e-300 * one.mean)
        distance = abs(one.mean - other.mean) / stdev
        if stated is not LikelihoodName.VARYING:
            chi_squared = _chi_squared(description)

    per_trial = None
    if len(chi_squared) >= _ENOUGH:
        per_trial = float(chi_squared.mean())

    # Record: what the trials say about the model.
    return Misfit(
        reasons=(*_reasons(description, chi_squared),),
        fit=FitCheck(
            chi_squared_per_trial=per_trial,
            function_distance_stdevs=distance,
            replicates_chi_squared=replicates.ratio,
            replicates_freedom=replicates.freedom,
            scatter=replicates.scatter.value,
            batch_frames=replicates.batch,
        ),
    )


def loss_process(description: Description) -> Iterator[str]:
    """What the trials say about how frames are lost, in words."""
    replicates = description.replicates
    if description.change is not None:
        yield str(description.change)
    if description.once is not None:
        yield as_sentence(str(description.once))
    if replicates.has_multiples:
        size = replicates.multiple
        yield (
            f"Frames are lost in batches of {size} or of a multiple of it, because nearly all counts of lost frames "
            f"are multiples of {size}"
        )

    if replicates.scatter is Scatter.EVENTS and description.rare is not None:
        yield as_sentence(str(description.rare))
    if description.stated_pauses is not None:
        yield str(description.stated_pauses)
    if description.bucket is not None:
        yield str(description.bucket)
    has_capacities = description.lowest is not None or description.posteriors
    if replicates.scatter is Scatter.VARYING and has_capacities:
        capacity = SeenCapacity.of(description.counts)
        if capacity.has_equal:
            percent = format_about(100.0 * capacity.stdev / capacity.mean)
            yield (
                "Forwarding rates in overload differ from trial to trial, with a standard deviation of "
                f"{percent} % of {format_frame_rate(capacity.mean)}, without the most unusual tenth of these trials"
            )


def _chi_squared(description: Description) -> np.ndarray:
    """Chi-squared of each trial that is expected to lose a frame, around the likeliest Poisson curve."""
    best, counts = description.best, description.counts
    if description.likelihood is LikelihoodName.GEOMETRIC:
        known = posteriors(counts, best.question, LikelihoodName.POISSON, for_selection=True)
        best = max(known, key=attrgetter("log_evidence"))
    expected = np.exp(best.mode.log_loss_rate(counts.load)) * counts.exposure
    return ((counts.lost - expected) ** 2 / np.maximum(expected, 1.0))[expected > 1.0]


def _reasons(description: Description, chi_squared: np.ndarray) -> Iterator[str]:
    """The reasons for a misfit: integrals that are not exact, or counts that scatter differently from the model."""
    for posterior in description.posteriors:
        if (
            posterior.error > _LARGEST_ERROR
            and posterior.log_evidence > description.best.log_evidence - _MATTERS
        ):
            yield (
                f"The posterior of the {posterior.name} function is too rough for the integral: its mass may be wrong "
                f"by a share of {posterior.error:.2g}."
            )

    freedom = len(chi_squared) - _PARAMETERS
    if (
        len(chi_squared) >= _ENOUGH
        and scipy.special.chdtrc(freedom, chi_squared.sum()) <= _IMPROBABLE
    ):
        yield (
            f"Counts of lost frames scatter more than by chance: chi-squared is {chi_squared.mean():.3g} per trial "
            "around the best curve, where it should be about 1. The SUT's capacity varies from trial to trial, or "
            "neither function has the shape of its loss."
        )
