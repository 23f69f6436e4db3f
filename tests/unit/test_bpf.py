"""BPF without a library: object files are read, and the kernel takes, runs and shares what they hold."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import runpy
import shutil
import socket
import struct
import subprocess
from contextlib import closing
from fnmatch import fnmatch
from pathlib import Path

import pytest
from bpf_objects import EXIT, XdpAction, elf, instruction, mov, run_once

from lossratio.agent.xdp import connection_programs, receive_program, send_program
from lossratio.bpf import (
    Array,
    Attachment,
    BpfError,
    ObjectFile,
    Program,
    Table,
    attached_program,
    kernel,
    program_info,
    system_call,
    why_impossible,
)

ROOT = Path(__file__).parents[2]
COMPILER = runpy.run_path(str(ROOT / "tools" / "bpf_objects.py"))
FRAME = bytes(range(60))
MAP_VALUE = 0x20
LOAD_PROGRAM = 5
LOAD, LOAD_BYTE, STORE_BYTE, ADD, MOVE, WIDE, ATOMIC = 0x61, 0x71, 0x73, 0x07, 0xBF, 0x18, 0xDB

needs_bpf = pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}")


@pytest.mark.parametrize("source", COMPILER["sources"](), ids=lambda path: path.name)
def test_each_object_is_that_of_its_source(source):
    digest = ObjectFile(source.with_suffix(".o").read_bytes()).sections["source"].rstrip(b"\0").decode()
    assert digest == COMPILER["digest"](source), f"{source} is newer than its object: run tools/bpf_objects.py"


@pytest.mark.whole
@pytest.mark.skipif(shutil.which("clang") is None, reason="there is no clang")
@pytest.mark.parametrize("source", COMPILER["sources"](), ids=lambda path: path.name)
def test_a_compiler_makes_an_object_with_the_same_needs(source, tmp_path):
    COMPILER["compile_program"](source, tmp_path / "object.o")
    made, shipped = (ObjectFile(path.read_bytes()) for path in (tmp_path / "object.o", source.with_suffix(".o")))
    assert made.needs == shipped.needs
    assert made.sections["source"] == shipped.sections["source"]


def version_of_clang():
    """The version of the compiler of this machine; empty: there is none."""
    if shutil.which("clang") is None:
        return ""
    said = subprocess.run(["clang", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"clang version (\S+)", said)
    return found.group(1).split("-")[0] if found else ""


@pytest.mark.whole
@pytest.mark.skipif(version_of_clang() != COMPILER["VERSION"], reason="the objects are of another clang")
@pytest.mark.parametrize("source", COMPILER["sources"](), ids=lambda path: path.name)
def test_the_compiler_of_the_objects_makes_the_same_bytes(source, tmp_path):
    COMPILER["compile_program"](source, tmp_path / "object.o")
    assert (tmp_path / "object.o").read_bytes() == source.with_suffix(".o").read_bytes()


def layouts_in_c(source):
    """The structures of a program as the compiler lays them out: their size, and each member's offset and type."""
    flags = ("-I", str(COMPILER["SHARED"]), '-DDIGEST=""', "-Xclang", "-fdump-record-layouts", "-S", "-o", "/dev/null")
    command = [*COMPILER["CLANG"], *flags, source.name]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=source.parent).stdout
    found = {}
    for block in said.split("*** Dumping AST Record Layout")[1:]:
        name = re.search(r"0 \| struct (\w+)\n", block).group(1)
        size = int(re.search(r"\[sizeof=(\d+),", block).group(1))
        members = re.findall(r"^ *(\d+) \|   (\S.*) (\w+)$", block, re.MULTILINE)
        found[name] = (size, {member: (int(offset), kind) for offset, kind, member in members})
    return found


def check_layout(structure, name, in_c):
    """Compares a structure in Python, and those in it, with the one that has this name in C."""
    size, members = in_c[name]
    offsets = {member: getattr(structure, member).offset for member, _ in structure._fields_}
    assert offsets == {member: offset for member, (offset, _) in members.items()}, f"struct {name}"
    assert ctypes.sizeof(structure) == size, f"struct {name}"

    for member, kind in structure._fields_:
        inner = getattr(kind, "_type_", kind)
        if isinstance(inner, type) and issubclass(inner, ctypes.Structure):
            named = re.match(r"struct (\w+)", members[member][1]).group(1)
            check_layout(inner, named, in_c)


@pytest.mark.whole
@pytest.mark.skipif(shutil.which("clang") is None, reason="there is no clang")
def test_structures_of_connections_in_python_are_those_that_the_compiler_lays_out():
    folder = Path(connection_programs.__file__).parent
    in_c = {**layouts_in_c(folder / "connect.c"), **layouts_in_c(folder / "arrive.c")}
    own = {name: kind for name, kind in vars(connection_programs).items() if isinstance(kind, type(ctypes.Structure))}
    assert {"_Connection", "_Exchange", "_Outgoing", "_Incoming"} <= set(own)
    for name, structure in own.items():
        check_layout(structure, name.strip("_").lower(), in_c)


@pytest.mark.smoke
@pytest.mark.whole
@pytest.mark.skipif(shutil.which("clang") is None, reason="there is no clang")
@pytest.mark.parametrize("module", [send_program, receive_program], ids=lambda module: module.__name__.split(".")[-1])
def test_structures_in_python_are_those_that_the_compiler_lays_out(module):
    own = {name: kind for name, kind in vars(module).items() if isinstance(kind, type(ctypes.Structure))}
    source = Path(module.__file__).with_name(module.__name__.split(".")[-1].replace("_program", ".c"))
    in_c = layouts_in_c(source)
    assert len(own) > 3
    for name, structure in own.items():
        check_layout(structure, name.strip("_").lower(), in_c)


@pytest.mark.parametrize("source", [*COMPILER["sources"](), *COMPILER["headers"]()], ids=lambda path: path.name)
def test_each_source_states_its_licence_as_the_list_of_licences_has_it(source):
    root = Path(__file__).parents[2]
    # REUSE-IgnoreStart
    stated = re.match(r"/\* SPDX-License-Identifier: (.+) \*/\n", source.read_text())
    # REUSE-IgnoreEnd
    of_list = ""
    for entry in re.split(r"\[\[annotations\]\]", (root / "REUSE.toml").read_text())[1:]:
        # REUSE-IgnoreStart
        (licence,) = re.findall(r'SPDX-License-Identifier = "(.+)"', entry)
        # REUSE-IgnoreEnd
        paths = re.findall(r'"([^"]+)"', entry.partition("path")[2].partition("SPDX")[0])
        name = str(source.relative_to(root))
        if any(path == "**" or fnmatch(name, path) for path in paths):
            of_list = licence
    assert stated.group(1) == of_list


def test_what_is_no_object_of_bpf_is_refused():
    with pytest.raises(ValueError, match="not a BPF object file"):
        ObjectFile(b"\x7fELF" + bytes(100))


@needs_bpf
def test_a_program_that_needs_what_nobody_gives_is_refused():
    code = instruction(WIDE, 1) + instruction(0) + mov(0, 2) + EXIT
    with pytest.raises(ValueError, match="needs 'way_out', which is neither a map nor a constant"):
        ObjectFile(elf(code, map_name="way_out")).load("forward", {})


@needs_bpf
def test_a_constant_is_known_when_the_kernel_verifies_the_program():
    # The end of it reads where it must not.
    constant = instruction(WIDE, 1) + instruction(0) + instruction(LOAD, 0x10)
    code = constant + instruction(0x55, 0, 1, 7) + EXIT + instruction(LOAD, 0x00) + EXIT
    program = ObjectFile(elf(code, map_name="seven"))
    for number, is_taken in ((7, True), (8, False)):
        constants = {"seven": struct.pack("=I", number)}
        if is_taken:
            loaded = program.load("known", {}, constants)
            assert run_once(loaded, FRAME) == (7, FRAME)
            loaded.close()
        else:
            with pytest.raises(BpfError, match="The last lines of the verifier"):
                program.load("known", {}, constants)


def sum_of_bytes(array):
    """Adds the second byte of each frame to a number in memory, writes the sum into the third, and passes the frame."""
    return b"".join(
        (
            instruction(LOAD, 0x12) + instruction(LOAD, 0x13, 4) + instruction(MOVE, 0x20) + instruction(ADD, 0, 0, 3),
            instruction(0x2D, 0x30, 8),
            instruction(WIDE, MAP_VALUE | 1, 0, array.descriptor) + instruction(0, 0, 0, 8),
            instruction(LOAD_BYTE, 0x23, 1) + instruction(ATOMIC, 0x31),
            instruction(LOAD_BYTE, 0x13) + instruction(STORE_BYTE, 0x32, 2),
            mov(0, XdpAction.TX.value) + EXIT,
            mov(0, XdpAction.DROP.value) + EXIT,
        )
    )


@needs_bpf
def test_the_kernel_runs_a_program_on_a_frame_and_shares_its_memory():
    array = Array(16, "sums")
    program = Program(sum_of_bytes(array), "sum_of_bytes")
    struct.pack_into("=Q", array.memory, 8, 5)
    assert run_once(program, FRAME) == (XdpAction.TX.value, FRAME[:2] + b"\x06" + FRAME[3:])
    assert struct.unpack_from("=QQ", array.memory) == (0, 6)
    program.close()
    array.close()


@needs_bpf
def test_tables_are_found_by_the_number_of_the_program_that_has_them_and_changed():
    table = Table.create("hash", 4, 8, 2, "two")
    code = (
        instruction(0x62, 10, -4, 7)
        + (instruction(WIDE, 0x11, 0, table.descriptor) + instruction(0))
        + (instruction(MOVE, 0xA2) + instruction(ADD, 2, 0, -4) + instruction(0x85, number=1))
        + (instruction(0x15, 0, 1, 0) + instruction(LOAD, 0x00) + EXIT)
    )
    program = Program(code, "look_up")
    assert run_once(program, FRAME) == (0, FRAME)
    info = program_info(program.number)
    assert (info.number, info.name) == (program.number, "look_up")
    assert len(bytes.fromhex(info.tag)) == 8
    (found,) = map(Table.open, info.maps)
    assert (found.number, found.name, found.key_bytes, found.value_bytes) == (table.number, "two", 4, 8)
    found.update(struct.pack("=I", 7), struct.pack("=Q", 3))
    assert run_once(program, FRAME) == (3, FRAME)
    assert table.entries(10) == {struct.pack("=I", 7): struct.pack("=Q", 3)}
    found.update(struct.pack("=I", 8), bytes(8))
    assert (len(table.entries(10)), len(table.entries(1))) == (2, 1)
    with pytest.raises(BpfError, match="refuses an entry in two: Argument list too long"):
        found.update(struct.pack("=I", 9), bytes(8))


@needs_bpf
def test_live_frames_end_after_so_many_runs():
    array = Array(16, "sums")
    memory = instruction(WIDE, MAP_VALUE | 1, 0, array.descriptor) + instruction(0)
    program = Program(memory + mov(2, 1) + instruction(ATOMIC, 0x21) + mov(0, 1) + EXIT, "counter")
    assert program.run_live(FRAME, 1000, 8)
    assert struct.unpack_from("=Q", array.memory) == (1000,)


@needs_bpf
def test_a_program_that_is_attached_nowhere_is_on_no_interface_here_and_still_sends():
    program = Program(mov(0, 1) + EXIT, "nowhere")
    link = Attachment.nowhere(program)
    try:
        assert attached_program(socket.if_nametoindex("lo")) is None
        assert program.run_live(FRAME, 1000, 8)
    finally:
        link.close()
        link.close()


@needs_bpf
def test_the_verifiers_last_words_are_in_the_error():
    code = instruction(LOAD, 0x12) + instruction(LOAD_BYTE, 0x20) + EXIT
    with pytest.raises(BpfError, match=r"too_bold of 3 instructions.*verifier: .*invalid access to packet"):
        Program(code, "too_bold")


@needs_bpf
def test_there_is_no_program_on_an_interface_that_does_not_exist():
    program = Program(mov(0, XdpAction.PASS.value) + EXIT, "pass")
    with pytest.raises(BpfError) as refused:
        Attachment(program, 0x7FFFFFFF, "generic")
    assert refused.value.error_number in (errno.ENODEV, errno.EINVAL)


class RefusingKernel:
    """The C library of a kernel that refuses every call of bpf()."""

    def __init__(self, error_number):
        self._error_number = error_number

    def syscall(self, *arguments):
        ctypes.set_errno(self._error_number)
        return -1


class InterruptedKernel:
    """The C library of a kernel that gives up loading programs as often as signals come."""

    def __init__(self, signals):
        self.signals = signals
        self._library = system_call.libc

    def syscall(self, number, command, *arguments):
        if command != LOAD_PROGRAM or not self.signals:
            return self._library.syscall(number, command, *arguments)
        self.signals -= 1
        ctypes.set_errno(errno.EAGAIN)
        return -1


@needs_bpf
def test_a_program_is_loaded_although_signals_come_meanwhile(monkeypatch):
    monkeypatch.setattr(system_call, "libc", InterruptedKernel(signals=4))
    with closing(Program(mov(0, 2) + EXIT, "whole")) as program:
        assert run_once(program, FRAME) == (2, FRAME)


@needs_bpf
def test_signals_without_end_are_an_error(monkeypatch):
    monkeypatch.setattr(system_call, "libc", InterruptedKernel(signals=1000))
    with pytest.raises(BpfError, match=os.strerror(errno.EAGAIN)) as error:
        Program(mov(0, 2) + EXIT, "never")
    assert error.value.error_number == errno.EAGAIN


@pytest.mark.parametrize(
    ("error_number", "capabilities", "lockdown", "way_out"),
    [
        (errno.EPERM, 0, "none", "lacks CAP_BPF and CAP_NET_ADMIN: log in as root, outside of user namespaces"),
        (errno.EPERM, 1 << 12, "none", "lacks CAP_BPF: log in as root"),
        (errno.EPERM, 1 << 12 | 1 << 39, "integrity", "locked down .integrity"),
        (errno.EPERM, 1 << 21, "none", "a filter of system calls .seccomp"),
        (errno.ENOSYS, 1 << 21, "none", "built without BPF, or a filter of system calls .seccomp. forbids bpf"),
        (errno.ENOMEM, 1 << 21, "none", "refuses the map sums of 16 bytes: Cannot allocate memory"),
    ],
)
def test_a_refusal_names_its_cause_and_the_way_out(
    error_number, capabilities, lockdown, way_out, monkeypatch, tmp_path
):
    status, lock = tmp_path / "status", tmp_path / "lockdown"
    status.write_text(f"Name:\tpython3\nCapEff:\t{capabilities:016x}\n")
    lock.write_text(f"none [{lockdown}] confidentiality\n" if lockdown != "none" else "[none] integrity\n")
    monkeypatch.setattr(system_call, "libc", RefusingKernel(error_number))
    monkeypatch.setattr(system_call, "_STATUS", str(status))
    monkeypatch.setattr(system_call, "_LOCKDOWN", str(lock))
    with pytest.raises(BpfError, match=way_out):
        Array(16, "sums")


@pytest.mark.parametrize(
    ("release", "machine", "reason"),
    [
        ("5.15.0-91-generic", "x86_64", "Linux 5.15.0-91-generic is too old: .* Linux 5.18 or later"),
        ("6.1.0-18-amd64", "sparc64", "were compiled for x86_64, .*, not for sparc64"),
    ],
)
def test_a_machine_that_cannot_have_live_frames_says_why(release, machine, reason, monkeypatch):
    monkeypatch.setattr(kernel.platform, "release", lambda: release)
    monkeypatch.setattr(kernel.platform, "machine", lambda: machine)
    assert re.search(reason, str(why_impossible()))
