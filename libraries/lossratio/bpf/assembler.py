"""An assembler for BPF programs. It has the names of the kernel's documentation (RFC 9669, "BPF Instruction Set").

A program is a list of instructions of eight bytes each: an operation code, two registers, an offset and a number. A
method of `Assembler` adds one instruction; `Assembler.code` returns the bytes that the kernel takes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from typing import Union

_INSTRUCTION = struct.Struct("=BBhi")
_LD, _LDX, _ST, _STX, _ALU, _JMP, _JMP32, _ALU64 = range(8)
_K, _X = 0x00, 0x08
_IMM, _MEM, _ATOMIC = 0x00, 0x60, 0xC0
_PSEUDO_MAP_FD, _PSEUDO_MAP_VALUE = 1, 2
_FETCH, _XCHG, _CMPXCHG = 0x01, 0xE1, 0xF1


class Register(Enum):
    """A register. R0 has results, R1 to R5 have arguments and are lost in a call, R6 to R9 stay, R10 is the stack."""

    R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 = range(11)


R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 = Register


class Size(Enum):
    """How many bytes an instruction loads or stores."""

    W, H, B, DW = 0x00, 0x08, 0x10, 0x18

    @property
    def width(self) -> int:
        """The number of bytes."""
        return {Size.B: 1, Size.H: 2, Size.W: 4, Size.DW: 8}[self]


B, H, W, DW = Size.B, Size.H, Size.W, Size.DW


class Helper(Enum):
    """Functions of the kernel that a program may call; their numbers are a part of the kernel's interface."""

    MAP_LOOKUP_ELEM = 1
    MAP_UPDATE_ELEM = 2
    KTIME_GET_NS = 5
    GET_PRANDOM_U32 = 7
    GET_SMP_PROCESSOR_ID = 8
    REDIRECT = 23
    XDP_ADJUST_HEAD = 44
    REDIRECT_MAP = 51
    XDP_ADJUST_TAIL = 65
    XDP_LOAD_BYTES = 189
    XDP_STORE_BYTES = 190


class XdpAction(Enum):
    """The verdict of an XDP program on a frame."""

    ABORTED, DROP, PASS, TX, REDIRECT = range(5)


Source = Union[Register, int]


@dataclass(frozen=True)
class _Instruction:
    code: int
    dst: int = 0
    src: int = 0
    offset: int = 0
    number: int = 0
    label: str | None = None


class AssemblyError(ValueError):
    """A program cannot be written down: a label is missing or there twice, or a number does not fit."""


class Assembler:
    """Collects the instructions of a program.

    A source is a register or a number. Numbers of 32 bits, with or without a sign, stand for themselves; the kernel
    extends them by their sign, so that larger ones than 0x7FFFFFFF need `ld_imm64`. Methods whose names end in ``32``
    use the lower half of the registers, and clear the upper half of the destination.
    """

    def __init__(self) -> None:
        self._instructions: list[_Instruction] = []
        self._labels: dict[str, int] = {}
        self._names = 0

    def __len__(self) -> int:
        return len(self._instructions)

    def code(self) -> bytes:
        """The program's instructions as the kernel takes them.

        Raises:
            AssemblyError: If a jump goes to a label that is not there, or too far away.
        """
        return b"".join(self._encode(place, one) for place, one in enumerate(self._instructions))

    def label(self, name: str) -> None:
        """Names the place of the next instruction.

        Raises:
            AssemblyError: If the name is taken.
        """
        if name in self._labels:
            raise AssemblyError(f"The label {name!r} is there twice.")
        self._labels[name] = len(self._instructions)

    def new_label(self, name: str) -> str:
        """A name for a label that no other one has; it begins with this text."""
        self._names += 1
        return f"{name}.{self._names}"

    # Arithmetic

    def add(self, dst: Register, src: Source) -> None:
        """``dst += src``."""
        self._alu(_ALU64, 0x00, dst, src)

    def sub(self, dst: Register, src: Source) -> None:
        """``dst -= src``."""
        self._alu(_ALU64, 0x10, dst, src)

    def mul(self, dst: Register, src: Source) -> None:
        """``dst *= src``."""
        self._alu(_ALU64, 0x20, dst, src)

    def div(self, dst: Register, src: Source) -> None:
        """``dst /= src``, without a sign; 0 if the source is 0."""
        self._alu(_ALU64, 0x30, dst, src)

    def mod(self, dst: Register, src: Source) -> None:
        """``dst %= src``, without a sign."""
        self._alu(_ALU64, 0x90, dst, src)

    def or_(self, dst: Register, src: Source) -> None:
        """``dst |= src``."""
        self._alu(_ALU64, 0x40, dst, src)

    def and_(self, dst: Register, src: Source) -> None:
        """``dst &= src``."""
        self._alu(_ALU64, 0x50, dst, src)

    def xor(self, dst: Register, src: Source) -> None:
        """``dst ^= src``."""
        self._alu(_ALU64, 0xA0, dst, src)

    def lsh(self, dst: Register, src: Source) -> None:
        """``dst <<= src``."""
        self._alu(_ALU64, 0x60, dst, src)

    def rsh(self, dst: Register, src: Source) -> None:
        """``dst >>= src``, without a sign."""
        self._alu(_ALU64, 0x70, dst, src)

    def arsh(self, dst: Register, src: Source) -> None:
        """``dst >>= src``, with a sign."""
        self._alu(_ALU64, 0xC0, dst, src)

    def neg(self, dst: Register) -> None:
        """``dst = -dst``."""
        self._add(_Instruction(_ALU64 | 0x80, dst.value))

    def mov(self, dst: Register, src: Source) -> None:
        """``dst = src``."""
        self._alu(_ALU64, 0xB0, dst, src)

    def add32(self, dst: Register, src: Source) -> None:
        """``dst += src``, 32 bits."""
        self._alu(_ALU, 0x00, dst, src)

    def sub32(self, dst: Register, src: Source) -> None:
        """``dst -= src``, 32 bits."""
        self._alu(_ALU, 0x10, dst, src)

    def mul32(self, dst: Register, src: Source) -> None:
        """``dst *= src``, 32 bits."""
        self._alu(_ALU, 0x20, dst, src)

    def div32(self, dst: Register, src: Source) -> None:
        """``dst /= src``, 32 bits without a sign."""
        self._alu(_ALU, 0x30, dst, src)

    def mod32(self, dst: Register, src: Source) -> None:
        """``dst %= src``, 32 bits without a sign."""
        self._alu(_ALU, 0x90, dst, src)

    def or32(self, dst: Register, src: Source) -> None:
        """``dst |= src``, 32 bits."""
        self._alu(_ALU, 0x40, dst, src)

    def and32(self, dst: Register, src: Source) -> None:
        """``dst &= src``, 32 bits."""
        self._alu(_ALU, 0x50, dst, src)

    def xor32(self, dst: Register, src: Source) -> None:
        """``dst ^= src``, 32 bits."""
        self._alu(_ALU, 0xA0, dst, src)

    def lsh32(self, dst: Register, src: Source) -> None:
        """``dst <<= src``, 32 bits."""
        self._alu(_ALU, 0x60, dst, src)

    def rsh32(self, dst: Register, src: Source) -> None:
        """``dst >>= src``, 32 bits without a sign."""
        self._alu(_ALU, 0x70, dst, src)

    def mov32(self, dst: Register, src: Source) -> None:
        """``dst = src``, 32 bits."""
        self._alu(_ALU, 0xB0, dst, src)

    def to_be(self, dst: Register, bits: int) -> None:
        """Turns 16, 32 or 64 bits into big-endian order (network order), and clears those above them."""
        self._add(_Instruction(_ALU | _X | 0xD0, dst.value, number=bits))

    # Memory

    def ldx(self, size: Size, dst: Register, src: Register, offset: int) -> None:
        """Loads: ``dst = *(size *)(src + offset)``."""
        self._add(_Instruction(_LDX | _MEM | size.value, dst.value, src.value, offset))

    def stx(self, size: Size, dst: Register, offset: int, src: Register) -> None:
        """Stores: ``*(size *)(dst + offset) = src``."""
        self._add(_Instruction(_STX | _MEM | size.value, dst.value, src.value, offset))

    def st(self, size: Size, dst: Register, offset: int, number: int) -> None:
        """Stores a number: ``*(size *)(dst + offset) = number``."""
        self._add(_Instruction(_ST | _MEM | size.value, dst.value, 0, offset, _signed(number)))

    def ld_imm64(self, dst: Register, number: int) -> None:
        """``dst = number``, 64 bits with or without a sign. It takes the room of two instructions."""
        self._wide(dst, 0, number & 0xFFFFFFFF, (number >> 32) & 0xFFFFFFFF)

    def ld_map_fd(self, dst: Register, descriptor: int) -> None:
        """The address of a map, for helpers."""
        self._wide(dst, _PSEUDO_MAP_FD, descriptor, 0)

    def ld_map_value(self, dst: Register, descriptor: int, offset: int = 0) -> None:
        """The address of some byte in the only value of an array."""
        self._wide(dst, _PSEUDO_MAP_VALUE, descriptor, offset)

    def atomic_add(self, size: Size, dst: Register, offset: int, src: Register, *, fetch: bool = False) -> None:
        """``*(size *)(dst + offset) += src``, in one step; 4 or 8 bytes; with `fetch` the source gets the old value."""
        self._add(_Instruction(_STX | _ATOMIC | size.value, dst.value, src.value, offset, _FETCH * fetch))

    def atomic_or(self, size: Size, dst: Register, offset: int, src: Register, *, fetch: bool = False) -> None:
        """``*(size *)(dst + offset) |= src``, in one step; with `fetch` the source gets the value from before."""
        self._add(_Instruction(_STX | _ATOMIC | size.value, dst.value, src.value, offset, 0x40 | (_FETCH * fetch)))

    def xchg(self, size: Size, dst: Register, offset: int, src: Register) -> None:
        """Exchanges a value in memory and the source, in one step."""
        self._add(_Instruction(_STX | _ATOMIC | size.value, dst.value, src.value, offset, _XCHG))

    def cmpxchg(self, size: Size, dst: Register, offset: int, src: Register) -> None:
        """Stores the source if the value in memory is that of R0, in one step; R0 gets the value from before."""
        self._add(_Instruction(_STX | _ATOMIC | size.value, dst.value, src.value, offset, _CMPXCHG))

    # Jumps

    def ja(self, label: str) -> None:
        """Jumps."""
        self._add(_Instruction(_JMP, label=label))

    def jeq(self, dst: Register, src: Source, label: str) -> None:
        """Jumps if ``dst == src``."""
        self._jump(_JMP, 0x10, dst, src, label)

    def jne(self, dst: Register, src: Source, label: str) -> None:
        """Jumps if ``dst != src``."""
        self._jump(_JMP, 0x50, dst, src, label)

    def jgt(self, dst: Register, src: Source, label: str) -> None:
        """Jumps if ``dst > src``, without a sign."""
        self._jump(_JMP, 0x20, dst, src, label)

    def jge(self, dst: Register, src: Source, label: str) -> None:
        """Jumps if ``dst >= src``, without a sign."""
        self._jump(_JMP, 0x30, dst, src, label)

    def jlt(self, dst: Register, src: Source, label: str) -> None:
        """Jumps if ``dst < src``, without a sign."""
        self._jump(_JMP, 0xA0, dst, src, label)

    def jle(self, dst: Register, src: Source, label: str) -> None:
        """Jumps if ``dst <= src``, without a sign."""
        self._jump(_JMP, 0xB0, dst, src, label)

    def jset(self, dst: Register, src: Source, label: str) -> None:
        """Jumps if ``dst & src``."""
        self._jump(_JMP, 0x40, dst, src, label)

    def jeq32(self, dst: Register, src: Source, label: str) -> None:
        """Jumps if ``dst == src``, 32 bits."""
        self._jump(_JMP32, 0x10, dst, src, label)

    def jne32(self, dst: Register, src: Source, label: str) -> None:
        """Jumps if ``dst != src``, 32 bits."""
        self._jump(_JMP32, 0x50, dst, src, label)

    def jge32(self, dst: Register, src: Source, label: str) -> None:
        """Jumps if ``dst >= src``, 32 bits without a sign."""
        self._jump(_JMP32, 0x30, dst, src, label)

    def jlt32(self, dst: Register, src: Source, label: str) -> None:
        """Jumps if ``dst < src``, 32 bits without a sign."""
        self._jump(_JMP32, 0xA0, dst, src, label)

    def call(self, helper: Helper) -> None:
        """Calls a function of the kernel: arguments in R1 to R5, the result in R0; R1 to R5 are lost."""
        self._add(_Instruction(_JMP | 0x80, number=helper.value))

    def exit(self, action: XdpAction | None = None) -> None:
        """Ends the program with the result in R0, or with this verdict."""
        if action is not None:
            self.mov32(R0, action.value)
        self._add(_Instruction(_JMP | 0x90))

    def _alu(self, kind: int, operation: int, dst: Register, src: Source) -> None:
        if isinstance(src, Register):
            self._add(_Instruction(kind | operation | _X, dst.value, src.value))
        else:
            # 64 bits get the sign of the number.
            number = _signed(src) if kind == _ALU else _fits(src)
            self._add(_Instruction(kind | operation | _K, dst.value, number=number))

    def _jump(self, kind: int, operation: int, dst: Register, src: Source, label: str) -> None:
        if isinstance(src, Register):
            self._add(_Instruction(kind | operation | _X, dst.value, src.value, label=label))
        else:
            number = _signed(src) if kind == _JMP32 else _fits(src)
            self._add(_Instruction(kind | operation | _K, dst.value, number=number, label=label))

    def _wide(self, dst: Register, kind: int, low: int, high: int) -> None:
        self._add(_Instruction(_LD | _IMM | Size.DW.value, dst.value, kind, number=_signed(low)))
        self._add(_Instruction(0, number=_signed(high)))

    def _add(self, instruction: _Instruction) -> None:
        self._instructions.append(instruction)

    def _encode(self, place: int, one: _Instruction) -> bytes:
        offset = one.offset
        if one.label is not None:
            if one.label not in self._labels:
                raise AssemblyError(f"There is no label {one.label!r}.")
            offset = self._labels[one.label] - place - 1
        try:
            return _INSTRUCTION.pack(one.code, one.dst | one.src << 4, offset, one.number)
        except struct.error as error:
            where = "a jump" if one.label is not None else "an offset"
            raise AssemblyError(f"Instruction {place}: {where} of {offset} does not fit into 16 bits.") from error


def _signed(number: int) -> int:
    """The number whose 32 bits are these."""
    if not -(1 << 31) <= number < 1 << 32:
        raise AssemblyError(f"The number {number} does not fit into 32 bits.")
    return number - (1 << 32) if number >= 1 << 31 else number


def _fits(number: int) -> int:
    if not -(1 << 31) <= number < 1 << 31:
        raise AssemblyError(f"The number {number} does not fit into 32 bits with a sign: load it with ld_imm64.")
    return number
