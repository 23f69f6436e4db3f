#!/usr/bin/env python3
"""Compiles the BPF programs of the library, each into an object file beside its source. It needs clang 14 or later.

Each object has the digest of its sources, so that a test finds an object that is older than its sources.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

LIBRARY = Path(__file__).parents[1] / "libraries" / "lossratio"
SHARED = LIBRARY / "bpf"
VERSION = "14.0.6"
"""The clang that compiled the committed objects; the same version reproduces their bytes."""
CLANG = (
    "clang",
    "-target",
    "bpfel",
    "-mcpu=v3",
    "-O2",
    "-ffreestanding",
    "-Wall",
    "-Werror",
    "-Wno-unused-const-variable",
)


def sources() -> list[Path]:
    """The programs."""
    return sorted(LIBRARY.rglob("*.c"))


def headers() -> list[Path]:
    """What programs include."""
    return sorted(LIBRARY.rglob("*.h"))


def digest(source: Path) -> str:
    """The digest of a program and of all headers that it may include."""
    headers = sorted({*SHARED.glob("*.h"), *source.parent.glob("*.h")})
    return hashlib.sha256(b"".join(path.read_bytes() for path in (*headers, source))).hexdigest()


def compile_program(source: Path, target: Path) -> None:
    """Compiles one of them."""
    own = (f'-DDIGEST="{digest(source)}"', "-I", str(SHARED), "-o", str(target), "-c", source.name)
    subprocess.run([*CLANG, *own], check=True, cwd=source.parent)


if __name__ == "__main__":
    for program in sources():
        compile_program(program, Path(sys.argv[1]) / f"{program.stem}.o" if sys.argv[1:] else program.with_suffix(".o"))
