import os
import signal

import paramiko
import pytest
from ports import refusing_port
from ssh_server import needs_sshd, sshd_of
from waiting import PATIENCE

from lossratio.errors import NodeError


class TestLostConnections:
    pytestmark = needs_sshd

    def test_losing_the_connection_during_a_command_is_one_clear_error(self, ssh_session):
        server_pid = sshd_of(ssh_session)
        with pytest.raises(NodeError, match=r"DUT1: .*the connection was lost"):
            ssh_session.run("kill", "-9", str(server_pid))
        with pytest.raises(NodeError, match="the connection is lost; cannot run `true`"):
            ssh_session.run("true")

    def test_losing_the_connection_while_waiting_for_a_line_is_one_clear_error(self, ssh_session):
        server_pid = sshd_of(ssh_session)
        process = ssh_session.start("cat")
        os.kill(server_pid, signal.SIGKILL)
        with pytest.raises(NodeError, match="DUT1: the connection was lost while `cat` ran"):
            process.read_line(PATIENCE)
        assert process.close() == -1

    @pytest.mark.parametrize("error", [EOFError(), paramiko.SSHException("no keys in time")])
    def test_a_connection_that_breaks_in_mid_sentence_is_one_clear_error(self, ssh_session, monkeypatch, error):
        """It breaks while paramiko sends: a line, or how much more it has room for."""

        def break_off(*_):
            raise error

        reading, writing = ssh_session.start("seq", "1000000"), ssh_session.start("cat")
        monkeypatch.setattr(ssh_session._client.get_transport().packetizer, "write_all", break_off)
        with pytest.raises(NodeError, match="`cat`"):
            writing.write_line("a line")
        with pytest.raises(NodeError, match="`seq 1000000`"):
            list(iter(lambda: reading.read_line(PATIENCE), None))
        writing.close(0.1)
        reading.close(0.1)

    def test_output_that_may_be_cut_off_is_none(self, ssh_session, monkeypatch):
        def break_off(*_):
            raise EOFError

        monkeypatch.setattr(paramiko.Channel, "recv", break_off)
        with pytest.raises(NodeError, match="the connection was lost while `echo all` ran"):
            ssh_session.run("echo", "all")

    def test_a_server_that_stands_still_is_not_waited_for(self, ssh_session):
        server_pid = sshd_of(ssh_session)
        os.kill(server_pid, signal.SIGSTOP)
        try:
            words = r"DUT1: its sshd did not answer within 0\.3 s; cannot run `true`\. Look at its power"
            with pytest.raises(NodeError, match=words):
                ssh_session.run("true", timeout=0.3)
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

    def test_a_session_that_could_not_be_restored_is_restored_later(self, server):
        with server.connect() as session, refusing_port() as port:
            right, session.node = session.node, session.node.model_copy(update={"port": port})
            os.kill(sshd_of(session), signal.SIGKILL)
            with pytest.raises(NodeError, match="connection refused"):
                session.restore()
            with pytest.raises(NodeError, match="the connection is lost; cannot run `true`"):
                session.run("true")
            session.node = right
            session.restore()
            assert session.run("echo", "again").stdout == "again\n"
