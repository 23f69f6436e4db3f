"""Repairs damaged journals and results: saves the good part, and keeps the originals beside it.

Only the trials before a journal's first damaged line are saved. Later trials depend on the damaged ones, which
are lost, and a search must not continue over such a gap. Nothing in a damaged result is trusted: a resumed run makes it
again, from its journal if that is good.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from lossratio.errors import DamagedFileError, LossRatioError, ReportError, SearchError, storing
from lossratio.results.run_directory import DamagedResultError, read_result, write_whole
from lossratio.trials import UnknownJournalError, has_header, read_good_part, read_journal
from lossratio.values import counted

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
            path, None, "it was cut off in its header and has no trials. Its test starts over"
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
            f"nothing in it can be used. It was renamed to {kept.name}, and its test starts over",
        )

    number = len(contents.entries)
    rest = f"; nothing proves the next {len(contents.unproved)}" if contents.unproved else ""
    if damage is None:
        valid = counted(number, "trial is valid", "trials are valid")
        return Repair(path, None, f"{valid}{rest}")

    data = path.read_bytes()
    lost = data.count(b"\n", contents.intact_bytes) or 1
    kept = _free_name(path)
    shutil.copyfile(path, kept)
    write_whole(path, data[: contents.intact_bytes])
    first = "its first trial is" if number == 1 else f"its first {number:,} trials are"
    done = f"{first} kept, without {counted(lost, 'line')}{rest}; the original is {kept.name}"

    return Repair(path, _damage_of(damage), done)


def _repair_result(path: Path) -> Repair:
    try:
        read_result(path)
    except DamagedResultError as error:
        kept = path.rename(_free_name(path))
        again = (
            "lossratio run --resume DIR, or, if robot began the run, robot --variable RESUME:DIR"
        )
        done = f"it was renamed to {kept.name}. To make it again, from its journal if that is good: {again}"
        return Repair(path, _damage_of(error), done)
    except ReportError as error:
        return Repair(path, str(error), _LEFT, is_known=False)
    return Repair(path, None, "it is intact")


def _damage_of(error: LossRatioError) -> str:
    """The damage in words, without the advice to repair the file, which is being followed."""
    if isinstance(error, DamagedFileError):
        return error.damage
    return str(error)


def _free_name(path: Path) -> Path:
    names = (
        path.with_name(f"{path.name}{_SET_ASIDE}{number}")
        for number in chain([""], (f"-{n}" for n in count(2)))
    )
    return next(name for name in names if not name.exists())
