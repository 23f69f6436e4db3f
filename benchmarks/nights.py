"""Nights that ask whether a SUT is as before: how often the answer is wrong, and how long it takes.

    python benchmarks/nights.py --recorded DIRECTORY --between either
    python benchmarks/nights.py --families hard

`lossratio.simulation.Recorded` says what is in the directory's files (`*.jsonl`).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np

from lossratio.mlrsearch import NDR, PDR, Answer, LoadGrid, MLRsearch, Question, SearchGoalWarning
from lossratio.simulation import Recorded, RunningSut, Sut, Traffic, WithoutTruth
from lossratio.trials import TrialResult
from lossratio_study.algorithms import search_with_ours
from lossratio_study.nights import NIGHT_STREAM, scaled
from lossratio_study.outcome import Outcome
from lossratio_study.study import FAMILY_SETS, NO_OVERHEAD
from lossratio_study.suts import Scaled, Subject

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


@click.command(help=__doc__)
@click.option("--recorded", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Records.")
@click.option("--between", type=click.Choice(["interpolated", "either"]), default="interpolated", show_default=True)
@click.option("--families", type=click.Choice(list(FAMILY_SETS)), help="Simulated SUTs.")
@click.option("--goals", type=click.Choice(list(GOALS)), default="NDR, PDR", show_default=True)
@click.option("--first", default=0, show_default=True, help="The first record, or the first seed.")
@click.option("--seeds", default=1, show_default=True, help="Simulated SUTs of each family.")
@click.option("--every", default=1, show_default=True, help="Only each so-manieth record.")
@click.option("--questions", default=8, show_default=True, help="Questions to each SUT after each change.")
def main(
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


if __name__ == "__main__":
    main()
