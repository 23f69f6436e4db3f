"""The options of all built-in kinds of DUT, for editors and type checkers; a suite and a script give them so.

The classes of options (`DutOptions`) are what is read: they check the values, and belong to one kind each. A test holds
these names equal to theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Literal, TypedDict


class OptionValues(TypedDict, total=False):
    """Options by name. A kind takes its own only; an error names them. docs/reference/duts.md explains each."""

    reset: bool | str
    """All kinds: whether state that trials leave behind is reset before each trial."""
    acl: int | str
    """vpp: rules of an access control list."""
    attach: Literal["auto", "native", "generic"] | str
    """xdp: where its programs are."""
    burst: int | str
    """Kinds of the kernel, ovs: frames that a policer's bucket holds. vpp: its bytes. testpmd: frames at once."""
    cores: int | str
    """Programs: physical cores that forward."""
    delay: float | str
    """xdp: seconds for which delayed frames are held."""
    descriptors: int | str
    """l3fwd, testpmd: descriptors of each queue of a card."""
    east_mac: str
    """black_box: MAC address of frames from the east."""
    every: int | str
    """xdp: one frame of so many has each of the faults."""
    faults: str
    """xdp: ``drop``, ``duplicate``, ``delay``, with commas."""
    forwarding: Literal["openflow", "learning", "l2xc", "l2bd", "ip4", "ip6", "redirect", "mac", "filter"] | str
    """ovs, vpp, xdp: how it forwards."""
    frame_queue: int | str
    """grout, vpp: descriptors of each queue."""
    hold: float | str
    """black_box: how long after a trial frames may still come out, e.g. ``2 s``."""
    home: str
    """grout, vpp: its directory on the node."""
    ip_version: Literal[4, 6] | str
    """grout, linux_router: the IP version that it routes."""
    largest_frame: int | str
    """l3fwd, testpmd: bytes of the largest frame, with FCS."""
    lookup: Literal["lpm", "fib"] | str
    """l3fwd: how it finds the way of a frame."""
    map: str
    """xdp: name of a map of your program that leads to interfaces."""
    mode: Literal["io", "mac", "5tswap", "csum"] | str
    """testpmd: what it does to frames."""
    object: str | PathLike[str]
    """xdp: your BPF object file."""
    outage: float | str
    """frr: how long withdrawn routes stay withdrawn, e.g. ``1 s``."""
    peers: int | str
    """frr: BGP peers that announce all routes."""
    pinned: str
    """xdp: path of a pinned program on the node."""
    police: float | str
    """Kinds of the kernel, ovs: frame rate of each direction's policer, e.g. ``50 kfps``. vpp: its bit rate."""
    poll: bool | str
    """grout: whether its threads poll without any sleep."""
    program: str
    """l3fwd: the program on the node."""
    queues: int | str
    """Programs: receive queues of each interface."""
    reconfiguration: Literal["announce", "withdraw"] | str
    """frr: what a reconfiguration does."""
    rest: float | str
    """black_box: time after which a trial has no effect on the next one, e.g. ``2 s``."""
    routes: int | str
    """frr, grout, linux_router, vpp: routes to single hosts."""
    rps_cpus: str
    """Kinds of the kernel: CPUs to which arriving frames are handed, e.g. ``0,2-3``."""
    rules: int | str
    """linux_bridge, linux_router, ovs, xdp: rules that frames pass."""
    section: str
    """xdp: the section of the file that has the program."""
    sockets: Literal["packet", "af_xdp"] | str
    """l3fwd, ovs, testpmd, vpp: how it gets the frames of the kernel's interfaces."""
    vxlan: bool | str
    """linux_bridge, vpp: whether frames come and go in VXLAN tunnels."""
    west_mac: str
    """black_box: MAC address of frames from the west."""


AnyOptions = OptionValues | Mapping[str, object]
"""Options of a built-in kind, or of one of another package."""
