# SPDX-License-Identifier: Apache-2.0
"""A generator whose frames a tester of the Open Traffic Generator (OTG) sends and counts, controlled over REST.

The agent runs it on the TG, so it imports only the agent and the standard library. It has one flow for each
direction, counted by the metrics of ports.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from lossratio import agent
else:
    import lossratio_agent as agent

TESTER = "tester"
"""Kind of the error if the tester refused a request."""
TESTER_LOST = "server_lost"
"""Kind of the error if the tester does not answer, or has forgotten its configuration."""
_LONGEST_SHOWN = 500
_MOST_BYTES = 1 << 24


class Tester:
    """A conversation with a tester at an address, e.g. ``https://10.0.0.5:8443``, whose certificate it may verify.

    An answer may take this many seconds (`timeout`).
    """

    def __init__(self, address: str, verify: bool, timeout: float) -> None:
        self.address = address
        self._verify = verify
        self._timeout = timeout
        self._connection: HTTPConnection | None = None

    def version(self) -> str:
        """Versions of the models that it speaks, and of itself."""
        answer = self.ask("GET", "/capabilities/version")
        return f"{answer.get('app_version') or 'unknown'} (OTG {answer.get('api_spec_version') or 'unknown'})"

    def configure(self, config: agent.Message) -> None:
        """Gives it a configuration, which replaces any other."""
        self.ask("POST", "/config", config)

    def transmit(self, state: str) -> None:
        """Starts or stops all flows."""
        flow_transmit = {"choice": "flow_transmit", "flow_transmit": {"state": state}}
        self.ask("POST", "/control/state", {"choice": "traffic", "traffic": flow_transmit})

    def metrics(self, kind: str) -> dict[str, agent.Message]:
        """The metrics of all ports, or of all flows, by name.

        Raises:
            AgentError: If the tester has none, or does not answer.
        """
        answer = self.ask("POST", "/monitor/metrics", {"choice": kind, kind: {}})
        try:
            found = {str(each["name"]): each for each in answer.get(f"{kind}_metrics") or ()}
        except (KeyError, TypeError) as error:
            text = f"{self.address} did not answer with the metrics of its {kind}s."
            raise agent.AgentError(TESTER, text) from error
        if not found:
            text = f"The tester {self.address} no longer has a configuration. Was it restarted?"
            raise agent.AgentError(TESTER_LOST, text)
        return found

    def ask(self, method: str, path: str, contents: Any = None) -> agent.Message:
        """Sends a request, and returns the answer.

        Raises:
            AgentError: If the tester does not answer with JSON, or refuses it.
        """
        body = None if contents is None else json.dumps(contents)
        try:
            connection = self._connection or self._connect()
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            data = response.read(_MOST_BYTES)
            self._connection = None if response.will_close else connection
            answer = json.loads(data or b"{}")
        except (OSError, HTTPException) as error:
            self.close()
            text = f"The tester {self.address} does not answer {method} {path}: {error or type(error).__name__}."
            raise agent.AgentError(
                TESTER_LOST, f"{text} Start it, or correct the generator's 'api' in the topology file."
            ) from error
        except ValueError as error:
            self.close()
            raise agent.AgentError(
                TESTER,
                f"{self.address} answers {method} {path}, but not with JSON, so it is not a tester. Correct the "
                "generator's 'api' in the topology file.",
            ) from error

        if response.status >= 400 or not isinstance(answer, dict):
            errors = answer.get("errors") if isinstance(answer, dict) else None
            if isinstance(errors, list):
                text = "; ".join(map(str, errors))
            else:
                text = str(answer)

            raise agent.AgentError(
                TESTER, f"The tester {self.address} refused {method} {path}: {text[:_LONGEST_SHOWN]}"
            )

        return answer

    def close(self) -> None:
        """Ends the connection."""
        connection = self._connection
        self._connection = None
        if connection is not None:
            connection.close()

    def _connect(self) -> HTTPConnection:
        address = urlsplit(self.address)
        if address.scheme != "https":
            return HTTPConnection(address.hostname or "", address.port, timeout=self._timeout)
        context = ssl.create_default_context()
        if not self._verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return HTTPSConnection(address.hostname or "", address.port, timeout=self._timeout, context=context)


_POLL_SECONDS = 0.02
_LIFE_SECONDS = 30.0
_PATIENCE = 10.0
"""Seconds beyond three times the duration after which a tester that still sends is stopped."""
_NANOSECONDS = 1000.0


class OtgGenerator:
    """Sends with a tester of the Open Traffic Generator; other options are `OtgTester`'s.

    Args:
        config: Its configuration, with a flow for each direction, but without rates, durations and metrics.
        ports: Names of the ports in that configuration, by the generator's names.
    """

    def __init__(
        self,
        configuration: agent.Configuration,
        address: str,
        verify: bool,
        timeout: float,
        metrics_delay: float,
        config: agent.Message,
        ports: Mapping[str, str],
    ) -> None:
        self._configuration = configuration
        self._directions = configuration.directions
        self._tester = Tester(address, verify, timeout)
        self._delay = metrics_delay
        self._config = config
        self._ports = ports

        self._is_running = False
        self._started = 0.0
        self._load = 0.0
        self._heard = 0.0
        self._counted: dict[str, int] = {}
        self._missing: dict[str, int] = {}
        self._version = self._tester.version()
        # A tester may refuse it; better now than in the first trial.
        self._tester.configure(self._with_flows(1000.0 / min(each.load_share for each in self._directions), 1.0))

    def facts(self) -> agent.Message:
        """The tester, and what OTG cannot report."""
        return {
            "generator": "otg",
            "can": [agent.FRAMES, agent.LATENCY, agent.HOLDS],
            "version": self._version,
            "unknown": ["frames that the generator dropped", "foreign frames", "begin and end of the traffic"],
            "integrity": {
                "in_trials": True,
                "checked": [],
                "not_checked": ["everything, because OTG only counts frames"],
            },
            "ports": dict(self._ports),
        }

    def run(self, plan: agent.Plan, control: agent.Control) -> agent.Answer:
        """See `Generator.run`. Of latency, the models have only minimum, mean and maximum."""
        if not plan.steps:
            return agent.Answer([], late=self._late())
        if plan.is_endless:
            return agent.Answer(self._send_until_stopped(plan.load, control))
        counters = self._send(plan, control.check)
        if not plan.latency:
            return agent.Answer(counters)
        metrics = self._tester.metrics("flow")
        flows = zip(counters, self._config["flows"])
        latency = [_latency(each, metrics.get(flow["name"], {}).get("latency") or {}) for each, flow in flows]
        return agent.Answer(counters, latency)

    def _send_until_stopped(self, load: float, control: agent.Control) -> list[agent.Message]:
        self._begin(load, None)
        control.has_begun()
        try:
            while not control.wants_end():
                control.check()
                if time.monotonic() > self._heard + _LIFE_SECONDS:
                    # A sign of life for the tester.
                    self._read()
                time.sleep(_POLL_SECONDS)
        except agent.AgentError:
            with suppress(agent.AgentError):
                self._end()
            raise

        elapsed = time.monotonic() - self._started
        self._end()
        counts = self._settled(control.check)
        # It is not known exactly when the tester began and ended, so it is assumed to have sent what was due.
        return [
            self._counters(direction, counts[direction.name], counts[direction.name][0], elapsed, self._delay)
            for direction in self._directions
        ]

    def _late(self) -> dict[str, list[int]]:
        late = {}
        for name, (_, received) in self._read().items():
            count, _, missing = agent.late_and_copies(received - self._counted[name], self._missing[name])
            late[name] = [count]
            self._counted[name] = received
            self._missing[name] = missing or 0
        return late

    def close(self) -> None:
        """See `Generator.close`."""
        # A tester that does not answer cannot be stopped.
        with suppress(agent.AgentError):
            self._end()
        self._tester.close()

    def _send(self, plan: agent.Plan, check: agent.Check) -> list[agent.Message]:
        if plan.ramp:
            raise agent.unsupported("OTG has no ramp before a flow. Measure with ramp=0.")

        duration = plan.duration
        packets = self._begin(plan.load, duration, latency=plan.latency)
        begun = time.monotonic()
        agent.pause(duration, check)
        elapsed = self._wait(packets, begun + duration, 3.0 * duration + _PATIENCE, check) - self._started
        self._is_running = False
        counts = self._settled(check)
        # Because the metrics may lag, a delay of up to this many seconds does not prove that the tester was slow.
        longer = elapsed - duration
        is_slow = longer > self._delay

        return [
            self._counters(
                direction,
                counts[direction.name],
                agent.frames_within(elapsed, self._rate(plan.load, direction)) if is_slow else packets[direction.name],
                elapsed if is_slow else duration,
                0.0 if is_slow else max(0.0, longer),
            )
            for direction in self._directions
        ]

    def _begin(self, load: float, duration: float | None, *, latency: bool = False) -> dict[str, int]:
        """Starts the flows; returns how many packets each direction must have."""
        self._tester.configure(self._with_flows(load, duration, latency=latency))
        self._load = load
        self._started = self._heard = time.monotonic()
        self._is_running = True
        self._tester.transmit("start")
        if duration is None:
            return {}
        return {each.name: agent.frames_within(duration, self._rate(load, each)) for each in self._directions}

    def _end(self) -> None:
        if self._is_running:
            self._is_running = False
            self._tester.transmit("stop")

    def _wait(self, packets: Mapping[str, int], due: float, patience: float, check: agent.Check) -> float:
        """Waits until all packets have left; returns when that was seen."""
        while True:
            counts = self._read()
            now = time.monotonic()
            if all(counts[name][0] >= number for name, number in packets.items()):
                return now

            if now > due + patience:
                sent = ", ".join(f"{name}: {counts[name][0]} of {number}" for name, number in packets.items())
                with suppress(agent.AgentError):
                    self._end()
                raise agent.AgentError(
                    "stalled",
                    f"The tester {self._tester.address} did not send its frames, or its metrics do not change: "
                    f"{patience:.0f} s after the end of the traffic, its ports had sent {sent}. Look at the tester, "
                    "or measure at lower loads (max_rate).",
                )

            agent.pause(_POLL_SECONDS, check)

    def _settled(self, check: agent.Check) -> dict[str, tuple[int, int]]:
        """The counts after frames in flight had their time, and metrics no longer lagged."""
        agent.pause(self._configuration.settle_time, check)
        counts = self._read()
        while any(received < sent for sent, received in counts.values()):
            agent.pause(self._delay, check)
            before = counts
            counts = self._read()
            if before == counts:
                break
        self._counted = {name: received for name, (_, received) in counts.items()}
        self._missing = {name: max(0, sent - received) for name, (sent, received) in counts.items()}
        return counts

    def _read(self) -> dict[str, tuple[int, int]]:
        """Frames sent and received, of each direction, by the metrics of its ports."""
        metrics = self._tester.metrics("port")
        self._heard = time.monotonic()

        try:
            ends = {each.name: (self._ports[each.transmit], self._ports[each.receive]) for each in self._directions}
            # Numbers of 64 bits are text in JSON of Protocol Buffers.
            return {
                name: (int(metrics[source]["frames_tx"]), int(metrics[sink]["frames_rx"]))
                for name, (source, sink) in ends.items()
            }
        except (KeyError, TypeError, ValueError) as error:
            raise agent.AgentError(
                TESTER,
                f"The tester {self._tester.address} no longer has counts for these ports ({error}). Another "
                "client may have changed its configuration. Measure again when nobody else uses the tester.",
            ) from error

    def _counters(
        self, direction: agent.Direction, counts: tuple[int, int], intended: int, elapsed: float, stretch: float
    ) -> agent.Message:
        sent, received = counts
        return {
            "name": direction.name,
            "intended_frames": intended,
            "sent_frames": sent,
            "received_frames": received,
            "unsent_frames": max(0, intended - sent),
            "generator_drop_frames": 0,
            "late_frames": 0,
            "elapsed_s": elapsed,
            "stretch_s": stretch,
            "load_ratio": self._rate(self._load, direction) / self._load,
            "examination": None,
        }

    def _rate(self, load: float, direction: agent.Direction) -> int:
        # Trials have loads with whole rates; for any other load, the counters show what happened.
        return max(1, round(load * direction.load_share))

    def _with_flows(self, load: float, duration: float | None, *, latency: bool = False) -> agent.Message:
        flows = []
        for flow, direction in zip(self._config["flows"], self._directions):
            rate = self._rate(load, direction)
            lasts: agent.Message = {"choice": "continuous", "continuous": {}}
            if duration is not None:
                lasts = {"choice": "fixed_packets", "fixed_packets": {"packets": agent.frames_within(duration, rate)}}
            metrics: dict[str, Any] = {"enable": True}
            if latency:
                metrics["latency"] = {"enable": True, "mode": "store_forward"}
            flows.append({**flow, "rate": {"choice": "pps", "pps": rate}, "duration": lasts, "metrics": metrics})
        return {**self._config, "flows": flows}


def _latency(counters: agent.Message, found: agent.Message) -> agent.Message:
    answer = {
        **agent.unknown_latency(counters["name"], 1 / _NANOSECONDS),
        "sent_frames": counters["sent_frames"],
        "received_frames": counters["received_frames"],
    }
    names = {"least_us": "minimum_ns", "mean_us": "average_ns", "most_us": "maximum_ns"}
    try:
        return {**answer, **{name: float(found[own]) / _NANOSECONDS for name, own in names.items()}}
    except (KeyError, TypeError, ValueError):
        return {**answer, "error": "The tester gave no latency for this flow."}


def make_generator(configuration: agent.Configuration, options: agent.Message) -> OtgGenerator:
    """Makes the generator; the options are its other arguments."""
    return OtgGenerator(configuration, **options)
