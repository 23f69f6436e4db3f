import getpass
import logging
import os
import pwd
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from password_server import password_server

from lossratio.errors import NodeError
from lossratio.ssh import Credentials, NodeSession
from lossratio.topology import Interface, Node, NodeType

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin") or ""
needs_sshd = [pytest.mark.netns, pytest.mark.skipif(not SSHD, reason="no sshd on this machine")]


def make_key(path, kind="ed25519", passphrase=""):
    bits = ["-b", "2048"] if kind == "rsa" else []
    subprocess.run(["ssh-keygen", "-q", "-t", kind, *bits, "-N", passphrase, "-f", path], check=True)
    return Path(f"{path}.pub").read_text().strip()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_listening(port, server):
    for _ in range(500):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert server.poll() is None, "sshd ended at once"
        time.sleep(0.01)
    raise AssertionError("sshd does not listen")


def private_command(command, directory):
    """As root, sshd needs /run/sshd, and the user's shell start-up files would cost a quarter second a command."""
    if os.geteuid() != 0:
        return command
    (directory / "passwd").write_text(
        "root:x:0:0:root:/root:/bin/sh\n"
        + "".join(f"{one.pw_name}:x:{one.pw_uid}:{one.pw_gid}::/:/bin/false\n" for one in pwd.getpwall() if one.pw_uid)
    )
    (directory / "shadow").write_text("root:*:::::::\n")
    script = (
        'mount -t tmpfs none /run && mkdir /run/sshd && mount --bind "$1/passwd" /etc/passwd && '
        'mount --bind "$1/shadow" /etc/shadow && shift && exec "$@"'
    )
    return ["unshare", "--mount", "sh", "-c", script, "sh", str(directory), *command]


class Server:
    def __init__(self, directory, sudo):
        self.port = free_port()
        self.host_key = make_key(directory / "host_key")
        self.rsa_host_key = make_key(directory / "rsa_host_key", "rsa")
        authorized = make_key(directory / "user_key")
        authorized += "\n" + make_key(directory / "locked_key", passphrase="open sesame")
        (directory / "authorized_keys").write_text(authorized + "\n")
        make_key(directory / "other_key")
        (directory / "config").write_text(
            f"ListenAddress 127.0.0.1:{self.port}\nHostKey {directory}/host_key\nHostKey {directory}/rsa_host_key\n"
            f"AuthorizedKeysFile {directory}/authorized_keys\nStrictModes no\nUsePAM no\nPidFile none\n"
            f"PasswordAuthentication no\nSetEnv PATH={sudo}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/bin\n"
        )
        self.directory = directory
        with (directory / "log").open("wb") as log:
            command = private_command([SSHD, "-D", "-e", "-f", str(directory / "config")], directory)
            self.process = subprocess.Popen(command, stderr=log)
        wait_until_listening(self.port, self.process)

    def node(self, **changes):
        fields = {
            "type": NodeType.DUT,
            "host": "127.0.0.1",
            "port": self.port,
            "key_file": self.directory / "user_key",
            "host_key": self.host_key,
            "interfaces": {"port0": Interface(link="link0", name="eth0")},
        }
        return Node(**{**fields, **changes})

    def connect(self, **changes):
        return NodeSession.connect("DUT1", self.node(**changes))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sshd")
    sudo = directory / "bin"
    sudo.mkdir()
    (sudo / "sudo").write_text('#!/bin/sh\necho "as root: $*" >&2\n[ "$1 $2" = "-n --" ] && shift 2 && exec "$@"\n')
    (sudo / "sudo").chmod(0o755)
    server = Server(directory, sudo)
    yield server
    server.process.kill()
    server.process.wait()


@pytest.fixture
def session(server):
    with server.connect() as session:
        yield session


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def sshd_of(session):
    with session.start("sh", "-c", "echo $$; cat") as process:
        pid = int(process.read_line(5.0))
        while not Path(f"/proc/{pid}/comm").read_text().startswith("sshd"):
            pid = parent_of(pid)
    return pid


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

    def test_what_was_put_is_got_with_its_mode(self, session, tmp_path):
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
                assert process.read_line(5.0) == line
            assert process.exit_status is None

    def test_lines_that_come_together_are_read_one_by_one(self, session):
        with session.start("printf", r"a\nb\nc") as process:
            assert [process.read_line(5.0), process.read_line(5.0)] == ["a", "b"]
            with pytest.raises(NodeError, match="exit status 0"):
                process.read_line(5.0)

    def test_the_end_of_a_process_gives_its_status_and_last_words(self, session):
        with session.start("sh", "-c", "echo no numpy here >&2; exit 4") as process:
            with pytest.raises(NodeError, match=r"DUT1: .*exit status 4: no numpy here"):
                process.read_line(5.0)
            assert process.exit_status == 4
            with pytest.raises(NodeError, match="exit status 4"):
                process.write_line("hello?")

    def test_silence_is_an_error_and_a_late_answer_can_still_be_read(self, session):
        with session.start("sh", "-c", "echo slow >&2; read line; echo $line") as process:
            with pytest.raises(NodeError, match=r"no answer within 0\.2 s: slow"):
                process.read_line(0.2)
            process.write_line("late")
            assert process.read_line(5.0) == "late"

    def test_only_the_tail_of_standard_error_is_kept_and_never_blocks(self, session):
        with session.start("sh", "-c", "head -c 5000000 /dev/zero >&2; echo last >&2; echo done; cat") as process:
            assert process.read_line(10.0) == "done"
            assert process.close() == 0
            assert process.stderr_tail().endswith("last\n")
            assert len(process.stderr_tail()) <= 8192

    def test_closing_ends_the_input_and_waits_for_the_end(self, session, tmp_path):
        process = session.start("sh", "-c", f"cat > /dev/null; echo bye; touch {tmp_path}/ended; exit 6")
        assert process.close() == 6
        assert (tmp_path / "ended").exists()
        assert process.close() == 6

    def test_a_process_that_does_not_end_is_let_go(self, session):
        process = session.start("sh", "-c", "echo $$; exec sleep 60")
        pid = int(process.read_line(5.0))
        assert process.close(timeout=0.2) is None
        os.kill(pid, signal.SIGKILL)

    def test_endless_output_without_a_line_is_refused(self, session):
        with session.start("sh", "-c", "head -c 20000000 /dev/zero; sleep 60") as process:
            with pytest.raises(NodeError, match="writes no lines"):
                process.read_line(30.0)
            process.close(timeout=0.1)

    def test_a_line_with_a_line_feed_is_refused(self, session):
        with session.start("cat") as process, pytest.raises(ValueError, match="line feed"):
            process.write_line("two\nlines")


class TestLostConnections:
    pytestmark = needs_sshd

    def test_losing_the_connection_during_a_command_is_one_clear_error(self, session):
        server_pid = sshd_of(session)
        with pytest.raises(NodeError, match="DUT1: the connection was lost while"):
            session.run("kill", "-9", str(server_pid))
        with pytest.raises(NodeError, match="the connection is lost; cannot run `true`"):
            session.run("true")

    def test_losing_the_connection_while_waiting_for_a_line_is_one_clear_error(self, session):
        server_pid = sshd_of(session)
        process = session.start("cat")
        os.kill(server_pid, signal.SIGKILL)
        with pytest.raises(NodeError, match="DUT1: the connection was lost while `cat` ran"):
            process.read_line(5.0)
        assert process.close() == -1

    def test_a_server_that_stands_still_is_not_waited_for(self, session):
        server_pid = sshd_of(session)
        os.kill(server_pid, signal.SIGSTOP)
        try:
            with pytest.raises(NodeError, match="DUT1"):
                session.run("true", timeout=0.3)
        finally:
            os.kill(server_pid, signal.SIGCONT)

    def test_a_lost_connection_is_restored_and_a_closed_one_is_not(self, server):
        with server.connect() as session:
            session.restore()
            with pytest.raises(NodeError, match="connection was lost"):
                session.run("kill", "-9", str(sshd_of(session)))
            session.restore()
            assert session.run("echo", "again").stdout == "again\n"
            session.close()
            session.restore()
            with pytest.raises(NodeError, match="session is closed"):
                session.run("true")

    def test_a_closed_session_says_so(self, server):
        session = server.connect()
        session.close()
        with pytest.raises(NodeError, match="the session is closed"):
            session.run("true")


class TestLogIn:
    pytestmark = needs_sshd

    def test_an_unknown_host_key_is_refused_with_its_fingerprint_and_how_to_add_it(self, server, tmp_path):
        (tmp_path / "known").write_text("")
        with pytest.raises(NodeError) as error:
            server.connect(host_key=None, known_hosts=tmp_path / "known")
        fingerprint = subprocess.run(
            ["ssh-keygen", "-l", "-f", server.directory / "host_key.pub"], capture_output=True, text=True, check=True
        ).stdout.split()[1]
        assert fingerprint in str(error.value)
        kind, key = server.host_key.split()[:2]
        assert f"'[127.0.0.1]:{server.port} {kind} {key}' to {tmp_path / 'known'}" in str(error.value)
        assert (tmp_path / "known").read_text() == ""

    def test_a_changed_host_key_is_refused(self, server):
        with pytest.raises(NodeError, match="host key has CHANGED"):
            server.connect(host_key=(server.directory / "other_key.pub").read_text().strip())

    def test_a_key_in_known_hosts_is_enough_also_when_it_is_hashed(self, server, tmp_path):
        known = tmp_path / "known"
        known.write_text(f"[127.0.0.1]:{server.port} {server.host_key}\n")
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", known], check=True, capture_output=True)
        assert "127.0.0.1" not in known.read_text()
        with server.connect(host_key=None, known_hosts=known) as session:
            assert session.run("echo", "in").stdout == "in\n"

    def test_the_node_is_asked_for_a_key_of_the_type_that_is_known(self, server):
        with server.connect(host_key=server.rsa_host_key) as session:
            assert session.run("echo", "in").stdout == "in\n"

    def test_a_wrong_key_is_refused_with_its_name(self, server):
        with pytest.raises(NodeError, match=rf"{getpass.getuser()}@127.*log-in refused \(key .*other_key"):
            server.connect(key_file=server.directory / "other_key")

    def test_an_encrypted_key_asks_for_its_passphrase(self, server, monkeypatch):
        monkeypatch.delenv("LOSSRATIO_PASSPHRASE", raising=False)
        with pytest.raises(NodeError, match="set the environment variable LOSSRATIO_PASSPHRASE"):
            server.connect(key_file=server.directory / "locked_key")

    def test_an_encrypted_key_is_opened_with_the_passphrase_of_the_environment(self, server, monkeypatch):
        monkeypatch.setenv("LOSSRATIO_PASSPHRASE", "open sesame")
        with server.connect(key_file=server.directory / "locked_key") as session:
            assert session.run("echo", "in").stdout == "in\n"

    def test_a_wrong_passphrase_is_not_told(self, server, monkeypatch):
        monkeypatch.setenv("LOSSRATIO_PASSPHRASE", "hush hush")
        with pytest.raises(NodeError, match="passphrase may be wrong") as error:
            server.connect(key_file=server.directory / "locked_key")
        assert "hush" not in str(error.value)

    def test_lines_are_sent_without_delay(self, session):
        transport = session._client.get_transport()
        assert transport.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


def make_node(port, **changes):
    fields = {
        "type": NodeType.DUT,
        "host": "127.0.0.1",
        "port": port,
        "interfaces": {"p": Interface(link="l", name="e")},
    }
    return Node(**{**fields, **changes})


class TestBadNodes:
    def test_a_refused_connection_says_where(self):
        port = free_port()
        with pytest.raises(NodeError, match=rf"DUT1 \(.*@127\.0\.0\.1:{port}\): connection refused"):
            NodeSession.connect("DUT1", make_node(port))

    def test_a_server_that_says_nothing_is_given_up(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            node = make_node(silent.getsockname()[1], connect_timeout=0.3)
            with pytest.raises(NodeError, match=r"not finished within 0\.3 s"):
                NodeSession.connect("DUT1", node)

    def test_something_else_than_ssh_is_an_error_and_prints_nothing(self, capfd):
        with socket.create_server(("127.0.0.1", 0)) as other:

            def answer():
                connection, _ = other.accept()
                with connection:
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n" * 200)

            thread = threading.Thread(target=answer)
            thread.start()
            with pytest.raises(NodeError, match="no SSH connection"):
                NodeSession.connect("DUT1", make_node(other.getsockname()[1]))
            thread.join()
        assert capfd.readouterr().err == ""

    def test_a_host_that_does_not_exist_is_named(self):
        with pytest.raises(NodeError, match="name cannot be resolved"):
            NodeSession.connect("DUT1", make_node(22, host="no-such-host.invalid"))

    def test_a_node_of_a_local_testbed_that_is_down_has_no_host(self):
        with pytest.raises(NodeError, match="must be brought up first"):
            NodeSession.connect("DUT1", make_node(22, host=None))

    def test_a_missing_key_file_is_named_before_anything_is_connected(self, tmp_path):
        with pytest.raises(NodeError, match=r"cannot read its key file .*absent"):
            NodeSession.connect("DUT1", make_node(free_port(), key_file=tmp_path / "absent"))

    def test_a_file_that_is_no_key_is_named(self, tmp_path):
        (tmp_path / "text").write_text("not a key\n")
        with pytest.raises(NodeError, match=r"text cannot be used as a private key"):
            NodeSession.connect("DUT1", make_node(free_port(), key_file=tmp_path / "text"))

    @pytest.mark.parametrize("line", ["nonsense", "ssh-ed25519 AAAA", "ssh-ed25519 !!!!", "ssh-foo AAAA"])
    def test_a_host_key_that_is_none_is_refused(self, line):
        with pytest.raises(NodeError, match="its host_key is no public key"):
            NodeSession.connect("DUT1", make_node(free_port(), host_key=line))

    def test_a_missing_known_hosts_file_is_named(self, tmp_path):
        with pytest.raises(NodeError, match=r"known_hosts file .*absent"):
            NodeSession.connect("DUT1", make_node(free_port(), known_hosts=tmp_path / "absent"))


@pytest.fixture
def password_node(monkeypatch, tmp_path):
    for name in ("LOSSRATIO_PASSWORD", "LOSSRATIO_PASSWORD_TG_1", "SSH_AUTH_SOCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with password_server() as served:
        yield make_node(served.port, host_key=served.host_key, username="tester")


class TestPasswords:
    def test_the_password_of_the_node_goes_before_the_one_of_all_nodes(self, password_node, monkeypatch, caplog):
        caplog.set_level(logging.DEBUG)
        monkeypatch.setenv("LOSSRATIO_PASSWORD", "wrong horse")
        monkeypatch.setenv("LOSSRATIO_PASSWORD_TG_1", "open sesame")
        with NodeSession.connect("tg-1", password_node) as session:
            assert "sesame" not in repr(session)
        assert "sesame" not in caplog.text

    def test_a_wrong_password_is_not_told(self, password_node, monkeypatch, caplog):
        caplog.set_level(logging.DEBUG)
        monkeypatch.setenv("LOSSRATIO_PASSWORD", "wrong horse")
        with pytest.raises(NodeError, match="log-in refused") as error:
            NodeSession.connect("tg-1", password_node)
        assert "horse" not in str(error.value) + caplog.text

    def test_given_credentials_go_before_the_environment(self, password_node, monkeypatch):
        monkeypatch.setenv("LOSSRATIO_PASSWORD", "wrong horse")
        NodeSession.connect("tg-1", password_node, Credentials(password="open sesame")).close()

    def test_what_was_not_given_is_from_the_environment(self, password_node, monkeypatch):
        monkeypatch.setenv("LOSSRATIO_PASSWORD", "open sesame")
        NodeSession.connect("tg-1", password_node, Credentials(passphrase="of no use here")).close()

    def test_nothing_to_log_in_with_says_what_there_could_be(self, password_node):
        with pytest.raises(NodeError, match="nothing to log in with"):
            NodeSession.connect("tg-1", password_node)

    def test_credentials_do_not_show_their_secrets(self):
        assert "secret" not in repr(Credentials(password="secret", passphrase="secret"))
