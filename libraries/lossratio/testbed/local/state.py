"""The directories of running testbeds on disk, one for each: keys, logs, and how to reach the nodes.

A testbed's holder keeps the lock of its directory as long as it lives. So a directory without a lock belongs to a
holder that was killed; the next function here that reads the directories removes it.
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import ValidationError

from lossratio.errors import TopologyError
from lossratio.topology import Topology
from lossratio.values import FileModel

_LOCK = "lock"
_STATE = "state.json"


class Access(FileModel):
    """How a node of a running testbed is reached."""

    port: int
    """TCP port of the node's sshd on the loopback address."""
    host_key: str
    """Public host key of the sshd."""


class State(FileModel):
    """The record of a running testbed."""

    topology: Topology
    """The topology that it was built from."""
    pid: int
    """Process id of its holder."""
    keep: bool
    """Whether it outlives the run that built it."""
    username: str
    """The user to log in as."""
    nodes: dict[str, Access]
    """How to reach the nodes, by name."""


def create_directory(name: str) -> tuple[Path, int]:
    """Makes the directory of a new testbed, locked by the descriptor; removes directories of killed testbeds."""
    with _root_locked() as root:
        path = root / f"{name}-{secrets.token_hex(4)}"
        path.mkdir(mode=0o700)
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return path, lock


def write_state(directory: Path, state: State) -> None:
    """Writes the record of a testbed in one step, so that a reader never sees a part of it."""
    temporary = directory / f"{_STATE}.new"
    # Unset fields are left out, so that they are still unset after the record is read again.
    text = state.model_dump_json(indent=1, exclude_unset=True)
    temporary.write_text(text, encoding="utf-8")
    temporary.rename(directory / _STATE)


def running() -> list[tuple[Path, State]]:
    """This user's testbeds that are up, with their directories; removes directories of killed testbeds."""
    testbeds = []
    with _root_locked() as root:
        for path in sorted(root.glob(f"*/{_STATE}")):
            with suppress(OSError, ValidationError):
                testbeds.append((path.parent, State.model_validate_json(path.read_bytes())))
    return testbeds


def is_locked(directory: Path) -> bool:
    """Whether the holder of a directory is alive."""
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
        for path in root.iterdir():
            if path.is_dir() and not is_locked(path):
                shutil.rmtree(path, ignore_errors=True)
        yield root
    finally:
        os.close(lock)


def _root() -> Path:
    home = os.environ.get("XDG_STATE_HOME")
    try:
        base = Path(home) if home else Path.home() / ".local" / "state"
        root = base / "lossratio" / "testbeds"
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        root.chmod(0o700)
    except (OSError, RuntimeError) as error:
        raise TopologyError(
            f"No local testbed can be built: there is no directory for its keys: {error}. Set XDG_STATE_HOME to a "
            "writable directory."
        ) from error
    return root
