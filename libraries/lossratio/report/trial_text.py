"""The trials of a test in words: what each was, what it lost, and why it was asked for."""

from __future__ import annotations

from collections.abc import Iterable

from lossratio.report.trials import Trial
from lossratio.units import format_frame_rate, format_ratio


def trials_in_words(trials: Iterable[Trial]) -> str:
    """A line for each trial, with the seconds that had passed when it ended; times in seconds, loads per interface."""
    lines, passed = ["Why each trial was measured:"], 0.0
    for trial in trials:
        passed += trial.elapsed_s
        lines.append(
            f"{trial.number:>4}  at {passed:>6.1f} s  {format_frame_rate(trial.load_per_interface_fps):>11} "
            f"for {trial.duration_s:.4g} s  loss {format_ratio(trial.loss_ratio):<9}  {trial.purpose or ''}".rstrip()
        )
    return "\n".join(lines)
