"""Who is to blame for a change of the testbed, and what is done about it: one table of rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from lossratio.errors import DutError, LinkError, LossRatioError, TesterError


class Side(str, Enum):
    """Who is guilty of a change."""

    TG = "TG"
    WIRE = "wire"
    DUT = "DUT"
    CONTROLLER = "controller"


ERRORS: Mapping[Side, type[LossRatioError]] = MappingProxyType(
    {Side.TG: TesterError, Side.WIRE: LinkError, Side.DUT: DutError}
)
"""The error that ends a measurement, by who is guilty; its name decides the exit status of `lossratio run`. What the
controller is guilty of ends none."""


class Act(str, Enum):
    """What is done about a change."""

    FAIL = "fail"
    """The measurement ends with the side's error."""
    REPAIR = "repair"
    """What can be repaired is repaired, and the trial repeated; the side's error if that does not help."""
    REPEAT = "repeat"
    """The trial is repeated a few times; the last attempt stands, with a doubt."""
    NOTE = "note"
    """The trial stands, with a doubt."""


class Place(str, Enum):
    """Where a change is seen."""

    TG = "TG"
    DUT = "DUT"
    LINK = "link"
    CONTROLLER = "controller"


@dataclass(frozen=True)
class Rule:
    """One row of the table.

    Attributes:
        place: Where the change is seen.
        change: What changes, in a word.
        guilty: Whose fault that is.
        act: What is done.
        sentence: What is said, with ``{node}``, ``{name}`` of the interface or link, ``{before}`` and ``{after}``.
        way_out: What to do about it, likewise.
    """

    place: Place
    change: str
    guilty: Side
    act: Act
    sentence: str
    way_out: str


_BOOTED = "{node} was rebooted"
_GONE = "interface {name} of {node} is gone"
_DOWN = "interface {name} of {node} was set down"
_MTU = "the MTU of interface {name} of {node} was {before}, and is {after}"
_DEAD = "{node} does not answer any more, and its link {name} is lost"
_SPEED = "the link {name} had {before} Mbit/s, and has {after}"
_CARRIER = "the link {name} is lost, while both its ends are set up"
_FLAPPED = "the link {name} was lost for a while"
_DAMAGED = "{after} frames were damaged on the link {name}"
_SUSPENDED = "{node} was suspended for {after} s"
_STANDSTILL = "{node} stood still for {after} s"
_STOLEN = "the host of {node} took {after} of a CPU from it"
_PRESSURE = "processes on {node} waited for a CPU for {after} of the time"
_CLOCK = "the time of day of {node} was set by {after} s"

_SET_UP = "Set it up (ip link set dev {name} up), and find out who set it down."
_SET_BACK = "Set it back (ip link set dev {name} mtu {before}), and find out who changed it."
_FIND = "Look at the drivers and at the log of {node}."
_CONSOLE = "Look at its console, and at its power."
_CABLE = "Look at the cable, the transceivers, and the logs of both ends."
_ALONE = "Leave {node} alone while it measures."
_HOST = "Give {node} CPUs of its own on its host."

RULES = (
    Rule(Place.TG, "rebooted", Side.TG, Act.REPAIR, _BOOTED, _FIND),
    Rule(Place.TG, "gone", Side.TG, Act.REPAIR, _GONE, _FIND),
    Rule(Place.TG, "down", Side.TG, Act.REPAIR, _DOWN, _SET_UP),
    Rule(Place.TG, "mtu", Side.TG, Act.REPAIR, _MTU, _SET_BACK),
    Rule(Place.DUT, "rebooted", Side.DUT, Act.FAIL, _BOOTED, _FIND),
    Rule(Place.DUT, "dead", Side.DUT, Act.FAIL, _DEAD, _CONSOLE),
    Rule(Place.DUT, "gone", Side.DUT, Act.FAIL, _GONE, _FIND),
    Rule(Place.DUT, "down", Side.DUT, Act.FAIL, _DOWN, _SET_UP),
    Rule(Place.DUT, "mtu", Side.DUT, Act.FAIL, _MTU, _SET_BACK),
    Rule(Place.LINK, "speed", Side.WIRE, Act.FAIL, _SPEED, _CABLE),
    Rule(Place.LINK, "carrier", Side.WIRE, Act.REPAIR, _CARRIER, _CABLE),
    Rule(Place.LINK, "flapped", Side.WIRE, Act.REPAIR, _FLAPPED, _CABLE),
    Rule(Place.LINK, "damaged", Side.WIRE, Act.REPAIR, _DAMAGED, _CABLE),
    Rule(Place.TG, "suspended", Side.TG, Act.REPEAT, _SUSPENDED, _ALONE),
    Rule(Place.TG, "standstill", Side.TG, Act.REPEAT, _STANDSTILL, _HOST),
    Rule(Place.TG, "stolen", Side.TG, Act.REPEAT, _STOLEN, _HOST),
    Rule(Place.TG, "pressure", Side.TG, Act.REPEAT, _PRESSURE, _ALONE),
    Rule(Place.DUT, "suspended", Side.DUT, Act.REPEAT, _SUSPENDED, _ALONE),
    Rule(Place.DUT, "standstill", Side.DUT, Act.REPEAT, _STANDSTILL, _HOST),
    Rule(Place.CONTROLLER, "suspended", Side.CONTROLLER, Act.REPEAT, _SUSPENDED, _ALONE),
    Rule(Place.DUT, "stolen", Side.DUT, Act.NOTE, _STOLEN, _HOST),
    Rule(Place.CONTROLLER, "clock", Side.CONTROLLER, Act.NOTE, _CLOCK, _ALONE),
)
"""The table: what is seen, whose fault it is, what is done. Of several changes the uppermost row's decides, so what
explains others is above them: a link whose end was set down has no carrier either."""


def guilty_of(failure: BaseException | None) -> str | None:
    """Whose fault it is that a measurement failed; None: nobody knows."""
    return next((side.value for side, error in ERRORS.items() if isinstance(failure, error)), None)
