"""The modifiers of RFC 2544, sections 11 and 12: changes of traffic, the DUT's filters, and commands during tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from lossratio.errors import DutError, SearchError
from lossratio.measurements.reset import command_reset
from lossratio.units import format_ratio

if TYPE_CHECKING:
    from lossratio.testbed import Testbed
    from lossratio.traffic import TrafficProfile

BROADCAST_SHARE = 0.01
"""Share of the frames that go to the broadcast address."""
COMMAND_TIMEOUT = 10.0
"""Seconds that a command of a modifier may take."""
_RANDOM_HOSTS = 0xFF00
"""Number of destination addresses of the modifier: all hosts of 255 /24 networks, and nearly all hosts of one more."""


class Modifier(str, Enum):
    """Changes of the traffic or the DUT (RFC 2544, sections 11 and 12).

    All tests are repeated with each modifier alone.
    """

    ADDRESSES = "addresses"
    """Section 12: random destination addresses in the network of the opposite side, which consists of 256 /24
    networks."""
    BROADCAST = "broadcast"
    """Section 11.1: 1 % of the frames go to the broadcast address, and are not counted."""
    MANAGEMENT = "management"
    """Section 11.2: a query every second, by a command."""
    ROUTING_UPDATES = "routing updates"
    """Section 11.3: two alternating updates, each by a command, every 30 s."""
    FILTERS = "filters"
    """Section 11.4: filters on the DUT, which its options set up."""


class _Commands(NamedTuple):
    """The commands that a modifier needs: their number, the seconds between them, and an example."""

    number: int
    interval: float
    example: str


_COMMANDS: Mapping[Modifier | None, _Commands] = {
    Modifier.MANAGEMENT: _Commands(
        1, 1.0, 'modifier_commands=["snmpget -v2c -c public 192.0.2.1 sysUpTime.0"]'
    ),
    Modifier.ROUTING_UPDATES: _Commands(
        2, 30.0, 'modifier_commands=["announce routes-a.txt", "announce routes-b.txt"]'
    ),
}


@dataclass(frozen=True)
class ModifierReport:
    """What a modifier did in a run."""

    note: str
    """The modifier in words, for the report."""
    is_as_asked: bool
    """Whether the modifier did everything that RFC 2544 asks for."""


def modified(profile: TrafficProfile, modifier: Modifier | None) -> TrafficProfile:
    """The traffic with a modifier; unchanged if there is none, or it does not concern the traffic.

    Raises:
        SearchError: If the traffic cannot have the modifier.
    """
    if modifier not in (Modifier.ADDRESSES, Modifier.BROADCAST):
        return profile

    # Without the fields that follow from others.
    fields = profile.model_dump(include=set(type(profile).model_fields))
    if modifier is Modifier.BROADCAST:
        share = {"broadcast_share": BROADCAST_SHARE, "name": f"{profile.name}-broadcast"}
        return type(profile).model_validate({**fields, **share})
    if (
        fields["ipv4"] is None
        or fields["vxlan"] is not None
        or fields["reverse"]["headers"] is not None
    ):
        raise SearchError(
            f"Traffic profile {profile.name}: random addresses need plain IPv4 with the same headers in both "
            "directions. Write them into your own profile."
        )

    hosts = {"first": 1, "count": _RANDOM_HOSTS, "order": "random"}
    fields["ipv4"] = {**fields["ipv4"], "source": {"first": 1}, "destination": hosts}
    return type(profile).model_validate({**fields, "name": f"{profile.name}-random"})


class ActiveModifier:
    """Runs a modifier's commands in turn, in a thread, as long as the ``with`` block lasts.

    Raises:
        SearchError: If the modifier needs other commands, or the DUT has no filters.
    """

    def __init__(
        self, modifier: Modifier | None, commands: Sequence[str], testbed: Testbed
    ) -> None:
        self._modifier = modifier
        wanted = _COMMANDS.get(modifier, _Commands(0, 0.0, ""))
        if modifier is not None and wanted.number and len(commands) != wanted.number:
            if wanted.number == 1:
                number = "one command"
            else:
                number = "two commands that alternate"

            raise SearchError(
                f"The modifier {modifier.value!r} of RFC 2544 needs {number}, because nothing "
                f"answers frames of the test stream. For example: {wanted.example}."
            )
        if len(commands) != wanted.number:
            if modifier is None:
                name = "A run without a modifier"
            else:
                name = f"The modifier {modifier.value!r}"

            raise SearchError(f"{name} has no commands; leave modifier_commands out.")

        self._filters = _filters(testbed) if modifier is Modifier.FILTERS else ""
        self._interval = wanted.interval
        self._actions = [
            command_reset(command, COMMAND_TIMEOUT, "command of the modifier")
            for command in commands
        ]
        self._done = 0
        self._failures: list[str] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="modifier", daemon=True)

    def __enter__(self) -> ActiveModifier:
        """Runs each command once, and starts the thread.

        Raises:
            DutError: If a command fails. Nothing has been measured yet.
        """
        for action in self._actions:
            action()
            self._done += 1
        if self._actions:
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def report(self) -> ModifierReport | None:
        """What the modifier has done so far; None: there is no modifier."""
        if self._modifier is None:
            return None

        notes = {
            Modifier.BROADCAST: f"{format_ratio(BROADCAST_SHARE)} of the frames; part of the load; the loss is counted "
            "on all other frames",
            Modifier.ADDRESSES: "see the addresses under conditions",
            Modifier.FILTERS: self._filters,
        }
        if self._modifier in notes:
            return ModifierReport(notes[self._modifier], is_as_asked=True)

        if self._failures:
            failed = f"; {len(self._failures)} failed, the first one: {self._failures[0]}"
        else:
            failed = ""

        done = f"{self._done} commands on the controller, one every {self._interval:g} s"
        return ModifierReport(f"{done}, outside the test stream{failed}", is_as_asked=False)

    def _repeat(self) -> None:
        due = time.monotonic()
        while True:
            due += self._interval
            if self._is_over.wait(max(0.0, due - time.monotonic())):
                return
            try:
                self._actions[self._done % len(self._actions)]()
            except DutError as error:
                # The tests continue: the device may be too busy to answer, and the report counts that.
                self._failures.append(str(error))
            self._done += 1


def _filters(testbed: Testbed) -> str:
    dut = testbed.request.dut
    number = 0 if dut is None else dut.options.filters
    if number is None:
        return "the filters of the black box, configured by its owner"
    if not number:
        raise SearchError(
            "The modifier 'filters' of RFC 2544 needs filters on the DUT: set the testbed up with them, e.g. "
            "dut=linux_bridge rules=25 (or rules=1, in a run of its own). docs/reference/duts.md lists the kinds "
            "with rules. You configure the filters of a black box yourself."
        )
    return f"{number} on the DUT, see its configuration under conditions; RFC 2544 asks for runs with 1 and with 25"
