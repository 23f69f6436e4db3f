"""BPF without a compiler: instructions are encoded as the kernel documents them, and the kernel takes and runs them."""

from __future__ import annotations

import ctypes
import errno
import re
import struct

import pytest

from lossratio.bpf import (
    DW,
    R0,
    R1,
    R2,
    R3,
    R6,
    R10,
    Array,
    Assembler,
    AssemblyError,
    B,
    BpfError,
    H,
    Helper,
    Table,
    TableType,
    W,
    XdpAction,
    XdpLink,
    XdpMode,
    XdpProgram,
    kernel,
    program_info,
    why_impossible,
)

FRAME = bytes(range(60))

needs_bpf = pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}")


def assembled(*write):
    code = Assembler()
    for one in write:
        one(code)
    return code.code()


@pytest.mark.parametrize(
    ("write", "encoding"),
    [
        # As `llvm-objdump -d` and `bpftool prog dump xlated opcodes` show them.
        (lambda a: a.exit(XdpAction.PASS), "b4 00 00 00 02 00 00 00 95 00 00 00 00 00 00 00"),
        (lambda a: a.mov(R6, R1), "bf 16 00 00 00 00 00 00"),
        (lambda a: a.add(R10, -8), "07 0a 00 00 f8 ff ff ff"),
        (lambda a: a.and32(R2, 0xFFFFFF00), "54 02 00 00 00 ff ff ff"),
        (lambda a: a.mod32(R3, 254), "94 03 00 00 fe 00 00 00"),
        (lambda a: a.rsh(R1, R2), "7f 21 00 00 00 00 00 00"),
        (lambda a: a.neg(R2), "87 02 00 00 00 00 00 00"),
        (lambda a: a.to_be(R1, 16), "dc 01 00 00 10 00 00 00"),
        (lambda a: a.ldx(B, R2, R1, 12), "71 12 0c 00 00 00 00 00"),
        (lambda a: a.ldx(H, R2, R1, 12), "69 12 0c 00 00 00 00 00"),
        (lambda a: a.stx(DW, R10, -8, R1), "7b 1a f8 ff 00 00 00 00"),
        (lambda a: a.st(W, R1, 4, 0xFFFFFFFF), "62 01 04 00 ff ff ff ff"),
        (lambda a: a.ld_imm64(R1, 0x123456789ABCDEF0), "18 01 00 00 f0 de bc 9a 00 00 00 00 78 56 34 12"),
        (lambda a: a.ld_map_fd(R1, 7), "18 11 00 00 07 00 00 00 00 00 00 00 00 00 00 00"),
        (lambda a: a.ld_map_value(R1, 7, 24), "18 21 00 00 07 00 00 00 00 00 00 00 18 00 00 00"),
        (lambda a: a.atomic_add(DW, R1, 0, R2), "db 21 00 00 00 00 00 00"),
        (lambda a: a.atomic_add(DW, R1, 0, R2, fetch=True), "db 21 00 00 01 00 00 00"),
        (lambda a: a.atomic_or(W, R1, 4, R2, fetch=True), "c3 21 04 00 41 00 00 00"),
        (lambda a: a.xchg(DW, R1, 0, R2), "db 21 00 00 e1 00 00 00"),
        (lambda a: a.cmpxchg(DW, R1, 0, R2), "db 21 00 00 f1 00 00 00"),
        (lambda a: a.call(Helper.KTIME_GET_NS), "85 00 00 00 05 00 00 00"),
    ],
)
def test_instructions_have_the_encoding_of_the_documentation(write, encoding):
    assert assembled(write).hex(" ") == encoding


def test_jumps_count_instructions_from_the_next_one_forwards_and_back():
    code = Assembler()
    code.label("begin")
    code.jgt(R1, R2, "end")
    code.ld_imm64(R3, 1)
    code.jne32(R3, 0x80000000, "begin")
    code.label("end")
    code.ja("begin")
    assert code.code().hex(" ", 8) == (
        "2d21030000000000 1803000001000000 0000000000000000 5603fcff00000080 0500fbff00000000"
    )


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda a: a.ja("nowhere"), "There is no label 'nowhere'"),
        (lambda a: (a.label("here"), a.label("here")), "The label 'here' is there twice"),
        (lambda a: a.mov(R1, 0x80000000), "2147483648 does not fit into 32 bits with a sign: load it with ld_imm64"),
        (lambda a: a.st(W, R1, 0, 1 << 32), "4294967296 does not fit into 32 bits"),
        (lambda a: a.ldx(W, R1, R2, 40000), "an offset of 40000 does not fit"),
        (lambda a: (a.ja("far"), [a.exit() for _ in range(33000)], a.label("far")), "a jump of 33000 does not fit"),
    ],
)
def test_text_that_cannot_be_encoded_is_refused(write, message):
    with pytest.raises(AssemblyError, match=message):
        assembled(write)


def sum_of_bytes(array):
    """Adds the second byte of each frame to a number in memory, writes the sum into the third, and passes the frame."""
    code = Assembler()
    code.ldx(W, R2, R1, 0)
    code.ldx(W, R3, R1, 4)
    code.mov(R0, R2)
    code.add(R0, 3)
    code.jgt(R0, R3, "short")
    code.ld_map_value(R1, array.descriptor, 8)
    code.ldx(B, R3, R2, 1)
    code.atomic_add(DW, R1, 0, R3)
    code.ldx(B, R3, R1, 0)
    code.stx(B, R2, 2, R3)
    code.exit(XdpAction.TX)
    code.label("short")
    code.exit(XdpAction.DROP)
    return code.code()


@needs_bpf
def test_the_kernel_runs_a_program_on_a_frame_and_shares_its_memory():
    array = Array(16, "sums")
    program = XdpProgram(sum_of_bytes(array), "sum_of_bytes")
    struct.pack_into("=Q", array.memory, 8, 5)
    assert program.run(FRAME) == (XdpAction.TX.value, FRAME[:2] + b"\x06" + FRAME[3:])
    assert struct.unpack_from("=QQ", array.memory) == (0, 6)
    program.close()
    array.close()


@needs_bpf
def test_tables_are_found_by_the_number_of_the_program_that_has_them_and_changed():
    table = Table.create(TableType.HASH, 4, 8, 2, "two")
    code = Assembler()
    code.st(W, R10, -4, 7)
    code.ld_map_fd(R1, table.descriptor)
    code.mov(R2, R10)
    code.add(R2, -4)
    code.call(Helper.MAP_LOOKUP_ELEM)
    code.jeq(R0, 0, "none")
    code.ldx(W, R0, R0, 0)
    code.label("none")
    code.exit()
    program = XdpProgram(code.code(), "look_up")
    assert program.run(FRAME) == (0, FRAME)
    info = program_info(program.number)
    assert (info.number, info.name) == (program.number, "look_up")
    assert len(bytes.fromhex(info.tag)) == 8
    (found,) = map(Table.open, info.maps)
    assert (found.number, found.name, found.key_bytes, found.value_bytes) == (table.number, "two", 4, 8)
    found.update(struct.pack("=I", 7), struct.pack("=Q", 3))
    assert program.run(FRAME) == (3, FRAME)
    assert table.entries(10) == {struct.pack("=I", 7): struct.pack("=Q", 3)}
    found.update(struct.pack("=I", 8), bytes(8))
    assert (len(table.entries(10)), len(table.entries(1))) == (2, 1)
    with pytest.raises(BpfError, match="refuses an entry in two: Argument list too long"):
        found.update(struct.pack("=I", 9), bytes(8))


@needs_bpf
def test_live_frames_end_after_so_many_runs():
    array = Array(16, "sums")
    code = Assembler()
    code.ld_map_value(R1, array.descriptor)
    code.mov(R2, 1)
    code.atomic_add(DW, R1, 0, R2)
    code.exit(XdpAction.DROP)
    program = XdpProgram(code.code(), "counter")
    assert program.run_live(FRAME, 1000, 8)
    assert struct.unpack_from("=Q", array.memory) == (1000,)


@needs_bpf
def test_the_verifiers_last_words_are_in_the_error():
    code = Assembler()
    code.ldx(W, R2, R1, 0)
    code.ldx(B, R0, R2, 0)
    code.exit()
    with pytest.raises(BpfError, match=r"too_bold of 3 instructions.*last words: .*invalid access to packet"):
        XdpProgram(code.code(), "too_bold")


@needs_bpf
def test_there_is_no_program_on_an_interface_that_does_not_exist():
    program = XdpProgram(assembled(lambda code: code.exit(XdpAction.PASS)), "pass")
    with pytest.raises(BpfError) as refused:
        XdpLink(program, 0x7FFFFFFF, XdpMode.GENERIC)
    assert refused.value.error_number in (errno.ENODEV, errno.EINVAL)


class RefusingKernel:
    """The C library of a kernel that refuses every call of bpf()."""

    def __init__(self, error_number):
        self._error_number = error_number

    def syscall(self, *arguments):
        ctypes.set_errno(self._error_number)
        return -1


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
    monkeypatch.setattr(kernel, "_libc", RefusingKernel(error_number))
    monkeypatch.setattr(kernel, "_STATUS", str(status))
    monkeypatch.setattr(kernel, "_LOCKDOWN", str(lock))
    with pytest.raises(BpfError, match=way_out):
        Array(16, "sums")


@pytest.mark.parametrize(
    ("release", "machine", "reason"),
    [
        ("5.15.0-91-generic", "x86_64", "Linux 5.15.0-91-generic is too old: .* Linux 5.18 or later"),
        ("6.1.0-18-amd64", "sparc64", "the system call bpf is not known on sparc64"),
    ],
)
def test_a_machine_that_cannot_have_live_frames_says_why(release, machine, reason, monkeypatch):
    monkeypatch.setattr(kernel.platform, "release", lambda: release)
    monkeypatch.setattr(kernel.platform, "machine", lambda: machine)
    assert re.search(reason, str(why_impossible()))
