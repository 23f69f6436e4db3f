# SPDX-License-Identifier: Apache-2.0
"""Compiled programs: an object file (ELF) is read, gets its constants and maps, and is loaded.

The section ``xdp`` or ``ingress`` has the program. Names that its source declares as ``extern`` are maps or constants.
The kernel knows a constant's value when it verifies the program, and leaves out code that the value rules out.
"""

import os
import struct
import sys
from contextlib import ExitStack, closing
from typing import Any, Mapping

from lossratio.bpf.kernel import Array, FrozenArray, Program, ProgramType, Table

_HEADER, _SECTION, _SYMBOL = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
_RELOCATION, _WIDE = struct.Struct("<QII"), struct.Struct("<BBhiBBhi")
_MACHINE_BPF = 247
_ABSOLUTE_64 = 1
_MAP_DESCRIPTOR = 1
_MAP_VALUE = 2


class ObjectFile:
    """A BPF object file: its sections by their names, and the names of maps and constants that its program `needs`."""

    def __init__(self, data: bytes) -> None:
        header = _HEADER.unpack_from(data)
        if data[:6] != b"\x7fELF\x02\x01" or header[2] != _MACHINE_BPF:
            raise ValueError("This is not a BPF object file for little-endian machines.")

        place = header[6]
        count = header[12]
        of_names = header[13]
        found = [_SECTION.unpack_from(data, place + _SECTION.size * number) for number in range(count)]
        names = [_text(data, found[of_names][4] + one[0]) for one in found]
        self.sections = {name: data[one[4] : one[4] + one[5]] for name, one in zip(names, found)}
        symbols, strings = self.sections[".symtab"], self.sections[".strtab"]
        names = [_text(strings, name) for name, *_ in _SYMBOL.iter_unpack(symbols)]
        places = (section for name, section in self.sections.items() if name.startswith(".rel"))
        entries = _RELOCATION.iter_unpack(b"".join(places))
        self._relocations = [(place, kind, names[symbol]) for place, kind, symbol in entries]
        self.needs = {symbol for _, _, symbol in self._relocations}

    def load(
        self, name: str, maps: "Mapping[str, Array | Table | None]", constants: "Mapping[str, bytes] | None" = None
    ) -> Program:
        """Makes the kernel verify the program; see `Program` for its name and errors.

        `maps` has the maps by their names in the source. The program accesses an array as memory, and a table through
        functions of the kernel. A map may be None if the constants rule out the code that would use it.

        Raises:
            BpfError: If the kernel refuses the program.
            ValueError: If the program needs something that is neither in `maps` nor in `constants`.
        """
        places = {}
        values = bytearray()
        for constant, value in (constants or {}).items():
            places[constant] = len(values)
            values += value + bytes(-len(value) % 8)

        form = next(form for form in ProgramType if form.name.lower() in self.sections)
        code = bytearray(self.sections[form.name.lower()])
        with ExitStack() as opened:
            if values:
                frozen = opened.enter_context(closing(FrozenArray(bytes(values), name)))
            else:
                frozen = None

            for place, kind, symbol in self._relocations:
                if kind != _ABSOLUTE_64 or (symbol not in places and symbol not in maps):
                    raise ValueError(f"The program {name} needs {symbol!r}, which is neither a map nor a constant.")

                one = frozen if symbol in places else maps[symbol]
                if one is None:
                    continue

                pseudo = _MAP_DESCRIPTOR if isinstance(one, Table) else _MAP_VALUE
                operation, registers, _, offset, *_ = _WIDE.unpack_from(code, place)
                offset += places.get(symbol, 0)
                _WIDE.pack_into(code, place, operation, registers | pseudo << 4, 0, one.descriptor, 0, 0, 0, offset)

            return Program(bytes(code), name, form)


def read_object(package: str, name: str) -> ObjectFile:
    """An object file beside the modules of a package; it may have been sent to this node with them.

    Raises:
        ValueError: If it is not a BPF object file for little-endian machines.
    """
    specification: Any = sys.modules[package].__spec__
    file = f"{package}.{name}.o"
    if specification.has_location:
        file = os.path.join(os.path.dirname(specification.origin), f"{name}.o")
    return ObjectFile(specification.loader.get_data(file))


def _text(data: bytes, place: int) -> str:
    return data[place : data.index(b"\0", place)].decode()
