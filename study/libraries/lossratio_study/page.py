"""The page of searches on recorded trials: which goals repeat on these SUTs, and at what price."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from lossratio.drawing import (
    NOTHING,
    Axis,
    Column,
    Mark,
    Overview,
    Plot,
    number_column,
    rates_axis,
    series_colour,
    test_column,
)
from lossratio.simulation import Recorded
from lossratio.values import FRAMES_PER_SECOND, range_in_words

_FEW = 4
LEAST_TRIALS = 10
"""Minimum number of trials at each load around the bounds for a record to say how well a goal repeats. With fewer
trials, each search meets the same trials."""
_LEFT = 20.0
_RIGHT = 880.0
_TOP = 12.0
_LANE = 44.0
_MARK = Mark("lower", "lower bound", "circle", series_colour(2))


@dataclass(frozen=True)
class _Row:
    """All searches for a goal on one record; `searches` is a data frame with `lossratio_study.Row`'s columns.

    There are at least `fewest` trials at each load around the bounds.
    """

    test: str
    link: str
    goals: str
    searches: Any
    fewest: int

    @property
    def words(self) -> str:
        return f"{self.test} {self.goals}".lower()

    @property
    def is_odd(self) -> bool:
        return not self.searches.regular.all()

    @property
    def spread(self) -> float | None:
        """How far the lower bounds are apart, in per cent of their median; None: the record does not say."""
        lower = self.searches.lower
        if self.fewest < LEAST_TRIALS or not lower.notna().any():
            return None
        return float(100.0 * (lower.max() - lower.min()) / lower.median())

    @property
    def bounds(self) -> str:
        lower = self.searches.lower
        ends = (FRAMES_PER_SECOND.format(bound) for bound in (lower.min(), lower.max()))
        if not lower.notna().any():
            return NOTHING
        return range_in_words(*ends)

    @property
    def seconds(self) -> float:
        """Mean time of a search."""
        return float(self.searches.elapsed.mean())

    @property
    def longest(self) -> float:
        """Seconds of the longest search."""
        return float(self.searches.elapsed.max())

    @property
    def trials(self) -> float:
        """Mean number of trials of a search."""
        return float(self.searches.trials.mean())

    @property
    def regular(self) -> str:
        return f"{int(self.searches.regular.sum())} of {len(self.searches)}"


# Table: each column on a line.
_COLUMNS: tuple[Column[_Row], ...] = (
    test_column(_Row),
    Column("goal", attrgetter("goals")),
    number_column("seconds", attrgetter("seconds"), "{:,.0f}".format),
    number_column("longest, s", attrgetter("longest"), "{:,.0f}".format),
    number_column("trials", attrgetter("trials"), "{:,.0f}".format),
    number_column("spread, %", attrgetter("spread"), "{:.2f}".format),
    Column("lower bounds", attrgetter("bounds"), style="number"),
    Column("regular", attrgetter("regular")),
)


def replay_page(searches: Any, titles: Mapping[str, str], title: str, suts: Mapping[str, Recorded]) -> str:
    """Makes the page of searches, a data frame with `lossratio_study.Row`'s columns.

    The titles of the sets of goals are given by their short names, and the recorded SUTs by their names.
    """
    records = list(dict.fromkeys(searches.family))
    several = searches.algorithm.nunique() > 1
    rows = []
    keys = ["family", "goal_set", "goal", "algorithm"]
    for (record, goals, goal, algorithm), chosen in searches.groupby(keys, sort=False):
        link = f"record-{records.index(record) + 1}"
        words = f"{titles[goals]}: {goal}"
        if several:
            words = f"{words}, {algorithm}"
        fewest = _fewest_trials(suts[record], chosen)
        rows.append(_Row(record, link, words, chosen, fewest))

    overview = Overview(
        rows=rows,
        columns=_COLUMNS,
        filters={"goal": ("Goal", attrgetter("goals"))},
        only="Only with irregular results",
        few=_FEW,
        fewest=1,
    )
    cards = []
    for record in records:
        of_record = [row for row in rows if row.test == record]
        cards.append((of_record[0].link, record, _draw(of_record)))

    number = len(searches.groupby(["seed", "repeat"]))
    return overview.page(
        "page.html.jinja",
        cards,
        package=str(__package__),
        title=title,
        sentences=[],
        headline=f"records: {len(records)}, searches on each: {number}",
        goals=list(_goals(rows)),
    )


def _fewest_trials(sut: Recorded, searches: Any) -> int:
    """The minimum number of trials at a load of a record, from the lowest bound found to the highest."""
    ends = [end for column in ("lower", "upper") for end in searches[column].dropna()]
    return sut.fewest_trials(min(ends), max(ends)) if ends else 0


def _goals(rows: Sequence[_Row]) -> Iterator[tuple[str, ...]]:
    """For each goal, over all records: mean seconds, the median and the largest spread, regular results."""
    for goals in dict.fromkeys(row.goals for row in rows):
        chosen = [row for row in rows if row.goals == goals]
        spreads = sorted(row.spread for row in chosen if row.spread is not None)
        seconds = sum(row.seconds for row in chosen) / len(chosen)
        middle = NOTHING
        widest = NOTHING
        if spreads:
            middle = f"{spreads[len(spreads) // 2]:.2f} %"
            widest = f"{spreads[-1]:.2f} %"

        regular = sum(int(row.searches.regular.sum()) for row in chosen)
        number = sum(len(row.searches) for row in chosen)
        yield goals, f"{seconds:,.0f}", middle, widest, f"{regular} of {number}"


def _draw(rows: Sequence[_Row]) -> str:
    """Draws the interval of each search, in a lane for each goal; an empty string if no search has bounds."""
    found = [row.searches[row.searches.lower.notna()] for row in rows]
    ends = [end for chosen in found for column in ("lower", "upper") for end in chosen[column].dropna()]
    if not ends:
        return ""

    room = 0.05 * (max(ends) - min(ends)) or 0.05 * max(ends)
    bottom = _TOP + _LANE * len(rows)
    plot = Plot(Axis(min(ends) - room, max(ends) + room, _LEFT, _RIGHT), Axis(0.0, len(rows), bottom, _TOP))
    about, in_words = rates_axis("load", max(ends))
    plot.frame(plot.x.ticks(9), range(1, len(rows)), in_words, _without_words)

    for lane, (row, chosen) in enumerate(zip(reversed(rows), reversed(found), strict=True)):
        for number, search in enumerate(chosen.itertuples()):
            y = lane + 0.1 + 0.5 * (number + 0.5) / len(chosen)
            hint = f"{FRAMES_PER_SECOND.format(search.lower)}, {search.elapsed:,.0f} s, {search.trials} trials"
            end = search.upper if search.upper > 0.0 else search.lower
            plot.steps([(search.lower, end, y)], series_colour(4))
            plot.marks(_MARK, [(search.lower, y, hint)])
        plot.text(_LEFT + 4.0, plot.y.place(lane + 0.72), row.goals)

    plot.text(_LEFT, bottom + 34.0, about)
    return plot.svg(bottom + 40.0, "The lower bound of each search, with its interval.")


def _without_words(lane: float) -> str:
    return ""
