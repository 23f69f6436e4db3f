"""Faults that strike a run on a local testbed, and the side that each of them is to be blamed on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from testbed_processes import agents, lose_connections

from lossratio.errors import LossRatioError
from lossratio.testbed.reservation import make_claim
from lossratio.testbed.reservation.lease import clear

if TYPE_CHECKING:
    from chaos import Attempt, Lab

TAKE_PATH = "/run/lossratio"
"""Where a local testbed keeps its reservation, on the TG node."""


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong while a run measures."""

    name: str
    """What it is called."""
    side: str
    """Who is to blame: ``controller``, ``lease``, ``TG`` or ``DUT``."""
    strike: Callable[[Lab, Attempt, Random], None]
    """Does it."""
    mend: Callable[[Lab], None] = lambda lab: None
    """Makes it good again, before the run is resumed. What lossratio has to mend by itself is not in here."""


def kill_controller(lab: Lab, attempt: Attempt, random: Random) -> None:
    attempt.process.kill()


def interrupt(lab: Lab, attempt: Attempt, random: Random) -> None:
    for _ in range(random.randint(1, 5)):
        if attempt.process.poll() is None:
            os.killpg(attempt.process.pid, signal.SIGINT)
        time.sleep(random.uniform(0.02, 0.5))


def freeze_controller(lab: Lab, attempt: Attempt, random: Random) -> None:
    attempt.process.send_signal(signal.SIGSTOP)
    time.sleep(random.uniform(0.2, 8.0))
    attempt.process.send_signal(signal.SIGCONT)


def fill_disk(lab: Lab, attempt: Attempt, random: Random) -> None:
    attempt.directory.mkdir(exist_ok=True)
    # A journal in the last free block may still grow; that is for luck to decide.
    with open(attempt.directory / "full", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def free_disk(lab: Lab) -> None:
    for file in lab.disk.glob("*/full"):
        file.unlink()


def turn_clock(lab: Lab, attempt: Attempt, random: Random) -> None:
    replacement = lab.clock.with_suffix(".new")
    replacement.write_text(str(random.choice((-1, 1)) * random.uniform(5, 1e6)))
    replacement.replace(lab.clock)


def turn_clock_back(lab: Lab) -> None:
    lab.clock.write_text("0")


def remove_lease(lab: Lab, attempt: Attempt, random: Random) -> None:
    lab.on("TG", "sh", "-c", f"rm -f {TAKE_PATH}/*")


def overwrite_lease(lab: Lab, attempt: Attempt, random: Random) -> None:
    text = random.choice(("{}", "", "[1, 2", '{"ticket": "x", "lease": {"token": 7}}'))
    lab.on("TG", "sh", "-c", f'for file in {TAKE_PATH}/*; do [ -f "$file" ] && echo "$0" > "$file"; done; true', text)


def take_lease(lab: Lab, attempt: Attempt, random: Random) -> None:
    clear_lease(lab)


def clear_lease(lab: Lab) -> None:
    lab.with_session("TG", lambda session: clear(session, make_claim(lab.topology), force=True))


def kill_agent(lab: Lab, attempt: Attempt, random: Random) -> None:
    signal_agents(lab, "KILL", random)


def freeze_agent(lab: Lab, attempt: Attempt, random: Random) -> None:
    signal_agents(lab, "STOP", random)


def signal_agents(lab: Lab, name: str, random: Random) -> None:
    """Sends a signal to one of the agent's processes: itself, or one of its senders."""
    pids = lab.with_session("TG", agents)
    if pids:
        lab.on("TG", "kill", f"-{name}", random.choice(pids), check=False)


def starve(lab: Lab, attempt: Attempt, random: Random) -> None:
    """The agent and its senders stand still, 3 of 4 times for longer than they can make up for."""
    pids = " ".join(lab.with_session("TG", agents))
    times, pause = random.randint(20, 80), random.uniform(0.06, 0.2)
    turn = f"kill -STOP {pids}; sleep {pause:.3f}; kill -CONT {pids}; sleep {pause / 3.0:.3f}"
    if pids:
        lab.on("TG", "sh", "-c", f"(for turn in $(seq {times}); do {turn}; done) </dev/null >/dev/null 2>&1 &")


def lose_ssh(lab: Lab, attempt: Attempt, random: Random) -> None:
    try:
        lab.with_session(random.choice(("TG", "DUT1")), lose_connections)
    except LossRatioError:
        # Its own connection is among those that are lost.
        return


def flap(node: str, interface: str) -> Callable[[Lab, Attempt, Random], None]:
    def strike(lab: Lab, attempt: Attempt, random: Random) -> None:
        lab.on(node, "ip", "link", "set", "dev", interface, "down")
        time.sleep(random.uniform(0.05, 1.5))
        lab.on(node, "ip", "link", "set", "dev", interface, "up")

    return strike


def command(node: str, *words: str) -> Callable[[Lab, Attempt, Random], None]:
    return lambda lab, attempt, random: lab.on(node, *words, check=False)


def repaired(node: str, *words: str) -> Callable[[Lab], None]:
    return lambda lab: lab.on(node, *words, check=False)


def link(interface: str, *words: str) -> tuple[str, ...]:
    return ("ip", "link", "set", "dev", interface, *words)


DROP = "table bridge gap { chain all { type filter hook forward priority -10; policy drop; }; }"

FAULTS = (
    Fault("controller killed", "controller", kill_controller),
    Fault("Ctrl-C, once or more", "controller", interrupt),
    Fault("controller frozen for a while", "controller", freeze_controller),
    Fault("controller's disk full", "controller", fill_disk, free_disk),
    Fault("controller's clock turned", "controller", turn_clock, turn_clock_back),
    Fault("lease removed", "lease", remove_lease),
    Fault("lease overwritten", "lease", overwrite_lease, clear_lease),
    Fault("lease taken by force", "lease", take_lease),
    Fault("agent or sender killed", "TG", kill_agent),
    Fault("agent or sender frozen", "TG", freeze_agent),
    Fault("connections lost", "TG", lose_ssh),
    Fault("TG port down and up", "TG", flap("TG", "tg0")),
    Fault("TG port down", "TG", command("TG", *link("tg1", "down")), repaired("TG", *link("tg1", "up"))),
    Fault("TG MTU", "TG", command("TG", *link("tg0", "mtu", "300")), repaired("TG", *link("tg0", "mtu", "9216"))),
    Fault("DUT port down and up", "DUT", flap("DUT1", "dut1")),
    Fault(
        "DUT MTU", "DUT", command("DUT1", *link("dut0", "mtu", "300")), repaired("DUT1", *link("dut0", "mtu", "9216"))
    ),
    Fault("DUT port out of its bridge", "DUT", command("DUT1", *link("dut0", "nomaster"))),
    Fault("DUT rules gone", "DUT", command("DUT1", "nft", "flush", "ruleset")),
    Fault(
        "DUT drops everything", "DUT", command("DUT1", "nft", DROP), repaired("DUT1", "nft", "delete table bridge gap")
    ),
)

STARVED = Fault("generator starved", "TG", starve)

DUT_CHANGES = tuple(fault for fault in FAULTS if fault.side == "DUT")
NOT_OF_DUT = tuple(fault for fault in FAULTS if fault.side != "DUT")
STOPS = tuple(fault for fault in FAULTS if fault.strike in (kill_controller, interrupt))
"""Faults that end the controller before it looks at the DUT again."""
