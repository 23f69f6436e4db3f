"""The graphs of the report that RFC 2544 asks for: throughput over frame size, and frame loss over load."""

from collections.abc import Sequence
from typing import Any

from lossratio.measurements.frame_loss import THEORETICAL, draw_losses
from lossratio.measurements.rfc2544.run import Rfc2544Run, Rfc2544Test
from lossratio.measurements.throughput import ThroughputResult
from lossratio.measurements.throughput.sweeps import draw_frame_sizes, sizes_of_run
from lossratio.results import MaxLoad


def theoretical_rate(load: MaxLoad) -> float:
    """The maximum frame rate of the links, per interface; the maximum load if the links' maximum is not known."""
    return (load.theoretical_maximum or load.rate).per_interface_fps


def draw_throughput(run: Rfc2544Run) -> str:
    """The graph of section 26.1: frame rate over frame size, theoretical and measured."""
    results: Sequence[ThroughputResult] = run.results_of(Rfc2544Test.THROUGHPUT)
    if len(results) < 2:
        return ""
    return draw_frame_sizes([sizes_of_run(results)])


def draw_loss(run: Rfc2544Run) -> str:
    """The graph of section 26.3: both axes from 0 to 100 %."""
    parts = [part for part in run.of(Rfc2544Test.FRAME_LOSS) if part.result is not None]
    results: dict[str, Any] = {part.frame_size: part.result for part in parts}
    known = all(result.max_load.theoretical_maximum for result in results.values())
    what = THEORETICAL if known else "maximum load"
    return draw_losses(results, what, 1.0, "Frame loss rate.")
