"""The two ends of a value if some of its missing frames were not lost by the SUT.

Frames that were unsent, late or dropped by the generator are no evidence about the SUT: it might have forwarded them if
it had got them in time. So the value lies between the value as it is and the value if these frames had passed. A
statement about a difference of values must hold for both ends.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from lossratio.results.offered import Offered, offered_by, offered_in, sums_by_load
from lossratio.results.quantity import Finding, number_of
from lossratio.results.view import view_of
from lossratio.trials import MissingFrames, TrialResult
from lossratio.values import FRAMES_PER_SECOND, Unit, format_ratio


class Ends(NamedTuple):
    """The range of a value."""

    least: float
    """The value as it is, a number in its own unit."""
    most: float
    """The value if the missing frames that the SUT did not lose had passed; infinite: because of a limit, the value is
    only a lower bound."""
    share: float
    """The largest share of these frames at a load; 0: it is below `LEAST_UNSENT`; 1: the value is only a lower
    bound."""


def stored_ends(value: float, share: float | None, most: float | None) -> Ends:
    """The ends of a value in a history.

    If the share ``u`` of a load was not sent, a value ``v`` at this load is at most ``v / (1 - u)``. It is that value
    if the generator stood still for that share of the time.

    Args:
        value: The value, a number in its own unit.
        share: The largest share of missing frames; None: not known.
        most: The upper end of the value, a number in its own unit; None: there is none.
    """
    known = share or 0.0
    if most is None:
        most = value / (1.0 - known) if known < 1.0 else math.inf
    return Ends(value, most, known)


def ends_of(finding: Finding) -> Ends | None:
    """The range of a value; None: there is no value."""
    value = number_of(finding.value)
    if value is None:
        return None
    share = unsent_share_of(finding)
    if share == 1.0:
        return Ends(value, math.inf, share)
    if value == 0.0 and finding.unit != FRAMES_PER_SECOND:
        return Ends(value, value, share)
    offered = _by_load(finding)
    most = max((_most(value, one, one.not_by_sut) for one in offered), default=value)
    return Ends(value, most, share)


def _most(value: float, offered: Offered, not_by_sut: int) -> float:
    """A value if this many frames of its traffic, which are missing and which the SUT did not lose, had passed."""
    if not not_by_sut:
        return value
    if not value:
        return offered.load * not_by_sut / offered.intended
    if offered.received:
        return value * (offered.received + not_by_sut) / offered.received
    return math.inf


def unsent_share_of(finding: Finding) -> float:
    """The largest share of the frames of a load that were unsent, late or dropped by the generator; 0: few of them.

    1: The value is only a lower bound, because of a limit or of frames that the SUT did not lose; or there is no value
    because the TG failed.
    """
    is_least = finding.is_at_limit or finding.is_bound_of_others
    if is_least or finding.result.guilty == "TG":
        return 1.0
    offered = _by_load(finding)
    if number_of(finding.value) is None:
        if _sut_lost_nothing(finding):
            return 1.0
        offered = offered or _at_smallest_load(finding)
    return max((one.share_not_by_sut for one in offered), default=0.0)


def _sut_lost_nothing(finding: Finding) -> bool:
    """Whether frames are missing in the trials of a result, but the SUT lost none of them."""
    missing = sum((trial.missing for trial in finding.result.trials), MissingFrames())
    return missing.total > 0 and not missing.lost_by_sut


def _at_smallest_load(finding: Finding) -> list[Offered]:
    """The frames that decided that there is no value, if the SUT did not lose most of the missing frames."""
    trials = finding.result.evidence
    smallest = min((trial.load_per_interface_fps for trial in trials), default=None)
    deciding = [trial for trial in trials if trial.load_per_interface_fps == smallest]
    missing = sum((trial.missing for trial in deciding), MissingFrames())
    if missing.lost_by_sut > missing.by_tester + missing.late:
        return []
    return sums_by_load(offered_in(deciding))


def ends_of_trial(trial: TrialResult, *, unsent_is_cost: bool = False) -> Ends:
    """The range of a trial's forwarding rate, per interface.

    If a device runs on the generator's CPUs, frames that could not be sent are its cost: they count in the share, but
    not in the upper end.
    """
    rate = trial.forwarding_rate
    offered = offered_by(trial.load, trial.output)
    if offered is None:
        return Ends(rate, rate, 0.0)
    not_by_sut = offered.not_by_sut
    if unsent_is_cost:
        not_by_sut -= offered.unsent
    return Ends(rate, _most(rate, offered, not_by_sut), offered.share_not_by_sut)


def at_most(values: Iterable[Ends], unit: Unit) -> list[float]:
    """The upper ends of values. A time is only known if its frames were sent and came back in time."""
    if unit.lower_is_better:
        return [value.least for value in values if not value.share]
    return [value.most for value in values]


def agreed_change(as_they_are: float | None, at_their_most: float | None) -> float | None:
    """The change that both the values as they are and their upper ends show: the smaller of the two.

    The result is None if they show no change, or different changes. Then the difference may come from frames that the
    SUT did not lose. The caller has tested both changes in the same way, and gives None for a change that was not
    found, or is not known.

    Args:
        as_they_are: Change of the values, relative to the earlier value.
        at_their_most: Change of their upper ends, also relative to the earlier value.
    """
    if as_they_are is None or at_their_most is None or not as_they_are * at_their_most > 0.0:
        return None
    return min(as_they_are, at_their_most, key=abs)


def share_in_words(shares: Iterable[float]) -> str:
    """The largest share of missing frames that the SUT did not lose, in words; empty: it is small.

    Args:
        shares: The share of missing frames in each result.
    """
    share = max((share for share in shares if share < 1.0), default=0.0)
    if share:
        return (
            f"{format_ratio(share)} of the frames at one load were unsent, late or dropped by the "
            "generator"
        )
    return ""


def _by_load(finding: Finding) -> list[Offered]:
    """The frames on which a value is based, as one sum for each load."""
    return sums_by_load(view_of(finding.result).offered(finding.result, finding))
