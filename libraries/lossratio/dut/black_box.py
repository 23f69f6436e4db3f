"""A device that others set up: the kind that needs no log-in. lossratio touches it only through its hooks."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lossratio.dut.base import DestinationMacs, DurationOption, DutCounters, DutOptions
from lossratio.dut.cable import LeftAsItIs
from lossratio.dut.hook_caller import HookCaller
from lossratio.errors import DutError
from lossratio.nodes import CommandRunner
from lossratio.topology import Hop, MacAddress

BLACK_BOX = "black_box"
"""Name of the kind."""


class BlackBoxOptions(DutOptions):
    """What the owner of a device knows about the device."""

    hold: DurationOption = 0.5
    """How long frames may still come out of the device after a trial, e.g. ``2 s`` for a deep queue. Later frames
    count as lost. Default: 0.5 s."""
    rest: DurationOption = 0.0
    """Time without traffic after which a trial has no effect on the next one, e.g. until a policer's bucket is full.
    lossratio waits for this time between trials. Default: 0."""
    west_mac: MacAddress | None = None
    """Destination MAC address of frames from the west: the next hop's, if the device routes. Default: the MAC address
    of the west port's ``gateway`` in the topology file; without a gateway, the address of the TG's east port."""
    east_mac: MacAddress | None = None
    """Destination MAC address of frames from the east, with the corresponding default."""
    translates: bool = False
    """Whether the device translates addresses on purpose (NAT). All measurements then count frames without comparing
    them."""

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

    @property
    def translates(self) -> bool:
        """The option of this name."""
        return self.options.translates

    def check(self) -> None:
        """Checks that it has the hooks that it needs.

        Raises:
            DutError: If a reset before each trial is requested without a hook for it.
        """
        if self.options.reset and not self.hooks.has("reset"):
            raise DutError(
                f"{self.hop.node_name}: a {self.kind} cannot be reset before each trial unless it has a hook "
                "'reset' in the topology file. Let it rest instead, for example rest=2 s."
            )

    def describe(self) -> dict[str, Any]:
        """The options, the remark that others have configured it, and the answer of the hook ``describe``."""
        facts = {
            "kind": self.kind,
            "configured_by": "others",
            **self.options.model_dump(mode="json"),
        }
        if not self.hooks.has("describe"):
            return facts
        described = self.hooks.describe()
        if isinstance(described, dict) and "version" in described:
            facts["version"] = described["version"]
        return {**facts, "described": described}

    @property
    def has_counters(self) -> bool:
        """Whether it can be asked for counters."""
        return self.hooks.has("counters")

    def read_counters(self) -> DutCounters:
        """The answer of the hook ``counters``; empty without one.

        Raises:
            DutError: If the hook fails, or a counter is less than when it was last read.
        """
        if not self.has_counters:
            return DutCounters({}, {}, {})

        counters = DutCounters(**self.hooks.counters())
        for name in ("received", "transmitted", "dropped"):
            then = getattr(self._counters, name)
            now = getattr(counters, name)
            back = next((key for key in then if now.get(key, 0) < then[key]), None)
            if back is not None:
                raise DutError(
                    f"{self.hop.label}: the counter {name} {back} of the hook 'counters' went back from "
                    f"{then[back]:,} to {now.get(back, 0):,}. Another program cleared it, or it has only 32 bits: "
                    "read a counter of 64 bits."
                )
        self._counters = counters
        return counters

    @property
    def resets(self) -> bool:
        """Whether the option ``reset`` or a keyword requests resets."""
        return self.options.reset or self.hooks.is_function("reset")

    def reset(self) -> None:
        """Calls the hook ``reset``; the counters may begin again at zero."""
        self.hooks.call("reset")
        self._counters = DutCounters({}, {}, {})

    def check_reconfigure(self, entries: int) -> None:
        """Checks that the device has a hook ``reconfigure``.

        Raises:
            DutError: If it has none.
        """
        if not self.hooks.has("reconfigure"):
            raise DutError(
                f"{self.hop.node_name}: a {self.kind} without a hook 'reconfigure' cannot get {entries} entries. "
                "Nothing was measured. Add the hook to the topology file, or give a keyword that reconfigures the "
                "device."
            )

    def reconfigure(self, entries: int) -> None:
        """Calls the hook ``reconfigure``.

        Raises:
            DutError: If there is no such hook, or it fails.
        """
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
        """The next hops of the options. Without them, the opposite ports, as through a bridge."""
        return DestinationMacs(self.options.west_mac or east_mac, self.options.east_mac or west_mac)

    @property
    def settle_time(self) -> float:
        """The option ``hold``."""
        return self.options.hold
