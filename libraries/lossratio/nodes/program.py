"""lossratio's programs that run on a node's own Python: packed here, sent over the session, and started from memory.

The node keeps no file of a program. So nobody can start an old version, and the program starts even if the node's disk
is full, or the user has no home directory.
"""

import base64
import json
import marshal
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType
from typing import cast

from lossratio.errors import NodeError
from lossratio.nodes.process import NodeProcess

_LIBRARY = Path(__file__).parents[1]

# All bytes that follow the sources on the standard input are the program's: none of them may be read here.
_START = """\
import sys
name, main, size = sys.argv[1:]
if sys.version_info < (3, 8):
    sys.exit(name + " needs Python 3.8 or later, and this is Python " + sys.version.split()[0] + ".")
sys.path[:] = [path for path in sys.path if path]
import binascii, json, marshal, os, zlib
from importlib.machinery import ModuleSpec
from importlib.util import MAGIC_NUMBER
data = b""
while len(data) < int(size):
    data += os.read(0, int(size) - len(data)) or os._exit(1)
sources, made_by, code = zlib.decompress(binascii.a2b_base64(data)).split(b"\\n", 2)
SOURCES = json.loads(sources)
CODE = {}
if made_by.decode() == sys.implementation.cache_tag + " " + MAGIC_NUMBER.hex():
    CODE = marshal.loads(code)
class Importer:
    def find_spec(self, module, path=None, target=None):
        if module in SOURCES:
            return ModuleSpec(module, self, is_package=any(other.startswith(module + ".") for other in SOURCES))
    def create_module(self, spec):
        return None
    def get_data(self, name):
        return binascii.a2b_base64(SOURCES[name])
    def exec_module(self, module):
        name = module.__name__
        code = CODE.get(name) or compile(SOURCES[name], name + ".py", "exec")
        exec(code, module.__dict__)
sys.meta_path.insert(0, Importer())
__import__(main)
sys.modules[main].main()
"""
"""The agent adds the modules of a generator to ``SOURCES`` of ``__main__``, and imports them."""


@dataclass(frozen=True)
class NodeProgram:
    """A packed program. Get one from `pack_program`."""

    name: str
    """Its name in the node's list of processes, and in messages, e.g. ``lossratio-agent``."""
    main: str
    """The module with the function `main`."""
    sources: dict[str, str]
    """Sources of its modules, by their names on the node; and object files in base64, whose names end in ``.o``."""
    code: dict[str, CodeType] = field(default_factory=dict)
    """Modules that this machine's Python has compiled: a node with the same Python need not do so again."""

    def start(self, start: Callable[..., NodeProcess], python: str, *options: str) -> NodeProcess:
        """Starts Python, 3.8 or later, on a node by the function that starts commands there, and sends the program.

        The first line of the process is the program's own, or the error if the program could not be started.
        """
        process = start(*self.command(python, *options))
        # A process that ended at once wrote the reason to standard error; the first read reports it.
        with suppress(NodeError):
            process.write_line(self.line)
        return process

    @cached_property
    def line(self) -> str:
        """Its modules: the first line that it reads. Everything after that is the program's own input."""
        sources = json.dumps(self.sources).encode()
        made_by = f"{sys.implementation.cache_tag} {MAGIC_NUMBER.hex()}".encode()
        content = b"\n".join((sources, made_by, marshal.dumps(self.code)))
        # Better compression would take longer than a network needs for the bytes that it saves.
        return base64.b64encode(zlib.compress(content, level=1)).decode()

    def command(self, python: str, *options: str) -> tuple[str, ...]:
        """The command that starts it, and reads `line`; the arguments are as for `start`."""
        # Errors and lists of processes show the beginning of a command.
        code = f"# {self.name}\n{_START}"
        return (python, *options, "-c", code, self.name, self.main, str(len(self.line) + 1))


@cache
def pack_program(
    folder: str, name: str, main: str, rooms: tuple[str, ...] = (), seldom: tuple[str, ...] = ()
) -> NodeProgram:
    """Packs the modules of a folder of the library, once in a process; `main` is the module with the function `main`.

    Its package on the node has underscores instead of the hyphens in its name. `rooms` of the library, which need
    nothing but the standard library, are imported by the names that they have here. `seldom` are packages of the folder
    that are rarely used: they are sent without code, and compiled on the node.
    """
    package = name.replace("-", "_")
    folders = {package: _LIBRARY / folder}
    for room in rooms:
        folders[f"{_LIBRARY.name}.{room}"] = _LIBRARY / room

    sources: dict[str, str] = {}
    code: dict[str, CodeType] = {}
    if rooms:
        sources[_LIBRARY.name] = ""
    seldom_used = tuple(f"{package}.{each}" for each in seldom)
    for package_on_node, path in folders.items():
        sources.update(read_sources(path, package_on_node))
        code.update(_read_code(path, package_on_node, seldom_used))

    return NodeProgram(name, f"{package}.{main}", sources, code)


def read_sources(folder: Path, package: str) -> dict[str, str]:
    """Sources of a package and the packages in it, as `NodeProgram.sources` has them."""
    sources = {}
    for name, file in _files(folder, package):
        if file.suffix == ".py":
            sources[name] = file.read_text(encoding="utf-8")
        elif file.suffix == ".o":
            sources[name] = base64.b64encode(file.read_bytes()).decode()
    return sources


def _files(folder: Path, package: str) -> Iterator[tuple[str, Path]]:
    """Files of a package and the packages in it, with their names on the node."""
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name.isidentifier():
            yield from _files(entry, f"{package}.{entry.name}")
        elif entry.name == "__init__.py":
            yield package, entry
        elif entry.suffix == ".py":
            yield f"{package}.{entry.stem}", entry
        else:
            yield f"{package}.{entry.name}", entry


def _read_code(folder: Path, package: str, left_out: tuple[str, ...]) -> dict[str, CodeType]:
    """Code of a package and the packages in it, from Python's own cache, as `NodeProgram.code` has it.

    If Python keeps no such cache, this is empty: otherwise, each of our processes would compile everything, while a
    node compiles only what it uses. It is also empty if Python leaves out assertions, because the node's Python would
    not.
    """
    if sys.dont_write_bytecode or sys.flags.optimize:
        return {}

    code = {}
    for name, file in _files(folder, package):
        if file.suffix == ".py" and not name.startswith(left_out):
            module_code = cast(CodeType, SourceFileLoader(name, str(file)).get_code(name))
            code[name] = _with_file_name(module_code, f"{name}.py")
    return code


def _with_file_name(code: CodeType, file_name: str) -> CodeType:
    """A copy of code, and of the code of functions in it, whose errors name another file."""
    constants = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            constant = _with_file_name(constant, file_name)
        constants.append(constant)
    return code.replace(co_filename=file_name, co_consts=tuple(constants))
