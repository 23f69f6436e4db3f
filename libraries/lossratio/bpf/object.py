"""Programs that a compiler has written: an object file (ELF) is read, gets its constants and maps, and is loaded.

The section ``xdp`` has the program. What its source declares as ``extern`` is a map, or a constant. The kernel
knows a constant's value when it verifies the program, and leaves out the code that it rules out.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import Any, Mapping

from lossratio.bpf.kernel import Array, FrozenArray, Table, XdpProgram

_HEADER, _SECTION, _SYMBOL = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
_RELOCATION, _WIDE = struct.Struct("<QII"), struct.Struct("<BBhiBBhi")
_MACHINE_BPF, _ABSOLUTE_64 = 247, 1
_MAP_DESCRIPTOR, _MAP_VALUE = 1, 2


class ObjectFile:
    """A BPF object file.

    Args:
        data: Its bytes.

    Attributes:
        sections: The contents of its sections, by their names.
        needs: Names of the maps and constants that its program needs.
    """

    def __init__(self, data: bytes) -> None:
        header = _HEADER.unpack_from(data)
        if data[:6] != b"\x7fELF\x02\x01" or header[2] != _MACHINE_BPF:
            raise ValueError("This is no object file of BPF for little-endian machines.")
        place, count, of_names = header[6], header[12], header[13]
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
        self, name: str, maps: Mapping[str, Array | Table | None], constants: Mapping[str, bytes] | None = None
    ) -> XdpProgram:
        """Has the kernel verify the program.

        Args:
            name: Its name in the kernel's lists: 15 characters.
            maps: The maps that it uses, by their names in the source. An array is the memory that it has, and a table
                is one for the functions of the kernel. None: the constants rule out what would use it.
            constants: Values of constants by their names.

        Raises:
            BpfError: If the kernel refuses it.
            ValueError: If the program needs something else.
        """
        places, values = {}, bytearray()
        for constant, value in (constants or {}).items():
            places[constant] = len(values)
            values += value + bytes(-len(value) % 8)
        frozen = FrozenArray(bytes(values), name) if values else None
        code = bytearray(self.sections["xdp"])
        try:
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
            return XdpProgram(bytes(code), name)
        finally:
            if frozen is not None:
                frozen.close()


def read_object(package: str, name: str) -> ObjectFile:
    """An object file beside the modules of a package, which may have been sent to this node with them."""
    specification: Any = sys.modules[package].__spec__
    file = f"{package}.{name}.o"
    if specification.has_location:
        file = os.path.join(os.path.dirname(specification.origin), f"{name}.o")
    return ObjectFile(specification.loader.get_data(file))


def _text(data: bytes, place: int) -> str:
    return data[place : data.index(b"\0", place)].decode()
