"""A device that others set up: the kind that needs no log-in. lossratio touches it by its hooks only."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import Field

from lossratio.dut.base import DestinationMacs, DurationOption, DutCounters, DutOptions, LeftAsItIs
from lossratio.dut.hooks import HookCaller
from lossratio.errors import DutError
from lossratio.nodes import CommandRunner
from lossratio.topology import Hop

BLACK_BOX = "black_box"
"""Name of the kind."""

MacAddress = Annotated[str, Field(pattern="^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$")]


class BlackBoxOptions(DutOptions):
    """What its owner knows about it."""

    hold: DurationOption = 0.5
    """How long after a trial frames may still come out of it, e.g. ``2 s`` for a deep queue; 0.5 s unless given. Later
    frames count as lost."""
    rest: DurationOption = 0.0
    """Time without traffic after which a trial has no effect on the next one, e.g. until a policer's bucket is full; 0
    unless given. lossratio waits for that between trials."""
    west_mac: MacAddress | None = None
    """MAC address of frames from the west: the next hop, if the device routes. Where missing, the address of the
    gateway of the TG's west port in the topology file; without one, the address of the TG's east port."""
    east_mac: MacAddress | None = None
    """MAC address of frames from the east, likewise."""

    @property
    def filters(self) -> int | None:
        """It is not known."""
        return None

    @property
    def recovery_time(self) -> float:
        """The option ``rest``."""
        return self.rest


class BlackBox(LeftAsItIs[BlackBoxOptions]):
    """A device on the path that others set up. Only its hooks touch it."""

    kind = BLACK_BOX
    options_type = BlackBoxOptions
    lab_addresses = True

    def __init__(self, session: CommandRunner, hop: Hop, options: BlackBoxOptions) -> None:
        super().__init__(session, hop, options)
        self.hooks = HookCaller(hop.label, hop.hooks, session)
        self._counters = DutCounters({}, {}, {})

    def check(self) -> None:
        """Refuses what only a device that can be reached can do.

        Raises:
            DutError: If it is to be reset before each trial and has no hook for that, or a hook lacks something.
        """
        self.hooks.check()
        if self.options.reset and not self.hooks.has("reset"):
            raise DutError(
                f"{self.hop.node_name}: a {self.kind} cannot be reset before each trial, unless it has a hook 'reset' "
                "in the topology file. Give it time instead, e.g. rest=2 s."
            )

    def describe(self) -> dict[str, Any]:
        """The options, that others have configured it, and the answer of the hook ``describe``."""
        facts = {"kind": self.kind, "configured_by": "others", **self.options.model_dump(mode="json")}
        if not self.hooks.has("describe"):
            return facts
        described = self.hooks.describe()
        version = {"version": described["version"]} if isinstance(described, dict) and "version" in described else {}
        return {**facts, **version, "described": described}

    @property
    def has_counters(self) -> bool:
        """Whether it can be asked for counters."""
        return self.hooks.has("counters")

    def read_counters(self) -> DutCounters:
        """The answer of the hook ``counters``; empty without one."""
        if not self.has_counters:
            return DutCounters({}, {}, {})
        counters = DutCounters(**self.hooks.counters())
        for name in ("received", "transmitted", "dropped"):
            then, now = getattr(self._counters, name), getattr(counters, name)
            back = next((key for key in then if now.get(key, 0) < then[key]), None)
            if back is not None:
                raise DutError(
                    f"{self.hop.label}: the counter {name} {back} of the hook 'counters' went back from {then[back]:,} "
                    f"to {now.get(back, 0):,}. Somebody cleared it, or it has 32 bits only: read one of 64 bits."
                )
        self._counters = counters
        return counters

    @property
    def resets(self) -> bool:
        """Whether the option ``reset`` or a keyword asks for it."""
        return self.options.reset or self.hooks.is_function("reset")

    def reset(self) -> None:
        """Calls the hook ``reset``; the counters may begin anew."""
        self.hooks.call("reset")
        self._counters = DutCounters({}, {}, {})

    def check_reconfigure(self, entries: int) -> None:
        """Refuses a device without a hook ``reconfigure``."""
        if not self.hooks.has("reconfigure"):
            raise DutError(
                f"{self.hop.node_name}: a {self.kind} without a hook 'reconfigure' cannot get {entries} entries, so "
                "nothing was measured. Add the hook to the topology file, or give a keyword that reconfigures it."
            )

    def reconfigure(self, entries: int) -> None:
        """Calls the hook ``reconfigure``."""
        self.check_reconfigure(entries)
        self.hooks.call("reconfigure", entries)

    @contextmanager
    def telemetry(self) -> Iterator[dict[str, Any]]:
        """The answer of the hook ``describe`` after the traffic."""
        report: dict[str, Any] = {}
        yield report
        if self.hooks.has("describe"):
            report["describe"] = self.hooks.describe()

    def destination_macs(self, west_mac: str, east_mac: str) -> DestinationMacs:
        """The next hops of the options; where missing, the opposite ports, as through a bridge."""
        return DestinationMacs(self.options.west_mac or east_mac, self.options.east_mac or west_mac)

    @property
    def settle_time(self) -> float:
        """The option ``hold``."""
        return self.options.hold
