"""A server of the Open Traffic Generator in a namespace, and snappi's own client beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
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
    api.set_control_state(wanted)
def metrics(kind):
    request = api.metrics_request()
    request.choice = kind
    getattr(request, kind)
    return json.loads(api.get_metrics(request).serialize())[kind + "_metrics"]
def wait():
    while any(flow["transmit"] == "started" for flow in metrics("flow")):
        time.sleep(0.05)
def send(config):
    api.set_config(json.dumps(config))
    state("start")
    wait()
    return metrics("flow")
try:
    print(json.dumps(eval(sys.argv[1], globals(), {"config": json.load(sys.stdin)})))
except Exception as error:
    print(json.dumps({"error": " ".join(str(error).split())}))
"""
"""Evaluates a test's expression beside the server, in its namespace; the configuration is on its standard input."""


class OtgLab:
    """``lossratio otg-serve`` on the TG of namespaces whose DUT is a bridge."""

    def __init__(self, lab: NetnsLab, *arguments: str) -> None:
        self.lab = lab
        self._arguments = arguments
        self.start()

    def start(self) -> None:
        """Starts the server, and waits until it listens."""
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
            *(*command, "otg-serve", "west=tg0", "east=tg1", *self._arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert "serves west, east" in self.server.stdout.readline()

    def ask(self, expression: str, config: Any = None) -> Any:
        """What an expression of `CLIENT` gives."""
        command = (sys.executable, "-c", CLIENT, expression)
        return json.loads(self.lab.run("tg", *command, input=json.dumps(config)).stdout)

    def send(self, *flows: dict[str, Any]) -> list[dict[str, Any]]:
        """Sends flows, and returns their metrics; numbers of 64 bits are text in them."""
        return self.ask("send(config)", config(*flows))

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Ends the server, waits until its agent has ended, and returns the exit status."""
        agents = self.agents()
        self.server.send_signal(number)
        status = self.server.wait(60)
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in agents))
        return status

    def agents(self) -> list[int]:
        """Ids of its agent's processes."""
        children = f"/proc/{self.server.pid}/task/{self.server.pid}/children"
        with open(children, encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]


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
