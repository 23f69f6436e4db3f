"""One measurement of one test: trials into the journal, the conditions around them, and what went wrong if it did."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import lossratio
from lossratio.errors import DutError, SearchError, StorageError
from lossratio.records import Record
from lossratio.results import FORCED, INTERRUPTED, Conditions, RunDirectory, TestIdentity, TestRun, low_rate_check
from lossratio.trials import (
    NO_DIGESTS,
    Addition,
    Controller,
    Integrity,
    Journal,
    JournalEntry,
    Measurer,
    TrialResult,
    adopt_journal,
    check_integrity,
    read_journal,
    run_search,
)
from lossratio.units import format_frame_rate

if TYPE_CHECKING:
    from lossratio.testbed import Ready, Testbed
    from lossratio.traffic import TrafficProfile

ResultT = TypeVar("ResultT")
OnTrial = Callable[[TrialResult], None]

WITHDRAWN = "withdrawn, as nobody knows whether the DUT was still as it was set up: trials "
"""Beginning of the remark that names the trials which were removed from the journal."""


class Span:
    """The time from the making of this object on, correct even if somebody sets the clock meanwhile.

    Attributes:
        started: The time of its making, UTC.
    """

    def __init__(self) -> None:
        self.started = datetime.now(timezone.utc)
        self._began = time.monotonic()

    def end(self) -> datetime:
        """The present time: the start by the clock, and the time that has really passed since."""
        return self.started + timedelta(seconds=time.monotonic() - self._began)


@dataclass(frozen=True)
class TestPlace:
    """The test that a measurement belongs to, and the directories of its files.

    Attributes:
        test: The test; no two measurements of a run have the same full name.
        directory: The directory of the run.
        resume: The directory of an earlier run, whose journal of the same test is continued if there is one.
        forced: The differences from the earlier run, if the user continues it in spite of them; all results name them.
    """

    __test__ = False

    test: TestIdentity
    directory: RunDirectory
    resume: RunDirectory | None = None
    forced: str | None = None

    def begin(self) -> TestPlace:
        """Removes an earlier run's files of this test from the directory, so that nobody takes them for this run's.

        Raises:
            StorageError: If a file cannot be removed.
        """
        if self.resume is None or self.resume.path.resolve() != self.directory.path.resolve():
            self.directory.discard(self.test.full_name)
        return self


@dataclass(frozen=True)
class Measurement(Generic[ResultT]):
    """The trials and the conclusion of a measurement, also of one that failed.

    Attributes:
        run: The test, its time and its conditions.
        result: The controller's conclusion from all trials there are.
        entries: All trials there are.
        failure: The exception that stopped the measurement; None if nothing did.
    """

    run: TestRun
    result: ResultT
    entries: tuple[JournalEntry, ...]
    failure: BaseException | None

    def raise_failure(self) -> None:
        """Raises the exception that stopped the measurement, if there was one."""
        if self.failure is not None:
            raise self.failure


class Additions:
    """What is measured after a search and belongs to its result: each part is in the journal before the next begins.

    A run that is resumed takes the parts from the journal that it asks for again, and measures the others.

    Args:
        place: The test of the search.
        part: The field of the result.
        asked: What each part is asked for, as JSON data.
        number: Number of this measurement among those of the field in the test, from 1; None: it is another one in any
            case, and nothing is taken from the journal.

    Raises:
        SearchError: If the test has no journal, or it is damaged.
        StorageError: If the journal cannot be written.
    """

    def __init__(self, place: TestPlace, part: str, asked: Sequence[Mapping[str, Any]], number: int | None) -> None:
        path = place.directory.journal_path(place.test.full_name)
        earlier = [addition for addition in read_journal(path).additions if addition.part == part]
        known = [addition for addition in earlier if addition.measurement == number]
        self._part = part
        self._asked: list[Mapping[str, Any]] = [
            json.loads(json.dumps({"number": place, **request})) for place, request in enumerate(asked, start=1)
        ]
        self._known: list[Addition] = []
        self._measurement = 1 + max((addition.measurement for addition in earlier), default=0)
        if place.resume is not None and known and all(addition.request in self._asked for addition in known):
            self._known, self._measurement = known, known[0].measurement
        self._journal = Journal.reopen(path)

    def __enter__(self) -> Additions:
        return self

    def __exit__(self, *error: object) -> None:
        self._journal.close()

    def known(self, place: int) -> str | None:
        """What an earlier attempt at the run measured for a part, as JSON text; None: it must be measured."""
        request = self._asked[place]
        found = [addition.found for addition in self._known if addition.request == request]
        return json.dumps(found[-1]) if found else None

    def add(self, place: int, found: Record) -> None:
        """Writes what was measured for a part.

        Args:
            place: The index of the part.
            found: What was measured.

        Raises:
            SearchError: If it has no form that could be read again.
            StorageError: If it cannot be written.
        """
        text = found.model_dump_json()
        self._journal.add(Addition(self._part, self._measurement, self._asked[place], json.loads(text)))


def perform(
    controller: Controller[ResultT],
    testbed: Testbed,
    profile: TrafficProfile,
    place: TestPlace,
    *,
    inputs: Mapping[str, Any],
    remarks: tuple[str, ...] = (),
    on_trial: OnTrial | None = None,
    measurer: Callable[[Ready], Measurer] = lambda ready: ready.measurer,
    ramp: float = 0.0,
    rest: float = 0.0,
    integrity: Integrity = Integrity.DOUBT,
    about: Callable[[Conditions], Mapping[str, Any]] = lambda conditions: {},
) -> Measurement[ResultT]:
    """Runs a controller's trials on a testbed.

    Any exception that stops the trials, also an interrupt from the keyboard, is in the answer's `failure`. So the
    caller can write the result file before it raises the exception. After a failure of a DUT, the journal keeps only
    the trials from before the DUTs were last seen as they were set up; the answer has all trials.

    Args:
        controller: Chooses the trials.
        testbed: Performs the trials.
        profile: The test traffic.
        place: The test, and the directory of its files.
        inputs: The controller's settings, as JSON data; a journal is continued only with the same settings.
        remarks: Further remarks for the reader of the numbers.
        on_trial: Called after each trial that was measured.
        measurer: Makes what performs the trials on the testbed that is ready.
        ramp: Seconds before each trial in which the load grows from nothing, and nothing is counted.
        rest: Least seconds without traffic before each trial.
        integrity: What happens if frames do not come back as they were sent. With ``fail``, the trial that shows it is
            the last one, and the measurement has failed; so has one that continues it.
        about: What else of the result is known before the first trial, as JSON data; it is in the journal's header.

    Raises:
        LossRatioError: If the measurement could not even begin.
    """
    # Imported here because paramiko takes a while, and reports of results need none of it.
    from lossratio.testbed import guilty_of

    if ramp < 0.0:
        raise SearchError(f"A ramp takes some seconds, or none, but not {ramp:g}.")
    if not 0.0 <= rest < math.inf:
        raise SearchError(f"A rest before each trial takes some seconds, or none, but not {rest:g}.")
    if rest:
        inputs = {**inputs, "rest_s": rest}
    if integrity is not Integrity.DOUBT:
        inputs = {**inputs, "integrity": integrity.value}
    span: Span | None = None
    late: int | None = None
    failure: BaseException | None = None
    try:
        with (
            testbed.ready_for(profile, ramp=ramp, rest=rest, integrity=integrity) as ready,
            _journal(
                place,
                ready.conditions,
                _search(testbed, ready, inputs),
                {**_about(place, ready.conditions, remarks), **about(ready.conditions)},
            ) as journal,
        ):
            span = Span()
            if integrity is Integrity.FAIL:
                check_integrity(low_rate_check(ready.conditions.generator), "in the check before the first trial")
                for earlier in journal.results:
                    _check_trial(earlier)
                on_trial = _checking(on_trial)
            run_search(controller, measurer(ready), journal=journal, on_trial=on_trial)
            late = ready.late_frames()
    except BaseException as error:
        # The caller raises the exception, also an interrupt, after it has written the result file. Before the first
        # trial there is nothing to write.
        if span is None:
            raise
        failure = error
    error_text = None if failure is None else what_stopped(failure)
    contents = read_journal(journal.path)
    entries = contents.entries
    all_remarks = [
        *remarks,
        *(() if contents.has_digests else (NO_DIGESTS,)),
        *(() if place.forced is None else (f"{FORCED}{place.forced}",)),
    ]
    if isinstance(failure, DutError):
        # Nobody knows since when the DUT was not as it was set up: the trials are reported, and never continued.
        journal.withdraw(keep=ready.known_good())
        kept = len(read_journal(journal.path).entries)
        if kept < len(entries):
            all_remarks.append(f"{WITHDRAWN}{kept + 1} to {len(entries)}; a run that is resumed measures them anew")
    guilty = guilty_of(failure)
    run = TestRun(place.test, span.started, span.end(), ready.conditions, tuple(all_remarks), error_text, late, guilty)
    return Measurement(run, controller.result(), entries, failure)


def _checking(on_trial: OnTrial | None) -> OnTrial:
    """Ends a measurement at the first trial whose frames did not come back as they were sent."""

    def check(trial: TrialResult) -> None:
        if on_trial is not None:
            on_trial(trial)
        _check_trial(trial)

    return check


def _check_trial(trial: TrialResult) -> None:
    check_integrity(trial.output.directions, f"at {format_frame_rate(trial.load)} for {trial.duration:g} s")


def what_stopped(failure: BaseException) -> str:
    """The words of a result for the exception that stopped its measurement."""
    if isinstance(failure, KeyboardInterrupt | SystemExit):
        return INTERRUPTED
    return str(failure) or type(failure).__name__


def _search(testbed: Testbed, ready: Ready, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The settings and versions that must be the same for a measurement to be continued."""
    dut = testbed.request.dut
    return {
        "lossratio": lossratio.__version__,
        **inputs,
        "traffic": ready.conditions.traffic.model_dump(mode="json"),
        "load": ready.conditions.load.model_dump(mode="json"),
        "timing": ready.conditions.timing.model_dump(mode="json"),
        "topology": testbed.request.topology.model_dump(mode="json"),
        "path": [str(port) for path in testbed.request.paths for port in path.ports],
        "dut": None if dut is None else dut.to_json(),
        "kernels": {name: facts.kernel for name, facts in ready.conditions.nodes.items()},
        "dut_versions": {name: facts.get("version") for name, facts in ready.conditions.duts.items()},
    }


def _about(place: TestPlace, conditions: Conditions, remarks: tuple[str, ...]) -> dict[str, Any]:
    """What a result says besides its numbers, for one that is made from the journal alone."""
    return {
        "test": place.test.model_dump(mode="json"),
        "conditions": conditions.model_dump(mode="json"),
        "remarks": [*remarks, *(() if place.forced is None else (f"{FORCED}{place.forced}",))],
    }


def _journal(place: TestPlace, conditions: Conditions, search: Mapping[str, Any], about: Mapping[str, Any]) -> Journal:
    if place.resume is not None and place.forced is None:
        _check_versions(place.resume, conditions)
    path = place.directory.journal_path(place.test.full_name)
    earlier = None if place.resume is None else place.resume.journal_path(place.test.full_name)
    if earlier is None or not earlier.exists():
        place.directory.discard(place.test.full_name)
    elif place.forced is not None:
        adopt_journal(earlier, path, search, about)
    elif earlier.resolve() != path.resolve():
        _copy_journal(earlier, path, search)
    return Journal.open(path, search, about)


def _copy_journal(earlier: Path, path: Path, search: Mapping[str, Any]) -> None:
    # Opened in its own place, so that an error names the file that the user knows.
    Journal.open(earlier, search).close()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(earlier, path)
    except OSError as error:
        raise StorageError(
            f"Cannot copy the journal {earlier} to {path}: {error.strerror}. Nothing was measured since."
        ) from error


def _check_versions(earlier: RunDirectory, conditions: Conditions) -> None:
    """Checks that the DUTs have the versions that the earlier part of the run was measured with.

    Args:
        earlier: The directory of the run that is continued.
        conditions: The conditions of this run.

    Raises:
        SearchError: If a DUT of the same kind has another version; the message names both.
        ReportError: If a result of the earlier part cannot be read.
    """
    if not (earlier.path / "results").is_dir():
        return
    for result in earlier.results():
        changes = ", ".join(_changes(result.conditions.duts, conditions.duts))
        if changes:
            raise SearchError(
                f"The run in {earlier.path} cannot be continued: {changes}. It has results of the earlier version. "
                f"Put that back, begin a new run, or insist on it: lossratio run --resume {earlier.path} --force."
            )


def _changes(before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name in before.keys() & now.keys():
        old, new = before[name], now[name]
        if old.get("kind") == new.get("kind") and old.get("version") != new.get("version"):
            yield f"{name} ({new.get('kind')}) was version {old.get('version')}, and is {new.get('version')} now"
