"""Checks before a search: a few frames show whether any get through, in every direction."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from lossratio import trials
from lossratio.agent import Configuration, Plan
from lossratio.errors import DutError, TrafficError
from lossratio.traffic.client import AgentClient
from lossratio.traffic.measurer import connecting

CHECK_LOAD = 100.0
"""Frames per second of the check, in each direction."""
CHECK_DURATION = 0.1
"""Seconds of the check."""
LOW_RATE_LOAD = 10_000.0
"""Frames per second of the check with latency frames, in each direction; a tenth of them are latency frames."""
LOW_RATE_DURATION = 1.0
"""Seconds of that check."""
LATE_SECONDS = 2.0
"""Seconds to wait for frames of the check that come back too late, if none came in time."""
_ATTEMPTS = 5
_LONG_ATTEMPTS = ((100.0, 0.5), (200.0, 1.0), (400.0, 2.0), (800.0, 4.0))
"""Loads in frames per second, and seconds, of further attempts: trials can also measure a device that takes a while to
forward, or loses nearly everything."""
_LATE_STEP = 0.25
_LOG = logging.getLogger(__name__)


class DeadPathError(TrafficError):
    """Nothing gets through in at least one direction, and it is not known what is to blame."""


class LatePathError(DutError):
    """All frames of a direction come back too late: a device holds them for longer than stated."""


def few_frames(
    agent: AgentClient, load: float = CHECK_LOAD, duration: float = CHECK_DURATION
) -> tuple[trials.DirectionCounters, ...]:
    """Sends a few frames in each direction, or opens a few connections if devices pass nothing else.

    Args:
        agent: The agent, with its generator configured.
        load: Frames or connections per second, in each direction.
        duration: Seconds.
    """
    if agent.has_connections:
        return agent.run(connecting(load, round(load * duration), trials.Exchange())).directions
    return agent.run(Plan(((load, duration),))).directions


def frames_of_last_check(agent: AgentClient) -> tuple[trials.DirectionCounters, ...]:
    """Sends as many frames as the last attempt of `check_path` does."""
    if agent.has_connections:
        return few_frames(agent)
    load, duration = _LONG_ATTEMPTS[-1]
    return few_frames(agent, load, duration)


def check_path(
    agent: AgentClient,
    growth: float = 1.0,
    spread: Callable[[], None] | None = None,
    rest: float = 0.0,
    reset: Callable[[], None] = lambda: None,
) -> tuple[trials.DirectionCounters, ...]:
    """Sends a few frames in each direction, and makes sure that some get through, as a trial counts them.

    It tries again for a while, because links and devices that just came up may lose their first frames. If all frames
    are lost in a direction, it calls `spread`, and continues for as long as trials take, with more and more frames:
    anything that a trial could measure must not be refused. The answer has the last attempt's counters.

    Args:
        agent: The agent, which is configured.
        growth: The factor by which each attempt sends more frames than the previous one: a NAT may pass no answer
            before the 65th frame.
        spread: Makes the agent send frames of flows from all over (see `spread_over_flows`); None: the flows do not
            change.
        rest: Seconds without traffic before each of these later attempts.
        reset: Resets devices to their state before a trial, if they can be reset: before each attempt, because the
            frames of the previous attempt may have filled a table.

    Raises:
        DeadPathError: If nothing gets through in a direction.
        LatePathError: If all frames that get through in a direction are late.
        IntegrityError: If all frames that get through in a direction are changed.
        TrafficError: If the generator fails.
    """
    flows = dict(agent.flows)
    for attempt in range(_ATTEMPTS):
        reset()
        counters = few_frames(agent, CHECK_LOAD * growth**attempt)
        dead = _dead(counters)
        if not dead:
            return counters

    if spread is not None and not agent.has_connections:
        spread()
    # Connections that are not closed would fill the tables of a device.
    for load, duration in () if agent.has_connections else _LONG_ATTEMPTS:
        reset()
        time.sleep(rest)
        lost_before = dead
        counters = few_frames(agent, load, duration)
        dead = _dead(counters)
        if not dead:
            _LOG.warning("%s", _slowly_alive(agent, lost_before, counters))
            return counters
        if any(direction.faulty for direction in dead):
            break

    trials.check_integrity(dead, "in the check of the path")
    _check_late(agent, {direction.name: direction.sent_frames for direction in dead})
    sent = ", ".join(_lost_in_words(agent, direction, flows[direction.name]) for direction in dead)
    # Answers go in the direction with the reverse name.
    alive = {
        ">".join(reversed(direction.name.split(">")))
        for direction in counters
        if direction.received_frames
    }
    if not alive.intersection(direction.name for direction in dead):
        raise DeadPathError(
            f"Node {agent.node_name}: the path is a black hole: nothing arrives in direction "
            f"{sent}. Check the ends of the links in the topology file, and whether the DUT is "
            "set up to forward."
        )
    raise DeadPathError(
        f"Node {agent.node_name}: the path works in one direction only: nothing arrives in direction {sent}. Check "
        "the DUT's forwarding (addresses, routes, MAC addresses) in that direction."
    )


def _dead(counters: Sequence[trials.DirectionCounters]) -> list[trials.DirectionCounters]:
    """The directions in which nothing came back as required."""
    return [direction for direction in counters if not direction.received_frames]


def _lost_in_words(agent: AgentClient, direction: trials.DirectionCounters, flows: int) -> str:
    """What was sent in a direction, and how many of its flows: a device may forward other flows."""
    # The agent may have been given only some of the flows, from all over.
    checked = min(direction.sent_frames, agent.flows[direction.name])
    words = f"{checked:,} of {flows:,} flows"
    if flows == 1:
        words = "its only flow"
    elif checked == flows:
        words = f"its {flows:,} flows"
    elif agent.flows[direction.name] < flows:
        words += ", from all over"
    return f"{direction.name} (sent {direction.sent_frames:,} frames, received 0: none of {words})"


def _slowly_alive(
    agent: AgentClient,
    before: Sequence[trials.DirectionCounters],
    now: Sequence[trials.DirectionCounters],
) -> str:
    """What the check saw of a device that finally passes frames."""
    lost = {direction.name: direction.sent_frames for direction in before}
    seen = ", ".join(
        f"{direction.name} (none of {lost[direction.name]:,} frames, then {direction.received_frames:,} of "
        f"{direction.sent_frames:,})"
        for direction in now
        if direction.name in lost
    )
    missing = {
        direction.name: direction.sent_frames - direction.received_frames - direction.late_frames
        for direction in now
        if direction.name in lost
    }
    late = sum(direction.late_frames for direction in now if direction.name in lost)
    late += sum(_late_frames(agent, missing)[0].values())
    if late:
        cause = (
            f"Of the last frames, {late:,} came back too late: a device on the path holds them for longer than "
            f"{agent.settle_time:g} s. If this is intended, measure it as a black box with the option 'hold'."
        )
    else:
        cause = "The device may start slowly, lose nearly all frames, or drop some flows."

    return (
        f"Node {agent.node_name}: at first, nothing came through in direction {seen}. {cause} The "
        "measurement goes on."
    )


def _late_frames(agent: AgentClient, missing: Mapping[str, int]) -> tuple[dict[str, int], float]:
    """Waits for missing frames of directions: how many came back in each, and the seconds that were waited."""
    late = dict.fromkeys(missing, 0)
    waited = 0.0
    while waited < LATE_SECONDS and any(late[name] < count for name, count in missing.items()):
        arrived = agent.late_frames(_LATE_STEP)
        waited += _LATE_STEP
        late = {name: count + arrived[name][0] for name, count in late.items()}
    return late, waited


def _check_late(agent: AgentClient, sent: Mapping[str, int]) -> None:
    """Checks that frames of directions in which none came back in time do not come back too late."""
    late, waited = _late_frames(agent, sent)
    if any(late.values()):
        counts = ", ".join(
            f"{name} ({late[name]} of {count} frames)" for name, count in sent.items() if late[name]
        )
        raise LatePathError(
            f"Node {agent.node_name}: frames come back too late in direction {counts}: none arrived within "
            f"{agent.settle_time:g} s after the traffic, but these did in the next {waited:g} s. A device on the path "
            "holds them this long, for example in a queue or a delay line. Remove the delay or, if it is intended, "
            "measure the device as a black box with the option 'hold'."
        )


def check_at_low_rate(
    agent: AgentClient, facts: Mapping[str, Any], idle_time: float
) -> dict[str, Any]:
    """Checks latency frames, if the generator examines these, and only counts the frames of trials.

    It returns the ``integrity`` of the generator's facts, with a ``low_rate_check`` if there was one: the counters of
    each direction's latency frames; directions that cannot have any are missing.

    Args:
        agent: The agent, with its generator configured.
        facts: What the generator reports about itself.
        idle_time: Seconds in which the DUT then recovers.
    """
    integrity = dict(facts["integrity"])
    if integrity["checked"] and not integrity["in_trials"]:
        plan = Plan(((LOW_RATE_LOAD, LOW_RATE_DURATION),), latency=True)
        directions = agent.run(plan).latency
        integrity["low_rate_check"] = [
            _as_data(direction) for direction in directions if direction.sent_frames
        ]
        time.sleep(idle_time)
    return integrity


def with_largest_frames(configuration: Configuration) -> Configuration | None:
    """The same traffic with only the largest frames: an MTU on the way may stop these while smaller ones pass.

    None: all frames of each direction have the same size.
    """
    if all(len(direction.frames.sizes) == 1 for direction in configuration.directions):
        return None
    directions = (
        direction.of_size(direction.frames.max_size) for direction in configuration.directions
    )
    return replace(configuration, directions=tuple(directions))


def _as_data(latency: trials.LatencyCounters) -> dict[str, Any]:
    """The counters of a direction's latency frames as JSON data."""
    # They have no streams, no connections, and no earlier traffic.
    left_out = ("streams", "by_stream", "earlier_late_frames", "changed_fields", "left_frames")
    counters = asdict(_counters(latency))
    return {name: value for name, value in counters.items() if name not in left_out}


def _counters(latency: trials.LatencyCounters) -> trials.DirectionCounters:
    arrived = latency.received_frames + latency.duplicate_frames
    counters = trials.DirectionCounters(
        latency.direction,
        intended_frames=latency.sent_frames,
        sent_frames=latency.sent_frames,
        received_frames=arrived,
    )
    examination = trials.Examination(
        arrived, duplicated=latency.duplicate_frames, reordered=latency.out_of_order_frames
    )
    return trials.with_examination(counters, examination)
