"""Strikes random runs with random faults, and checks their journals and results with a reader of its own.

`make chaos` does so for ten minutes. Each run measures a bridge whose throughput is known, on a local testbed. A fault
strikes at a random instant. Then the fault is mended, and the run is resumed until it has ended. These must hold:

- nothing is lost: each line that a journal had when the fault struck is still there (unless a DUT fault withdrew it);
- nothing is measured twice: a resumed run only appends, and the result has the trials of the journal, each once;
- no wrong blame: a fault of the DUT ends with status 1 or is outlived, any other one is repaired or asks for a resume;
- no wrong number: each trial lost what the device takes away at its load, and the bounds enclose the truth;
- all is clean: no agent, no rule, no bridge, no reservation stays on the nodes.

All random choices come from a seed, which is printed. ``--seed N --only K`` plays its K-th run again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "unit"), str(Path(__file__).parent)]

from faults import FAULTS, Fault  # noqa: E402 (found by the line above)
from testbed_processes import agents  # noqa: E402

from lossratio.errors import LossRatioError  # noqa: E402
from lossratio.nodes import NodeSession  # noqa: E402
from lossratio.testbed.local import LocalTestbed  # noqa: E402
from lossratio.testbed.reservation import make_claim  # noqa: E402
from lossratio.testbed.reservation.lease import holder_of  # noqa: E402
from lossratio.topology import load_topology  # noqa: E402

TESTS = {"Search": None, "MRR": 25, "Frame Loss": None}
"""Tests of the suite: how many trials they take, where that does not depend on the results."""

RATE, BURST = 10_000, 1000
TOLERANCE = 0.005
"""What trials and bounds may be off by: a busy machine's stalls, and the frame at either end of a trial."""

AGAIN = (69, 75, 130, -2, -9)
"""Exit statuses that ask for another attempt: infrastructure, testbed not available, stopped, killed."""

BLAME = dict.fromkeys(("controller", "lease", "TG"), (0, *AGAIN)) | {"DUT": (0, 1)}
LIMIT = 120.0
LEASE = 4.0


class Lab:
    """A local testbed of a worker, and a small disk for the results."""

    def __init__(self, directory: Path, name: str) -> None:
        text = (ROOT / "topologies" / "local.yaml").read_text()
        self.file = directory / "topology.yaml"
        text = text.replace("name: local", f"name: {name}").replace("catch_up: 5 ms", "catch_up: 50 ms")
        self.file.write_text(f"{text}reservation: {{lease: {LEASE:g} s}}\n")
        self.disk = directory / "disk"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", self.disk], check=True)
        self.clock = directory / "clock"
        self.clock.write_text("0")
        self.topology = load_topology(self.file)
        self.local = LocalTestbed.up(self.topology, keep=True)

    def log(self, run: str) -> Path:
        """The file of what a run prints."""
        return self.disk.with_name(f"{run}.log")

    def on(self, node: str, *words: str, check: bool = True) -> str:
        return self.with_session(node, lambda session: session.run(*words, check=check).stdout)

    def with_session(self, node: str, act: Callable[[NodeSession], Any]) -> Any:
        with NodeSession.connect(node, self.local.topology.nodes[node]) as session:
            return act(session)

    def state(self) -> dict[str, Any]:
        """What a run must leave as it was."""
        links = json.loads(self.on("DUT1", "ip", "-json", "link")) + json.loads(self.on("TG", "ip", "-json", "link"))
        return {
            "agents": self.with_session("TG", agents),
            "rules": self.on("DUT1", "nft", "list", "ruleset"),
            "links": sorted((link["ifname"], link.get("mtu"), link.get("master")) for link in links),
            "holder": str(self.with_session("TG", lambda session: holder_of(session, make_claim(self.topology)))),
        }

    def close(self) -> None:
        self.local.down()
        subprocess.run(["umount", "--lazy", self.disk], check=False)


@dataclass
class Attempt:
    """One process of a run, into the run's directory."""

    lab: Lab
    directory: Path
    arguments: list[str]

    def __post_init__(self) -> None:
        # Not on the disk that may be full.
        self.log = self.lab.log(self.directory.name).open("ab")
        command = [sys.executable, "-m", "lossratio", "run", *self.arguments]
        paths = f"{ROOT / 'libraries'}:{Path(__file__).parent / 'clock'}"
        environment = {**os.environ, "PYTHONPATH": paths, "CHAOS_CLOCK": str(self.lab.clock)}
        self.process = subprocess.Popen(
            command, env=environment, stdout=self.log, stderr=self.log, start_new_session=True
        )

    def wait(self) -> int | None:
        """The exit status; None: it did not end in time, and was killed."""
        try:
            return self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None
        finally:
            self.log.close()

    def journal(self) -> list[bytes]:
        """Whole lines of the journal, the header among them."""
        files = sorted((self.directory / "trials").glob("*.jsonl"))
        data = files[0].read_bytes() if files else b""
        return data.split(b"\n")[:-1]


@dataclass(frozen=True)
class Plan:
    """What is random about a run."""

    number: int
    test: str
    size: str
    fault: Fault
    in_set_up: bool
    delay: float

    @classmethod
    def of(cls, seed: int, number: int) -> Plan:
        random = Random(f"{seed}:{number}")
        # Each fault comes as often as the others, whatever the number of runs.
        fault = FAULTS[(seed + number) % len(FAULTS)]
        in_set_up = random.random() < 0.15
        delay = random.uniform(0.3, 2.5) if in_set_up else random.uniform(0.0, 4.0)
        return cls(number, random.choice(list(TESTS)), random.choice(("64B", "512B")), fault, in_set_up, delay)

    def __str__(self) -> str:
        when = f"{self.delay:.2f} s after its {'start' if self.in_set_up else 'first trial'}"
        return f"{self.test} of {self.size}, {self.fault.name} {when}"


def play(lab: Lab, plan: Plan, random: Random) -> tuple[list[int | None], list[str]]:
    """One run with its fault: the exit statuses of all attempts, and what is wrong."""
    before = lab.state()
    directory = lab.disk / f"run-{plan.number}"
    robot = ["--outputdir", str(directory), "--variable", f"SIZE:{plan.size}", "--test", plan.test]
    begun = ["--topology", str(lab.file), str(Path(__file__).parent / "suite.robot"), "--", *robot]
    attempt = Attempt(lab, directory, begun)
    deadline = time.monotonic() + LIMIT
    while not plan.in_set_up and len(attempt.journal()) < 2 and attempt.process.poll() is None:
        assert time.monotonic() < deadline, "no trial was measured"
        time.sleep(0.01)
    time.sleep(plan.delay)
    seen = attempt.journal()
    has_struck = attempt.process.poll() is None
    if has_struck:
        plan.fault.strike(lab, attempt, random)
    statuses = [attempt.wait()]
    plan.fault.mend(lab)
    journals = [seen, attempt.journal()]
    while statuses[-1] in AGAIN and len(statuses) < 4:
        again = (directory / "trials").exists() or (directory / "run.json").exists()
        attempt = Attempt(lab, directory, ["--resume", str(directory), "--wait", "30s"] if again else begun)
        statuses.append(attempt.wait())
        journals.append(attempt.journal())
    side = plan.fault.side if has_struck else "nobody"
    problems = [*wrong_statuses(side, statuses), *losses(side, journals)]
    if statuses[-1] == 0:
        problems += wrong_results(plan, side, directory, journals[-1])
    after = settled(lab, before)
    problems += [f"{name} was {before[name]!r}, is {after[name]!r}" for name in before if before[name] != after[name]]
    if not problems:
        shutil.rmtree(directory)
    return statuses, problems


def wrong_statuses(side: str, statuses: list[int | None]) -> Iterator[str]:
    allowed = BLAME.get(side, (0,))
    if statuses[0] not in allowed:
        yield f"a fault of the {side} ended with {statuses[0]}"
    last = statuses[-1]
    if last not in ((0, 1) if side == "DUT" else (0,)):
        yield f"the run ended with {last} after all"


def losses(side: str, journals: list[list[bytes]]) -> Iterator[str]:
    for earlier, later in pairwise(journals):
        if later[: len(earlier)] != earlier and side != "DUT":
            kept = next((n for n, (a, b) in enumerate(zip(earlier, later, strict=False)) if a != b), len(later))
            yield f"of {len(earlier)} lines of the journal only the first {kept} are there later"


def wrong_results(plan: Plan, side: str, directory: Path, journal: list[bytes]) -> Iterator[str]:
    files = sorted((directory / "results").glob("*.json"))
    if len(files) != 1:
        yield f"there are {len(files)} results"
        return
    result = json.loads(files[0].read_bytes())
    trials = [json.loads(line) for line in journal[1:]]
    if len(result["trials"]) != len(trials):
        yield f"the result has {len(result['trials'])} trials, and the journal {len(trials)}"
    if len({trial["time"] for trial in trials}) != len(trials):
        yield "trials of the journal have the same time"
    asked = TESTS[plan.test]
    if asked is not None and len(trials) != asked:
        yield f"there are {len(trials)} trials instead of {asked}"
    if side != "DUT":
        for number, trial in enumerate(trials, start=1):
            load, duration = trial["input"]["load"], trial["input"]["duration"]
            loss_ratio, true = trial["output"]["loss_ratio"], max(0.0, 1.0 - (RATE + BURST / duration) / load)
            # While the sender stands still, the policer's bucket may be full, and take no more.
            stall = max(direction["lateness"] or 0.0 for direction in trial["output"]["directions"])
            if not -TOLERANCE <= loss_ratio - true <= TOLERANCE + stall / duration:
                yield f"trial {number} of {duration} s at {load:.0f} fps lost {loss_ratio:.3%}, and should {true:.3%}"
    for report in result.get("goals", ()):
        yield from wrong_bounds(report["result"], RATE + BURST / report["goal"]["final_trial_duration_s"])


def wrong_bounds(goal: dict[str, Any], truth: float) -> Iterator[str]:
    if not goal["regular"]:
        yield f"the result is not regular: {goal['reason']}"
        return
    low, high = (goal[f"relevant_{which}_bound"]["per_interface_fps"] for which in ("lower", "upper"))
    if not low * (1 - TOLERANCE) <= truth <= high * (1 + TOLERANCE):
        yield f"the bounds {low:.0f} to {high:.0f} do not enclose {truth:.0f}"


def settled(lab: Lab, wanted: dict[str, Any]) -> dict[str, Any]:
    """The state of the testbed, once that is as it should be, or a lease's length has passed."""
    deadline = time.monotonic() + 2 * LEASE
    while (state := lab.state()) != wanted and time.monotonic() < deadline:
        time.sleep(0.2)
    return state


def work(worker: int, seed: int, numbers: Any, answers: Any) -> None:
    """Plays runs on a testbed of its own, until there are no more numbers."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        os.environ["XDG_STATE_HOME"] = directory
        lab = Lab(Path(directory), f"chaos{worker}-{os.getpid()}")
        try:
            while (number := numbers.get()) is not None:
                plan = Plan.of(seed, number)
                started = time.monotonic()
                try:
                    statuses, problems = play(lab, plan, Random(f"{seed}:{number}:fault"))
                except (AssertionError, LossRatioError, OSError) as error:
                    statuses, problems = [], [f"{type(error).__name__}: {error}"]
                log = lab.log(f"run-{number}").read_text(errors="replace") if problems else ""
                answers.put((plan.number, str(plan), statuses, problems, log, time.monotonic() - started))
                if problems:
                    lab.close()
                    lab = Lab(Path(tempfile.mkdtemp(dir=directory)), f"chaos{worker}-{os.getpid()}-{number}")
        finally:
            lab.close()
            answers.put(None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="no run begins after that")
    parser.add_argument("--runs", type=int, default=100_000, help="how many runs at most")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    parser.add_argument("--only", type=int, metavar="K", help="play the K-th run, and no other")
    parser.add_argument("--workers", type=int, default=1, help="testbeds side by side")
    options = parser.parse_args()
    if os.environ.get("CHAOS_MOUNTS") != "own":
        # Disks of its own, which are gone with it.
        os.environ["CHAOS_MOUNTS"] = "own"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])  # noqa: S606
    print(f"Chaos with seed {options.seed}.", flush=True)
    numbers, answers = multiprocessing.Queue(2), multiprocessing.Queue()
    arguments = (options.seed, numbers, answers)
    workers = [multiprocessing.Process(target=work, args=(worker, *arguments)) for worker in range(options.workers)]
    for worker in workers:
        worker.start()
    deadline = time.monotonic() + 60.0 * options.minutes
    feed = [options.only] if options.only is not None else range(options.runs)
    upcoming, passed, failed, busy = iter(feed), 0, 0, len(workers)
    waiting = 0
    while busy:
        while waiting < options.workers and upcoming is not None:
            number = next(upcoming, None) if time.monotonic() < deadline else None
            if number is None:
                upcoming = None
                for _ in workers:
                    numbers.put(None)
            else:
                numbers.put(number)
                waiting += 1
        answer = answers.get()
        if answer is None:
            busy -= 1
            continue
        waiting -= 1
        number, description, statuses, problems, log, seconds = answer
        passed, failed = passed + (not problems), failed + bool(problems)
        print(f"{number:4} {seconds:5.1f} s  {description}: {' then '.join(map(str, statuses))}", flush=True)
        for problem in problems:
            print(f"     WRONG: {problem}", flush=True)
        if log:
            print("     | " + "\n     | ".join(log.strip().splitlines()[-25:]), flush=True)
    print(f"Seed {options.seed}:\n{passed} passed, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
