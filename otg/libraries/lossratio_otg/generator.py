"""A tester of the Open Traffic Generator on the controller's side: its settings, its configuration, and its version."""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from lossratio.agent import Configuration
from lossratio.errors import LossRatioError, TopologyError
from lossratio.files import Problem
from lossratio.nodes import NodeSession
from lossratio.topology import Duration, Interface, Port, RealGenerator
from lossratio.traffic import Generator
from lossratio_otg.models import checked, load_snappi
from lossratio_otg.written_packets import write_packet

_MOST_PATTERNS = 4
_ASK = """
import json, ssl, sys
from urllib.request import urlopen
context = None if sys.argv[2] == "True" else ssl._create_unverified_context()
answer = json.load(urlopen(sys.argv[1] + "/capabilities/version", timeout=float(sys.argv[3]), context=context))
print(json.dumps([str(answer.get(name) or "unknown") for name in ("app_version", "api_spec_version")]))
"""


def _address(text: str) -> str:
    address = urlsplit(text)
    if address.scheme not in ("http", "https") or not address.hostname or address.path.strip("/") or address.query:
        raise ValueError("it must be an address such as https://10.0.0.5:8443")
    if address.username is not None:
        raise ValueError("it must not contain a user or a password")
    _ = address.port
    return text.rstrip("/")


class OtgTester(RealGenerator):
    """Settings of a tester that speaks OTG."""

    # OTG's ``rate.pps`` is a whole number.
    load_step = 1.0
    has_tester = True
    kind: Literal["otg"]
    api: Annotated[str, AfterValidator(_address)]
    """Address of its REST interface, as the TG reaches it."""
    ports: dict[str, str] = Field(min_length=2)
    """For each port of the TG, its location in the tester."""
    verify: bool = True
    """Whether the certificate of an https address must be valid."""
    timeout: Duration = 30.0
    """Seconds that an answer may take."""
    metrics_delay: Duration = 1.0
    """Seconds by which its metrics may lag. If frames are missing, counters are read again after this time. A trial
    whose end is seen within this time does not count as sent too slowly."""

    def problems(self, ports: Mapping[str, Interface], pairs: int) -> Iterator[Problem]:
        """Ports without a location or MAC address, and settings that flows of a tester cannot have."""
        for name, interface in ports.items():
            where = ("interfaces", name)
            if name not in self.ports:
                yield ("generator", "ports"), f"the tester's location of port {name!r} is missing"
            if interface.mac_address is None:
                yield (where, "the port's 'mac_address' is needed: the source of its frames, e.g. 02:00:00:00:00:01")

            for field in ("address", "gateway"):
                if getattr(interface, field):
                    yield ((*where, field), "a tester's flows do not answer: give the DUT static neighbours")

        if len(set(self.ports.values())) < len(self.ports):
            yield ("generator", "ports"), "two ports have the same location"


class Otg(Generator[OtgTester]):
    """A tester of the Open Traffic Generator."""

    settings_type = OtgTester
    program = "lossratio_otg.program"
    runs_schedules = locates_running_losses = False

    @classmethod
    def needs(cls, settings: OtgTester, session: NodeSession) -> Iterator[str]:
        """Snappi on the controller, and a tester that answers."""
        try:
            load_snappi()
            _versions(settings, session)
        except LossRatioError as error:
            yield str(error)

    @classmethod
    def choices(cls, settings: OtgTester, session: NodeSession, ports: Sequence[Port], cpus: int) -> Iterator[str]:
        """The tester's version, and what OTG cannot report."""
        try:
            app, models = _versions(settings, session)
        except LossRatioError:
            # A tester that does not answer is reported by the needs.
            return
        yield f"tester: {app}, OTG {models}"
        yield (
            "OTG has no bursts with a checked rate and no schedules, and reports only the smallest, mean and largest "
            "latency"
        )
        if session.node.is_here:
            yield "the reservation is a file of this machine: users of the tester on other machines do not see it"

    def ready(self) -> Mapping[str, Any]:
        """See `Generator.ready`: how the tester is reached."""
        settings = self.settings
        names = ("verify", "timeout", "metrics_delay")
        return {"address": settings.api, **{name: getattr(settings, name) for name in names}}

    def options(self, configuration: Configuration) -> Mapping[str, Any]:
        """See `Generator.options`: also the tester's configuration, which the models have checked."""
        # Other configurations of the tester have no ports with these names.
        token = secrets.token_hex(4)
        ports = {name: f"{name} {token}" for name in configuration.ports}
        config = checked("Config", self._config(configuration, ports))
        return {**self.ready(), "config": config, "ports": ports}

    def port_name(self, port: Port) -> str:
        """See `Generator.port_name`: the name in the topology file."""
        return port.name

    def mac_address(self, port: Port) -> str:
        """The address in the topology file.

        Raises:
            TopologyError: If it is not there.
        """
        if port.interface.mac_address is None:
            raise TopologyError(f"{port}: the tester needs the port's 'mac_address' in the topology file.")
        return port.interface.mac_address.lower()

    def _config(self, configuration: Configuration, ports: Mapping[str, str]) -> dict[str, Any]:
        macs = {self.port_name(port): self.mac_address(port) for port in self.ports}
        flows = []
        for direction in configuration.directions:
            frames, sink = direction.frames, direction.receive
            if len(frames.fields) > _MOST_PATTERNS:
                raise TopologyError(
                    f"{direction.name}: {len(frames.fields)} header fields change from frame to frame, but a flow of "
                    f"OTG can change at most {_MOST_PATTERNS}. Use a traffic profile with fewer ranges."
                )

            size: dict[str, Any] = {"choice": "fixed", "fixed": frames.max_size}
            if len(frames.sizes) > 1:
                pairs = [{"size": each, "weight": float(weight)} for each, weight in frames.sizes]
                size = {"choice": "weight_pairs", "weight_pairs": {"choice": "custom", "custom": pairs}}

            source = ports[direction.transmit]
            _, _, short = source.rpartition(" ")
            packet = write_packet(frames, macs[direction.transmit], direction.destination_mac or macs[sink])
            flow = {
                "name": f"{direction.name} {short}",
                "tx_rx": {"choice": "port", "port": {"tx_name": source, "rx_names": [ports[sink]]}},
                "packet": packet,
                "size": size,
            }
            flows.append(flow)

        located = [{"name": own, "location": self.settings.ports[name]} for name, own in ports.items()]
        return {"ports": located, "flows": flows}


def _versions(settings: OtgTester, session: NodeSession) -> tuple[str, str]:
    timeout = f"{settings.timeout:g}"
    asked = session.run(settings.python, "-c", _ASK, settings.api, str(settings.verify), timeout, check=False)
    try:
        app, models = json.loads(asked.stdout)
    except ValueError as error:
        words = (asked.stderr.strip().splitlines() or ["no answer"])[-1]
        raise TopologyError(
            f"no OTG tester answers at {settings.api} ({words}): start the tester, or correct the generator's "
            "'api' in the topology file"
        ) from error
    return app, models
