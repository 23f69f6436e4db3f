"""The host as the tester of a machine: a network namespace with a TAP interface at the other end of each cable."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TapInterfaces:
    """TAP interfaces of the host. It takes root to make them."""

    netns: str
    """The network namespace that they are in."""
    names: Mapping[str, str]
    """Their names, by cable."""

    @classmethod
    def of(cls, laboratory: Path, cables: Sequence[str]) -> TapInterfaces:
        """Those of a laboratory, which has this directory, at these cables."""
        owner = laboratory.name.split("-")[2]
        return cls(f"lab{owner}", {cable: f"lab{owner}{cable}" for cable in cables})

    def make(self) -> None:
        """Makes the interfaces, where QEMU finds them."""
        for name in self.names.values():
            _ip("tuntap", "add", "dev", name, "mode", "tap")

    def hide(self) -> None:
        """Waits until QEMU has opened them, and moves them into the namespace."""
        if not self.names:
            return
        _ip("netns", "add", self.netns)
        for name in self.names.values():
            _ip("link", "set", name, "up")
            while "NO-CARRIER" in _ip("link", "show", name):
                time.sleep(0.1)
            _ip("link", "set", name, "netns", self.netns)
            quiet = f"net.ipv6.conf.{name}.disable_ipv6=1"
            _ip("netns", "exec", self.netns, "sysctl", "-qw", quiet)
            _ip("-n", self.netns, "link", "set", name, "up")

    def remove(self) -> None:
        """Removes them, wherever they are."""
        for name in self.names.values():
            _ip("link", "del", name, check=False)
        _ip("netns", "del", self.netns, check=False)


def _ip(*words: str, check: bool = True) -> str:
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True).stdout
