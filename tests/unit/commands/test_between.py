"""`lossratio between CLIENT SERVER`: the path between two hosts is found and measured from their names."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from ssh_server import RELAY, SSHD, Server, private_command
from waiting import PATIENCE, wait_until

from lossratio.commands.between import between
from lossratio.errors import NodeError, TopologyError
from lossratio.nodes import NO_CREDENTIALS
from lossratio.results import RunDirectory
from lossratio.testbed import Host, HostPath, find_host_path
from lossratio.testbed.hosts import HostPort
from lossratio.testbed.reservation import make_claim
from lossratio.topology import load_topology
from lossratio.trials import read_journal

needs_root = [pytest.mark.netns, pytest.mark.skipif(os.geteuid() != 0, reason="names of namespaces need root")]
PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "between.md").read_text()
*BUILD, MEASURE = PAGE.split("## Try it")[1].split("```sh\n")[1].split("```")[0].strip().splitlines()
# What the page builds, and an address of the server that leads nowhere. The client forwards, as many hosts do.
HOSTS = "\n".join(
    (
        "set -e",
        "mount -t tmpfs tmpfs /run",
        # The reservations of this machine.
        "mount -t tmpfs tmpfs /var/tmp",
        *BUILD,
        "ip link add eth9 netns server type veth peer name spare netns router",
        "ip -n server address add 10.0.9.2/24 dev eth9",
        "ip netns exec client sysctl -qw net.ipv4.ip_forward=1",
        'exec "$@"',
    )
)


def in_lab(tmp_path, *command):
    return subprocess.run(
        ["unshare", "--mount", "--net", "--propagation", "private", "sh", "-c", HOSTS, "sh", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def told(tmp_path, *words):
    return in_lab(tmp_path, sys.executable, "-m", "lossratio", "between", *words)


@pytest.mark.parametrize(
    ("text", "name", "fields"),
    [
        ("netns:clab-lab-h1", "clab-lab-h1", {"netns": "clab-lab-h1"}),
        ("container:web", "web", {"container": "web"}),
        ("pod:default/web-0/server", "default_web-0_server", {"pod": "default/web-0/server"}),
        ("root@192.0.2.7", "192.0.2.7", {"host": "192.0.2.7", "username": "root"}),
        ("bob@h1:2222", "h1", {"host": "h1", "username": "bob", "sudo": True, "port": 2222}),
        ("host:h1", "h1", {"host": "h1"}),
    ],
)
def test_a_name_is_a_namespace_a_container_or_a_host(text, name, fields, monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    monkeypatch.setattr("lossratio.testbed.hosts.os.geteuid", lambda: 0)
    host = Host.named(text)
    assert (host.name, dict(host.fields)) == (name, fields)


@pytest.mark.parametrize("text", ["netns:a", "container:a"])
@pytest.mark.parametrize(("user_id", "needs_sudo"), [(0, False), (1000, True)])
def test_the_user_id_says_who_needs_sudo_here_and_no_name_in_the_environment(text, user_id, needs_sudo, monkeypatch):
    monkeypatch.setattr("lossratio.testbed.hosts.os.geteuid", lambda: user_id)
    monkeypatch.setenv("LOGNAME", "root" if user_id else "tester")
    assert Host.named(text).fields.get("sudo", False) is needs_sudo


def test_the_topology_of_hosts_with_long_names_can_be_read(tmp_path):
    names = [f"instance-{number}.europe-west1-b.c.a-project-with-a-long-name.internal" for number in (1, 2)]
    ends = [
        HostPort(Host.named(f"root@{name}"), f"eth{number}", f"10.0.0.{number}/24", None, "10.0.0.0/24")
        for number, name in enumerate(names, 1)
    ]
    file = tmp_path / "between.yaml"
    file.write_text(yaml.safe_dump(HostPath(*ends, others=()).topology({"kind": "afpacket"})))
    topology = load_topology(file)
    assert list(topology.tg_names) == names
    assert topology.name.startswith(f"{names[0]}-instance-2.")


def test_a_user_without_a_name_on_this_machine_names_hosts_and_claims_testbeds(monkeypatch):
    def nobody():
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr("getpass.getuser", nobody)
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    assert Host.named("host:h1").fields["sudo"]
    claim = make_claim(load_topology("local"))
    assert claim is not None
    assert claim.owner == f"4711@{socket.gethostname()}"


@pytest.mark.parametrize("text", ["netns:", "container:", "host:", "a@b@c", "h1:port"])
def test_a_name_that_is_none_is_refused(text):
    with pytest.raises(TopologyError):
        Host.named(text)


@pytest.mark.parametrize(
    ("text", "meant"), [("clab-lab-h2", True), ("clab-lba-h1", True), ("netns:clab-lba-h1", True), ("elsewhere", False)]
)
def test_a_misspelt_namespace_names_the_nearest(text, meant, tmp_path, monkeypatch):
    (tmp_path / "clab-lab-h1").touch()
    monkeypatch.setattr("lossratio.testbed.hosts.NETNS_DIRECTORY", tmp_path)

    def unknown(*_arguments):
        raise NodeError(f"Node {text}: the host name cannot be resolved.")

    monkeypatch.setattr("lossratio.testbed.hosts.NodeSession.connect", unknown)
    with pytest.raises(TopologyError if meant else NodeError) as error:
        Host.named(text).connect(NO_CREDENTIALS)
    assert ("Did you mean 'clab-lab-h1'?" in str(error.value)) is meant


def test_one_end_is_no_path():
    done = CliRunner().invoke(between, ["netns:a", "netns:a"])
    assert "Both ends are a" in str(done.exception)


ENDS = (
    ("root@127.0.0.1:2201", "root@127.0.0.1:2202", ["127.0.0.1-2201", "127.0.0.1-2202"]),
    ("lab", "lab:2222", ["lab-22", "lab-2222"]),
    ("netns:a", "container:a", ["a-netns", "a-container"]),
    ("h1", "h2", ["h1", "h2"]),
)


@pytest.mark.parametrize(("client", "server", "names"), ENDS)
def test_two_ends_of_one_name_are_told_apart(client, server, names, monkeypatch):
    """So are hosts behind one address, whose sshds have a port each."""
    asked = []

    def asked_for(host, _credentials):
        asked.append(host.name)
        return contextlib.nullcontext()

    monkeypatch.setattr(Host, "connect", asked_for)
    with pytest.raises(AttributeError):
        find_host_path(Host.named(client), Host.named(server))
    assert asked == names


@pytest.mark.parametrize(("client", "server"), [("bob@h1:22", "h1"), ("netns:a", "netns:a")])
def test_one_end_under_two_names_is_no_path(client, server):
    with pytest.raises(TopologyError, match="Both ends are"):
        find_host_path(Host.named(client), Host.named(server))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The measurement of the page."""
    path = tmp_path_factory.mktemp("between")
    assert MEASURE.startswith("lossratio between client server")
    done = told(path, *shlex.split(MEASURE)[2:], "--output", "out")
    assert done.returncode == 0, done.stderr + done.stdout
    return path, done.stdout


@pytest.mark.netns
@pytest.mark.quiet
@needs_root[1]
def test_a_policer_between_two_hosts_is_enclosed_from_their_names(measured):
    path, said = measured
    assert "From client (eth1, 10.0.1.2/24, next hop 10.0.1.1)" in said
    assert "to   server (eth1, 10.0.2.2/24, next hop 10.0.2.1)." in said
    (result,) = RunDirectory(path / "out").results()
    ndr = result.goals[0]
    # In a trial of half a second pass a second's half, and a burst of 40: twice that in a second.
    truth = 2000.0 + 40.0 / ndr.goal.final_trial_duration_s
    assert ndr.result.relevant_lower_bound.per_interface_fps <= truth * 1.02
    assert ndr.result.relevant_upper_bound.per_interface_fps >= truth * 0.98
    assert (path / "out" / "lossratio.html").stat().st_size > 10_000


@pytest.mark.netns
@pytest.mark.quiet
@needs_root[1]
def test_the_topology_file_that_is_kept_is_in_order(measured):
    path, _ = measured
    topology = load_topology(path / "out" / "topology.yaml")
    assert (topology.tg_names, topology.addresses) == (("client", "server"), "lab")


@pytest.mark.smoke
@pytest.mark.netns
@needs_root[1]
def test_save_writes_the_file_and_sends_nothing_and_a_host_without_a_way_is_named(tmp_path):
    done = told(tmp_path, "client", "server", "--max-load", "800 fps", "--catch-up", "50ms", "--save", "lab.yaml")
    assert done.returncode == 0, done.stderr
    generator = load_topology(tmp_path / "lab.yaml").nodes["client"].generator
    assert (generator.max_rate, generator.catch_up) == (800.0, 0.05)
    nodes = yaml.safe_load((tmp_path / "lab.yaml").read_text())["nodes"]
    assert nodes["server"]["interfaces"]["server"] == {
        "link": "east",
        "name": "eth1",
        "address": "10.0.2.2/24",
        "gateway": "10.0.2.1",
    }
    assert not (tmp_path / "results").exists()
    away = told(tmp_path, "client", "server", "--to", "10.0.9.2")
    assert away.returncode == 2
    assert "There is no path between client and server" in away.stderr


@pytest.mark.netns
@pytest.mark.quiet
@needs_root[1]
def test_only_the_run_with_the_same_path_and_options_is_continued(measured, tmp_path):
    path, _ = measured
    out = path / "out"
    other = told(tmp_path, "client", "server", "--max-load", "9 kfps", "--resume", str(out))
    assert (other.returncode, "cannot be continued" in other.stderr) == (2, True)


@pytest.mark.netns
@pytest.mark.quiet
@needs_root[1]
def test_a_stopped_run_says_how_to_continue_and_then_measures_nothing_twice(tmp_path):
    words = [sys.executable, "-m", "lossratio", "between", "client", "server", "--max-load", "4 kfps", "--one-way"]
    begun = 'while [ "$(cat out/trials/*.jsonl | wc -l)" -lt 3 ]; do sleep 0.1; done 2>/dev/null'
    script = "\n".join(
        (
            f"{shlex.join([*words, '--output', 'out'])} & run=$!",
            f"timeout 120 sh -c {shlex.quote(begun)}",
            "kill -TERM $run",
            "wait $run",
            'test "$?" -eq 130 || exit 99',
            "cp out/trials/*.jsonl stopped",
            f"exec {shlex.join([*words, '--resume', 'out'])}",
        )
    )
    done = in_lab(tmp_path, "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert "To continue, repeat the command with --resume out" in done.stderr
    (journal,) = (tmp_path / "out" / "trials").glob("*.jsonl")
    assert journal.read_text().startswith((tmp_path / "stopped").read_text())
    assert read_journal(journal).withdrawn == ()
    (found,) = RunDirectory(tmp_path / "out").results()
    assert len(found.trials) == len(read_journal(journal).results)


@pytest.mark.netns
@needs_root[1]
def test_a_network_that_forwards_nothing_gets_only_advice_that_can_be_followed(tmp_path):
    words = [sys.executable, "-m", "lossratio", "between", "client", "server"]
    drop = "ip netns exec router nft add rule ip police forward drop"
    done = in_lab(tmp_path, "sh", "-c", f"{drop}\nexec {shlex.join(words)}")
    assert done.returncode in (1, 69), done.stderr
    assert "--probe" not in done.stderr


def told_after(tmp_path, deed, *words):
    """What is said of the lab of the page, in which something was done at the router first."""
    command = [sys.executable, "-m", "lossratio", "between", "client", "server", *words]
    return in_lab(tmp_path, "sh", "-c", f"{deed}\nexec {shlex.join(command)}")


@pytest.mark.netns
@needs_root[1]
def test_a_network_that_loses_frames_at_any_load_has_no_value_and_the_exit_status_says_so(tmp_path):
    drop = "ip netns exec router nft add rule ip police forward numgen inc mod 4 == 0 drop"
    done = told_after(tmp_path, drop, "--max-load", "1 kfps")
    assert done.returncode == 1, done.stderr
    assert "no load was found" in done.stdout


@pytest.mark.netns
@needs_root[1]
def test_packets_that_are_cut_into_fragments_are_named_with_the_way_out(tmp_path):
    small = "ip -n router route change 10.0.2.0/24 dev east mtu 600"
    done = told_after(tmp_path, small, "--frame-size", "1518")
    assert done.returncode == 1, done.stderr
    assert "client>server: 50 truncated or padded" in done.stderr
    assert done.stderr.rstrip().endswith(
        "The network cuts these packets into fragments, because an MTU on the way is smaller than they are. Send "
        "smaller frames, or raise that MTU."
    )


RUNS = 3


def undisturbed(path, measure):
    """What is said by a run during which the host took no CPU from this machine; its results are in `out`."""
    for _ in range(RUNS):
        shutil.rmtree(path / "out", ignore_errors=True)
        done = measure()
        if "of a CPU from it" not in " ".join((done.stdout + done.stderr).split()):
            return done
    pytest.skip(f"in each of {RUNS} runs, the host took CPU from this machine")


@pytest.mark.netns
@pytest.mark.quiet
@needs_root[1]
def test_each_direction_of_a_network_has_its_own_bound_and_the_slower_one_is_named(tmp_path):
    limits = "s/iifname west limit rate over 2000/iifname west limit rate over 6000/; s/over 2000/over 1500/"
    police = f"sed '{limits}' police.nft > two.nft; ip netns exec router nft flush ruleset"
    load = f"{police}; ip netns exec router nft -f two.nft"
    options = ("--per-direction", "--max-load", "8 kfps", "--output", "out")
    done = undisturbed(tmp_path, partial(told_after, tmp_path, load, *options))
    assert done.returncode == 0, done.stderr
    (result,) = RunDirectory(tmp_path / "out").results()
    # A burst of 40 gets through in each trial of half a second.
    truth = {"": 1580.0, " client>server": 6080.0, " server>client": 1580.0}
    for part, limit in truth.items():
        lower, upper = (bound.per_interface_fps for bound in result.goal_named(f"QUICK_NDR{part}").bounds)
        assert lower <= limit * 1.02
        assert upper >= limit * 0.98
    said = " ".join(done.stdout.split())
    assert "by server>client alone" in said
    assert "by client>server alone" not in said


@pytest.mark.netns
@pytest.mark.quiet
@pytest.mark.whole
@needs_root[1]
def test_a_quota_is_named_with_what_helps_and_nobody_is_told_to_stop_other_work(tmp_path):
    group = Path(f"/sys/fs/cgroup/cpu/lossratio-{os.getpid()}")
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no cgroup of its own can be made here")
    try:
        (group / "cpu.cfs_quota_us").write_text("25000")
        join = f"echo $$ > {group}/cgroup.procs"
        options = ("--max-load", "10 kfps", "--output", "out")
        for _ in range(RUNS):
            done = undisturbed(tmp_path, partial(told_after, tmp_path, join, *options))
            results = RunDirectory(tmp_path / "out").results()
            # Where all frames left, the quota kept nobody waiting, and there is nothing to name.
            if not results or any(trial.missing.unsent for result in results for trial in result.trials):
                break
        else:
            pytest.skip(f"in none of {RUNS} runs did the quota keep a frame back")
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()
    told = " ".join((done.stdout + done.stderr).split())
    assert re.search("he CPU quota of the cgroup of (client|server) stopped its programs", told)
    assert "aise the quota (cpu.max of the cgroup" in told
    assert "other work" not in told


def assert_encloses_the_policer(path):
    """In a trial of half a second pass a second's half, and a burst of 40."""
    (result,) = RunDirectory(path / "out").results()
    lower, upper = (bound.per_interface_fps for bound in result.goals[0].bounds)
    assert lower <= 2080.0 * 1.02
    assert upper >= 2080.0 * 0.98


KUBECTL = """#!/bin/sh
while [ "$1" != -- ]; do pod=$1; shift; done
shift
exec ip netns exec "$pod" "$@"
"""
CRICTL = """#!/bin/sh
cat server.pid
"""


@pytest.mark.netns
@pytest.mark.quiet
@pytest.mark.whole
@needs_root[1]
def test_ends_in_a_pod_and_in_a_container_are_measured_as_namespaces_are(tmp_path):
    for name, program in (("kubectl", KUBECTL), ("crictl", CRICTL)):
        (tmp_path / name).write_text(program)
        (tmp_path / name).chmod(0o755)
    options = ["--max-load", "2300 fps", "--one-way", "--output", "out"]
    command = [sys.executable, "-m", "lossratio", "between", "pod:lab/client", "container:server", *options]
    begin = 'export PATH="$PWD:$PATH"; ip netns exec server sleep 900 & echo $! > server.pid'
    script = f"{begin}\n{shlex.join(command)}; status=$?; kill $(cat server.pid); exit $status"
    done = in_lab(tmp_path, "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert_encloses_the_policer(tmp_path)


# An end that is reached by SSH needs its default route for other things.
LOG_IN = """
ip -n client route add 10.0.2.0/24 via 10.0.1.1; ip -n client route del default
ip -n server route add 10.0.1.0/24 via 10.0.2.1; ip -n server route del default
for node in client server; do ip netns exec $node {sshd} 2> $node.log & echo $! > $node.pid; done
"""


@pytest.mark.netns
@pytest.mark.quiet
@pytest.mark.whole
@needs_root[1]
@pytest.mark.skipif(not SSHD, reason="no sshd on this machine")
def test_hosts_that_only_a_proxy_command_reaches_are_measured_by_their_names(tmp_path, monkeypatch):
    (tmp_path / ".ssh").mkdir()
    server = Server(tmp_path, tmp_path)
    server.close()
    (tmp_path / "relay.py").write_text(RELAY)
    (tmp_path / "known").write_text(f"lab {server.host_key}\n")
    relay = f"{sys.executable} {tmp_path}/relay.py 127.0.0.1 {server.port}"
    names = "".join(
        f"Host {name}\nProxyCommand ip netns exec {node} {relay}\n"
        for name, node in (("h1", "client"), ("h2", "server"))
    )
    every = f"IdentityFile {tmp_path}/user_key\nUserKnownHostsFile {tmp_path}/known\nHostKeyAlias lab\n"
    (tmp_path / ".ssh" / "config").write_text(f"{names}Host *\n{every}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    sshd = shlex.join(private_command([SSHD, "-D", "-f", str(tmp_path / "config")], tmp_path))
    options = ["--max-load", "2300 fps", "--one-way", "--output", "out", "--python", sys.executable]
    command = shlex.join([sys.executable, "-m", "lossratio", "between", "h1", "h2", *options])
    done = in_lab(
        tmp_path, "sh", "-c", f"{LOG_IN.format(sshd=sshd)}\n{command}; status=$?; kill $(cat *.pid); exit $status"
    )
    assert done.returncode == 0, done.stderr
    assert_encloses_the_policer(tmp_path)


NAT = """
ip netns exec router nft 'add table ip nat; add chain ip nat out { type nat hook postrouting priority 100; }'
ip netns exec router nft 'add rule ip nat out oifname "east" masquerade'
"""


@pytest.mark.netns
@pytest.mark.quiet
@needs_root[1]
def test_a_network_that_translates_addresses_is_refused_and_measured_where_the_user_says_so(tmp_path):
    # A frame that the server sends first makes those of the client answers, which are not translated.
    refused = told_after(tmp_path, NAT, "--one-way")
    assert refused.returncode == 1, refused.stderr
    assert "only the IPv4 source address differs: 10.0.1.2 before, 10.0.2.1 after" in refused.stderr
    assert "'lossratio between' has --translates" in refused.stderr
    done = told_after(tmp_path, NAT, "--translates", "--one-way", "--max-load", "4 kfps", "--output", "out")
    assert done.returncode == 0, done.stderr
    (result,) = RunDirectory(tmp_path / "out").results()
    lower, upper = (bound.per_interface_fps for bound in result.goals[0].bounds)
    assert lower <= 2080.0 * 1.02
    assert upper >= 2080.0 * 0.98


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--hold", "abc"], "--hold"),
        (["--goals", "csit", "--soak", "1min"], "leave --goals out"),
        (["--latency", "--soak", "1min"], "leave --soak out"),
        (["--resume", "a", "--output", "b"], "leave --output and --save out"),
        (["--save", "lab.yaml"], "lab.yaml already exists. Name another file, or remove it."),
        (["--resume", "a"], "There is no run to continue in a: it has no topology.yaml."),
        (["--output", "full"], "full has the results of another run. Name another directory, or continue that run"),
        (["--to", "foo"], "'foo' is not an IP address"),
        (["--frame-size", "9"], "frame size"),
        (["--max-load", "100 fps"], "--max-load must be above 100 fps, the smallest load of the search."),
        (["host:h1", "--python", "a\nb"], "--python: "),
        (["--key-file", "missing"], "File 'missing' does not exist. Check the path, "),
        (["host:h1:99999"], "port"),
    ],
)
def test_mistakes_are_found_before_anybody_logs_in(words, why, lossratio, tmp_path, monkeypatch):
    def connected(*_arguments):
        raise AssertionError("somebody logs in")

    monkeypatch.setattr("lossratio.testbed.hosts.NodeSession.connect", connected)
    (tmp_path / "lab.yaml").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a-result.json").touch()
    server = ["netns:b"] if words[0].startswith("-") else []
    done = lossratio("between", "netns:a", *server, *words)
    assert (done.status, done.out, why in done.err) == (2, "", True), done.err
    assert not (tmp_path / "results").exists()
