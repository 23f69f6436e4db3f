"""Reads input files as a whole, in bounded time and memory, and checks directories for output."""

import codecs
import errno
import json
import os
import re
import shlex
import stat
import tempfile
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from lossratio.errors import LossRatioError
from lossratio.values import shown_value
from lossratio.version import __version__

MOST_RECORDED_BYTES = 1 << 28
"""Maximum size of a file of measurements, which is enough for half a million trials."""
_MIB = 1 << 20
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_FORMAT = re.compile(rb"""^[{\s]*"?format"?\s*:\s*["']?(lossratio-[\w-]+/\d+)""", re.MULTILINE)
_COMPRESSED = {
    b"\x1f\x8b": "compressed (gzip); unpack it first",
    b"PK\x03\x04": "a ZIP archive; unpack it first",
}
_BINARY = "binary"
PLAIN_TEXT = "text without a format of lossratio"
"""The contents of a file of which nothing is known but that it is text."""
NO_TEXT = (_BINARY, *_COMPRESSED.values())
"""The contents of files that are not text."""
_BEGINNINGS = {
    **_COMPRESSED,
    b"<": "HTML or XML",
    b"***": "a suite of Robot Framework",
    b"{": "JSON",
    b"[": "JSON",
}
_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,3}")
# The places of the version in a record of a run, in a result and in a journal.
_PLACES_OF_VERSION = (
    ("version",),
    ("conditions", "controller", "lossratio_version"),
    ("about", "conditions", "controller", "lossratio_version"),
)
_LOOKED_AT = 1 << 16
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_LONGEST_SHOWN = 200
# Table: what to do if a file cannot be read, by the error of the system.
_WAYS_TO_READ = {
    errno.EACCES: "Get permission for it, or name another one.",
    errno.EEXIST: "Name another one.",
    errno.EISDIR: "Name a file in it.",
    errno.ELOOP: "It is a symbolic link to itself: name another file.",
    errno.ENAMETOOLONG: "Give a shorter path.",
    errno.ENOTDIR: "A part of the path that should be a directory is a file.",
    errno.EPERM: "Get permission for it, or name another one.",
}


def read_input_file(
    path: str | Path, error: type[LossRatioError], most_bytes: int, what: str = ""
) -> bytes:
    """Reads a regular file; reading a pipe or device might never end.

    Args:
        path: The file.
        error: The class of errors.
        most_bytes: The largest size of the file.
        what: Its kind, for errors, e.g. ``the journal``.

    Raises:
        LossRatioError: Of the class `error`, if the file cannot be read, is not a regular file, or is too long.
    """
    name = str(path)
    shown = shown_name(path) if name.strip() else repr(name)
    shown = f"{what} {shown}".lstrip()

    try:
        with open(path, "rb", opener=_opened_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise error(
                    f"Cannot read {shown}: it is a pipe, a socket or a device. Name a regular file."
                )
            if status.st_size > most_bytes:
                raise error(
                    f"Cannot read {shown}: it has more than {most_bytes / _MIB:g} MiB, which is too large for such "
                    "a file. Is it the right file?"
                )
            return file.read()
    except (OSError, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or str(cause)
        raise error(
            f"Cannot read {shown}: {reason.rstrip('.')}.{way_to_read(path, cause)}"
        ) from cause


def check_directory(directory: Path, option: str) -> None:
    """Checks that a run can write to a directory, and leaves nothing behind.

    Raises:
        OSError: If it cannot; the message shows the option.
    """
    try:
        require_writable(directory)
    except OSError as error:
        why = f"{error.strerror}. Choose another directory: {option} DIR"
        raise OSError(error.errno, why, str(directory)) from error


def require_writable(directory: Path) -> None:
    """Checks that files can be written to a directory, which need not exist, and leaves nothing behind.

    Raises:
        OSError: If they cannot.
    """
    # A link to nothing is there, and no directory can take its place.
    with suppress(FileNotFoundError):
        os.lstat(directory)
    there = next(place for place in (directory, *directory.parents) if os.path.lexists(place))
    tempfile.TemporaryFile(dir=there).close()


def as_path(error: type[Exception], what: str, value: object) -> Path:
    """A path that a script gives as a path or a text.

    Args:
        error: The class of the error.
        what: A description of the path, such as ``the directory of a run``.
        value: The path.

    Raises:
        Exception: Of the class `error`, if the value is something else, is empty, or is too long for a path.
    """
    if not isinstance(value, str | PathLike) or not str(value).strip():
        raise error(f"{what} must be given by its path, not by {shown_value(value)}.")
    path = Path(value)
    try:
        path.exists()
    except (OSError, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or str(cause)
        way = way_to_read(path, cause)
        raise error(f"Cannot read {shown_value(str(value))}: {reason}.{way}") from None
    return path


def is_url(path: str | PathLike[str]) -> bool:
    """Whether a text that should be a path is a URL."""
    return _URL.match(str(path)) is not None


def way_to_read(path: str | Path, cause: Exception) -> str:
    """What to do if a file cannot be read, in a sentence after a blank; empty if nothing is known.

    Args:
        path: The file, as the user named it.
        cause: The error of the system.
    """
    if is_url(path):
        return " It is a URL: download the file, and give its path."
    if isinstance(cause, FileNotFoundError):
        if Path(path).is_absolute():
            return " Check the path."
        return " Check the path, which is relative to the working directory."
    if isinstance(cause, IsADirectoryError) and Path(path) == Path():
        return " Name a file in it. An empty name also means this directory."
    way = _WAYS_TO_READ.get(getattr(cause, "errno", None) or 0)
    return f" {way}" if way else ""


def kind_of_contents(data: bytes) -> str:
    """What a file contains, judged by its beginning, in words that follow ``it is``."""
    beginning = data[:_LOOKED_AT]
    if not beginning.strip():
        return "empty"

    declared = _FORMAT.search(beginning)
    if declared is not None:
        return f"of the format {declared[1].decode()}"

    for first, kind in _BEGINNINGS.items():
        if beginning.lstrip().startswith(first):
            return kind

    if b"\0" in beginning:
        return _BINARY

    try:
        # The last character may be incomplete.
        codecs.getincrementaldecoder("utf-8")().decode(beginning)
    except ValueError:
        return _BINARY

    return PLAIN_TEXT


def said_if_newer(path: Path, known: str, data: object) -> str | None:
    """The message that a newer version of lossratio wrote a file, and which one, if the file says so; None: it did not.

    Args:
        path: The file.
        known: The newest format of such files that this version reads, e.g. ``lossratio-result/2``.
        data: The JSON data of the file, or of a journal's first line.
    """
    family, _, number = known.rpartition("/")
    given = _member(data, ("format",))
    found = re.fullmatch(f"{family}/([0-9]{{1,9}})", given)
    versions = filter(_VERSION.fullmatch, (_member(data, place) for place in _PLACES_OF_VERSION))
    newer = next((text for text in versions if _parts(text) > _parts(__version__)), None)
    if newer is None and (found is None or int(found[1]) <= int(number)):
        return None

    writer = "A newer version of lossratio" if newer is None else f"Lossratio {newer}"
    form = "" if given == known else f" in the format {given!r}"
    return (
        f"{writer} wrote {path}{form}, which this version, {__version__}, cannot read. Use the version that wrote "
        "it, or a newer one."
    )


def _member(data: object, place: tuple[str, ...]) -> str:
    """The text at a place in JSON data; empty: there is none."""
    for name in place:
        data = data.get(name) if isinstance(data, dict) else None
    return data if isinstance(data, str) else ""


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def parse_json(data: bytes) -> Any:
    """Reads strict JSON, which has only one meaning.

    Raises:
        ValueError: If it is not UTF-8 or not JSON, is nested too deeply, or has a name twice in one object, a name with
            control characters, a number that JSON does not have (NaN), or half of a surrogate pair.
    """
    try:
        decoded = json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=_unique, parse_constant=_no_number
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"its byte {error.start + 1} is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"broken at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise ValueError("nested too deep") from None
    if _SURROGATE.search(data):
        json.dumps(decoded, ensure_ascii=False).encode()
    return decoded


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    for name in members:
        if _CONTROL.search(name):
            raise ValueError(f"the name {name[:100]!r} has control characters")
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice[:100]!r} appears twice")
    return members


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _opened_at_once(path: str, flags: int) -> int:
    # Otherwise, opening a pipe without a writer would wait forever.
    return os.open(path, flags | os.O_NONBLOCK)


def shell_word(path: object) -> str:
    """A path in a command that the user is to copy: with quotes, if the shell needs them."""
    return shlex.quote(str(path))


def shown_name(path: object) -> str:
    """A name given by a user, as errors show it: on one line, without characters that move a terminal's cursor."""
    text = str(path)
    if len(text) > _LONGEST_SHOWN:
        text = f"{text[:_LONGEST_SHOWN]}..."
    if text.isprintable():
        return text
    return repr(text)
