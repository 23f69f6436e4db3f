"""Code of BPF programs that writes a direction's frames, and that compares frames with what was sent."""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from typing import Iterable, Literal

from lossratio.bpf import DW, R0, R1, R2, R3, R4, R5, R6, R10, Array, Assembler, B, H, Helper, Register, Size, W

from ..core.configuration import COMPENSATION_BYTES, TAG_BYTES
from .frames import ChangingChecksum, FramePlan, SteppingValue

_ORDER: Literal["little", "big"] = "little" if sys.byteorder == "little" else "big"
_MACS = 12
_MOST_DIRECT = 160
"""Bytes of a frame that are written one word after the other; what is behind them is copied."""

_SIZES: dict[int, Size] = {8: DW, 4: W, 2: H, 1: B}
_SLOT = 8
_ENTRY = -_SLOT
"""Place on the stack of the address of the frame's size."""

_FLOW = -2 * _SLOT
_VALUES = -3 * _SLOT
"""Place on the stack of the first stepping field's value."""

FREE_STACK = 128
"""Bytes of the stack that this code uses: programs have those below it."""


@dataclass(frozen=True)
class Faults:
    """Where frames go that are not as they were sent."""

    corrupted: str
    """Label for other contents."""
    readdressed: str
    """Label for other IP addresses."""
    length: int
    """Place on the stack of the frame's length, with the tag of its VLAN."""
    end: int
    """Place on the stack of the address behind the frame."""
    shift: int = 0
    """Bytes by which everything behind the MAC addresses is further on than it was sent: -4 if the tag of the frame's
    VLAN was taken off."""


class FrameCode:
    """Code for the frames of one direction.

    Numbers of frames are in R2; programs keep R6 to R9. R1 is the frame's address when frames are written, and R6
    when they are compared. The stack below `FREE_STACK` is free for other purposes.

    Args:
        plan: The frames.

    Attributes:
        plan: The frames.
        memory: Sizes in their order, orders of stepping fields, and contents of frames, for the kernel.
    """

    def __init__(self, plan: FramePlan) -> None:
        self.plan = plan
        self._spec = plan.spec
        self._stride = 4 * (1 + len(plan.sized) + len(plan.checksums))
        entries = b"".join(self._entry_bytes(number) for number in plan.pattern)
        self._orders: list[int] = []
        parts = [entries]
        for value in plan.values:
            self._orders.append(sum(map(len, parts)))
            if value.order is not None:
                parts.append(struct.pack(f"={len(value.order)}I", *value.order))
        self._contents = sum(map(len, parts))
        longest = max(plan.templates, key=len)
        data = b"".join([*parts, longest])
        self.memory = Array(len(data), "lossratio_frame")
        self.memory.memory[: len(data)] = data
        self._has_sizes = len(plan.lengths) > 1
        self._direct = min(*plan.lengths, max(_MOST_DIRECT, self._spec.payload_offset))

    @property
    def direct(self) -> int:
        """Bytes of a frame that are read word by word: a program looks first whether the frame has them."""
        return self._direct

    def close(self) -> None:
        """Gives its memory back."""
        self.memory.close()

    # Writing

    def write(self, code: Assembler, context: Register, number: tuple[Register, int], bad: str) -> None:
        """Writes the frame of a number; then R1 is its address, and R2 its number. Tag and number are still missing.

        Args:
            code: The program.
            context: The register with the program's context.
            number: Where its number is in memory: register and offset.
            bad: Label for frames that cannot be.
        """
        plan = self.plan
        if self._has_sizes:
            code.ldx(W, R2, *number)
            self._find_entry(code, bad)
            code.ldx(W, R2, R5, 0)
            code.sub(R2, max(plan.lengths))
            code.mov(R1, context)
            code.call(Helper.XDP_ADJUST_TAIL)
        if max(plan.lengths) > self._direct:
            self._copy_rest(code, context)
        code.ldx(W, R1, context, 0)
        code.ldx(W, R3, context, 4)
        code.mov(R4, R1)
        code.add(R4, self._direct)
        code.jgt(R4, R3, bad)
        self._write_constants(code)
        if self._has_sizes:
            code.ldx(DW, R5, R10, _ENTRY)
            for place, offset in enumerate(plan.sized):
                code.ldx(H, R4, R5, 4 * (1 + place))
                code.stx(H, R1, offset, R4)
        code.ldx(W, R2, *number)
        self._find_flow(code)
        for place, value in enumerate(plan.values):
            self._find_value(code, place, value, bad)
            code.stx(_SIZES[value.field.width], R1, value.field.offset, R4)
        for place, checksum in enumerate(plan.checksums):
            self._compute(code, place, checksum)
            code.stx(H, R1, checksum.offset, R0)

    def write_number(self, code: Assembler, place: tuple[Register, int]) -> None:
        """Writes tag and number into the frame at R1; the number is in R2.

        Args:
            code: The program.
            place: Where the tag is in memory, in the order of the network; behind its four bytes is the sum of its
                two words.
        """
        register, offset = place
        start = self._spec.tag_offset
        code.ldx(W, R4, register, offset)
        code.stx(W, R1, start, R4)
        if not self._spec.is_numbered:
            code.xor32(R4, 0xFFFFFFFF)
            code.stx(W, R1, start + 4, R4)
            return
        code.mov32(R4, R2)
        code.to_be(R4, 32)
        code.stx(W, R1, start + 4, R4)
        if self._spec.compensation is not None:
            self._compensate(code, place)
            code.stx(H, R1, self._spec.compensation, R0)

    def _entry_bytes(self, number: int) -> bytes:
        plan = self.plan
        template = plan.templates[number]
        words = [struct.pack("=I", plan.lengths[number])]
        words += [template[offset : offset + 2] + bytes(2) for offset in plan.sized]
        words += [struct.pack("=I", checksum.sums[number]) for checksum in plan.checksums]
        return b"".join(words)

    def _find_entry(self, code: Assembler, bad: str) -> None:
        """Has R5, and the stack, point to the size of the frame whose number is in R2."""
        count = len(self.plan.pattern)
        code.mov32(R3, R2)
        code.mod32(R3, count)
        code.jge(R3, count, bad)
        code.mul(R3, self._stride)
        code.ld_map_value(R5, self.memory.descriptor)
        code.add(R5, R3)
        code.stx(DW, R10, _ENTRY, R5)

    def _copy_rest(self, code: Assembler, context: Register) -> None:
        """Copies what is behind the part that is written word by word."""
        plan, done = self.plan, code.new_label("copied")
        most = max(plan.lengths) - self._direct
        if self._has_sizes:
            code.ldx(DW, R5, R10, _ENTRY)
            code.ldx(W, R4, R5, 0)
            code.sub(R4, self._direct)
            code.jeq(R4, 0, done)
            code.jgt(R4, most, done)
        else:
            code.mov(R4, most)
        code.mov(R1, context)
        code.mov(R2, self._direct)
        code.ld_map_value(R3, self.memory.descriptor, self._contents + self._direct)
        code.call(Helper.XDP_STORE_BYTES)
        code.label(done)

    def _write_constants(self, code: Assembler) -> None:
        template = max(self.plan.templates, key=len)
        place = 0
        while place < self._direct:
            width = next(width for width in (4, 2, 1) if place + width <= self._direct)
            code.st(_SIZES[width], R1, place, int.from_bytes(template[place : place + width], _ORDER))
            place += width

    def _find_flow(self, code: Assembler) -> None:
        """Stores the number of the flow of the frame whose number is in R2."""
        plan = self.plan
        if plan.flows == 1:
            return
        code.mov32(R3, R2)
        if plan.round < plan.period:
            code.mod32(R3, plan.period)
            code.mov32(R4, R3)
            code.div32(R4, plan.round)
            code.add32(R3, R4)
        code.mod32(R3, plan.flows)
        code.stx(DW, R10, _FLOW, R3)

    def _find_value(self, code: Assembler, place: int, value: SteppingValue, bad: str) -> None:
        """Computes a stepping field's value: on the stack as it is, and in R4 in the order of the network."""
        field = value.field
        code.ldx(DW, R4, R10, _FLOW)
        if field.count < self.plan.flows:
            code.mod32(R4, field.count)
        if value.order is not None:
            code.jge(R4, field.count, bad)
            code.lsh(R4, 2)
            code.ld_map_value(R5, self.memory.descriptor, self._orders[place])
            code.add(R5, R4)
            code.ldx(W, R4, R5, 0)
        if field.first >= 1 << 31:
            code.ld_imm64(R5, field.first)
            code.add(R4, R5)
        else:
            code.add(R4, field.first)
        code.stx(DW, R10, _VALUES - _SLOT * place, R4)
        if field.width > 1:
            code.to_be(R4, 8 * field.width)

    def _compute(self, code: Assembler, place: int, checksum: ChangingChecksum) -> None:
        """Computes a checksum from the values on the stack: in R0 in the order of the network."""
        if self._has_sizes:
            code.ldx(DW, R5, R10, _ENTRY)
            code.ldx(W, R0, R5, 4 * (1 + len(self.plan.sized) + place))
        else:
            code.mov32(R0, checksum.sums[0])
        for covered in checksum.covered:
            code.ldx(DW, R4, R10, _VALUES - _SLOT * covered)
            if self.plan.values[covered].field.width > 4:
                code.mov(R3, R4)
                code.rsh(R3, 32)
                code.add(R0, R3)
                code.mov32(R4, R4)
            code.add(R0, R4)
        _fold(code, R0, R4, 3)
        code.xor(R0, 0xFFFF)
        if checksum.is_udp:
            is_right = code.new_label("udp")
            code.jne(R0, 0, is_right)
            code.mov(R0, 0xFFFF)
            code.label(is_right)
        code.to_be(R0, 16)

    def _compensate(self, code: Assembler, place: tuple[Register, int]) -> None:
        """Computes the word that makes up for tag and number: in R0 in the order of the network."""
        register, offset = place
        code.ldx(W, R0, register, offset + 4)
        code.mov32(R4, R2)
        code.rsh(R4, 16)
        code.add(R0, R4)
        code.mov32(R4, R2)
        code.and_(R4, 0xFFFF)
        code.add(R0, R4)
        _fold(code, R0, R4, 2)
        code.xor(R0, 0xFFFF)
        code.to_be(R0, 16)

    def count_flow(self, code: Assembler, counts: Array) -> None:
        """Counts a frame that `compare` has let through for its flow: four bytes in memory for each flow."""
        code.ldx(DW, R3, R10, _FLOW)
        past = code.new_label("flow")
        code.jge(R3, self.plan.flows, past)
        code.lsh(R3, 2)
        code.ld_map_value(R4, counts.descriptor)
        code.add(R4, R3)
        code.mov(R2, 1)
        code.atomic_add(W, R4, 0, R2)
        code.label(past)

    # Comparing

    def compare(self, code: Assembler, place: tuple[Register, int], faults: Faults, first: int, step: int) -> None:
        """Compares the frame at R6, whose sequence number is in R2, with the one that was sent.

        A frame that is as it was sent goes on behind this code, all others jump.

        Args:
            code: The program.
            place: Where the tag is in memory: see `write_number`.
            faults: Where frames with faults go.
            first: Which of the direction's frames has the sequence number 0.
            step: By how many of them the sequence numbers are apart.
        """
        plan, shift, length = self.plan, faults.shift, faults.length
        if self._spec.compensation is not None:
            self._compensate(code, place)
            code.ldx(H, R4, R6, self._spec.compensation + shift)
            code.jne(R0, R4, faults.corrupted)
        code.mul32(R2, step)
        code.add32(R2, first)
        if self._has_sizes:
            self._find_entry(code, faults.corrupted)
            code.ldx(W, R3, R5, 0)
            code.ldx(DW, R4, R10, length)
            code.jne(R3, R4, faults.corrupted)
        self._find_flow(code)
        # What differs is collected in R1, and in R2 for addresses.
        code.mov(R1, 0)
        code.mov(R2, 0)
        self._compare_values(code, shift, faults.corrupted)
        self._compare_constants(code, shift)
        for number, checksum in enumerate(plan.checksums):
            if not self._is_within(checksum.offset, self._spec.rewritable):
                self._compute(code, number, checksum)
                code.ldx(H, R4, R6, checksum.offset + shift)
                code.xor(R4, R0)
                code.or_(R1, R4)
        for header in self._spec.checksums:
            if header.end is not None and self._is_within(header.offset, self._spec.rewritable):
                self._sum_header(code, header.start + shift, header.end + shift)
        if self._has_sizes:
            code.ldx(DW, R5, R10, _ENTRY)
            for number, offset in enumerate(plan.sized):
                if not self._is_within(offset, self._spec.rewritable):
                    code.ldx(H, R3, R5, 4 * (1 + number))
                    code.ldx(H, R4, R6, offset + shift)
                    code.xor(R4, R3)
                    code.or_(R1, R4)
        code.jne(R2, 0, faults.readdressed)
        code.jne(R1, 0, faults.corrupted)
        if max(plan.lengths) > self._direct:
            self._compare_rest(code, faults)

    def _compare_values(self, code: Assembler, shift: int, bad: str) -> None:
        for number, value in enumerate(self.plan.values):
            field = value.field
            self._find_value(code, number, value, bad)
            if self._is_within(field.offset, self._spec.rewritable):
                continue
            code.ldx(_SIZES[field.width], R3, R6, field.offset + shift)
            code.xor(R3, R4)
            code.or_(R2 if self._is_within(field.offset, self._spec.addresses) else R1, R3)

    def _compare_constants(self, code: Assembler, shift: int) -> None:
        template = max(self.plan.templates, key=len)
        for start, end, is_address in self._constant_runs(shift):
            place = start
            while place < end:
                width = next(width for width in (8, 4, 2, 1) if place + width <= end)
                code.ldx(_SIZES[width], R4, R6, place + shift)
                wanted = int.from_bytes(template[place : place + width], _ORDER)
                if width == 8:
                    code.ld_imm64(R3, wanted)
                    code.xor(R4, R3)
                elif wanted:
                    code.xor32(R4, wanted)
                code.or_(R2 if is_address else R1, R4)
                place += width

    def _constant_runs(self, shift: int) -> Iterable[tuple[int, int, bool]]:
        """Bytes that are the same in all frames, and that no device may rewrite: start, end, whether addresses."""
        spec, plan = self._spec, self.plan
        left_out: list[tuple[int, int]] = [
            (0, _MACS),
            (spec.tag_offset, spec.tag_offset + TAG_BYTES),
            *spec.rewritable,
            *((value.field.offset, value.field.offset + value.field.width) for value in plan.values),
            *((checksum.offset, checksum.offset + 2) for checksum in plan.checksums),
            *((offset, offset + 2) for offset in plan.sized),
        ]
        if shift:
            left_out.append((_MACS, _MACS - shift))
        if spec.compensation is not None:
            left_out.append((spec.compensation, spec.compensation + COMPENSATION_BYTES))
        start: int | None = None
        kind = False
        for place in range(self._direct + 1):
            is_constant = place < self._direct and not self._is_within(place, left_out)
            is_address = self._is_within(place, spec.addresses)
            if start is not None and (not is_constant or is_address != kind):
                yield start, place, kind
                start = None
            if is_constant and start is None:
                start, kind = place, is_address

    def _sum_header(self, code: Assembler, start: int, end: int) -> None:
        code.mov(R0, 0)
        for place in range(start, end, 4):
            code.ldx(W, R4, R6, place)
            code.add(R0, R4)
        _fold(code, R0, R4, 3)
        code.xor(R0, 0xFFFF)
        code.or_(R1, R0)

    def _compare_rest(self, code: Assembler, faults: Faults) -> None:
        """Compares the words behind the part that is compared one by one: their sum, and the sum of all sums before it.

        The first sum changes with each word, the second one also with their order (as in Fletcher's checksum).
        """
        template = max(self.plan.templates, key=len)
        done = code.new_label("compared")
        lengths = sorted(set(self.plan.lengths))
        for size in lengths:
            next_size = code.new_label("size")
            if self._has_sizes:
                code.ldx(DW, R3, R10, faults.length)
                code.jne(R3, size, next_size)
            code.mov(R3, R6)
            code.add(R3, size + faults.shift)
            code.ldx(DW, R4, R10, faults.end)
            code.jgt(R3, R4, faults.corrupted)
            code.mov(R1, 0)
            code.mov(R0, 0)
            place, total, total_of_sums = self._direct, 0, 0
            while place < size:
                width = next(width for width in (8, 4, 2, 1) if place + width <= size)
                code.ldx(_SIZES[width], R2, R6, place + faults.shift)
                code.add(R1, R2)
                code.add(R0, R1)
                total += int.from_bytes(template[place : place + width], _ORDER)
                total_of_sums += total
                place += width
            for register, wanted in ((R1, total), (R0, total_of_sums)):
                code.ld_imm64(R2, wanted & 0xFFFFFFFFFFFFFFFF)
                code.jne(register, R2, faults.corrupted)
            if self._has_sizes:
                code.ja(done)
            code.label(next_size)
        code.label(done)

    @staticmethod
    def _is_within(place: int, parts: Iterable[tuple[int, int]]) -> bool:
        return any(start <= place < end for start, end in parts)


def _fold(code: Assembler, total: Register, scratch: Register, times: int) -> None:
    """Adds what is above 16 bits of a sum to the rest, so many times (RFC 1071)."""
    for _ in range(times):
        code.mov(scratch, total)
        code.rsh(scratch, 16)
        code.and_(total, 0xFFFF)
        code.add(total, scratch)
