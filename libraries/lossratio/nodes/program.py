"""lossratio's programs that run on a node's own Python: packed here, sent over the session, started from memory there.

The node keeps no file of a program. So nobody can start an old version, and the program starts even if the node's disk
is full, or the user has no home directory.
"""

import base64
import json
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

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
import binascii, json, os, zlib
from importlib.machinery import ModuleSpec
data = b""
while len(data) < int(size):
    data += os.read(0, int(size) - len(data)) or os._exit(1)
SOURCES = json.loads(zlib.decompress(binascii.a2b_base64(data)))
class Importer:
    def find_spec(self, module, path=None, target=None):
        if module in SOURCES:
            return ModuleSpec(module, self, is_package=any(other.startswith(module + ".") for other in SOURCES))
    def create_module(self, spec):
        return None
    def get_data(self, name):
        return binascii.a2b_base64(SOURCES[name])
    def exec_module(self, module):
        exec(compile(SOURCES[module.__name__], module.__name__ + ".py", "exec"), module.__dict__)
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
        """Its sources: the first line that it reads. All that follows is the program's own."""
        return base64.b64encode(zlib.compress(json.dumps(self.sources).encode())).decode()

    def command(self, python: str, *options: str) -> tuple[str, ...]:
        """The command that starts it, and reads `line`; the arguments are as for `start`."""
        # Errors and lists of processes show the beginning of a command.
        code = f"# {self.name}\n{_START}"
        return (python, *options, "-c", code, self.name, self.main, str(len(self.line) + 1))


@cache
def pack_program(folder: str, name: str, main: str, rooms: tuple[str, ...] = ()) -> NodeProgram:
    """Packs the modules of a folder of the library, once in a process; `main` is the module with the function `main`.

    Its package on the node has underscores instead of the hyphens in its name. `rooms` of the library, which need
    nothing but the standard library, are imported by the names that they have here.
    """
    package = name.replace("-", "_")
    sources = read_sources(_LIBRARY / folder, package)
    if rooms:
        sources[_LIBRARY.name] = ""
    for room in rooms:
        sources.update(read_sources(_LIBRARY / room, f"{_LIBRARY.name}.{room}"))
    return NodeProgram(name, f"{package}.{main}", sources)


def read_sources(folder: Path, package: str) -> dict[str, str]:
    """Sources of a package and the packages in it, as `NodeProgram.sources` has them."""
    sources = {}
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name.isidentifier():
            sources.update(read_sources(entry, f"{package}.{entry.name}"))
        elif entry.suffix == ".py":
            name = package if entry.name == "__init__.py" else f"{package}.{entry.stem}"
            sources[name] = entry.read_text(encoding="utf-8")
        elif entry.suffix == ".o":
            sources[f"{package}.{entry.name}"] = base64.b64encode(entry.read_bytes()).decode()
    return sources
