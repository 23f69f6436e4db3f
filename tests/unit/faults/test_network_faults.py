"""Real faults in the midst of a measurement: it is repaired, or fails with one clear error; the next one goes on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from local_testbeds import LOCAL, needs_testbed

ROOT = Path(__file__).parents[3]
# All scenarios, one after the other, took 183 s on a busy machine.
pytestmark = [pytest.mark.netns, pytest.mark.timeout(900), needs_testbed]
REPAIRED = {
    "agent_killed": "agent",
    "sshd_killed_and_back": r"the connection (was|is) lost",
    "port_down_and_up": "The TG is to blame: interface tg0 of TG was set down",
}
SURVIVED = ("black_hole_for_a_while", "tg_disk_full")
FAILED = {
    "black_hole_for_ever": r"TrafficError: Node TG.* 3 repairs did not help",
    "reservation_taken_away": r"ReservationLostError: Node TG: .* somebody has released it",
    "dut_port_down_and_up": r"DutError: The DUT is to blame: interface dut1 of DUT1 was set down",
    "dut_taken_apart": r"DutError: DUT1 .*dut0",
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What came of all scenarios, one after the other on one testbed, in a network namespace where packets may drop."""
    directory = tmp_path_factory.mktemp("faults")
    topology = directory / "topology.yaml"
    text = LOCAL.read_text()
    text = text.replace("name: local", "name: faults").replace(
        "    type: TG\n", "    type: TG\n    connect_timeout: 3 s\n"
    )
    topology.write_text(text)
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    private = ["unshare", *user, "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    # A disk that is full stays so: the other faults come on top.
    scenarios = ["tg_disk_full", "black_hole_for_a_while", *REPAIRED, *FAILED]
    command = [sys.executable, str(Path(__file__).with_name("network_faults.py")), str(topology), str(directory)]
    done = subprocess.run(
        [*private, *command, *scenarios],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'libraries'}:{ROOT / 'tests' / 'unit'}",
            "XDG_STATE_HOME": str(directory / "state"),
        },
        timeout=870,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *lines, left = map(json.loads, done.stdout.splitlines())
    return {**{line["scenario"]: line for line in lines}, "left": left}


@pytest.mark.parametrize("scenario", REPAIRED)
def test_repairable_faults_are_repaired_and_reported(outcomes, scenario):
    came = outcomes[scenario]
    assert (came["error"], came["trials"]) == (None, 4)
    assert re.search(REPAIRED[scenario], came["repairs"][0])


@pytest.mark.parametrize("scenario", SURVIVED)
def test_faults_that_are_short_or_harm_no_trial_cost_none(outcomes, scenario):
    came = outcomes[scenario]
    assert (came["error"], came["trials"]) == (None, 4)
    # TCP may take as long again to notice that packets get through, so that the agent is not waited for.
    assert len(came["repairs"]) <= (scenario == "black_hole_for_a_while")


@pytest.mark.parametrize("scenario", FAILED)
def test_faults_that_cannot_be_repaired_are_one_clear_error_and_keep_the_trials(outcomes, scenario):
    came = outcomes[scenario]
    assert 1 <= came["trials"] < 4
    assert re.match(FAILED[scenario], came["error"])


@pytest.mark.parametrize("scenario", [*REPAIRED, *SURVIVED, *FAILED])
def test_the_next_measurement_goes_on(outcomes, scenario):
    assert outcomes[scenario]["afterwards"] == {"error": None, "trials": 1, "repairs": []}


def test_nothing_is_left_behind(outcomes):
    assert outcomes["left"] == {"agents": 0, "rules": ""}
