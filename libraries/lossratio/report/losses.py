"""The picture of lost frames: flows by time."""

from collections.abc import Iterator

from lossratio.drawing import LINE_HEIGHT, RIGHT, Axis, Plot, in_unit
from lossratio.results import Picture, TestResult
from lossratio.trials import Losses, read_counts
from lossratio.units import format_frame_rate, format_ratio

TITLE = "Where losses sit"
_MOST_ROWS, _MOST_COLUMNS = 256, 128
_LITTLE = 2.0
"""The trial in the picture lost at most this many times the smallest share of all trials."""
_HEIGHT = 300.0
_LEFT, _TOP, _BOTTOM = 70.0, 24.0, 224.0
_COLOUR = "#B3261E"
_SHADES = (0.01, 0.1, 0.5, 1.0)
"""The largest share of lost frames for each shade of a cell."""


def losses_pictures(result: TestResult) -> Iterator[Picture]:
    """The lost frames of one trial, by flow and time; nothing if none was located.

    The trial has many frames and a small load, because overload hides the places where a device loses frames at smaller
    loads.

    Args:
        result: The result of a test.
    """
    located = [
        (trial, way, way.losses)
        for trial in result.trials
        if trial.is_evidence
        for way in trial.directions
        if way.losses is not None
    ]
    if not located:
        return

    least = min(trial.loss_ratio for trial, _, _ in located)
    little = [one for one in located if one[0].loss_ratio <= _LITTLE * least]
    trial, way, losses = max(little, key=lambda one: (one[2].known_frames, one[1].lost))
    about = (
        f"Trial {trial.number} at {format_frame_rate(trial.load_per_interface_fps)} per interface "
        f"lost {format_ratio(trial.loss_ratio)} of its frames. "
        f"Here are those of {way.name}. {_row_in_words(losses)}, in the order in which flows are sent."
    )
    yield Picture(TITLE, _drawn(losses), about)


def _row_in_words(losses: Losses) -> str:
    flows = len(read_counts(losses.flows_known))
    if flows <= _MOST_ROWS:
        return "Each row is a flow"
    return f"Each row is {flows / _MOST_ROWS:.3g} flows on average"


def _shares(losses: Losses) -> list[list[float]]:
    """The share lost, by rows of flows and columns of time."""
    known = read_counts(losses.flows_known)
    if not known:
        lost, sent = read_counts(losses.steps_lost), read_counts(losses.steps_known)
        columns = _parts(len(lost), _MOST_COLUMNS)
        return [[sum(lost[part]) / max(1, sum(sent[part])) for part in columns]]

    lost = read_counts(losses.flows_lost)
    rows = []
    for flows in _parts(len(known), _MOST_ROWS):
        of_block = max(1.0, sum(known[flows]) / losses.blocks)
        row = []
        for block in range(losses.blocks):
            start = block * len(known)
            row.append(sum(lost[start + flows.start : start + flows.stop]) / of_block)
        rows.append(row)
    return rows


def _parts(count: int, most: int) -> list[slice]:
    """The items in at most `most` parts of nearly equal size."""
    parts = min(count, most)
    return [slice(part * count // parts, (part + 1) * count // parts) for part in range(parts)]


def _drawn(losses: Losses) -> str:
    """The cells, with both axes and the shades."""
    shares = _shares(losses)
    flows = float(max(1, len(read_counts(losses.flows_known))))
    plot = Plot(Axis(0.0, losses.duration_s, _LEFT, RIGHT), Axis(0.0, flows, _BOTTOM, _TOP))
    plot.frame(plot.x.ticks(8), plot.y.ticks(5, whole=True), in_unit(1.0), in_unit(1.0))
    plot.titles("time in the trial, s", "flow")

    wide = losses.duration_s / len(shares[0])
    high = flows / len(shares)
    cells: dict[float, list[tuple[float, float, float, float]]] = {}
    for row, columns in enumerate(shares):
        for column, share in enumerate(columns):
            if share > 0.0:
                shade = next((limit for limit in _SHADES if share <= limit), _SHADES[-1])
                cell = (column * wide, (column + 1) * wide, row * high, (row + 1) * high)
                cells.setdefault(shade, []).append(cell)

    swatches = []
    for place, shade in enumerate(_SHADES):
        opacity = (place + 1) / len(_SHADES)
        plot.bands(cells.get(shade, ()), _COLOUR, opacity)
        swatches.append((f"up to {format_ratio(shade)} lost", _COLOUR, opacity))
    plot.legend((), swatches, _LEFT, _BOTTOM + 4 * LINE_HEIGHT)

    return plot.svg(_HEIGHT, TITLE)
