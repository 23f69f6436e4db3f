"""Repeats trials that failed because of the infrastructure, once this has been repaired; never because of a result."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from lossratio.counters import CountersError
from lossratio.errors import DutError, LossRatioError, NodeError, ReservationError, TrafficError
from lossratio.traffic import AgentRefusalError
from lossratio.traffic.agent_client import ANSWER_SECONDS
from lossratio.trial import Measurer, TrialInput, TrialOutput

REPAIRABLE_KINDS = frozenset(
    {"counters_reset", "interface_down", "interface_replaced", "no_such_interface", "sender_died", "server_lost"}
)
"""Kinds of the agent's errors that another attempt may not have."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recovery:
    """How much is done to go on after a fault.

    Attributes:
        pauses: Seconds before each attempt to repair what a trial failed of; as many attempts as there are pauses.
        most: Repairs of one measurement at most.
        patience: Seconds after a trial's end within which its answer must be there: the watchdog of every trial.
    """

    pauses: tuple[float, ...] = (1.0, 5.0, 20.0)
    most: int = 10
    patience: float = ANSWER_SECONDS


DEFAULT_RECOVERY = Recovery()
"""What is done unless said otherwise: it outlasts the restart of a service, not a broken cable."""


class RepairingMeasurer:
    """Performs trials with another measurer, which is replaced when the infrastructure below it had to be repaired.

    Args:
        measurer: Performs the trials.
        repair: Repairs whatever it can, and gives a new measurer.
        check: Raises an error if the testbed is not ours: no trial may begin then, and none is believed that ended.
        doubt: Raises an error if a trial that lost everything in a direction must not be believed, as the DUT is dead.
        recovery: How much is done.
    """

    def __init__(
        self,
        measurer: Measurer,
        *,
        repair: Callable[[], Measurer],
        check: Callable[[], None],
        doubt: Callable[[], None],
        recovery: Recovery,
    ) -> None:
        self._measurer = measurer
        self._repair = repair
        self._check = check
        self._doubt = doubt
        self._recovery = recovery
        self._left = recovery.most

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs one trial.

        Raises:
            LossRatioError: If it could not be performed in spite of all repairs, or the DUT is dead.
        """
        repairs: list[str] = []
        while True:
            self._check()
            try:
                output = self._measurer.measure(trial)
            except (TrafficError, NodeError) as error:
                if not is_repairable(error):
                    raise
                self._recover(error, repairs)
            else:
                # Whoever has the testbed meanwhile may have sent, too: such a trial must not get into the journal.
                self._check()
                if any(direction.sent and not direction.received for direction in output.directions):
                    self._doubt()
                return replace(output, repairs=tuple(repairs))

    def _recover(self, fault: LossRatioError, repairs: list[str]) -> None:
        """Repairs until a trial can be tried again; notes the fault and how often that was attempted."""
        while self._left and len(repairs) < len(self._recovery.pauses):
            self._left -= 1
            repairs.append(str(fault))
            pause = self._recovery.pauses[len(repairs) - 1]
            _LOG.warning("Repair %d of a trial, in %g s: %s", len(repairs), pause, fault)
            time.sleep(pause)
            try:
                self._measurer = self._repair()
            except ReservationError:
                raise
            except LossRatioError as error:
                fault = error
            else:
                return
        if isinstance(fault, DutError) or not repairs:
            raise fault
        raise TrafficError(f"{fault} Attempts to repair that, none of which helped: {len(repairs)}.") from fault


def is_repairable(error: LossRatioError) -> bool:
    """Whether a trial failed of something that does not depend on the trial, and may be over."""
    if isinstance(error, AgentRefusalError):
        return error.kind in REPAIRABLE_KINDS
    return not isinstance(error, CountersError)
