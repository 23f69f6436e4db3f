"""Who may ask the server of the Open Traffic Generator, how it starts, and what strangers get."""

import json
import socket
import ssl
import subprocess
import sys
import threading
from http.client import HTTPSConnection

import pytest
import snappi
from click.testing import CliRunner
from otg_parts import ask, serving
from waiting import wait_until

from lossratio.commands.main import commands
from lossratio.errors import TopologyError
from lossratio_otg.command import server_context
from lossratio_otg.server import MOST_BYTES, ROUTES, OtgServer
from lossratio_otg.tester import Tester

POST = "POST /config HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
def server(monkeypatch):
    with serving(monkeypatch) as server:
        yield server


@pytest.fixture
def secured(monkeypatch, tmp_path):
    with serving(monkeypatch, server_context(made_certificate(tmp_path), None)) as server:
        yield server


def made_certificate(folder):
    """A file with a certificate and its key."""
    file = folder / "both.pem"
    made = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=lab")
    done = subprocess.run(
        ["openssl", *made, "-addext", "subjectAltName=DNS:lab", "-keyout", file, "-out", file],
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    return file


def test_a_request_that_is_too_long_is_answered_when_it_has_been_sent(server):
    status, answer = ask(server, "POST", "/config", b" " * (4 * MOST_BYTES))
    assert (status, answer["errors"]) == (413, ["a request may have at most 1,048,576 bytes"])


def test_with_tls_any_name_may_lead_here_and_clients_without_it_keep_nobody_out(secured):
    silent = [socket.create_connection(("127.0.0.1", secured.server_port)) for _ in range(3)]
    silent[0].sendall(b"GET /config HTTP/1.1\r\nHost: localhost\r\n\r\n")
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = HTTPSConnection("127.0.0.1", secured.server_port, timeout=120, context=context)
    for name, status in (("clab-lab1-tester", 200), ("127.0.0.1", 200)):
        connection.request("GET", "/config", headers={"Host": name})
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())) == (status, {})
    connection.request("GET", "/config", headers={"Origin": "https://evil.example"})
    assert connection.getresponse().status == 403
    # The one that spoke no TLS was closed.
    assert b"200" not in silent[0].recv(1000)
    for client in silent:
        client.close()


def test_snappi_itself_speaks_tls(secured):
    api = snappi.api(location=f"https://127.0.0.1:{secured.server_port}", verify=False)
    assert api.get_config().serialize() == api.config().serialize()


@pytest.mark.whole
def test_a_certificate_of_the_users_own_is_the_one_that_clients_see(tmp_path):
    certificate = made_certificate(tmp_path)
    server = server_context(certificate, certificate)
    client = ssl.create_default_context(cafile=certificate)
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=lambda: server.wrap_socket(ours, server_side=True))
    thread.start()
    with client.wrap_socket(theirs, server_hostname="lab") as connected:
        assert connected.getpeercert()["subject"] == ((("commonName", "lab"),),)
    thread.join()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--certificate", "nowhere.pem"), "Cannot read nowhere.pem: No such file or directory."),
        (("--certificate", __file__), "is not a certificate (PEM) with its key from"),
        (("--key", "key.pem"), "--key belongs to a --certificate. Give both."),
    ],
)
def test_a_certificate_that_cannot_be_used_is_an_error_of_the_command(arguments, error):
    done = CliRunner().invoke(commands, ["otg-serve", "lo", "--tcp-port", "0", *arguments])
    assert error in str(done.exception)


def test_a_page_in_a_browser_cannot_ask_for_traffic(server):
    status, answer = ask(server, "POST", "/config", {}, Content_Type="text/plain")
    assert (status, answer["errors"]) == (415, ["a request needs the Content-Type application/json"])


@pytest.mark.parametrize(("length", "status"), [(None, 411), ("-1", 411), (str(MOST_BYTES + 1), 413), ("9" * 99, 413)])
def test_a_request_without_a_size_or_with_a_huge_one_is_not_read(server, length, status):
    header = "" if length is None else f"Content-Length: {length}\r\n"
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=120) as client:
        client.sendall(f"{POST}Content-Type: application/json\r\n{header}\r\n".encode())
        assert client.makefile("rb").readline().split()[1] == str(status).encode()


def test_stranded_connections_do_not_keep_others_out(server):
    waiting = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(20)]
    waiting[0].sendall(b"POST /config HTTP/1.1\r\nContent-Length: 5\r\n")
    assert ask(server, "GET", "/config")[0] == 200
    for client in waiting:
        client.close()


def test_a_mistake_of_ours_is_an_answer_and_ends_nothing(server, monkeypatch, capfd):
    monkeypatch.setattr(server.tester, "set_config", lambda *_: 1 / 0)
    assert ask(server, "POST", "/config", {}) == (
        500,
        {"code": 500, "kind": "internal", "errors": ["division by zero"]},
    )
    reported = ""

    def is_reported():
        nonlocal reported
        reported += capfd.readouterr().err
        return "ZeroDivisionError" in reported

    wait_until(is_reported)
    assert ask(server, "GET", "/config") == (200, {})


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
def test_a_page_of_another_site_cannot_ask_at_all(server, headers):
    for method, path in ROUTES:
        status, answer = ask(server, method, path, {}, **headers)
        assert (status, answer["code"], answer["kind"]) == (403, 403, "validation")


def test_an_interface_that_is_not_there_is_refused_at_the_start():
    done = CliRunner().invoke(commands, ["otg-serve", "lo", "west=eth\x1b77"])
    assert str(done.exception).startswith("There is no network interface 'eth\\x1b77' here. The interfaces are lo")


def test_without_snappi_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "snappi", None)
    with pytest.raises(TopologyError, match=r"needs the Python package snappi .*\. Install it: pip install snappi\."):
        OtgServer(Tester({}, "afpacket", 0.1, print), socket.socket())


def test_an_address_that_is_taken_is_an_error_of_the_command(server):
    done = CliRunner().invoke(commands, ["otg-serve", "lo", "--tcp-port", str(server.server_port)])
    assert str(done.exception) == (
        f"Cannot listen on 127.0.0.1, TCP port {server.server_port}: Address already in use. "
        "Choose another port: --tcp-port PORT."
    )


@pytest.mark.whole
def test_only_what_listening_needs_is_imported_before_it():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code = (
            "import atexit, sys\n"
            "from lossratio.commands.main import main\n"
            "atexit.register(lambda: print(*sys.modules))\n"
            f"sys.argv = ['lossratio', 'otg-serve', 'lo', '--tcp-port', '{taken.getsockname()[1]}']\n"
            "main()\n"
        )
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "Address already in use" in done.stderr
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "click" in loaded
    assert not loaded & {"robot", "snappi", "pydantic", "numpy", "yaml"}


@pytest.mark.parametrize("ports", [["p=tg0", "p=tg1"], ["p="]])
def test_ports_have_locations_of_their_own(ports):
    done = CliRunner().invoke(commands, ["otg-serve", *ports])
    assert "name each port once, as INTERFACE or LOCATION=INTERFACE" in str(done.exception)
