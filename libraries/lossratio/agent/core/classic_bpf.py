# SPDX-License-Identifier: Apache-2.0
"""Instructions of packet filters: classic BPF, as in the kernel's `linux/filter.h`. A and X are its registers."""

from __future__ import annotations

from typing import Tuple

Instruction = Tuple[int, int, int, int]
"""Code, jumps if true and if false, and the value k. Jumps below 0 count from the end of the program."""

LOAD_WORD = 0x20
"""A = the word (4 bytes) at k."""
LOAD_HALF = 0x28
"""A = the half word (2 bytes) at k."""
LOAD_BYTE = 0x30
"""A = the byte at k."""
LOAD_WORD_BEHIND_X = 0x40
"""A = the word at X + k."""
LOAD_HALF_BEHIND_X = 0x48
"""A = the half word at X + k."""
LOAD_BYTE_BEHIND_X = 0x50
"""A = the byte at X + k."""
LOAD_LENGTH = 0x80
"""A = the length of the frame."""
LOAD_STORED = 0x60
"""A = what was stored in place k."""
STORE = 0x02
"""Stores A in place k."""
A_TO_X = 0x07
"""X = A."""
ADD_X = 0x0C
"""A += X."""
SUBTRACT_X = 0x1C
"""A -= X."""
MULTIPLY = 0x24
"""A *= k."""
AND = 0x54
"""A &= k."""
XOR = 0xA4
"""A ^= k."""
SHIFT_LEFT = 0x64
"""A <<= k."""
SHIFT_RIGHT = 0x74
"""A >>= k."""
JUMP_IF_EQUAL = 0x15
"""Jumps by whether A = k."""
JUMP_IF_AT_LEAST = 0x35
"""Jumps by whether A >= k."""
RETURN = 0x06
"""Ends, and takes k bytes of the frame; 0: takes nothing."""
RETURN_A = 0x16
"""Ends, and takes A bytes of the frame."""

WHOLE_FRAME = 0x40000
"""More bytes than any frame has, to be returned by a filter that takes frames whole."""
