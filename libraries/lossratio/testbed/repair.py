"""Repeats trials that failed because of the infrastructure, once this has been repaired; never because of a result."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lossratio.errors import (
    DutError,
    LinkError,
    LossRatioError,
    NodeError,
    ReservationError,
    TesterError,
    TrafficError,
)
from lossratio.testbed.blame import Act
from lossratio.testbed.changes import Change, error_of
from lossratio.testbed.watch import Watch
from lossratio.traffic import ANSWER_SECONDS, REPEATS, AgentRefusalError
from lossratio.trials import CountersError, Incident, Measurer, TrialInput, TrialOutput

REPAIRABLE_KINDS = frozenset(
    {
        "abandoned",
        "counters_reset",
        "interface_down",
        "interface_replaced",
        "mtu_changed",
        "no_such_interface",
        "sender_died",
        "server_lost",
    }
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
        watch: Finds what changed on the testbed during a trial, and who is to blame for it.
        recovery: How much is done.
    """

    def __init__(
        self,
        measurer: Measurer,
        *,
        repair: Callable[[], Measurer],
        check: Callable[[], None],
        watch: Watch,
        recovery: Recovery,
    ) -> None:
        self._measurer = measurer
        self._repair = repair
        self._check = check
        self._watch = watch
        self._recovery = recovery
        self._repairs_left = self._repeats_left = recovery.most

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs one trial.

        Raises:
            LossRatioError: If it could not be performed in spite of all repairs, or the DUT is dead.
        """
        attempts = _Attempts()
        while True:
            self._check()
            try:
                output = self._measurer.measure(trial)
                # Whoever has the testbed meanwhile may have sent, too: such a trial must not get into the journal.
                self._check()
                changes = self._watch.changes()
                fault = error_of(changes) if any(change.is_fatal for change in changes) else None
                if fault is None and not self._is_to_be_repeated(changes, attempts):
                    lost_all = any(direction.sent and not direction.received for direction in output.directions)
                    self._watch.trust(is_doubtful=lost_all)
                    return attempts.completed(output, changes)
            except (TrafficError, NodeError) as error:
                # What has ended with the reservation needs no repair.
                self._check()
                fault, changes = self._watch.explain(error)
            if fault is None:
                attempts.repeat(output, changes)
            else:
                self._recover(fault, changes, attempts)

    def _is_to_be_repeated(self, changes: Sequence[Change], attempts: _Attempts) -> bool:
        if attempts.repeats >= REPEATS or not self._repeats_left:
            return False
        if any(change.rule.act is Act.REPEAT for change in changes):
            self._repeats_left -= 1
            return True
        return False

    def _recover(self, first: LossRatioError, changes: Sequence[Change], attempts: _Attempts) -> None:
        """Repairs until a trial can be tried again; notes the fault and how often that was attempted."""
        if not is_repairable(first) or any(change.rule.act is Act.FAIL for change in changes):
            raise first
        attempts.incidents += (change.incident("repaired") for change in changes)
        repairs, fault = attempts.repairs, first
        while self._repairs_left and len(repairs) < len(self._recovery.pauses):
            self._repairs_left -= 1
            repairs.append(str(fault))
            pause = self._recovery.pauses[len(repairs) - 1]
            _LOG.warning("Repair %d of a trial, in %g s: %s", len(repairs), pause, fault)
            time.sleep(pause)
            try:
                self._measurer = self._repair()
                lasting = self._watch.go_on()
            except ReservationError:
                raise
            except LossRatioError as error:
                fault = error
            else:
                if lasting:
                    raise error_of(lasting) from fault
                return
        if isinstance(fault, DutError) or not repairs:
            raise fault
        # The side that was guilty first stays so, however the attempts to repair it failed.
        said = first if isinstance(first, TesterError | LinkError) else fault
        kind = type(said) if isinstance(said, TesterError | LinkError) else TrafficError
        last = "" if said is fault else f" The last one: {fault}"
        raise kind(f"{said} Attempts to repair that, none of which helped: {len(repairs)}.{last}") from fault


@dataclass
class _Attempts:
    """What became of attempts at one trial.

    Attributes:
        repairs: What attempts failed of that was repaired.
        incidents: What changed on the testbed.
        repeats: How many were thrown away without a repair.
        wasted: Seconds that these took.
    """

    repairs: list[str] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    repeats: int = 0
    wasted: float = 0.0

    def repeat(self, output: TrialOutput, changes: Sequence[Change]) -> None:
        """Throws an attempt away."""
        self.incidents += (change.incident("repeated") for change in changes)
        self.repeats += 1 + output.repeats
        self.wasted += output.elapsed or 0.0

    def completed(self, output: TrialOutput, changes: Sequence[Change]) -> TrialOutput:
        """The output of the attempt that is believed, with what became of the others."""
        incidents = (*self.incidents, *(change.incident("stands") for change in changes))
        return replace(
            output,
            repeats=self.repeats + output.repeats,
            elapsed=None if output.elapsed is None else self.wasted + output.elapsed,
            repairs=tuple(self.repairs),
            incidents=incidents,
        )


def is_repairable(error: LossRatioError) -> bool:
    """Whether a trial failed of something that does not depend on the trial, and may be over."""
    if isinstance(error, DutError):
        return False
    if isinstance(error, AgentRefusalError):
        return error.kind in REPAIRABLE_KINDS
    return not isinstance(error, CountersError)
