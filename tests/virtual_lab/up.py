"""Keeps a laboratory of a TG and a DUT up until Ctrl-C, for experiments by hand; prints its topology file.

.venv/bin/python tests/virtual_lab/up.py
"""

from __future__ import annotations

import signal

from layouts import pair_of_machines, topologies


def main() -> None:
    with pair_of_machines() as lab:
        for path in topologies(lab).values():
            print(path)
        options = f"-i {lab.directory}/user.key -o UserKnownHostsFile={lab.directory}/known_hosts"
        for machine in lab.machines.values():
            print(f"ssh {options} -p {machine.port} root@127.0.0.1  # {machine.name}", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
