"""Asks SUTs whether they are as before, after changes of known size: how often the answer is wrong, and what it costs.

python benchmarks/as_before.py --recorded DIRECTORY --between either
python benchmarks/as_before.py --families hard

`lossratio.simulation.Recorded` says what is in the directory's files (`*.jsonl`). Each SUT is searched five times in a
row, with hints from the earlier searches, and once more to find how long a search takes. Then the question is asked of
the SUT after it was made faster and slower. `rate stays`: the forwarding rate at maximum load does not change.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from lossratio.mlrsearch import NDR, PDR, Answer, LoadGrid, Question, SearchGoalWarning, Usual
from lossratio.simulation import Recorded
from lossratio.trials import TrialInput, TrialResult
from lossratio_study.algorithms import search_with_ours
from lossratio_study.nights import NIGHT_STREAM, scaled
from lossratio_study.outcome import Outcome
from lossratio_study.study import FAMILY_SETS, NO_OVERHEAD
from lossratio_study.suts import Subject

GOALS = {"NDR, PDR": (NDR, PDR), "NDR": (NDR,), "PDR": (PDR,)}
NIGHTS = 5
CHANGES = (0.0, 0.01, 0.02, 0.05)
QUESTION_STREAM = 9


@dataclass(frozen=True)
class Known:
    """A SUT with its earlier searches."""

    subject: Subject
    usual: Usual
    seconds: float
    """Time of a search."""


@dataclass(frozen=True)
class Asked:
    """One question."""

    answer: Answer
    seconds: float
    """Its time."""
    search: float
    """The time of a search of the same SUT, in seconds."""


@click.command(help=__doc__)
@click.option("--recorded", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Records.")
@click.option("--between", type=click.Choice(["interpolated", "either"]), default="interpolated", show_default=True)
@click.option("--families", type=click.Choice(list(FAMILY_SETS)), help="Simulated SUTs.")
@click.option("--goals", type=click.Choice(list(GOALS)), default="NDR, PDR", show_default=True)
@click.option("--first", default=0, show_default=True, help="The first record, or the first seed.")
@click.option("--every", default=1, show_default=True, help="Only each so-manieth record.")
@click.option("--questions", default=8, show_default=True, help="Questions to each SUT after each change.")
def main(
    recorded: Path | None, between: str, families: str | None, goals: str, first: int, every: int, questions: int
) -> None:
    """Prints a table."""
    warnings.simplefilter("ignore", SearchGoalWarning)
    if recorded is not None:
        files = sorted(recorded.glob("*.jsonl"))[first::every]
        subjects = [of_record(file, between) for file in files]
    else:
        subjects = [family.subject(first) for family in FAMILY_SETS[families or "development"].values()]

    known = [one for subject in subjects if (one := _known(subject, goals)) is not None]
    click.echo(f"{len(known)} of {len(subjects)} SUTs have bounds and loads to ask at; {questions} questions to each")
    heads = ("as before", "changed", "unsure", "trials' time", "with searches")
    click.echo(f"{'change':>22}" + "".join(f"{head:>15}" for head in heads))
    for change in CHANGES:
        click.echo(_line(f"{change:.0%}", _asked(known, change, questions)))
    for change in CHANGES[2:]:
        click.echo(_line(f"{change:.0%}, rate stays", _asked(known, change, questions, rate_stays=True)))


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
    """A SUT with its searches; None: a search found no bounds, or no load is left to ask the question at."""
    nights = earlier_nights(subject, goals)
    if nights is None:
        return None
    grid = LoadGrid(subject.min_load, subject.max_load, min(goal.width for goal in GOALS[goals]))
    trials = [trial for night in evidence(nights[:NIGHTS]) for trial in night]
    usual = Usual(GOALS[goals], grid, trials)
    return Known(subject, usual, nights[-1].result.elapsed) if usual.loads else None


def _asked(known: Sequence[Known], change: float, questions: int, *, rate_stays: bool = False) -> list[Asked]:
    return [
        _ask(one, 1.0 + (change if number % 2 else -change), number, rate_stays)
        for one in known
        for number in range(questions)
    ]


def _ask(known: Known, factor: float, number: int, rate_stays: bool) -> Asked:
    """Asks the question of a SUT that is faster by a factor."""
    unchanged = known.subject
    tonight = scaled(unchanged, factor).measurer(NO_OVERHEAD, number, QUESTION_STREAM)
    at_max_load = unchanged.measurer(NO_OVERHEAD, number, QUESTION_STREAM) if rate_stays else tonight
    question = Question(known.usual, unchanged.max_load)
    seconds = 0.0
    while question.answer is None:
        trial = TrialInput(1.0, question.next_load())
        measurer = at_max_load if trial.load == unchanged.max_load else tonight
        result = TrialResult(trial, measurer.measure(trial))
        seconds += result.elapsed
        question.add(result)
    return Asked(question.answer, seconds, known.seconds)


def _line(name: str, asked: Sequence[Asked]) -> str:
    counts = Counter(one.answer for one in asked)
    shares = [_share(counts[answer], len(asked)) for answer in Answer]
    times = np.array([one.seconds / one.search for one in asked])
    searched = np.array([one.answer is not Answer.AS_BEFORE for one in asked])
    cells = (*shares, *(f"{each.mean():.3f}" for each in (times, times + searched)))
    return f"{name:>22}" + "".join(f"{cell:>15}" for cell in cells)


def _share(count: int, number: int) -> str:
    share = count / number
    return f"{share:.3f} ± {np.sqrt(share * (1.0 - share) / number):.3f}"


if __name__ == "__main__":
    main()
