"""A router whose routes come from FRRouting: the kernel forwards, and BGP decides where to.

FRR's zebra and bgpd run on the node, and learn every route for test traffic from one or two peers. A peer is a bgpd in
its own network namespace on the same node, behind a veth pair. It announces the networks of test traffic with the TG's
ports (or the next DUTs) as next hops, so frames go nowhere else.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from lossratio.dut.base import DurationOption, Tool
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon, make_directory, write_file
from lossratio.dut.linux import LinuxDut, LinuxOptions
from lossratio.dut.linux.addressing import MOST_HOSTS, RouterSide, check_hosts, halves, router_sides
from lossratio.dut.linux.interfaces import check_free
from lossratio.dut.linux_router import enable_forwarding
from lossratio.dut.texts import filled, words
from lossratio.nodes import reason

_USER = "frr"
_NUMBER = "65000"
"""Number of the autonomous system that the router and its peers are in; it is for private use."""
_NEIGHBOURS = (-3, -4)
"""Positions of the TG's addresses in a side's network: the next hop of each peer's routes. Both belong to the same
port."""
_LINKS = 16
"""How many addresses of one side's network come after the addresses of a link to a peer."""
_LEARN_SECONDS = 60.0
"""Seconds within which routes must come or go. BGP itself takes some seconds, and 10,000 routes take less than one
second."""
_POLL = 0.02

_COUNT = """
for address; do ip -4 route show table main proto bgp | grep -c " via $address " || true; done
"""
# A session comes up at once, and changes are sent at once. The first peer's routes are preferred.
_CONFIGURATION = """
% for peer in announcing
ip prefix-list NONE deny any
ip prefix-list WEST permit {{ peer.sides[0].network }} le 32
route-map OUT permit 10
 match ip address prefix-list WEST
 set ip next-hop {{ peer.next_hops[0] }}
 set local-preference {{ 200 - peer.number }}
route-map OUT permit 20
 set ip next-hop {{ peer.next_hops[1] }}
 set local-preference {{ 200 - peer.number }}
% endfor
router bgp {{ number }}
 bgp router-id {{ own }}
{{ " no bgp network import-check" if announcing }}
% for neighbour in neighbours
 neighbor {{ neighbour }} remote-as {{ number }}
 neighbor {{ neighbour }} timers connect 1
 neighbor {{ neighbour }} advertisement-interval 0
% endfor
% for peer in announcing
 address-family ipv4 unicast
% for network in networks
  network {{ network }}
% endfor
  neighbor {{ peer.router }} route-map OUT out
% endfor
"""
"""The configuration of a bgpd: of a peer that announces networks, or of the router."""
_ANNOUNCED = """
router bgp {{ number }}
 address-family ipv4 unicast
% for host in hosts
  network {{ host }}
% endfor
"""
_SIDE = """
{{ added("ip -4 address", "%s/29 dev %s" % (side.address, side.interface)) }}
% for hop in next_hops
    {{ added("ip -4 neighbour", "%s lladdr %s dev %s nud permanent" % (hop, mac, side.interface)) }}
% endfor
"""
_LINK = """
{{ made(peer.link, "type veth peer name router netns %s" % pid) }}
ip address add {{ peer.router }}/30 dev {{ peer.link }}
ip link set dev {{ peer.link }} up
{{ inside }} ip address add {{ peer.own }}/30 dev router
{{ inside }} ip link set dev router up
"""
_PROGRAM = """
/usr/lib/frr/{{ name }} {{ options }} -f {{ directory }}/{{ name }}.conf -i {{ directory }}/{{ name }}.frr
-z {{ directory }}/zebra.api --vty_socket {{ directory }} -P 0 --log stdout
"""
_FILTER = """
-c 'configure terminal' -c 'router bgp {{ number }}' -c 'address-family ipv4 unicast'
-c '{{ word }}neighbor {{ router }} prefix-list NONE out'
"""
_IS_SEPARATE = '[ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]'


class FrrOptions(LinuxOptions):
    """The options of a router with FRR."""

    is_router = True
    requires = (
        (
            "outage",
            "reconfiguration=withdraw",
            "outage is the time between withdrawal and announcement; also set reconfiguration=withdraw",
        ),
    )
    routes: int | None = Field(default=None, ge=2, le=2 * MOST_HOSTS, multiple_of=2)
    """Number of routes to single hosts that the peers announce: half on each side, to the first hosts of its network.
    There are no other routes. Default: they announce one route to each side's network."""
    peers: int = Field(default=1, ge=1, le=2)
    """BGP peers, 1 (the default) or 2, that announce all routes. The second one announces them with other next hops,
    which lead to the same ports. These routes are used when the first peer withdraws its own."""
    reconfiguration: Literal["announce", "withdraw"] = "announce"
    """What a reconfiguration does: ``announce`` (the first peer announces further routes, which no test traffic takes;
    the default) or ``withdraw`` (it withdraws the routes of test traffic and announces them again)."""
    outage: DurationOption = 0.0
    """How long routes stay withdrawn after the kernel has removed the last of them, e.g. ``1 s``. Default: 0."""


@dataclass(frozen=True)
class _Peer:
    number: int
    """0 is the first peer, whose routes are preferred."""
    link: str
    """The router's end of the link to it."""
    sides: tuple[RouterSide, RouterSide]
    """Both sides. The addresses of the link are in the network of the side with the peer's number."""
    directory: str

    @property
    def own(self) -> str:
        return str(self.sides[self.number].network[-_LINKS + 2])

    @property
    def router(self) -> str:
        """The router's address on the link."""
        return str(self.sides[self.number].network[-_LINKS + 1])

    @property
    def next_hops(self) -> tuple[str, str]:
        west, east = (str(side.network[_NEIGHBOURS[self.number]]) for side in self.sides)
        return west, east

    def configuration(self, networks: Sequence[str]) -> str:
        return filled(
            _CONFIGURATION,
            number=_NUMBER,
            own=self.own,
            neighbours=[self.router],
            announcing=[self],
            networks=networks,
        )


class FrrRouter(LinuxDut[FrrOptions]):
    """A router between the networks of the two sides, with the routes that FRR learns by BGP."""

    kind = "frr"
    options_type = FrrOptions
    family = "inet"
    software = Tool("/usr/lib/frr/zebra", "frr", title="FRRouting")

    def check_kind(self) -> None:
        """Checks that the node does not use the networks of test traffic, and that programs can run as FRR's user.

        Raises:
            DutError: If the node uses one of the networks, or nothing can run as FRR's user.
            NotMeasuredHereError: If the node lacks a CPU of ``rps_cpus``.
        """
        super().check_kind()
        check_free(self.node, [side.network for side in self._sides])
        tried = self.node.attempt(
            "setpriv", "--reuid", _USER, "--regid", _USER, "--clear-groups", "true"
        )
        if tried.exit_status != 0:
            raise self.node.error(
                f"FRR's programs run as the user {_USER!r}, but nothing can run as this user ({reason(tried)}). FRR "
                "needs root on the machine itself, and cannot run in an ordinary user's local testbed."
            )

    @property
    def made_interfaces(self) -> tuple[str, ...]:
        """The links to the peers."""
        return tuple(f"{self.stem}.{number}" for number in range(self.options.peers))

    def configure(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Gives both interfaces addresses and neighbours, and starts FRR and the peers, until all routes are there."""
        enable_forwarding(changes, self.node, (self.west, self.east), 4)
        for side, mac in zip(self._sides, (west_mac, east_mac), strict=True):
            hops = [side.network[place] for place in _NEIGHBOURS]
            changes.apply(_SIDE, side=side, next_hops=hops, mac=mac)
            # What zebra leaves behind when it is killed.
            changes.clean_up("ip", "nexthop", "flush", "dev", side.interface)
            changes.clean_up("ip", "-4", "route", "flush", "proto", "bgp", "dev", side.interface)

        directory = make_directory(changes, self.kind)
        self._expected = self.options.routes or 2
        networks = [str(side.network) for side in self._sides]
        if self.options.routes is not None:
            networks = [
                f"{host}/32"
                for side in self._sides
                for host in side.hosts(self.options.routes // 2)
            ]
        self._peers = tuple(
            _Peer(number, link, self._sides, f"{directory}/peer{number}")
            for number, link in enumerate(self.made_interfaces)
        )
        self._directory = f"{directory}/router"
        changes.run("chown", f"{_USER}:{_USER}", directory)
        self._daemons = [
            daemon for peer in self._peers for daemon in self._start_peer(changes, peer, networks)
        ]
        self._start_router(changes)
        self._wait_for_routes(self._peers[0])

    def check_running(self) -> None:
        """Checks that FRR and the peers run, and that the kernel has all routes.

        Raises:
            DutError: If a program has died, or routes are missing.
        """
        for daemon in (*self._daemons, *self._router):
            daemon.check_alive()
        count = self._learned(self._peers[0])
        if count != self._expected:
            raise self.node.error(
                f"the kernel has {count} of the {self._expected} routes that {self.kind} learned "
                f"from its peer. {self._router[1].last_output()} Tear it down and set it up again."
            )

    def reconfigure(self, entries: int) -> None:
        """Has the first peer announce further routes, or withdraw and re-announce its own; see `FrrOptions`."""
        _ = self.present
        if self.options.reconfiguration == "withdraw":
            self._withdraw()
            return

        check_hosts(self.node.name, entries + 2 * _LINKS, self.options.routes)
        hosts = (
            f"{side.network[-_LINKS - number]}/32"
            for side, count in zip(self._sides, halves(entries), strict=True)
            for number in range(1, count + 1)
        )
        # The second peer would announce the same routes.
        peer = self._peers[0]
        self._expected += entries
        path = f"{peer.directory}/announced"
        self.node.run("tee", path, stdin=filled(_ANNOUNCED, number=_NUMBER, hosts=hosts))
        self._ask(peer.directory, "-f", path)
        self._wait_for_routes(peer)

    def restart(self) -> None:
        """Ends bgpd and zebra, which removes its routes, restarts both, and waits until all routes are back."""
        changes = self.present.changes
        for daemon in reversed(self._router):
            self.node.run(*daemon.program.stop())
        self._start_router(changes)
        self._wait_for_routes(self._peers[0])

    def facts(self) -> dict[str, Any]:
        """FRR's configuration and the number of its routes, besides the nftables rules."""
        configuration = self._ask(self._directory, "-c", "show running-config").splitlines()
        return {**super().facts(), "configuration": configuration, "learned_routes": self._expected}

    @property
    def _sides(self) -> tuple[RouterSide, RouterSide]:
        return router_sides(self.west, self.east)

    def _start_peer(self, changes: Changes, peer: _Peer, networks: Sequence[str]) -> list[Daemon]:
        self._make_directory(changes, peer.directory)
        # The namespace has no name, and ends with this program.
        space = Daemon(
            self.node, peer.directory, "namespace", ("unshare", "--net", "sleep", "infinity")
        )

        def pid() -> str:
            return self.node.run(
                "cut", "-d", " ", "-f", "1", f"{peer.directory}/namespace.pid"
            ).strip()

        space.start(
            changes,
            lambda: self.node.attempt("sh", "-c", _IS_SEPARATE, "separate", pid()).exit_status == 0,
        )
        inside = ("nsenter", f"--net=/proc/{pid()}/ns/net", "--")
        changes.apply(_LINK, peer=peer, pid=pid(), inside=" ".join(inside))
        write_file(changes, f"{peer.directory}/bgpd.conf", peer.configuration(networks))
        # It installs no routes, so it needs no zebra.
        return [space, self._start(changes, peer.directory, "bgpd", inside, "--no_zebra")]

    def _start_router(self, changes: Changes) -> None:
        self._make_directory(changes, self._directory)
        text = filled(
            _CONFIGURATION,
            number=_NUMBER,
            own=self._sides[0].address,
            neighbours=[peer.own for peer in self._peers],
            announcing=(),
        )
        write_file(changes, f"{self._directory}/zebra.conf", "")
        write_file(changes, f"{self._directory}/bgpd.conf", text)
        self._router = [self._start(changes, self._directory, name) for name in ("zebra", "bgpd")]

    def _make_directory(self, changes: Changes, directory: str) -> None:
        changes.run("install", "-d", "-o", _USER, "-g", _USER, "-m", "0700", directory)
        # Without this file, vtysh warns.
        write_file(changes, f"{directory}/vtysh.conf", "")

    def _start(
        self,
        changes: Changes,
        directory: str,
        name: str,
        inside: Sequence[str] = (),
        options: str = "",
    ) -> Daemon:
        """Starts a program of FRR, and waits until it accepts commands."""
        command = (*inside, *words(_PROGRAM, directory=directory, name=name, options=options))
        daemon = Daemon(self.node, directory, name, command)
        daemon.start(
            changes,
            lambda: self.node.attempt("test", "-S", f"{directory}/{name}.vty").exit_status == 0,
        )

        return daemon

    def _withdraw(self) -> None:
        first, *others = self._peers
        self._filter(first, "")
        self._wait_for_routes(first, 0)
        for other in others:
            self._wait_for_routes(other, self.options.routes or 2)
        time.sleep(self.options.outage)
        self._filter(first, "no ")
        self._wait_for_routes(first)

    def _filter(self, peer: _Peer, word: str) -> None:
        """Has a peer withdraw its routes, or announce them again (``no``)."""
        self._ask(peer.directory, *words(_FILTER, number=_NUMBER, word=word, router=peer.router))

    def _ask(self, directory: str, *arguments: str) -> str:
        """The answer of the daemons in a directory to commands of vtysh."""
        answer = self.node.run(
            "vtysh", "--config_dir", directory, "--vty_socket", directory, *arguments
        )
        refused = [line for line in answer.splitlines() if line.startswith("%")]
        if refused:
            raise self.node.error(f"FRR refused {' '.join(arguments)!r}: {refused[0]}.")
        return answer

    def _learned(self, peer: _Peer) -> int:
        """How many of a peer's routes the kernel has."""
        return sum(map(int, self.node.run("sh", "-c", _COUNT, "count", *peer.next_hops).split()))

    def _wait_for_routes(self, peer: _Peer, wanted: int | None = None) -> None:
        """Waits until the kernel has this many of a peer's routes; None: all of them."""
        wanted = self._expected if wanted is None else wanted
        deadline = time.monotonic() + _LEARN_SECONDS
        while (count := self._learned(peer)) != wanted:
            if time.monotonic() > deadline:
                raise self.node.error(
                    f"after {_LEARN_SECONDS:g} s, the kernel has {count} routes of the peer {peer.own} instead of "
                    f"{wanted}. {self._router[1].last_output()}"
                )
            for daemon in (*self._daemons, *self._router):
                daemon.check_alive()
            time.sleep(_POLL)
