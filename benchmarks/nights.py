"""Nights that ask whether a SUT is as before: how often the answer is wrong, and what it saves.

    python benchmarks/nights.py as-before --recorded DIRECTORY --between either
    python benchmarks/nights.py as-before --families hard
    python benchmarks/nights.py lab --years 50

`lossratio.simulation.Recorded` says what is in the directory's files (`*.jsonl`).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np
from trend import QUIET, as_series

from lossratio.history import TrendVerdict
from lossratio.history.trend import trends_of
from lossratio.measurements.throughput.nightly import LEAST_SEARCHES, SEARCH_EVERY
from lossratio.mlrsearch import NDR, PDR, Answer, LoadGrid, MLRsearch, Question, SearchGoalWarning
from lossratio.simulation import Recorded, RunningSut, Sut, Traffic, WithoutTruth
from lossratio.trials import TrialResult
from lossratio_study.algorithms import search_with_ours
from lossratio_study.nights import NIGHT_STREAM, scaled
from lossratio_study.outcome import Outcome
from lossratio_study.study import FAMILY_SETS, NO_OVERHEAD
from lossratio_study.suts import Scaled, Subject


@click.group(help=__doc__)
def main() -> None:
    """Nights that ask."""


GOALS = {"NDR, PDR": (NDR, PDR), "NDR": (NDR,), "PDR": (PDR,)}
NIGHTS = 5
CHANGES = (0.0, 0.01, 0.02, 0.05)
FEWER = (0.03, 0.05, 0.1, 0.2, 0.4)
"""How much slower a part of the trials is, or the largest load without loss."""
QUESTION_STREAM = 9


@dataclass(frozen=True)
class Known:
    """A SUT with its earlier searches."""

    subject: Subject
    nights: Sequence[Sequence[TrialResult]]
    """The trials of each search."""
    ndr: float
    """The relevant lower bound of the first goal, in frames per second."""
    seconds: float
    """Time of a search."""

    def question(self, goals: str) -> Question:
        """The question, still without trials."""
        subject = self.subject
        grid = LoadGrid(subject.min_load, subject.max_load, min(goal.width for goal in GOALS[goals]))
        return Question(GOALS[goals], grid, [trial for night in self.nights for trial in night])


@dataclass(frozen=True)
class Asked:
    """One question."""

    answer: Answer | None
    time: float
    """Its time, divided by that of a search of the same SUT."""
    whole: float
    """The same with the search that follows."""


@dataclass(frozen=True)
class Unlike(WithoutTruth):
    """A SUT after a change that is not a move of all its loads."""

    part: Sut
    """The SUT before the change."""
    change: str
    """A key of `UNLIKE`."""
    share: float
    """The share of the trials that the change affects."""
    factor: float
    """How fast these trials are, or the largest load without loss, as a share of what it was."""
    ndr: float
    """NDR before the change, in frames per second."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """Starts the SUT."""
        return UNLIKE[self.change](self, rng)


def _rare_loss(changed: Unlike, rng: np.random.Generator) -> RunningSut:
    """A few frames are lost in a share of the trials, at any load."""
    running = changed.part.start(rng)

    def lost_frames(traffic: Traffic) -> int:
        more = int(rng.integers(1, 60)) if not traffic.continues and rng.random() < changed.share else 0
        return min(traffic.frames, running(traffic) + more)

    return lost_frames


def _ndr_alone(changed: Unlike, rng: np.random.Generator) -> RunningSut:
    """One frame in 100,000 is lost above a load."""
    running = changed.part.start(rng)

    def lost_frames(traffic: Traffic) -> int:
        more = traffic.load > changed.factor * changed.ndr and max(1, round(1e-5 * traffic.frames))
        return min(traffic.frames, running(traffic) + more)

    return lost_frames


def _slower(spell: float) -> Callable[[Unlike, np.random.Generator], RunningSut]:
    """A share of the trials is slower, in spells that last this number of trials on average."""

    def start(changed: Unlike, rng: np.random.Generator) -> RunningSut:
        fast, slow = changed.part.start(rng), Scaled(changed.part, changed.factor).start(rng)
        is_slow = rng.random() < changed.share

        def lost_frames(traffic: Traffic) -> int:
            nonlocal is_slow
            if not traffic.continues and rng.random() < 1.0 / spell:
                is_slow = rng.random() < changed.share
            return slow(traffic) if is_slow else fast(traffic)

        return lost_frames

    return start


UNLIKE = {"rare loss": _rare_loss, "NDR alone": _ndr_alone, "slower share": _slower(1.0), "two bands": _slower(4.0)}
"""The changes that are no moves, by name."""


@main.command("as-before")
@click.option("--recorded", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Records.")
@click.option("--between", type=click.Choice(["interpolated", "either"]), default="interpolated", show_default=True)
@click.option("--families", type=click.Choice(list(FAMILY_SETS)), help="Simulated SUTs.")
@click.option("--goals", type=click.Choice(list(GOALS)), default="NDR, PDR", show_default=True)
@click.option("--first", default=0, show_default=True, help="The first record, or the first seed.")
@click.option("--seeds", default=1, show_default=True, help="Simulated SUTs of each family.")
@click.option("--every", default=1, show_default=True, help="Only each so-manieth record.")
@click.option("--questions", default=8, show_default=True, help="Questions to each SUT after each change.")
def ask_all(
    recorded: Path | None,
    between: str,
    families: str | None,
    goals: str,
    first: int,
    seeds: int,
    every: int,
    questions: int,
) -> None:
    """Asks SUTs whether they are as before, after changes of known size.

    How often is the answer wrong, and what does it cost? Each SUT is searched five times in a row, with hints from the
    earlier searches, and once more to find how long a search takes. Then the question is asked of the SUT after it was
    made faster and slower, and after changes that move no load or not all of them (`Unlike`).
    """
    warnings.simplefilter("ignore", SearchGoalWarning)
    if recorded is not None:
        files = sorted(recorded.glob("*.jsonl"))[first::every]
        subjects = [of_record(file, between) for file in files]
    else:
        drawn = FAMILY_SETS[families or "development"].values()
        subjects = [family.subject(seed) for family in drawn for seed in range(first, first + seeds)]

    known = [one for subject in subjects if (one := _known(subject, goals)) is not None]
    click.echo(f"{len(known)} of {len(subjects)} SUTs have bounds and loads to ask at; {questions} questions to each")
    heads = ("as before", "changed", "unsure", "trials' time", "with searches")
    click.echo(f"{'change':>22}" + "".join(f"{head:>15}" for head in heads))
    for change in CHANGES:
        moved = [
            _ask(one, scaled(one.subject, 1.0 + (change if number % 2 else -change)), number, goals)
            for one in known
            for number in range(questions)
        ]
        click.echo(_line(f"{change:.0%}", moved))
    for name in UNLIKE:
        unlike = [_ask(one, _drawn(one, name, number), number, goals) for one in known for number in range(questions)]
        click.echo(_line(name, unlike))


def of_record(file: Path, between: str) -> Subject:
    """The SUT of a record."""
    sut = Recorded(file, between)  # type: ignore[arg-type]
    loads = sut.loads()
    return Subject(file.stem, 0, sut, loads[0], loads[-1])


def earlier_nights(subject: Subject, goals: str) -> list[Outcome] | None:
    """Five searches of a SUT, each with hints from the earlier ones, and one more; None: a search found no bounds."""
    nights: list[Outcome] = []
    for night in range(NIGHTS + 1):
        measurer = subject.measurer(NO_OVERHEAD, night, NIGHT_STREAM)
        hints = [earlier.trials for earlier in nights]
        nights.append(search_with_ours(GOALS[goals], subject, measurer, hints=hints))
        if not all(result.regular for result in nights[-1].result.values()):
            return None
    return nights


def evidence(nights: Sequence[Outcome]) -> list[list[TrialResult]]:
    """The trials of the nights that a question considers."""
    return [[trial for trial in night.trials if not trial.input.rest] for night in nights]


def _known(subject: Subject, goals: str) -> Known | None:
    """A SUT with its searches; None: a search found no bounds, or a goal has no loads to ask the question at."""
    nights = earlier_nights(subject, goals)
    if nights is None:
        return None
    ndr = nights[-2].result[GOALS[goals][0]].relevant_lower_bound or 0.0
    known = Known(subject, evidence(nights[:NIGHTS]), ndr, nights[-1].result.elapsed)
    return known if known.question(goals).answer is None else None


def _drawn(known: Known, name: str, number: int) -> Subject:
    """The SUT after a drawn change that is no move."""
    subject = known.subject
    assert subject.sut is not None
    draw = np.random.default_rng((QUESTION_STREAM, number, subject.seed, *map(ord, subject.family + name)))
    share, factor = draw.uniform(0.55, 0.95), 1.0 - float(draw.choice(FEWER))
    return replace(subject, sut=Unlike(subject.sut, name, share, factor, known.ndr))


def _ask(known: Known, tonight: Subject, number: int, goals: str) -> Asked:
    """Asks the question of a SUT as it is tonight, and searches unless it is as before."""
    measurer = tonight.measurer(NO_OVERHEAD, number, QUESTION_STREAM)
    question = known.question(goals)
    loads = tonight.min_load, tonight.max_load
    search = MLRsearch(GOALS[goals], *loads, fail_fast=False, hints=known.nights, question=question)
    seconds = 0.0
    while (trial := search.next_trial()) is not None:
        is_asked = question.answer is None
        search.record(TrialResult(trial, measurer.measure(trial)))
        if is_asked:
            seconds = search.elapsed
    return Asked(search.answer, seconds / known.seconds, search.elapsed / known.seconds)


def _line(name: str, asked: Sequence[Asked]) -> str:
    counts = Counter(one.answer for one in asked)
    shares = [_share_of(counts[answer], len(asked)) for answer in Answer]
    times = np.array([(one.time, one.whole) for one in asked]).mean(axis=0)
    cells = (*shares, *(f"{each:.3f}" for each in times))
    return f"{name:>22}" + "".join(f"{cell:>15}" for cell in cells)


def _share_of(count: int, number: int) -> str:
    share = count / number
    return f"{share:.3f} ± {np.sqrt(share * (1.0 - share) / number):.3f}"


TESTS, JUDGED, REGRESSIONS = 200, 20, 3
SLOWER = 0.04
SEARCH_SECONDS = 80.0
"""Trials of a search for NDR and PDR with hints."""
QUESTION = 0.09
"""Time of a question whose answer is *as before*, in searches; `LONG_QUESTION` is for any other answer."""
LONG_QUESTION = 0.2
ALWAYS_MISSED, MISSED = 0.05, 0.015
"""The share of tests whose changes are always missed, and of changes that are missed in other tests."""
FALSE_CHANGED, UNSURE = 0.006, 0.012
"""The shares of unchanged nights that are called changed, and that are left to a search."""
CHANGED = 0.75
"""The share of *changed* among the answers about a changed SUT that are not *as before*."""

Night = tuple[float, float | None]
"""Time in searches, and the value, 1 before the change; None: the SUT was as before."""


@dataclass(frozen=True)
class Test:
    """A test."""

    begin: int
    """The first night with the regression."""
    noise: float
    """Relative standard deviation of its values."""
    always_missed: bool


@main.command("lab")
@click.option("--years", default=50, show_default=True, help="Sequences of nights.")
@click.option("--noise", default=0.3, show_default=True, help="Standard deviation of searches, per cent.")
def play_nights(years: int, noise: float) -> None:
    """Simulates nights of many tests that search, and nights that ask: tests per hour, and when an alarm comes.

    Tests are simulated by what questions and searches do on recorded routers (`records/as-before.md`): how often each
    answer occurs, and how long a question takes. Most missed changes belong to a few tests, so these tests miss all of
    their changes. Alarms are those of `lossratio trend`.
    """
    for name, play in (("search", _searches), ("as before", _questions)):
        time: list[float] = []
        delays: list[float] = []
        false = 0
        for year in range(years):
            rng = np.random.default_rng(year)
            tests = _tests(rng, noise / 100.0)
            played = [[*play(test, rng)] for test in tests]
            time.append(float(np.mean([spent for nights in played for spent, _ in nights[QUIET:]])))
            alarms = _first_alarms([[value for _, value in nights] for nights in played])
            for test, alarm in zip(tests, alarms, strict=True):
                if test.begin == JUDGED or (alarm is not None and alarm < test.begin):
                    false += alarm is not None
                else:
                    delays.append(np.inf if alarm is None else alarm - test.begin + 1)
        _print(name, np.array(time), np.array(delays), false, years)


def _print(name: str, time: np.ndarray, delays: np.ndarray, false: int, years: int) -> None:
    seconds = SEARCH_SECONDS * time
    rate = 3600.0 / seconds
    error = rate.std() / np.sqrt(len(rate))
    seen = ", ".join(f"{night}: {_share(float(np.mean(delays <= night)), len(delays))}" for night in (2, 3, 5, 8))
    click.echo(
        f"{name:>10}: {time.mean():.3f} of a search, {rate.mean():.0f} ± {error:.1f} tests an hour; share of "
        f"{len(delays)} regressions with an alarm by night {seen}; median {np.median(delays):g}; {false} false alarms "
        f"in {years * TESTS} tests of {JUDGED} nights"
    )


def _share(share: float, number: int) -> str:
    return f"{share:.2f} ± {np.sqrt(share * (1.0 - share) / number):.2f}"


def _tests(rng: np.random.Generator, noise: float) -> list[Test]:
    regressed = {int(place): int(rng.integers(JUDGED - 8)) for place in rng.choice(TESTS, REGRESSIONS, replace=False)}
    return [Test(regressed.get(place, JUDGED), noise, bool(rng.random() < ALWAYS_MISSED)) for place in range(TESTS)]


def _searched(test: Test, night: int, rng: np.random.Generator) -> float:
    """The value of a search."""
    return (1.0 - SLOWER * (night >= test.begin)) * (1.0 + test.noise * rng.standard_normal())


def _searches(test: Test, rng: np.random.Generator) -> Iterator[Night]:
    for night in range(-QUIET, JUDGED):
        yield 1.0, _searched(test, night, rng)


def _questions(test: Test, rng: np.random.Generator) -> Iterator[Night]:
    """Nights as `nightly=as_before` has them; after a change, they search until there are five searches."""
    searches = LEAST_SEARCHES
    since_search = 0
    # Whether the searches that questions compare with are those of the slower SUT.
    is_slow_usual = False
    for night in range(-QUIET, JUDGED):
        is_slow = night >= test.begin
        if night < 0 or searches < LEAST_SEARCHES or since_search + 1 >= SEARCH_EVERY:
            searches += 1
            since_search = 0
            yield 1.0, _searched(test, night, rng)
            continue

        is_changed, is_as_before = _answer(test, is_slow is not is_slow_usual, rng)
        if is_as_before:
            since_search += 1
            yield QUESTION, None
            continue

        since_search = 0
        searches = 1 if is_changed else searches + 1
        is_slow_usual = is_slow if is_changed else is_slow_usual
        yield 1.0 + LONG_QUESTION, _searched(test, night, rng)


def _answer(test: Test, has_changed: bool, rng: np.random.Generator) -> tuple[bool, bool]:
    """Whether the answer is *changed*, and whether it is *as before*."""
    drawn = rng.random()
    if not has_changed:
        return drawn < FALSE_CHANGED, drawn >= FALSE_CHANGED + UNSURE
    is_missed = test.always_missed or drawn < MISSED
    return not is_missed and rng.random() < CHANGED, is_missed


def _first_alarms(played: Sequence[Sequence[float | None]]) -> list[int | None]:
    """The first judged night of each test with an alarm as `lossratio trend` raises it; None: there is none."""
    first: list[int | None] = [None] * len(played)
    for night in range(JUDGED):
        until = [values[: QUIET + night + 1] for values in played]
        searched = [place for place, values in enumerate(until) if values[-1] is not None and first[place] is None]
        known = [np.array([value for value in until[place] if value is not None]) for place in searched]
        for place, trend in zip(searched, trends_of([as_series(values) for values in known]), strict=True):
            if trend.verdict is TrendVerdict.REGRESSION:
                first[place] = night
    return first


if __name__ == "__main__":
    main()
