"""TRex's server on a node: a stand-in for its program, started, adopted, refused and stopped for real."""

import os
import signal
import socket
import stat
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from local_session import LocalProcess
from ports import free_port
from waiting import wait_until

from lossratio.agent.core.protocol import read_record
from lossratio.agent.trex.connection import TrexSettings
from lossratio.errors import TopologyError, TrafficError
from lossratio.nodes import CommandResult
from lossratio.topology import Interface, Port, TrexGenerator
from lossratio.traffic import AgentRefusalError, GeneratorNode, open_generator, start_agent, trex_server
from lossratio.traffic.generators import trex
from lossratio.traffic.trex_server import ServerPlan, TrexServer, configuration_path

PROGRAM = f"""#!{sys.executable}
import ctypes, os, signal, socket, sys, time
from pathlib import Path

signal.signal(signal.SIGINT, signal.default_int_handler)
behaviour = Path("behaviour").read_text()
if behaviour.startswith("end "):
    sys.exit(int(behaviour[4:]))
if behaviour == "die":
    os.kill(os.getpid(), signal.SIGKILL)
print("Starting  TRex v3.08 please wait  ...", flush=True)
if behaviour.startswith("refuse "):
    print("usage: many lines\\n" * 50 + "EAL: core 7 unavailable\\n You might need to run ./trex-cfg  once", flush=True)
    sys.exit(1)
if behaviour == "slow":
    time.sleep(600)
ctypes.CDLL(None).prctl(15, behaviour.encode(), 0, 0, 0)
listener = socket.create_server(("127.0.0.1", int(Path("port").read_text())))
try:
    time.sleep(600)
except KeyboardInterrupt:
    sys.exit(255)
"""


FRAMES, CONNECTIONS = SimpleNamespace(connects=False), SimpleNamespace(connects=True)


class Here:
    """A session on this machine."""

    name = "TG"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def run(self, *command: str, check: bool = True) -> CommandResult:
        try:
            done = subprocess.run(command, check=check, capture_output=True, text=True)
        except FileNotFoundError as error:
            return CommandResult(command, 127, "", str(error))
        return CommandResult(command, done.returncode, done.stdout, done.stderr)

    def start(self, *command: str) -> LocalProcess:
        stderr = Path(self.directory, "stderr")
        with stderr.open("wb") as file:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file)
        return LocalProcess(process, stderr, self.name)

    def put(self, data: bytes, path: str) -> None:
        Path(path).write_bytes(data)

    def restore(self) -> None:
        pass


@pytest.fixture
def plan(tmp_path):
    directory = tmp_path / "trex"
    directory.mkdir()
    program = directory / "_t-rex-64"
    program.write_text(PROGRAM)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    port = free_port()
    (directory / "port").write_text(str(port))
    (directory / "behaviour").write_text("serve")
    (tmp_path / "states").mkdir()
    state = str(tmp_path / "states" / "trex")
    yield ServerPlan(
        directory=str(directory),
        configuration="- version: 2\n",
        arguments=("-i", "--stl", "--cfg", configuration_path(state)),
        state=state,
        settings=TrexGenerator(kind="trex", rpc_port=port, software=True, start_timeout=240.0),
        sleeps=True,
    )
    if (pid := pid_of(state)) is not None:
        os.kill(pid, signal.SIGKILL)


def pid_of(state):
    """The server's process, if it still runs."""
    try:
        pid = int(Path(state, "pid").read_text().split()[0])
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, IndexError, ProcessLookupError):
        return None
    return pid if configuration_path(state).encode() in command.split(b"\0") else None


@pytest.fixture
def here(tmp_path):
    return Here(tmp_path)


def behave(plan, behaviour):
    Path(plan.directory, "behaviour").write_text(behaviour)


def test_a_server_is_started_in_a_session_of_its_own_and_stopped_by_its_pid(here, plan):
    server = TrexServer(here, plan)
    server.ensure()
    pid = pid_of(plan.state)
    assert os.getsid(pid) == pid
    assert server.is_running()
    assert server.is_ours
    assert Path(plan.state, "config.yaml").read_text() == plan.configuration
    server.stop()
    assert pid_of(plan.state) is None
    assert not server.is_running()
    assert "Starting  TRex" in server.log()


def test_a_server_that_runs_with_the_same_configuration_is_adopted_and_left_running(here, plan):
    TrexServer(here, plan).ensure()
    pid = pid_of(plan.state)
    other = TrexServer(here, plan)
    other.ensure()
    assert not other.is_ours
    other.stop()
    assert pid_of(plan.state) == pid


@pytest.mark.parametrize("change", [{"configuration": "- version: 2\n  c: 4\n"}, {"arguments": ("-i", "--astf")}])
def test_a_server_that_runs_with_another_configuration_is_refused(here, plan, change):
    TrexServer(here, plan).ensure()
    pid = pid_of(plan.state)
    with pytest.raises(TrafficError, match=rf"Node TG: .*another configuration.*kill -INT {pid}"):
        TrexServer(here, replace(plan, **change)).ensure()
    assert pid_of(plan.state) == pid


@pytest.mark.whole
def test_a_server_that_is_refused_stays_refused_and_is_left_running(access, here, plan):
    access.ready()
    access.close()
    state = f"{plan.state}-x"
    somebodys = replace(plan, state=state, arguments=("--cfg", configuration_path(state)))
    TrexServer(here, somebodys).ensure()
    pid = pid_of(state)
    try:
        for _ in range(2):
            with pytest.raises(TrafficError, match=f"another configuration runs there .process {pid}"):
                access.ready()
        access.close()
        assert pid_of(state) == pid
    finally:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.whole
def test_a_server_whose_start_is_interrupted_is_ours_and_stopped(access, plan, monkeypatch):
    def interrupt(server):
        wait_until(lambda: pid_of(f"{plan.state}-x") is not None)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TrexServer, "_wait_until_ready", interrupt)
        with pytest.raises(KeyboardInterrupt):
            access.ready()
    assert read_record(TrexSettings, access.ready()).is_ours
    access.close()
    assert pid_of(f"{plan.state}-x") is None


def test_a_start_that_does_not_reach_the_shell_is_reported_at_once(here, plan):
    class Unreachable(Here):
        """A session on a node whose namespaces are gone."""

        def start(self, *command):
            return super().start("sh", "-c", "echo 'nsenter: cannot open /proc/7/ns/net' >&2; exit 1")

    with pytest.raises(
        TrafficError, match=r"cannot be started \(exit status 1\); .*says: nsenter: cannot open /proc/7"
    ):
        TrexServer(Unreachable(here.directory), plan).ensure()


def test_a_program_that_has_the_server_s_port_is_left_alone(here, plan):
    with (
        socket.create_server(("127.0.0.1", plan.settings.rpc_port)),
        pytest.raises(TrafficError, match=f"TCP port {plan.settings.rpc_port} is in use by a program that"),
    ):
        TrexServer(here, plan).ensure()


def test_a_pid_that_now_is_another_program_s_is_neither_adopted_nor_stopped(here, plan):
    with subprocess.Popen(["sleep", "60"]) as other:
        Path(plan.state).mkdir()
        Path(plan.state, "pid").write_text(f"{other.pid} 1\n")
        server = TrexServer(here, plan)
        server.stop()
        assert other.poll() is None
        server.ensure()
        assert pid_of(plan.state) != other.pid
        other.kill()


def test_a_configuration_that_trex_refuses_is_reported_in_its_own_words(here, plan):
    behave(plan, "refuse it")
    with pytest.raises(TrafficError, match=r"it says: EAL: core 7 unavailable \(exit status 1; log: .*/trex/log\)$"):
        TrexServer(here, plan).ensure()


@pytest.mark.whole
@pytest.mark.parametrize(
    ("behaviour", "complaint"),
    [
        ("die", r"it says: .* \(ended by signal 9; log: .*/trex/log\)$"),
        ("end 3", r"it says: nothing at all \(exit status 3; log: .*/trex/log\)$"),
        ("end 255", r"it says: nothing at all \(exit status 255; log: .*/trex/log\)$"),
    ],
)
def test_the_end_of_a_silent_server_is_reported_at_once_with_its_exit_status(here, plan, behaviour, complaint):
    behave(plan, behaviour)
    # If it waits for an answer, pytest ends the test.
    patient = plan.settings.model_copy(update={"start_timeout": 3600.0})
    with pytest.raises(TrafficError, match=complaint):
        TrexServer(here, replace(plan, settings=patient)).ensure()


def test_a_program_that_cannot_be_run_is_reported_in_the_shell_s_words(here, plan):
    Path(plan.directory, "_t-rex-64").write_text("#!/no/such/interpreter\n")
    with pytest.raises(TrafficError, match=r"it says: .*(not found|No such file).* \(exit status 127; log: "):
        TrexServer(here, plan).ensure()


def test_the_log_of_an_earlier_server_says_nothing_about_this_one(here, plan):
    Path(plan.state).mkdir()
    Path(plan.state, "log").write_text("EAL: an error of yesterday\n")
    Path(plan.state, "status").write_text("1\n")
    server = TrexServer(here, plan)
    server.ensure()
    assert "yesterday" not in server.log()


def test_an_error_of_the_start_is_not_followed_by_last_words(access, plan):
    behave(plan, "refuse it")
    with pytest.raises(TrafficError, match="core 7 unavailable") as raised:
        access.ready()
    access.explain(raised.value)


def test_a_server_that_does_not_get_ready_is_stopped_again(here, plan):
    behave(plan, "slow")
    with pytest.raises(
        TrafficError, match=r"not ready within 1 s; it says: Starting TRex v3\.08 .*\(it still runs; log: "
    ):
        TrexServer(here, replace(plan, settings=plan.settings.model_copy(update={"start_timeout": 1.0}))).ensure()
    assert pid_of(plan.state) is None


def test_a_server_that_dies_can_be_started_again(here, plan):
    server = TrexServer(here, plan)
    server.ensure()
    os.kill(pid_of(plan.state), signal.SIGKILL)
    wait_until(lambda: not server.is_running())
    server.ensure()
    assert server.is_running()


def test_no_directory_says_what_to_set(here, plan):
    with pytest.raises(TrafficError, match=r"no directory '/nowhere'.*or TREX_HOME"):
        TrexServer(here, replace(plan, directory="/nowhere")).ensure()


def test_a_wrong_directory_says_what_it_should_hold(here, plan, tmp_path):
    with pytest.raises(TrafficError, match="has no TRex: there is no _t-rex-64 in it"):
        TrexServer(here, replace(plan, directory=str(tmp_path))).ensure()


def test_cards_without_hugepages_are_refused_before_anything_is_started(here, plan):
    if "HugePages_Total:       0" not in Path("/proc/meminfo").read_text():
        pytest.skip("this machine has hugepages")
    with pytest.raises(TrafficError, match="needs hugepages for its cards, but there are none"):
        TrexServer(here, replace(plan, settings=plan.settings.model_copy(update={"software": False}))).ensure()
    assert not Path(plan.state).exists()


@pytest.fixture
def access(here, plan, monkeypatch):
    """TRex on this machine, as a topology asks for it."""
    monkeypatch.setattr(trex, "STATES", str(Path(plan.state).parent))
    generator = TrexGenerator(
        kind="trex", directory=plan.directory, software=True, rpc_port=plan.settings.rpc_port, prefix="x"
    )
    ports = [Port("TG", f"port{number}", Interface(link=str(number), name=f"eth{number}")) for number in range(2)]
    macs = {"eth0": "02:00:00:00:00:01", "eth1": "02:00:00:00:00:02"}
    opened = open_generator(generator, GeneratorNode(here, macs, 8), ports)
    yield opened
    opened.close()


def test_the_agent_gets_the_address_and_the_ports_of_the_server(access, plan):
    options = read_record(TrexSettings, access.ready())
    assert options.ports == {"eth0": 0, "eth1": 1}
    assert options.late_end == 0.03
    assert (options.directory, options.rpc_port, options.uses_linux) == (plan.directory, plan.settings.rpc_port, True)
    assert "Starting  TRex" in Path(options.log).read_text()
    assert access.ready() == asdict(options)


def test_an_error_after_the_server_s_end_has_its_last_words_and_the_next_one_is_started(access, plan):
    access.ready()
    state = f"{plan.state}-x"
    access.explain(TrafficError("While it runs, there is nothing to add."))
    first = pid_of(state)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: pid_of(state) is None)
    with pytest.raises(TrafficError, match=r"^It is gone\. The TRex server has ended\. Its last output: Starting TRex"):
        access.explain(TrafficError("It is gone."))
    access.ready()
    assert pid_of(state) != first
    access.close()
    assert pid_of(state) is None


@pytest.mark.whole
def test_missing_parts_of_a_tg_are_reported_without_starting_anything(here, plan, monkeypatch):
    def problems(**fields):
        return list(trex.Trex.needs(TrexGenerator(kind="trex", software=True, **fields), here))

    monkeypatch.delenv("TREX_HOME", raising=False)
    (nobody_says, no_python) = problems(python="/bin/false")
    assert "the directory of TRex is not known" in nobody_says
    assert no_python.startswith("'/bin/false' cannot run TRex's client (exit status 1). Set the generator's 'py")
    (nowhere,) = problems(directory="/nowhere", python=sys.executable)[:1]
    assert "no directory '/nowhere'" in nowhere
    assert not any("no TRex" in problem for problem in problems(directory=plan.directory))
    assert not Path(plan.state).exists()


@pytest.mark.parametrize(
    ("prints", "message"),
    [
        ("3.13.0", r"^Node TG: '/[^']+/python' is Python 3\.13\.0, but TRex's client does not run with it\. Set the "),
        ("3.7.16", r"is Python 3\.7\.16, but TRex's client does not .* a Python from 3\.8 to 3\.12 there\.$"),
        ("hello", r"^Node TG: '/[^']+/python' cannot run TRex's client \(exit status 0\)"),
        (None, r"^Node TG: '/[^']+/python' cannot run TRex's client \(.*No such file or directory.*\)\. Set the "),
    ],
)
def test_a_python_that_the_client_cannot_have_is_refused_before_the_agent_is_started(here, tmp_path, prints, message):
    python = tmp_path / "python"
    if prints is not None:
        python.write_text(f"#!/bin/sh\necho {prints}\n")
        python.chmod(0o755)
    with pytest.raises(TopologyError, match=message):
        start_agent(TrexGenerator(kind="trex", python=str(python)), here)
    assert not (tmp_path / "stderr").exists()


@pytest.mark.whole
def test_a_python_that_fits_starts_the_agent(here):
    with start_agent(TrexGenerator(kind="trex", python=sys.executable), here) as agent:
        assert agent.facts.python.startswith("3.")


def test_hugepages_that_are_reserved_for_each_run_are_not_missing(here, plan):
    if "HugePages_Total:       0" not in Path("/proc/meminfo").read_text():
        pytest.skip("this machine has hugepages")
    cards = TrexGenerator(kind="trex", directory=plan.directory, python=sys.executable)
    (problem,) = trex.Trex.needs(cards, here)
    assert "there are none" in problem
    assert list(trex.Trex.needs(cards.model_copy(update={"hugepages": 8192}), here)) == []


@pytest.mark.parametrize(
    ("fields", "late_end"), [({}, 0.001), ({"software": True}, 0.03), ({"late_end": "2 ms"}, 0.002)]
)
def test_cards_may_end_a_trial_later_by_a_millisecond_and_software_by_thirty(fields, late_end):
    assert TrexGenerator(kind="trex", **fields).allowed_late_end == late_end


class Asking:
    """An agent that asks the server, which answers unless it is frozen."""

    def __init__(self, state):
        self._state = state

    def configure(self, configuration, *, generator, options, program):
        status = Path(f"/proc/{pid_of(self._state)}/stat").read_text()
        if status.rpartition(")")[2].split()[0] == "T":
            raise AgentRefusalError("The TRex server does not answer.", "server_lost")
        return {}


def freeze(state):
    pid = pid_of(state)
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    return pid


def test_a_frozen_server_of_ours_is_ended_and_started_anew(access, plan, monkeypatch):
    monkeypatch.setattr(trex_server, "_STOP_SECONDS", 0.2)
    state = f"{plan.state}-x"
    access.ready()
    frozen = freeze(state)
    assert access.configure(Asking(state), FRAMES)["server"]["arguments"]
    assert pid_of(state) not in (None, frozen)


@pytest.mark.whole
def test_a_server_is_started_anew_in_the_mode_for_connections_and_back(access, plan):
    state = f"{plan.state}-x"
    pids = []
    for wanted, mode in ((FRAMES, "--stl"), (CONNECTIONS, "--astf"), (CONNECTIONS, "--astf"), (FRAMES, "--stl")):
        server = access.configure(Asking(state), wanted)["server"]
        assert [argument for argument in server["arguments"] if argument in ("--stl", "--astf")] == [mode]
        assert mode in Path(state, "started-with").read_text()
        pids.append(pid_of(state))
    assert None not in pids
    assert [pids[1] == pids[2], len(set(pids))] == [True, 3]


def test_a_frozen_server_of_somebody_else_is_left_alone(access, plan):
    state = f"{plan.state}-x"
    access.ready()
    access._server.is_ours = False
    frozen = freeze(state)
    try:
        with pytest.raises(AgentRefusalError, match="does not answer"):
            access.configure(Asking(state), FRAMES)
        assert pid_of(state) == frozen
    finally:
        os.kill(frozen, signal.SIGKILL)
