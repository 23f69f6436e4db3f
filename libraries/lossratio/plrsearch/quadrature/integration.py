"""Posteriors of both fitting functions from counts: integrated anew, or with some trials more at the same nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lossratio.plrsearch.likelihood import (
    GeometricLikelihood,
    Likelihood,
    Model,
    Parameters,
    PoissonLikelihood,
    Prior,
    VaryingCapacityLikelihood,
)
from lossratio.plrsearch.model import (
    FUNCTIONS,
    Array,
    CriticalLoadQuestion,
    FittingFunction,
    LikelihoodName,
    TrialCounts,
)
from lossratio.plrsearch.quadrature import constant_capacity, varying_capacity
from lossratio.plrsearch.quadrature.panels import Panels, masses_of, moments_of, roughness
from lossratio.plrsearch.quadrature.posterior import Posterior

_ROUGH = 1e-2
"""Share of the mass by which all panels together may be wrong."""
_DEEP = 12.0
"""Nats below the maximum; an edge of the nodes' range that is deeper has no mass."""
_LESS_THAN_POISSON = 4.0
"""Nats by which the evidence of a varying capacity may be below Poisson's: for the prior's share of small ones."""
_RISE = 3.0
"""Nats by which an edge may rise; if it rises more, the posterior leaves the nodes' range."""


def posteriors(
    counts: TrialCounts, question: CriticalLoadQuestion, likelihood: LikelihoodName, *, for_selection: bool = False
) -> tuple[Posterior, ...]:
    """The posterior of each fitting function.

    Args:
        counts: The trials.
        question: Target and limits.
        likelihood: How counts are distributed.
        for_selection: Whether a rough posterior is enough: to choose a load, not to report.
    """
    prior = Prior(question.max_load / 2.0)
    if likelihood is LikelihoodName.VARYING:
        varying = VaryingCapacityLikelihood(counts)

        def with_varying(function: FittingFunction) -> Posterior:
            model = Model(function, varying, prior)
            if for_selection:
                rough, _ = varying_capacity.integrate_varying(model, varying, question, varying_capacity.ROUGH)
                return Posterior(function, question, rough, varying.constant)
            least = _poisson_log_mass(counts, function, question) - varying.constant - _LESS_THAN_POISSON
            panels, error = varying_capacity.integrate_exactly(model, varying, question, least)
            return Posterior(function, question, panels, varying.constant, error)

        return tuple(with_varying(function) for function in FUNCTIONS)
    bound = bound_likelihood(counts, likelihood)
    accuracy = constant_capacity.ROUGH if for_selection else constant_capacity.EXACT

    def constant(function: FittingFunction) -> Posterior:
        panels = constant_capacity.integrate(Model(function, bound, prior), question, accuracy)
        return Posterior(function, question, panels, bound.constant)

    return tuple(constant(function) for function in FUNCTIONS)


def _poisson_log_mass(counts: TrialCounts, function: FittingFunction, question: CriticalLoadQuestion) -> float:
    """The logarithm of Poisson's evidence: with a small deviation of the capacity, Poisson is a part of `varying`."""
    poisson = PoissonLikelihood(counts)
    model = Model(function, poisson, Prior(question.max_load / 2.0))
    panels = constant_capacity.integrate(model, question, constant_capacity.ROUGH)
    return moments_of(panels).log_mass + poisson.constant


def bound_likelihood(counts: TrialCounts, likelihood: LikelihoodName) -> Likelihood:
    """The likelihood of these counts."""
    if likelihood is LikelihoodName.VARYING:
        return VaryingCapacityLikelihood(counts)
    return PoissonLikelihood(counts) if likelihood is LikelihoodName.POISSON else GeometricLikelihood(counts)


def updated(
    before: Posterior, integrated: Posterior, trials: TrialCounts, likelihood: LikelihoodName
) -> Posterior | None:
    """The posterior with some trials more, at the same nodes; None if it has to be integrated anew.

    Args:
        before: The posterior before these trials.
        integrated: The posterior that was integrated last; it has the same nodes.
        trials: The new trials.
        likelihood: How counts are distributed.
    """
    bound = bound_likelihood(trials, likelihood)
    panels = before.panels
    at = Parameters(
        mrr=np.exp(panels.log_mrr)[:, :, None],
        spread=np.exp(panels.log_spread)[:, None, None],
        deviation=panels.deviation[:, None, None],
    )
    after = replace(panels, log_density=panels.log_density + bound.value(before.function, at))
    edges = np.minimum(_depths(integrated.panels), _DEEP)
    if _error(after) > _ROUGH or np.any(_depths(after) < edges - _RISE):
        return None
    return Posterior(before.function, before.question, after, before.constant + bound.constant)


def _error(panels: Panels) -> float:
    """About the share of the mass by which the panels are wrong."""
    top = panels.log_density.max(axis=1, keepdims=True)
    return float(np.sum(masses_of(panels)[0].sum(axis=1) * roughness(np.exp(panels.log_density - top))))


def _depths(panels: Panels) -> Array:
    """Nats of the edges of the nodes' range below the maximum: both edges in log m, in log a and in log s."""
    low, high = np.full(panels.row.max() + 1, np.inf), np.full(panels.row.max() + 1, -np.inf)
    np.minimum.at(low, panels.row, panels.low)
    np.maximum.at(high, panels.row, panels.high)
    tops = panels.log_density.max(axis=1)
    edges = [
        panels.log_density[panels.low == low[panels.row], 0].max(),
        panels.log_density[panels.high == high[panels.row], -1].max(),
    ]
    for position in (panels.log_spread, panels.deviation):
        edges += [tops[position == position.min()].max(), tops[position == position.max()].max()]
    return np.asarray(tops.max() - np.array(edges))
