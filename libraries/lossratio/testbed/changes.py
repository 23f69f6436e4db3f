"""Changes between two fingerprints of a testbed, and the side to blame."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lossratio.errors import LossRatioError
from lossratio.testbed.counters import CAUSES, moved
from lossratio.testbed.fingerprint import ControllerPrint, Fingerprint, NodePrint, PortPrint
from lossratio.testbed.rules import ERRORS, FOUND_DOWN, RULES, Rule
from lossratio.testbed.starvation import frames_meanwhile, longest_wait
from lossratio.topology import TrafficPath
from lossratio.trials import BlamedSide, Incident, Reaction, TrialInput, TrialOutput, known_missing
from lossratio.values import counted, format_ratio

NOBODY_KNOWN = "The cause is not known"
"""Words of an error whose cause is not known."""


def guilty_of(failure: BaseException | None) -> str | None:
    """The side that made a measurement fail; None: not known."""
    return next((side for side, error in ERRORS.items() if isinstance(failure, error)), None)


LEAST_STOLEN_SHARE = 0.05
"""If a host takes at least this share of one CPU's time away from a node, the trial is not trusted."""
LEAST_STOLEN = 0.03
"""CPU seconds. Less does not count as stolen, because the kernel counts in hundredths."""
LEAST_PRESSURE = 0.5
"""If some process on the TG waits for a CPU for at least this share of a trial's time, the trial is not trusted."""
LEAST_SUSPENSION = 0.1
"""Seconds. Less does not count as a suspension."""
LEAST_STANDSTILL = 0.5
"""Seconds for which a node's clock stands still while the controller's runs. Less does not count as a standstill."""
LEAST_CLOCK_STEP = 1.0
"""Seconds by which the time of day is set. Smaller steps are the work of NTP."""
_BY_KEY = {(rule.guilty, rule.change): rule for rule in RULES}

_COUNTED = frozenset(cause.change for cause in CAUSES)
_TAKEN = (_BY_KEY["TG", "stolen"], _BY_KEY["TG", "pressure"])
"""CPU time that others take from the generator."""
_TAKEN_AND_UNSENT = {rule.change: replace(rule, act="note") for rule in _TAKEN}
"""The same, around a trial whose generator says that it left frames unsent."""
_WAITED_AND_SLOW = replace(_BY_KEY["DUT", "waited"], act="note")
"""A wait of a DUT's program in a trial that lost more frames than came meanwhile."""

_RESET = frozenset(
    {
        *(("DUT", change) for change in ("rebooted", "dead", "gone", "down")),
        *(("wire", change) for change in ("carrier", "flapped", "damaged")),
    }
)
"""Changes that a reset of a DUT makes (RFC 6201: power, line card, reboot), and that end with it. A new MTU or speed is
not among them, because it outlasts the reset."""


@dataclass(frozen=True)
class Change:
    """A change that was seen."""

    rule: Rule
    """Its row of the table."""
    node: str
    """The node, or both nodes of a link."""
    interface: str | None = None
    """The interface, or both ends of a link; None: the node as a whole."""
    before: str = ""
    """The earlier value, as text."""
    after: str = ""
    """The present value, as text."""
    waited: float = 0.0
    """Seconds for which a thread of a DUT's program had no CPU."""
    explained_frames: int = 0
    """Lost frames that the change may explain."""

    def __str__(self) -> str:
        return self._filled(self.rule.sentence)

    @property
    def is_fatal(self) -> bool:
        """Whether a trial during which the change happened must not be believed."""
        return self.rule.act in ("fail", "repair")

    @property
    def is_of_a_reset(self) -> bool:
        """Whether a reset of a DUT makes such a change, so that a measurement of resets goes on."""
        return (self.rule.guilty, self.rule.change) in _RESET

    @property
    def way_out(self) -> str:
        """Advice for the user about the change."""
        return self._filled(self.rule.way_out)

    def incident(self, done: Reaction) -> Incident:
        """The change as an entry of the trial's record, with the reaction; ``stands``: the trial stands."""
        return Incident(
            self.rule.guilty,
            self.node,
            self.interface,
            str(self),
            done,
            self.explained_frames,
            self.way_out if self.is_counted else "",
        )

    @property
    def is_counted(self) -> bool:
        """Whether a counter names the cause, and with it what helps."""
        return self.rule.change in _COUNTED or self.rule in _TAKEN_AND_UNSENT.values()

    def _filled(self, template: str) -> str:
        return template.format(
            node=self.node, name=self.interface, before=self.before, after=self.after
        )


@dataclass(frozen=True)
class End:
    """One end of a link: a node, and the name of its Linux interface; None: the kernel does not have the interface."""

    node: str
    interface: str | None

    def __str__(self) -> str:
        return f"{self.node}.{self.interface}"


@dataclass(frozen=True)
class Way:
    """The path of the test traffic, as far as fingerprints show it."""

    tg_names: tuple[str, ...]
    """The TG, or its two nodes."""
    links: tuple[tuple[End, End], ...]
    """The two ends of each link."""
    is_local: bool = False
    """Whether the testbed is a local one, where frames that links have no room for are not lost by the DUT."""

    @classmethod
    def of(cls, paths: Sequence[TrafficPath], *, is_local: bool = False) -> "Way":
        """The way of several parallel paths."""
        ends = [End(port.node_name, port.interface.name) for path in paths for port in path.ports]
        return cls(paths[0].tg_names, tuple(zip(ends[::2], ends[1::2], strict=True)), is_local)

    def interfaces(self, node: str) -> tuple[str, ...]:
        """Names of a node's interfaces on the path."""
        ends = itertools.chain(*self.links)
        return tuple(
            end.interface for end in ends if end.node == node and end.interface is not None
        )

    def side(self, node: str) -> BlamedSide:
        """Whether a node is the TG or a DUT."""
        if node in self.tg_names:
            return "TG"
        return "DUT"


def error_of(changes: Sequence[Change]) -> LossRatioError:
    """The error for one or more changes; the first change gives the class and the sentence."""
    first, *others = changes
    besides = f" Also: {'; '.join(map(str, others))}." if others else ""
    return ERRORS[first.rule.guilty](
        f"The {first.rule.guilty} is to blame: {first}. {first.way_out}{besides}"
    )


def changes_between(before: Fingerprint, after: Fingerprint, way: Way) -> tuple[Change, ...]:
    """The changes between two fingerprints, in the order of the table."""
    nodes = [node for node in after.nodes if node in before.nodes]
    changes = [
        *_controller_changes(before.controller, after.controller),
        *(change for node in nodes for change in _node_changes(node, before, after, way)),
        *(change for link in way.links for change in _link_changes(link, before, after, way)),
    ]
    return tuple(sorted(changes, key=lambda change: RULES.index(change.rule)))


def unanswered(
    changes: Sequence[Change], trial: TrialInput, output: TrialOutput
) -> tuple[Change, ...]:
    """The changes around a trial, except for those that its own counters already cover.

    CPU time that a host or other processes take from the TG only matters if it makes the generator late. If the
    generator reports when it sent, and how late it was at most, that time is named as the cause of frames that it left
    unsent, and of nothing else. Where no frame is missing, nothing that a counter names did harm. Where none is lost,
    no wait of a DUT's program did.
    """
    if not output.lost_frames and not output.unsent_frames:
        changes = [change for change in changes if not change.is_counted]
    changes = list(_explaining(changes, trial, output))

    is_reported = all(
        each.lateness_s is not None and each.stretch_s is None for each in output.directions
    )
    if not (is_reported and output.directions):
        return tuple(changes)
    taken = [change for change in changes if change.rule in _TAKEN]
    others = [change for change in changes if change.rule not in _TAKEN]
    if not output.unsent_frames:
        return tuple(others)
    # A quota makes the programs of its node wait, too.
    limited = {change.node for change in others if change.rule == _BY_KEY["TG", "quota"]}
    named = [
        replace(change, rule=_TAKEN_AND_UNSENT[change.rule.change])
        for change in taken
        if change.node not in limited
    ]
    return (*others, *named)


def _explaining(
    changes: Sequence[Change], trial: TrialInput, output: TrialOutput
) -> Iterator[Change]:
    """The changes around a trial; a wait of a DUT's program only if it may have cost frames.

    If the trial lost more frames than came meanwhile, repeating it would not help. Nor would it if a quota made the
    program wait, because the quota is a part of the DUT.
    """
    lost = known_missing(output).without_tester
    limited = {change.node for change in changes if change.rule.change == "quota"}
    for change in changes:
        if not change.waited:
            yield change
        elif lost and change.node not in limited:
            came = frames_meanwhile(change.waited, trial, output)
            rule = change.rule if lost <= came else _WAITED_AND_SLOW
            yield replace(change, rule=rule, explained_frames=min(lost, came))


def faults_in(now: Fingerprint, way: Way) -> tuple[Change, ...]:
    """The interfaces that are down, and the links without a carrier, at one moment.

    Nobody knows whether these interfaces were ever up, and their sentences do not say so.
    """

    def flawless(node: NodePrint) -> NodePrint:
        ports = {
            name: replace(port, is_up=True, has_carrier=True) for name, port in node.ports.items()
        }
        return replace(node, ports=ports)

    faults = changes_between(
        replace(now, nodes={name: flawless(node) for name, node in now.nodes.items()}), now, way
    )
    return tuple(_as_found(fault) for fault in faults)


def _as_found(fault: Change) -> Change:
    if fault.rule.change != "down":
        return fault
    return replace(fault, rule=replace(fault.rule, change=FOUND_DOWN))


def _controller_changes(before: ControllerPrint, after: ControllerPrint) -> Iterator[Change]:
    running = after.running - before.running
    suspended = running - (after.awake - before.awake)
    if suspended >= LEAST_SUSPENSION:
        yield Change(_BY_KEY["controller", "suspended"], "the controller", after=f"{suspended:.1f}")
    step = after.time - before.time - running
    if abs(step) >= LEAST_CLOCK_STEP:
        yield Change(_BY_KEY["controller", "clock"], "the controller", after=f"{step:+.1f}")


def _node_changes(name: str, before: Fingerprint, after: Fingerprint, way: Way) -> Iterator[Change]:
    then = before.nodes[name]
    now = after.nodes[name]
    side = way.side(name)
    if then.boot_id != now.boot_id:
        yield Change(_BY_KEY[side, "rebooted"], name)
        return

    elapsed = _difference(then.uptime, now.uptime)
    if elapsed is None or elapsed <= 0.0:
        return

    awake = _difference(then.awake, now.awake)
    if awake is not None and elapsed - awake >= LEAST_SUSPENSION:
        yield Change(_BY_KEY[side, "suspended"], name, after=f"{elapsed - awake:.1f}")
    # The answers also took some time. At least this much time has passed between them.
    standstill = now.asked - then.answered - elapsed
    if standstill >= LEAST_STANDSTILL:
        yield Change(_BY_KEY[side, "standstill"], name, after=f"{standstill:.1f}")
    stolen = _difference(then.stolen, now.stolen) or 0.0
    if stolen >= max(LEAST_STOLEN, LEAST_STOLEN_SHARE * elapsed):
        yield Change(_BY_KEY[side, "stolen"], name, after=format_ratio(stolen / elapsed))
    pressure = _difference(then.pressure, now.pressure) or 0.0
    # If TG and DUT are one machine, the traffic itself keeps the CPUs busy.
    is_alone = all(
        other.boot_id != now.boot_id for node, other in after.nodes.items() if node != name
    )
    if side == "TG" and is_alone and pressure >= LEAST_PRESSURE * elapsed:
        yield Change(_BY_KEY[side, "pressure"], name, after=_share_of(elapsed, pressure))
    for cause, interface, count in moved(then.counts, now.counts, is_alone=is_alone):
        rule = _BY_KEY.get((side, cause.change))
        if rule is not None:
            yield Change(rule, name, interface or None, after=counted(count, cause.unit))
    waited, thread_name = longest_wait(then, now)
    if side == "DUT" and waited:
        share = _share_of(elapsed, waited)
        yield Change(_BY_KEY[side, "waited"], name, before=thread_name, after=share, waited=waited)


def _share_of(elapsed: float, seconds: float) -> str:
    """A share of the time in words. Two clocks may differ, so that it would exceed 100 %."""
    return format_ratio(min(1.0, seconds / elapsed))


def _link_changes(
    link: tuple[End, End], before: Fingerprint, after: Fingerprint, way: Way
) -> Iterator[Change]:
    ports = {end: (_port(before, end), _port(after, end)) for end in link}
    known = {end: (then, now) for end, (then, now) in ports.items() if then is not None}
    nodes = ", ".join(end.node for end in link)
    name = " - ".join(map(str, link))
    pairs = [(then, now) for then, now in known.values() if now is not None]
    has_lost_carrier = any(then.has_carrier and not now.has_carrier for then, now in pairs)
    silent = [
        end.node for end in link if end.node not in after.nodes and way.side(end.node) == "DUT"
    ]
    if silent and has_lost_carrier:
        yield Change(_BY_KEY["DUT", "dead"], silent[0], name)
        return

    of_ends: list[Change] = []
    for end, (then, now) in known.items():
        if end.node in after.nodes:
            of_ends += _end_changes(end, then, now, way)
    yield from of_ends
    if not any(change.rule.change in ("gone", "down") for change in of_ends):
        if has_lost_carrier:
            yield Change(_BY_KEY["wire", "carrier"], nodes, name)
        elif any(then.carrier_changes != now.carrier_changes for then, now in pairs):
            yield Change(_BY_KEY["wire", "flapped"], nodes, name)

    for then, now in pairs:
        if then.speed is not None and now.speed is not None and then.speed != now.speed:
            yield Change(_BY_KEY["wire", "speed"], nodes, name, str(then.speed), str(now.speed))
            break

    if way.is_local:
        for end, (then, now) in known.items():
            # The generator knows about frames that found no room on the way from the TG.
            refused = _refused(then, now)
            if refused > 0 and way.side(end.node) == "DUT":
                yield Change(_BY_KEY["wire", "refused"], end.node, name, after=str(refused))

    damaged = sum((now.damaged or 0) - (then.damaged or 0) for then, now in pairs)
    if damaged > 0:
        yield Change(_BY_KEY["wire", "damaged"], nodes, name, after=str(damaged))


def _refused(then: PortPrint, now: PortPrint | None) -> int:
    """How many frames found no room at a port meanwhile; 0 if the port is gone."""
    if now is None:
        return 0
    return (now.refused or 0) - (then.refused or 0)


def _end_changes(end: End, then: PortPrint, now: PortPrint | None, way: Way) -> Iterator[Change]:
    side = way.side(end.node)
    if now is None:
        yield Change(_BY_KEY[side, "gone"], end.node, end.interface)
        return
    if then.is_up and not now.is_up:
        yield Change(_BY_KEY[side, "down"], end.node, end.interface)
    if then.mtu != now.mtu:
        yield Change(_BY_KEY[side, "mtu"], end.node, end.interface, str(then.mtu), str(now.mtu))


def _port(fingerprint: Fingerprint, end: End) -> PortPrint | None:
    node = fingerprint.nodes.get(end.node)
    if node is None or end.interface is None:
        return None
    return node.ports.get(end.interface)


def _difference(before: float | None, after: float | None) -> float | None:
    if before is None or after is None:
        return None
    return after - before
