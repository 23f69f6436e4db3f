"""Labs of containerlab, in the file that it writes when it has deployed one."""

from __future__ import annotations

import json
from typing import Any


def deployed(name: str, nodes: dict[str, str], *links: str, **addresses: str) -> str:
    """A ``topology-data.json``.

    Args:
        name: The lab's name.
        nodes: The kind of each node by its name, with its image after a space if the image matters.
        links: The two ends of each link, such as ``tester:eth1 r1:e1-1``.
        addresses: Addresses by end, with underscores for the colon: ``tester_eth1="192.0.2.6/30 2001:db8::2/64"``.
    """
    known: dict[str, Any] = {}
    for node, kind in nodes.items():
        known[node] = {"kind": kind.split()[0], "image": "".join(kind.split()[1:]), "longname": f"clab-{name}-{node}"}

    def end(text: str) -> dict[str, str]:
        node, interface = text.split(":")
        given = addresses.get(text.replace(":", "_").replace("-", "_"), "").split()
        own = {f"ipv{6 if ':' in address else 4}": address for address in given}
        return {"node": node, "interface": interface, "mac": "", **own}

    pairs = [dict(zip("az", map(end, link.split()), strict=False)) for link in links]
    return json.dumps({"name": name, "nodes": known, "links": [{"endpoints": pair} for pair in pairs]})


ROUTERS = {"tester": "linux alpine:3", "r1": "nokia_srlinux", "r2": "nokia_srlinux"}
CIRCLE = ("tester:eth1 r1:e1-1", "r1:e1-2 r2:e1-1", "r2:e1-2 tester:eth2")
OF_THIRD_LINK = {"r2_e1_2": "192.0.2.1/30", "tester_eth2": "192.0.2.2/30"}
OF_FIRST_LINK = {"tester_eth1": "192.0.2.6/30 2001:db8::2/64", "r1_e1_1": "192.0.2.5/30 2001:db8::1/64"}
ROUND = deployed("round", ROUTERS, *CIRCLE, **OF_THIRD_LINK)
"""A tester and two routers in a circle."""
ADDRESSED = deployed("round", ROUTERS, *CIRCLE, **OF_FIRST_LINK, **OF_THIRD_LINK)
"""The same, with addresses on both links of the tester."""
