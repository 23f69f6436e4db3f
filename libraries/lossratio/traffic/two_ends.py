"""A TG whose ports are on two nodes: a relay that speaks to the agent on each node, and answers like one agent.

Each agent gets its own part of a request. The counters of a direction are those of its two ends: what left, from the
sending agent, and what came back, from the receiving agent. Where the agents meet (see
`lossratio.agent.core.meeting`), the relay passes on what each of them says.
"""

import json
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from lossratio.errors import NodeError

START_SECONDS = 0.005
"""Seconds from the moment when both ends are ready until they begin to send."""
_BETWEEN = ":"
"""Separates a node's name from its interface's: no Linux interface has it in its name."""
_READINGS = 8
"""Number of readings of a node's clock; the one that took the least time is the best."""
Message = dict[str, Any]
_NEVER = 1.0
"""The limit of the loss ratio of a trial that is watched, but never ends early."""


class AgentProcess(Protocol):
    """The process through which an agent is addressed: see `lossratio.nodes.NodeProcess`."""

    @property
    def exit_status(self) -> int | None:
        """The exit status; -1 after a signal or a lost connection, None while the agent runs."""

    def write_line(self, text: str) -> None:
        """Sends one line."""

    def read_line(self, timeout: float, meanwhile: Callable[[], object] | None = None) -> str:
        """Waits for one line.

        Args:
            timeout: Seconds to wait at most.
            meanwhile: Called about once a second; None: nothing is.
        """

    def close(self) -> int | None:
        """Ends the agent."""


def port_at(node: str, interface: str) -> str:
    """The name of an interface if the interfaces of two nodes have to be distinguished."""
    return f"{node}{_BETWEEN}{interface}"


class TwoEnds:
    """The agents on both nodes of a TG, with the interface of one agent's process."""

    def __init__(self, processes: Mapping[str, AgentProcess]) -> None:
        self._processes = dict(processes)
        self._request: Message = {}
        self._asked: list[str] = []
        self._division = _Division(list(self._processes))

    @property
    def exit_status(self) -> int | None:
        """The exit status of the first agent that has ended; None while both run."""
        statuses = (process.exit_status for process in self._processes.values())
        return next((status for status in statuses if status is not None), None)

    def write_line(self, text: str) -> None:
        """Sends each agent its part of a request; an empty line goes to both.

        Raises:
            NodeError: If an agent has ended, or its connection is lost.
        """
        if not text:
            for process in self._processes.values():
                process.write_line(text)
            return

        self._request = json.loads(text)
        parts = self._division.parts(self._request)
        self._asked = list(parts)
        for node, part in parts.items():
            self._processes[node].write_line(json.dumps({**self._request, **part}))

    def read_line(self, timeout: float, meanwhile: Callable[[], object] | None = None) -> str:
        """Carries messages between the agents, and returns their combined answer.

        Args:
            timeout: Seconds that each of their lines may take.
            meanwhile: Called about once a second; None: nothing is.

        Raises:
            NodeError: If an agent has ended or does not answer (the message names its node), or one is out of step.
        """
        while True:
            said: dict[str, Message] = {}
            for node in self._asked:
                said[node] = self._next(node, timeout, meanwhile)
                if "note" in said[node]:
                    # This is the first node's note: the other node has not been heard yet.
                    return json.dumps(said[node])

            refused = [node for node in said if "error" in said[node]]
            if refused:
                return json.dumps(self._refusal(said, refused, timeout, meanwhile))
            if all("result" in message for message in said.values()):
                results = {node: message["result"] for node, message in said.items()}
                merged = self._division.merged(self._request, results)
                return json.dumps({"id": self._request["id"], "result": merged})

            if not all("meet" in message for message in said.values()):
                raise NodeError(
                    f"Node {' and '.join(said)}: the agents at both ends of the path are out of step. Measure again."
                )
            self._introduce({node: message["meet"] for node, message in said.items()})

    def close(self) -> int | None:
        """Ends both agents; returns the exit status of the first one that has one."""
        statuses = [process.close() for process in self._processes.values()]
        return next((status for status in statuses if status is not None), None)

    def _next(self, node: str, timeout: float, meanwhile: Callable[[], object] | None) -> Message:
        line = self._processes[node].read_line(timeout, meanwhile)
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict) or message.get("id") != self._request["id"]:
            raise NodeError(
                f"Node {node}: its output was {line[:200]!r} instead of an answer. "
                "If a log-in script wrote this, make it write only in "
                "interactive shells."
            )
        if "meet" in message and "now" in message["meet"]:
            self._division.behind[node].append(time.monotonic() - message["meet"]["now"])
        return message

    def _refusal(
        self,
        said: Mapping[str, Message],
        refused: Sequence[str],
        timeout: float,
        meanwhile: Callable[[], object] | None,
    ) -> Message:
        """The error of the end that cannot continue, by its name; the other end is stopped, or released."""
        stop = {"id": self._request["id"], "op": "stop"}
        for node, message in said.items():
            if self._request["op"] == "run" and "result" in message:
                # It may have begun traffic without an end.
                self._processes[node].write_line(json.dumps(stop))
                message = self._next(node, timeout, meanwhile)
            if "meet" in message:
                self._processes[node].write_line(json.dumps({"op": "met"}))
                self._next(node, timeout, meanwhile)

        first = refused[0]
        error = said[first]["error"]
        return {**said[first], "error": {**error, "message": f"at {first}: {error['message']}"}}

    def _introduce(self, meetings: Mapping[str, Message]) -> None:
        """Tells each end what the other one says, and when both begin."""
        begin = time.monotonic() + START_SECONDS
        for node in meetings:
            others = [said for other, said in meetings.items() if other != node]
            answer: Message = {"op": "met", "said": others[0] if others else {}}
            if "now" in meetings[node]:
                answer["at"] = begin - min(self._division.behind[node])
            self._processes[node].write_line(json.dumps(answer))


class _Division:
    """How a request is divided between the agents on two nodes, and what their answers are together."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self.behind: dict[str, deque[float]] = {node: deque(maxlen=_READINGS) for node in nodes}
        """Seconds by which each node's clock is behind, in the latest readings."""
        self._nodes = nodes
        self._first = nodes[0]
        self._macs: dict[str, str] = {}
        self._ends: dict[str, tuple[str, str]] = {}

    def parts(self, request: Message) -> dict[str, Message]:
        """The parts of the request that differ between the agents."""
        nodes = self._nodes
        operation = request["op"]
        if operation == "configure":
            tag = secrets.randbits(31)
            ways = request["configuration"]["directions"]
            self._ends = {
                way["name"]: (_node_of(way["transmit"]), _node_of(way["receive"])) for way in ways
            }
            return {node: self._configuration(node, request, tag) for node in nodes}
        if operation == "resolve":
            questions = {node: self._of_node(node, request["questions"]) for node in nodes}
            return {node: {"questions": own} for node, own in questions.items() if own}
        if operation == "probe":
            return {node: self._probe(node, request) for node in nodes}
        if operation == "clock":
            return {self._first: {}}

        plan = request.get("plan", {})
        if not plan.get("notes"):
            return {node: {} for node in nodes}
        # Both check the counters of both ends, and one of them reports what they see.
        watched = {**plan, "above": _NEVER if plan["above"] is None else plan["above"]}
        return {node: {"plan": {**watched, "notes": node == self._first}} for node in nodes}

    def _configuration(self, node: str, request: Message, tag: int) -> Message:
        whole = request["configuration"]
        configuration = {
            **whole,
            "ports": [_interface_of(port) for port in whole["ports"] if _node_of(port) == node],
            "directions": [self._direction(node, way) for way in whole["directions"]],
            "speakers": self._of_node(node, whole["speakers"]),
            "first_tag": tag,
        }
        return {"configuration": configuration}

    def _direction(self, node: str, way: Message) -> Message:
        """A direction for an agent, with the MAC addresses of the end that it does not see."""
        own = {
            end: _interface_of(way[end])
            for end in ("transmit", "receive")
            if _node_of(way[end]) == node
        }
        missing = [end for end in ("transmit", "receive") if end not in own]
        return {
            **way,
            **own,
            "elsewhere": missing[0] if missing else "",
            "source_mac": way["source_mac"] or self._macs[way["transmit"]],
            "destination_mac": way["destination_mac"] or self._macs[way["receive"]],
        }

    def _probe(self, node: str, request: Message) -> Message:
        def own(ports: Sequence[str]) -> list[str]:
            return [_interface_of(port) for port in ports if _node_of(port) == node]

        sends = [
            [_interface_of(port), frame]
            for port, frame in request["sends"]
            if _node_of(port) == node
        ]
        return {
            "ports": own(request["ports"]),
            "listen": own(request["listen"]),
            "sends": sends,
            "speakers": self._of_node(node, request["speakers"]),
            "meet": True,
        }

    def _of_node(self, node: str, parts: Sequence[Message]) -> list[Message]:
        return [
            {**part, "port": _interface_of(part["port"])}
            for part in parts
            if _node_of(part["port"]) == node
        ]

    def merged(self, request: Message, results: Mapping[str, Message]) -> Message:
        """The answer to a request, from the answers of the agents."""
        operation = request["op"]
        if operation == "hello":
            return self._facts(results)
        if operation == "configure":
            return self._generator_facts(results)
        if operation == "resolve":
            answers = {node: iter(result["macs"]) for node, result in results.items()}
            asked = [_node_of(question["port"]) for question in request["questions"]]
            return {"macs": [next(answers[node]) for node in asked]}
        if operation == "probe":
            return self._probe_answer(results)

        merged: Message = {}
        for result in results.values():
            merged = {**merged, **result}
        if merged.get("directions"):
            merged["directions"] = [self._counters(name, results) for name in self._ends]
        if merged.get("late") is not None:
            # Late frames of a direction come to its receiver.
            ends = self._ends.items()
            merged["late"] = {name: results[sink]["late"][name] for name, (_, sink) in ends}
        if merged.get("latency") is not None:
            # Each end reports it for the frames that come back to it.
            found = {
                one["direction"]: one for result in results.values() for one in result["latency"]
            }
            merged["latency"] = [found[name] for name in self._ends]
        return merged

    def _counters(self, name: str, results: Mapping[str, Message]) -> Message:
        """The counters of a direction: what left from its one end, and what came back to the other."""
        source, sink = self._ends[name]
        merged: Message = {}
        for node in (source, sink):
            merged |= next(way for way in results[node]["directions"] if way["name"] == name)
        if "course" in merged:
            # By the clock of the first node, like the answer to 'clock'.
            shift = min(self.behind[source]) - min(self.behind[self._first])
            merged["course"] = {**merged["course"], "began": merged["course"]["began"] + shift}
        return merged

    def _facts(self, results: Mapping[str, Message]) -> Message:
        for node, facts in results.items():
            self._macs |= {port_at(node, name): mac for name, mac in facts["interfaces"].items()}
        first, second = results.values()
        differing = {
            name: f"{first[name]}; {second[name]}"
            for name in ("python", "kernel", "machine", "cpu")
            if first[name] != second[name]
        }
        numpy = first["numpy"] and second["numpy"]
        cpus = min(first["cpus"], second["cpus"])
        return {**first, **differing, "numpy": numpy, "cpus": cpus, "interfaces": self._macs}

    def _generator_facts(self, results: Mapping[str, Message]) -> Message:
        first = next(iter(results.values()))
        ports = {
            port_at(node, name): port
            for node, facts in results.items()
            for name, port in facts["ports"].items()
        }
        is_realtime = all(facts.get("realtime", True) for facts in results.values())

        whole: Message = {**first, "realtime": is_realtime, "ports": ports, "nodes": list(results)}
        integrity = {node: facts["integrity"] for node, facts in results.items()}
        examining = [one for one in integrity.values() if one["in_trials"]]
        if len(examining) == 1:
            left_out = [
                f"at {node}: {what}"
                for node, one in integrity.items()
                for what in one["not_checked"]
            ]
            whole["integrity"] = {**examining[0], "not_checked": left_out}
        if "receives" in first:
            whole["receives"] = {
                port_at(node, name): mode
                for node, facts in results.items()
                for name, mode in facts["receives"].items()
            }
        return whole

    def _probe_answer(self, results: Mapping[str, Message]) -> Message:
        def all_of(field: str) -> list[list[Any]]:
            return [
                [port_at(node, port), *rest]
                for node, result in results.items()
                for port, *rest in result[field]
            ]

        is_storm = any(result["is_storm"] for result in results.values())
        return {"arrivals": all_of("arrivals"), "unsent": all_of("unsent"), "is_storm": is_storm}


def _node_of(port: str) -> str:
    return port.partition(_BETWEEN)[0]


def _interface_of(port: str) -> str:
    return port.partition(_BETWEEN)[2]
