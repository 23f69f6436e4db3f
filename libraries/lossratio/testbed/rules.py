"""The changes that can be seen on a testbed, the side to blame for each, and what is done about it: one table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lossratio.errors import DutError, LinkError, LossRatioError, TesterError
from lossratio.trials import BlamedSide

ERRORS: Mapping[BlamedSide, type[LossRatioError]] = {
    "TG": TesterError,
    "wire": LinkError,
    "DUT": DutError,
}
"""The error that ends a measurement, for each side to blame. Its name decides the exit status of `lossratio run`. A
change on the controller's side ends no measurement."""
Act = Literal["fail", "repair", "repeat", "note"]
"""The reaction to a change. ``fail``: the measurement ends with the side's error. ``repair``: the testbed is repaired
as far as possible, and the trial is repeated; if that does not help, the measurement ends in the same way. ``repeat``:
the trial is repeated a few times, and the last attempt stands, with a doubt. ``note``: the trial stands, with a
doubt."""


@dataclass(frozen=True)
class Rule:
    """One row of the table."""

    guilty: BlamedSide
    """The side to blame, where the change is seen."""
    change: str
    """The change, in a word."""
    act: Act
    """The reaction to the change."""

    @property
    def sentence(self) -> str:
        """The message, with ``{node}``, ``{name}`` of the interface or link, ``{before}`` and ``{after}``."""
        return _WORDS[self.change][0]

    @property
    def way_out(self) -> str:
        """What the user can do, with the same fields."""
        return _WORDS[self.change][1]


_FIND = "Look at the drivers and at the log of {node}."
_CABLE = "Look at the cable, the transceivers, and the logs of both ends."
_ALONE = "Do not use {node} while it measures."
_HOST = "Reserve CPUs for {node} on its host."
_NO_PAUSE = (
    "Switch flow control off at both ends of that link: ethtool --pause {name} rx off tx off."
)
FOUND_DOWN = "found down"
"""The change of an interface that is down, where nobody knows whether it was ever up."""
# Table: what is said of each change, and what helps.
_WORDS: Mapping[str, tuple[str, str]] = {
    "rebooted": ("{node} was rebooted", _FIND),
    "gone": ("interface {name} of {node} no longer exists", _FIND),
    "down": (
        "interface {name} of {node} was set down",
        "Set it up again (ip link set dev {name} up), and find out what set it down.",
    ),
    "mtu": (
        "the MTU of interface {name} of {node} was {before}, and is now {after}",
        "Restore it (ip link set dev {name} mtu {before}), and find out what changed it.",
    ),
    "dead": (
        "{node} no longer answers, and its link {name} is down",
        "Look at its console, and at its power.",
    ),
    "speed": ("the link {name} had {before} Mbit/s, and now has {after}", _CABLE),
    "carrier": ("the link {name} is lost, although both of its ends are set up", _CABLE),
    "flapped": ("the link {name} was lost for a while", _CABLE),
    "damaged": ("{after} frames were damaged on the link {name}", _CABLE),
    "refused": (
        "a ring of 256 frames, or a backlog, on the link {name} had no room for {after} frames that {node} sent",
        "Do not use this machine while it measures, or measure at lower loads.",
    ),
    "suspended": ("{node} was suspended for {after} s", _ALONE),
    "standstill": ("{node} stood still for {after} s", _HOST),
    "stolen": ("the host of {node} took {after} of a CPU from it", _HOST),
    "pressure": (
        "processes on {node} waited for a CPU for {after} of the time",
        "Stop other programs on {node}, or give its programs more CPUs.",
    ),
    "waited": (
        "the thread {before} of the DUT's program on {node} waited for a CPU for {after} of the time",
        _ALONE,
    ),
    "quota": (
        "the CPU quota of the cgroup of {node} stopped its programs {after}",
        "Raise the quota (cpu.max of the cgroup, --cpus of docker, or the CPU limit of the pod).",
    ),
    "held": (
        "interface {name} of {node} received {after} of PAUSE or PFC, and had to stop sending",
        _NO_PAUSE,
    ),
    "holds": (
        "interface {name} of {node} sent {after} of PAUSE or PFC, so that its neighbour had to stop sending",
        _NO_PAUSE,
    ),
    "allowance": (
        "the cloud queued or dropped {after} of interface {name} of {node} beyond an allowance",
        "Choose an instance with a larger allowance, or measure below it (ethtool -S {name} shows it).",
    ),
    "one_cpu": (
        "one CPU got all interrupts of interface {name} of {node}, {after}, and its receive ring had no room",
        "Give it more queues (ethtool -L {name} combined 4), or spread its interrupts over more CPUs (irqbalance).",
    ),
    "overrun": (
        "the receive ring of interface {name} of {node} had no room for {after}",
        "Enlarge the ring (ethtool -G {name} rx 4096), or give the generator more CPUs.",
    ),
    "backlog": (
        "the backlog of the kernel of {node} had no room for {after} (softnet)",
        "Enlarge the backlog (sysctl net.core.netdev_max_backlog), or spread the interrupts over more CPUs.",
    ),
    "clock": ("the time of day of {node} was set by {after} s", _ALONE),
    FOUND_DOWN: ("interface {name} of {node} is down", "Set it up (ip link set dev {name} up)."),
}
_SIDES: tuple[BlamedSide, ...] = ("TG", "DUT")

# Table: the reaction to each change.
RULES = (
    Rule("TG", "rebooted", "repair"),
    Rule("TG", "gone", "repair"),
    Rule("TG", "down", "repair"),
    Rule("TG", "mtu", "repair"),
    Rule("DUT", "rebooted", "fail"),
    Rule("DUT", "dead", "fail"),
    Rule("DUT", "gone", "fail"),
    Rule("DUT", "down", "fail"),
    Rule("DUT", "mtu", "fail"),
    Rule("wire", "speed", "fail"),
    Rule("wire", "carrier", "repair"),
    Rule("wire", "flapped", "repair"),
    Rule("wire", "damaged", "repair"),
    Rule("wire", "refused", "repeat"),
    Rule("TG", "suspended", "repeat"),
    Rule("TG", "standstill", "repeat"),
    Rule("TG", "stolen", "repeat"),
    Rule("TG", "pressure", "repeat"),
    Rule("DUT", "suspended", "repeat"),
    Rule("DUT", "standstill", "repeat"),
    Rule("DUT", "waited", "repeat"),
    Rule("controller", "suspended", "repeat"),
    Rule("DUT", "stolen", "note"),
    *(Rule(side, "quota", "note") for side in _SIDES),
    *(Rule(side, "held", "note") for side in _SIDES),
    *(Rule(side, "holds", "note") for side in _SIDES),
    *(Rule(side, "allowance", "note") for side in _SIDES),
    Rule("TG", "one_cpu", "note"),
    Rule("TG", "overrun", "note"),
    Rule("TG", "backlog", "note"),
    Rule("controller", "clock", "note"),
)
"""The table: what is seen, which side is to blame, and what is done. If there are several changes, the topmost row
decides. So causes are above their effects: a link whose end was set down also has no carrier."""
