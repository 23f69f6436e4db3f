"""The tester behind the server: it has one configuration, sends its flows with a generator of lossratio, and counts."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lossratio.errors import LossRatioError, NodeError
from lossratio.input_file import shown_name
from lossratio.traffic.client import AgentRefusalError
from lossratio.traffic.otg.captures import Capture, CaptureSettings, read_captures
from lossratio.traffic.otg.flows import (
    CAPTURE,
    CONFIG,
    CONTROL_STATE,
    METRICS,
    Flow,
    check_fields,
    configuration_of,
    groups_of,
    read_flows,
)
from lossratio.traffic.otg.packets import FieldError
from lossratio.traffic.otg.runs import Counted, OwnGenerator, Run
from lossratio.trials import DirectionCounters, LatencyCounters

_NANOSECONDS = 1000.0
_MOST_UNTOLD = 64
_LONGEST_LINE = 1000
_REFUSED_FIELDS = ("bad_request", "unsupported")
"""Kinds of the agent's refusals that are due to the request, e.g. frames that are larger than the MTU."""


class BusyError(LossRatioError):
    """Flows are being sent."""


class Tester:
    """A tester with some of this machine's network interfaces as ports. Close it at the end.

    The ports are given by the locations that configurations use for them, and no others are used. The kind of its
    generator is one of `lossratio.traffic.otg.runs.KINDS`. It waits for the settle time, in seconds, for frames in
    flight. `report` takes a line about what is going on.
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
        self._capture_settings: Mapping[str, CaptureSettings] = {}
        # Keys are names of ports. Stopped captures are kept for clients that ask for their frames.
        self._captures: dict[str, Capture] = {}
        self._counts: dict[str, Counted] = {}
        self._runs: list[Run] = []
        self._problem: LossRatioError | None = None
        self._generators: list[OwnGenerator] = []
        # Warnings about ended flows that no client has received yet.
        self._untold: list[str] = []

    def set_config(self, config: Mapping[str, Any], sent: Mapping[str, Any]) -> list[str]:
        """Sets the tester's configuration, prepares the generator for it, and returns warnings.

        After an error, there is no configuration, unless the error is a `BusyError`: flows are being sent.

        Raises:
            FieldError: If something in it is not supported, or there is no such port.
        """
        with self._lock:
            self._check_idle()
            self.config = {}
            self._flows = ()
            self._counts = {}
            self._problem = None
            self._end_captures()
            list(check_fields(sent, CONFIG))
            warnings = list(check_fields(config, CONFIG))
            flows = read_flows(config)
            self._capture_settings = read_captures(config)

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
        """Starts or stops flows or captures: all, unless some are named. If flows are still sent, raises `BusyError`.

        Returns warnings about ended flows and captures that were not reported to any client yet.

        Raises:
            FieldError: If something in it is not supported.
        """
        list(check_fields(sent, CONTROL_STATE))
        list(check_fields(state, CONTROL_STATE))
        with self._lock:
            if state.get("choice") == "port":
                self._set_captures(state.get("port", {}).get("capture", {}))
                return self._told()

            wanted = state.get("traffic", {}).get("flow_transmit", {})
            if "state" not in wanted:
                raise FieldError("traffic.flow_transmit.state", "it must be start or stop")
            flows = self._named(wanted.get("flow_names"))
            if wanted["state"] == "start":
                self._start(flows)
                return self._told()
            runs = [run for run in self._runs if set(run.flows) & set(flows)]

        self._stop(runs, flows)
        with self._lock:
            return self._told()

    def capture(self, request: Mapping[str, Any], sent: Mapping[str, Any]) -> bytes:
        """Stops the capture of a port, and returns its frames as a file.

        Raises:
            FieldError: If no capture was started there.
        """
        list(check_fields(sent, CAPTURE))
        list(check_fields(request, CAPTURE))
        name = request["port_name"]
        packets = request.get("packets", {})
        part = packets.get("slice", {}).get("initial", {})

        with self._lock:
            self._captured(name, "port_name")
            if name not in self._captures:
                raise FieldError("port_name", f"no capture was started on {name[:100]!r}")
            self._stop_capture(name)
            if packets.get("choice") != "slice":
                return self._captures[name].file()
            # Numbers of 64 bits are text, as in all JSON of Protocol Buffers.
            first = int(part.get("start", 1)) - 1
            return self._captures[name].file(slice(first, first + int(part.get("count", 100))))

    def metrics(self, request: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
        """The metrics of ports or flows. Frames are counted when the traffic has ended.

        Raises:
            FieldError: If there is no such port or flow.
        """
        list(check_fields(sent, METRICS))
        list(check_fields(request, METRICS))
        with self._lock:
            for run in self._runs:
                run.heard = time.monotonic()
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
        runs = list(self._runs)
        self._close_generators()
        for run in runs:
            run.stop()
        self._end_captures()

    def _say(self, text: str) -> None:
        # Names come from clients, and the operator's terminal obeys control characters.
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
        if self._runs:
            raise BusyError(
                "Flows are being sent. Stop them first (traffic.flow_transmit.state: stop)."
            )

    def _interfaces(self, config: Mapping[str, Any]) -> dict[str, str]:
        return {port["name"]: self._ports[port["location"]] for port in config["ports"]}

    def _set_captures(self, wanted: Mapping[str, Any]) -> None:
        if "state" not in wanted:
            raise FieldError("port.capture.state", "it must be start or stop")

        for name in wanted.get("port_names") or self._capture_settings:
            settings = self._captured(name, "port.capture.port_names")
            self._stop_capture(name)
            if wanted["state"] == "start":
                self._captures[name] = Capture(self._interfaces(self.config)[name], settings)

    def _captured(self, name: str, where: str) -> CaptureSettings:
        if name not in self._capture_settings:
            there = ", ".join(self._capture_settings) or "none"
            raise FieldError(
                where, f"{name[:100]!r} is not in port_names of captures; there are {there}"
            )
        return self._capture_settings[name]

    def _stop_capture(self, name: str) -> None:
        capture = self._captures.get(name)
        if capture is not None and capture.is_running:
            capture.stop()
            self._tell(capture.warnings())

    def _end_captures(self) -> None:
        for capture in self._captures.values():
            capture.stop()
        self._captures = {}

    def _close_generators(self) -> None:
        for generator in self._generators:
            generator.close()
        self._generators = []

    def _ready(self, flows: Sequence[Flow], config: Mapping[str, Any]) -> list[OwnGenerator]:
        """Generators that are ready for flows, one for each group of flows that are sent together."""
        groups = groups_of(flows)
        kind = self._kind_for(groups)
        if any(generator.kind != kind for generator in self._generators):
            self._close_generators()

        interfaces = self._interfaces(config)
        try:
            for number, group in enumerate(groups):
                if number == len(self._generators):
                    self._generators.append(OwnGenerator(kind))
                configuration = configuration_of(group, interfaces, self._settle_time)
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
        if len(groups) < 2 and not self._capture_settings:
            return self._kind
        if self._kind == "xdp":
            where = "captures" if self._capture_settings else "flows"
            raise FieldError(
                where,
                "the generator xdp captures nothing, and its flows last equally long. Start the server with "
                "--generator auto or afpacket",
            )
        return "afpacket"

    def _start(self, flows: tuple[Flow, ...]) -> None:
        self._check_idle()
        if not flows:
            raise FieldError(
                "traffic.flow_transmit.state",
                "there are no flows to start; send a configuration first",
            )
        self._problem = None
        generators = self._ready(flows, self.config)
        self._counts |= _no_counts(flows)
        self._runs = [Run(generator, self._ended) for generator in generators]

    def _stop(self, runs: Sequence[Run], flows: Sequence[Flow]) -> None:
        if not all(set(run.flows) <= set(flows) for run in runs):
            raise FieldError(
                "traffic.flow_transmit.flow_names",
                "flows that last equally long, and were started together, stop together",
            )
        for run in runs:
            run.stop()

    def _ended(self, run: Run, counters: Sequence[Counted]) -> None:
        with self._lock:
            self._runs.remove(run)
            if run.problem is not None:
                self._problem = run.problem
                self._say(f"failed: {run.problem}")
                # Continuing runs keep their generators until they have ended.
                run.generator.close()
                self._generators = [each for each in self._generators if each is not run.generator]

            for counted, latency in counters:
                self._counts[counted.name] = (counted, latency)
                warnings = list(_warnings(counted, latency))
                text = f"{counted.name}: sent {counted.sent_frames}"
                if self._named([counted.name])[0].sink is not None:
                    text += f", received {counted.received_frames}"
                self._tell(warnings, "; ".join([text, *warnings]))

    def _tell(self, warnings: Iterable[str], line: str | None = None) -> None:
        """Keeps warnings for the next client, and reports a line, or each warning if there is no line."""
        kept = list(warnings)
        # The last ones are enough for a client that never asks.
        self._untold = [*self._untold, *kept][-_MOST_UNTOLD:]
        for each in kept if line is None else [line]:
            self._say(each)

    def _flow_metric(self, flow: Flow) -> dict[str, Any]:
        counted, latency = self._counts[flow.name]
        is_sent = any(flow in run.flows for run in self._runs)
        counts = {"tx": counted.sent_frames}
        metric: dict[str, Any] = {
            "name": flow.name,
            "port_tx": flow.source,
            "transmit": "started" if is_sent else "stopped",
        }
        # It is not known what happens to frames that nobody receives.
        if flow.sink is not None:
            counts["rx"] = counted.received_frames
            metric["port_rx"] = flow.sink

        for end, count in counts.items():
            metric |= {f"frames_{end}": count, f"frames_{end}_rate": 0.0}
            if len(flow.sizes) == 1:
                metric[f"bytes_{end}"] = count * flow.sizes[0][0]

        if flow.wants_loss and "rx" in counts:
            lost = counts["tx"] - counts["rx"]
            metric["loss"] = 100.0 * lost / counts["tx"] if counts["tx"] else 0.0
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
        sent = [self._flow_metric(flow) for flow in self._flows if flow.source == name]
        received = [self._flow_metric(flow) for flow in self._flows if flow.sink == name]
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
            # The bytes of a mix of sizes are not counted.
            if all(f"bytes{column}" in flow for flow in flows):
                metric[f"bytes{column}"] = sum(flow[f"bytes{column}"] for flow in flows)

        return metric


def _warnings(counted: DirectionCounters, latency: LatencyCounters | None) -> Iterator[str]:
    """What the metrics of a flow do not show."""
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
    """The requested metrics; in requests, the models have other names for some of them."""
    if not names:
        return metrics
    wanted = {"name", *names}
    columns = []
    for metric in metrics:
        columns.append({name: value for name, value in metric.items() if name in wanted})
    return columns
