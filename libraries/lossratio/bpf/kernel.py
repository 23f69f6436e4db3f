# SPDX-License-Identifier: Apache-2.0
"""Maps, programs and their attachments in the kernel, by the raw system call bpf(); the node needs no library.

All of them end with the process that made them, however it ends: nothing is pinned.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from lossratio.bpf.system_call import SYSCALL_NUMBERS, BpfError, call_bpf, libc, refusal_of

_MAP_CREATE = 0
_MAP_LOOKUP = 1
_MAP_UPDATE = 2
_MAP_GET_NEXT_KEY = 4
_PROG_LOAD = 5
_TEST_RUN = 10
_LOOKUP_BATCH = 24
_LOOKUP_AND_DELETE_BATCH = 25
_BATCH = 1 << 12
_MAP_GET_NEXT_ID = 12
_PROG_GET_FD_BY_ID = 13
_MAP_GET_FD_BY_ID = 14
_OBJ_GET_INFO = 15
_MAP_FREEZE = 22
_LINK_CREATE = 28
_LINK_UPDATE = 29
_MAP_TYPE_ARRAY = 2
_PER_CPU = (5, 6, 10)
_READABLE = (1, 2, 9, 11, 14, 25, *_PER_CPU)
"""Types of maps whose entries have a key and a plain value: hashes, arrays, devices."""
_READ_ONLY_FOR_PROGRAMS, _MMAPABLE = 1 << 7, 1 << 10
_LIVE_FRAMES = 1 << 1
_LOG_BYTES = 1 << 20
_LOG_LINES = 12
_LOAD_ATTEMPTS = 5
_NAME_BYTES = 15
_CLONE_NEWNET, _LOOPBACK = 0x40000000, 1
_LICENCE = b"Apache-2.0"
_INFO_BYTES = 256
_MOST_MAPS = 64

LEAST_KERNEL = (5, 18)
"""The first version of the kernel that sends live frames from a program."""


class ProgramType(Enum):
    """Types of programs, each with the kernel's numbers for the type, its place at an interface, and its flags."""

    XDP = 6, 37, 1 << 5
    INGRESS = 3, 46, 0


XdpMode = Literal["native", "generic"]
"""How an XDP program is attached: in the driver, or in the kernel behind it (slower, but works with any driver)."""
_MODES: dict[XdpMode | None, int] = {"native": 1 << 2, "generic": 1 << 1, None: 0}


class _Descriptor:
    """A kernel object that lives as long as its file descriptor is open."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def close(self) -> None:
        """Closes it; closing it again changes nothing."""
        descriptor = self.descriptor
        self.descriptor = -1
        if descriptor >= 0:
            os.close(descriptor)

    def _entry(self, command: int, key: bytes | None, value: ctypes.Array[ctypes.c_char], what: str) -> None:
        """Makes the kernel do something with a map's entry."""
        place = None if key is None else ctypes.create_string_buffer(key, len(key))
        where = 0 if place is None else ctypes.addressof(place)
        call_bpf(command, struct.pack("=I4xQQQ", self.descriptor, where, ctypes.addressof(value), 0), what)


class Array(_Descriptor):
    """An array with one value, which the programs and this process share: bytes, rounded up to whole eight-byte words.

    Its name in the kernel's lists has 15 characters. `memory` is the value, and `words` is the same memory in
    eight-byte words, for use while programs run: each word is read and written in one step.
    """

    def __init__(self, size: int, name: str) -> None:
        size = -(-size // 8) * 8
        what = f"the map {name} of {size} bytes"
        super().__init__(_new_map(_MAP_TYPE_ARRAY, 4, size, 1, name, what, _MMAPABLE))
        pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self.memory = memoryview(mmap.mmap(self.descriptor, pages))[:size]
        self.words = self.memory.cast("Q")


class FrozenArray(_Descriptor):
    """An array with one value that nobody can change, so that the kernel knows it when it verifies a program."""

    def __init__(self, value: bytes, name: str) -> None:
        what = f"the constants of {name}"
        data = ctypes.create_string_buffer(value, len(value))
        super().__init__(_new_map(_MAP_TYPE_ARRAY, 4, len(value), 1, name, what, _READ_ONLY_FOR_PROGRAMS))
        self._entry(_MAP_UPDATE, bytes(4), data, what)
        call_bpf(_MAP_FREEZE, struct.pack("=I", self.descriptor), what)


TableType = Literal["hash", "lru_hash", "devices"]
"""Types of maps with keys that this room makes."""
_MAPS: dict[TableType, int] = {"hash": 1, "lru_hash": 9, "devices": 14}


class Table(_Descriptor):
    """A map of keys and values, of this process or of another one.

    Attributes:
        number: The kernel's number for it.
        kind: The kernel's number for its type.
        name: Its name in the kernel's lists.
        key_bytes: Bytes of a key.
        value_bytes: Bytes of a value.
        most_entries: The maximum number of entries.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        info = _object_info(descriptor, bytes(_INFO_BYTES), "access to a map")
        self.kind, self.number, self.key_bytes, self.value_bytes, self.most_entries = struct.unpack_from("=5I", info)
        self.name = _name(info, 24)

    @classmethod
    def create(cls, kind: TableType, key_bytes: int, value_bytes: int, entries: int, name: str) -> Table:
        """Makes a map.

        Raises:
            BpfError: If the kernel refuses to make it.
        """
        return cls(_new_map(_MAPS[kind], key_bytes, value_bytes, entries, name, f"the map {name} of {entries} entries"))

    @classmethod
    def open(cls, number: int) -> Table:
        """Opens a map by the kernel's number for it.

        Raises:
            BpfError: If there is no map with this number, or this process may not have it.
        """
        return cls(call_bpf(_MAP_GET_FD_BY_ID, struct.pack("=III", number, 0, 0), f"access to map {number}")[0])

    def update(self, key: bytes, value: bytes) -> None:
        """Adds an entry, or changes its value.

        Raises:
            BpfError: If the kernel refuses it, e.g. because the map is full.
        """
        self._entry(_MAP_UPDATE, key, ctypes.create_string_buffer(value, self.value_bytes), f"an entry in {self.name}")

    def entries(self, most: int) -> dict[bytes, bytes] | None:
        """Its first entries; per-CPU maps have the values of all CPUs. None: this type of map has no plain values."""
        if self.kind not in _READABLE:
            return None

        size = self.value_bytes
        if self.kind in _PER_CPU:
            size = -(-size // 8) * 8 * possible_cpus()
        entries: dict[bytes, bytes] = {}
        following = ctypes.create_string_buffer(self.key_bytes)
        key: bytes | None = None

        # Places of a map of devices may be empty, so keys are counted and not entries.
        for _ in range(most):
            try:
                self._entry(_MAP_GET_NEXT_KEY, key, following, f"the next key of {self.name}")
                key = following.raw
                value = ctypes.create_string_buffer(size)
                self._entry(_MAP_LOOKUP, key, value, f"an entry of {self.name}")
            except BpfError as error:
                if error.error_number != errno.ENOENT:
                    raise
                if key != following.raw:
                    break
                continue

            entries[key] = value.raw

        return entries

    def count(self) -> int:
        """How many entries a hash has.

        Raises:
            BpfError: If the kernel does not read the map.
        """
        return self._in_batches(_LOOKUP_BATCH, "the entries of")

    def clear(self) -> None:
        """Deletes all entries of a hash.

        Raises:
            BpfError: If the kernel does not change the map.
        """
        self._in_batches(_LOOKUP_AND_DELETE_BATCH, "an empty")

    def _in_batches(self, command: int, what: str) -> int:
        sizes = 8, _BATCH * self.key_bytes, _BATCH * self.value_bytes
        buffers = [ctypes.create_string_buffer(size) for size in sizes]
        places = [ctypes.addressof(each) for each in buffers]
        first = 0
        total = 0
        result = 0
        while result == 0:
            attribute = struct.pack("=4QII", first, *places, _BATCH, self.descriptor)
            result, answer = call_bpf(command, attribute, f"{what} {self.name}", last=errno.ENOENT)
            total += int(struct.unpack_from("=I", answer, 32)[0])
            first = places[0]
        return total


class Program(_Descriptor):
    """A program that the kernel has verified. An XDP program sees only the first page of a frame.

    Its name in the kernel's lists has 15 characters. If the kernel refuses the program, the `BpfError` ends with the
    verifier's last lines.

    Attributes:
        number: The kernel's number for it.
    """

    def __init__(self, code: bytes, name: str, kind: ProgramType = ProgramType.XDP) -> None:
        number, place, flags = kind.value
        instructions = ctypes.create_string_buffer(code, len(code))
        licence = ctypes.create_string_buffer(_LICENCE)
        places = len(code) // 8, ctypes.addressof(instructions), ctypes.addressof(licence)
        rest = struct.pack("=4xI16sII", flags, name.encode()[:_NAME_BYTES], 0, place)
        what = f"the program {name} of {len(code) // 8} instructions"

        try:
            descriptor = _load(struct.pack("=IIQQIIQ", number, *places, 0, 0, 0) + rest, what)
        except BpfError as error:
            if error.error_number in (errno.EPERM, errno.ENOSYS):
                raise

            # The log is requested only now, because the verifier needs time to write the log of a large program.
            log = ctypes.create_string_buffer(_LOG_BYTES)
            logged = struct.pack("=IIQQIIQ", number, *places, 1, _LOG_BYTES, ctypes.addressof(log))
            with suppress(BpfError):
                os.close(_load(logged + rest, what))
            lines = log.value.decode(errors="replace").strip().splitlines()[-_LOG_LINES:]
            raise BpfError(
                f"{error} The last lines of the verifier: {' / '.join(lines)}", error.error_number
            ) from error

        super().__init__(descriptor)
        self.name, self.kind = name, kind
        info = _object_info(descriptor, bytes(_INFO_BYTES), f"access to the program {name}")
        self.number = int(struct.unpack_from("=I", info, 4)[0])

    def run_live(self, frame: bytes, times: int, batch: int) -> bool:
        """Runs the program this many times, or until a signal comes; frames are sent where it redirects them.

        The calling thread is busy in the kernel until then. Before and after the runs, about 20 us pass if the program
        is attached (for example, by `Attachment.nowhere`), and otherwise about 20 ms. Each new frame contains `frame`,
        without FCS; the memory of earlier frames is reused as they left it. After each `batch` of runs, frames are
        handed over to the drivers. Returns False if a signal came before the program had run this many times.
        """
        data = ctypes.create_string_buffer(frame, len(frame))
        places = (ctypes.addressof(data), 0, times, 0)
        attribute = struct.pack(
            "=4IQQ4IQQ3I", *(self.descriptor, 0, len(frame), 0), *places, *(0, 0, 0, 0), *(_LIVE_FRAMES, 0, batch)
        )
        try:
            call_bpf(_TEST_RUN, attribute, f"live frames by the program {self.name}")
        except BpfError as error:
            if error.error_number == errno.EINTR:
                return False
            raise
        return True


class Attachment(_Descriptor):
    """The attachment of a program to an interface, which ends with this process at the latest.

    An XDP program has a mode. Other programs run after packet sockets, and before the IP stack. If the interface
    already has an XDP program, the kernel refuses a second one with EBUSY, because the first one is never replaced.
    Before Linux 6.6, the kernel refuses programs other than XDP programs.
    """

    def __init__(self, program: Program, interface: int, mode: XdpMode | None = None) -> None:
        _, place, _ = program.kind.value
        attribute = struct.pack("=4I", program.descriptor, interface, place, _MODES[mode])
        what = f"the program {program.name} on interface {interface}"
        super().__init__(call_bpf(_LINK_CREATE, attribute, what)[0])
        self._network = _Descriptor(-1)

    @classmethod
    def nowhere(cls, program: Program) -> Attachment:
        """Attaches a program where there are no frames: to the loopback interface of a separate network namespace.

        The kernel writes the addresses of attached programs, and of those with live frames, into its own code. Each
        change waits until all processors have left the old code, so a program that is already attached runs sooner.
        """
        # Only this thread enters the namespace, which disappears when its descriptor is closed.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(cls._in_a_namespace, program).result()

    @classmethod
    def _in_a_namespace(cls, program: Program) -> Attachment:
        if libc.unshare(_CLONE_NEWNET):
            error_number = ctypes.get_errno()
            raise BpfError(refusal_of(error_number, "a network namespace"), error_number)
        link = cls(program, _LOOPBACK, "generic")
        link._network = _Descriptor(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
        return link

    def replace(self, program: Program) -> None:
        """Replaces the attached program by another one, between two frames.

        Raises:
            BpfError: If the kernel refuses it.
        """
        attribute = struct.pack("=4I", self.descriptor, program.descriptor, 0, 0)
        call_bpf(_LINK_UPDATE, attribute, f"the program {program.name} in place of another one")

    def close(self) -> None:
        """See `_Descriptor.close`."""
        super().close()
        self._network.close()


@dataclass(frozen=True)
class ProgramInfo:
    """The kernel's account of a program."""

    number: int
    """The kernel's number for it."""
    name: str
    """Its name."""
    tag: str
    """The kernel's digest of its instructions."""
    maps: tuple[int, ...]
    """The kernel's numbers of its maps."""
    run_nanoseconds: int
    """How long it has run, if ``kernel.bpf_stats_enabled`` is on."""
    runs: int
    """How often it has run, if that setting is on."""


def program_info(number: int) -> ProgramInfo:
    """Looks up a program by its number.

    Raises:
        BpfError: If there is no program with this number, or this process may not look at it.
    """
    what = f"access to program {number}"
    maps = (ctypes.c_uint32 * _MOST_MAPS)()
    asked = bytearray(_INFO_BYTES)
    struct.pack_into("=IQ", asked, 52, _MOST_MAPS, ctypes.addressof(maps))
    with closing(_Descriptor(call_bpf(_PROG_GET_FD_BY_ID, struct.pack("=III", number, 0, 0), what)[0])) as program:
        info = _object_info(program.descriptor, bytes(asked), what)
    count = struct.unpack_from("=I", info, 52)[0]
    times = struct.unpack_from("=QQ", info, 192)
    return ProgramInfo(number, _name(info, 64), info[8:16].hex(), tuple(maps[: min(count, _MOST_MAPS)]), *times)


def why_impossible() -> str | None:
    """Why this process cannot have live frames, and what to do; None: no obstacle is known."""
    version = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2] if part.isdigit())
    if version < LEAST_KERNEL:
        return f"Linux {platform.release()} is too old: live frames of XDP programs need Linux 5.18 or later"
    if platform.machine() not in SYSCALL_NUMBERS:
        return f"the BPF programs were compiled for {', '.join(SYSCALL_NUMBERS)}, not for {platform.machine()}"
    try:
        os.close(_new_map(_MAP_TYPE_ARRAY, 4, 8, 1, "", "a map"))
    except BpfError as error:
        return str(error).rstrip(".")
    return None


def _new_map(kind: int, key_bytes: int, value_bytes: int, entries: int, name: str, what: str, flags: int = 0) -> int:
    attribute = struct.pack("=5I8x16s", kind, key_bytes, value_bytes, entries, flags, name.encode()[:_NAME_BYTES])
    return call_bpf(_MAP_CREATE, attribute, what)[0]


def _object_info(descriptor: int, asked: bytes, what: str) -> bytes:
    info = ctypes.create_string_buffer(asked, len(asked))
    call_bpf(_OBJ_GET_INFO, struct.pack("=IIQ", descriptor, len(info), ctypes.addressof(info)), what)
    return info.raw


def _name(info: bytes, offset: int) -> str:
    return info[offset : offset + 16].split(b"\0")[0].decode(errors="replace")


def map_names() -> dict[int, str]:
    """Names of the maps of all processes and namespaces, by the kernel's numbers, in ascending order.

    This requires CAP_SYS_ADMIN.

    Raises:
        BpfError: If this process may not look at maps.
    """
    names: dict[int, str] = {}
    number, what = 0, "a list of all maps"
    while True:
        result, answer = call_bpf(_MAP_GET_NEXT_ID, struct.pack("=III", number, 0, 0), what, last=errno.ENOENT)
        if result:
            return names
        number = struct.unpack_from("=I", answer, 4)[0]
        # The map may have disappeared in the meantime.
        with suppress(BpfError), closing(Table.open(number)) as found:
            names[number] = found.name


def possible_cpus() -> int:
    """How many processors the machine may have."""
    with open("/sys/devices/system/cpu/possible", encoding="ascii") as file:
        return int(file.read().strip().replace(",", "-").split("-")[-1]) + 1


def _load(attribute: bytes, what: str) -> int:
    """The descriptor of a new program. The verifier gives up when the process gets a signal, so it is asked again."""
    for _ in range(_LOAD_ATTEMPTS - 1):
        descriptor, _ = call_bpf(_PROG_LOAD, attribute, what, last=errno.EAGAIN)
        if descriptor >= 0:
            return descriptor
    return call_bpf(_PROG_LOAD, attribute, what)[0]
