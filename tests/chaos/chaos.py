"""Strikes random runs with two faults each, and checks journals and results with a reader of its own (`reader.py`).

`make chaos` does so for ten minutes. Each run measures a device whose truth is known, on a local testbed: a bridge with
a policer, or a device that does something wrong to each fiftieth frame. Two faults strike at random instants. Then
they are mended, and the run is resumed until it has ended. The runs are of four kinds in turn: any two faults; the DUT
changes, and then the controller is killed; the generator starves, and the run is compared with one that did not; and a
device that does something wrong. These must hold:

- nothing is lost: each proved line that a journal had when a fault struck is still there;
- nothing is measured twice: a resumed run only appends, and the result has the trials of the journal, each once;
- no wrong blame: a fault of the DUT ends with status 1 or is outlived, any other one is repaired or asks for a resume;
- no wrong number, after a DUT fault neither: each proved trial lost what the device takes away at its load, and the
  bounds enclose the truth;
- each number that deserves a doubt has one, and a starved generator is no regression;
- the digests of journal and result fit;
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
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "unit"), str(Path(__file__).parent)]

import reader  # noqa: E402 (found by the line above)
from faults import DUT_CHANGES, FAULTS, NOT_OF_DUT, STARVED, STOPS, Fault, lose_ssh  # noqa: E402
from reader import BAD_DUTS, Truth  # noqa: E402
from testbed_processes import agents  # noqa: E402

from lossratio.errors import LossRatioError  # noqa: E402
from lossratio.nodes import NodeSession  # noqa: E402
from lossratio.testbed.local import LocalTestbed  # noqa: E402
from lossratio.testbed.reservation import make_claim  # noqa: E402
from lossratio.testbed.reservation.lease import holder_of  # noqa: E402
from lossratio.topology import load_topology  # noqa: E402

TESTS = {"Search": None, "MRR": 25, "Frame Loss": None}
"""Tests of the suite: how many trials they take, where that does not depend on the results."""

BAD_DUT = "Bad DUT"
"""The test of a device that does something wrong; its number of trials is not asked."""

DEVICE = ROOT / "tests" / "unit" / "traffic" / "faulty_device.py"

AGAIN = (69, 75, 130, -2, -9)
"""Exit statuses that ask for another attempt: infrastructure, testbed not available, stopped, killed."""

ALLOWED = {"controller": {0, *AGAIN}, "lease": {0, *AGAIN}, "TG": {0, *AGAIN}, "DUT": {0, 1}}
"""Exit statuses that a fault of a side may have."""

GUILTY = {"controller": {"controller"}, "lease": set(), "TG": {"TG", "wire"}, "DUT": {"DUT", "wire"}}
"""Sides that may be blamed for it: nobody knows which end of a link has lost it."""

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

        self.baseline: Path | None = None
        """A run without a fault, to compare others with."""

    def device(self, truth: Truth) -> Callable[[], None]:
        """Starts a device that does something wrong on the DUT, where one is wanted, and returns how it ends."""
        if truth.kind == "policer":
            return lambda: None
        ports = "for port in dut0 dut1; do ethtool -K $port gro off; ip link set dev $port promisc on; done"
        # It ends where a link goes down below it, and then begins anew.
        turns = '(while "$0" "$@"; [ $? -lt 128 ]; do sleep 0.1; done) </dev/null >/dev/null 2>&1'
        words = (sys.executable, str(DEVICE), "dut0", "dut1", truth.kind)
        pid = self.on("DUT1", "sh", "-c", f"{ports} >/dev/null; {turns} & echo $!", *words).strip()
        back = "for port in dut0 dut1; do ethtool -K $port gro on; ip link set dev $port promisc off; done"
        return lambda: self.on("DUT1", "sh", "-c", f"kill {pid} $(pgrep -P {pid}); {back}", check=False) and None

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
        return self.lines(self.directory)

    @staticmethod
    def lines(directory: Path) -> list[bytes]:
        """The same, of a directory."""
        files = sorted((directory / "trials").glob("*.jsonl"))
        data = files[0].read_bytes() if files else b""
        return data.split(b"\n")[:-1]


@dataclass(frozen=True)
class Plan:
    """What is random about a run."""

    number: int
    test: str
    size: str
    faults: tuple[Fault, Fault]
    truth: Truth
    in_set_up: bool
    delays: tuple[float, float]

    @classmethod
    def of(cls, seed: int, number: int) -> Plan:
        random = Random(f"{seed}:{number}")
        # Each kind of run, and each fault in it, comes as often as the others, whatever the number of runs.
        turn, kind = divmod(seed + number, 4)
        test, size, truth = random.choice(list(TESTS)), random.choice(("64B", "512B")), Truth()
        second = random.choice(FAULTS)
        in_set_up = kind == 0 and random.random() < 0.15
        delays = (random.uniform(0.3, 2.5) if in_set_up else random.uniform(0.0, 4.0), random.uniform(0.0, 2.0))
        if kind == 0:
            faults = (FAULTS[turn % len(FAULTS)], second)
        elif kind == 1:
            faults = (DUT_CHANGES[turn % len(DUT_CHANGES)], random.choice(STOPS))
        elif kind == 2:
            faults, test, size = (STARVED, random.choice(NOT_OF_DUT)), "MRR", "64B"
            # Most starve without another fault: otherwise the second one often ends the starving.
            faults = faults if turn % 3 == 0 else (STARVED, STARVED)
        else:
            # Connections are lost with all processes that the node's first one has adopted, the device among them.
            possible = [fault for fault in NOT_OF_DUT if fault.strike is not lose_ssh]
            faults = (possible[turn % len(possible)], random.choice(possible))
            test, truth = BAD_DUT, BAD_DUTS[turn % len(BAD_DUTS)]
        return cls(number, test, size, faults, truth, in_set_up, delays)

    def __str__(self) -> str:
        when = f"{self.delays[0]:.2f} s after its {'start' if self.in_set_up else 'first trial'}"
        device = "" if self.test != BAD_DUT else f" ({self.truth.kind})"
        first, second = self.faults
        return f"{self.test}{device} of {self.size}, {first.name} {when}, {second.name} {self.delays[1]:.2f} s later"


@dataclass
class Played:
    """What came of a run."""

    statuses: list[int | None]
    struck: list[Fault]
    problems: list[str]


def play(lab: Lab, plan: Plan, random: Random) -> Played:
    """One run with its faults: the exit statuses of all attempts, and what is wrong."""
    before = lab.state()
    end_device = lab.device(plan.truth)
    directory = lab.disk / f"run-{plan.number}"
    begun = arguments(lab, plan, directory)
    attempt = Attempt(lab, directory, begun)
    deadline = time.monotonic() + LIMIT
    while not plan.in_set_up and len(attempt.journal()) < 2 and attempt.process.poll() is None:
        assert time.monotonic() < deadline, "no trial was measured"
        time.sleep(0.01)
    journals: list[list[bytes]] = []
    struck: list[Fault] = []
    for fault, delay in zip(plan.faults, plan.delays, strict=True):
        time.sleep(delay)
        if attempt.process.poll() is None:
            journals.append(attempt.journal())
            struck.append(fault)
            fault.strike(lab, attempt, random)
    statuses = [attempt.wait()]
    for fault in struck:
        fault.mend(lab)
    journals.append(attempt.journal())
    while statuses[-1] in AGAIN and len(statuses) < 4:
        again = (directory / "trials").exists() or (directory / "run.json").exists()
        attempt = Attempt(lab, directory, ["--resume", str(directory), "--wait", "30s"] if again else begun)
        statuses.append(attempt.wait())
        journals.append(attempt.journal())
    end_device()
    problems = [*wrong_statuses(struck, statuses), *losses(struck, journals), *read(lab, plan, directory, struck)]
    if statuses[-1] == 0:
        problems += wrong_report(lab, plan, directory, journals[-1])
    after = settled(lab, before)
    problems += [f"{name} was {before[name]!r}, is {after[name]!r}" for name in before if before[name] != after[name]]
    if not problems:
        shutil.rmtree(directory)
    return Played(statuses, struck, problems)


def arguments(lab: Lab, plan: Plan, directory: Path) -> list[str]:
    suite = "bad_dut.robot" if plan.test == BAD_DUT else "suite.robot"
    robot = ["--outputdir", str(directory), "--variable", f"SIZE:{plan.size}", "--test", plan.test]
    return ["--topology", str(lab.file), str(Path(__file__).parent / suite), "--", *robot]


def wrong_statuses(struck: list[Fault], statuses: list[int | None]) -> Iterator[str]:
    names = " and ".join(fault.name for fault in struck) or "nothing"
    allowed = {0}.union(*(ALLOWED[fault.side] for fault in struck))
    # A change of the DUT that the kill hid may also be found by the next attempt.
    if unexpected := [status for status in statuses if status not in allowed]:
        yield f"{names} ended with {unexpected[0]}"
    if statuses[-1] not in ((0, 1) if 1 in allowed else (0,)):
        yield f"the run ended with {statuses[-1]} after all"


def losses(struck: list[Fault], journals: list[list[bytes]]) -> Iterator[str]:
    for earlier, later in pairwise(journals):
        kept = reader.proved(earlier)
        if earlier and later[: len(kept)] != kept and STARVED not in struck:
            same = next((n for n, (a, b) in enumerate(zip(kept, later, strict=False)) if a != b), len(later))
            yield f"of {len(kept)} proved lines of the journal only the first {same} are there later"


def read(lab: Lab, plan: Plan, directory: Path, struck: list[Fault]) -> Iterator[str]:
    """What is wrong with the journal, whatever the run ended with."""
    lines = Attempt.lines(directory)
    yield from reader.chain(lines)
    trials = reader.trials_of(reader.proved(lines))
    times = [trial["time"] for trial in trials]
    if len(set(times)) != len(times):
        yield "trials of the journal have the same time"
    yield from reader.wrong_trials(trials, plan.truth)
    log = lab.log(directory.name).read_text(errors="replace")
    yield from reader.wrong_blame(log, trials, set().union(*(GUILTY[fault.side] for fault in struck)))


def wrong_report(lab: Lab, plan: Plan, directory: Path, journal: list[bytes]) -> Iterator[str]:
    """What is wrong with the result of a run that passed, and with what is said about it."""
    files = sorted((directory / "results").glob("*.json"))
    if len(files) != 1:
        yield f"there are {len(files)} results"
        return
    trials = reader.trials_of(journal)
    if TESTS.get(plan.test) not in (None, len(trials)):
        yield f"there are {len(trials)} trials instead of {TESTS[plan.test]}"
    status, text = lossratio("report", str(directory), "--format", "json", "--output", "-")
    if status:
        yield f"the report ended with {status}"
        return
    found = json.loads(text)["runs"][0]["results"][0]["notes"]
    yield from reader.wrong_result(
        files[0].read_bytes(), trials, {note["kind"] for note in found if note["weight"] == "doubt"}, plan.truth
    )
    if STARVED in plan.faults:
        status, text = lossratio("compare", str(baseline(lab, plan)), str(directory))
        if status == 3:
            yield f"a starved generator is a regression: {text}"


def baseline(lab: Lab, plan: Plan) -> Path:
    """A run of the plan's test without a fault."""
    if lab.baseline is None:
        directory = lab.disk / "baseline"
        assert Attempt(lab, directory, arguments(lab, plan, directory)).wait() == 0, "the run without a fault failed"
        lab.baseline = directory
    return lab.baseline


def lossratio(*words: str) -> tuple[int, str]:
    """A command of the library: its exit status, and what it prints."""
    command = [sys.executable, "-m", "lossratio", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "libraries")}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout


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
                    played = play(lab, plan, Random(f"{seed}:{number}:fault"))
                except (AssertionError, LossRatioError, OSError, LookupError, ValueError, TypeError) as error:
                    played = Played([], [], [f"{type(error).__name__}: {error}"])
                file = lab.log(f"run-{number}")
                log = file.read_text(errors="replace") if played.problems and file.exists() else ""
                names = [fault.name for fault in played.struck]
                answers.put((number, played.statuses, names, played.problems, log, time.monotonic() - started))
                if played.problems:
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
    counts: Counter[str] = Counter()
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
        number, statuses, names, problems, log, seconds = answer
        plan = Plan.of(options.seed, number)
        passed, failed = passed + (not problems), failed + bool(problems)
        counts.update([*names, f"device: {plan.truth.kind}"])
        print(f"{number:4} {seconds:5.1f} s  {plan}: {' then '.join(map(str, statuses))}", flush=True)
        for problem in problems:
            print(f"     WRONG: {problem}", flush=True)
        if log:
            print("     | " + "\n     | ".join(log.strip().splitlines()[-25:]), flush=True)
    for name, count in sorted(counts.items()):
        print(f"{count:5}  {name}")
    for worker in workers:
        worker.join()
    broken = sum(worker.exitcode != 0 for worker in workers)
    print(f"Seed {options.seed}:\n{passed} passed, {failed} failed, {broken} of {len(workers)} workers broke")
    sys.exit(bool(failed or broken))


if __name__ == "__main__":
    main()
