"""BPF object files (ELF), as a compiler would write them, from assembled programs."""

from __future__ import annotations

import struct

from lossratio.bpf import R1, R2, R6, Assembler, Helper, W

_HEADER_BYTES, _SECTION_BYTES = 64, 64
_BPF, _RELOCATABLE = 247, 1
_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
_WRITABLE, _ALLOCATED, _EXECUTABLE = 1, 2, 4
_GLOBAL_FUNCTION = 0x12


def redirect(west: int, east: int, *, work: int = 0) -> bytes:
    """A program for both interfaces, by the kernel's numbers of them, that sends each frame to the other one.

    Args:
        west: Number of an interface.
        east: Number of the other interface.
        work: How often it asks for the time, which takes time.
    """
    code = Assembler()
    code.mov(R6, R1)
    for _ in range(work):
        code.call(Helper.KTIME_GET_NS)
    code.ldx(W, R2, R6, 12)
    code.mov(R1, east)
    code.jeq(R2, west, "out")
    code.mov(R1, west)
    code.label("out")
    code.mov(R2, 0)
    code.call(Helper.REDIRECT)
    code.exit()
    return code.code()


def elf(code: bytes, section: str = "xdp", name: str = "forward") -> bytes:
    """An object file with one program."""
    strings = b"\0" + name.encode() + b"\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, _GLOBAL_FUNCTION, 0, 1, 0, len(code))
    parts = [
        (section, _PROGBITS, _ALLOCATED | _EXECUTABLE, code, 0, 0, 0),
        ("license", _PROGBITS, _ALLOCATED | _WRITABLE, b"Apache-2.0\0", 0, 0, 0),
        (".symtab", _SYMTAB, 0, symbols, 4, 1, 24),
        (".strtab", _STRTAB, 0, strings, 0, 0, 0),
    ]
    names, body, headers = b"\0", b"", bytes(_SECTION_BYTES)
    for title, kind, flags, data, link, info, entry in [*parts, (".shstrtab", _STRTAB, 0, b"", 0, 0, 0)]:
        place = len(names)
        names += title.encode() + b"\0"
        content = data or names
        body += bytes(-len(body) % 8)
        where = (_HEADER_BYTES + len(body), len(content))
        headers += struct.pack("<IIQQQQIIQQ", place, kind, flags, 0, *where, link, info, 8, entry)
        body += content
    body += bytes(-len(body) % 8)
    count = len(parts) + 2
    ident = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    where = (0, 0, _HEADER_BYTES + len(body), 0, _HEADER_BYTES, 0, 0, _SECTION_BYTES, count, count - 1)
    return ident + struct.pack("<HHIQQQIHHHHHH", _RELOCATABLE, _BPF, 1, *where) + body + headers
