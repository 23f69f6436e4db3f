import os
import signal
import threading

import paramiko
import pytest
from ssh_server import needs_sshd
from waiting import PATIENCE

from lossratio.errors import NodeError
from lossratio.nodes import NodeSession
from lossratio.topology import Node


class TestCommands:
    pytestmark = needs_sshd

    def test_a_result_holds_status_and_both_streams(self, session):
        result = session.run("sh", "-c", "echo out; echo err >&2; exit 7", check=False)
        assert (result.exit_status, result.stdout, result.stderr) == (7, "out\n", "err\n")

    @pytest.mark.parametrize(
        "argument", ["a b", "$HOME", "`id`", "*", "it's", '"', "", "two\nlines", "; exit 9", "-n", "größe", "\\"]
    )
    def test_arguments_arrive_as_they_are(self, session, argument):
        assert session.run("printf", "%s|", argument, "end").stdout == f"{argument}|end|"

    def test_a_failed_command_says_where_what_and_why(self, session):
        with pytest.raises(NodeError) as error:
            session.run("sh", "-c", "echo no such bridge >&2; exit 3")
        assert "DUT1" in str(error.value)
        assert "exit status 3" in str(error.value)
        assert str(error.value).endswith(": no such bridge.")

    def test_a_command_ended_by_a_signal_says_so(self, session):
        # The log-in shell either became the command, or reports its death as 128 + 9.
        with pytest.raises(NodeError, match=r"ended by a signal|exit status 137"):
            session.run("sh", "-c", "kill -9 $$")

    def test_a_hanging_command_is_abandoned_and_the_session_goes_on(self, session):
        with pytest.raises(NodeError, match=r"did not end within 0\.2 s"):
            session.run("sleep", "5", timeout=0.2)
        assert session.run("echo", "still here").stdout == "still here\n"

    def test_much_input_and_output_at_once_do_not_block_each_other(self, session):
        data = os.urandom(3 << 20).hex()
        assert session.run("cat", stdin=data).stdout == data

    def test_much_standard_error_does_not_block(self, session):
        assert len(session.run("sh", "-c", "head -c 5000000 /dev/zero >&2").stderr) == 5_000_000

    def test_a_command_without_input_ends_it_by_itself_so_that_no_end_of_input_comes_after_the_command(
        self, session, monkeypatch
    ):
        # OpenSSH drops the connection then. With other threads at work it was 21 of 1,855 commands.
        ends = []
        monkeypatch.setattr(paramiko.Channel, "shutdown_write", ends.append)
        assert session.run("cat", timeout=PATIENCE).stdout == ""
        assert ends == []

    def test_input_that_nobody_reads_is_no_error(self, session):
        assert session.run("true", stdin=b"x" * (5 << 20)).exit_status == 0

    def test_sudo_is_put_in_front_where_the_node_needs_it(self, server):
        with server.connect(sudo=True) as session:
            result = session.run("echo", "a b")
        assert (result.stdout, result.stderr) == ("a b\n", "as root: -n -- echo a b\n")

    def test_many_commands_run_side_by_side_over_one_session(self, session):
        statuses = []
        threads = [
            threading.Thread(
                target=lambda n=n: statuses.append(session.run("sh", "-c", f"exit {n}", check=False).exit_status)
            )
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(statuses) == list(range(8))


class TestFiles:
    pytestmark = needs_sshd

    def test_a_file_that_was_put_is_got_with_its_mode(self, session, tmp_path):
        data = os.urandom(100_000)
        session.put(data, str(tmp_path / "it's a file"), mode=0o750)
        assert session.get(str(tmp_path / "it's a file")) == data
        assert (tmp_path / "it's a file").stat().st_mode & 0o777 == 0o750
        assert [one.name for one in tmp_path.iterdir()] == ["it's a file"]

    def test_an_empty_file_can_be_put(self, session, tmp_path):
        session.put(b"", str(tmp_path / "empty"))
        assert session.get(str(tmp_path / "empty")) == b""

    def test_a_put_that_fails_leaves_nothing_behind(self, session, tmp_path):
        (tmp_path / "taken").mkdir()
        with pytest.raises(NodeError, match=r"DUT1: cannot write .*taken"):
            session.put(b"data", str(tmp_path / "taken"))
        assert [one.name for one in tmp_path.rglob("*")] == ["taken"]

    def test_a_missing_file_is_named(self, session, tmp_path):
        with pytest.raises(NodeError, match=r"DUT1: cannot read .*absent: .*No such file"):
            session.get(str(tmp_path / "absent"))


class TestProcesses:
    pytestmark = needs_sshd

    def test_lines_go_there_and_back(self, session):
        with session.start("cat") as process:
            for line in ("one", "", "größe", "x" * 200_000):
                process.write_line(line)
                assert process.read_line(PATIENCE) == line
            assert process.exit_status is None

    def test_lines_that_come_together_are_read_one_by_one(self, session):
        with session.start("printf", r"a\nb\nc") as process:
            assert [process.read_line(PATIENCE), process.read_line(PATIENCE)] == ["a", "b"]
            with pytest.raises(NodeError, match="exit status 0"):
                process.read_line(PATIENCE)

    def test_the_end_of_a_process_gives_its_status_and_last_words(self, session):
        with session.start("sh", "-c", "echo no numpy here >&2; exit 4") as process:
            with pytest.raises(NodeError, match=r"DUT1: .*exit status 4: no numpy here"):
                process.read_line(PATIENCE)
            assert process.exit_status == 4
            with pytest.raises(NodeError, match="exit status 4"):
                process.write_line("hello?")

    def test_silence_is_an_error_and_a_late_answer_can_still_be_read(self, session):
        with session.start("sh", "-c", "echo slow >&2; echo ready; read line; echo $line") as process:
            assert process.read_line(PATIENCE) == "ready"
            with pytest.raises(NodeError, match=r"no answer within 0\.2 s: slow"):
                process.read_line(0.2)
            process.write_line("late")
            assert process.read_line(PATIENCE) == "late"

    def test_only_the_tail_of_standard_error_is_kept_and_never_blocks(self, session):
        with session.start("sh", "-c", "head -c 5000000 /dev/zero >&2; echo last >&2; echo done; cat") as process:
            assert process.read_line(PATIENCE) == "done"
            assert process.close(PATIENCE) == 0
            assert process.stderr_tail().endswith("last\n")
            assert len(process.stderr_tail()) <= 8192

    def test_closing_ends_the_input_and_waits_for_the_end(self, session, tmp_path):
        process = session.start("sh", "-c", 'cat > /dev/null; echo bye; touch "$0"; exit 6', str(tmp_path / "ended"))
        assert process.close(PATIENCE) == 6
        assert (tmp_path / "ended").exists()
        assert process.close(PATIENCE) == 6

    def test_a_process_that_does_not_end_is_let_go(self, session):
        process = session.start("sh", "-c", "echo $$; exec sleep 60")
        pid = int(process.read_line(PATIENCE))
        assert process.close(timeout=0.2) is None
        os.kill(pid, signal.SIGKILL)

    def test_endless_output_without_a_line_is_refused(self, session):
        with session.start("sh", "-c", "head -c 20000000 /dev/zero; sleep 60") as process:
            with pytest.raises(NodeError, match="without a line break"):
                process.read_line(PATIENCE)
            process.close(timeout=0.1)

    def test_a_line_with_a_line_feed_is_refused(self, session):
        with session.start("cat") as process, pytest.raises(ValueError, match="line feed"):
            process.write_line("two\nlines")


class TestNamespaces:
    def test_a_session_sees_the_interfaces_of_its_namespace_only(self, namespace, monkeypatch):
        with opened(namespace, monkeypatch, netns="lab") as session:
            assert session.run("ls", "/sys/class/net").stdout.split() == ["lo"]

    def test_a_namespace_that_is_not_there_is_named_beside_those_that_are(self, namespace, monkeypatch):
        known = r"Node DUT1: there is no network namespace 'lba' .*The namespaces are lab\. Did you mean 'lab'\?"
        with pytest.raises(NodeError, match=known):
            opened(namespace, monkeypatch, netns="lba")

    @pytest.mark.parametrize(
        ("sudo", "missing"), [(True, "sudo is missing .*package sudo"), (False, "nsenter is missing .*util-linux")]
    )
    def test_the_program_that_is_missing_is_named_with_its_own_package(
        self, namespace, tmp_path, monkeypatch, sudo, missing
    ):
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(NodeError, match=rf"Node DUT1: {missing}\)\."):
            opened(namespace, monkeypatch, netns="lab", sudo=sudo)

    def test_a_name_whose_process_has_died_is_no_namespace(self, tmp_path, monkeypatch):
        (tmp_path / "lab").symlink_to("/proc/1073741824/ns/net")
        with pytest.raises(NodeError, match="there is no network namespace 'lab'"):
            opened(tmp_path, monkeypatch, netns="lab")

    @pytest.fixture
    def podman(self, namespace, tmp_path, monkeypatch):
        """A stand-in for podman with one container that runs, and one that does not."""
        pid = os.readlink(namespace / "lab").split("/")[2]
        script = f'case $6 in up) echo {pid} ;; down) echo 0 ;; *) echo "no such container" >&2; exit 125 ;; esac'
        (tmp_path / "podman").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "podman").chmod(0o755)
        (tmp_path / "docker").write_text("#!/bin/sh\necho 'no daemon' >&2; exit 1\n")
        (tmp_path / "docker").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def test_a_container_is_entered_by_the_process_that_its_runtime_names(self, namespace, monkeypatch, podman):
        with opened(namespace, monkeypatch, container="up") as session:
            assert session.run("ls", "/sys/class/net").stdout.split() == ["lo"]

    @pytest.mark.parametrize(("tool", "words"), [("nerdctl", "$6"), ("crictl", "$6")])
    def test_containerd_names_the_process_of_a_container(self, namespace, tmp_path, monkeypatch, tool, words):
        pid = os.readlink(namespace / "lab").split("/")[2]
        (tmp_path / tool).write_text(f'#!/bin/sh\n[ "{words}" = up ] && echo {pid}\n')
        (tmp_path / tool).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        with opened(namespace, monkeypatch, container="up") as session:
            assert session.run("ls", "/sys/class/net").stdout.split() == ["lo"]

    @pytest.mark.parametrize(
        ("pod", "asked"),
        [
            ("web-0", "exec -i web-0 -- sh -c"),
            ("lab/web-0", "exec -i -n lab web-0 -- sh -c"),
            ("lab/web-0/server", "exec -i -n lab web-0 -c server -- sh -c"),
        ],
    )
    def test_commands_in_a_pod_are_run_by_kubectl(self, tmp_path, monkeypatch, pod, asked):
        kubectl(
            tmp_path, monkeypatch, 'echo "$*" >> "$0.asked"; while [ "$1" != -- ]; do shift; done; shift; exec "$@"'
        )
        with NodeSession.connect("DUT1", pod_node(pod)) as session:
            session.put(b"abc", str(tmp_path / "file"))
            assert session.get(str(tmp_path / "file")) == b"abc"
            assert session.run("sh", "-c", "exit 3", check=False).exit_status == 3
        assert (tmp_path / "kubectl.asked").read_text().startswith(asked)

    @pytest.mark.parametrize(
        ("script", "why"),
        [
            (
                "echo 'pods \"web\" not found' >&2; exit 1",
                "cannot run commands in pod web: pods .* not found. See 'kube",
            ),
            (
                "echo 'E1201 18:22:29.211392 9939 memcache.go:265] \"Unhandled Error\"' >&2\n"
                "echo 'The connection to the server was refused - did you specify the right port?' >&2; exit 1",
                r"in pod web: The connection to the server was refused - did you specify the right port\. See 'kube",
            ),
            (
                "echo 'command terminated with exit code 127' >&2; exit 127",
                "has no 'ip' .*Python 3.8 and iproute2, and the cap",
            ),
            ("sleep 5", "kubectl did not answer within 0.2 s. Is the cluster up"),
        ],
    )
    def test_a_pod_in_which_nothing_can_be_run_says_why_and_what_to_do(self, tmp_path, monkeypatch, script, why):
        kubectl(tmp_path, monkeypatch, script)
        with pytest.raises(NodeError, match=why):
            NodeSession.connect("DUT1", pod_node("web", connect_timeout=0.2 if "sleep" in script else 10.0))

    def test_a_machine_without_kubectl_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(NodeError, match="commands in pods need kubectl, which this machine does not have"):
            NodeSession.connect("DUT1", pod_node("web"))

    @pytest.mark.parametrize(
        ("name", "why"),
        [
            ("down", "podman: the container is not running. Start it: podman start down"),
            ("gone", "podman: no such container. See 'docker ps' and 'podman ps' for running containers."),
        ],
    )
    def test_a_container_that_cannot_be_entered_says_why_and_what_to_do(
        self, namespace, monkeypatch, podman, name, why
    ):
        with pytest.raises(NodeError, match=rf"container '{name}' cannot be entered: docker: no daemon; {why}$"):
            opened(namespace, monkeypatch, container=name)

    def test_who_must_type_a_password_for_sudo_learns_what_to_do(self, namespace, tmp_path, monkeypatch, podman):
        (tmp_path / "sudo").write_text("#!/bin/sh\necho 'sudo: a password is required' >&2; exit 1\n")
        (tmp_path / "sudo").chmod(0o755)
        told = r"crictl: sudo: a password is required\. Run this as root, or allow 'sudo -n'\.$"
        with pytest.raises(NodeError, match=told):
            opened(namespace, monkeypatch, container="up", sudo=True)

    def test_a_container_cannot_be_entered_without_the_sudo_that_it_needs(self, namespace, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        told = "entering container 'up' needs sudo, which is not installed on this machine. Run this as root"
        with pytest.raises(NodeError, match=told):
            opened(namespace, monkeypatch, container="up", sudo=True)


def kubectl(path, monkeypatch, script):
    """A stand-in for kubectl, first in the PATH."""
    (path / "kubectl").write_text(f"#!/bin/sh\n{script}\n")
    (path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{path}:{os.environ['PATH']}")


def pod_node(pod, **fields):
    return Node(type="DUT", pod=pod, interfaces={"west": {"name": "eth1"}}, **fields)


def opened(names, monkeypatch, **place):
    monkeypatch.setattr("lossratio.nodes.namespaces.NETNS_DIRECTORY", names)
    return NodeSession.connect("DUT1", Node(type="DUT", interfaces={"west": {"name": "eth1"}}, **place))
