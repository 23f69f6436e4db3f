"""What the nodes of a local testbed are like."""

import ast
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from local_testbeds import LOCAL, local_topology
from pydantic import ValidationError
from testbed_probes import LIBRARIES, OrdinaryUser, make_topology
from waiting import PATIENCE

from lossratio.bpf import why_impossible
from lossratio.errors import NodeError, TopologyError
from lossratio.nodes import NodeSession
from lossratio.testbed.local import LocalTestbed, describe
from lossratio.topology import load_topology

pytestmark = pytest.mark.netns

SEND = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
    out.bind((sys.argv[1], 0))
    for n in range(10):
        out.send(b"\\xff" * 12 + b"\\x88\\xb5" + bytes([n]) + bytes(int(sys.argv[2]) - 15))
"""
RECEIVE = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as incoming:
    incoming.bind((sys.argv[1], 3))
    incoming.settimeout(float(sys.argv[2]))
    print("ready", flush=True)
    try:
        for n in range(10):
            frame = incoming.recv(65536)
            print(len(frame), frame[12:14].hex(), frame[14], flush=True)
    except TimeoutError:
        print("silence", flush=True)
"""


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    """A TG and two DUTs, for tests that change nothing there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with LocalTestbed.up(make_topology("ring", duts=2)) as testbed:
            yield testbed


@pytest.fixture
def session(ring):
    with NodeSession.connect("TG", ring.topology.nodes["TG"]) as session:
        yield session


def test_the_topology_that_comes_with_the_project_can_be_built():
    with LocalTestbed.up(load_topology(LOCAL)) as testbed:
        tg = testbed.topology.nodes["TG"]
        with NodeSession.connect("TG", tg) as session:
            assert session.run("id", "-u").stdout == "0\n"
            assert session.run(tg.generator.python, "-c", "import numpy; print('here')").stdout == "here\n"


@pytest.mark.smoke
def test_every_node_has_its_own_interfaces_and_no_others(ring):
    assert ring.topology.nodes
    for name, node in ring.topology.nodes.items():
        expected = {interface.name for interface in node.interfaces.values()} | {"lo"}
        with NodeSession.connect(name, node) as session:
            links = json.loads(session.run("ip", "-json", "link").stdout)
            assert {link["ifname"] for link in links} == expected
            assert set(session.run("ls", "/sys/class/net").stdout.split()) == expected
            for link in links:
                assert "UP" in link["flags"]
                if link["ifname"] != "lo":
                    assert (link["mtu"], link["operstate"]) == (9216, "UP")


@pytest.mark.parametrize("length", [64, 1518, 9000])
def test_frames_pass_over_a_link_and_nothing_else_does(ring, length):
    nodes = ring.topology.nodes
    with (
        NodeSession.connect("TG", nodes["TG"]) as tg,
        NodeSession.connect("DUT1", nodes["DUT1"]) as dut,
        dut.start(sys.executable, "-c", RECEIVE, "dut1w", str(PATIENCE)) as receiver,
    ):
        assert receiver.read_line(PATIENCE) == "ready"
        tg.run(sys.executable, "-c", SEND, "tge", str(length))
        received = [receiver.read_line(PATIENCE) for _ in range(10)]
    assert received == [f"{length} 88b5 {n}" for n in range(10)]


@pytest.fixture
def pair():
    """Sessions on a TG and a DUT that a test may change."""
    with LocalTestbed.up(make_topology()) as testbed:
        nodes = testbed.topology.nodes
        with NodeSession.connect("TG", nodes["TG"]) as tg, NodeSession.connect("DUT1", nodes["DUT1"]) as dut:
            yield tg, dut


def test_a_link_is_silent_by_itself_from_the_beginning(pair):
    tg, dut = pair
    with dut.start(sys.executable, "-c", RECEIVE, "dut1w", "1.5") as receiver:
        assert receiver.read_line(PATIENCE) == "ready"
        tg.run("ip", "link", "set", "tge", "down")
        tg.run("ip", "link", "set", "tge", "up")
        assert receiver.read_line(PATIENCE) == "silence"


def test_a_dut_can_turn_ipv6_on_and_still_does_not_advertise_itself(pair):
    tg, dut = pair
    with tg.start(sys.executable, "-c", RECEIVE, "tge", "1.5") as receiver:
        assert receiver.read_line(PATIENCE) == "ready"
        dut.run("sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/dut1w/disable_ipv6")
        assert receiver.read_line(PATIENCE) == "silence"
    dut.run("ip", "address", "add", "2001:2::1/64", "dev", "dut1w", "nodad")
    assert "2001:2::1" in dut.run("ip", "-6", "address", "show", "dev", "dut1w").stdout


def test_offloads_are_off(session):
    if session.run("sh", "-c", "command -v ethtool", check=False).exit_status != 0:
        pytest.skip("no ethtool to look with")
    features = dict(line.split(":", 1) for line in session.run("ethtool", "-k", "tge").stdout.splitlines()[1:])
    for name in ("rx-checksumming", "tx-checksumming", "scatter-gather", "generic-segmentation-offload"):
        assert features[name].split()[0] == "off", name
    assert features["generic-receive-offload"].split()[0] == "off"
    assert features["\ttx-tcp-segmentation"].split()[0] == "off"


@pytest.mark.skipif(why_impossible() is not None or len(os.sched_getaffinity(0)) < 2, reason="no BPF, or one CPU")
@pytest.mark.skipif(why_impossible() is not None or len(os.sched_getaffinity(0)) < 2, reason="no BPF, or one CPU")
def test_frames_from_the_kernel_go_through_a_dut_in_the_sender_s_own_thread(state_home, tmp_path):
    file = local_topology(tmp_path, "inline")
    file.write_text(file.read_text().replace("kind: afpacket", "kind: auto"))
    with LocalTestbed.up(load_topology(file)) as testbed:
        topology = testbed.topology
        with NodeSession.connect("DUT1", topology.nodes["DUT1"]) as dut:
            # A thread that waits for its turn would lose frames that its ring of 256 has no room for.
            assert dut.run("cat", "/sys/class/net/dut0/threaded").stdout.strip() == "0"
        # The agent leaves a processor to a DUT that is a program.
        assert topology.nodes["TG"].generator.device_cpus == (max(os.sched_getaffinity(0)),)


def test_a_mac_address_and_the_mtu_in_the_file_are_the_interface_s(state_home):
    nodes = make_topology().model_dump(mode="json", exclude_none=True)["nodes"]
    nodes["DUT1"]["interfaces"]["west"]["mac_address"] = "02:00:00:00:00:17"
    with (
        LocalTestbed.up(make_topology(nodes=nodes).model_copy(update={"mtu": 3400})) as testbed,
        NodeSession.connect("DUT1", testbed.topology.nodes["DUT1"]) as session,
    ):
        link = json.loads(session.run("ip", "-json", "link", "show", "dut1w").stdout)[0]
    assert (link["address"], link["mtu"]) == ("02:00:00:00:00:17", 3400)


def test_commands_of_a_dut_work_in_a_node(session):
    session.run("ip", "link", "add", "br0", "type", "bridge")
    session.run("ip", "link", "set", "tge", "master", "br0")
    session.run("nft", "add table bridge filter")
    session.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward && mkdir /run/daemon && echo 1 > /run/daemon/pid")
    session.run("sh", "-c", "ip link del br0; nft delete table bridge filter; rm -r /run/daemon")


def test_files_that_a_node_keeps_end_with_the_node(session):
    command = 'mkdir "$XDG_CACHE_HOME/lossratio" && stat --file-system --format=%T "$XDG_CACHE_HOME/lossratio"'
    assert session.run("sh", "-c", command).stdout.strip() == "tmpfs"


def test_many_can_log_in_at_once(ring):
    errors = []

    def log_in(name):
        try:
            with NodeSession.connect(name, ring.topology.nodes[name]) as session:
                session.run("true")
        except NodeError as error:
            errors.append(error)

    for name in ("TG", "DUT1", "DUT2"):
        # An sshd accepts 10, unless it is told otherwise.
        threads = [threading.Thread(target=log_in, args=(name,)) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert errors == []


def test_a_person_can_log_in_with_ssh_as_described(ring, tmp_path):
    (command,) = [line.split(": ", 1)[1] for line in describe(ring).splitlines() if line.startswith("  DUT2")]
    answer = subprocess.run([*command.split(), "ls /sys/class/net; pwd"], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split() == ["dut2e", "dut2w", "lo", str(Path.home())]
    terminal = subprocess.run([*command.split(), "-tt"], input="tty; exit 7\n", capture_output=True, text=True)
    assert terminal.returncode == 7
    assert "/dev/pts/" in terminal.stdout


def test_ssh_logs_in_also_where_the_state_directory_has_a_blank(tmp_path, monkeypatch):
    if shutil.which("ssh") is None:
        pytest.skip("no ssh client")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "my state, 100 %h"))
    with LocalTestbed.up(make_topology()) as testbed:
        command = ["ssh", "-F", str(testbed.directory / "ssh_config"), "DUT1", "echo", "hello"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


def test_files_can_be_copied_with_sftp(ring, tmp_path):
    if shutil.which("sftp") is None:
        pytest.skip("no sftp client")
    (tmp_path / "here").write_text("text")
    batch = f'put "{tmp_path}/here" "{tmp_path}/there"\nls /sys/class/net\n'
    command = ["sftp", "-F", str(ring.directory / "ssh_config"), "-b", "-", "DUT1"]
    done = subprocess.run(command, input=batch, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "dut1e" in done.stdout
    assert (tmp_path / "there").read_text() == "text"


def test_another_key_is_refused(ring, tmp_path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    node = ring.topology.nodes["TG"].model_copy(update={"key_file": tmp_path / "key"})
    with pytest.raises(NodeError, match="log-in refused"):
        NodeSession.connect("TG", node)


def test_secrets_are_private(ring):
    assert ring.directory.stat().st_mode & 0o777 == 0o700
    assert (ring.directory / "id_ed25519").stat().st_mode & 0o777 == 0o600
    assert ring.directory.parent.stat().st_mode & 0o777 == 0o700


def test_every_node_has_a_host_key_of_its_own(ring):
    assert len({node.host_key for node in ring.topology.nodes.values()}) == 3


def test_testbeds_of_the_same_name_do_not_clash():
    with LocalTestbed.up(make_topology()) as one, LocalTestbed.up(make_topology()) as other:
        for testbed, value in ((one, "101"), (other, "202")):
            with NodeSession.connect("TG", testbed.topology.nodes["TG"]) as session:
                session.run("ip", "link", "set", "dev", "tge", "txqueuelen", value)
        for testbed, value in ((one, "101"), (other, "202")):
            with NodeSession.connect("TG", testbed.topology.nodes["TG"]) as session:
                assert session.run("cat", "/sys/class/net/tge/tx_queue_len").stdout.strip() == value


def test_a_node_that_is_named_so_that_something_may_break_is_refused():
    fields = make_topology().model_dump(mode="json", exclude_none=True)["nodes"]
    with pytest.raises(ValidationError, match="it's a"):
        make_topology(nodes={"TG": fields["TG"], '../it\'s a "DUT"': fields["DUT1"]})


@pytest.mark.timeout(300)
def test_all_of_this_holds_for_an_ordinary_user(state_home):
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become an ordinary user, and needs setpriv")
    user = OrdinaryUser()
    options = ["-q", "-p", "no:cacheprovider", "-m", "netns", "--basetemp", str(state_home / "tmp")]
    command = user.command(sys.executable, "-m", "pytest", *options, __file__)
    done = subprocess.run(command, env=user.environment(state_home), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "2 skipped" in done.stdout, "this test itself, and the one that needs the rights for BPF"


def test_a_topology_of_another_kind_is_refused():
    with pytest.raises(TopologyError, match="testbed: simulated"):
        LocalTestbed.up(load_topology(LOCAL.parent / "simulated.yaml"))


def test_an_interface_without_a_name_is_refused():
    nodes = make_topology().model_dump(mode="json", exclude_none=True)["nodes"]
    nodes["DUT1"]["interfaces"]["west"] = {"link": "link0", "pci_address": "0000:01:00.0"}
    with pytest.raises(TopologyError, match=r"DUT1\.west of a local testbed has no name"):
        LocalTestbed.up(make_topology(nodes=nodes))


def test_the_holder_needs_nothing_but_the_standard_library():
    paths = list((LIBRARIES / "lossratio" / "nodes" / "holder").glob("*.py"))
    assert paths
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                is_own = name.startswith("lossratio.nodes.holder")
                assert is_own or name.split(".")[0] in sys.stdlib_module_names, f"{path.name} imports {name}"
