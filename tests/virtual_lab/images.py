"""Images of virtual machines: a kernel and a root file system of Debian's packages, built once for each recipe."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("VIRTUAL_LAB_CACHE", Path.home() / ".cache" / "lossratio" / "virtual-lab"))
"""Where images are kept; they may be removed at any time."""

PACKAGES = (
    *("systemd-sysv", "udev", "kmod", "dbus", "openssh-server", "sudo"),
    *("iproute2", "iputils-ping", "ethtool", "nftables", "conntrack", "pciutils", "procps"),
    *("python3", "python3-numpy"),
    *("frr", "openvswitch-switch-dpdk", "dpdk", "dpdk-dev"),
)
_BLOCKS = ("-B", "4096", "-b", "786432", "-N", "160000")
"""The size of the root file system, 3 GiB, of which most is a hole; and its number of files."""


class CannotBuildError(Exception):
    """This machine can have no laboratory; with the reason."""


@dataclass(frozen=True)
class Image:
    """What a machine boots; it writes to none of it."""

    kernel: Path
    initrd: Path
    disk: Path
    """The root file system."""


@dataclass(frozen=True)
class Recipe:
    """What an image is made of, besides `PACKAGES`."""

    kernel: str = "linux-image-amd64"
    """The kernel's package."""
    is_newest: bool = False
    """Whether it is that of Debian's backports."""

    def image(self) -> Image:
        """The image; it is built if there is none yet, by one process at a time.

        Raises:
            CannotBuildError: If a program or Debian's packages cannot be had here.
        """
        hooks = {path.name: path.read_text() for path in sorted((HERE / "guest").iterdir())}
        digest = hashlib.sha256(repr((self, PACKAGES, _BLOCKS, hooks)).encode()).hexdigest()
        place = CACHE / digest[:16]
        # Nobody who has an image waits for another one that is built.
        if not place.exists():
            self._build_once(place, hooks)
        (kernel,) = (place / "boot").glob("vmlinuz-*")
        (initrd,) = (place / "boot").glob("initrd.img-*")
        return Image(kernel, initrd, place / "root.ext4")

    def _build_once(self, place: Path, hooks: dict[str, str]) -> None:
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if place.exists():
                return
            with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
                whole = Path(scratch) / "image"
                whole.mkdir()
                self._build(whole, hooks)
                whole.rename(place)

    def _build(self, directory: Path, hooks: dict[str, str]) -> None:
        sources = _debian_sources()
        _, uri, codename, _ = sources[0].split()
        kernel = self.kernel
        if self.is_newest:
            sources.append(f"deb {uri} {codename}-backports main")
            kernel += f"/{codename}-backports"
        (directory / "sources.list").write_text("\n".join(sources) + "\n")

        without = [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("doc", "man", "locale")]
        options = [
            "--variant=minbase",
            '--aptopt=APT::Install-Recommends "false"',
            "--dpkgopt=force-unsafe-io",
            *without,
        ]
        options += [f"--include={','.join((kernel, *PACKAGES))}"]
        options += [f"--essential-hook={hooks['before-kernel.sh']}", f"--customize-hook={hooks['customize.sh']}"]
        options += [f"--customize-hook=copy-out /boot {directory}"]
        _run(["mmdebstrap", *options, codename, "root.tar", "sources.list"], directory)
        _run(["genext2fs", *_BLOCKS, "-a", "root.tar", "root.ext4"], directory)
        # Its journal makes it one that survives a loss of power.
        _run(["tune2fs", "-j", "-O", "extents,dir_index,large_file", "root.ext4"], directory)
        (directory / "root.tar").unlink()


def _debian_sources() -> list[str]:
    """Debian's repositories, as this machine's apt has them; that of the release comes first."""
    form = "deb $(REPO_URI) $(CODENAME) $(COMPONENT)"
    listing = _run(["apt-get", "indextargets", "--format", form, "Created-By: Packages", "Origin: Debian"], HERE)
    sources = sorted({line for line in listing.splitlines() if line.endswith(" main")}, key=len)
    if not sources:
        raise CannotBuildError("apt has no list of Debian's packages here (apt-get update)")
    return sorted(sources, key=lambda line: "-" in line.split()[2])


def _run(command: Sequence[str], directory: Path) -> str:
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    environment = {**os.environ, "PATH": path}
    program = shutil.which(command[0], path=path)
    if program is None:
        raise CannotBuildError(f"{command[0]} is missing")
    nicely = ["nice", "-n", "5", program, *command[1:]]
    done = subprocess.run(nicely, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotBuildError(f"{command[0]} failed: {done.stderr[-2000:]}")
    return done.stdout
