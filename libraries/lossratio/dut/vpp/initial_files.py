"""Runs on a node: writes the initial file system of a virtual machine from the node's own programs and kernel modules.

It needs bare Python 3.8 or later. Its arguments are the path of the archive and that of the kernel. Its standard input
is JSON::

    {
        "modules": ["uio_pci_generic"],
        "programs": ["sh"],
        "files": ["/opt/vpp/bin/vpp"],
        "if_any": ["/usr/lib/*/dpdk/*/*.so"],
        "texts": {"init": "..."}
    }

Programs are found in the path. Entries of ``files`` and ``if_any`` are patterns, and only those of ``files`` must match
a file. Programs and files are copied with the libraries that they load. Texts are files by name.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

DIRECTORY, FILE, PROGRAM, LINK = 0o040755, 0o100644, 0o100755, 0o120777
SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Archive:
    """An archive in the format that Linux reads at its start (cpio, "newc")."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._names: set[str] = set()

    def add(self, name: str, mode: int, content: bytes = b"") -> None:
        """Adds an entry and the directories that contain it, each of them once."""
        if name in self._names:
            return
        self._names.add(name)
        directory = os.path.dirname(name)
        if directory:
            self.add(directory, DIRECTORY)
        self._write(name, mode, content)

    def copy(self, path: str) -> None:
        """Adds a file of the node under its own path, and all symbolic links on the way."""
        place = "/"
        parts = os.path.normpath(path).strip("/").split("/")
        for number, part in enumerate(parts, start=1):
            place = os.path.join(place, part)
            if os.path.islink(place):
                target = os.readlink(place)
                self.add(place.lstrip("/"), LINK, target.encode())
                self.copy(os.path.join(os.path.dirname(place), target, *parts[number:]))
                return
        self.add(place.lstrip("/"), PROGRAM, read(place))

    def end(self) -> None:
        """Ends the archive."""
        self._write("TRAILER!!!", 0, b"")

    def _write(self, name: str, mode: int, content: bytes) -> None:
        encoded = name.encode() + b"\0"
        # Record: inode, mode, owner, group, links, time, size, two pairs of device numbers, length of the name, sum.
        fields = (len(self._names), mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        self._file.write(head + b"\0" * (-len(head) % 4))
        self._file.write(content + b"\0" * (-len(content) % 4))


def read(path: str) -> bytes:
    """The content of a file."""
    with open(path, "rb") as file:
        return file.read()


def found(program: str) -> str:
    """The path of a program."""
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":" + SYSTEM)
    if path is None:
        sys.exit(f"the virtual machine needs the program {program}, which is missing")
    return path


def matching(pattern: str) -> list[str]:
    """The files that match a pattern; there must be at least one."""
    paths = sorted(glob.glob(pattern))
    if not paths:
        sys.exit(f"the virtual machine needs {pattern}, which is missing")
    return paths


def libraries(path: str) -> Iterator[str]:
    """The libraries that a program loads at its start."""
    listed = subprocess.run(
        ["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    for line in listed.stdout.decode().splitlines():
        before, arrow, after = line.partition("=>")
        words = (after if arrow else before).split()
        if words and words[0].startswith("/"):
            yield words[0]
        elif words[:2] == ["not", "found"]:
            sys.exit(f"{path} needs the library {before.strip()}, which is missing")


def module_files(kernel: str, module: str) -> Iterator[str]:
    """The files of a kernel module and the modules that it needs, in the order of loading."""
    root = os.path.dirname(os.path.dirname(kernel))
    version = os.path.basename(kernel).partition("-")[2]
    place = ("--dirname", root, "--set-version", version)
    command = [found("modprobe"), *place, "--show-depends", module]
    shown = subprocess.run(command, capture_output=True, check=False)
    if shown.returncode != 0:
        reason = shown.stderr.decode().strip()
        sys.exit(f"the kernel {kernel} has no module {module} ({reason}): name another kernel")
    for line in shown.stdout.decode().splitlines():
        words = line.split()
        if words[0] == "insmod":
            yield words[1]


def write(file: BinaryIO, kernel: str, wanted: dict[str, Any]) -> None:
    """Writes the archive into a file."""
    archive = Archive(file)
    # DPDK refuses a root directory that everybody may write to, which is the kernel's default.
    archive.add(".", DIRECTORY)
    paths = [found(program) for program in wanted["programs"]]
    for pattern in wanted["files"]:
        paths += matching(pattern)
    for pattern in wanted["if_any"]:
        paths += glob.glob(pattern)
    for path in paths:
        archive.copy(path)
        for library in libraries(path):
            archive.copy(library)

    modules = [path for module in wanted["modules"] for path in module_files(kernel, module)]
    for number, path in enumerate(dict.fromkeys(modules)):
        archive.add(f"modules/{number:02}-{os.path.basename(path)}", FILE, read(path))
    for name, text in wanted["texts"].items():
        archive.add(name, PROGRAM, text.encode())
    for name in ("dev", "proc", "sys", "tmp", "run", "var/run"):
        archive.add(name, DIRECTORY)
    archive.end()


def main() -> None:
    """Writes the archive that the arguments and the standard input describe."""
    path, kernel = sys.argv[1:]
    try:
        with open(path, "wb") as file:
            write(file, kernel, json.load(sys.stdin))
    except OSError as error:
        sys.exit(f"cannot make the virtual machine's initial file system: {error}")


if __name__ == "__main__":
    main()
