"""The traffic generators that a TG may have, and the settings of each one in the topology file.

Another package adds a generator by an entry point of the group ``lossratio.generator``. Its name is the generator's
kind, and its object a class with a `settings_type` (a subclass of `lossratio.traffic.Generator`).
"""

import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from lossratio.errors import TopologyError
from lossratio.files import Problem, not_installed, plugin_group
from lossratio.topology.path import Interface
from lossratio.topology.quantities import (
    Duration,
    FileName,
    FrameRate,
    NodePath,
    ProgramName,
    Share,
)
from lossratio.values import FileModel

GENERATORS = plugin_group(
    "lossratio.generator",
    what="generator",
    error=TopologyError,
    base="lossratio.traffic.Generator",
    room="lossratio.traffic.generators",
    own={"afpacket": "own:AfPacket", "auto": "own:Auto", "trex": "trex:Trex", "xdp": "own:Xdp"},
)
"""All generators of real frames."""
_ELSEWHERE = {"otg": "otg"}
"""The generators of the project's other packages by kind: the package's name after `lossratio-`."""
_LATE_END_OF_SOFTWARE = 0.03
_LATE_END_OF_CARDS = 0.001
_LONGEST_SHOWN = 100


class GeneratorSettings(FileModel):
    """The settings that all generators have in a topology file."""

    max_rate: FrameRate | None = None
    """The highest load that the generator is known to send, in frames per second per interface: the default max load of
    a search. A simulated generator leaves frames beyond this load unsent."""
    kind: str
    """Which generator it is."""

    load_step: ClassVar[float] = 0.0
    """The load of each direction is a multiple of this, in frames per second; 0: any load is possible."""
    has_two_nodes: ClassVar[bool] = False
    """Whether the ends of a path can be on two nodes; ``can`` of the program's facts then has ``two nodes``."""
    has_tester: ClassVar[bool] = False
    """Whether its ports are on a tester, which its program controls over the network. The ports are then not interfaces
    of the TG, and the TG may be this machine."""


class RealGenerator(GeneratorSettings):
    """Settings of a generator of real frames. A generator of another package has a subclass with its own fields."""

    any_python: ClassVar[bool] = True
    """Whether the generator's program runs with any Python from 3.8 on. On a local testbed, it then runs with
    lossratio's Python."""

    python: ProgramName = "python3"
    """Python 3.8 or later on the TG node, with the modules that the generator's program needs."""
    settle: Duration | None = None
    """Seconds to wait for frames in flight after each trial, unless the DUTs need longer. Frames that arrive later
    count as lost."""
    answer_timeout: Annotated[Duration, Field(gt=0.0)] = 30.0
    """Seconds that the generator's program may take to answer, in addition to the time of the traffic. A slow TG may
    need more to prepare its frames."""

    @property
    def takes_cards(self) -> bool:
        """Whether its ports are cards with a user-space driver, not interfaces of the kernel."""
        return False

    def problems(self, ports: Mapping[str, Interface], pairs: int) -> Iterator[Problem]:
        """Finds reasons why the generator could not send, as far as the topology file shows them, with their places.

        A place is within the node, such as ``("interfaces", "port0")``.
        """
        yield from ()


class AfPacketGenerator(RealGenerator):
    """The embedded generator: plain Linux packet sockets."""

    has_two_nodes: ClassVar[bool] = True
    kind: Literal["afpacket"]
    python: ProgramName = "python3"
    """Python 3.8 or later on the TG node. With numpy, it sends more, examines frames, and measures latency."""
    catch_up: Duration | None = None
    """How much overdue traffic it sends in one burst after a stall of its machine, in seconds (default: 1 ms). Older
    frames stay unsent. Larger values are only for DUTs whose queues hold such a burst."""


class XdpGenerator(RealGenerator):
    """The generator inside the kernel: XDP programs send and receive."""

    has_two_nodes: ClassVar[bool] = True
    kind: Literal["xdp"]
    catch_up: Duration | None = None
    """How much overdue traffic it sends in one burst after a stall of its machine, in seconds (default: 1 ms). Older
    frames stay unsent."""
    cpus: tuple[Annotated[int, Field(ge=0)], ...] | None = Field(default=None, min_length=1)
    """CPUs of its senders: one for all directions, one for each, or several for each. By default, it chooses CPUs
    that are not in ``device_cpus``."""
    cpus_per_direction: Annotated[int, Field(ge=1)] | None = None
    """How many CPUs each direction gets, each with a sender of its own; instead of ``cpus``. Default: one if there are
    more CPUs than directions, otherwise one for all directions."""
    cpu_share: Annotated[Share, Field(ge=0.1, le=1.0)] | None = None
    """The largest share of each of these CPUs that a sender takes (default: 90 %). Other programs get the rest of each
    millisecond. Frames for which this share is not enough are unsent."""
    device_cpus: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """CPUs that belong to devices under test on the TG's own machine, if these are programs. A local testbed fills them
    in: the last CPUs of the machine."""

    @field_validator("cpus")
    @classmethod
    def _are_different(cls, cpus: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if cpus is not None and len(set(cpus)) < len(cpus):
            raise ValueError("'cpus' names a CPU twice: name each one once")
        return cpus

    @model_validator(mode="after")
    def _says_once_how_many(self) -> "XdpGenerator":
        if self.cpus is not None and self.cpus_per_direction is not None:
            raise ValueError("'cpus' names the CPUs already, so leave 'cpus_per_direction' out")
        return self


class AutoGenerator(XdpGenerator):
    """The generator inside the kernel if possible, otherwise the embedded generator."""

    kind: Literal["auto"]  # type: ignore[assignment]
    python: ProgramName = "python3"
    """Python 3.8 or later on the TG node. With numpy, it can do more if XDP is not possible."""


TREX_HOME = "TREX_HOME"
"""Environment variable with TRex's directory on the TG, for topology files that do not name it."""
CORES_ARGUMENT = "-c"
"""The argument of TRex's program for its number of cores."""


class TrexCores(FileModel):
    """The CPUs of one pair of TRex's ports."""

    socket: int = Field(default=0, ge=0)
    """The NUMA node that they and the cards are on."""
    threads: tuple[Annotated[int, Field(ge=0)], ...] = Field(min_length=1)
    """Their numbers; each sends on both ports."""


class TrexGenerator(RealGenerator):
    """TRex in its stateless mode. It is started on the TG if it does not already run there."""

    any_python = False
    kind: Literal["trex"]
    directory: NodePath | None = None
    """The installation on the TG: the directory that contains ``_t-rex-64``. Default: the environment variable
    TREX_HOME of the controller."""
    python: ProgramName = "python3"
    """Python 3.8 to 3.12 on the TG node, for TRex's own client."""
    software: bool = False
    """Whether TRex sends through packet sockets on Linux interfaces, instead of cards that DPDK drives. This needs no
    hugepages, and is slow."""
    master_core: int | None = Field(default=None, ge=0)
    """CPU of TRex's main thread."""
    latency_core: int | None = Field(default=None, ge=0)
    """The CPU for the thread that measures latency and receives frames."""
    cores: tuple[TrexCores, ...] = ()
    """The CPUs of each pair of ports. By default, lossratio chooses them on the NUMA nodes of the cards; in software
    mode, TRex chooses one."""
    cores_per_pair: int | None = Field(default=None, ge=1, le=64)
    """The largest number of cores that are chosen for a pair of ports. Default: 16 for a single pair, and 8 for each of
    several, as in FD.io CSIT."""
    hyper_threads: bool = False
    """Whether the siblings of chosen cores send, too. Otherwise they are left idle."""
    limit_memory: int | None = Field(default=None, ge=64)
    """Megabytes of hugepages that TRex takes on each NUMA node of its cards. Default: 8192 as in CSIT (16384 for
    several pairs), or what is free if that is less."""
    mbuf_factor: float | None = Field(default=None, gt=0)
    """Factor by which TRex gets more packet buffers than usual. Default: 32 with cards, as in CSIT, or less if memory
    is limited."""
    hugepages: int | None = Field(default=None, ge=64)
    """Megabytes of hugepages to reserve on each NUMA node of the cards if fewer are free. They are given back at the
    end. By default, none are reserved."""
    rx_desc: int | None = Field(default=None, ge=64, le=32_768)
    """Receive descriptors of each queue. Default: TRex's number for the driver."""
    tx_desc: int | None = Field(default=None, ge=64, le=32_768)
    """Transmit descriptors of each queue. Default: TRex's number for the driver."""
    port_mtu: int | None = Field(default=None, ge=68)
    """MTU that TRex sets on its ports. Default: TRex's own."""
    low_end: bool | None = None
    """Whether TRex's threads share one CPU, and sleep between frames. Default: only with fewer than three CPUs."""
    pin_cores: bool | None = None
    """Whether each core sends on only one port of its pair (TRex's core mask PIN). Default: with cards and at least two
    cores for a pair, as in CSIT."""
    promiscuous: bool = False
    """Whether ports accept frames to any MAC address."""
    force: bool = False
    """Whether traffic starts even if TRex refuses it, for example on a port whose link is down or slower than the
    load."""
    flow_statistics: bool = False
    """Whether each stream counts its own frames in trials, and some frames are numbered. The result then shows foreign
    frames, copies and reordered frames. This needs frames with an IP header, and costs TRex throughput."""
    most_connections: int = Field(default=1 << 20, ge=1000)
    """Number of connections that TRex reserves memory for. It opens at most 95 % of this number."""
    prefix: FileName | None = None
    """Name that separates several servers on one TG. They also need different ports."""
    rpc_port: int = Field(default=4501, ge=1, le=65535)
    """TCP port for requests to the server."""
    publisher_port: int = Field(default=4500, ge=1, le=65535)
    """TCP port for the server's events."""
    arguments: tuple[str, ...] = ()
    """Further arguments of TRex's program, e.g. ``[--mbuf-factor, "2"]``."""
    start_timeout: Duration = 60.0
    """Seconds that TRex may take to start."""
    late_end: Duration | None = None
    """Seconds after a trial's end within which TRex must end its traffic. If it takes longer, it sent too slowly, and
    the frames that were left by then count as unsent. Default: 30 ms in software mode, which sends in batches, and 1 ms
    with cards."""

    @property
    def home(self) -> str | None:
        """The installation's directory, from the file or from TREX_HOME on the controller; None: neither names it."""
        return self.directory or os.environ.get(TREX_HOME) or None

    @property
    def takes_cards(self) -> bool:
        """Whether it sends with cards, and not in software mode."""
        return not self.software

    @property
    def allowed_late_end(self) -> float:
        """`late_end` in seconds, also where it is missing."""
        if self.late_end is not None:
            return self.late_end
        if self.software:
            return _LATE_END_OF_SOFTWARE
        return _LATE_END_OF_CARDS

    @property
    def wishes_for_cores(self) -> tuple[str, ...]:
        """What the settings say about the number of cores, in the words of the file."""
        wishes = {
            "'cores'": bool(self.cores),
            f"'cores_per_pair: {self.cores_per_pair}'": self.cores_per_pair is not None,
            "'hyper_threads: true'": self.hyper_threads,
            f"{CORES_ARGUMENT} in 'arguments'": CORES_ARGUMENT in self.arguments,
        }
        return tuple(words for words, is_wished in wishes.items() if is_wished)

    def problems(self, ports: Mapping[str, Interface], pairs: int) -> Iterator[Problem]:
        """Missing addresses that a server with its own cards needs, and missing entries of `cores`."""
        for name, interface in ports.items():
            addresses = {
                "'pci_address'": interface.pci_address,
                "'mac_address'": interface.mac_address,
            }
            missing = [field for field, value in addresses.items() if value is None]
            if missing and not self.software:
                needed = " and ".join(missing)
                yield (
                    ("interfaces", name),
                    f"TRex needs the port's {needed} unless it has 'software: true'",
                )

        if self.cores and len(self.cores) != pairs:
            yield (
                ("generator", "cores"),
                f"each pair of ports needs an entry: there are {len(self.cores)} entries for {pairs} pairs",
            )

    @model_validator(mode="after")
    def _goes_together(self) -> "TrexGenerator":
        if problem := next(self._contradictions(), None):
            raise ValueError(problem)
        return self

    def _contradictions(self) -> Iterator[str]:
        threads = [thread for pair in self.cores for thread in pair.threads]
        others = [core for core in (self.master_core, self.latency_core) if core is not None]
        chooses = self.cores_per_pair is not None or self.hyper_threads
        single = self.cores_per_pair == 1 or any(len(pair.threads) == 1 for pair in self.cores)
        if len(others) != (2 if self.cores else 0):
            yield "'cores', 'master_core' and 'latency_core' go together: give all of them, or none"
        if len({len(pair.threads) for pair in self.cores}) > 1:
            yield "each pair of ports needs the same number of 'threads'"
        if self.cores and chooses:
            yield "'cores' names CPUs, and 'cores_per_pair' or 'hyper_threads' choose them: set one or the other"
        if self.low_end and self.wishes_for_cores:
            yield f"with 'low_end' TRex uses one CPU and ignores {self.wishes_for_cores[0]}: leave one of them out"
        if self.pin_cores and (self.low_end or (single and not self.hyper_threads)):
            yield "'pin_cores' needs two or more cores for each pair of ports: TRex refuses to send with one"
        if not self.software and CORES_ARGUMENT in self.arguments:
            yield (
                f"set the number of cores with 'cores_per_pair' (or 'cores'), not with {CORES_ARGUMENT} in "
                "'arguments'"
            )

        if self.software and chooses:
            yield (
                "in software mode TRex uses one core that it chooses itself, or 'cores': leave out 'cores_per_pair' "
                "and 'hyper_threads'"
            )

        if self.software and self.hugepages is not None:
            yield "in software mode TRex needs no 'hugepages'"
        if self.mbuf_factor is not None and "--mbuf-factor" in self.arguments:
            yield "'mbuf_factor' is also in 'arguments': set it once"
        if self.rpc_port == self.publisher_port:
            yield "'rpc_port' and 'publisher_port' must differ"
        if len({*threads, *others}) < len(threads) + len(others):
            yield "each CPU can only be used once among 'cores', 'master_core' and 'latency_core'"


class SimulatedGenerator(GeneratorSettings):
    """A generator on a virtual clock, for simulated testbeds."""

    kind: Literal["simulated"]
    overhead: Duration | None = None
    """Virtual seconds that a trial takes beyond its own duration."""
    seed: int = Field(default=1, ge=0)
    """Seed of all random numbers."""


_SettingsHere = (
    AfPacketGenerator | XdpGenerator | AutoGenerator | TrexGenerator | SimulatedGenerator
)
_AnySettingsHere = Annotated[_SettingsHere, Field(discriminator="kind")]
_SETTINGS_HERE: Mapping[str, type[GeneratorSettings]] = {
    get_args(model.model_fields["kind"].annotation)[0]: model for model in get_args(_SettingsHere)
}
"""Settings that editors know without importing a generator. All other settings are named by the generator's class."""


def generator_settings() -> dict[str, type[GeneratorSettings]]:
    """The models of the settings of all generators that come with lossratio, by kind, for the reference."""
    return {**_SETTINGS_HERE, **{entry.name: settings_type(entry.name) for entry in GENERATORS.own}}


def settings_type(kind: str) -> type[GeneratorSettings]:
    """The model of a generator's settings.

    Raises:
        TopologyError: If there is no generator of this kind, or its package is unfit.
    """
    if kind in _SETTINGS_HERE:
        return _SETTINGS_HERE[kind]

    names = GENERATORS.names()
    if kind not in names:
        if kind in _ELSEWHERE:
            raise TopologyError(not_installed("generator", kind, _ELSEWHERE[kind]))
        known = sorted({*_SETTINGS_HERE, *names})
        raise TopologyError(GENERATORS.unknown(kind[:_LONGEST_SHOWN], known))

    loaded = GENERATORS.load(kind)
    settings = getattr(loaded, "settings_type", None)
    if not (isinstance(settings, type) and issubclass(settings, RealGenerator)):
        problem = "has no 'settings_type' that is a subclass of lossratio.topology.RealGenerator"
        raise GENERATORS.broken(GENERATORS.find(kind), problem)

    GENERATORS.check_methods(kind, loaded)
    return settings


class _ByKind:
    """Reads settings with the model for their kind. Editors know the models of lossratio's own generators."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(
            lambda value, _: _read(value),
            handler.generate_schema(_AnySettingsHere),
            serialization=core_schema.simple_ser_schema("any"),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        known = handler(schema)
        other = {"kind": {"type": "string", "not": {"enum": list(_SETTINGS_HERE)}}}
        known["oneOf"].append(
            {
                "type": "object",
                "properties": other,
                "required": ["kind"],
                "title": "Added generator",
            }
        )
        return known


def _read(value: object) -> GeneratorSettings:
    if isinstance(value, GeneratorSettings):
        return value
    if not isinstance(value, dict):
        raise ValueError("this must be a mapping such as {kind: afpacket}")
    kind = value.get("kind")
    if not isinstance(kind, str):
        raise ValueError("it needs a 'kind', such as {kind: afpacket}")
    try:
        model = settings_type(kind)
    except TopologyError as error:
        raise ValueError(str(error)) from error
    return model.model_validate(value)


Generator = Annotated[GeneratorSettings, _ByKind()]
"""Settings of any generator, from lossratio or from another package."""
