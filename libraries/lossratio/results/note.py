"""Notes: everything that a result says besides its numbers, each with a weight, and the rules that find them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from lossratio.values import Record, printable


class Weight(str, Enum):
    """How much a note matters to readers. Notes are shown in this order."""

    HEADLINE = "headline"
    """What was found, for people who read nothing else."""
    DOUBT = "doubt"
    """A reason not to trust the numbers yet, which the numbers do not show."""
    REMARK = "remark"
    """What readers of the numbers need: the numbers in detail, their scope, and what happened beside them."""
    PROVENANCE = "provenance"
    """How it was measured. Pages fold these notes, and the console shows them on request."""


SHOWN = (Weight.HEADLINE, Weight.DOUBT, Weight.REMARK)
"""The weights of notes that everybody sees."""


class NoteKind(str, Enum):
    """What notes are about. A trend follows kinds of doubts as well as rates."""

    FOUND = "found"
    """What was found, in a sentence."""
    FAILURE = "failure"
    """Why there is no result."""
    NUMBERS = "numbers"
    """The numbers, one in a line."""
    CAVEAT = "caveat"
    """A fact that readers of a value need wherever the value stands, and that the number does not show."""
    SCOPE = "scope"
    """What the numbers count, and how long the trials took."""
    LOSS_PLACES = "where losses sit"
    """What the lost frames have in common."""
    QUEUES = "receive queues"
    """The receive queues that dropped lost frames."""
    SET_ASIDE = "set aside"
    """Trials that are no evidence about the SUT."""
    OBSERVED = "observed"
    """What the measurement itself noted."""
    ABOVE_LIMIT = "load above a limit"
    """The maximum load is above what the generator, a link or a NIC can do."""
    PASSED = "passed before"
    """What the device passed without loss before the first trial, in trials of the tool's own."""
    SIMULATED = "simulated"
    """No frame was sent."""
    TERM = "term"
    """An abbreviation in the names of quantities, spelled out."""
    MAX_LOAD = "maximum load"
    """What limits the load."""
    REPEATS = "repeats"
    """Attempts that were measured again, and repairs before them."""
    DRIFT = "drift"
    """Later trials at the same load differ from earlier ones: the SUT throttles, heats up, or fills a table."""
    SPELLS = "spells"
    """Successive trials at a load are alike: the SUT has slow spells, a changing clock, or a memory."""
    MRR_BELOW_PDR = "MRR below PDR"
    """The forwarding rate at maximum load is lower than at a smaller load: the SUT degrades under overload."""
    LATE_FRAMES = "late frames"
    """Frames came back after the wait for frames in flight; they count as lost."""
    GENERATOR_DROPS = "generator drops"
    """The generator itself dropped frames that came back; the SUT did not lose them."""
    FULL_RINGS = "full rings"
    """A ring of the testbed had no room for frames on their way to the SUT; they count as unsent."""
    GENERATOR_STALLS = "generator stalls"
    """The generator stalled and then sent a burst. Without that burst, a trial may have met its goal."""
    UNSENT = "unsent frames"
    """The generator left so many frames unsent that the load was not offered; the value may describe the generator."""
    CONTRADICTED = "contradicted by a later trial"
    """A trial after the search, at a load that met a goal, lost far more than the goal allows."""
    INTEGRITY = "frame integrity"
    """Frames came back more than once, changed, truncated, padded or misdelivered; they do not count as received."""
    MEMORY = "memory of the device"
    """The device forwards less right after a trial or a loss than after a rest, and the rests between trials are too
    short; or less than before the first trial."""
    LOSS_AT_ANY_LOAD = "loss at any load"
    """Trials at small and large loads lose the same, so the load is not the cause."""
    ERRATIC = "erratic loss"
    """Trials at one load lose very different shares, or a smaller load loses far more than a larger one: something
    other than the load decides."""
    CHANCE = "zone of chance"
    """Over more than a goal's width, chance decides whether trials are lossy: another search may end elsewhere."""
    LOSS_BESIDE_RESET = "loss beside the reset"
    """Frames were lost before a reset, or after it outside of its longest outage; they are not in the reset time."""
    UNEVEN = "uneven load"
    """One worker or receive queue of the SUT takes far more frames than its share; its limit is not the SUT's."""
    FOREIGN_FRAMES = "foreign frames"
    """Frames that belong to no trial came out of the testbed: they take capacity, and may hide losses."""
    UNSTEADY = "unsteady times"
    """Repetitions took very different times, so that their median means little."""
    TESTBED_CHANGED = "testbed changed"
    """A node was suspended, starved or paused around a trial that still counts."""
    OUTSIDE = "cause outside of the device"
    """A counter that only PAUSE frames, a ring, a quota, a backlog or a cloud's allowance moves grew in trials with
    missing frames."""


class Note(Record):
    """One thing that a result says. Its text has no full stop at the end if it is a doubt."""

    kind: NoteKind
    """What it is about."""
    weight: Weight
    """How much it matters."""
    text: str
    """The words: what was observed, and, in a doubt, what to do about it or look for."""
    evidence: str = ""
    """The test that found it, and what that test can find; empty: it only repeats what is known."""

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.text}"

    @property
    def line(self) -> str:
        """The note as a line of a text."""
        if self.weight is Weight.DOUBT:
            return f"Doubt: {self}"
        return f"Note: {self.text}" if self.kind in _WITHIN_SENTENCES else self.text


def noted(
    text: str,
    kind: NoteKind = NoteKind.OBSERVED,
    weight: Weight = Weight.REMARK,
    evidence: str = "",
) -> Note:
    """A note; by default, a remark of the measurement itself. Control characters, e.g. of names, are escaped."""
    return Note(kind=kind, weight=weight, text=printable(text), evidence=evidence)


Find = Callable[..., Iterable[str]]
"""Finds what a result says, in words. The argument is the result; a rule of a run also gets the run's results."""


@dataclass(frozen=True)
class Rule:
    """Makes the notes of one kind from a result and its trials."""

    kind: NoteKind
    """The kind of its notes."""
    weight: Weight
    """Their weight."""
    evidence: str
    """What it tests, and what it can find."""
    find: Find
    """Its function."""
    is_of_run: bool = False
    """Whether it needs the other results of the run, too."""

    def __call__(self, result: Any) -> Iterable[str]:
        """What it finds in a result alone."""
        return self.find(result)

    def notes(self, result: Any, results: Sequence[Any]) -> Iterator[Note]:
        """What it finds in a result of a run with these results."""
        texts = self.find(result, results) if self.is_of_run else self.find(result)
        for text in texts:
            yield noted(text, self.kind, self.weight, self.evidence)


def rule(
    weight: Weight, kind: NoteKind, evidence: str = "", *, is_of_run: bool = False
) -> Callable[[Find], Rule]:
    """Makes the function below it a rule; see `Rule`."""
    return partial(Rule, kind, weight, evidence, is_of_run=is_of_run)


headline = rule(Weight.HEADLINE, NoteKind.FOUND)
"""A rule that says what was found; results of failed measurements do without it."""
numbers = rule(Weight.REMARK, NoteKind.NUMBERS)
"""A rule that shows numbers in lines, likewise."""
caveat = rule(Weight.REMARK, NoteKind.CAVEAT)
"""A rule for facts that stand beside a value everywhere."""
doubt = partial(rule, Weight.DOUBT)
"""A rule that finds doubts. Its arguments are the kind, and what it tests."""
_WITHIN_SENTENCES = frozenset(
    {NoteKind.CAVEAT, NoteKind.OBSERVED, NoteKind.ABOVE_LIMIT, NoteKind.PASSED, NoteKind.MEMORY}
)
"""Kinds of notes whose texts are no whole sentences."""
OF_SUCCESS = frozenset({NoteKind.FOUND, NoteKind.NUMBERS, NoteKind.CAVEAT})
"""Kinds of notes that results of failed measurements do not have."""


def as_text(notes: Iterable[Note]) -> str:
    """Notes in lines of text."""
    return "\n".join(note.line for note in notes)


_IN_DETAIL = frozenset({NoteKind.NUMBERS, NoteKind.SCOPE})
"""Kinds of notes that repeat the numbers of a headline, with all bounds and aggregates."""


def in_short(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Notes for somebody at a console, who does not want to read a number twice; all if there is no headline."""
    notes = tuple(notes)
    if not any(note.weight is Weight.HEADLINE for note in notes):
        return notes
    return tuple(note for note in notes if note.kind not in _IN_DETAIL)
