"""Machines whose disk is full, or cannot be written: only the reservation needs it, and says so."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from layouts import lab_file, topologies

UNAVAILABLE = 75
"""The exit status where a testbed cannot be had."""


@contextmanager
def full_disk(machine):
    """The root file system has no block left, also for root."""
    machine.shell("fallocate -l $(($(stat -f -c '%f * %S' /))) /full || true; cat /dev/zero >>/full || true; sync")
    try:
        yield
    finally:
        machine.run("rm", "/full")


@contextmanager
def read_only_root(machine):
    """The root file system cannot be written, as after an error of the disk."""
    machine.shell("echo u >/proc/sysrq-trigger; sleep 2; ! touch /written")
    try:
        yield
    finally:
        machine.run("mount", "-o", "remount,rw", "/")


@pytest.mark.parametrize(
    ("broken", "why"), [(full_disk, "No space left on device"), (read_only_root, "Read-only file system")]
)
def test_a_reservation_that_the_disk_cannot_take_is_an_error_with_the_way_out(lab, lossratio, broken, why):
    """Nothing but the reservation needs the disk, and memory has room for it."""
    lab["TG"].run("rm", "-rf", "/var/tmp/lossratio")
    directory = f"/dev/shm/{broken.__name__}"
    in_memory = lab_file(lab, "in-memory", "afpacket", 0, 1, fields={"reservation": {"directory": directory}})
    with broken(lab["TG"]):
        said = lossratio("lab", "reserve", topologies(lab)["vmxnet3"], "--for", "1min", status=UNAVAILABLE)
        assert lossratio("lab", "reserve", in_memory, "--for", "1min").strip()
    assert f"/var/tmp/lossratio/testbed: {why}" in said
    assert "directory: /dev/shm/" in said
