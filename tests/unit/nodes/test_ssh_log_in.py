import getpass
import logging
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from password_server import password_server
from ports import refusing_port
from ssh_server import needs_sshd

from lossratio.errors import NodeError
from lossratio.nodes import Credentials, NodeSession
from lossratio.topology import Interface, Node


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

    def test_a_wrong_passphrase_is_not_shown(self, server, monkeypatch):
        monkeypatch.setenv("LOSSRATIO_PASSPHRASE", "hush hush")
        with pytest.raises(NodeError, match="passphrase may be wrong") as error:
            server.connect(key_file=server.directory / "locked_key")
        assert "hush" not in str(error.value)

    def test_an_agent_that_is_none_is_as_good_as_no_agent(self, server, tmp_path, monkeypatch):
        (tmp_path / "text").write_text("no socket")
        for agent in (tmp_path / "absent", tmp_path / "text", tmp_path):
            monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
            with server.connect() as session:
                assert session.run("echo", "in").stdout == "in\n"
            monkeypatch.setenv("HOME", str(tmp_path))
            with pytest.raises(NodeError):
                server.connect(key_file=None)

    def test_lines_are_sent_without_delay(self, ssh_session):
        transport = ssh_session._client.get_transport()
        assert transport.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


def pem(kind, body):
    return f"-----BEGIN {kind} PRIVATE KEY-----\n{body}\n-----END {kind} PRIVATE KEY-----\n"


def make_node(port, **changes):
    fields = {"type": "DUT", "host": "127.0.0.1", "port": port, "interfaces": {"p": Interface(link="l", name="e")}}
    return Node(**{**fields, **changes})


class TestBadNodes:
    @pytest.fixture
    def port(self):
        with refusing_port() as port:
            yield port

    def test_a_refused_connection_says_where(self, port):
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
            port = other.getsockname()[1]
            with pytest.raises(NodeError, match=rf"no SSH server answered\. Check that {port} is the port"):
                NodeSession.connect("DUT1", make_node(port))
            thread.join()
        assert capfd.readouterr().err == ""

    def test_a_host_that_does_not_exist_is_named(self):
        with pytest.raises(NodeError, match="name cannot be resolved"):
            NodeSession.connect("DUT1", make_node(22, host="no-such-host.invalid"))

    def test_a_node_of_a_local_testbed_that_is_down_has_no_host(self):
        with pytest.raises(NodeError, match="Bring its local testbed up first"):
            NodeSession.connect("DUT1", make_node(22, host=None))

    def test_a_missing_key_file_is_named_before_anything_is_connected(self, port, tmp_path):
        with pytest.raises(NodeError, match=r"cannot read its key file .*absent"):
            NodeSession.connect("DUT1", make_node(port, key_file=tmp_path / "absent"))

    def test_a_file_that_is_no_key_is_named(self, port, tmp_path):
        (tmp_path / "text").write_text("not a key\n")
        with pytest.raises(NodeError, match=r"text cannot be used as a private key"):
            NodeSession.connect("DUT1", make_node(port, key_file=tmp_path / "text"))

    @pytest.mark.parametrize("line", ["nonsense", "ssh-ed25519 AAAA", "ssh-ed25519 !!!!", "ssh-foo AAAA"])
    def test_a_host_key_that_is_none_is_refused(self, port, line):
        with pytest.raises(NodeError, match="its host_key is not a public key"):
            NodeSession.connect("DUT1", make_node(port, host_key=line))

    @pytest.mark.parametrize(
        "line",
        [
            "ssh-ed25519 !!!!",
            "ssh-ed25519 A",
            "ssh-ed25519 AAAA",
            "ssh-ed25519",
            "ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB",
            "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAAABBA==",
            f"ssh-ed25519 {'A' * 100_000}",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6p1r\ufffd",
        ],
    )
    def test_a_broken_key_of_the_node_in_known_hosts_is_named_with_its_line(self, port, tmp_path, line):
        known = tmp_path / "known"
        known.write_text(f"# keys\nelsewhere ssh-ed25519 !!!!\n[127.0.0.1]:{port} {line}\n")
        with pytest.raises(NodeError, match=r"known:3: the line of .* has no public key of type .*ssh-keygen -R"):
            NodeSession.connect("DUT1", make_node(port, known_hosts=known))

    @pytest.mark.parametrize(
        "line",
        [
            b"elsewhere ssh-ed25519 !!!!",
            b"|1|x|y ssh-ed25519 AAAA",
            b"|1| ssh-ed25519 AAAA",
            b"|1|" + b"A" * 28 + b"|A= ssh-rsa AAAA",
            b"@revoked",
            b"@cert-authority * ssh-rsa AAAA",
            b"127.0.0.1",
            b"\xff\xfe\0",
            b"[127.0.0.1]:1 sk-ssh-ed25519@openssh.com AAAA",
        ],
    )
    def test_lines_of_known_hosts_about_others_do_not_matter(self, port, tmp_path, line):
        known = tmp_path / "known"
        known.write_bytes(line + b"\n")
        with pytest.raises(NodeError, match="connection refused"):
            NodeSession.connect("DUT1", make_node(port, known_hosts=known))

    @pytest.mark.parametrize("field", ["known_hosts", "key_file"])
    def test_a_path_that_is_no_file_is_neither_keys_nor_known_hosts(self, port, tmp_path, field):
        os.mkfifo(tmp_path / "pipe")
        for place, problem in (
            (tmp_path / "pipe", "it is a pipe"),
            (tmp_path, "Is a directory"),
            (Path("/dev/zero"), "a device"),
            (Path("~no-such-user-here/x"), "needs a home directory"),
        ):
            with pytest.raises(NodeError, match=rf"Node DUT1 .*{problem}"):
                NodeSession.connect("DUT1", make_node(port, **{field: place}))

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "\ufffd\0",
            pem("OPENSSH", ""),
            pem("OPENSSH", "!!!!"),
            pem("OPENSSH", "b3BlbnNzaC1rZXktdjEA"),
            pem("OPENSSH", "b3BlbnNzaC1rZXktdjEA" + "/" * 64),
            pem("RSA", "MAA="),
            pem("RSA", "Proc-Type: 4,ENCRYPTED\nDEK-Info: x\n\nMAA="),
            pem("EC", "MAA="),
        ],
    )
    @pytest.mark.parametrize("passphrase", [None, "open sesame"])
    def test_a_broken_private_key_is_named(self, port, tmp_path, text, passphrase):
        (tmp_path / "key").write_text(text)
        with pytest.raises(NodeError, match=r"key file .*key (cannot be used as a private key|is encrypted)"):
            NodeSession.connect("DUT1", make_node(port, key_file=tmp_path / "key"), Credentials(None, passphrase))

    def test_a_broken_certificate_is_named(self, port, tmp_path):
        subprocess.run(["ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", tmp_path / "key"], check=True)
        for text in ("", "nonsense", "ssh-ed25519-cert-v01@openssh.com !!!!", "ssh-rsa-cert-v01@openssh.com AAAA"):
            (tmp_path / "key-cert.pub").write_text(text)
            with pytest.raises(NodeError, match=r"key-cert\.pub is not a certificate of its key"):
                NodeSession.connect("DUT1", make_node(port, key_file=tmp_path / "key"))

    @pytest.mark.parametrize("host", ["a..b", "x" * 70 + ".example", ".", "\N{SNOWMAN}" * 80])
    def test_text_that_is_no_host_name_is_refused(self, host):
        with pytest.raises(NodeError, match="the host name cannot be resolved"):
            NodeSession.connect("DUT1", make_node(22, host=host))

    def test_a_user_without_a_name_is_asked_for_one(self, monkeypatch):
        def nobody():
            raise KeyError("getpwuid(): uid not found: 4711")

        monkeypatch.setattr(getpass, "getuser", nobody)
        with pytest.raises(NodeError, match="Set the node's 'username'"):
            NodeSession.connect("DUT1", make_node(22))

    def test_a_missing_known_hosts_file_is_named(self, port, tmp_path):
        with pytest.raises(NodeError, match=r"known_hosts file .*absent"):
            NodeSession.connect("DUT1", make_node(port, known_hosts=tmp_path / "absent"))


@pytest.fixture
def password_node(monkeypatch, tmp_path):
    for name in ("LOSSRATIO_PASSWORD", "LOSSRATIO_PASSWORD_TG_1", "SSH_AUTH_SOCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with password_server() as served:
        yield make_node(served.port, host_key=served.host_key, username="tester")


class TestPasswords:
    @pytest.mark.whole
    def test_the_password_of_the_node_goes_before_the_one_of_all_nodes(self, password_node, monkeypatch, caplog):
        caplog.set_level(logging.DEBUG)
        monkeypatch.setenv("LOSSRATIO_PASSWORD", "wrong horse")
        monkeypatch.setenv("LOSSRATIO_PASSWORD_TG_1", "open sesame")
        with NodeSession.connect("tg-1", password_node) as session:
            assert "sesame" not in repr(session)
        assert "sesame" not in caplog.text

    @pytest.mark.whole
    def test_a_wrong_password_is_not_shown(self, password_node, monkeypatch, caplog):
        caplog.set_level(logging.DEBUG)
        monkeypatch.setenv("LOSSRATIO_PASSWORD", "wrong horse")
        with pytest.raises(NodeError, match="log-in refused") as error:
            NodeSession.connect("tg-1", password_node)
        assert "horse" not in str(error.value) + caplog.text

    def test_given_credentials_go_before_the_environment(self, password_node, monkeypatch):
        monkeypatch.setenv("LOSSRATIO_PASSWORD", "wrong horse")
        NodeSession.connect("tg-1", password_node, Credentials(password="open sesame")).close()

    def test_missing_secrets_are_from_the_environment(self, password_node, monkeypatch):
        monkeypatch.setenv("LOSSRATIO_PASSWORD", "open sesame")
        NodeSession.connect("tg-1", password_node, Credentials(passphrase="of no use here")).close()

    def test_nothing_to_log_in_with_says_what_there_could_be(self, password_node):
        with pytest.raises(NodeError, match="nothing to log in with"):
            NodeSession.connect("tg-1", password_node)

    def test_credentials_do_not_show_their_secrets(self):
        assert "secret" not in repr(Credentials(password="secret", passphrase="secret"))
