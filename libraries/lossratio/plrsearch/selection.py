"""The load of the next trial: where the trial shows most about the critical load, or verifies a load.

In overload, a count shows the capacity. Trials at equal loads show how many such trials are needed.
"""

from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from lossratio.plrsearch.estimate import LEAST_TRIALS, LossBounds
from lossratio.plrsearch.faster import Faster
from lossratio.plrsearch.model import (
    LONG,
    OVERLOAD,
    Array,
    CriticalLoadQuestion,
    LikelihoodName,
    count,
)
from lossratio.plrsearch.overload import Overload
from lossratio.plrsearch.variation import Description, LocalFit, Scatter
from lossratio.plrsearch.verifying import Verifying, clamped, grid_step
from lossratio.trials import TrialResult

_IN_OVERLOAD = 0.15
"""Share of trials in overload. Without such trials, nothing shows whether capacities vary normally."""
_IF_CONSTANT = 0.1
"""The same while trials at equal loads show that the capacity is constant."""
_IF_VARYING = 0.7
"""The same while they show that the capacity varies."""
_LEAST_OVERLOAD, _MANY = 2, 30
"""Number of trials in overload before a load is verified, because a shorter one that follows them shows a bucket. This
applies if more than the second number of trials verify a load, and if as many trials are left."""
_SHORTER = 0.5
"""Duration of the trial in overload that follows two others, as a share of the usual duration. It is shorter to show a
bucket."""
_MOST_ASKED = 16
"""Maximum number of trials that show whether losses grow with time. Some may be at other loads, or be set aside."""
_WELL_ABOVE = 1.05
"""A load is well above the forwarding rate from this many times the rate on."""
_CANDIDATES = 12
_NEAR_TARGET = (2.0, 10.0, 50.0, 300.0)
"""Loss ratios, in targets, at which a line is measured. They alternate because the slope of the line is also
unknown."""
_RETRIED, _MOST_RETRIED, _FOR_RETRIES = 0.1, 14, 20.0
"""Maximum share and number of trials that repeat a load that a higher load contradicts, and how many trials must be
left so that there is time for such repetitions."""
_SPARE, _EARLY = 2.0, 0.5
"""Number of trials, besides those that verify a load, that are left after the gap between distant loads was halved; or
a share of all trials, if this share is smaller."""
_FIRST_OF_LINES, _FIRST_OF_FUNCTIONS = 3, 5
"""Trials after which the first description is made."""
_FIRST_DOWN, _FARTHER = 2.5e-4, 4.0
"""If no load without loss is known, the search looks for such a load this far below the forwarding rate, as a share.
The second number is the factor by which this share grows from trial to trial. The same applies if no load with loss is
known just above."""
_HALF = 0.5
"""The largest such share."""
_WIDE, _FOR_WIDE = 0.05, 30
"""If loads with and without loss are farther apart than this share of the load, other trials show little, and the next
trial is halfway. After the second number of trials, other trials are chosen nevertheless."""
_VERY_WIDE, _LATE = 0.1, 4.0
"""If they are farther apart than this share, such a trial is chosen even if only this many trials are left."""
_SHARP = 1e-5
"""If two loads differ by less than this share, there is nothing to look for in between, because no generator's clock is
better."""

_POINTS = 256
_MODEL_ERROR = 0.03
"""Relative error of the curve itself. No trial counts as more precise than this."""


class Aim(Enum):
    """What a trial shows besides the loss at its load."""

    LOSS = auto()
    """Nothing else."""
    CAPACITY = auto()
    """How much the capacity varies: a trial in overload."""
    BUCKET = auto()
    """A bucket or a buffer: a shorter trial in overload."""


@dataclass(frozen=True)
class Choice:
    """A load, and the reason for it."""

    load: float
    """In frames per second."""
    purpose: str
    """The reason in words."""
    share: float = 1.0
    """The share of the usual duration."""
    aim: Aim = Aim.LOSS
    """What the trial shows besides its loss."""


@dataclass(frozen=True)
class _Situation:
    """What a choice is based on."""

    known: Description
    """The description of the trials."""
    duration: float
    """Usual duration of the next trial in seconds."""
    left: float
    """The approximate number of trials that there is time for."""

    @property
    def has_events(self) -> bool:
        """Whether some trials have losses that do not come from the load."""
        return self.known.replicates.scatter is Scatter.EVENTS


class PosteriorSelection:
    """Trials that verify a load, and trials that are expected to show most about the critical load.

    Some of them are in overload, where a count shows the capacity in that trial to a part in ten thousand. All trials
    have the duration that the user chose, because the capacity of a SUT with memory, such as a policer, depends on the
    duration. Long trials at the end show whether it does.

    Attributes:
        needs_posterior_from: After this many trials, choices are based on a description of all trials but the last,
            which is made while the last trial runs.
        duration: Seconds of the first trial.
        growth: Seconds by which each trial is longer than the previous one.
        estimate: What FD.io CSIT's code reports, if this is CSIT's selection.
    """

    duration, growth = 2.0, 0.0
    estimate = None

    def __init__(self, question: CriticalLoadQuestion, likelihood: LikelihoodName) -> None:
        self._question = question
        self._own_noise = 1.0 if likelihood is LikelihoodName.GEOMETRIC else 0.0
        self._varies = likelihood is LikelihoodName.VARYING
        self.needs_posterior_from = _FIRST_OF_LINES if self._varies else _FIRST_OF_FUNCTIONS

        self._usual = 0.0
        self._trials = 0
        self._verifying = Verifying(question)
        self._forwarding_rate = question.max_load
        self._overload = Overload(question)
        self._is_compared = False
        self._faster = Faster(question)
        self._wider: list[Choice] = []
        self._begin = 0
        self._asked = 0
        self._once = 0.0
        self._down = self._up = _FIRST_DOWN
        self._retried = 0
        self._last = (0.0, False)

    def record(self, result: TrialResult, choice: Choice | None = None) -> None:
        """Records a trial that is evidence. Each trial must be recorded once, in order.

        Args:
            result: The trial.
            choice: The choice that led to it; None if the search did not choose it.
        """
        aim = Aim.LOSS if choice is None else choice.aim
        load, exposure, lost, *_ = count(result, 0.0)
        self._usual = self._usual or result.duration
        self._trials += 1

        is_short = result.duration < self._usual
        self._verifying.record(
            load,
            load * exposure,
            lost,
            is_long=result.duration > LONG * self._usual,
            is_short=is_short,
        )
        lost = max(lost - self._once, 0.0)
        self._last = load, lost > self._question.target_loss_ratio * load * exposure
        if self._wider and choice is self._wider[0]:
            self._wider.pop(0)
        if aim is Aim.BUCKET:
            self._is_compared = True
            if not lost and self._forwarding_rate <= load < self._question.max_load:
                self._wider = self._for_large_bucket(load)
        elif aim is Aim.CAPACITY and not lost:
            self._wider = []
        if not is_short and self._shows_faster(load, load * exposure, lost, result, aim):
            self._overload.begin_again()
        is_overloaded = lost > OVERLOAD * load * exposure
        if (is_overloaded and not is_short) or self._trials == 1:
            self._forwarding_rate = result.forwarding_rate
        if aim is Aim.CAPACITY:
            self._overload.record(lost)

    def _for_large_bucket(self, load: float) -> list[Choice]:
        """Trials after a short one in overload that lost nothing.

        The SUT has become faster, or a trial with more load shows how many frames can pass.
        """
        purpose = "overload, to see a large bucket or a change"
        most = self._question.max_load
        return [
            Choice(load, purpose, aim=Aim.CAPACITY),
            Choice(most, purpose),
            Choice(most, purpose, _SHORTER, Aim.BUCKET),
        ]

    def _shows_faster(
        self, load: float, frames: float, lost: float, result: TrialResult, aim: Aim
    ) -> bool:
        """Whether a trial shows that the SUT has become much faster.

        If the SUT may have done so, a trial at the maximum load is next.
        """
        is_faster = self._faster.record(load, frames, lost, result.forwarding_rate)
        share = 1.0 if aim is Aim.CAPACITY else _WELL_ABOVE
        if not lost and load > share * self._forwarding_rate:
            self._faster.ask()
        return is_faster

    def choose(self, known: Description | None, duration: float, left: float) -> Choice:
        """The next trial of the given duration in seconds. Its load is within the limits.

        `known` is the description of the trials that the choice may be based on; None if there is none yet. There is
        time for about `left` more trials.
        """
        if self._trials == 0:
            return Choice(self._question.max_load, "the maximum load")
        if known is not None:
            self._notice(known)
        if known is None or self._begins_again(known):
            load = self._forwarding_rate / (1.0 - self._question.target_loss_ratio)
            load = _in_whole_frames(load, duration, self._question)
            return Choice(load, "the forwarding rate of the last trial")

        now = _Situation(known, duration, left)
        # The first of these that wants a trial gets it.
        rules = (
            self._whether_faster,
            self._whether_lost_once,
            self._at_minimum,
            self._where_loss_begins,
            self._to_see_a_bucket,
            self._to_see_a_large_bucket,
            self._contested,
            self._to_verify,
            self._to_see_what_varies,
        )
        for rule in rules:
            choice = rule(now)
            if choice is not None:
                return choice
        return self._most_informative(now)

    def _whether_faster(self, now: _Situation) -> Choice | None:
        """A trial that shows whether the SUT has become much faster, and trials that follow it."""
        load = self._faster.load(now.left)
        if load is None:
            return None
        if load != self._question.max_load:
            load = _in_whole_frames(load, now.duration, self._question)
        return Choice(load, "whether the SUT has become faster")

    def _whether_lost_once(self, now: _Situation) -> Choice | None:
        """A shorter trial, if losses may come once in each trial."""
        asked = now.known.asked
        if asked is None or self._asked >= _MOST_ASKED or now.left <= _LATE * asked.share:
            return None
        self._asked += 1
        return Choice(asked.load, "whether shorter trials lose as many frames", asked.share)

    def _at_minimum(self, now: _Situation) -> Choice | None:
        """The minimum load, if losses begin there or below."""
        local = now.known.local
        if local is None or local.high > self._question.min_load:
            return None
        return Choice(self._question.min_load, "the minimum load")

    def _where_loss_begins(self, now: _Situation) -> Choice | None:
        """A load halfway between loads with and without loss that are far apart."""
        local = now.known.local
        if local is None or now.has_events or not self._is_too_wide(local, now.left):
            return None
        load = self._of_line(local) or self._question.max_load
        load = _in_whole_frames(load, now.duration, self._question)
        return Choice(load, "where loss begins")

    def _to_see_a_bucket(self, now: _Situation) -> Choice | None:
        """A shorter trial in overload, after two of the usual duration."""
        repeated = self._overload.repeated
        if repeated is None or self._is_compared:
            return None
        purpose = "overload in a shorter trial, to see a bucket or a buffer"
        return Choice(repeated, purpose, _SHORTER, Aim.BUCKET)

    def _to_see_a_large_bucket(self, now: _Situation) -> Choice | None:
        """The next trial after a short one in overload that lost nothing."""
        return self._wider[0] if self._wider else None

    def _contested(self, now: _Situation) -> Choice | None:
        """A load that lost more than the target although a higher one did not, if the reason is unknown.

        Either it lost frames by chance, or the SUT has since changed.
        """
        local = now.known.local
        if local is None or now.has_events or not local.above or now.left < _FOR_RETRIES:
            return None
        share = _RETRIED * (self._trials + now.left)
        if self._retried >= min(share, _MOST_RETRIED):
            return None
        self._retried += 1
        return Choice(local.lossy, "whether it still loses what it lost")

    def _to_verify(self, now: _Situation) -> Choice | None:
        """A trial that verifies a load, or one in overload that has to come before."""
        if self._overload.more > 0:
            return None
        load = self._verifying.wanted(now.known, now.left)
        if load is None:
            return None
        takes_long = now.left > _MANY and self._takes_many(load * now.duration)
        if takes_long and self._varies and self._overload.trials < _LEAST_OVERLOAD:
            return self._in_overload(now)
        return _guard(load)

    def _to_see_what_varies(self, now: _Situation) -> Choice | None:
        """A trial in overload, if there are too few, or if the last one was surprising."""
        if not self._varies:
            return None
        share = _share_in_overload(now.known.replicates.scatter)
        if self._overload.more == 0 and share * self._trials <= self._overload.trials:
            return None
        return self._in_overload(now)

    def _in_overload(self, now: _Situation) -> Choice:
        """A trial in overload."""
        load = self._overload.load(now.known, self._forwarding_rate)
        purpose = "overload, to see how much the capacity varies"
        return Choice(load, purpose, aim=Aim.CAPACITY)

    def _most_informative(self, now: _Situation) -> Choice:
        """The trial, not in overload, with the largest gain; if there is nothing to gain, one that verifies a load."""
        mean = now.known.reported[0].mean
        load = self._informative_load(now.known, now.duration)
        if load is None:
            return _guard(clamped(self._verifying.load or mean, self._question))
        load = _in_whole_frames(load, now.duration, self._question)
        return Choice(load, f"most informative about {mean:,.0f} frames/s")

    def _takes_many(self, frames: float) -> bool:
        """Whether it takes many trials of so many frames to verify a load, even if they lose nothing."""
        bounds = LossBounds.of(np.full(_MANY, frames), np.zeros(_MANY))
        return bounds.most > self._question.target_loss_ratio

    def _is_too_wide(self, local: LocalFit, left: float) -> bool:
        """Whether loads with and without loss are so far apart that the next trial is halfway."""
        if self._trials - self._begin >= _FOR_WIDE:
            return False
        if local.is_wide(_VERY_WIDE):
            return left > _LATE
        least = min(LEAST_TRIALS + _SPARE, _EARLY * (self._trials + left))
        return left > least and local.is_wide(_WIDE)

    def _notice(self, known: Description) -> None:
        """Halves wide ranges again as soon as losses are known to come once in each trial."""
        if known.once is None:
            return
        if not self._once:
            self._begin = self._trials
        self._once = known.once.frames

    def _begins_again(self, known: Description) -> bool:
        """Whether the SUT has changed, so that trials first show what it forwards now."""
        if known.change is None or not known.change.is_later(self._begin):
            return False
        self._begin = known.change.trials
        self._faster.stop()
        self._overload.begin_again()
        if not known.counts.is_overload.any():
            # It forwards more than all loads since then.
            self._forwarding_rate = self._question.max_load
        return True

    def sustained(self, known: Description | None, left: float) -> Choice | None:
        """A much longer trial at the end; None if no such trial is wanted."""
        load = None if known is None else self._verifying.sustained(known, left)
        if load is None:
            return None
        return Choice(load, f"a long trial at {load:,.0f} frames/s")

    def _informative_load(self, known: Description, duration: float) -> float | None:
        """The load, not in overload, with the largest gain; None: there is nothing to gain."""
        if known.replicates.scatter is Scatter.EVENTS and self._verifying.load is not None:
            return None
        if known.local is not None and known.in_long_run < known.local.quiet:
            # A bucket passes more in these trials than in the long run, so they show nothing more.
            return None
        if known.local is not None:
            return self._of_line(known.local)

        # The load is on a grid between the critical load and the knee, so that equal loads are frequent.
        mode = known.best.mode
        mean = min(known.best.mean, float(mode.mrr))
        high = max(float(mode.mrr + 2.0 * mode.spread), mean)
        step = grid_step(max((high - mean) / _CANDIDATES, 1e-9 * high))
        loads = step * np.arange(np.ceil(mean / step), np.floor(high / step) + 1.0)
        loads = loads if len(loads) else np.array([mean])
        loads = np.unique(np.clip(loads, self._question.min_load, self._question.max_load))
        return float(loads[np.argmax(_gains(known, loads, duration, self._own_noise))])

    def _of_line(self, local: LocalFit) -> float | None:
        """Alternates between loss ratios near the target.

        Without a line, a load between loads without and with loss.
        """
        low, high = (float(load) for load in local.rough_quantiles([0.025, 0.975]))
        if high - low <= _SHARP * high:
            return local.above or None
        last, is_lossy = self._last
        is_below = self._question.min_load < last < local.lossy and not is_lossy
        if not local.is_line and local.quiet <= self._question.min_load and not is_below:
            self._down = min(self._down * _FARTHER, _HALF)
            return max(self._question.min_load, (1.0 - self._down) * local.lossy)
        if not local.is_line:
            return self._between(local.quiet, local.lossy or self._question.max_load)

        ends = [local.load_of(targets) for targets in (_NEAR_TARGET[0], _NEAR_TARGET[-1])]
        step = grid_step(max((ends[1] - ends[0]) / _CANDIDATES, 1e-9 * ends[1]))
        load = local.load_of(_NEAR_TARGET[self._trials % len(_NEAR_TARGET)])
        return float(step * np.round(load / step))

    def _between(self, low: float, high: float) -> float:
        """A load between loads without and with loss, near the former, because the last trial is not described yet."""
        last, is_lossy = self._last
        if low < last < high:
            low, high = (low, last) if is_lossy else (last, high)
        if low < (1.0 - _WIDE) * high:
            return 0.5 * (low + high)
        self._up *= _FARTHER
        return min(0.5 * (low + high), (1.0 + self._up) * low)


def _guard(load: float) -> Choice:
    """A trial that verifies a load, in frames per second."""
    return Choice(load, f"guard of {load:,.0f} frames/s")


def _share_in_overload(scatter: Scatter) -> float:
    """The share of trials in overload, by what trials at equal loads show."""
    if scatter is Scatter.UNKNOWN:
        return _IN_OVERLOAD
    if scatter is Scatter.VARYING:
        return _IF_VARYING
    return _IF_CONSTANT


def _in_whole_frames(load: float, duration: float, question: CriticalLoadQuestion) -> float:
    """The nearest load at which a trial sends a whole number of frames. One more frame may be the first lost frame."""
    return clamped(round(load * duration) / duration, question)


def _gains(known: Description, loads: Array, duration: float, own_noise: float) -> Array:
    """Expected reduction of the variance of log c, the critical load's logarithm, by a trial's count at each load.

    This is a linear regression with the logarithm y of the mean loss: cov(log c, y)^2 / (var(y) + noise) over the
    posterior. Counts have a squared relative scatter in addition to Poisson's.
    """
    posterior = known.best
    steps = (np.arange(_POINTS) + 0.5) / _POINTS
    at = np.minimum(np.searchsorted(np.cumsum(posterior.mass), steps), len(posterior.mass) - 1)
    curves = posterior.curves.at(at)
    loss = curves.function.log_loss(loads[:, None], curves.mrr, curves.spread)
    scatter = (loss.slope * curves.deviation).mean(axis=1) ** 2
    log_mean = loss.log_rate.mean(axis=1)
    noise = (
        np.exp(np.clip(-log_mean, -300.0, 300.0)) / duration + scatter + own_noise + _MODEL_ERROR**2
    )

    centred = loss.log_rate - log_mean[:, None]
    log_load = np.log(posterior.critical_load[at])
    covariance = centred @ (log_load - log_load.mean()) / _POINTS
    gains = covariance**2 / np.maximum(np.mean(centred**2, axis=1) + noise, 1e-300)

    return np.where(scatter > 1.0, 0.0, gains)
