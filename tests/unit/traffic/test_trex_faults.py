"""What can go wrong with TRex on the agent's side: each is one clear error, and leaves no traffic behind."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from trex_lab import PAIR, SETTINGS, generator, trial
from trex_parts import STLError, TRexError
from trex_stand_in import Server, StandIn

from lossratio.agent.core.protocol import AgentError
from lossratio.agent.trex.connection import TrexLibrary
from lossratio.agent.trex.generator import TrexGenerator
from lossratio.traffic import load_profile, make_configuration

MISMATCH = "RPC version mismatch: a newer client version is required\n(API type 'STL':  - server: '5.1', client: '4.1')"
TAKEN = "Port 0 : *** port is already taken by 'root'\nPort 1 : *** port is already taken by 'root'"
NO_ANSWER = "*** [RPC] - Failed to get server response from tcp://127.0.0.1:4501"
CRASHED = "'get_stats' - connection to the server had been lost: 'subscriber thread has crashed'"
CLIENT = "automation/trex_control_plane/interactive/trex/stl"


@pytest.mark.parametrize("kind", [TRexError, STLError])
@pytest.mark.parametrize(
    ("method", "message", "error", "complaint"),
    [
        ("connect", MISMATCH, "version", r"different versions: .*server: '5\.1', client: '4\.1'.*installation"),
        ("connect", NO_ANSWER, "server_lost", r"does not answer the request to answer: .*hangs\. Kill it.*/pid\."),
        ("acquire", TAKEN, "ports_taken", r"belong to another client: Port 0 .* already taken by 'root'; Port 1"),
        ("reset", NO_ANSWER, "server_lost", r"request to reset the ports"),
        ("add_streams", "Port 0 : *** stream is not valid", "trex", "refused to add streams to port 0"),
    ],
)
def test_a_server_that_cannot_be_used_says_why(kind, method, message, error, complaint):
    server = Server(failures={method: kind(message)})
    with pytest.raises(AgentError, match=complaint) as raised:
        generator(server)
    assert raised.value.kind == error
    assert not server.acquired


def test_ports_that_a_killed_agent_holds_are_taken_on_a_server_of_our_own_only():
    assert with_settings(Server(owner="root"), is_ours=True).facts()["version"]
    with pytest.raises(AgentError, match=r"belong to another client: Port 0 .* already taken by 'root'"):
        with_settings(Server(owner="root"), is_ours=False)


def test_a_server_that_needs_its_time_is_waited_for():
    server = Server(failures={"connect": TRexError(NO_ANSWER)})

    def sleep(seconds):
        server.now += seconds
        if server.now > 2.0:
            server.failures.clear()

    configuration = make_configuration(load_profile("ethip4-udp", frame_size=64), [PAIR], settle_time=0.1)
    TrexGenerator(configuration, SETTINGS, TrexLibrary(StandIn(server), "here"), clock=server.clock, sleep=sleep)
    assert server.acquired


@pytest.mark.parametrize("method", ["start", "get_port_info", "stop", "get_port_stats"])
@pytest.mark.parametrize("kind", [TRexError, STLError, OSError])
def test_a_server_that_dies_mid_trial_is_one_clear_error(method, kind):
    server = Server()
    trex = generator(server)
    server.failures[method] = kind(NO_ANSWER)
    with pytest.raises(AgentError, match="does not answer") as raised:
        trial(server, trex=trex)
    assert raised.value.kind == "server_lost"


def test_one_that_cannot_start_the_second_port_leaves_the_first_one_silent():
    server = Server()
    trex = generator(server)
    server.failures["start"] = TRexError("Port 1 : *** exceeds the port's line rate")
    with pytest.raises(AgentError, match=r"refused to start traffic: .*line rate"):
        trial(server, trex=trex)
    assert server.calls[-1] == "stop"
    server.failures.clear()
    assert trial(server, trex=trex)[0].sent_frames == 10_001


def test_an_error_while_traffic_flows_stops_it():
    # One that is slow is asked whether it still sends.
    server = Server(capacity=5_000.0)
    trex = generator(server)
    server.failures["get_port_info"] = TRexError("cannot tell")
    with pytest.raises(AgentError, match="cannot tell"):
        trial(server, trex=trex)
    assert server.calls[-1] == "stop"


def test_events_that_stop_coming_make_counters_worthless():
    server = Server()
    trex = generator(server)
    trial(server, trex=trex)
    server.is_event_thread_alive = False
    with pytest.raises(AgentError, match="the connection was lost: no more events came"):
        trial(server, trex=trex)


def test_so_does_an_event_thread_that_crashed():
    server = Server()
    trex = generator(server)
    server.failures["get_port_stats"] = TRexError(CRASHED)
    with pytest.raises(AgentError, match="subscriber thread has crashed") as raised:
        trial(server, trex=trex)
    assert raised.value.kind == "server_lost"


def test_an_event_thread_of_the_package_that_crashes_kills_nobody_else():
    class Events:
        is_called = False

        def on_async_crash(self):
            self.is_called = True

    events = Events()
    server = Server()
    library = StandIn(server)
    client = library.STLClient()
    client.event_handler = events
    library.STLClient = lambda **named: client
    configuration = make_configuration(load_profile("ethip4-udp", frame_size=64), [PAIR], settle_time=0.1)
    TrexGenerator(configuration, SETTINGS, TrexLibrary(library, "here"), clock=server.clock, sleep=server.sleep)
    with pytest.raises(SystemExit):
        client.event_handler.on_async_crash()
    assert events.is_called


@pytest.mark.parametrize("jump", [-20_000, 20_000])
def test_counters_that_jump_are_an_error_and_no_result(jump):
    server = Server()
    trex = generator(server)
    server.jump = jump
    with pytest.raises(AgentError, match=r"but at most 1\d+ could be sent. Its counters jumped"):
        trial(server, trex=trex)


def test_counters_that_go_on_after_the_end_are_an_error():
    server = Server(creeping=True)
    with pytest.raises(AgentError, match="still counts sent frames after it was stopped"):
        trial(server)


def test_a_port_whose_link_is_down_is_an_error():
    server = Server()
    trex = generator(server)
    server.link = "DOWN"
    with pytest.raises(AgentError, match="link of TRex's port 0 is down") as raised:
        trial(server, trex=trex)
    assert raised.value.kind == "interface_down"


def test_a_server_with_too_few_ports_is_an_error():
    with pytest.raises(AgentError, match=r"has the ports \[0\], but the traffic needs \[0, 1\]"):
        generator(Server(port_count=1))


def with_settings(server, profile="ethip4-udp", frame_size=64, **settings):
    configuration = make_configuration(load_profile(profile, frame_size=frame_size), [PAIR], settle_time=0.1)
    return TrexGenerator(configuration, replace(SETTINGS, **settings), TrexLibrary(StandIn(server), "here"))


def test_frames_that_the_server_has_no_room_for_are_refused_before_it_is_touched():
    server = Server()
    with pytest.raises(AgentError, match=r"Frames of 9000 bytes are too large: .* for 1900. Use smaller"):
        with_settings(server, frame_size=9000, largest_frame=1900)
    assert server.calls == []


def test_more_flows_than_trex_can_do_are_refused_before_any_traffic():
    server = Server()
    with pytest.raises(AgentError, match="TRex supports 65535 values of a field in random order"):
        with_settings(server, "ethip6-ip6scale2m-rnd", 128)
    assert "start" not in server.calls


def test_linux_interfaces_that_are_not_there_are_refused():
    with pytest.raises(AgentError, match="There is no network interface east on this node"):
        with_settings(Server(), uses_linux=True)


def installation(directory: Path, source: str) -> Path:
    client = directory / CLIENT
    client.mkdir(parents=True)
    (client.parent / "__init__.py").touch()
    (client / "__init__.py").touch()
    (client / "api.py").write_text(source)
    return directory


def loaded(directory: Path) -> str:
    """What a Python of its own, which nothing was imported in before, says about an installation."""
    program = (
        "import sys\n"
        "sys.modules['trex_stl_lib'] = None\n"
        "from lossratio.agent.trex.connection import load_library\n"
        "from lossratio.agent.core.protocol import AgentError\n"
        "try:\n"
        "    library = load_library(sys.argv[1])\n"
        "    print(library.origin, library.api.STLClient)\n"
        "except AgentError as error:\n"
        "    print(error.kind, error)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program, str(directory)], check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.whole
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("STLClient = 'its own client'", "interactive its own client"),
        ("import a_module_that_nobody_has", "missing_module TRex's client in "),
        (
            "raise Exception('Unable to find required external library: zmq')",
            "Unable to find required external library",
        ),
    ],
)
def test_the_client_of_the_installation_is_used_or_the_reason_is_reported(tmp_path, source, reason):
    assert reason in loaded(installation(tmp_path, source))


@pytest.mark.whole
def test_a_server_without_its_client_needs_the_package(tmp_path):
    (tmp_path / "_t-rex-64").touch()
    assert "pip install trex-stl-lib" in loaded(tmp_path)
