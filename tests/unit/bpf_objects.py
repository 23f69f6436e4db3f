"""BPF object files (ELF), as a compiler would write them, from instructions."""

from __future__ import annotations

import ctypes
import mmap
import struct
from enum import Enum

from lossratio.bpf import kernel
from lossratio.bpf.system_call import call_bpf

_DEVICES = 14


class XdpAction(Enum):
    """The verdict of an XDP program on a frame."""

    ABORTED, DROP, PASS, TX, REDIRECT = range(5)


def run_once(program: kernel.Program, frame: bytes, *, interface: int = 0, queue: int = 0) -> tuple[int, bytes]:
    """Runs a program on a frame without FCS, which goes nowhere; returns the verdict, and the frame as it was left.

    The frame seems to have arrived on an interface, by its index, and on a receive queue of this one, by its number; 0:
    the kernel's choice.
    """
    data = ctypes.create_string_buffer(frame, len(frame))
    out = ctypes.create_string_buffer(mmap.PAGESIZE)
    context = ctypes.create_string_buffer(struct.pack("=6I", 0, len(frame), 0, interface, queue, 0), 24)
    attribute = struct.pack(
        "=4IQQ4IQQ",
        *(program.descriptor, 0, len(frame), len(out)),
        *(ctypes.addressof(data), ctypes.addressof(out), 1, 0),
        *(len(context) if interface else 0, 0, ctypes.addressof(context) if interface else 0, 0),
    )
    _, answer = call_bpf(kernel._TEST_RUN, attribute, f"a run of the program {program.name}")
    _, verdict, _, length = struct.unpack_from("=4I", answer)
    return verdict, out.raw[:length]


_HEADER_BYTES, _SECTION_BYTES = 64, 64
_BPF, _RELOCATABLE = 247, 1
_PROGBITS, _SYMTAB, _STRTAB, _REL = 1, 2, 3, 9
_WRITABLE, _ALLOCATED, _EXECUTABLE = 1, 2, 4
_GLOBAL_FUNCTION, _GLOBAL_OBJECT = 0x12, 0x11
_MAP_RELOCATION, _MAP_BYTES = 1, 32


def instruction(code: int, registers: int = 0, offset: int = 0, number: int = 0) -> bytes:
    """An instruction (RFC 9669); registers are the source, in the upper four bits, and the destination."""
    return struct.pack("<BBhi", code, registers, offset, number)


KTIME_GET_NS, GET_PRANDOM_U32, REDIRECT, REDIRECT_MAP = (instruction(0x85, number=one) for one in (5, 7, 23, 51))
EXIT = instruction(0x95)


def mov(register: int, number: int) -> bytes:
    """Has a register hold a number."""
    return instruction(0xB7, register, 0, number)


def redirect(west: int, east: int, *, work: int = 0) -> bytes:
    """A program for both interfaces, by the kernel's numbers of them, that sends each frame to the other one.

    Args:
        west: Number of an interface.
        east: Number of the other interface.
        work: How often it asks for the time, which takes time.
    """
    keep, arriving_on = instruction(0xBF, 0x16), instruction(0x61, 0x62, 12)
    out = instruction(0x15, 2, 1, west)
    return keep + work * KTIME_GET_NS + arriving_on + mov(1, east) + out + mov(1, west) + mov(2, 0) + REDIRECT + EXIT


def redirect_by_map(*, loses_half: bool = False, descriptor: int = 0) -> bytes:
    """A program that sends all frames, or a random half, where a map says. Its first instruction names the map."""
    table = instruction(0x18, 0x16, 0, descriptor) + instruction(0)
    chance = GET_PRANDOM_U32 + instruction(0x45, 0, 5, 1) if loses_half else b""
    lost = mov(0, XdpAction.DROP.value) + EXIT if loses_half else b""
    return table + chance + instruction(0xBF, 0x61) + mov(2, 0) + mov(3, 0) + REDIRECT_MAP + EXIT + lost


def elf(code: bytes, section: str = "xdp", name: str = "forward", map_name: str | None = None) -> bytes:
    """An object file with one program, whose first instruction loads the map with this name, if there is one."""
    strings = b"\0" + b"".join(text.encode() + b"\0" for text in (name, map_name or ""))
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, _GLOBAL_FUNCTION, 0, 1, 0, len(code))
    parts = [
        (section, _PROGBITS, _ALLOCATED | _EXECUTABLE, code, 0, 0, 0),
        ("license", _PROGBITS, _ALLOCATED | _WRITABLE, b"Apache-2.0\0", 0, 0, 0),
    ]
    if map_name is not None:
        symbols += struct.pack("<IBBHQQ", 2 + len(name), _GLOBAL_OBJECT, 0, 3, 0, _MAP_BYTES)
        parts += [
            (".maps", _PROGBITS, _ALLOCATED | _WRITABLE, bytes(_MAP_BYTES), 0, 0, 0),
            (".BTF", _PROGBITS, 0, _device_map(map_name), 0, 0, 0),
            (f".rel{section}", _REL, 0, struct.pack("<QII", 0, _MAP_RELOCATION, 2), len(parts) + 4, 1, 16),
        ]
    parts += [
        (".symtab", _SYMTAB, 0, symbols, len(parts) + 2, 1, 24),
        (".strtab", _STRTAB, 0, strings, 0, 0, 0),
        (".shstrtab", _STRTAB, 0, b"", 0, 0, 0),
    ]
    names, body, headers = b"\0", b"", bytes(_SECTION_BYTES)
    for title, kind, flags, data, link, info, entry in parts:
        place = len(names)
        names += title.encode() + b"\0"
        content = data or names
        body += bytes(-len(body) % 8)
        where = (_HEADER_BYTES + len(body), len(content))
        headers += struct.pack("<IIQQQQIIQQ", place, kind, flags, 0, *where, link, info, 8, entry)
        body += content
    body += bytes(-len(body) % 8)
    count = len(parts) + 1
    ident = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    where = (0, 0, _HEADER_BYTES + len(body), 0, _HEADER_BYTES, 0, 0, _SECTION_BYTES, count, count - 1)
    return ident + struct.pack("<HHIQQQIHHHHHH", _RELOCATABLE, _BPF, 1, *where) + body + headers


def _device_map(name: str) -> bytes:
    """The type (BTF) of a map of devices with one entry, as the section ``.maps`` has it."""
    names = ["", "unsigned int", "type", "max_entries", "key", "value", name, ".maps"]
    strings = b"".join(text.encode() + b"\0" for text in names)
    of = {text: len(b"".join(one.encode() + b"\0" for one in names[:place])) for place, text in enumerate(names)}
    integer, pointer, array, structure, variable, section = 1, 2, 3, 4, 14, 15

    def kind(number: int, name: str, size_or_type: int, *more: int, members: int = 0) -> bytes:
        return struct.pack(f"<{3 + len(more)}I", of[name], number << 24 | members, size_or_type, *more)

    members = zip(("type", "max_entries", "key", "value"), (3, 5, 6, 6), range(0, 256, 64), strict=True)
    types = (
        kind(integer, "unsigned int", 4, 32)
        + (kind(array, "", 0, 1, 1, _DEVICES) + kind(pointer, "", 2))
        + (kind(array, "", 0, 1, 1, 1) + kind(pointer, "", 4) + kind(pointer, "", 1))
        + kind(structure, "", _MAP_BYTES, *(n for one, *rest in members for n in (of[one], *rest)), members=4)
        + kind(variable, name, 7, 1)
        + kind(section, ".maps", _MAP_BYTES, 8, 0, _MAP_BYTES, members=1)
    )
    return struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(strings)) + types + strings
