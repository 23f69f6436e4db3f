"""The result of PLRsearch: the critical load of each fitting function and of both together, from any trials."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from types import MappingProxyType

import numpy as np
import scipy

from lossratio.checked_arguments import checked
from lossratio.errors import SearchError
from lossratio.plrsearch.estimate.guard import (
    NEAR,
    GuardStatement,
    Verdict,
    guard,
    lost_near,
    supported,
    within_target,
)
from lossratio.plrsearch.estimate.history import CsitEstimate, IntervalPoint
from lossratio.plrsearch.estimate.misfit import Misfit, check, loss_process
from lossratio.plrsearch.model import (
    CriticalLoadQuestion,
    LikelihoodName,
    StopReason,
    TrialCounts,
    Weighting,
    chosen,
    collect,
)
from lossratio.plrsearch.quadrature import Distribution, Posterior
from lossratio.plrsearch.variation import Description, LocalFit, Scatter, described
from lossratio.trials import TrialResult
from lossratio.units import as_sentence, format_frame_rate, format_target

_LIMIT_SHARE = 0.025
"""If the probability beyond a limit is larger than this, the limit is part of the answer, because the 95 % interval
ends there."""

_INTERVAL = 2.0 * 1.96
"""Width of a normal distribution's 95 % interval, in standard deviations."""
_CLOCK = 10e-6
"""Minimum half-width of an interval, as a share of the load."""
_ALMOST_SURE = 0.95
"""Probability with which a rare loss is among the trials that would show it."""
_LONGEST = 86_400.0
"""Longest time between losses, in seconds, for which a longer search is recommended."""
_MOSTLY = 0.5
"""If more than this share of the trials at a load have no loss, a loss there is a rare loss."""
TIME_FOR_RARE = 6.0
"""Seconds of a search per second between the losses that it has to see: half of its time shows rare losses, and three
of them have to be expected (see `CriticalLoadEstimate.rarest_s`)."""
_SHOW_LOWEST = 12
"""Minimum number of trials that show the lowest capacity."""
_ABOVE = 1.0 + 1e-9
"""Equal loads differ by less than this factor."""
_QUIET, _CLEAN = 1000.0, 3.0
"""Largest loss ratio, in targets, of trials that show a rare loss, and of trials that may contain rare losses."""


@dataclass(frozen=True)
class CriticalLoadEstimate:
    """The result of PLRsearch. All loads are in frames per second per interface, as trial loads are."""

    question: CriticalLoadQuestion
    """Target and limits."""
    likelihood: LikelihoodName
    """How counts are distributed in the model."""
    weighting: Weighting
    """How `median`, `mean`, `stdev` and `interval` combine the functions."""
    counts: TrialCounts = field(repr=False)
    """The trials on which the estimate is based, in the order in which they were measured."""
    description: Description = field(repr=False)
    """How the trials are described: which of them are used, and how they differ at equal loads."""
    stopped_by: StopReason | None = None
    """Why the search ended; None if it still goes on, or if there was no search."""
    history: tuple[IntervalPoint, ...] = field(default=(), repr=False)
    """The estimates during the search, if there was one."""
    csit: CsitEstimate | None = None
    """What FD.io CSIT's code reports, if its selection chose the loads."""
    stopping_factor: float = 1.0
    """Factor by which `interval` was widened because chance may have ended the search early."""

    @cached_property
    def functions(self) -> Mapping[str, Posterior | LocalFit]:
        """The distributions of the critical load, by name: of the fitting functions, or of the line (``local``)."""
        return MappingProxyType({part.name: part for part in self.description.reported})

    @cached_property
    def guard(self) -> GuardStatement:
        """The highest load that is verified without a model.

        Without such a load, what the frames at and just below the median say.
        """
        described = self.description
        lowest = self._interval(0.95)[0]
        most = described.most

        if described.likelihood is LikelihoodName.VARYING:
            # The trials at a load may all have missed the low capacities that lose the target there.
            most = min(most, self.median)
        stated = guard(
            described.counts,
            self.question,
            self.median,
            lowest,
            described.long,
            described.batch,
            most,
        )
        once = described.once
        return stated if once is None else replace(stated, once_lost_frames=once.most)

    @property
    def verified(self) -> float | None:
        """The highest load that is verified, in frames per second: the first answer. None: no load is verified."""
        is_below = self.guard.least_loss_ratio <= self.question.target_loss_ratio
        if self.guard.verdict is Verdict.VERIFIED and is_below:
            return self.guard.load_per_interface_fps
        return None

    @cached_property
    def stated(self) -> float:
        """The load that is stated, in frames per second: the verified load, or else a load that nothing speaks against.

        With a likelihood other than ``varying``, the median is stated instead of the latter.
        """
        if self.verified is not None:
            return self.verified
        if self.likelihood is not LikelihoodName.VARYING or self.is_surely_at_most_min_load:
            return self.median
        return self._not_contradicted

    @property
    def _not_contradicted(self) -> float:
        """The load to state if none is verified: a load that no trial contradicts."""
        known = self.description
        stated = self._allowed_by_usual
        if known.posteriors:
            stated = max(stated, self._near_lowest_seen)
        if known.replicates.scatter in (Scatter.UNKNOWN, Scatter.CHANCE):
            # Many trials disprove pauses that allow less.
            within = within_target(known.counts, self.question.target_loss_ratio) or 0.0
            stated = max(stated, (1.0 - NEAR) * min(within, known.most_without_pauses))
        # Long trials disprove a bucket that allows less.
        return max(stated, (1.0 - NEAR) * min(known.passed_in_long, known.most))

    @property
    def _near_lowest_seen(self) -> float:
        """A load just below the lowest capacity that was seen, in frames per second; 0: too few trials were above it.

        If the capacity varies a lot, a normal distribution has a median and an interval that are far lower, but few
        devices are ever so slow.
        """
        counts = self.description.counts
        is_lossy = counts.lost > self.question.target_loss_ratio * counts.sent
        lowest = (1.0 - NEAR) * float(counts.forwarding_rate[is_lossy].min(initial=np.inf))
        shown = int(np.count_nonzero(counts.load >= lowest))
        return lowest if shown >= _SHOW_LOWEST else 0.0

    @property
    def _allowed_by_usual(self) -> float:
        """The load that pauses allow, or one that no trial of usual length contradicts, in frames per second."""
        known = self.description
        lowest, highest = self._interval(0.95)
        allowed = known.pauses_allow
        # Without a load that lost nothing, the pauses are all that is known.
        is_known = allowed.is_known or lowest <= self.question.min_load
        if known.pauses is not None and is_known and allowed.least <= highest:
            most = min(allowed.likeliest, highest, known.in_long_run)
            return max((1.0 - NEAR) * most, self.question.min_load)

        if known.local is not None and not known.local.is_line:
            lowest = known.local.quiet
        lowest = min(lowest, known.in_long_run)
        quiet = supported(known.counts, self.question, lowest, known.batch)

        # Without a line near the target, few trials without loss may be luck, and in short trials a bucket may pass
        # them. Rare losses may be missing by chance.
        has_line = known.local is None or known.local.is_line
        is_described = has_line and known.bucket is None
        has_others = known.replicates.scatter in (Scatter.BATCHES, Scatter.EVENTS)
        is_shown = is_described or known.passed_in_long >= quiet
        if has_others or not is_shown or lost_near(known.counts, quiet):
            quiet = max((1.0 - NEAR) * quiet, self.question.min_load)
        # Pauses also explain why lower loads lost frames.
        return quiet if known.pauses is None else max(quiet, min(allowed.least, lowest))

    @cached_property
    def trial_s(self) -> float | None:
        """Seconds of most trials; None without trials."""
        duration = self.description.counts.duration
        return float(np.median(duration)) if len(duration) else None

    @cached_property
    def rarest_s(self) -> float:
        """Seconds between random losses at the stated load that would almost certainly be in the trials.

        The result is a third of the seconds of traffic near this load in which such losses would be seen. If three
        losses are expected, none is seen with a probability of 5 % (Hanley and Lippman-Hand 1983). If some were seen,
        more of them were expected.
        """
        parts = (self.description.counts, self.description.long)
        watched = [self._watched(part) for part in parts if part is not None]
        events = sum(number for _, number in watched)
        expected = float(scipy.special.gammaincinv(events + 1.0, _ALMOST_SURE))
        return sum(seconds for seconds, _ in watched) / expected

    def _watched(self, counts: TrialCounts) -> tuple[float, int]:
        """Seconds of the trials in which a rare loss would be seen, and the number of trials in which it was seen."""
        sent = counts.sent
        scatter = self.description.replicates.scatter
        most = _CLEAN if scatter in (Scatter.UNKNOWN, Scatter.EVENTS) else _QUIET
        is_quiet = counts.lost <= most * self.question.target_loss_ratio * sent + _CLEAN
        is_near = counts.load >= (1.0 - NEAR) * self.stated
        if self.verified is None:
            # The stated load may be this far below the trials that support it.
            is_near &= counts.load <= _ABOVE * self.stated / (1.0 - NEAR)
        elif self.stated < (1.0 - NEAR / 2.0) * self.median:
            # Higher loads were given up because of their losses.
            is_near &= counts.load <= self.stated
        seconds = float(counts.duration[is_quiet & is_near].sum())
        if scatter is not Scatter.EVENTS:
            return seconds, 0

        # A loss where most trials lose nothing does not come from the load.
        _, group = np.unique(counts.load, return_inverse=True)
        quiet_share = np.bincount(group, is_quiet) / np.maximum(np.bincount(group), 1)
        return seconds, int(np.count_nonzero(is_near & ~is_quiet & (quiet_share[group] > _MOSTLY)))

    @cached_property
    def misfit(self) -> Misfit:
        """Whether the model fits the trials, and if not, why.

        If the critical load is below the minimum load, no model is needed, because the trials there show the loss.
        There are no reasons for a misfit then.
        """
        misfit = check(self.description)
        if self.is_surely_at_most_min_load:
            return replace(misfit, reasons=())
        return misfit

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """What the trials say about how frames are lost, in words; without what `doubt` says."""
        doubt = as_sentence(self.doubt or "")
        said = [words for words in loss_process(self.description) if words not in doubt]
        rare = as_sentence(str(self.description.rare))
        if self.verified is not None and rare in said:
            said[said.index(rare)] += "; the verified load allows for such losses"
        return tuple(said)

    @property
    def doubt(self) -> str | None:
        """Why the stated load may be wrong, other than too few frames without loss; None: there is no doubt."""
        if self.description.once is not None:
            return str(self.description.once)
        said = self.guard
        if said.verdict is Verdict.VERIFIED:
            return self._rare
        has_events = self.description.replicates.scatter is Scatter.EVENTS
        has_losses = said.lost_frames > 0 or self.description.batch > 1.0 or has_events
        lacks_frames_only = said.missing_frames is not None and not said.missing_trials
        if said.verdict is Verdict.EXTRAPOLATED and lacks_frames_only and not has_losses:
            return None

        lowest = self._lowest_is_lossy
        if lowest is not None:
            return (
                "no load is verified; even the lowest load that was tried, "
                f"{format_frame_rate(lowest)}, lost more than the target"
            )
        return f"no load is verified; {said}"

    @property
    def _lowest_is_lossy(self) -> float | None:
        """The lowest load that was tried, if all trials are above the stated load, and lost too much there."""
        tried = self.description.counts
        if not len(tried):
            return None
        lowest = float(tried.load.min())
        there = tried.at(tried.load == lowest)
        is_lossy = there.lost.sum() > self.question.target_loss_ratio * there.sent.sum()
        return lowest if is_lossy and self.stated < lowest else None

    @property
    def _rare(self) -> str | None:
        """Why the verified load may lose more than the target, although its trials did not; None: no reason."""
        rare, said = self.description.rare, self.guard
        largest = said.largest_burst_frames
        if rare is None or largest is None or rare.frames <= largest:
            return None
        if self.description.allows_verified:
            return None

        counts = self.description.counts
        is_there = counts.load >= said.load_per_interface_fps
        is_there &= counts.load <= said.highest_load_per_interface_fps
        seconds = float(counts.duration[is_there].sum())
        allowed = rare.frames / (self.question.target_loss_ratio * said.frames / seconds)
        allowed = float(f"{allowed:.2g}")
        searched = float(counts.time.max(initial=0.0))
        advice = ""
        if allowed <= _LONGEST:
            is_longer = TIME_FOR_RARE * allowed > searched
            advice = f"search with rarest={allowed:.0f} s" if is_longer else "search for longer"
        return rare.in_doubt(allowed, said.load_per_interface_fps, seconds, advice)

    @property
    def is_regular(self) -> bool:
        """Whether nothing speaks against the stated load."""
        return self.doubt is None and self.misfit.fits and self.limits is None

    @property
    def weights(self) -> tuple[float, ...]:
        """The functions' weights by `weighting`."""
        return self.description.weights(self.weighting)

    @cached_property
    def combined(self) -> Distribution:
        """The functions combined by `weighting`: the distribution of the critical load."""
        return self.description.mixed(self.weighting)

    @cached_property
    def median(self) -> float:
        """The median critical load in the model, or less if less passes in the long run."""
        return min(self.combined.quantile(0.5), self.description.in_long_run)

    @property
    def mean(self) -> float:
        """Mean critical load in the model, which only knows what passes in trials of usual length."""
        return self.combined.mean

    @property
    def stdev(self) -> float:
        """Standard deviation of the critical load."""
        return self.combined.stdev

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """Loads that enclose the critical load with this probability, with equal tails.

        Each end is farther out than in the model by one frame in the longest trial, but within the limits, because a
        trial cannot distinguish two loads at which it sends the same number of frames. `stopping_factor` also widens
        the interval. With the likelihood ``varying``, each end is at least 10 millionths from the median, because no
        clock is better.
        """
        low, high = self._interval(probability)
        known = self.description
        has_others = known.rare is not None or known.replicates.scatter is Scatter.EVENTS
        if has_others and self.verified is not None:
            # The estimate only knows losses that come from the load.
            low = min(low, self.verified)
        if self.likelihood is LikelihoodName.VARYING:
            low = min(low, max((1.0 - _CLOCK) * self.median, self.question.min_load))
            high = max(high, min((1.0 + _CLOCK) * self.median, self.question.max_load))
        return low, high

    @cached_property
    def _interval(self) -> Callable[[float], tuple[float, float]]:
        """The interval in the model, by probability; cached, because several statements need the same interval."""
        return cache(self._interval_of_model)

    def _interval_of_model(self, probability: float) -> tuple[float, float]:
        low, high = self.combined.interval(probability)

        known = self.description
        if known.in_long_run < low:
            # The trials of usual length do not show what the SUT forwards in the long run.
            low = (1.0 - NEAR) * known.in_long_run
        high = min(high, max(known.most_in_long_run, low))

        if self.description.posteriors and self.likelihood is LikelihoodName.VARYING:
            low *= 1.0 - self.description.heavier_tails
            high *= 1.0 + self.description.lighter_tails

        if self.stopping_factor != 1.0:
            middle, factor = self.median, self.stopping_factor
            low = middle - factor * (middle - low)
            high = middle + factor * (high - middle)

        resolution = 1.0 / self.counts.exposure.max() if len(self.counts) else 0.0
        return max(low - resolution, self.question.min_load), min(
            high + resolution, self.question.max_load
        )

    @property
    def chance_and_shared(self) -> tuple[float, float]:
        """Standard deviations of the critical load's logarithm: by chance, and shared by soak tests of the same device.

        Together, they make the 95 % interval. More nights reduce only the first deviation. If it is not known which
        part is shared, each of the two is the whole.
        """
        low, high = self.interval(0.95)
        whole = float(np.log(high / low)) / _INTERVAL
        shared = self.description.shared(self.weighting)
        if shared is None:
            return whole, whole
        return whole * float(np.sqrt(1.0 - shared)), whole * float(np.sqrt(shared))

    @property
    def is_beyond_trials(self) -> bool:
        """Whether the trials fail to show the target, so that the prior decides about the limits, not the SUT.

        This is so if no frame was lost, or if the critical load may be above the maximum load. Frames near the maximum
        load can exclude both, if they verify that the loss ratio there is below the target.
        """
        unseen = self.combined.p_at_max > _LIMIT_SHARE or not self.counts.lost.any()
        return (
            unseen
            and self.guard.verdict is Verdict.EXTRAPOLATED
            and self.guard.extrapolation_factor > 1.0
        )

    @property
    def is_at_least_max_load(self) -> bool:
        """Whether the critical load may well be above the maximum load: the interval ends there."""
        return self.combined.p_at_max > _LIMIT_SHARE and not self.is_beyond_trials

    @property
    def is_at_most_min_load(self) -> bool:
        """Whether the critical load may well be below the minimum load: the interval ends there."""
        return self.combined.p_at_min > _LIMIT_SHARE and not self.is_beyond_trials

    @property
    def is_surely_at_most_min_load(self) -> bool:
        """Whether the trials show, without any model, that more than the target is lost at the minimum load."""
        if (
            self.combined.p_at_min <= 1.0 - _LIMIT_SHARE
            or self.guard.verdict is not Verdict.VERIFIED
        ):
            return False
        return self.guard.least_loss_ratio > self.question.target_loss_ratio

    @property
    def limits(self) -> str | None:
        """A sentence about each limit that the critical load may have reached; None if it is well between them."""
        if self.is_beyond_trials:
            target = format_target(self.question.target_loss_ratio)
            return f"The target loss ratio {target} is beyond the trials: {self.guard}."

        sentences = []
        if self.is_at_least_max_load:
            limit = f"at least the maximum load, {self.question.max_load:,.10g} frames/s"
            sentences.append(_limit_in_words(limit, self.combined.p_at_max))
        if self.is_at_most_min_load:
            limit = f"at most the minimum load, {self.question.min_load:,.10g} frames/s"
            sentences.append(_limit_in_words(limit, self.combined.p_at_min))
        return " ".join(sentences) or None


def _limit_in_words(limit: str, probability: float) -> str:
    return f"The critical load is {limit}, with probability {probability:.3g}."


@checked(SearchError)
def estimate(
    results: Iterable[TrialResult],
    *,
    target_loss_ratio: float,
    min_load: float,
    max_load: float,
    likelihood: LikelihoodName | str = LikelihoodName.VARYING,
    weighting: Weighting | str = Weighting.EVIDENCE,
) -> CriticalLoadEstimate:
    """Estimates the critical load from trial results; the same results always give the same estimate.

    The order of the trials matters only if the SUT changes.

    Args:
        results: Trials with counts of sent and lost frames, at any loads.
        target_loss_ratio: Loss ratio at the critical load, between 0 and 1, exclusive.
        min_load: Smallest possible answer, in frames per second.
        max_load: Largest possible answer, in frames per second. Half of it is the prior's scale.
        likelihood: How counts are distributed.
        weighting: How the fitting functions are combined.

    Raises:
        SearchError: If an argument makes no sense, or a trial cannot be used.
    """
    return estimate_from_counts(
        collect(results),
        CriticalLoadQuestion(target_loss_ratio, min_load, max_load),
        chosen(LikelihoodName, likelihood, "likelihood"),
        chosen(Weighting, weighting, "weighting"),
    )


def estimate_from_counts(
    counts: TrialCounts,
    question: CriticalLoadQuestion,
    likelihood: LikelihoodName,
    weighting: Weighting,
) -> CriticalLoadEstimate:
    """`estimate` from counts and options that are already checked."""
    known = described(counts, question, likelihood)
    return CriticalLoadEstimate(question, likelihood, weighting, counts, known)
