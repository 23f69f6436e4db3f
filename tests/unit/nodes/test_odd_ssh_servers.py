"""Servers that refuse, write, wait or stand behind others: each has one sentence, with the way out."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
import yaml
from at_least_one import at_least_one
from ports import free_port
from ssh_server import RELAY, SSHD, needs_sshd, private_command, wait_until_listening

from lossratio.errors import NodeError
from lossratio.nodes import NodeSession
from lossratio.topology import Interface, Node

pytestmark = needs_sshd


@contextmanager
def odd_server(server, directory, *settings):
    """Another sshd with the keys of a server, and settings of its own."""
    directory.mkdir(exist_ok=True)
    port = free_port()
    config = (server.directory / "config").read_text().replace(f":{server.port}\n", f":{port}\n")
    config = "".join(line for line in config.splitlines(keepends=True) if not line.startswith("SetEnv"))
    (directory / "config").write_text("\n".join((*settings, config)))
    command = private_command([SSHD, "-D", "-e", "-f", str(directory / "config")], directory)
    with (directory / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            wait_until_listening(port, process)
            yield port
        finally:
            process.kill()


def said(server, **changes):
    with pytest.raises(NodeError) as error, server.connect(**changes):
        pass
    return str(error.value)


@pytest.mark.whole
def test_a_server_that_allows_one_session_is_named_at_the_log_in(server, tmp_path):
    with odd_server(server, tmp_path, "MaxSessions 1") as port:
        assert said(server, port=port) == (
            "Node DUT1: its sshd refuses a further session; cannot run `true`. Raise MaxSessions in its sshd_config "
            "(10 is usual), and reload sshd."
        )


@pytest.mark.whole
def test_a_shell_that_writes_is_named_with_what_it_writes(server, tmp_path):
    chatty = 'ForceCommand echo "Welcome to h1"; sh -c "$SSH_ORIGINAL_COMMAND"'
    with odd_server(server, tmp_path, chatty) as port:
        told = said(server, port=port)
    assert "its shell writes 'Welcome to h1' before the output of every command" in told
    assert "~/.bashrc" in told


@pytest.mark.whole
def test_a_banner_and_a_server_without_sftp_do_no_harm(server, tmp_path):
    (tmp_path / "banner").write_text("Authorized use only.\n" * 50)
    with odd_server(server, tmp_path, f'Banner "{tmp_path}/banner"') as port, server.connect(port=port) as session:
        session.put(b"abc", str(tmp_path / "put"))
        assert session.get(str(tmp_path / "put")) == b"abc"


def test_a_slow_server_is_given_up_in_time_with_the_way_out(server):
    with socket.create_server(("127.0.0.1", 0)) as slow:
        told = said(server, port=slow.getsockname()[1], connect_timeout=0.3)
    assert told.endswith(
        "the log-in was not finished within 0.3 s. Look at the load of the node and at the network to it, or "
        "raise its connect_timeout."
    )


def test_an_agent_without_keys_is_nothing_to_log_in_with(server, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(tmp_path / "agent")], stdout=subprocess.DEVNULL) as agent:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        told = said(server, key_file=None)
        agent.kill()
    assert "no key in the agent" in told
    assert told.endswith("Name the key_file, or give the agent a key: ssh-add.")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"key_file": "other_key"}, r"log-in refused \(key .*other_key\)\. Check the user name"),
        ({"port": None}, r"connection refused\. Is sshd running there, and is this its port\?"),
    ],
)
def test_a_wrong_key_and_a_closed_port_have_their_ways_out(server, change, why):
    changes = {name: server.directory / value if name == "key_file" else free_port() for name, value in change.items()}
    with pytest.raises(NodeError, match=why), server.connect(**changes):
        pass


def config(server, home, way, **names):
    """The SSH configuration of a user who knows the server as ``lab``."""
    (home / ".ssh").mkdir(exist_ok=True)
    (home / ".ssh" / "known").write_text(f"lab {server.host_key}\n[127.0.0.1]:{server.port} {server.host_key}\n")
    known = f"UserKnownHostsFile {home}/.ssh/none {home}/.ssh/known\nStrictHostKeyChecking yes"
    keys = f'IdentityFile "{server.directory}/user_key"\n{known}'
    text = f"Host lab\nHostName 127.0.0.1\nPort {server.port}\nHostKeyAlias lab\n{keys}\n{way}\n"
    text += "".join(f"Host {name}\nHostName 127.0.0.1\nPort {port}\n{keys}\n" for name, port in names.items())
    (home / ".ssh" / "config").write_text(text)


def node_of(name):
    return Node(type="DUT", host=name, interfaces={"port0": Interface(link="link0", name="eth0")})


@pytest.mark.whole
@pytest.mark.parametrize("way", ["", "ProxyJump bastion", "ProxyCommand nc {host} %p", "ProxyJump none"])
def test_a_name_of_the_configuration_leads_to_its_host(server, tmp_path, monkeypatch, way):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    line = way.format(host="%h")
    if line.startswith("ProxyCommand"):
        relay = tmp_path / "relay.py"
        relay.write_text(RELAY)
        line = f"ProxyCommand {sys.executable} {relay} %h %p"
    config(server, tmp_path, line, bastion=server.port)
    with NodeSession.connect("DUT1", node_of("lab")) as session:
        assert session.run("echo", "here").stdout == "here\n"


@pytest.mark.whole
def test_a_bastion_that_closes_is_named_with_what_ssh_says(server, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    config(server, tmp_path, "ProxyJump bastion", bastion=free_port())
    with pytest.raises(NodeError) as error, NodeSession.connect("DUT1", node_of("lab")):
        pass
    told = str(error.value)
    assert "through 'bastion')" in told
    assert "the connection through the bastion or the ProxyCommand failed: ssh: connect to host 127.0.0.1 port" in told
    assert "Connection refused" in told


@pytest.mark.whole
def test_a_server_behind_a_bastion_answers_for_itself(server, tmp_path, monkeypatch):
    """A refused log-in at the host is no fault of the bastion."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    config(server, tmp_path, "ProxyJump bastion", bastion=server.port)
    node = node_of("lab").model_copy(update={"key_file": server.directory / "other_key"})
    with pytest.raises(NodeError, match="log-in refused"), NodeSession.connect("DUT1", node):
        pass


@contextmanager
def standing_at(server, directory, settings):
    """The port of a server with these settings, of one that never answers, or of none.

    The way to it may be a bastion that closes.
    """
    if settings in ("closed", "bastion"):
        yield free_port()
    elif settings == "slow":
        with socket.create_server(("127.0.0.1", 0)) as slow:
            yield slow.getsockname()[1]
    else:
        with odd_server(server, directory, *settings) as port:
            yield port


SUITE = """*** Settings ***
Library    lossratio    dut=black_box
*** Test Cases ***
Search
    Find NDR And PDR    frame_size=128B
"""


def told_by_each(lossratio, server, home, port, key, monkeypatch, host="127.0.0.1"):
    """What `check`, `run` and `between` say about a path whose first end is this server, on one line each."""
    known = home / "known"
    known.write_text("".join(f"[127.0.0.1]:{each} {server.host_key}\n" for each in (port, server.port)))
    file = server.directory / key
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    reached = {"type": "TG", "host": "127.0.0.1", "port": server.port, "key_file": str(file), "known_hosts": str(known)}
    west = {"client": {"link": "west", "name": "eth1", "address": "10.0.1.2/24"}}
    east = {"server": {"link": "east", "name": "eth1", "address": "10.0.2.2/24"}}
    first = {**reached, "host": host, "generator": {"kind": "afpacket", "max_rate": "10 kfps"}, "interfaces": west}
    # A name of the configuration has its port there.
    first["port"] = port
    if host != "127.0.0.1":
        del first["port"]
    nodes = {
        "h1": first,
        "between": {"type": "DUT", "interfaces": {"west": {"link": "west"}, "east": {"link": "east"}}},
        "h2": {**reached, "interfaces": east},
    }
    lab = {"format": "lossratio-topology/1", "name": "lab", "addresses": "lab", "nodes": nodes}
    (home / "lab.yaml").write_text(yaml.safe_dump(lab))
    (home / "suite.robot").write_text(SUITE)
    root = host if host != "127.0.0.1" else f"127.0.0.1:{port}"
    commands = (
        ["check", "lab.yaml", "--connect"],
        ["run", "suite.robot", "--topology", "lab.yaml", "--output", "out"],
        ["between", root, f"127.0.0.1:{server.port}", "--key-file", str(file), "--known-hosts", str(known)],
    )
    for command in commands:
        done = lossratio(*command)
        assert done.status != 0
        yield " ".join((done.out + done.err).split())


@pytest.mark.whole
@pytest.mark.parametrize(
    ("settings", "key", "why"),
    [
        (["MaxSessions 1"], "user_key", "its sshd refuses a further session; cannot run `true`. Raise MaxSessions"),
        ([], "other_key", "). Check the user name, and that the user's authorized_keys has the key."),
        (['ForceCommand echo hi; sh -c "$SSH_ORIGINAL_COMMAND"'], "user_key", "its shell writes 'hi' before"),
        ("closed", "user_key", "connection refused. Is sshd running there, and is this its port?"),
        ("slow", "user_key", "the log-in was not finished within 10 s. Look at the load of the node"),
        (
            "bastion",
            "user_key",
            "the connection through the bastion or the ProxyCommand failed: ssh: connect to host 127.0.0.1",
        ),
    ],
)
def test_check_run_and_between_say_the_same(lossratio, server, tmp_path, monkeypatch, settings, key, why):
    with standing_at(server, tmp_path, settings) as port:
        host = "127.0.0.1"
        if settings == "bastion":
            host = "lab"
            config(server, tmp_path, "ProxyJump bastion", bastion=port)
        for told in at_least_one(told_by_each(lossratio, server, tmp_path, port, key, monkeypatch, host)):
            assert why in told


@pytest.mark.whole
@pytest.mark.parametrize("oddity", ["Banner", "no SFTP"])
def test_what_does_no_harm_is_no_word_in_check_run_and_between(lossratio, server, tmp_path, monkeypatch, oddity):
    """They get as far as the interface, which this machine lacks, and as the path from it to itself."""
    assert "sftp" not in (server.directory / "config").read_text()
    (tmp_path / "banner").write_text("Authorized use only.\n" * 50)
    settings = [f'Banner "{tmp_path}/banner"'] if oddity == "Banner" else []
    with standing_at(server, tmp_path, settings) as port:
        words = ("there is no interface 'eth1'", "there is no interface 'eth1'", "There is no path between")
        said = told_by_each(lossratio, server, tmp_path, port, "user_key", monkeypatch)
        for told, word in zip(said, words, strict=True):
            assert word in told
            assert "Authorized" not in told
            assert "sshd" not in told
