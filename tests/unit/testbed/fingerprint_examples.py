"""Fingerprints of a testbed before and after each change that the table of blame knows."""

from __future__ import annotations

from dataclasses import replace

from lossratio.testbed.changes import End, Way
from lossratio.testbed.fingerprint import ControllerPrint, Fingerprint, NodePrint, PortPrint, ThreadPrint

WAY = Way(("TG",), ((End("TG", "tg0"), End("DUT1", "dut0")), (End("DUT1", "dut1"), End("TG", "tg1"))), is_local=True)
PORT = PortPrint(mtu=1500, carrier_changes=2, speed=10_000, damaged=0, received=0, transmitted=0, refused=0)


def waiting(seconds, runs=0):
    """Threads of a DUT's program, one of which waited for a CPU for so many seconds until it had run so often."""
    return {"12": ThreadPrint("vpp_main", 3.0, 7), "13": ThreadPrint("vpp_wk_0", 1.0 + seconds, 100 + runs)}


COUNTERS = {
    "quota": "nr_throttled",
    "held": "{}/rx_prio3_pause",
    "holds": "{}/tx_pause_ctrl_phy",
    "allowance": "{}/pps_allowance_exceeded",
    "overrun": "{}/rx_missed_errors",
    "one_cpu": "{}/interrupts_of_cpu_0",
    "backlog": "softnet_dropped",
}


def counted(port, *moved):
    """The counters of causes outside of the DUT; those that moved have other values."""
    if "one_cpu" in moved:
        moved += ("overrun",)
    return {name.format(port): 40 + 2 * (cause in moved) for cause, name in COUNTERS.items()}


def node(names, boot_id):
    clocks = {"asked": 50.0, "answered": 50.001}
    return NodePrint(
        dict.fromkeys(names, PORT),
        boot_id,
        0.0,
        0.0,
        1000.0,
        900.0,
        **clocks,
        threads=waiting(0.0),
        counts=counted(names[0]),
    )


GOOD = Fingerprint(
    {"TG": node(("tg0", "tg1"), "boot of TG"), "DUT1": node(("dut0", "dut1"), "boot of DUT1")},
    ControllerPrint(awake=40.0, running=50.0, time=1e9),
)


def later(fingerprint, seconds=1.0):
    """The same testbed some seconds later."""

    def aged(facts):
        times = {name: getattr(facts, name) + seconds for name in ("uptime", "awake", "asked", "answered")}
        return replace(facts, **times)

    clocks = fingerprint.controller
    return Fingerprint(
        {name: aged(facts) for name, facts in fingerprint.nodes.items()},
        ControllerPrint(clocks.awake + seconds, clocks.running + seconds, clocks.time + seconds),
    )


def with_node(fingerprint, name, **values):
    return replace(fingerprint, nodes={**fingerprint.nodes, name: replace(fingerprint.nodes[name], **values)})


def with_port(fingerprint, node_name, port_name, **values):
    ports = dict(fingerprint.nodes[node_name].ports)
    ports[port_name] = replace(ports[port_name], **values)
    return with_node(fingerprint, node_name, ports=ports)


def without_port(fingerprint, node_name, port_name):
    ports = {name: port for name, port in fingerprint.nodes[node_name].ports.items() if name != port_name}
    return with_node(fingerprint, node_name, ports=ports)


def without_node(fingerprint, name):
    return replace(
        fingerprint, nodes={node_name: node for node_name, node in fingerprint.nodes.items() if node_name != name}
    )


def with_clocks(fingerprint, **values):
    return replace(fingerprint, controller=replace(fingerprint.controller, **values))


NOW = later(GOOD)
UP = NOW.nodes["TG"].uptime
SEEN = {
    ("TG", "rebooted"): with_node(NOW, "TG", boot_id="another boot"),
    ("TG", "gone"): without_port(NOW, "TG", "tg0"),
    ("TG", "down"): with_port(NOW, "TG", "tg0", is_up=False, has_carrier=False),
    ("TG", "mtu"): with_port(NOW, "TG", "tg0", mtu=300),
    ("DUT", "rebooted"): with_node(NOW, "DUT1", boot_id="another boot"),
    ("DUT", "dead"): without_node(with_port(NOW, "TG", "tg0", has_carrier=False), "DUT1"),
    ("DUT", "gone"): without_port(NOW, "DUT1", "dut1"),
    ("DUT", "down"): with_port(NOW, "DUT1", "dut1", is_up=False, has_carrier=False),
    ("DUT", "mtu"): with_port(NOW, "DUT1", "dut1", mtu=300),
    ("wire", "speed"): with_port(NOW, "TG", "tg1", speed=1000),
    ("wire", "carrier"): with_port(NOW, "TG", "tg1", has_carrier=False, carrier_changes=3),
    ("wire", "flapped"): with_port(NOW, "TG", "tg1", carrier_changes=4),
    ("wire", "damaged"): with_port(NOW, "DUT1", "dut0", damaged=7),
    ("wire", "refused"): with_port(NOW, "DUT1", "dut1", refused=7),
    ("TG", "suspended"): with_node(NOW, "TG", awake=900.5),
    ("TG", "standstill"): with_node(later(GOOD, 10.0), "TG", uptime=1001.0, awake=901.0),
    ("TG", "stolen"): with_node(NOW, "TG", stolen=0.2),
    ("TG", "pressure"): with_node(NOW, "TG", pressure=0.6),
    ("DUT", "suspended"): with_node(NOW, "DUT1", awake=900.5),
    ("DUT", "standstill"): with_node(later(GOOD, 10.0), "DUT1", uptime=1001.0, awake=901.0),
    ("controller", "suspended"): with_clocks(NOW, awake=40.2),
    ("DUT", "stolen"): with_node(NOW, "DUT1", stolen=0.2),
    ("DUT", "waited"): with_node(NOW, "DUT1", threads=waiting(0.06)),
    ("controller", "clock"): with_clocks(NOW, time=1e9 - 3600.0),
    **{("TG", cause): with_node(NOW, "TG", counts=counted("tg0", cause)) for cause in COUNTERS},
    **{("DUT", cause): with_node(NOW, "DUT1", counts=counted("dut0", cause)) for cause in COUNTERS},
}
