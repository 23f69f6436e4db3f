"""Runs programs in Python, each in a fork of a process that has imported the library already.

It reads one line for each program: its arguments, as a list in JSON. It answers with a line: exit status and output.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import tempfile
import traceback
from pathlib import Path
from typing import NoReturn

import lossratio.keywords.library  # noqa: F401  (it takes most of the time)


def run(arguments: list[str], output: int) -> NoReturn:
    """Runs a program as Python itself would, and ends this process."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).parent)
    status = 1
    try:
        runpy.run_path(arguments[0], run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code)
    except BaseException:  # noqa: BLE001  (what it is, is in the output)
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main() -> None:
    """Runs the programs that standard input names."""
    for line in sys.stdin:
        with tempfile.TemporaryFile() as output:
            child = os.fork()
            if child == 0:
                run(json.loads(line), output.fileno())
            _, ended = os.waitpid(child, 0)
            output.seek(0)
            text = output.read().decode()
        print(json.dumps([os.waitstatus_to_exitcode(ended), text]), flush=True)


if __name__ == "__main__":
    main()
