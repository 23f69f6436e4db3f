"""How the trials are described.

Trials at equal loads (replicates) decide. If counts at equal loads differ by chance, in batches, or by losses that do
not come from the load, a line (`local`) describes the loss near the target. If they differ by a varying capacity, both
fitting functions are integrated over it. With a likelihood other than ``varying``, the functions describe all trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

import numpy as np

from lossratio.plrsearch.model import (
    LONG_TRIALS,
    Array,
    CriticalLoadQuestion,
    LikelihoodName,
    TrialCounts,
    Weighting,
)
from lossratio.plrsearch.quadrature import Distribution, Posterior, posteriors
from lossratio.plrsearch.variation.bounded import LowestCapacity
from lossratio.plrsearch.variation.bucket import Bucket
from lossratio.plrsearch.variation.change import Change
from lossratio.plrsearch.variation.local import LocalFit
from lossratio.plrsearch.variation.once import AskedTrial, OnceLost, asked
from lossratio.plrsearch.variation.pauses import Allowed, Pauses
from lossratio.plrsearch.variation.rare import RareLoss, SeenCapacity, passed_follows_load
from lossratio.plrsearch.variation.replicates import Replicates, Scatter

_SHOWN = 3.0
"""If so many losses are expected, at least one of them is seen with a probability of 95 %."""
_FAR_BELOW, _FEW_FRAMES, _LOSSES = 0.9, 5.0, 3
"""At least so many trials that lose more than a few frames below this share of the forwarding rate may have pauses."""
_OF_DEVIATION, _MOST_BELOW = 8.0, 0.05
"""If the capacity varies, low capacities may be more frequent than in a normal distribution. So the critical load may
be lower by this many standard deviations of the capacity, but at most by this share of the load."""
_OF_LIGHTER = 2.0
"""Low capacities may also be rarer: a uniformly distributed capacity is never lower by more than 1.7 standard
deviations, where the critical load of a normal distribution is 3.7 of them below the mean. The critical load may be
higher by this many standard deviations."""


@dataclass(frozen=True)
class Description:
    """The posteriors of the fitting functions, or the line, and the trials that they describe."""

    posteriors: tuple[Posterior, ...]
    """One for each function; empty if a line describes the trials."""
    local: LocalFit | None
    """The line; None if the functions describe the trials."""
    question: CriticalLoadQuestion
    """Target and limits."""
    counts: TrialCounts
    """The trials that they describe: of usual length, and after the last change."""
    likelihood: LikelihoodName
    """How counts are distributed in them: `VARYING` becomes `POISSON` if the capacity is constant."""
    replicates: Replicates
    """What trials at equal loads show."""
    change: Change | None = None
    """The last change of the SUT; None: it stayed the same."""
    long: TrialCounts | None = None
    """The long trials after the last change; None: there are none."""
    pausing: TrialCounts | None = None
    """The trials that may show pauses; None: there are no such trials."""
    bucket: Bucket | None = None
    """The frames that pass only in short trials; None: there are none."""
    rare: RareLoss | None = None
    """A loss that does not come from the load; None: no such loss is seen."""
    once: OnceLost | None = None
    """Frames that each trial loses once, and that are not in the counts; None: no such losses are seen."""
    lowest: LowestCapacity | None = None
    """The lowest capacity, if the capacity varies between two bounds; None: no bounds are known."""
    asked: AskedTrial | None = None
    """The next trial that may show such losses; None: none is needed."""

    @cached_property
    def pauses(self) -> Pauses | None:
        """The pauses that lose frames besides overload; None: no pauses are seen. This takes a tenth of a second."""
        has_events = self.rare is not None or self.replicates.scatter is Scatter.EVENTS
        if self.pausing is None or not (has_events or self._loses_far_below_overload):
            return None
        return Pauses.of(self.pausing, has_batches=self.replicates.scatter is Scatter.BATCHES)

    @property
    def stated_pauses(self) -> Pauses | None:
        """The pauses, if some losses certainly do not come from the load and show how long pauses are."""
        if self.rare is None or self.pauses is None or not self.pauses.is_sure:
            return None
        return self.pauses

    @property
    def _loses_far_below_overload(self) -> bool:
        """Whether several trials lose frames far below the forwarding rate, and no line describes these losses."""
        if self.local is None or self.local.is_line:
            return False
        rate = SeenCapacity.of(self.counts).mean
        is_far = self.counts.load < _FAR_BELOW * rate
        has_lost = self.counts.lost > _FEW_FRAMES
        return bool(np.isfinite(rate)) and int(np.count_nonzero(is_far & has_lost)) >= _LOSSES

    @property
    def allows_verified(self) -> bool:
        """Whether pauses explain the losses that do not come from the load, and certainly allow a verified load."""
        return self.pauses is not None and self.pauses_allow.is_sure

    @property
    def most(self) -> float:
        """The highest load in frames per second that pauses and buckets may allow, which usual trials do not show."""
        allowed = self.pauses_allow.most
        if self.pauses is not None:
            allowed = max(allowed, self._highest_without_pauses(self.pauses))
        return min(allowed, self.most_without_pauses)

    @property
    def most_without_pauses(self) -> float:
        """The highest load in frames per second that trials can verify if there are no pauses."""
        allowed = self.in_long_run
        if self.once is not None:
            allowed = min(allowed, self.once.highest_load)
        if self.lowest is not None:
            allowed = min(allowed, self.lowest.surely)
        return allowed

    def _highest_without_pauses(self, pauses: Pauses) -> float:
        """The highest load at which trials would have shown the pauses, but lost no more than the target; 0: none."""
        above = self.counts.at(self.counts.load > self.pauses_allow.most)
        ordered = above.at(np.argsort(above.load, kind="stable"))
        expected = np.cumsum(pauses.least_losses(ordered.load) * ordered.duration)
        allowed = self.question.target_loss_ratio * np.cumsum(ordered.sent)
        is_refuted = (expected > _SHOWN) & (np.cumsum(ordered.lost) <= allowed)
        return float(ordered.load[is_refuted].max(initial=0.0))

    @cached_property
    def pauses_allow(self) -> Allowed:
        """The load that pauses allow. It is stated because pauses are too rare for trials at each load."""
        if self.pauses is None:
            return Allowed(self.question.max_load, self.question.max_load, self.question.max_load)
        return self.pauses.allowed(self.question)

    @property
    def in_long_run(self) -> float:
        """The highest load in frames per second that a bucket, and long trials, certainly allow.

        It is not below the minimum load.
        """
        allowed = self.question.max_load if self.bucket is None else self.bucket.rate
        seconds, forwarded = self._forwarded_in_long
        usual = SeenCapacity.of(self.counts).mean
        if np.isfinite(usual) and len(forwarded):
            # Each trial has the bucket's frames once, however long it is, so the difference of two trials has none.
            before = float(np.median(self.counts.duration))
            rate = (forwarded * seconds - usual * before) / (seconds - before)
            forwarded = np.minimum(forwarded, rate)
        limited = float(forwarded.min(initial=allowed))
        return max(limited, self.passed_in_long, self.question.min_load)

    @cached_property
    def passed_in_long(self) -> float:
        """The highest load in frames per second at which enough long trials lost no more than the target; 0: none.

        No long trial at this load, or below it, lost more.
        """
        if self.long is None:
            return 0.0
        is_quiet = self.long.lost <= self.question.target_loss_ratio * self.long.sent
        lossy = float(self.long.load[~is_quiet].min(initial=np.inf))
        loads = self.long.load[is_quiet & (self.long.load < lossy)]
        passed, trials = np.unique(loads, return_counts=True)
        return float(passed[trials >= LONG_TRIALS].max(initial=0.0))

    @property
    def most_in_long_run(self) -> float:
        """The highest load in frames per second that a bucket, and long trials in overload, may allow."""
        allowed = self.question.max_load
        if self.bucket is not None:
            allowed = self.bucket.rate + self.bucket.error
        _, forwarded = self._forwarded_in_long
        return min(allowed, float(forwarded.max())) if len(forwarded) else allowed

    @cached_property
    def _forwarded_in_long(self) -> tuple[Array, Array]:
        """Seconds and forwarding rates of long trials in overload."""
        if self.long is None:
            return np.zeros(0), np.zeros(0)
        overloaded = self.long.at(self.long.is_overload)
        return overloaded.duration, overloaded.forwarding_rate

    @property
    def heavier_tails(self) -> float:
        """How much lower the critical load may be because low capacities may be frequent, as a share of the load."""
        mode = self.best.mode
        return min(_OF_DEVIATION * float(mode.deviation / mode.mrr), _MOST_BELOW)

    @property
    def lighter_tails(self) -> float:
        """How much higher the critical load may be because low capacities may be rare, as a share of the load."""
        mode = self.best.mode
        return _OF_LIGHTER * float(mode.deviation / mode.mrr)

    @property
    def best(self) -> Posterior:
        """The posterior of the function that fits best, if functions describe the trials."""
        return _best(self.posteriors)

    @property
    def reported(self) -> tuple[Posterior | LocalFit, ...]:
        """The distributions of the critical load."""
        if self.local is not None:
            return (self.local,)
        return self.posteriors

    def weights(self, weighting: Weighting) -> tuple[float, ...]:
        """The weights of the reported distributions."""
        number = len(self.reported)
        if self.local is not None or weighting is Weighting.EQUAL:
            return tuple(1.0 / number for _ in self.reported)
        nats = [posterior.log_evidence - self.best.log_evidence for posterior in self.posteriors]
        shares = np.exp(nats)
        return tuple(float(share) for share in shares / shares.sum())

    def shared(self, weighting: Weighting) -> float | None:
        """Share of the variance that comes from the model, and that other soak tests of the device would have, too.

        It comes from the error of the line's shape, or from the difference between the fitting functions. None: the
        critical load is only known to lie between two loads, so this share is not known.
        """
        mixed = self.mixed(weighting)
        if not mixed.stdev:
            return None

        if self.local is not None:
            if not self.local.is_line:
                return None
            return float(min(1.0, (self.local.shape_stdev * mixed.mean / mixed.stdev) ** 2))

        parts = zip(self.weights(weighting), self.reported, strict=True)
        between = sum(weight * (part.mean - mixed.mean) ** 2 for weight, part in parts)
        return float(min(1.0, between / mixed.stdev**2))

    def mixed(self, weighting: Weighting) -> Distribution:
        """The critical load under all reported distributions together."""
        return Distribution.mixed(self.reported, self.weights(weighting))

    @cached_property
    def batch(self) -> float:
        """Frames that are lost at a time."""
        return self.replicates.batch


def described(
    counts: TrialCounts,
    question: CriticalLoadQuestion,
    likelihood: LikelihoodName,
    *,
    for_selection: bool = False,
) -> Description:
    """The description of trials in the order of measurement.

    Posteriors are rough if it only serves to choose a load.
    """
    if likelihood is not LikelihoodName.VARYING:
        known = posteriors(counts, question, likelihood, for_selection=for_selection)
        return Description(known, None, question, counts, likelihood, Replicates.of(counts))

    not_short = counts.at(~counts.is_short)
    short = counts.at(counts.is_short)
    next_asked = asked(not_short, short)
    once = OnceLost.of(not_short, short)
    if once is not None:
        counts = once.without(counts)
    change = Change.of(counts)
    is_after = np.arange(len(counts)) >= (0 if change is None else change.trials)
    usual = counts.at(is_after & ~counts.is_long & ~counts.is_short)
    long = counts.at(is_after & counts.is_long)
    bucket = Bucket.of(usual)
    if bucket is not None:
        usual = usual.at(~Bucket.is_short(usual))
    replicates = replace(Replicates.of(usual), is_final=not for_selection)
    rare = RareLoss.of(usual, long, max(replicates.batch, replicates.typical))
    # Record: what is known before the fit.
    found = Description(
        (),
        None,
        question,
        usual,
        likelihood,
        replicates,
        change,
        long,
        bucket=bucket,
        rare=rare,
        once=once,
        asked=next_asked,
    )

    is_varying = replicates.scatter is Scatter.VARYING and usual.lost.any()
    may_vary = is_varying and not passed_follows_load(usual)
    lowest = LowestCapacity.of(usual) if may_vary else None
    if lowest is not None and rare is None:
        local = LocalFit.between(lowest.least, lowest.least, lowest.most, question)
        local = replace(local, lossy=lowest.most)
        poisson = LikelihoodName.POISSON
        return replace(found, local=local, likelihood=poisson, lowest=lowest)
    if may_vary and rare is None:
        divided = usual.in_batches(replicates.batch)
        varying = posteriors(divided, question, likelihood, for_selection=for_selection)
        if _may_vary_as_much(usual, _best(varying)):
            return replace(found, posteriors=varying)
    if is_varying:
        # The losses only scatter like those of a varying capacity: overload shows that it varies less than that.
        replicates = replace(replicates, growth=0.0, much=0.0)
        found = replace(found, replicates=replicates)
    # A shorter trial at such a load does not lose more.
    is_quiet = long.lost <= question.target_loss_ratio * long.sent
    shown = usual.with_more(long.at(is_quiet))
    local = LocalFit.of(
        shown.in_batches(replicates.batch),
        question,
        may_have_line=replicates.scatter is not Scatter.EVENTS,
        is_final=not for_selection,
    )
    pausing = usual.with_more(long) if replicates.scatter is not Scatter.CHANCE else None
    return replace(found, local=local, likelihood=LikelihoodName.POISSON, pausing=pausing)


def _may_vary_as_much(counts: TrialCounts, known: Posterior) -> bool:
    """Whether the capacity may vary in overload as much as it does by a posterior."""
    return bool(known.mode.deviation <= SeenCapacity.of(counts).variation)


def _best(known: Sequence[Posterior]) -> Posterior:
    return max(known, key=attrgetter("log_evidence"))
