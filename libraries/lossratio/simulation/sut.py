"""The parts of SUT models: the protocol of a model, the types of its fields, and its behaviour in overload."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Protocol, TypeVar

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import dataclass_transform

from lossratio.errors import SearchError
from lossratio.values import Duration, FrameRate as AnyFrameRate, Share, refused_in_words

ClassT = TypeVar("ClassT", bound=type)

_STRICT = ConfigDict(extra="forbid")
"""For every model: unknown arguments are refused, not ignored."""
FrameRate = Annotated[AnyFrameRate, Field(gt=0, allow_inf_nan=False)]
"""Frames per second, above 0."""
Seconds = Annotated[Duration, Field(gt=0, allow_inf_nan=False)]
"""A duration in seconds, above 0."""
Delay = Annotated[Duration, Field(ge=0, allow_inf_nan=False)]
"""A duration in seconds, 0 or more."""
Frames = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A number of frames."""
Ratio = Annotated[Share, Field(ge=0, le=1)]
"""A share, 0 to 1."""
PositiveRatio = Annotated[Share, Field(gt=0, le=1)]
"""A share, above 0, at most 1."""
ProperRatio = Annotated[Share, Field(ge=0, lt=1)]
"""A share, 0 to less than 1."""
RelativeChange = Annotated[float, Field(gt=-1, allow_inf_nan=False)]
"""A relative change, of either sign, above -1."""


@dataclass_transform(frozen_default=True, field_specifiers=(Field, field))
def sut_model(kind: ClassT) -> ClassT:
    """Makes a model from a class: an immutable value, whose constructor checks its arguments."""
    made: Any = pydantic_dataclass(frozen=True, config=_STRICT)(kind)
    model: ClassT = refused_in_words(SearchError)(made)
    return model


@sut_model
class Overload:
    """The behaviour of a SUT at loads above its capacity: it may forward less than its capacity (congestion collapse).

    A frame that is dropped late has already cost work. With capacity C, load r > C and work w per dropped frame, as a
    share of the work per forwarded frame, the forwarding rate f solves ``f + w (r - f) = C``. It falls to 0 as the load
    grows. In addition, any overload may cost a share of the capacity (cold caches, full queues).
    """

    drop_cost: ProperRatio = 0.0
    """Work per dropped frame, as a share of the work per forwarded frame. 0: none."""
    dip: ProperRatio = 0.0
    """Share of the capacity that is lost as soon as the SUT is overloaded. 0: none."""

    def loss_ratio(self, load: float, capacity: float) -> float:
        """Share of frames lost at a steady load. Load and capacity are in frames per second."""
        if load <= capacity:
            return 0.0
        return min(1.0, (1.0 - capacity * (1.0 - self.dip) / load) / (1.0 - self.drop_cost))

    def lost_frames(self, traffic: "Traffic", capacity: float, rng: np.random.Generator) -> int:
        """Frames of a trial that are lost at this capacity (frames per second), rounded at random."""
        return random_rounding(traffic.frames * self.loss_ratio(traffic.load, capacity), rng)

    def lossy_load(self, capacity: float, loss_ratio: float) -> float:
        """The load above which more than a share `loss_ratio` (below 1) is lost, in frames per second."""
        return capacity * max(1.0, (1.0 - self.dip) / (1.0 - loss_ratio * (1.0 - self.drop_cost)))


GRACEFUL = Overload()
"""An overloaded SUT forwards exactly its capacity."""
LEAST_LOAD = 1e-3
GREATEST_LOAD = 1e13
"""Limits of the bisection for a truth, in frames per second."""


@dataclass(frozen=True)
class Traffic:
    """The traffic that reaches a SUT in one trial."""

    start: float
    """Arrival of the first frame, in seconds on the virtual clock."""
    duration: float
    """Duration of the traffic, in seconds."""
    frames: int
    """Number of frames, evenly spread over the duration."""
    continues: bool = False
    """Whether this traffic is a further part of the previous traffic's trial. A SUT that does something once per trial
    only does it if this is False."""

    @property
    def load(self) -> float:
        """Frames per second."""
        return self.frames / self.duration


RunningSut = Callable[[Traffic], int]
"""A started SUT. It takes the traffic of one trial after the other, and returns the number of lost frames. A watched
trial comes in parts, see `Traffic.continues`."""


class StartsSut(Protocol):
    """What a simulated measurer needs of a model. Any number of SUTs can be started from it."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """Starts a SUT of this model in its initial state. The SUT draws its random numbers from `rng`."""


class Sut(StartsSut, Protocol):
    """A model of a SUT: an immutable value with a truth."""

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float | None:
        """The conditional throughput that a perfect search with unlimited time would find.

        Args:
            loss_ratio: Goal loss ratio, 0 to 1.
            duration: Trial duration, in seconds. The SUT is in its usual state when the trial begins.
            exceed_ratio: Goal exceed ratio, 0 to 1.

        Returns:
            The largest load, in frames per second, below which at most a share `exceed_ratio` of all trials has more
            than that loss ratio; infinite if this holds for all loads, 0 if for no load. None if the model has no such
            load, because the SUT changes with time, or because the exceed ratio is 0 and trials may lose at any load.
        """


class SutWithoutMemory(ABC):
    """Base class of models in which no trial depends on earlier ones; the capacity may depend on the clock."""

    @abstractmethod
    def _lost_frames(self, traffic: Traffic, rng: np.random.Generator) -> int:
        """Number of frames lost in one trial."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """Starts a SUT, which draws its random numbers from `rng`."""
        return partial(self._lost_frames, rng=rng)


class WithoutTruth:
    """Base class of models without a truth: the SUT changes with time, or too little is known about it."""

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> None:
        """None."""


def smallest_exceeding_load(
    exceed_probability: Callable[[float], float], exceed_ratio: float
) -> float:
    """The load (frames/s, to 12 digits) above which a non-decreasing probability of exceeding is larger than a ratio.

    It is found by bisection. It is infinite if the probability is never larger, and 0 if it always is.
    """
    low, high = math.log(LEAST_LOAD), math.log(GREATEST_LOAD)
    if exceed_probability(LEAST_LOAD) > exceed_ratio:
        return 0.0
    if exceed_probability(GREATEST_LOAD) <= exceed_ratio:
        return math.inf
    while high - low > 1e-12:
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        if exceed_probability(math.exp(middle)) > exceed_ratio:
            high = middle
        else:
            low = middle
    return math.exp(low)


def whole_tokens(tokens: float) -> int:
    """Number of whole tokens in a bucket. The rounding error of the sum that they come from must not cost one."""
    return math.floor(tokens * (1.0 + 1e-12))


def random_rounding(frames: float, rng: np.random.Generator) -> int:
    """Rounds a mean number of frames up or down at random, so that the mean stays the same."""
    return math.floor(frames + rng.random())
