"""How a reservation fares when many want it: real processes, each over an SSH session of its own to one node.

Prints how many processes had the testbed, whether two ever had it at once, and how long it took to hand over. Some are
killed while they have it; their leases end by themselves.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import signal
import sys
import time
from multiprocessing.synchronize import Semaphore
from pathlib import Path
from tempfile import TemporaryDirectory

from lossratio.nodes import NodeSession
from lossratio.testbed.local import LocalTestbed
from lossratio.testbed.reservation import Claim, Lease
from lossratio.topology import Node, load_topology

ROOT = Path(__file__).parents[1]
DIRECTORY = "/run/lossratio"
LEASE = 3.0
HOLD = 0.02


def contend(node: Node, name: str, visits: Path, log_ins: Semaphore, is_to_die: bool) -> None:
    """Waits for the testbed, has it for a moment (or until it is killed), and notes when."""
    with log_ins:
        session = NodeSession.connect("TG", node)
    claim = Claim("testbed", DIRECTORY, sys.executable, LEASE, name)
    (visits / f"{name}.ready").touch()
    with session, Lease.take(session, claim, wait=3600.0):
        came = time.monotonic()
        if is_to_die:
            (visits / f"{name}.json").write_text(json.dumps([came, came]))
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(HOLD)
        # It is given back after this.
        (visits / f"{name}.json").write_text(json.dumps([came, time.monotonic()]))


def hold_until_all_wait(node: Node, visits: Path, contenders: int) -> None:
    """Has the testbed until everybody else wants it."""
    claim = Claim("testbed", DIRECTORY, sys.executable, 60.0, "first")
    with NodeSession.connect("TG", node) as session, Lease.take(session, claim):
        (visits / "held").touch()
        while len(list(visits.glob("*.ready"))) < contenders:
            time.sleep(0.1)
        # The processes that are ready still have to ask.
        time.sleep(5.0)
        (visits / "begun").write_text(json.dumps(time.monotonic()))


def measure(contenders: int, deaths: int, log_ins: int) -> None:
    """Runs the contenders and prints what came of it."""
    context = multiprocessing.get_context("fork")
    topology = load_topology(ROOT / "topologies" / "local.yaml")
    with TemporaryDirectory() as folder, LocalTestbed.up(topology) as testbed:
        visits, node = Path(folder), testbed.topology.nodes["TG"]
        began = time.monotonic()
        context.Process(target=hold_until_all_wait, args=(node, visits, contenders)).start()
        while not (visits / "held").exists():
            time.sleep(0.1)
        semaphore = context.Semaphore(log_ins)
        doomed = {number * contenders // max(1, deaths) for number in range(deaths)}
        processes = [
            context.Process(target=contend, args=(node, str(number), visits, semaphore, number in doomed))
            for number in range(contenders)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        served = time.monotonic()
        begun = json.loads((visits / "begun").read_text())
        times = sorted(json.loads(file.read_text()) for file in visits.glob("*.json"))
    gaps = sorted(later[0] - earlier[1] for earlier, later in itertools.pairwise(times))
    print(f"contenders               {contenders} processes, each over its own SSH session")
    print(f"all of them waiting      after {begun - began:.1f} s")
    print(f"killed with the testbed  {deaths}; a lease lasts {LEASE:g} s")
    print(f"had the testbed          {len(times)}")
    print(f"two at once              {sum(gap < 0 for gap in gaps)} times")
    print(f"all served               {served - begun:.1f} s later")
    print(f"from one to the next     median {gaps[len(gaps) // 2] * 1000:.0f} ms, longest {gaps[-1]:.2f} s")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contenders", type=int, default=200, help="how many want the testbed")
    parser.add_argument("--deaths", type=int, default=5, help="how many of them are killed while they have it")
    parser.add_argument("--log-ins", type=int, default=8, help="how many log in at the same time")
    options = parser.parse_args()
    measure(options.contenders, options.deaths, options.log_ins)


if __name__ == "__main__":
    main()
