# SPDX-License-Identifier: Apache-2.0
"""The raw system call bpf(), and its refusals in words."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from contextlib import suppress

libc = ctypes.CDLL(None, use_errno=True)
"""The C library; its functions set `ctypes.get_errno`."""
SYSCALL_NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "loongarch64": 280, "ppc64le": 361}
"""The number of the system call, by kind of processor."""
_ATTRIBUTE_BYTES = 152
_CAP_NET_ADMIN = 12
_CAP_SYS_ADMIN = 21
_CAP_BPF = 39
_STATUS = "/proc/self/status"
_LOCKDOWN = "/sys/kernel/security/lockdown"


class BpfError(Exception):
    """The kernel refused a BPF request; the message says what, why, and what to do.

    `error_number` is the system's number of the error, such as ``errno.EPERM``.
    """

    def __init__(self, message: str, error_number: int) -> None:
        super().__init__(message, error_number)
        self.message = message
        self.error_number = error_number

    def __str__(self) -> str:
        return self.message


def call_bpf(command: int, attribute: bytes, what: str, *, last: int | None = None) -> tuple[int, bytes]:
    """Calls bpf() with a command and its attribute; returns the result, and the attribute as the kernel left it.

    `what` is requested, for the error. `last` is the number of an error that only ends a loop: the result is below 0.

    Raises:
        BpfError: If the kernel refuses it.
    """
    number = SYSCALL_NUMBERS.get(platform.machine())
    if number is None:
        raise BpfError(f"The number of the system call bpf is not known on {platform.machine()}.", errno.ENOSYS)
    buffer = ctypes.create_string_buffer(attribute, max(_ATTRIBUTE_BYTES, len(attribute)))
    result = libc.syscall(number, command, ctypes.byref(buffer), len(buffer))
    if result < 0:
        error_number = ctypes.get_errno()
        if error_number == last:
            return result, buffer.raw
        raise BpfError(refusal_of(error_number, what), error_number)
    return result, buffer.raw


def refusal_of(error_number: int, what: str) -> str:
    """What the kernel refuses, why, and what to do."""
    refusal = f"The kernel refuses {what}: {os.strerror(error_number)}."
    if error_number == errno.ENOSYS:
        return f"{refusal} The kernel was built without BPF, or a filter of system calls (seccomp) forbids bpf()."
    if error_number != errno.EPERM:
        return refusal

    missing = _missing_capabilities()
    if missing:
        return f"{refusal} This process lacks {missing}: log in as root, outside of user namespaces."

    lockdown = _lockdown()
    if lockdown is not None:
        return f"{refusal} The kernel is locked down ({lockdown}, see {_LOCKDOWN})."
    return (
        f"{refusal} This process has the capabilities, so a filter of system calls (seccomp, as in containers) or a "
        "user namespace forbids the call. Run lossratio outside of it."
    )


def _missing_capabilities() -> str:
    with open(_STATUS, encoding="ascii") as file:
        effective = next(int(line.split()[1], 16) for line in file if line.startswith("CapEff:"))
    if effective >> _CAP_SYS_ADMIN & 1:
        return ""
    wanted = {"CAP_BPF": _CAP_BPF, "CAP_NET_ADMIN": _CAP_NET_ADMIN}
    return " and ".join(name for name, bit in wanted.items() if not effective >> bit & 1)


def _lockdown() -> str | None:
    with suppress(OSError), open(_LOCKDOWN, encoding="ascii") as file:
        chosen = file.read().partition("[")[2].partition("]")[0]
        if chosen not in ("", "none"):
            return chosen
    return None
