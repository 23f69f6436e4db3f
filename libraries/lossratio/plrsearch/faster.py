"""Trials that show whether the SUT has become much faster, for example because a NIC has taken over its flows.

After such a change, the loads at which losses began show nothing any more. Trials there and in overload would only
slowly come near to what the SUT forwards now, so a trial at the maximum load shows it at once.
"""

from __future__ import annotations

import math

from lossratio.plrsearch.model import CriticalLoadQuestion

_FASTER = 1.1
"""Minimum factor between the forwarding rates of a much faster SUT and before, at the maximum load."""
_MOST_ASKED, _LEFT = 2, 9.0
"""Maximum number of trials at the maximum load, and the minimum number of trials that are left."""
_MOST_FOLLOWING = 13
"""Maximum number of trials that follow one that shows a faster SUT. They have to outnumber the trials before it."""
_SLOW = 0.1
"""A trial that loses a larger share shows that the SUT was only faster for a time."""
_DOWN = 0.97
"""The next load after one that lost more than the target, as a share."""


class Faster:
    """Chooses trials that show whether the SUT has become much faster.

    If it has, the next trials are at the rate that it forwards now, then lower until they lose no more than the target.
    They go on until the description shows the change. Each trial of at least the usual length must be recorded once, in
    order.
    """

    def __init__(self, question: CriticalLoadQuestion) -> None:
        """Begins without trials. The question has the target and the maximum load."""
        self._question = question
        self._at_max = math.inf
        self._asked = 0
        self._is_wanted = self._is_asking = False
        self._load: float | None = None
        self._following = 0

    def record(self, load: float, frames: float, lost: float, forwarding_rate: float) -> bool:
        """Takes in a trial, and says whether it is the first that shows a faster SUT.

        A trial that was set aside is not taken in, so the trial at the maximum load may be missing.

        Args:
            load: In frames per second.
            frames: Sent frames.
            lost: Lost frames.
            forwarding_rate: In frames per second.
        """
        is_at_max = load == self._question.max_load
        is_faster = self._is_asking and is_at_max and forwarding_rate > _FASTER * self._at_max
        self._is_asking = False
        if is_at_max:
            self._at_max = forwarding_rate
        if is_faster:
            self._load = forwarding_rate
            self._following = 0
        elif self._load is not None:
            self._follow(load, frames, lost)
        return is_faster

    def _follow(self, load: float, frames: float, lost: float) -> None:
        """Chooses the next of the trials that follow one that shows a faster SUT."""
        self._following += 1
        if lost > _SLOW * frames or self._following >= _MOST_FOLLOWING:
            self._load = None
        elif lost > self._question.target_loss_ratio * frames:
            self._load = _DOWN * load

    def ask(self) -> None:
        """Asks for a trial at the maximum load, because more passed than what the SUT forwarded before."""
        self._is_wanted = self._load is None and self._asked < _MOST_ASKED

    def stop(self) -> None:
        """Ends these trials, because the description shows a change."""
        self._load = None

    def load(self, left: float) -> float | None:
        """The load of the next trial in frames per second; None: no such trial is needed.

        Args:
            left: The approximate number of trials that there is time for.
        """
        is_wanted = self._is_wanted and left >= _LEFT
        self._is_wanted = False
        if not is_wanted:
            return self._load
        self._asked += 1
        self._is_asking = True
        return self._question.max_load
