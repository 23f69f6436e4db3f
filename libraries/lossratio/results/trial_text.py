"""The trials of a test in words: what each was, what it lost, and why it was asked for."""

from __future__ import annotations

from collections.abc import Iterable

from lossratio.results.trials import Trial
from lossratio.units import format_frame_rate, format_ratio

_RULE_WIDTH = 9


def trials_in_words(trials: Iterable[Trial]) -> str:
    """A line for each trial: when it ended in seconds, its load per interface, the rule that chose it, and why."""
    lines, passed = ["Why each trial was measured:"], 0.0
    for trial in trials:
        passed += trial.elapsed_s
        reason = "  ".join(filter(None, (trial.rule and f"{trial.rule:<{_RULE_WIDTH}}", trial.purpose)))
        lines.append(
            f"{trial.number:>4}  at {passed:>6.1f} s  {format_frame_rate(trial.load_per_interface_fps):>11} "
            f"for {trial.duration_s:.4g} s  loss {format_ratio(trial.loss_ratio):<9}  {reason}".rstrip()
        )
    return "\n".join(lines)
