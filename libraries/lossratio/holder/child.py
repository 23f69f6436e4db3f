"""Child processes that report once to their parent: what they have built, or why they could not."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class BuildError(Exception):
    """Something of the testbed cannot be built."""


@dataclass(frozen=True)
class Child:
    """A child process.

    Attributes:
        pid: Its process id.
        pipe: Where its report comes from.
    """

    pid: int
    pipe: int

    def report(self) -> Any:
        """Waits for the child's report.

        Raises:
            BuildError: If the child failed, or ended without a report.
        """
        with os.fdopen(self.pipe) as pipe:
            line = pipe.readline()
        if not line:
            raise BuildError(f"process {self.pid} of the testbed was killed while it was being built")
        report = json.loads(line)
        if "error" in report:
            raise BuildError(report["error"])
        return report["result"]


def fork(task: Callable[[Callable[[Any], None]], None]) -> Child:
    """Forks a child that runs ``task`` and ends with it.

    Args:
        task: Called in the child with the function that sends its report, which it must call once.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Child(pid, reading)
    status = 1
    try:
        os.close(reading)
        task(lambda result: _send(writing, {"result": result}))
        status = 0
    except (BuildError, OSError) as error:
        _send(writing, {"error": str(error)})
    except BaseException:  # noqa: BLE001 - this frame must never return into the parent's code
        traceback.print_exc()
        _send(writing, {"error": traceback.format_exc().strip().splitlines()[-1]})
    finally:
        sys.stderr.flush()
        os._exit(status)


def _send(pipe: int, message: dict[str, Any]) -> None:
    try:
        os.write(pipe, json.dumps(message).encode() + b"\n")
        os.close(pipe)
    except OSError:
        # Reported before, or the parent is gone.
        return
