"""Repairs damaged journals and results: saves the good part, and keeps the originals beside it.

Only the trials before a journal's first damaged line are saved. Later trials depend on the damaged ones, which
are lost, and a search must not continue over such a gap. Nothing in a damaged result is trusted: the result of a
finished search is made from its journal, as if it had not been written, and a resumed run makes any other one again.

If a run was cut off, its journal may have latency and telemetry that the result lacks. They are added to the result.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from lossratio.errors import DamagedFileError, LossRatioError, ReportError, SearchError, storing
from lossratio.results.contradictions import contradictions_of
from lossratio.results.kinds import kind_of, kind_of_journal
from lossratio.results.model import TestResult
from lossratio.results.note import noted
from lossratio.results.run_directory import (
    DamagedResultError,
    encode_result,
    file_stem,
    read_result,
    write_whole,
)
from lossratio.results.trials import describe_trials
from lossratio.trials import (
    JournalContents,
    UnknownJournalError,
    has_header,
    read_good_part,
    read_journal,
)
from lossratio.units import counted

COMPLETED = noted(
    "the run was cut off before the last version of this result was written. Latency and telemetry "
    "come from its journal, as far as they were measured"
)
"""The remark on a result to which its journal added something."""

REBUILT = noted(
    "the run was cut off before this result was written. It was made from its journal, and ends "
    "with the last trial there"
)
"""The remark on a result that was made from its journal alone."""

REMADE = noted(
    "the file of this result was damaged. It was made again from its journal, and ends with the "
    "last trial there"
)
"""The remark on a damaged result that was made again from its journal alone."""

_SET_ASIDE = ".damaged"
_LEFT = "it is left as it is"


@dataclass(frozen=True)
class Repair:
    """The repair of one file."""

    path: Path
    """The file."""
    damage: str | None
    """The damage of the file; None: there is none."""
    done: str
    """The repair, in words."""
    is_known: bool = True
    """Whether the file is a journal or a result that this version can read, apart from the damage. Any other file stays
    unchanged."""


def repair(path: Path) -> Iterator[Repair]:
    """Repairs a journal, a result, or all journals and results in the directory of a run, one by one.

    Raises:
        ReportError: If the path is none of these, or cannot be read.
        StorageError: If the good part cannot be written; the original is then left unchanged.
    """
    for file in _files(path):
        with storing(f"repair {file}", "It is unchanged. Free some space, and repair it again."):
            yield _repair_journal(file) if file.suffix == ".jsonl" else _repair_result(file)


def unreadable_in(directory: Path) -> list[LossRatioError]:
    """The errors of the journals and results in the directory of a run that are damaged, or that a newer version wrote.

    The latter are `NewerFileError`.
    """
    errors = []
    # A run that was killed early has no files.
    for file in _files_in(directory):
        try:
            if file.suffix != ".jsonl":
                read_result(file)
            elif has_header(file):
                read_journal(file)
        except LossRatioError as error:
            errors.append(error)
    return errors


def results_set_aside(directory: Path) -> frozenset[str]:
    """File names of a run's results that could not be repaired and were not measured again."""
    results = directory / "results"
    names = {
        path.name.partition(f".json{_SET_ASIDE}")[0]
        for path in results.glob(f"*.json{_SET_ASIDE}*")
    }
    return frozenset(name for name in names if not (results / f"{name}.json").exists())


def results_lost(directory: Path) -> frozenset[str]:
    """File names of a run's missing results, of which only the journals exist."""
    journals = {path.stem for path in directory.glob("trials/*.jsonl")}
    return frozenset(journals - {path.stem for path in directory.glob("results/*.json")})


def _files_in(directory: Path) -> list[Path]:
    return [*sorted(directory.glob("trials/*.jsonl")), *sorted(directory.glob("results/*.json"))]


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        files = _files_in(path)
        if files or (path / "trials").is_dir() or (path / "results").is_dir():
            return files
    elif path.suffix in (".jsonl", ".json") and path.is_file():
        return [path]
    raise ReportError(
        f"{path} is neither a journal (trials/*.jsonl), nor a result (results/*.json), nor the "
        "directory of a run with such files."
    )


def _repair_journal(path: Path) -> Repair:
    try:
        is_begun = has_header(path)
    except SearchError as error:
        return Repair(path, str(error), _LEFT, is_known=False)
    if not is_begun:
        return Repair(
            path, None, "it was cut off in its header and has no trials. Its test begins again"
        )

    try:
        contents, damage = read_good_part(path)
    except UnknownJournalError as error:
        return Repair(path, str(error), _LEFT, is_known=False)
    except SearchError as error:
        kept = path.rename(_free_name(path))
        return Repair(
            path,
            _damage_of(error),
            f"nothing in it can be used. It was renamed to {kept.name}, and its test begins again",
        )

    number = len(contents.entries)
    rest = f"; nothing proves the next {len(contents.unproved)}" if contents.unproved else ""
    if damage is None:
        valid = counted(number, "trial is valid", "trials are valid")
        return Repair(path, None, f"{valid}{rest}{_write_missing(path, contents)}")

    data = path.read_bytes()
    lost = data.count(b"\n", contents.intact_bytes) or 1
    kept = _keep(path)
    write_whole(path, data[: contents.intact_bytes])
    first = "its first trial is" if number == 1 else f"its first {number:,} trials are"
    done = f"{first} kept, without {counted(lost, 'line')}{rest}; the original is {kept.name}"

    return Repair(path, _damage_of(damage), done)


def _write_missing(path: Path, contents: JournalContents) -> str:
    """Writes the result of a finished search that has none; returns words that continue the report on the journal."""
    file = path.parent.parent / "results" / f"{path.stem}.json"
    kind = kind_of_journal(contents)
    if kind is None or path.parent.name != "trials" or file.exists():
        return ""

    result = kind.rebuilt(contents)
    if (
        result is None
        or file_stem(result.test.full_name) != path.stem
        or any(contradictions_of(result))
    ):
        return ""

    file.parent.mkdir(exist_ok=True)
    was_damaged = file.with_name(f"{file.name}{_SET_ASIDE}").exists()
    remarks = (*result.remarks, REMADE if was_damaged else REBUILT)
    write_whole(file, encode_result(result.model_copy(update={"remarks": remarks})))
    return f"; the search is finished, and its missing result {file.name} was made from them"


def _repair_result(path: Path) -> Repair:
    try:
        good = read_result(path)
    except DamagedResultError as error:
        damage = _damage_of(error)
    except ReportError as error:
        return Repair(path, str(error), _LEFT, is_known=False)
    else:
        return Repair(path, None, _complete(path, good))

    kept = path.rename(_free_name(path))
    if _made_again(path):
        return Repair(
            path, damage, f"it was made again from its journal; the original is {kept.name}"
        )
    again = "lossratio run --resume DIR, or, if robot began the run, robot --variable RESUME:DIR"
    done = f"it was renamed to {kept.name}. To make it again, from its journal if that is good: {again}"
    return Repair(path, damage, done)


def _made_again(path: Path) -> bool:
    """Makes the result of a finished search from its journal. Returns whether that was possible."""
    journal = _journal_of(path)
    try:
        contents = read_journal(journal)
    except SearchError:
        return False
    return bool(_write_missing(journal, contents))


def _complete(path: Path, result: TestResult) -> str:
    """Adds everything that the journal recorded after the trials to a good result. Returns the change, in words."""
    try:
        journal = read_journal(_journal_of(path))
    except SearchError:
        # The result has no journal, or its journal is damaged and is reported as damaged.
        return "it is intact"

    whole = kind_of(result.kind).with_additions(result, journal.additions)
    if (
        whole is None
        or whole == result
        or not _is_that_of(journal, result)
        or any(contradictions_of(whole))
    ):
        return "it is intact"

    kept = _keep(path)
    whole = whole.model_copy(update={"remarks": (*result.remarks, COMPLETED)})
    write_whole(path, encode_result(whole))
    return (
        "it is valid. What its journal recorded after the search was added to it; the original is "
        f"{kept.name}"
    )


def _journal_of(path: Path) -> Path:
    return path.parent.parent / "trials" / f"{path.stem}.jsonl"


def _is_that_of(journal: JournalContents, result: TestResult) -> bool:
    """Whether a result has the trials and describes the search of its journal."""
    kind = kind_of(result.kind)
    warm_ups = kind.warm_ups(getattr(result, "settings", {}))
    trials = describe_trials(journal.entries, warm_ups=warm_ups, why_set_aside=kind.why_set_aside)
    conditions = result.conditions.model_dump(mode="json", include={"traffic", "load", "timing"})
    expected = {
        **conditions,
        "max_load_fps": result.max_load.rate.per_interface_fps,
        **kind.search_of(result),
    }
    return result.trials == trials and all(
        journal.search.get(name) == value for name, value in expected.items()
    )


def _damage_of(error: LossRatioError) -> str:
    """The damage in words, without the advice to repair the file, which is being followed."""
    if isinstance(error, DamagedFileError):
        return error.damage
    return str(error)


def _keep(path: Path) -> Path:
    """Copies the original to a new name, under which it stays when the file is replaced."""
    kept = _free_name(path)
    shutil.copyfile(path, kept)
    return kept


def _free_name(path: Path) -> Path:
    names = (
        path.with_name(f"{path.name}{_SET_ASIDE}{number}")
        for number in chain([""], (f"-{n}" for n in count(2)))
    )
    return next(name for name in names if not name.exists())
