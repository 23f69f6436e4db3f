"""The command ``lossratio lab otg-serve``: the generators of lossratio as a tester of the Open Traffic Generator."""

import logging
import socket
from collections.abc import Iterable

import click

from lossratio.commands.parameters import DURATION, OneOf, argument, command, option
from lossratio.errors import TopologyError
from lossratio.http_server import is_loopback
from lossratio.input_file import shown_name


@command("otg-serve")
def otg_serve(
    ports: tuple[str, ...] = argument("[LOCATION=]INTERFACE...", required=True),
    *,
    generator: str = option(
        "What sends and counts.", type=OneOf(["auto", "afpacket", "xdp"]), default="auto"
    ),
    address: str = option("The address to listen on.", default="127.0.0.1"),
    tcp_port: int = option(
        "The TCP port to listen on.", default=8080, type=click.IntRange(0, 65_535)
    ),
    settle_time: float = option(
        "Time for frames in flight after the traffic.", default="0.2 s", type=DURATION
    ),
) -> None:
    """Serve the Open Traffic Generator's REST interface, with INTERFACEs of this machine as ports."""
    from lossratio.traffic.otg import OtgServer, Tester

    locations = _locations(ports)
    _check_interfaces(locations.values())
    tester = Tester(locations, generator, settle_time, lambda line: click.echo(line, err=True))

    try:
        server = OtgServer(tester, (address, tcp_port))
    except OSError as error:
        raise TopologyError(
            f"Cannot listen on {address}, TCP port {tcp_port}: {error.strerror}."
        ) from error

    # The models warn of each deprecated field, in each of their steps.
    for name in (None, "snappi"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with server:
        click.echo(
            f"http://{address}:{server.server_port} serves {', '.join(locations)}. Ctrl-C ends it."
        )
        if not is_loopback(address):
            click.echo(
                "Every host that reaches this address can send traffic from these ports without a password."
            )
        server.serve_forever()


def _locations(ports: tuple[str, ...]) -> dict[str, str]:
    """The interfaces by the locations that configurations call them by."""
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
