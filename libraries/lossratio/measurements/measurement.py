"""One measurement of one test: its trials, which go into the journal, their conditions, and any failure."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lossratio import trials
from lossratio.errors import SearchError, StarvedGeneratorError, StorageError, storing
from lossratio.files import shell_word
from lossratio.measurements.request import Request
from lossratio.results import (
    INTERRUPTED,
    Conditions,
    MaxLoad,
    Note,
    NoteKind,
    Outcome,
    RunDirectory,
    TestIdentity,
    TestRun,
    describe_trials,
    low_rate_check,
    noted,
)
from lossratio.values import Record, checked, format_frame_rate
from lossratio.version import __version__

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Ready, Testbed

ResultT = TypeVar("ResultT")
RecordT = TypeVar("RecordT", bound=Record)

UNPROVED = "not proved, because it is not known whether the DUT was still as it was set up: trials "
"""Beginning of the remark that names the trials that a resumed run measures again."""

STARVED = "the generator was starved, and the search counted frames as lost that were never sent"
"""Why trials are withdrawn if the generator misled the search."""


class Span:
    """The time since this object was made, correct even if the clock is set in the meantime.

    It started at `started`, UTC.
    """

    def __init__(self) -> None:
        self.started = datetime.now(timezone.utc)
        self._began = time.monotonic()

    def end(self) -> datetime:
        """The present time: the start by the clock, plus the time that has really passed since then."""
        return self.later_than(self.started)

    def later_than(self, moment: datetime) -> datetime:
        """A moment, later by the time that has really passed since the start."""
        return moment + timedelta(seconds=time.monotonic() - self._began)


@checked(SearchError)
@dataclass(frozen=True)
class TestPlace:
    """The test that a measurement belongs to, and the directories of its files."""

    __test__ = False

    test: TestIdentity
    """The test; no two measurements of a run have the same full name."""
    directory: RunDirectory
    """The directory of the run."""
    resume: RunDirectory | None = None
    """The directory of an earlier run, whose journal of the same test is continued if there is one."""
    forced: str | None = None
    """The differences from the earlier run, if the user continues that run in spite of them. All results name them."""


@dataclass(frozen=True)
class Measurement(Generic[ResultT]):
    """The trials and the conclusion of a measurement, also of one that failed."""

    run: TestRun
    """The test, its time and its conditions."""
    result: ResultT
    """The controller's conclusion from all trials."""
    entries: tuple[trials.JournalEntry, ...]
    """All trials so far."""
    failure: BaseException | None
    """The exception that stopped the measurement; None if nothing did."""

    @property
    def resolution(self) -> float | None:
        """Seconds by which the time of a frame may be wrong, in all timelines; None: there is no timeline."""
        lines = (line for entry in self.entries for line in entry.result.output.timelines)
        return max((line.resolution for line in lines), default=None)

    def stated(
        self,
        max_load: MaxLoad,
        reason: str | None = None,
        why_set_aside: Callable[[trials.TrialResult], str | None] = lambda _: None,
    ) -> dict[str, Any]:
        """The fields that results of all kinds have; with a reason, the result is irregular."""
        if self.run.error is not None:
            outcome = Outcome.FAILED
        elif reason:
            outcome = Outcome.IRREGULAR
        else:
            outcome = Outcome.MEASURED

        described = describe_trials(self.entries, why_set_aside=why_set_aside)
        return {**self.run.stated(), "outcome": outcome, "trials": described, "max_load": max_load}


class Additions(AbstractContextManager["Additions"]):
    """Additions to the result of a search, measured after it: each part is in the journal before the next one begins.

    A resumed run takes parts that are requested again from the journal, and measures the others. Each part is requested
    as JSON data. The number counts, from 1, how often the test has measured this field of the result; None: this is
    always a new measurement, and nothing is taken from the journal.

    Raises:
        SearchError: If the test has no journal, or it is damaged.
        StorageError: If the journal cannot be written.
    """

    def __init__(
        self, place: TestPlace, part: str, asked: Sequence[Mapping[str, Any]], number: int | None
    ) -> None:
        path = place.directory.journal_path(place.test.full_name)
        earlier = [
            addition for addition in trials.read_journal(path).additions if addition.part == part
        ]
        known = [addition for addition in earlier if addition.measurement == number]
        self._part = part
        self._asked: list[Mapping[str, Any]] = [
            json.loads(json.dumps({"number": part_number, **request}))
            for part_number, request in enumerate(asked, start=1)
        ]
        self._known: list[trials.Addition] = []
        self._measurement = 1 + max((addition.measurement for addition in earlier), default=0)

        if (
            place.resume is not None
            and known
            and all(addition.request in self._asked for addition in known)
        ):
            self._known = known
            self._measurement = known[0].measurement

        self._journal = trials.Journal.reopen(path)

    def __exit__(self, *error: object) -> None:
        self._journal.close()

    def known(self, place: int, kind: type[RecordT]) -> RecordT | None:
        """What an earlier attempt of the run measured for a part; None: it must be measured."""
        found = [
            addition.found for addition in self._known if addition.request == self._asked[place]
        ]
        if found:
            return kind.model_validate_json(json.dumps(found[-1]), strict=True)
        return None

    def add(self, place: int, found: Record) -> None:
        """Writes what was measured for a part.

        Raises:
            SearchError: If it has a form that could not be read again.
            StorageError: If it cannot be written.
        """
        text = found.model_dump_json()
        self._journal.add(
            trials.Addition(self._part, self._measurement, self._asked[place], json.loads(text))
        )


@dataclass(frozen=True)
class Course:
    """What a kind of measurement does around the trials of its controller."""

    inputs: Mapping[str, Any]
    """The controller's settings, as JSON data; a journal is continued only with the same settings."""
    remarks: tuple[Note, ...]
    """What the measurement itself notes."""
    measurer: Callable[[Ready], trials.Measurer]
    """Makes the measurer that performs the trials on the ready testbed."""
    seen: Callable[[trials.TrialResult], None]
    """Receives each trial after its measurement."""
    loads: LoadRange
    """The range of loads; the journal's header has the largest load."""
    span: Span
    """The time of the measurement, which began before the warm-up."""


def perform(
    controller: trials.Controller[ResultT],
    testbed: Testbed,
    request: Request,
    place: TestPlace,
    course: Course,
) -> Measurement[ResultT]:
    """Runs a controller's trials on a testbed.

    Any exception that stops the trials, including an interrupt from the keyboard, is in the answer's `failure`. So the
    caller can write the result file before it raises the exception. The answer has all trials. A remark names the
    trials after the last verification of the DUTs, and a resumed run measures them again. With the integrity ``fail``,
    the first trial that shows a fault is the last trial, and a measurement that continues from this trial has also
    failed.

    Raises:
        LossRatioError: If the measurement could not even begin.
    """
    attempt: _Attempt | None = None
    try:
        with request.ready(testbed) as ready:
            attempt = _Attempt(testbed, ready, request, place, course)
            attempt.check_earlier()
            options: Any = {
                "journal": attempt.journal,
                "on_trial": attempt.seen,
                "load_step": course.loads.step,
            }
            trials.run_search(controller, course.measurer(ready), **options)
            ready.wait_for_late_frames()
    except BaseException as error:
        # The caller raises the exception, even an interrupt, after it has written the result file. Before the first
        # trial, there is nothing to write.
        if attempt is None:
            raise
        attempt.failure = error

    entries = attempt.end()
    return Measurement(attempt.run(), controller.result(), entries, attempt.failure)


class _Attempt:
    def __init__(
        self, testbed: Testbed, ready: Ready, request: Request, place: TestPlace, course: Course
    ) -> None:
        self._ready = ready
        self._place = place
        self._course = course
        self._is_checked = request.integrity is trials.Integrity.FAIL
        inputs = {**course.inputs, **({"rest_s": request.rest} if request.rest else {})}
        if request.integrity is not trials.Integrity.DOUBT:
            inputs["integrity"] = request.integrity.value
        self._remarks = course.remarks
        if place.forced is not None:
            forced = noted(f"resumed by force, although {place.forced}", NoteKind.CAVEAT)
            self._remarks = (*course.remarks, forced)
        conditions = ready.conditions
        # The facts that a result states besides its numbers, for results that are made from the journal alone.
        about = {
            "test": place.test.model_dump(mode="json"),
            "conditions": conditions.model_dump(mode="json"),
            "remarks": [note.model_dump(mode="json") for note in self._remarks],
            "max_load": course.loads.describe(conditions).model_dump(mode="json"),
        }
        self.journal = _journal(place, conditions, _search(testbed, ready, inputs), about)
        self.journal.is_verified = ready.is_verified
        self.journal.verify_within = ready.verify_within
        if self.journal.was_cut_off:
            ready.verify_often()
        self.journal.late_frames = ready.late_frames
        self._continued = len(self.journal.results)

        self.failure: BaseException | None = None

    def check_earlier(self) -> None:
        if self._is_checked:
            trials.check_integrity(
                low_rate_check(self._ready.conditions.generator),
                "in the check before the first trial",
            )
            for trial in self.journal.results:
                _check_trial(trial)

    def seen(self, trial: trials.TrialResult) -> None:
        """Ends a measurement, if requested, at the first trial whose frames did not come back as they were sent."""
        self._course.seen(trial)
        if self._is_checked:
            _check_trial(trial)

    def end(self) -> tuple[trials.JournalEntry, ...]:
        """Closes the journal, proves or withdraws its last trials, and returns all trials."""
        self.journal.close()
        contents = trials.read_journal(self.journal.path)
        entries = (*contents.entries, *contents.unproved)

        try:
            if isinstance(self.failure, StarvedGeneratorError):
                # A search has counted the unsent frames as lost, and cannot recover from this mistake.
                new = [entry.result.output for entry in entries[self._continued :]]
                keep = next(
                    (number for number, output in enumerate(new) if output.unsent_frames), len(new)
                )
                if keep < len(new):
                    trials.Journal.withdraw(self.journal.path, len(new) - keep, STARVED)
            if self._ready.is_verified():
                trials.Journal.prove(self.journal.path)
        except StorageError as error:
            self.failure = self.failure or error

        return entries

    def run(self) -> TestRun:
        from lossratio.testbed import guilty_of

        contents = trials.read_journal(self.journal.path)
        proved, unproved = len(contents.entries), len(contents.unproved)
        remarks = self._remarks
        if unproved:
            again = noted(
                f"{UNPROVED}{proved + 1} to {proved + unproved}; a resumed run measures them again"
            )
            remarks = (*remarks, again)

        return TestRun(
            self._place.test,
            self._course.span.started,
            self._course.span.end(),
            self._ready.conditions,
            remarks,
            error=None if self.failure is None else what_stopped(self.failure),
            guilty=guilty_of(self.failure),
        )


def _check_trial(trial: trials.TrialResult) -> None:
    trials.check_integrity(
        trial.output.directions, f"at {format_frame_rate(trial.load)} for {trial.duration:g} s"
    )


def what_stopped(failure: BaseException) -> str:
    """What the result says about the exception that stopped its measurement."""
    if isinstance(failure, KeyboardInterrupt | SystemExit):
        return INTERRUPTED
    return str(failure) or type(failure).__name__


def _search(testbed: Testbed, ready: Ready, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The settings and versions that must stay the same if a measurement is to be continued."""
    dut = testbed.request.dut

    # Record: the header of a journal.
    return {
        "lossratio": __version__,
        **inputs,
        "traffic": ready.conditions.traffic.model_dump(mode="json"),
        "load": ready.conditions.load.model_dump(mode="json"),
        "timing": ready.conditions.timing.model_dump(mode="json"),
        "topology": testbed.request.topology.model_dump(mode="json"),
        "path": [str(port) for path in testbed.request.paths for port in path.ports],
        "dut": None if dut is None else dut.to_json(),
        "kernels": {name: facts.kernel for name, facts in ready.conditions.nodes.items()},
        "dut_versions": {
            name: facts.get("version") for name, facts in ready.conditions.duts.items()
        },
    }


def _new_versions(then: Conditions, now: Conditions) -> Iterator[str]:
    """The DUTs that now have another version but are still of the same kind."""
    for name, dut in now.duts.items():
        old = then.duts.get(name)
        if old is None or old.get("kind") != dut.get("kind"):
            continue
        if old.get("version") != dut.get("version"):
            versions = f"was version {old.get('version')}, and is now {dut.get('version')}"
            yield f"{name} ({dut.get('kind')}) {versions}"


def _journal(
    place: TestPlace, conditions: Conditions, search: Mapping[str, Any], about: Mapping[str, Any]
) -> trials.Journal:
    if (
        place.resume is not None
        and place.forced is None
        and (place.resume.path / "results").is_dir()
    ):
        # The DUTs must have the versions with which the earlier part of the run was measured.
        run = place.resume.path
        for result in place.resume.results():
            changes = ", ".join(_new_versions(result.conditions, conditions))
            if changes:
                raise SearchError(
                    f"The run in {run} cannot be continued: {changes}. Its results belong to the earlier state. "
                    "Restore it, start a new run, or continue anyway: lossratio run --resume "
                    f"{shell_word(run)} --force"
                )

    path = place.directory.journal_path(place.test.full_name)
    earlier = None if place.resume is None else place.resume.journal_path(place.test.full_name)
    if earlier is None or not earlier.exists():
        place.directory.keep_earlier(place.test.full_name)
    elif place.forced is not None:
        trials.adopt_journal(earlier, path, search, about)
    elif earlier.resolve() != path.resolve():
        # The journal is opened under its own path, so that an error names the file that the user knows.
        trials.Journal.open(earlier, search).close()
        with storing(f"copy the journal {earlier} to {path}", "Nothing has been measured since."):
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(earlier, path)

    return trials.Journal.open(path, search, about)
