"""The traffic that the generator offered, and the doubt about loads that it did not offer."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from lossratio.results.model import TestResult
from lossratio.results.note import NoteKind, doubt
from lossratio.results.trials import Trial
from lossratio.results.wording import per_interface, rate_in_words
from lossratio.trials import STALL, MissingFrames, TrialOutput, missing_frames
from lossratio.values import format_ratio

LEAST_UNSENT = 0.01
"""Share of a load's frames. Fewer unsent frames cause no doubt: they cannot move a value by the minimum change (1 %)
that a comparison or a trend reports, and even a healthy generator on a small machine leaves some behind."""
FOR_SMALLER_LOADS = "so the numbers of these trials are for smaller loads"
"""What loads that were not offered mean for the numbers that trials gave."""
LESS_WORK = "stop other programs on the generator's machine"
"""What helps a generator that was late, if no counter names the cause."""


class Offered(NamedTuple):
    """The traffic that the generator offered in one trial, or in several trials at one load."""

    load: float
    """Intended load, frames per second per interface."""
    sent: int
    """Frames sent."""
    missing: MissingFrames = MissingFrames()
    """Frames that did not come back in time, by their cause."""

    @property
    def unsent(self) -> int:
        """Frames that the generator could not send."""
        return self.missing.unsent + self.missing.refused

    @property
    def intended(self) -> int:
        """Frames that the load asked for."""
        return self.sent + self.unsent

    @property
    def received(self) -> int:
        """Frames that came back in time."""
        return max(0, self.intended - self.missing.total)

    @property
    def not_by_sut(self) -> int:
        """Missing frames that the SUT did not lose: unsent, late, or dropped by the generator."""
        return self.missing.by_tester + self.missing.late

    @property
    def share_not_by_sut(self) -> float:
        """The share of these frames; 0: it is at most `LEAST_UNSENT`."""
        share = self.not_by_sut / max(1, self.intended)
        return share if share > LEAST_UNSENT else 0.0


def load_in_words(load: float, offered: Iterable[Offered], frames: str = "") -> str:
    """A load as far as it was offered: ``5,000 frames/s``, or ``about 1,500 frames/s (5,000 asked)``.

    Args:
        load: The load that was asked for, in frames per second per interface.
        offered: The traffic of its trials.
        frames: The unit, and what the frames are; empty: only the number.
    """
    sums = [one for one in sums_by_load(offered) if one.load == load and one.intended]
    share = sums[0].sent / sums[0].intended if sums else 1.0
    return offered_in_words(share * load, load, frames)


def offered_in_words(offered: float, load: float, frames: str = "") -> str:
    """A load that was offered, with the load that was asked for if it is a different one.

    Args:
        offered: Frames per second per interface.
        load: The load that was asked for, in frames per second per interface.
        frames: The unit, and what the frames are; empty: only the number.
    """
    if offered >= (1.0 - LEAST_UNSENT) * load:
        return rate_in_words(load, frames)
    about = float(f"{offered:.3g}")
    return f"about {rate_in_words(about, frames)} ({rate_in_words(load)} asked)"


def offered_by(load: float, counted: Trial | TrialOutput) -> Offered | None:
    """The traffic of one trial; None: its frames were not counted.

    Args:
        load: The load that was asked for, in frames per second per interface.
        counted: The counts of the trial.
    """
    missing = missing_frames(counted)
    if missing is None or counted.sent_frames is None:
        return None
    return Offered(load, counted.sent_frames, missing)


def offered_in(trials: Iterable[Trial]) -> list[Offered]:
    """The traffic of the trials that counted their frames."""
    offered = (offered_by(trial.load_per_interface_fps, trial) for trial in trials)
    return [one for one in offered if one is not None]


def sums_by_load(offered: Iterable[Offered]) -> list[Offered]:
    """The traffic of all trials at each load together."""
    sums: dict[float, Offered] = {}
    for one in offered:
        before = sums.get(one.load, Offered(one.load, 0))
        sums[one.load] = Offered(one.load, before.sent + one.sent, before.missing + one.missing)
    return list(sums.values())


def against_stalls(trials: Iterable[Trial]) -> str:
    """What helps a generator that was late: what its counters named, or else less other programs on its machine."""
    named = [
        incident.way_out.removesuffix(".")
        for trial in trials
        for incident in trial.incidents
        if incident.guilty == "TG" and incident.way_out
    ]
    words = ". ".join(dict.fromkeys(named)) or LESS_WORK
    return words[0].lower() + words[1:]


def unsent_share(offered: Iterable[Offered]) -> float:
    """The largest share of frames that the generator left unsent at one load; 0: it is below `LEAST_UNSENT`."""
    return max((share for share, _ in _unsent_shares(offered)), default=0.0)


@doubt(
    NoteKind.UNSENT,
    f"The generator left more than {format_ratio(LEAST_UNSENT)} of the frames unsent at a decisive load.",
)
def unsent(result: TestResult) -> Iterator[str]:
    """A load on which a value is based was not offered."""
    view = result.view()
    of_findings = (view.offered(result, finding) for finding in view.findings(result))
    lateness = max((trial.lateness_s for trial in result.evidence), default=0.0)
    yield from unsent_frames(
        max(of_findings, key=unsent_share, default=()),
        "the trials",
        view.if_unsent,
        lateness,
        result.written,
        against_stalls(result.evidence),
    )
    yield from unsent_frames(view.after(result), "the trials after the search")


def unsent_frames(
    offered: Iterable[Offered],
    what: str = "the trials",
    consequence: str = FOR_SMALLER_LOADS,
    lateness: float = 0.0,
    written: Callable[[float], str] = per_interface,
    help_it: str = LESS_WORK,
) -> Iterator[str]:
    """Says which loads the generator did not offer in the trials on which values are based; nothing if it did.

    Args:
        offered: The traffic of these trials.
        what: The trials, in words.
        consequence: What it means for the result.
        lateness: The longest delay of a sender, in seconds. Only if there was one, the machine may have other work.
        written: Writes a load in frames per second per interface.
        help_it: What helps against the delay.
    """
    shares = _unsent_shares(offered)
    if not shares:
        return

    share, load = max(shares)
    others = len(shares) - 1
    rest, these = "", "This load was"
    if others:
        loads = "another load" if others == 1 else f"{others} other loads"
        rest = f", and more than {format_ratio(LEAST_UNSENT)} at {loads}"
        these = "These loads were"

    remedy = "Measure at a load that it can send"
    if lateness > STALL:
        remedy += f". A sender was late by up to {lateness * 1e3:.3g} ms: {help_it}"
    yield (
        f"the generator left {format_ratio(share)} of the frames unsent in {what} at "
        f"{written(load)}{rest}. {these} not offered, {consequence}. {remedy}"
    )


def _unsent_shares(offered: Iterable[Offered]) -> list[tuple[float, float]]:
    """The share of each load whose share is above `LEAST_UNSENT`, and that load."""
    shares = ((one.unsent / one.intended, one.load) for one in sums_by_load(offered) if one.unsent)
    return [(share, load) for share, load in shares if share > LEAST_UNSENT]
