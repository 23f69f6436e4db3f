"""The tester behind the server: it has one configuration, sends its flows with a generator of lossratio, and counts."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lossratio.errors import LossRatioError, NodeError, TrafficError
from lossratio.input_file import shown_name
from lossratio.nodes import NodeSession
from lossratio.topology import AfPacketGenerator, AutoGenerator, RealGenerator, XdpGenerator
from lossratio.traffic.agent.core.configuration import Configuration
from lossratio.traffic.client import AgentClient, AgentRefusalError
from lossratio.traffic.generators import open_generator, start_agent
from lossratio.traffic.generators.base import Generator, GeneratorNode
from lossratio.traffic.otg.flows import (
    CONFIG,
    CONTROL_STATE,
    METRICS,
    Flow,
    check_fields,
    configuration_of,
    read_flows,
)
from lossratio.traffic.otg.packets import FieldError
from lossratio.trials import DirectionCounters, LatencyCounters, TrialInput

KINDS: Mapping[str, type[RealGenerator]] = {
    "auto": AutoGenerator,
    "afpacket": AfPacketGenerator,
    "xdp": XdpGenerator,
}
"""Its generators, and their settings."""
SILENT_SECONDS = 600.0
"""Seconds without a request after which flows without an end are stopped: their client has gone."""
_END_SECONDS = 0.5
"""Seconds before the end of flows from which on a request to stop them waits for the end."""
_COUNT_SECONDS = 30.0
_NANOSECONDS = 1000.0
_MOST_UNTOLD = 64
_LONGEST_LINE = 1000
_REFUSED_FIELDS = ("bad_request", "unsupported")
"""Kinds of the agent's refusals that are about what it was asked for, e.g. frames that are larger than the MTU."""


class BusyError(LossRatioError):
    """Flows are being sent."""


Counted = tuple[DirectionCounters, LatencyCounters | None]
"""What a flow has sent and received since it was started, and the latency of its frames, if that was measured."""


class Tester:
    """A tester with some of this machine's network interfaces as ports. Close it in the end.

    The ports are by the locations that configurations call them by, and no others are used. The kind of its generator
    is one of `KINDS`. It waits for the settle time, in seconds, for frames in flight. `report` takes a line about what
    is going on.
    """

    __test__ = False

    def __init__(
        self, ports: Mapping[str, str], kind: str, settle_time: float, report: Callable[[str], None]
    ) -> None:
        self._ports = ports
        self._kind = kind
        self._settle_time = settle_time
        self._report = report
        # Requests come from several clients; a run ends in a thread of its own.
        self._lock = threading.RLock()
        self.config: Mapping[str, Any] = {}
        self._flows: tuple[Flow, ...] = ()
        self._counts: dict[str, Counted] = {}
        self._run: _Run | None = None
        self._problem: LossRatioError | None = None
        self._generator: _OwnGenerator | None = None
        # What no client has been told yet of flows that have ended.
        self._untold: list[str] = []

    def set_config(self, config: Mapping[str, Any], sent: Mapping[str, Any]) -> list[str]:
        """Makes a configuration the tester's, gets the generator ready for it, and returns warnings.

        After an error there is no configuration, unless it is a `BusyError`: flows are being sent.

        Raises:
            FieldError: If something in it is not supported, or there is no such port.
        """
        with self._lock:
            self._check_idle()
            self.config = {}
            self._flows = ()
            self._counts = {}
            self._problem = None
            list(check_fields(sent, CONFIG))
            warnings = list(check_fields(config, CONFIG))
            flows = read_flows(config)

            for number, port in enumerate(config.get("ports", ())):
                if port.get("location") not in self._ports:
                    raise FieldError(
                        f"ports[{number}].location",
                        f"there is no {str(port.get('location'))[:100]!r}; there are {', '.join(self._ports)}",
                    )

            if flows:
                self._ready(flows, config)
            self.config, self._flows = config, flows
            self._counts = _no_counts(flows)
            return [*self._told(), *warnings]

    def set_state(self, state: Mapping[str, Any], sent: Mapping[str, Any]) -> list[str]:
        """Starts or stops flows: all, unless some are named. A `BusyError` if some are being sent yet.

        Returns warnings of flows that have ended, and were not reported to any client yet.

        Raises:
            FieldError: If something in it is not supported.
        """
        list(check_fields(sent, CONTROL_STATE))
        list(check_fields(state, CONTROL_STATE))
        wanted = state.get("traffic", {}).get("flow_transmit", {})
        if "state" not in wanted:
            raise FieldError("traffic.flow_transmit.state", "it must be start or stop")

        with self._lock:
            flows = self._named(wanted.get("flow_names"))
            run = self._run
            if wanted["state"] == "start":
                self._start(flows)
                return self._told()

        if run is not None:
            if {flow.name for flow in flows} != {flow.name for flow in run.flows}:
                raise FieldError(
                    "traffic.flow_transmit.flow_names",
                    "flows that were started together stop together",
                )
            run.stop()

        with self._lock:
            return self._told()

    def metrics(self, request: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
        """The metrics of ports or flows. Frames are counted when the traffic has ended.

        Raises:
            FieldError: If there is no such port or flow.
        """
        list(check_fields(sent, METRICS))
        list(check_fields(request, METRICS))
        with self._lock:
            if self._run is not None:
                self._run.heard = time.monotonic()
            if self._problem is not None:
                raise self._problem

            if request.get("choice") == "flow":
                wanted = request.get("flow", {})
                flows = self._named(wanted.get("flow_names"), "flow.flow_names")
                made = [self._flow_metric(flow) for flow in flows]
                return {
                    "choice": "flow_metrics",
                    "flow_metrics": _columns(made, wanted.get("metric_names")),
                }

            wanted = request.get("port", {})
            ports = {port["name"]: port["location"] for port in self.config.get("ports", ())}
            names = wanted.get("port_names") or list(ports)
            if not ports.keys() >= set(names):
                raise FieldError("port.port_names", f"there are {', '.join(ports) or 'none'}")

            made = [self._port_metric(name, ports[name]) for name in names]
            return {
                "choice": "port_metrics",
                "port_metrics": _columns(made, wanted.get("column_names")),
            }

    def close(self) -> None:
        """Ends all traffic at once, and the generator."""
        run, generator = self._run, self._generator
        if generator is not None:
            generator.close()
        if run is not None:
            run.stop()

    def _say(self, text: str) -> None:
        # Names are what clients say, and the operator's terminal obeys control characters.
        self._report(shown_name(text[:_LONGEST_LINE]))

    def _told(self) -> list[str]:
        told = self._untold
        self._untold = []
        return told

    def _named(
        self, names: Sequence[str] | None, where: str = "traffic.flow_transmit.flow_names"
    ) -> tuple[Flow, ...]:
        unknown = set(names or ()) - {flow.name for flow in self._flows}
        if unknown:
            raise FieldError(where, f"there is no flow {sorted(unknown)[0][:100]!r}")
        return tuple(flow for flow in self._flows if not names or flow.name in names)

    def _check_idle(self) -> None:
        if self._run is not None:
            raise BusyError(
                "Flows are being sent. Stop them first (traffic.flow_transmit.state: stop)."
            )

    def _ready(self, flows: Sequence[Flow], config: Mapping[str, Any]) -> "_OwnGenerator":
        interfaces = {port["name"]: self._ports[port["location"]] for port in config["ports"]}
        if self._generator is None:
            self._generator = _OwnGenerator(self._kind)
        try:
            self._generator.configure(flows, configuration_of(flows, interfaces, self._settle_time))
        except AgentRefusalError as error:
            if error.kind in _REFUSED_FIELDS:
                raise FieldError("flows", str(error)) from error
            raise
        except NodeError:
            self._generator.close()
            self._generator = None
            raise
        return self._generator

    def _start(self, flows: tuple[Flow, ...]) -> None:
        self._check_idle()
        if not flows:
            raise FieldError(
                "traffic.flow_transmit.state",
                "there are no flows to start; send a configuration first",
            )
        self._problem = None
        generator = self._generator
        if generator is None or generator.flows != flows:
            generator = self._ready(flows, self.config)
        self._counts |= _no_counts(flows)
        self._run = _Run(generator, flows, self._ended)

    def _ended(self, run: "_Run", counters: Sequence[Counted]) -> None:
        with self._lock:
            self._run = None
            self._problem = run.problem
            if run.problem is not None:
                self._say(f"failed: {run.problem}")
                if self._generator is not None:
                    self._generator.close()
                self._generator = None

            for counted, latency in counters:
                self._counts[counted.name] = (counted, latency)
                warnings = list(_warnings(counted, latency))
                # The last ones are enough for a client that never asks.
                self._untold = [*self._untold, *warnings][-_MOST_UNTOLD:]
                text = f"{counted.name}: sent {counted.sent_frames}, received {counted.received_frames}"
                self._say("; ".join([text, *warnings]))

    def _flow_metric(self, flow: Flow) -> dict[str, Any]:
        counted, latency = self._counts[flow.name]
        sent, received = counted.sent_frames, counted.received_frames
        is_sent = self._run is not None and flow in self._run.flows
        metric: dict[str, Any] = {
            "name": flow.name,
            "port_tx": flow.ports[0],
            "port_rx": flow.ports[1],
            "transmit": "started" if is_sent else "stopped",
            "frames_tx": sent,
            "frames_rx": received,
            "frames_tx_rate": 0.0,
            "frames_rx_rate": 0.0,
        }
        if len(flow.sizes) == 1:
            size = flow.sizes[0][0]
            metric |= {"bytes_tx": sent * size, "bytes_rx": received * size}

        if flow.wants_loss:
            metric["loss"] = 100.0 * (sent - received) / sent if sent else 0.0
        if latency is not None:
            found = {
                "minimum_ns": latency.least_us,
                "average_ns": latency.mean_us,
                "maximum_ns": latency.most_us,
            }
            metric["latency"] = {
                name: _NANOSECONDS * value for name, value in found.items() if value is not None
            }

        return metric

    def _port_metric(self, name: str, location: str) -> dict[str, Any]:
        sent = [self._flow_metric(flow) for flow in self._flows if flow.ports[0] == name]
        received = [self._flow_metric(flow) for flow in self._flows if flow.ports[1] == name]
        is_sending = any(flow["transmit"] == "started" for flow in sent)
        metric: dict[str, Any] = {
            "name": name,
            "location": location,
            "transmit": "started" if is_sending else "stopped",
            "frames_tx_rate": 0.0,
            "frames_rx_rate": 0.0,
            "bytes_tx_rate": 0.0,
            "bytes_rx_rate": 0.0,
        }

        for column, flows in (("_tx", sent), ("_rx", received)):
            metric[f"frames{column}"] = sum(flow[f"frames{column}"] for flow in flows)
            # Of a mix of sizes nobody counts the bytes.
            if all(f"bytes{column}" in flow for flow in flows):
                metric[f"bytes{column}"] = sum(flow[f"bytes{column}"] for flow in flows)

        return metric


def _warnings(counted: DirectionCounters, latency: LatencyCounters | None) -> Iterator[str]:
    """What the metrics of a flow do not say."""
    due = counted.sent_frames + counted.unsent_frames
    if counted.unsent_frames:
        share = 100 * counted.unsent_frames / due
        yield f"{counted.name}: {counted.unsent_frames:,} of {due:,} frames were not sent ({share:.3g} %)"
    if counted.generator_drop_frames:
        yield f"{counted.name}: {counted.generator_drop_frames:,} frames were dropped inside the generator"
    if latency is not None and latency.error is not None:
        yield f"{counted.name}: the latency is not known: {latency.error}"


def _no_counts(flows: Sequence[Flow]) -> dict[str, Counted]:
    return {flow.name: (DirectionCounters(flow.name, 0, 0, 0), None) for flow in flows}


def _columns(metrics: list[dict[str, Any]], names: Sequence[str] | None) -> list[dict[str, Any]]:
    """The metrics that were asked for; the models call some of them by another name in requests."""
    if not names:
        return metrics
    wanted = {"name", *names}
    columns = []
    for metric in metrics:
        columns.append({name: value for name, value in metric.items() if name in wanted})
    return columns


class _OwnGenerator:
    """A generator of this machine, with the agent that runs it, and the flows that it is ready for."""

    def __init__(self, kind: str) -> None:
        self.flows: Sequence[Flow] = ()
        self._configuration: Configuration | None = None
        self._session = NodeSession.here("otg-serve")
        settings = KINDS[kind].model_validate({"kind": kind, "python": sys.executable})
        self.agent: AgentClient = start_agent(settings, self._session)
        facts = self.agent.facts
        self._generator: Generator[RealGenerator] = open_generator(
            settings, GeneratorNode(self._session, facts.interfaces, facts.cpus), ()
        )

    def configure(self, flows: Sequence[Flow], configuration: Configuration) -> None:
        # A new rate or duration alone needs nothing new.
        if configuration != self._configuration:
            self._configuration = None
            self.flows = ()
            self._generator.configure(self.agent, configuration)
            self._configuration = configuration
        self.flows = flows

    def close(self) -> None:
        """Ends all traffic at once. A request that waits for an answer gets an error."""
        self._session.close()


class _Run:
    """Flows that are being sent, in a thread."""

    def __init__(
        self,
        generator: _OwnGenerator,
        flows: tuple[Flow, ...],
        ended: "Callable[[_Run, Sequence[Counted]], None]",
    ) -> None:
        self.flows = flows
        self.heard = time.monotonic()
        self.problem: LossRatioError | None = TrafficError(
            "The flows ended for a reason that is not known."
        )
        self._started = self.heard
        self._generator = generator
        self._ended = ended
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops them, and waits until their frames are counted."""
        duration = self.flows[0].duration
        if duration is not None:
            is_ending = time.monotonic() > self._started + duration - _END_SECONDS
            self._thread.join(_COUNT_SECONDS if is_ending else 0.0)
        self._stopping.set()
        if duration is not None and self._thread.is_alive():
            # The generator cannot be asked while it sends so many frames.
            self._generator.close()
        self._thread.join()

    def _work(self) -> None:
        counted: list[Counted] = []
        try:
            counted = self._send()
            self.problem = None
        except LossRatioError as error:
            self.problem = error
            if self._stopping.is_set() and self.flows[0].duration is not None:
                self.problem = NodeError(
                    "Flows of fixed_packets or fixed_seconds were stopped before their end; how many frames had left "
                    "is not known. Wait for their end, or use 'continuous'."
                )
        finally:
            self._ended(self, counted)

    def _send(self) -> list[Counted]:
        flow, agent, load = (
            self.flows[0],
            self._generator.agent,
            float(max(flow.rate for flow in self.flows)),
        )
        if flow.duration is None:
            agent.start_traffic(load)
            while not self._stopping.wait(1.0) and time.monotonic() - self.heard < SILENT_SECONDS:
                pass
            return [(counters, None) for counters in agent.stop_traffic().directions]

        if flow.wants_latency:
            output = agent.latency(load, flow.duration)
            return list(zip(output.directions, output.latency, strict=True))
        if flow.packets is None:
            return [(counters, None) for counters in agent.trial(load, flow.duration)]

        burst = replace(TrialInput(flow.duration, load), frames=round(load * flow.duration))
        return [(counters, None) for counters in agent.timed(burst)[0]]
