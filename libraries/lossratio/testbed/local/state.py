"""The directories on disk that running testbeds have, one each: keys, logs, and how to reach the nodes.

A testbed's holder keeps the lock on its directory for as long as it lives. So what is not locked was left by one that
was killed, and is removed whenever somebody looks.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from lossratio.errors import TopologyError
from lossratio.topology import Topology

_LOCK = "lock"
_STATE = "state.json"


class Access(BaseModel):
    """How a node of a running testbed is reached.

    Attributes:
        port: TCP port of its sshd on the loopback address.
        host_key: Its public host key.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    port: int
    host_key: str


class State(BaseModel):
    """What is written down about a running testbed.

    Attributes:
        topology: What it was built from.
        pid: Its holder's process id.
        keep: Whether it outlives the run that built it.
        username: User to log in as.
        nodes: How to reach the nodes, by name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    topology: Topology
    pid: int
    keep: bool
    username: str
    nodes: dict[str, Access]


@dataclass(frozen=True)
class LockedDirectory:
    """A new directory, and the descriptor that keeps it locked."""

    path: Path
    lock: int


def create_directory(name: str) -> LockedDirectory:
    """Makes a directory for a testbed that is to be built, and locks it; removes what killed ones have left."""
    with _root_locked() as root:
        _remove_leftovers(root)
        path = root / f"{name}-{secrets.token_hex(4)}"
        path.mkdir(mode=0o700)
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return LockedDirectory(path, lock)


def write_state(directory: Path, state: State) -> None:
    """Writes a testbed's state down, at once or not at all."""
    temporary = directory / f"{_STATE}.new"
    # Unset fields are left out, so that what is read back is still known to be unset.
    temporary.write_text(state.model_dump_json(indent=1, exclude_unset=True))
    temporary.rename(directory / _STATE)


def running() -> list[tuple[Path, State]]:
    """This user's testbeds that are up, with their directories; removes what killed ones have left."""
    found = []
    with _root_locked() as root:
        _remove_leftovers(root)
        for path in sorted(root.glob(f"*/{_STATE}")):
            with suppress(OSError, ValidationError):
                found.append((path.parent, State.model_validate_json(path.read_bytes())))
    return found


def remove_leftovers() -> None:
    """Removes what killed testbeds of this user have left on disk."""
    with _root_locked() as root:
        _remove_leftovers(root)


def is_locked(directory: Path) -> bool:
    """Whether a holder is alive behind a directory."""
    try:
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


@contextmanager
def _root_locked() -> Iterator[Path]:
    root = _root()
    lock = os.open(root / f".{_LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield root
    finally:
        os.close(lock)


def _remove_leftovers(root: Path) -> None:
    for path in root.iterdir():
        if path.is_dir() and not is_locked(path):
            shutil.rmtree(path, ignore_errors=True)


def _root() -> Path:
    for base in (_state_home, _temporary_home):
        with suppress(OSError, RuntimeError):
            root = base() / "lossratio" / "testbeds"
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            root.chmod(0o700)
            return root
    raise TopologyError(
        "No local testbed can be built: there is no directory for its keys, neither below ~/.local/state nor below "
        f"{tempfile.gettempdir()}; set XDG_STATE_HOME to one that can be written."
    )


def _state_home() -> Path:
    home = os.environ.get("XDG_STATE_HOME")
    return Path(home) if home else Path.home() / ".local" / "state"


def _temporary_home() -> Path:
    home = Path(tempfile.gettempdir(), f"lossratio-{os.geteuid()}")
    home.mkdir(mode=0o700, exist_ok=True)
    # Everybody may write there, so somebody else may have been first.
    if home.is_symlink() or home.stat().st_uid != os.geteuid():
        raise PermissionError
    return home
