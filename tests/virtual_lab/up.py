"""Keeps a laboratory of a TG and a DUT up until Ctrl-C, for experiments by hand; prints its topology files.

Tests that are given its directory as VIRTUAL_LAB use it, and boot no machines of their own.

.venv/bin/python tests/virtual_lab/up.py
"""

from __future__ import annotations

import contextlib
import os
import signal

from layouts import pair_of_machines, topologies


def main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # These machines are new ones, whatever others are up.
    os.environ.pop("VIRTUAL_LAB", None)
    with contextlib.suppress(KeyboardInterrupt), pair_of_machines() as lab:
        print(f"export VIRTUAL_LAB={lab.directory}")
        for path in topologies(lab).values():
            print(path)
        options = f"-i {lab.directory}/user.key -o UserKnownHostsFile={lab.directory}/known_hosts"
        for machine in lab.machines.values():
            print(f"ssh {options} -p {machine.port} root@127.0.0.1  # {machine.name}", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
