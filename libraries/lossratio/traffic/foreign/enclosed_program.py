"""Runs another generator's Python file in a process without rights, and writes what it describes.

`lossratio.traffic.foreign.enclosed` starts it. Names of the generator's API stand for recorders, which keep the calls.
"""

from __future__ import annotations

import argparse
import builtins
import collections
import copy
import ctypes
import faulthandler
import functools
import ipaddress
import itertools
import json
import math
import os
import platform
import posixpath
import random
import re
import resource
import signal
import string
import struct
import sys
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, NoReturn

_FILE = "<profile>"
_NO_RIGHTS = "a foreign profile cannot use files, the network or other programs"
_NOT_KNOWN = "its value is not known here"
_MOST_MEMORY = 1 << 29
_MOST_BYTES = 1 << 23
_WORD_BYTES = 4
# Table: modules that need no rights, and the harmless parts of others.
_MODULES: Mapping[str, Any] = {
    "__future__": SimpleNamespace(division=None, print_function=None, annotations=None),
    "argparse": argparse,
    "collections": collections,
    "copy": copy,
    "functools": functools,
    "ipaddress": ipaddress,
    "itertools": itertools,
    "json": json,
    "math": math,
    "random": random,
    "re": re,
    "string": string,
    "struct": struct,
}
# Table: the Linux audit number of a machine, and its numbers of the system calls that remain: read, write, mmap,
# mprotect, munmap, brk, rt_sigaction, rt_sigprocmask, rt_sigreturn, mremap, madvise, exit, sigaltstack, futex,
# clock_gettime, exit_group and getrandom.
_SYSTEM_CALLS = {
    "x86_64": (0xC000003E, (0, 1, 9, 10, 11, 12, 13, 14, 15, 25, 28, 60, 131, 202, 228, 231, 318)),
    "aarch64": (
        0xC00000B7,
        (63, 64, 222, 226, 215, 214, 134, 135, 139, 216, 233, 93, 132, 98, 113, 94, 278),
    ),
}
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER_MODE = 38, 22, 2
_HARMLESS = frozenset(
    (
        "builtins.id",
        "code.__new__",
        "compile",
        "exec",
        "import",
        "object.__delattr__",
        "object.__getattr__",
        "object.__setattr__",
        "sys._getframe",
        "sys._getframemodulename",
    )
)
"""Events of Python's audit that need no rights."""


class RefusedError(BaseException):
    """Something that a profile may not have; a profile cannot catch it by accident."""

    def __init__(self, what: str, problem: str, line: int | None = None, way_out: str = "") -> None:
        super().__init__(what, problem)
        self.answer = {
            "what": what,
            "problem": problem,
            "line": line or _line(),
            "way_out": way_out,
        }


class Program(ctypes.Structure):
    """A filter of system calls, as in the kernel's `linux/filter.h`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


class Made:
    """A call of something in the generator's API, which is kept."""

    def __init__(self, kind: str, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        self.kind = kind
        self.line = _line()
        self.arguments = arguments
        self.named = named
        self.calls: list[Made] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.kind == "STLVM":
            return lambda *given, **named: self.calls.append(Made(name, given, named))
        if self.kind == "STLProfile" and name == "get_streams":
            return lambda *_, **__: self
        raise RefusedError(f"{self.kind}.{name}", _NOT_KNOWN)

    def __truediv__(self, other: object) -> Layers:
        return Layers([(self.kind, {}, self.line)], 0) / other

    def __bool__(self) -> bool:
        raise RefusedError(self.kind, _NOT_KNOWN)


class Name:
    """A name of the generator's API; to derive a class from it gives the same name again."""

    def __init__(self, kind: str, *_: object) -> None:
        self.kind = kind

    def __call__(self, *given: Any, **named: Any) -> Any:
        """A header, if frames can have it, or the bytes of an option, or else a call that is kept."""
        if self.kind == "IPOption" and [*map(type, given)] == [bytes] and not named:
            return given[0]
        if self.kind not in _LENGTHS:
            return Made(self.kind, given, named)
        if given:
            raise RefusedError(self.kind, "its fields need names")
        for value in named.values():
            if isinstance(value, (Made, Name)):
                raise RefusedError(value.kind, _NOT_KNOWN)
        return Layers([(self.kind, named, _line())], 0)

    def __getattr__(self, name: str) -> Name:
        if name.startswith("__"):
            raise AttributeError(name)
        return Name(name)

    def __bool__(self) -> bool:
        raise RefusedError(self.kind, _NOT_KNOWN)


class Layers:
    """Headers, and the number of bytes after them."""

    def __init__(self, layers: list[tuple[str, Mapping[str, Any], int]], payload: int) -> None:
        self.layers = layers
        self.payload = payload

    def __len__(self) -> int:
        headers = sum(_LENGTHS.get(name, 0) for name, _, _ in self.layers)
        options = (fields.get("options") or b"" for _, fields, _ in self.layers)
        words = sum(-(-len(each) // _WORD_BYTES) for each in options)
        return headers + _WORD_BYTES * words + self.payload

    def __truediv__(self, other: object) -> Layers:
        if isinstance(other, Made):
            return Layers([*self.layers, (other.kind, {}, other.line)], self.payload)
        if isinstance(other, Layers):
            return Layers(self.layers + other.layers, self.payload + other.payload)
        if isinstance(other, (str, bytes)):
            return Layers(self.layers, self.payload + len(other))
        return NotImplemented


class Names(dict[str, Any]):
    """Python's own names; any other one is the generator's, whose API also has modules in its names."""

    def __missing__(self, name: str) -> Any:
        if name.startswith("__"):
            raise KeyError(name)
        return _MODULES.get(name) or Name(name)


class Shut:
    """A module that needs rights, and that may be imported as long as it is not used."""

    def __init__(self, name: str, **harmless: object) -> None:
        self.__dict__.update(harmless)
        self._name = name

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RefusedError(f"{self._name}.{name}", _NO_RIGHTS)


_LENGTHS: dict[str, int] = {}
_SHUT = {
    "os": Shut(
        "os",
        path=Shut(
            "os.path",
            **{name: getattr(posixpath, name) for name in ("basename", "dirname", "join")},
        ),
    ),
    "sys": Shut("sys", argv=[_FILE], path=[], version_info=sys.version_info, maxsize=sys.maxsize),
}


def _line() -> int:
    """The profile's line that is run."""
    frame = sys._getframe()
    while frame.f_code.co_filename != _FILE:
        if frame.f_back is None:
            return 1
        frame = frame.f_back
    return frame.f_lineno


def _imported(
    name: str, _globals: object = None, _locals: object = None, parts: Any = (), level: int = 0
) -> Any:
    """What a profile gets from an import."""
    first = name.partition(".")[0]
    if name == "os.path" and parts:
        return _SHUT["os"].path
    if name in _MODULES or first in _MODULES:
        return _MODULES[first]
    if first in sys.stdlib_module_names:
        return _SHUT.get(first) or Shut(first)
    if parts and "*" in parts:
        return SimpleNamespace(__all__=[])
    return Name(first)


def enclose(seconds: int) -> None:
    """Gives up all rights of this process, for good.

    Raises:
        RefusedError: If this machine cannot do so.
    """
    limits = {
        resource.RLIMIT_AS: _MOST_MEMORY,
        resource.RLIMIT_FSIZE: _MOST_BYTES,
        resource.RLIMIT_NOFILE: 3,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: seconds + 1,
    }
    machine, calls = _SYSTEM_CALLS.get(platform.machine(), (0, ()))
    code = _filter(machine, calls)
    program = Program(len(code) // 8, code)
    control = ctypes.CDLL(None).prctl

    faulthandler.enable()
    faulthandler.register(signal.SIGALRM, all_threads=False)
    signal.alarm(seconds)
    for limit, most in limits.items():
        resource.setrlimit(limit, (most, most))
    if (
        not calls
        or control(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        or control(_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0)
    ):
        raise RefusedError("the file", "this machine cannot run it in isolation (seccomp)", 1)
    sys.addaudithook(_audited)


def _filter(machine: int, calls: tuple[int, ...]) -> bytes:
    """Classic BPF that allows some system calls of a machine; others fail with 'operation not permitted'."""
    code = [
        (_LOAD_WORD, 0, 0, 4),
        (_JUMP_IF_EQUAL, 1, 0, machine),
        (_RETURN, 0, 0, _KILL),
        (_LOAD_WORD, 0, 0, 0),
    ]
    code += [(_JUMP_IF_EQUAL, len(calls) - place, 0, call) for place, call in enumerate(calls)]
    code += [(_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _audited(event: str, given: tuple[Any, ...]) -> None:
    # Python looks for the text of a line with an error, in vain.
    if event not in _HARMLESS and (event, *given[:1]) != ("open", _FILE):
        _end(RefusedError(event, _NO_RIGHTS).answer)


def _end(answer: Mapping[str, Any]) -> NoReturn:
    sys.stdout.write(json.dumps(answer, default=_plain))
    sys.stdout.flush()
    os._exit(0)


def _ways(scope: Mapping[str, Any]) -> Any:
    """The streams of each port of the profile."""
    if "register" not in scope:
        problem = "the file has no function of this name, so it describes no streams"
        raise RefusedError("register", problem, 1, "Name the file that contains it")
    registered = scope["register"]()
    if not hasattr(type(registered), "get_streams"):
        problem = "the file's class has no method of this name, so it describes no streams"
        raise RefusedError("get_streams", problem, 1, "Name the file that contains it")

    ways = []
    for direction in (0, 1):
        given: dict[str, Any] = {"direction": direction, "port_id": direction, "tunables": []}
        ways.append(registered.get_streams(**_accepted(registered.get_streams, given)))
    return ways


def _accepted(function: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Those of some named arguments that a function takes."""
    code = function.__code__
    if code.co_flags & 0x08:
        return given
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {name: value for name, value in given.items() if name in names}


def _plain(value: Any) -> Any:
    """What stands for a value that JSON does not have."""
    if isinstance(value, Made):
        return {**vars(value), "named": [*value.named.items()]}
    if isinstance(value, Layers):
        layers = [(name, [*fields.items()], line) for name, fields, line in value.layers]
        return {"layers": layers, "payload": value.payload}
    if isinstance(value, bytes):
        return value.decode("latin-1")
    kind = value.kind if isinstance(value, Name) else type(value).__name__
    return {"kind": kind, "line": 1, "arguments": [], "named": [], "calls": []}


def _failed(error: BaseException, text: str) -> dict[str, Any]:
    """What a user is told of an error."""
    if isinstance(error, RefusedError):
        return error.answer
    traceback = error.__traceback__
    line = 1
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == _FILE:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    what = text.split("\n")[line - 1].strip()[:80]
    problem = f"it fails with {error!r}"
    if isinstance(error, SystemExit):
        problem = "it exits here, perhaps because an option is missing: options keep their defaults"
    return RefusedError(what, problem, line).answer


def _compiled(text: str) -> Any:
    try:
        return compile(text, _FILE, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        problem = f"it is not Python 3: {getattr(error, 'msg', error)}"
        way_out = "Name a file in Python 3, whose expressions are not nested too deeply"
        raise RefusedError("the file", problem, getattr(error, "lineno", None), way_out) from error


def main() -> None:
    """Runs what comes from the standard input."""
    request = json.load(sys.stdin)
    text = request["text"]
    _LENGTHS.update(request["lengths"])
    known = {name: value for name, value in vars(builtins).items() if name != "__import__"}
    names = Names(known, __import__=_imported, print=lambda *_, **__: None)
    scope: dict[str, Any] = {"__builtins__": names, "__name__": "profile", "__file__": _FILE}
    # What these load when they are first used would be refused later.
    argparse.ArgumentParser().add_argument("--first", type=int)
    random.seed(0)

    try:
        enclose(request["seconds"])
        exec(_compiled(text), scope)  # noqa: S102 (that is what this process is for)
        _end({"value": _ways(scope)})
    except BaseException as error:  # noqa: BLE001 (a user is told of any)
        _end(_failed(error, text))


if __name__ == "__main__":
    main()
