"""Makes commands from functions: parameters declare options and arguments, which may be quantities with units."""

import codecs
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click

from lossratio.files import SUITES, is_url, kind_of_contents, shown_name, way_to_read
from lossratio.values import (
    FailureKind,
    kind_of_error,
    none_of,
    parse_duration,
    parse_frame_rate,
    parse_number,
    parse_ratio,
    parse_whole_number,
    printable,
    shortened,
)

# Table: the words for a bound, by whether the number must differ from it.
_FROM = {True: "above", False: "at least"}
_TO = {True: "below", False: "at most"}


class Number(click.FloatRange):
    """A number that is read in the same way as in files and keywords, and may have bounds.

    Args:
        name: Its name for Click.
        parse: Reads it; raises ValueError if it is no such number.
        unit: The unit of the bounds, after a blank.
        bounds: The bounds, as in `click.FloatRange`.
    """

    def __init__(
        self, name: str, parse: Callable[[Any], float], *, unit: str = "", **bounds: Any
    ) -> None:
        super().__init__(**bounds)
        self.name = name
        self._parse = parse
        self._unit = unit

    def _describe_range(self) -> str:
        words = []
        if self.min is not None:
            words.append(f"{_FROM[self.min_open]} {self.min:g}")
        if self.max is not None:
            words.append(f"{_TO[self.max_open]} {self.max:g}")
        return " and ".join(words)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Reads a number.

        Raises:
            click.BadParameter: If it is no such number, or out of bounds.
        """
        try:
            number = self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

        try:
            super().convert(number, param, ctx)
        except click.BadParameter:
            bounds = f"{self._describe_range()}{self._unit}"
            self.fail(f"must be {bounds}, not {shortened(str(value))}.", param, ctx)
        return number


def say(text: object, *, err: bool = False) -> None:
    """Writes a text to the standard output or error. Control characters, e.g. of names, are escaped."""
    click.echo(printable(str(text)), err=err)


def _parse_per_cent(value: object) -> float:
    try:
        return parse_number(str(value).strip().removesuffix("%").rstrip())
    except ValueError:
        raise ValueError(f"{value!r} is not a share in per cent; write it like 3 or 3%.") from None


DURATION = Number("duration", parse_duration)
"""A duration such as ``2h`` or ``30 s``, in seconds."""
FRAME_RATE = Number("rate", parse_frame_rate)
"""A frame rate such as ``10 kfps``, in frames per second."""
RATIO = Number("ratio", parse_ratio)
"""A ratio such as ``0.1 %`` or ``1e-7``."""
WholeNumber = partial(Number, "whole number", parse_whole_number)
"""A whole number within bounds."""
PerCent = partial(Number, "per cent", _parse_per_cent, unit=" per cent")
"""A share in per cent, with or without its sign: ``3``, ``3%`` or ``3 %``."""


TESTBED = "The testbed: a topology file, or a name such as local or simulated."
"""The help of an option that names a testbed."""
ONLY_NAME = "Only tests with this name, or pattern of names."
"""The help of an option that selects tests by name."""
ONLY_TAG = "Only tests with this tag, or pattern of tags."
"""The help of an option that selects tests by tag."""
ONLY_QUANTITY = "Only this quantity, e.g. NDR or MRR."
"""The help of an option that selects a quantity."""
NEW_IN_RESULTS = "Directory for the results. Default: a new one in results."
"""The help of an option for the directory of a run."""


_OTHER_FORMATS = (".rst", ".rest", ".json", ".rbt")
"""Extensions of suites that need not have sections with asterisks."""
_SECTION = re.compile(rb"^\s*\*", re.MULTILINE)
_LOOKED_AT = 1 << 16


def _problem_of_suite(file: Path) -> str:
    """Why Robot Framework would not read a file as a suite; empty: it would."""
    if not file.is_file():
        return "it is a pipe, a socket or a device"
    try:
        with file.open("rb") as opened:
            beginning = opened.read(_LOOKED_AT)
        # The last character may be incomplete.
        codecs.getincrementaldecoder("utf-8")().decode(beginning)
    except UnicodeDecodeError:
        return "it is not UTF-8 text"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"

    if not file.suffix:
        return "its name has no extension"
    kind = kind_of_contents(beginning)
    if kind.startswith("of the format "):
        return f"it is {kind}"
    if file.suffix not in _OTHER_FORMATS and not _SECTION.search(beginning):
        return "it has no section, such as *** Test Cases ***"
    return ""


def _option_for(problem: str) -> str:
    """The option that takes a file that is not a suite, in a sentence; empty: none takes it."""
    for kind, option in (("topology", "--topology"), ("job", "--job")):
        if problem.startswith(f"it is of the format lossratio-{kind}/"):
            return f" Give a {kind} with {option}."
    return ""


class _Suite(click.Path):
    """A suite: a file, a directory, or the name of a suite that comes with lossratio."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        _check_path(self, value, param, ctx)
        found = SUITES.path(value)
        if not SUITES.is_there(found) and (hint := SUITES.hint(value)):
            self.fail(f"There is no file {shown_name(value)}.{hint}", param, ctx)

        try:
            os.close(os.open(found, os.O_RDONLY | os.O_NONBLOCK))
        except OSError as error:
            way = way_to_read(found, error)
            self.fail(f"Cannot read {shown_name(value)}: {error.strerror}.{way}", param, ctx)

        problem = "" if found.is_dir() else _problem_of_suite(found)
        if problem:
            self.fail(
                f"{shown_name(value)} is not a suite: {problem}. Name a file such as my.robot.{_option_for(problem)}",
                param,
                ctx,
            )
        return found


SUITE = _Suite()


class OneOf(click.Choice):  # type: ignore[type-arg]
    """One of several words. The error about any other word asks whether the nearest one is meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Reads a word.

        Raises:
            click.BadParameter: If it is none of the words.
        """
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(none_of([*map(str, self.choices)], value), param, ctx)


def _check_path(
    kind: click.ParamType,  # type: ignore[type-arg]
    value: Any,
    param: click.Parameter | None,
    ctx: click.Context | None,
) -> None:
    if is_url(value):
        kind.fail(f"{shown_name(value)} is a URL. Give a path on this machine.", param, ctx)


class LocalPath(click.Path):
    """A path on this machine."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Reads a path.

        Raises:
            click.BadParameter: If it is a URL, which Python would take for a path, or not such a path as is wanted.
        """
        _check_path(self, value, param, ctx)
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            # Click repeats a long path as a whole.
            said = error.message.replace(str(value), shown_name(value))
            way = f" Name another {self.name}."
            if not os.path.exists(value):
                way = way_to_read(value, FileNotFoundError())
            self.fail(f"{said}{way}", param, ctx)


class _FileToWrite(LocalPath):
    """A file that the command writes, into a directory that exists. A mistake is found before anything is read."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(dir_okay=False, allow_dash=allow_dash, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        is_device = os.path.exists(path) and not os.path.isfile(path)
        if is_device or (self.allow_dash and str(path) == "-"):
            return path

        folder = os.path.dirname(os.path.realpath(path))
        if not os.path.exists(folder):
            missing = f"There is no directory {shown_name(path.parent)}."
            self.fail(f"{missing} Create it, or name another file.", param, ctx)
        try:
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            # A full disk is no mistake of the user.
            if kind_of_error(error) is FailureKind.BAD_INPUT:
                problem = f"{shown_name(path)} cannot be written: {error.strerror}."
                self.fail(f"{problem} Name another file.", param, ctx)
        return path


FILE_TO_WRITE = _FileToWrite()
"""A file that the command writes."""
FILE_OR_OUTPUT = _FileToWrite(allow_dash=True)
"""A file that the command writes, or ``-``, which is standard output."""


def check_files_to_write(**files: Path | None) -> None:
    """Checks that options name different files to write, and no file of the name ``-``.

    Args:
        files: The files by the names of their options; None: the option is not given.

    Raises:
        click.UsageError: If one report would replace another one, or if the name stands for the standard output.
    """
    options: dict[Path, str] = {}
    for name, file in files.items():
        if file is None:
            continue
        if str(file) == "-":
            raise click.UsageError(
                f"--{name} -: only 'lossratio report' writes to the standard output. Name a file."
            )
        other = options.setdefault(file.resolve(), name)
        if other != name:
            raise click.UsageError(
                f"--{other} and --{name} name the same file, {file}. Name two files."
            )


class _NotBlank(click.Parameter):
    """A parameter whose values are not empty: an empty path would mean the working directory."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        given = [value]
        if isinstance(value, tuple | list):
            given = [*value]
        is_blank = any(isinstance(text, str) and not text.strip() for text in given)
        if is_blank and value != self.default:
            way = "Give a value." if self.required else "Give a value, or leave it out."
            raise click.BadParameter(f"it is empty. {way}", ctx=ctx, param=self)
        # Python shows bytes that are not UTF-8 as halves of surrogate pairs.
        if any(isinstance(text, str) and re.search("[\ud800-\udfff]", text) for text in given):
            raise click.BadParameter(
                "it has bytes that are not UTF-8. Save it as UTF-8.", ctx=ctx, param=self
            )
        return super().type_cast_value(ctx, value)


class _Argument(_NotBlank, click.Argument):
    """An argument."""

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """Its name as errors show it: without what says in the usage that it is optional, or which words it takes."""
        shown = re.match(r"\W*(\w+)", self.metavar or "")
        if shown is None or "|" in (self.metavar or ""):
            return f"'{self.human_readable_name.upper()}'"
        return f"'{shown[1]}'"


class _Option(_NotBlank, click.Option):
    """An option."""


class OneValueEach(click.Command):
    """A command that refuses a second value of an option that has one value. Click would ignore the first value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the words of a command line.

        Raises:
            click.UsageError: If the words are wrong, or if an option with one value is given twice.
        """
        _, _, given = self.make_parser(ctx).parse_args(args=[*args])
        rest = super().parse_args(ctx, args)
        for one in given:
            is_single = isinstance(one, click.Option) and not (one.multiple or one.is_flag)
            if is_single and given.count(one) > 1:
                ctx.fail(
                    f"{one.opts[0]} takes one value, but was given more than once. Keep one of them."
                )
        return rest


@dataclass(frozen=True)
class _Declared:
    """A parameter without its name and type, which come from the function."""

    kind: type[click.Option] | type[click.Argument]
    names: tuple[str, ...]
    settings: dict[str, Any]


def option(text: str, *names: str, **settings: Any) -> Any:
    """Declares an option in place of a parameter's default. The parameter gives its name and type.

    Args:
        text: The option's help.
        names: Its names on the command line, if they differ from the parameter's.
        settings: Further arguments of `click.Option`.
    """
    return _Declared(click.Option, names, {"help": text, **settings})


def argument(metavar: str | None = None, **settings: Any) -> Any:
    """Declares an argument in place of a parameter's default. An argument without a ``default`` is required.

    Args:
        metavar: The argument as the usage shows it; None: the parameter's name in capitals.
        settings: Further arguments of `click.Argument`.
    """
    return _Declared(click.Argument, (), {"metavar": metavar, **settings})


def command(
    name: str | None = None, *, cls: type[click.Command] = OneValueEach
) -> Callable[[Callable[..., None]], click.Command]:
    """Makes a command from a function whose parameters are declared by `option` and `argument`.

    A parameter whose type is a dataclass stands for the fields of the dataclass, which several commands can share.
    """

    def of(function: Callable[..., None]) -> click.Command:
        groups = {
            name: kind for name, kind in get_type_hints(function).items() if is_dataclass(kind)
        }

        @wraps(function)
        def call(**values: Any) -> None:
            for name, kind in groups.items():
                values[name] = kind(**{each.name: values.pop(each.name) for each in fields(kind)})  # type: ignore[operator]
            function(**values)

        return click.command(name, cls=cls, params=list(_parameters(function)))(call)

    return of


def _parameters(declaring: Callable[..., Any]) -> Iterator[click.Parameter]:
    hints = get_type_hints(declaring)
    for name, parameter in signature(declaring).parameters.items():
        if is_dataclass(hints[name]):
            yield from _parameters(hints[name])
        else:
            yield _parameter(name, hints[name], parameter.default)


def _parameter(name: str, hint: Any, declared: _Declared) -> click.Parameter:
    # ``X | None`` and ``tuple[X, ...]`` are optional.
    kind, *others = get_args(hint) or (hint,)
    may_be_missing = bool(others) or kind is bool or "default" in declared.settings
    settings: dict[str, Any] = {
        "type": LocalPath(path_type=Path) if kind is Path else kind,
        "required": not may_be_missing,
    }
    if declared.kind is click.Argument:
        settings |= {"nargs": -1} if others == [...] else {}
        return _Argument((name,), **(settings | declared.settings))

    if kind is Path:
        settings["metavar"] = "FILE"
    settings |= {"is_flag": True} if kind is bool else {"multiple": others == [...]}
    settings["show_default"] = bool(declared.settings.get("default"))
    settings |= declared.settings
    names = declared.names or (f"--{name.replace('_', '-')}",)
    return _Option((name, *names), **settings)
