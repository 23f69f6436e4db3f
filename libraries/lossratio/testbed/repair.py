"""Repairs the infrastructure during a measurement, and repeats the trials that failed because of it."""

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
from lossratio.testbed.changes import Change, error_of, unanswered
from lossratio.testbed.testbed import Recovery
from lossratio.testbed.watch import Watch
from lossratio.traffic import REPEATS, AgentRefusalError
from lossratio.trials import CountersError, Incident, Measurer, TrialInput, TrialOutput
from lossratio.values import counted

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
"""Kinds of errors of the agent that another attempt may avoid."""

_LOG = logging.getLogger(__name__)


@dataclass
class _Attempts:
    """The attempts at one trial."""

    repairs: list[str] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    repeats: int = 0
    """Number of attempts that were thrown away without a repair."""
    wasted: float = 0.0
    """Seconds that these attempts took."""

    def repeat(self, output: TrialOutput, changes: Sequence[Change]) -> None:
        self.incidents += (change.incident("repeated") for change in changes)
        self.repeats += 1 + output.repeats
        self.wasted += output.elapsed or 0.0

    def completed(self, output: TrialOutput, changes: Sequence[Change]) -> TrialOutput:
        """The output of the attempt that stands, with the record of the earlier attempts."""
        elapsed = None if output.elapsed is None else self.wasted + output.elapsed
        standing = [change.incident("stands") for change in changes]
        return replace(
            output,
            repeats=self.repeats + output.repeats,
            elapsed=elapsed,
            repairs=tuple(self.repairs),
            incidents=(*self.incidents, *standing),
        )


class RepairingMeasurer:
    """Performs trials with another measurer, which is replaced after each repair of the infrastructure.

    `check` raises an error if the testbed is not ours. No trial may then begin, and no finished trial is believed.
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
        """Performs one trial; raises an error if no repair helps, or the DUT is dead."""
        attempts = _Attempts()
        while True:
            self._check()
            try:
                output = self._measurer.measure(trial)
                # If another run now has the testbed, it may have sent frames during this trial, which must then not get
                # into the journal.
                self._check()
                changes = unanswered(self._watch.changes(), trial, output)
                if any(change.is_fatal for change in changes):
                    fault = error_of(changes)
                else:
                    fault = None

                if fault is None:
                    output = replace(output, queues=self._watch.queues(output))

                if fault is None and not self._is_to_be_repeated(changes, attempts):
                    lost_all = any(
                        each.sent_frames and not each.received_frames for each in output.directions
                    )
                    self._watch.trust(is_doubtful=lost_all)
                    return attempts.completed(output, changes)
            except (TrafficError, NodeError) as error:
                # If the reservation has ended, there is nothing to repair.
                self._check()
                fault, changes = self._watch.explain(error)

            if fault is None:
                attempts.repeat(output, changes)
            else:
                self._recover(fault, changes, attempts)

    def _is_to_be_repeated(self, changes: Sequence[Change], attempts: _Attempts) -> bool:
        is_asked = any(change.rule.act == "repeat" for change in changes)
        is_repeated = is_asked and attempts.repeats < REPEATS and self._repeats_left > 0
        self._repeats_left -= is_repeated
        return is_repeated

    def _recover(
        self, first: LossRatioError, changes: Sequence[Change], attempts: _Attempts
    ) -> None:
        """Repairs until the trial can be tried again. Keeps a record of the faults and of the attempts to repair."""
        if not is_repairable(first) or any(change.rule.act == "fail" for change in changes):
            raise first

        attempts.incidents += (change.incident("repaired") for change in changes)
        repairs = attempts.repairs
        fault = first

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

        # The side that was to blame first remains to blame, even if a repair failed for another reason.
        cause = first if isinstance(first, TesterError | LinkError) else fault
        kind: type[TrafficError] = TrafficError
        if isinstance(cause, TesterError | LinkError):
            kind = type(cause)

        last = "" if cause is fault else f" The last error: {fault}"
        raise kind(f"{cause} {counted(len(repairs), 'repair')} did not help.{last}") from fault


def is_repairable(error: LossRatioError) -> bool:
    """Whether the cause of a failed trial does not depend on the trial, and may have ended."""
    if isinstance(error, DutError):
        return False
    if isinstance(error, AgentRefusalError):
        return error.kind in REPAIRABLE_KINDS
    return not isinstance(error, CountersError)
