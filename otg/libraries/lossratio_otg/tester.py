"""The tester behind the server: it has one configuration, sends its flows with a generator of lossratio, and counts."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lossratio.errors import LossRatioError, NodeError
from lossratio.files import shown_name
from lossratio.traffic import AgentRefusalError
from lossratio.version import __version__
from lossratio_otg.captures import PortCaptures, read_captures
from lossratio_otg.flows import (
    CAPTURE,
    CONFIG,
    CONTROL_STATE,
    METRICS,
    Flow,
    configuration_of,
    groups_of,
    interfaces_of,
    read_flows,
    read_request,
)
from lossratio_otg.metrics import columns, flow_metric, no_counts, port_metric, report_of
from lossratio_otg.models import load_snappi
from lossratio_otg.packets import FieldError
from lossratio_otg.runs import Counted, OwnGenerator, Run

_MOST_UNTOLD = 64
_LONGEST_LINE = 1000
_REFUSED_FIELDS = ("bad_request", "unsupported")
"""Kinds of the agent's refusals that are due to the request, e.g. frames that are larger than the MTU."""


class BusyError(LossRatioError):
    """Flows are being sent."""


class _Told:
    """What the operator is told in lines, and clients are told in warnings."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        # Warnings about ended flows that no client has received yet.
        self._untold: list[str] = []

    def say(self, text: str) -> None:
        """Reports a line."""
        # Names come from clients, and the operator's terminal obeys control characters.
        self._report(shown_name(text[:_LONGEST_LINE]))

    def tell(self, warnings: Iterable[str], line: str | None = None) -> None:
        """Keeps warnings for the next client, and reports a line, or each warning if there is no line."""
        kept = list(warnings)
        # The last ones are enough for a client that never asks.
        self._untold = [*self._untold, *kept][-_MOST_UNTOLD:]
        for each in kept if line is None else [line]:
            self.say(each)

    def take(self) -> list[str]:
        """The warnings for the next client."""
        told = self._untold
        self._untold = []
        return told


class Tester:
    """A tester with some of this machine's network interfaces as ports. Close it at the end.

    The ports are given by the locations that configurations use for them, and no others are used. The kind of its
    generator is one of `lossratio_otg.runs.KINDS`. It waits for the settle time, in seconds, for frames in
    flight. `report` takes a line about what is going on.
    """

    __test__ = False

    def __init__(self, ports: Mapping[str, str], kind: str, settle_time: float, report: Callable[[str], None]) -> None:
        self._ports = ports
        self._kind = kind
        self._settle_time = settle_time
        self._told = _Told(report)

        # Requests come from several clients; a run ends in a thread of its own.
        self._lock = threading.RLock()
        self.config: Mapping[str, Any] = {}
        self._flows: tuple[Flow, ...] = ()
        self._captures = PortCaptures({}, {}, self._told.tell)
        self._counts: dict[str, Counted] = {}
        self._runs: list[Run] = []
        self._problem: LossRatioError | None = None
        self._generators: list[OwnGenerator] = []

    def version(self) -> dict[str, Any]:
        """The versions of the models and of lossratio."""
        local = load_snappi().api().get_local_version()
        versions = {"api_spec_version": local.api_spec_version, "sdk_version": local.sdk_version}
        return {**versions, "app_version": f"lossratio {__version__}"}

    def get_config(self) -> Mapping[str, Any]:
        """The configuration."""
        return self.config

    def set_config(self, sent: Any) -> dict[str, Any]:
        """Sets the tester's configuration, prepares the generator for it, and returns warnings.

        After an error, there is no configuration, unless the error is a `BusyError`: flows are being sent.

        Raises:
            FieldError: If something in it is not supported, or there is no such port.
            ModelError: If it does not fit the models.
        """
        with self._lock:
            self._check_idle()
            self.config = {}
            self._flows = ()
            self._counts = {}
            self._problem = None
            self._captures.end()
            self._captures = PortCaptures({}, {}, self._told.tell)

            config, warnings = read_request("Config", sent, CONFIG)
            interfaces = interfaces_of(config, self._ports)
            flows = read_flows(config, interfaces)
            self._captures = PortCaptures(read_captures(config), interfaces, self._told.tell)
            if flows:
                self._ready(flows)
            self.config, self._flows = config, flows
            self._counts = no_counts(flows)
            return {"warnings": [*self._told.take(), *warnings]}

    def set_state(self, sent: Any) -> dict[str, Any]:
        """Starts or stops flows or captures: all, unless some are named. If flows are still sent, raises `BusyError`.

        Returns warnings about ended flows and captures that were not reported to any client yet.

        Raises:
            FieldError: If something in it is not supported.
            ModelError: If it does not fit the models.
        """
        state, _ = read_request("ControlState", sent, CONTROL_STATE)
        runs: list[Run] = []
        with self._lock:
            if state.get("choice") == "port":
                self._captures.set_state(state.get("port", {}).get("capture", {}))
            else:
                wanted = state.get("traffic", {}).get("flow_transmit", {})
                if "state" not in wanted:
                    raise FieldError("traffic.flow_transmit.state", "it must be start or stop")
                flows = self._named(wanted.get("flow_names"))
                if wanted["state"] == "start":
                    self._start(flows)
                else:
                    runs = self._together(flows)
            if not runs:
                return {"warnings": self._told.take()}

        # A run that ends needs the lock.
        for run in runs:
            run.stop()
        with self._lock:
            return {"warnings": self._told.take()}

    def capture(self, sent: Any) -> bytes:
        """Stops the capture of a port, and returns its frames as a file.

        Raises:
            FieldError: If no capture was started there.
        """
        request, _ = read_request("CaptureRequest", sent, CAPTURE)
        with self._lock:
            return self._captures.file(request)

    def metrics(self, sent: Any) -> dict[str, Any]:
        """The metrics of ports or flows. Frames are counted when the traffic has ended.

        Raises:
            FieldError: If there is no such port or flow.
        """
        request, _ = read_request("MetricsRequest", sent, METRICS)
        with self._lock:
            for run in self._runs:
                run.heard = time.monotonic()
            if self._problem is not None:
                raise self._problem

            if request.get("choice") == "flow":
                wanted = request.get("flow", {})
                flows = self._named(wanted.get("flow_names"), "flow.flow_names")
                made = self._flow_metrics(flows)
                return {"choice": "flow_metrics", "flow_metrics": columns(made, wanted.get("metric_names"))}

            wanted = request.get("port", {})
            ports = {port["name"]: port["location"] for port in self.config.get("ports", ())}
            names = wanted.get("port_names") or list(ports)
            if not ports.keys() >= set(names):
                raise FieldError("port.port_names", f"there is no such port; there are {', '.join(ports) or 'none'}")

            made = [self._port_metric(name, ports[name]) for name in names]
            return {"choice": "port_metrics", "port_metrics": columns(made, wanted.get("column_names"))}

    def close(self) -> None:
        """Ends all traffic at once, and the generator."""
        runs = list(self._runs)
        self._close_generators()
        for run in runs:
            run.stop()
        self._captures.end()

    def _named(self, names: Sequence[str] | None, where: str = "traffic.flow_transmit.flow_names") -> tuple[Flow, ...]:
        unknown = set(names or ()) - {flow.direction.name for flow in self._flows}
        if unknown:
            raise FieldError(where, f"there is no flow {sorted(unknown)[0][:100]!r}")
        return tuple(flow for flow in self._flows if not names or flow.direction.name in names)

    def _check_idle(self) -> None:
        if self._runs:
            raise BusyError("Flows are being sent. Stop them first (traffic.flow_transmit.state: stop).")

    def _close_generators(self) -> None:
        for generator in self._generators:
            generator.close()
        self._generators = []

    def _ready(self, flows: Sequence[Flow]) -> list[OwnGenerator]:
        """Generators that are ready for flows, one for each group of flows that are sent together."""
        groups = groups_of(flows)
        kind = self._kind_for(groups)
        if any(generator.kind != kind for generator in self._generators):
            self._close_generators()

        try:
            for number, group in enumerate(groups):
                if number == len(self._generators):
                    self._generators.append(OwnGenerator(kind))
                configuration = configuration_of(group, self._settle_time)
                self._generators[number].configure(group, configuration)
        except AgentRefusalError as error:
            if error.kind in _REFUSED_FIELDS:
                raise FieldError("flows", str(error)) from error
            raise
        except NodeError:
            self._close_generators()
            raise

        for spare in self._generators[len(groups) :]:
            spare.close()
        del self._generators[len(groups) :]
        return self._generators

    def _kind_for(self, groups: Sequence[object]) -> str:
        """The generator for these groups of flows: XDP uses each port only once, and leaves captures no frames."""
        if len(groups) < 2 and not self._captures.kept_bytes:
            return self._kind
        if self._kind == "xdp":
            where = "captures" if self._captures.kept_bytes else "flows"
            raise FieldError(
                where,
                "the generator xdp cannot capture frames, and all of its flows must last equally long. Start the "
                "server with --generator auto or afpacket",
            )
        return "afpacket"

    def _start(self, flows: tuple[Flow, ...]) -> None:
        self._check_idle()
        if not flows:
            raise FieldError("traffic.flow_transmit.state", "there are no flows to start; send a configuration first")
        self._problem = None
        generators = self._ready(flows)
        self._counts |= no_counts(flows)
        self._runs = [Run(generator, self._ended) for generator in generators]

    def _together(self, flows: Sequence[Flow]) -> list[Run]:
        """The runs of these flows, which have no other flows."""
        runs = [run for run in self._runs if set(run.flows) & set(flows)]
        if not all(set(run.flows) <= set(flows) for run in runs):
            raise FieldError(
                "traffic.flow_transmit.flow_names",
                "other flows were started together with these. Stop all of them at the same time",
            )
        return runs

    def _ended(self, run: Run, counters: Sequence[Counted]) -> None:
        with self._lock:
            self._runs.remove(run)
            if run.problem is not None:
                self._problem = run.problem
                self._told.say(f"failed: {run.problem}")
                # Continuing runs keep their generators until they have ended.
                run.generator.close()
                self._generators = [each for each in self._generators if each is not run.generator]

            for counted, latency in counters:
                self._counts[counted.name] = (counted, latency)
                (flow,) = self._named([counted.name])
                self._told.tell(*report_of(counted, latency, is_received=flow.sink is not None))

    def _flow_metrics(self, flows: Iterable[Flow]) -> list[dict[str, Any]]:
        """The metrics of flows."""
        sent = {flow for run in self._runs for flow in run.flows}
        return [flow_metric(flow, *self._counts[flow.direction.name], flow in sent) for flow in flows]

    def _port_metric(self, name: str, location: str) -> dict[str, Any]:
        sent = self._flow_metrics(flow for flow in self._flows if flow.source == name)
        received = self._flow_metrics(flow for flow in self._flows if flow.sink == name)
        return port_metric(name, location, sent, received)
