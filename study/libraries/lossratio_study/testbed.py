"""Searches on a testbed: the same algorithms, whose trials send frames. Each search has a journal that can be replayed.

Nobody knows the truth of a testbed, so there is no bias. There is no certificate either, because its proof would take
trials, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lossratio.errors import SearchError
from lossratio.trials import Journal, Measurer, TrialInput, TrialOutput, TrialResult
from lossratio_study.algorithms import Algorithm
from lossratio_study.search import GoalSet, Row, rows_of, search
from lossratio_study.suts import NO_OVERHEAD, Overhead, Subject

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Testbed
    from lossratio.traffic import TrafficProfile


@dataclass(frozen=True)
class Place:
    """The testbed that is searched on, its DUT, and the traffic."""

    topology: Path
    """The topology file, or the name of one that comes with lossratio."""
    dut: str | None
    """Kind of the DUTs; None: they stay as they are."""
    options: Mapping[str, str]
    """Options of this kind."""
    profile: str
    """The traffic profile."""
    frame_size: str
    """Size of the frames, e.g. ``64B``, or the name of a mix of sizes."""
    min_load: float | None
    """Smallest load of a search, frames per second per interface; None: as in a measurement."""
    max_load: float | None
    """Largest load of a search, frames per second per interface; None: what links, NICs and generator allow."""


def searches_on_testbed(
    place: Place, goal_sets: Sequence[GoalSet], algorithms: Sequence[Algorithm], repeats: int, journals: Path
) -> Iterator[Row]:
    """Searches with each algorithm for each set of goals, all of this `repeats` times, and yields the rows.

    Algorithms take turns, so that a testbed that changes slowly is the same for all of them. An algorithm does not take
    part if it cannot search for the goals.

    Args:
        place: The testbed.
        goal_sets: The sets of goals.
        algorithms: The algorithms.
        repeats: Number of searches of each kind.
        journals: Directory of the journals, one for each search.

    Raises:
        SearchError: If an algorithm must know the SUT, or none can search for these goals. Nothing has been touched
            yet.
        LossRatioError: If the testbed cannot be set up, or a trial cannot be trusted. The journals have all trials.
    """
    searches = [
        (goal_set, algorithm) for goal_set in goal_sets for algorithm in algorithms if algorithm.applies(goal_set.goals)
    ]
    if not searches:
        raise SearchError("None of these algorithms can search for these goals.")
    knowing = ", ".join(algorithm.name for algorithm in algorithms if algorithm.knows_the_sut)
    if knowing:
        raise SearchError(f"{knowing} must know the SUT, and the SUT of a testbed is not known. Leave it out.")

    with _opened(place) as bench:
        for repeat in range(repeats):
            for goal_set, algorithm in searches:
                yield from bench.rows(goal_set, algorithm, repeat, journals)


@contextmanager
def _opened(place: Place) -> Iterator["_Bench"]:
    from lossratio.testbed import load_limits, load_range, open_testbed
    from lossratio.traffic import load_profile, parse_frame_size

    profile = load_profile(place.profile, frame_size=parse_frame_size(place.frame_size))
    with open_testbed(place.topology, dut=place.dut, options=place.options) as testbed:
        limits = load_limits(testbed, profile)
        step = testbed.load_step(profile)
        loads = load_range(limits, min_load=place.min_load, max_load=place.max_load, step=step)
        yield _Bench(testbed, profile, loads)


@dataclass(frozen=True)
class _Bench:
    testbed: "Testbed"
    profile: "TrafficProfile"
    loads: "LoadRange"

    def rows(self, goal_set: GoalSet, algorithm: Algorithm, repeat: int, journals: Path) -> Iterator[Row]:
        name = f"{goal_set.name}-{algorithm.name}-{repeat + 1}".replace(" ", "-").replace(",", "")
        path = journals / f"{name}.jsonl"
        topology = self.testbed.request.topology.name
        subject = Subject(topology, 0, None, self.loads.min_load, self.loads.max_load)
        overhead = algorithm.overhead or NO_OVERHEAD

        inputs = {
            "algorithm": algorithm.name,
            "goals": [str(goal) for goal in goal_set.goals],
            "topology": topology,
            "profile": self.profile.name,
            "frame_size": str(self.profile.frame_size),
            "min_load_fps": subject.min_load,
            "max_load_fps": subject.max_load,
        }

        with self.testbed.ready_for(self.profile) as ready:
            with Journal.open(path, inputs) as journal:
                journal.is_verified = ready.is_verified
                journal.verify_within = ready.verify_within
                journal.late_frames = ready.late_frames
                measurer = Journaled(WithOverhead(ready.measurer, overhead, self.loads.step), journal)
                done = search(goal_set, subject, algorithm, measurer)
                ready.wait_for_late_frames()
            if ready.is_verified():
                Journal.prove(path)

        yield from rows_of(done, goal_set, subject, overhead, algorithm, repeat)


@dataclass(frozen=True)
class Journaled:
    """A measurer that writes each trial to the disk before the next trial begins."""

    measurer: Measurer
    """Performs the trials."""
    journal: Journal
    """Keeps them."""

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs one trial, and keeps it. Errors are those of the measurer and of the journal."""
        self.journal.prove_before(trial)
        output = self.measurer.measure(trial)
        self.journal.append(TrialResult(trial, output))
        return output


@dataclass(frozen=True)
class WithOverhead:
    """A measurer whose trials are as long as those of an algorithm with an overhead of its own."""

    measurer: Measurer
    """Performs the trials."""
    overhead: Overhead
    """Trials have this rest, in addition to the rest that the testbed needs. If it counts, the whole time of a trial
    counts."""
    step: float = 0.0
    """The generator sends multiples of this load, in frames per second; 0: any load."""

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs one trial; errors are those of the measurer."""
        sent = trial.sendable(self.step)
        asked = replace(sent, rest=sent.rest + self.overhead.seconds)
        output = self.measurer.measure(asked)
        if not self.overhead.counted:
            return output
        return replace(output, effective_duration=TrialResult(asked, output).elapsed)
