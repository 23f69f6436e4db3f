# SPDX-License-Identifier: Apache-2.0
"""Instructions of packet filters: classic BPF, as in the kernel's `linux/filter.h`. A and X are its registers."""

from __future__ import annotations

from typing import Mapping, Tuple

Instruction = Tuple[str, int, int, int]
"""Its name, jumps if true and if false, and the value k. Jumps below 0 count from the end of the program."""
# Table: the code of each instruction, and what it does.
CODES: Mapping[str, int] = {
    "load word": 0x20,  # A = the word (4 bytes) at k.
    "load half": 0x28,  # A = the half word (2 bytes) at k.
    "load byte": 0x30,  # A = the byte at k.
    "load word behind X": 0x40,  # A = the word at X + k.
    "load half behind X": 0x48,  # A = the half word at X + k.
    "load byte behind X": 0x50,  # A = the byte at X + k.
    "load length": 0x80,  # A = the length of the frame.
    "load stored": 0x60,  # A = what was stored in place k.
    "store": 0x02,  # Stores A in place k.
    "copy to X": 0x07,  # X = A.
    "add X": 0x0C,  # A += X.
    "subtract X": 0x1C,  # A -= X.
    "multiply": 0x24,  # A *= k.
    "and": 0x54,  # A &= k.
    "xor": 0xA4,  # A ^= k.
    "shift left": 0x64,  # A <<= k.
    "shift right": 0x74,  # A >>= k.
    "jump if equal": 0x15,  # Jumps by whether A = k.
    "jump if at least": 0x35,  # Jumps by whether A >= k.
    "return": 0x06,  # Ends, and takes k bytes of the frame; 0: takes nothing.
    "return A": 0x16,  # Ends, and takes A bytes of the frame.
}
WHOLE_FRAME = 0x40000
"""More bytes than any frame has, to be returned by a filter that takes frames whole."""
