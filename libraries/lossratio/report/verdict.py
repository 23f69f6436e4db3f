"""Verdicts on quantities: of B against A in a comparison, and of the newest results against earlier ones in a trend."""

from collections import Counter
from collections.abc import Iterable
from enum import Enum
from operator import attrgetter
from typing import Protocol

from lossratio.values import counted

_ALARM = "failure"
_PASSED = "passed"
_OPEN = "skipped"


class Verdict(str, Enum):
    """A verdict, in the order in which verdicts are listed. Some are only of comparisons, some only of trends."""

    kind: str
    """The class of its colour on pages."""
    state: str
    """What becomes of its JUnit case."""
    names: tuple[str, str]
    """How one and how several of it are counted."""

    def __new__(cls, value: str, kind: str, state: str, *names: str) -> "Verdict":
        """Makes a verdict: its text, class and state, and how it is counted if not by its text."""
        verdict = str.__new__(cls, value)
        verdict._value_ = value
        verdict.kind = kind
        verdict.state = state
        named = names or (value,)
        verdict.names = named[0], named[-1]
        return verdict

    # Table: the verdicts.
    REGRESSION = "regression", "alarm", _ALARM, "regression", "regressions"
    """It got worse, and neither chance nor a known change explains it; in a comparison, also: it no longer has a
    value."""
    NO_VALUE = "no value any more", "alarm", _ALARM, "without a value"
    """The newest result has no value, but earlier results had."""
    TESTER = "the tester's", "irregular", _OPEN, "from the tester"
    """It got worse or is missing together with the value of the tester's own test, which has no device."""
    NOT_OFFERED = "load not offered", "irregular", _OPEN, "whose load was not offered"
    """It changed recently or is missing, and frames that the SUT did not lose may be the reason."""
    UNCONFIRMED = "one bad result", "irregular", _PASSED, "with one bad result"
    """The newest result is worse, and no other result confirms it yet."""
    SEEMS_WORSE = "seems worse", "undecided", _OPEN, "apparently worse"
    """It is worse, but all values on each side are equal: nothing shows how much they vary by chance."""
    EXPLAINED = "known change", "measured", _PASSED, "known change", "known changes"
    """It got worse recently, and a known change explains it."""
    PROGRESSION = "progression", "measured", _PASSED, "progression", "progressions"
    """It got better, and chance does not explain it."""
    SEEMS_BETTER = "seems better", "undecided", _OPEN, "apparently better"
    """It is better, but all values on each side are equal."""
    CHANGED = "changed", "measured", _PASSED
    """A reading (latency or telemetry) changed recently; such changes are no alarms."""
    ONE_OTHER = "one other result", "irregular", _PASSED, "with one other result"
    """The newest reading has changed, and no other result confirms it yet."""
    STEADY = "steady", "measured", _PASSED
    """It did not change recently."""
    UNCHANGED = "no change", "measured", _PASSED, "unchanged"
    """The difference is too small to matter, or chance explains it."""
    TOO_FEW = "too few results", "undecided", _OPEN, "with too few results"
    """There are not enough results to distinguish a change from chance."""
    NOT_COMPARABLE = "not comparable", "irregular", _OPEN
    """The two sides measured different quantities, lack a value, or differ in frames that the SUT did not lose."""

    @property
    def order(self) -> int:
        """Its position among all verdicts."""
        return list(Verdict).index(self)

    @property
    def is_alarm(self) -> bool:
        """Whether somebody should look at what it is about."""
        return self.state == _ALARM

    @property
    def is_open(self) -> bool:
        """Whether it proves nothing."""
        return self.state == _OPEN


class Judged(Protocol):
    """A quantity with a verdict."""

    @property
    def verdict(self) -> Verdict:
        """The verdict."""


def verdicts_counted(judged: Iterable[Judged]) -> str:
    """How often each verdict was given, e.g. ``1 regression, 2 unchanged``; empty: there are none."""
    counts = Counter(one.verdict for one in judged)
    given = sorted(counts, key=attrgetter("order"))
    return ", ".join(counted(counts[verdict], *verdict.names) for verdict in given)
