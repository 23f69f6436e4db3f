"""The command ``lossratio otg-serve``: lossratio's generators as an Open Traffic Generator tester."""

import errno
import logging
import os
import socket
import ssl
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import click

from lossratio.commands import DURATION, OneOf, WholeNumber, argument, command, option
from lossratio.errors import TopologyError
from lossratio.files import shown_name, way_to_read
from lossratio_otg.http_server import MOST_CONNECTIONS, is_loopback


@command("otg-serve")
def otg_serve(
    ports: tuple[str, ...] = argument("[LOCATION=]INTERFACE...", required=True),
    *,
    generator: str = option(
        "The generator behind the interface.", type=OneOf(["auto", "afpacket", "xdp"]), default="auto"
    ),
    address: str = option("The address to listen on.", default="127.0.0.1", metavar="ADDRESS"),
    tcp_port: int | None = option(
        "The TCP port to listen on. Default: 8080, or 8443 with a certificate.", type=WholeNumber(min=0, max=65_535)
    ),
    certificate: Path | None = option("Serve HTTPS, with this certificate (PEM)."),
    key: Path | None = option("The private key (PEM), if it is not in the certificate's file."),
    settle_time: float = option(
        "How long to wait for frames after the traffic. Default: 0.2 s.",
        type=DURATION,
        # A number is read without Robot Framework, because importing it takes as long as everything else before
        # listening.
        default=0.2,
        show_default=False,
    ),
) -> None:
    """Serve the Open Traffic Generator's REST interface, with INTERFACEs of this machine as ports."""
    locations = _locations(ports)
    _check_interfaces(locations.values())
    context = server_context(certificate, key)
    scheme, usual = ("http", 8080) if context is None else ("https", 8443)

    with _listener(address, usual if tcp_port is None else tcp_port) as listener:
        if find_spec("snappi") is not None:
            # The server's modules take seconds to load; clients can already connect.
            place = f"{scheme}://{address}:{listener.getsockname()[1]}"
            click.echo(f"{place} serves {', '.join(locations)}. Ctrl-C ends it.")
        if not is_loopback(address):
            click.echo("Every host that reaches this address can send traffic from these ports without a password.")

        from lossratio_otg.server import OtgServer
        from lossratio_otg.tester import Tester

        tester = Tester(locations, generator, settle_time, lambda line: click.echo(line, err=True))
        with OtgServer(tester, listener, context) as server:
            # The models warn of each deprecated field in each of their steps.
            for name in (None, "snappi"):
                logging.getLogger(name).setLevel(logging.ERROR)
            server.serve_forever()


def server_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """The TLS of a server with a certificate and its key; if the key is None, both are in one file.

    Raises:
        TopologyError: If certificate and key cannot be read, do not belong together, or are encrypted.
    """
    if certificate is None and key is not None:
        raise TopologyError("--key belongs to a --certificate. Give both.")
    if certificate is None:
        return None

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    place = certificate if key is None else key

    def refuse_password() -> str:
        raise TopologyError(f"{place} is encrypted. Give a key without a password.")

    try:
        context.load_cert_chain(certificate, key, password=refuse_password)
    except ssl.SSLError as error:
        raise TopologyError(
            f"{certificate} is not a certificate (PEM) with its key from {place}. Name the files of both."
        ) from error
    except OSError as error:
        way = way_to_read(certificate, error)
        files = " or ".join(dict.fromkeys(map(shown_name, (certificate, place))))
        raise TopologyError(f"Cannot read {files}: {error.strerror}.{way}") from error
    return context


def _listener(address: str, tcp_port: int) -> socket.socket:
    try:
        return socket.create_server((address, tcp_port), backlog=MOST_CONNECTIONS)
    except OSError as error:
        raise TopologyError(f"Cannot listen on {address}, TCP port {tcp_port}: {_why_not(error)}.") from error


def _why_not(error: OSError) -> str:
    """Why a server cannot listen. The errors of an address that cannot be found have numbers below zero."""
    if (error.errno or 0) < 0:
        return "there is no such address. Name an address of this machine, such as 127.0.0.1"
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine does not have that address. Name an address of it, such as 127.0.0.1"
    if error.errno in (errno.EADDRINUSE, errno.EACCES):
        return f"{os.strerror(error.errno)}. Choose another port: --tcp-port PORT"
    return os.strerror(error.errno or 0)


def _locations(ports: tuple[str, ...]) -> dict[str, str]:
    """The interfaces by the locations that configurations use for them."""
    locations: dict[str, str] = {}
    for port in ports:
        location, _, interface = port.rpartition("=")
        if locations.setdefault(location or interface, interface) != interface or not interface:
            raise TopologyError(f"{port}: name each port once, as INTERFACE or LOCATION=INTERFACE.")
    return locations


def _check_interfaces(interfaces: Iterable[str]) -> None:
    there = [name for _, name in socket.if_nameindex()]
    for interface in interfaces:
        if interface not in there:
            raise TopologyError(
                f"There is no network interface {shown_name(interface)} here. The interfaces are {', '.join(there)}."
            )
