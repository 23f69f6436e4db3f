"""A server of the Open Traffic Generator in a namespace, and snappi's own client beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from netns import NetnsLab
from waiting import wait_until

CLIENT = """
import json, sys, time, logging
import snappi
logging.disable(logging.WARNING)
api = snappi.api(location="http://127.0.0.1:8080")
def state(word):
    wanted = api.control_state()
    wanted.traffic.flow_transmit.state = word
    return api.set_control_state(wanted).warnings
def capture(word):
    wanted = api.control_state()
    wanted.port.capture.state = word
    return api.set_control_state(wanted).warnings
def captured(name):
    request = api.capture_request()
    request.port_name = name
    return api.get_capture(request).read().hex()
def metrics(kind):
    request = api.metrics_request()
    request.choice = kind
    getattr(request, kind)
    return json.loads(api.get_metrics(request).serialize())[kind + "_metrics"]
def wait(*names):
    while any(flow["transmit"] == "started" for flow in metrics("flow") if not names or flow["name"] in names):
        time.sleep(0.05)
def send(config):
    api.set_config(json.dumps(config))
    state("start")
    wait()
    return metrics("flow")
for line in sys.stdin:
    expression, config = json.loads(line)
    try:
        answer = eval(expression, globals(), {"config": config})
    except Exception as error:
        answer = {"error": " ".join(str(error).split())}
    print(json.dumps(answer), flush=True)
"""
"""Evaluates the expressions of tests beside the server, in its namespace: one on each line, with a configuration."""


AFPACKET = ("--generator", "afpacket")


class OtgLab:
    """``lossratio otg-serve`` on the TG of namespaces whose DUT is a bridge."""

    def __init__(self, lab: NetnsLab, *arguments: str) -> None:
        self.lab = lab
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._client = lab.popen("tg", sys.executable, "-c", CLIENT, **streams, text=True)
        self.start(*arguments)

    def serve(self, *arguments: str) -> None:
        """Sees to it that the server runs with these arguments."""
        if self.server.poll() is None:
            if arguments == self._arguments:
                return
            self.end()
        self.start(*arguments)

    def start(self, *arguments: str) -> None:
        """Starts the server, and waits until it listens."""
        self._arguments = arguments
        command = (
            "env",
            "-u",
            "SSH_CONNECTION",
            sys.executable,
            "-c",
            "from lossratio.commands.main import main; main()",
        )
        self.server = self.lab.popen(
            "tg",
            *(*command, "otg-serve", "west=tg0", "east=tg1", *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert "serves west, east" in self.server.stdout.readline()

    def ask(self, expression: str, config: Any = None) -> Any:
        """What an expression of `CLIENT` gives."""
        self._client.stdin.write(json.dumps([expression, config]) + "\n")
        self._client.stdin.flush()
        return json.loads(self._client.stdout.readline())

    def send(self, *flows: dict[str, Any]) -> list[dict[str, Any]]:
        """Sends flows, and returns their metrics; numbers of 64 bits are text in them."""
        answer = self.ask("send(config)", config(*flows))
        assert "error" not in answer, answer
        return answer

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Ends the server, waits until its agent has ended, and returns the exit status."""
        agents = self.agents()
        self.server.send_signal(number)
        status = self.server.wait(60)
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in agents))
        return status

    def agents(self) -> list[int]:
        """Ids of its agent's processes."""
        # Each is a child of the thread that started it.
        threads = Path(f"/proc/{self.server.pid}/task").iterdir()
        return [int(pid) for thread in threads for pid in (thread / "children").read_text().split()]


def config(*flows: dict[str, Any]) -> dict[str, Any]:
    """A configuration with both ports."""
    return {"ports": [{"name": name, "location": name} for name in ("west", "east")], "flows": list(flows)}


def flow(name: str = "f", source: str = "west", sink: str = "east", **fields: Any) -> dict[str, Any]:
    """A flow of UDP from one port to the other."""
    kinds = ("ethernet", "ipv4", "udp")
    return {
        "name": name,
        "tx_rx": {"choice": "port", "port": {"tx_name": source, "rx_names": [sink]}},
        "packet": [{"choice": kind, kind: {}} for kind in kinds],
        "metrics": {"enable": True, "loss": True},
        **fields,
    }


def lasting(packets: int, rate: int) -> dict[str, Any]:
    """The fields of a flow of so many packets at a rate."""
    return {
        "duration": {"choice": "fixed_packets", "fixed_packets": {"packets": packets}},
        "rate": {"choice": "pps", "pps": rate},
    }
