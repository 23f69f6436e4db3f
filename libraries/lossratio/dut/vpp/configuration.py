"""VPP's configuration: a suite's options, and the commands that make VPP forward."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from importlib.metadata import EntryPoint
from types import new_class
from typing import Annotated, Any, ClassVar

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from pydantic_core import PydanticUndefined

from lossratio.dut.base import from_environment
from lossratio.dut.linux.addressing import halves, unused_macs
from lossratio.dut.vpp.features import FEATURES, steps
from lossratio.dut.vpp.features.feature import (
    LINKS,
    ROUTES,
    Command,
    Feature,
    Ports,
    Shown,
    Steps,
    VppPort,
)
from lossratio.dut.vpp.startup import Card
from lossratio.errors import DutError
from lossratio.results import Role
from lossratio.topology import Hop

HOME_VARIABLE = "VPP_HOME"
"""Environment variable with the directory of VPP's installation, for suites without the option."""
BRIDGE_DOMAIN = 10
"""Number of the bridge domain."""
_FORWARDED = r"""
    % if options.forwarding == "l2xc"
        set interface l2 xconnect {{ west.interface }} {{ east.interface }}
        set interface l2 xconnect {{ east.interface }} {{ west.interface }}
    % elif options.forwarding == "l2patch"
        test l2patch rx {{ west.interface }} tx {{ east.interface }}
        test l2patch rx {{ east.interface }} tx {{ west.interface }}
    % else
        create bridge-domain {{ domain }} learn 1 forward 1 uu-flood 1 flood 1 arp-term 0 | (bridge-domain \d+)?
        % for port in (west, east)
            set interface l2 bridge {{ port.interface }} {{ domain }}
            % if port.neighbour_mac
                l2fib add {{ port.neighbour_mac }} {{ domain }} {{ port.interface }} static
            % endif
        % endfor
    % endif
"""
# VPP looks an IPv6 address up once for each length of its routes, the longest first. As in CSIT, the first length is
# that of hosts, where packets to the TG find a route, and the second one is that of networks.
_ADDRESSED = r"""
    % set side = port.routed(options.ip_version)
    set interface ip address {{ port.interface }} {{ side.address }}/{{ 30 if options.ip_version == 4 else 128 }}
    set ip neighbor {{ port.interface }} {{ side.neighbour }} {{ port.neighbour_mac }} static
"""
# An IPv4 lookup takes more steps for a longer route. As in CSIT, the first 256 hosts have a route of 24 bits, and the
# hosts of the TG that are VPP's neighbours (one, or ten with access lists) have routes of their own.
_ROUTED = r"""
    % set side = port.routed(options.ip_version)
    % set table = " table %d" % port.table if port.table else ""
    % set via = "%s via %s %s" % (table, side.neighbour, port.interface)
    ip route add {{ side.network }}{{ via }}
    % if options.ip_version == 4
        ip route add {{ side.network[0] }}/24{{ via }}
    % endif
    % for host in side.hosts(10) if not port.faces_dut and not port.table
        ip route add {{ host }}/{{ host.max_prefixlen }}{{ via }}
    % endfor
"""
_ENTRIES = Steps(
    file=r"""
        % if options.forwarding == "l2bd"
            % for mac in macs
                l2fib add {{ mac }} {{ domain }} {{ bridged.interface }} static
            % endfor
        % elif options.is_router
            % for port, share in shares if share
                % set side = port.routed(options.ip_version)
                {{ many_routes(side, side.neighbour - share, share) }}
            % endfor
        % endif
    """,
    answers=r"(\S+ routes/sec\s*)*",
)
# Without the command for its MAC address, an interface by rdma or af_xdp would have an address of its own. avf has one
# more pair of queues than the option says, as in CSIT, because the main thread may also send.
_CARD = r"""
    % if driver == "rdma"
        create interface rdma host-if {{ kernels_name }} name {{ card.name }} num-rx-queues {{ card.queues }} \
        rx-queue-size {{ card.descriptors }} tx-queue-size {{ card.descriptors }} no-multi-seg
        set interface mac address {{ card.name }} {{ mac }}
    % elif driver == "avf"
        device attach pci/{{ card.address }} driver iavf args request_qpairs={{ card.queues + 1 }}
        device create-interface pci/{{ card.address }} port 0 if-name {{ card.name }} \
        num-rx-queues {{ card.queues }} rx-queues-size {{ card.descriptors }} tx-queues-size {{ card.descriptors }}
    % endif
"""
# Without hw-addr, VPP would choose an address that no neighbour knows. On an interface without offloads, VPP would
# announce a header before each frame, but send none, and no frame would pass. Test frames have their checksums, so they
# need no offloads.
_SOCKET = r"""
    % if options.uses_af_xdp
        create interface af_xdp host-if {{ name }} name host-{{ name }} rx-queue-size {{ options.frame_queue }} \
        tx-queue-size {{ options.frame_queue }} num-rx-queues {{ options.queues or "all" }}
        set interface mac address host-{{ name }} {{ mac }}
    % else
        create host-interface name {{ name }} hw-addr {{ mac }} \
        % if options.queues
            num-rx-queues {{ options.queues }} \
        % endif
        cksum-gso-disable | host-{{ name | literally }}
    % endif
"""


class VppOptions(Feature):
    """The options of VPP, without those of its features: `with_features` adds them."""

    kinds: ClassVar[tuple[type[Feature], ...]] = ()
    """All features, in the order of their commands to VPP."""
    own_options: ClassVar[frozenset[str]] = frozenset()
    """The options of VPP, and of lossratio's own features."""
    unusable: ClassVar[tuple[str, ...]] = ()
    """What is wrong with features of other packages that cannot be used."""

    home: Annotated[str, Role.TESTED] = Field(
        default_factory=from_environment(HOME_VARIABLE, "/usr")
    )
    """Directory of VPP on the node, with ``bin/vpp`` and ``bin/vppctl``. Default: the value of the environment variable
    ``VPP_HOME`` on the machine that runs the suite, or ``/usr``."""
    frame_queue: int = Field(default=1024, ge=64, le=65_536)
    """Descriptors of each queue of a card or of an AF_XDP socket (1024). Packet sockets have none."""

    @model_validator(mode="before")
    @classmethod
    def _may_be_unusable(cls, given: object) -> object:
        if not isinstance(given, Mapping) or not cls.unusable:
            return given
        unknown = [str(name) for name in given if name not in cls.model_fields]
        if unknown:
            raise ValueError(
                f"there is no option {unknown[0]!r}, and features are missing: {' '.join(cls.unusable)}"
            )
        return given

    @model_serializer(mode="wrap")
    def _without_what_others_added(self, serialize: SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]
        """Leaves out added options with default values, so that results do not depend on what else is installed."""
        written: dict[str, Any] = serialize(self)
        given = {option for feature in self.features for option in feature.model_fields}
        return {
            name: value
            for name, value in written.items()
            if name in self.own_options or name in given
        }

    def conflicts(self) -> Iterator[str]:
        """Also features that do not work with the forwarding or with other options, or that decide the same."""
        yield from super().conflicts()
        deciding: dict[str, str] = {}
        for feature in self.features:
            needs = feature.needs
            option, *_ = feature.given(self)
            if self.forwarding not in needs.forwarding:
                yield f"{option}: also set forwarding={' or '.join(needs.forwarding)}"
            if problem := feature.problem(self):
                yield problem

            other = deciding.setdefault(needs.decides, option)
            is_decided = needs.decides == LINKS or (needs.decides == ROUTES and self.is_router)
            if other != option and is_decided:
                yield f"{other} and {option} both decide {needs.decides}: leave one out"

    @property
    def features(self) -> list[type[Feature]]:
        """The features that are on. Their methods are called with these options."""
        return [kind for kind in self.kinds if kind.given(self)]

    @property
    def encapsulation_overhead(self) -> int:
        """The bytes that its features declare, and those that they compute."""
        declared = [item for kind in self.features for item in kind.needs.overhead.items()]
        return super().encapsulation_overhead + sum(
            size for option, size in declared if getattr(self, option)
        )

    @property
    def entries(self) -> int:
        """Entries of its largest table."""
        counts = [super().entries, 0 if self.table is None else self.table.room]
        for kind in self.features:
            for option, each in kind.needs.entries.items():
                counts.append(each * (getattr(self, option) or 0))
        return max(counts)

    @property
    def has_programs(self) -> bool:
        """Whether programs of features run beside VPP, a second VPP, or a virtual machine."""
        return self.is_contained or self.guest is not None or self.has_testpmd

    @property
    def has_testpmd(self) -> bool:
        """Whether testpmd runs beside VPP."""
        return bool(self.programs(""))

    def programs(self, directory: str) -> list[str]:
        """The arguments of each testpmd beside VPP, except those about CPUs, with its files in a directory."""
        return list(steps.written(self.features, self, "programs", directory=directory))

    def startup_lines(self) -> Iterator[str]:
        """The lines of startup.conf that its features need, each behind the name of its section."""
        for kind in self.features:
            yield from kind.plugin_lines()
        yield from steps.written(self.features, self, "startup")

    def inner_ports(self, *links: VppPort) -> Ports:
        """The ports that forward: those of the links, or interfaces that features make on them."""
        west, east = (self._made_upon(link)[0] for link in links)
        return west, east

    def forwarding_pairs(self, ports: Ports) -> tuple[Ports, ...]:
        """The pairs of ports that forward to each other: one pair, or two, in front of a process and behind it."""
        return next(
            (pairs for kind in self.features if (pairs := kind.pairs(self, ports)) is not None),
            (ports,),
        )

    def forwarding_commands(self, *links: VppPort) -> Iterator[Command]:
        """The commands that make VPP forward between two ports, once their interfaces exist."""
        for link in links:
            yield Command(f"set interface state {link.link} up")
        for link in links:
            yield from self._made_upon(link)[1]
        ports = self.inner_ports(*links)
        for number, pair in enumerate(self.forwarding_pairs(ports)):
            yield from self._forwarded(pair, BRIDGE_DOMAIN + number)
        for kind in self.features:
            yield from steps.told(kind, self, "commands", ports)
            yield from steps.in_file(kind.steps, options=self, **steps.places(ports))

    def commands_of(self, step: str, ports: Ports) -> Iterator[Command]:
        """The commands of all features in a step."""
        for kind in self.features:
            yield from steps.told(kind, self, step, ports)

    def shown_in(self, step: str, ports: Ports) -> list[Shown]:
        """What VPP must show in a step, for all features."""
        return [one for kind in self.features for one in steps.shown(kind, self, step, ports)]

    def entries_command(self, ports: Ports, count: int) -> Command | None:
        """The command that adds routes or entries that do not concern test traffic; None: there is no table."""
        inner = self.inner_ports(*ports)
        shares = list(zip(ports, halves(count), strict=True))
        values = {"bridged": inner[0], "domain": BRIDGE_DOMAIN, "macs": unused_macs(count)}
        return next(steps.in_file(_ENTRIES, options=self, shares=shares, **values), None)

    def _made_upon(self, port: VppPort) -> tuple[VppPort, list[Command]]:
        made: list[Command] = []
        for feature in self.features:
            above = feature.above(self, port)
            if above is not None:
                made += steps.upon(feature, self, "below", port, made=above)
                port = above
        return port, made

    def _forwarded(self, ports: Ports, domain: int) -> Iterator[Command]:
        if self.is_router:
            for port in ports:
                yield from self._routed(port)
        else:
            west, east = ports
            values = {"west": west, "east": east, "domain": domain}
            yield from steps.commands(_FORWARDED, options=self, **values)

    def _routed(self, port: VppPort) -> Iterator[Command]:
        yield from steps.commands(_ADDRESSED, options=self, port=port)
        given = (steps.upon(kind, self, "routed", port) for kind in self.features)
        default = steps.commands(_ROUTED, options=self, port=port)
        yield from next(filter(None, given), default)


def with_features(options: type[VppOptions]) -> type[VppOptions]:
    """The options of VPP with those of all features, both lossratio's own and those of other packages.

    A feature that cannot be used is left out; if one of its options is given, the error has the reason.
    """
    return _with_features(options, FEATURES.added())


@cache
def _with_features(options: type[VppOptions], added: tuple[EntryPoint, ...]) -> type[VppOptions]:
    kinds: list[type[Feature]] = [entry.load() for entry in FEATURES.own]
    owners = dict.fromkeys(options.model_fields, "VPP itself")
    for kind in kinds:
        owners |= dict.fromkeys(kind.own_fields(), f"the feature {kind.__name__}")
    own_options = frozenset(owners)

    unusable = []
    for name in dict.fromkeys(entry.name for entry in added):
        try:
            kind = _usable_feature(name, owners)
        except DutError as error:
            unusable.append(str(error))
            continue
        kinds.append(kind)
        owners |= dict.fromkeys(kind.own_fields(), f"the feature {kind.__name__}")

    def fill(namespace: dict[str, object]) -> None:
        namespace["__module__"] = options.__module__
        namespace["__doc__"] = options.__doc__
        namespace["kinds"] = tuple(kinds)
        namespace["own_options"] = own_options
        namespace["unusable"] = tuple(unusable)

    made: type[VppOptions] = new_class(options.__name__, (options, *kinds), exec_body=fill)
    return made


def _usable_feature(name: str, owners: Mapping[str, str]) -> type[Feature]:
    """A feature of another package. DutError says what makes it unfit; `owners` are the options' owners so far."""
    kind = FEATURES.load_class(name, Feature)
    entry = FEATURES.find(name)
    options = kind.own_fields()
    if not options:
        raise FEATURES.broken(entry, "has no option, so it could never be switched on")

    # In earlier versions, steps could be methods.
    methods = [step.name for step in fields(Steps) if callable(getattr(kind, step.name, None))]
    if methods:
        problem = f"has a method {methods[0]!r}: give its commands as a text in steps instead"
        raise FEATURES.broken(entry, problem)

    for option, field in options.items():
        if option in owners:
            raise FEATURES.broken(
                entry,
                f"has an option {option!r} that {owners[option]} also has: rename one of them",
            )
        if field.default is PydanticUndefined:
            problem = f"has no default for {option!r}: add one that leaves the feature off"
            raise FEATURES.broken(entry, problem)

    return kind


def vpp_problem(hop: Hop) -> str | None:
    """Why VPP could not use a DUT's cards with the driver of the topology file; None: it could."""
    driver = hop.vpp.driver
    kernels = [port for port in hop.ports if not hop.is_card(port)]
    if driver == "dpdk" or not kernels:
        return None
    bound = "mlx5_core" if driver == "rdma" else "vfio-pci"
    return (
        f"VPP's driver {driver} is for cards, and {' and '.join(map(str, kernels))} would stay an interface of "
        f"the kernel: give it a 'pci_address' and 'driver: {bound}'"
    )


def card_commands(driver: str, card: Card, kernels_name: str, mac: str) -> Iterator[Command]:
    """The commands that give VPP a card that is not in startup.conf."""
    return steps.commands(_CARD, driver=driver, card=card, kernels_name=kernels_name, mac=mac)


def socket_commands(name: str, mac: str, options: VppOptions) -> Iterator[Command]:
    """The commands that make a VPP interface on a kernel interface, through sockets."""
    return steps.commands(_SOCKET, name=name, mac=mac, options=options)


def placement_commands(cards: Iterable[Card]) -> Iterator[Command]:
    """The commands that assign cards to the workers that poll them."""
    for card in cards:
        for queue in range(card.queues if card.workers else 0):
            worker = card.workers[queue % len(card.workers)]
            yield Command(f"set interface rx-placement {card.name} queue {queue} worker {worker}")
