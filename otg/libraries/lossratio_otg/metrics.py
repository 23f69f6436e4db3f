"""The metrics of flows and ports, in the form of the models."""

from collections.abc import Iterator, Sequence
from typing import Any

from lossratio.trials import DirectionCounters, LatencyCounters
from lossratio_otg.flows import Flow
from lossratio_otg.runs import Counted

_NANOSECONDS = 1000.0


def flow_metric(
    flow: Flow, counted: DirectionCounters, latency: LatencyCounters | None, is_sent: bool
) -> dict[str, Any]:
    """The metrics of a flow, from its counts, and whether it is being sent."""
    counts = {"tx": counted.sent_frames}
    metric: dict[str, Any] = {
        "name": flow.direction.name,
        "port_tx": flow.source,
        "transmit": "started" if is_sent else "stopped",
    }
    # It is not known what happens to frames that nobody receives.
    if flow.sink is not None:
        counts["rx"] = counted.received_frames
        metric["port_rx"] = flow.sink

    for end, count in counts.items():
        metric |= {f"frames_{end}": count, f"frames_{end}_rate": 0.0}
        if len(flow.direction.frames.sizes) == 1:
            metric[f"bytes_{end}"] = count * flow.direction.frames.max_size

    if flow.wants_loss and "rx" in counts:
        lost = counts["tx"] - counts["rx"]
        metric["loss"] = 100.0 * lost / counts["tx"] if counts["tx"] else 0.0
    if latency is not None:
        found = {"minimum_ns": latency.least_us, "average_ns": latency.mean_us, "maximum_ns": latency.most_us}
        metric["latency"] = {name: _NANOSECONDS * value for name, value in found.items() if value is not None}

    return metric


def port_metric(
    name: str, location: str, sent: Sequence[dict[str, Any]], received: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The metrics of a port, from those of the flows that it sends, and receives."""
    is_sending = any(flow["transmit"] == "started" for flow in sent)
    metric: dict[str, Any] = {
        "name": name,
        "location": location,
        "transmit": "started" if is_sending else "stopped",
        "frames_tx_rate": 0.0,
        "frames_rx_rate": 0.0,
        "bytes_tx_rate": 0.0,
        "bytes_rx_rate": 0.0,
    }

    for column, flows in (("_tx", sent), ("_rx", received)):
        metric[f"frames{column}"] = sum(flow[f"frames{column}"] for flow in flows)
        # The bytes of a mix of sizes are not counted.
        if all(f"bytes{column}" in flow for flow in flows):
            metric[f"bytes{column}"] = sum(flow[f"bytes{column}"] for flow in flows)

    return metric


def report_of(
    counted: DirectionCounters, latency: LatencyCounters | None, *, is_received: bool
) -> tuple[list[str], str]:
    """What the metrics of a flow do not show, and a line about the flow, with the frames that somebody receives."""
    warnings = list(_warnings(counted, latency))
    text = f"{counted.name}: sent {counted.sent_frames}"
    if is_received:
        text += f", received {counted.received_frames}"
    return warnings, "; ".join([text, *warnings])


def _warnings(counted: DirectionCounters, latency: LatencyCounters | None) -> Iterator[str]:
    """What the metrics of a flow do not show."""
    due = counted.sent_frames + counted.unsent_frames
    if counted.unsent_frames:
        share = 100 * counted.unsent_frames / due
        yield f"{counted.name}: {counted.unsent_frames:,} of {due:,} frames were not sent ({share:.3g} %)"
    if counted.generator_drop_frames:
        yield f"{counted.name}: {counted.generator_drop_frames:,} frames were dropped inside the generator"
    if latency is not None and latency.error is not None:
        yield f"{counted.name}: the latency is not known: {latency.error}"


def no_counts(flows: Sequence[Flow]) -> dict[str, Counted]:
    """The counts of flows that were not sent."""
    names = [flow.direction.name for flow in flows]
    return {name: (DirectionCounters(name, 0, 0, 0), None) for name in names}


def columns(metrics: list[dict[str, Any]], names: Sequence[str] | None) -> list[dict[str, Any]]:
    """The requested metrics; in requests, the models have other names for some of them."""
    if not names:
        return metrics
    wanted = {"name", *names}
    columns = []
    for metric in metrics:
        columns.append({name: value for name, value in metric.items() if name in wanted})
    return columns
