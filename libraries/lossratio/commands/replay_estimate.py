"""The critical load again, from a journal of trials: another target, other limits, another likelihood."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossratio.errors import SearchError
from lossratio.plrsearch import CriticalLoadEstimate, LikelihoodName, Weighting, estimate
from lossratio.trials import JournalContents, read_journal
from lossratio.units import format_ratio


@dataclass(frozen=True)
class ReplayRequest:
    """What to estimate; None: as the journal's search had it.

    Attributes:
        target_loss_ratio: The loss ratio at the critical load; needed if the search was none for a critical load.
        min_load: Smallest load that can be the answer, frames per second per interface.
        max_load: Largest load that can be the answer, likewise.
        likelihood: How counts of lost frames are distributed.
        weighting: How the fitting functions are combined.
    """

    target_loss_ratio: float | None = None
    min_load: float | None = None
    max_load: float | None = None
    likelihood: LikelihoodName | None = None
    weighting: Weighting | None = None


def replay(path: Path, request: ReplayRequest) -> CriticalLoadEstimate:
    """Estimates the critical load from the trials of any journal, also of a search for something else.

    Raises:
        SearchError: If the journal cannot be read, or does not say what the request leaves out.
    """
    return estimate_from(read_journal(path), path, request)


def estimate_from(journal: JournalContents, path: Path, request: ReplayRequest) -> CriticalLoadEstimate:
    """Estimates the critical load from what was read of a journal, as `replay` does.

    Raises:
        SearchError: If the journal does not say what the request leaves out.
    """
    search = journal.search
    settings: Mapping[str, Any] = search.get("settings") or {}
    return estimate(
        _evidence(journal, settings),
        target_loss_ratio=_given(request.target_loss_ratio, search, "target_loss_ratio", path),
        min_load=_given(request.min_load, search, "min_load_fps", path),
        max_load=_given(request.max_load, search, "max_load_fps", path),
        likelihood=request.likelihood or settings.get("likelihood", LikelihoodName.VARYING),
        weighting=request.weighting or settings.get("weighting", Weighting.EVIDENCE),
    )


def describe_estimate(found: CriticalLoadEstimate) -> Iterator[str]:
    """An estimate in a few lines of text, with what speaks against it."""
    yield (
        f"Critical load (loss ratio {format_ratio(found.target_loss_ratio)} in the long run), "
        f"{found.likelihood.value} likelihood, functions weighted by {found.weighting.value}; per interface:"
    )
    for each, weight in zip(found.combined.functions, found.combined.weights, strict=True):
        yield f"  {each.name:<9} {_numbers(each.mean, each.stdev, each.interval(0.95))}  weight {weight:.3g}"
    yield f"  {'combined':<9} {_numbers(found.mean, found.stdev, found.interval(0.95))}"
    if found.limits is not None:
        yield found.limits
    yield "The model fits the trials." if found.misfit.fits else "The model does not fit: do not rely on the numbers."
    yield from (f"  {reason}" for reason in found.misfit.reasons)


def _evidence(journal: JournalContents, settings: Mapping[str, Any]) -> Any:
    warm_ups = 0 if settings.get("warm_up_duration_s") is None else 1
    return journal.results[warm_ups:]


def _given(asked: float | None, search: Mapping[str, Any], name: str, path: Path) -> float:
    if asked is not None:
        return asked
    if not isinstance(search.get(name), (int, float)):
        option = name.removesuffix("_fps").replace("_", "-")
        raise SearchError(f"The journal {path} does not say {name}: give it with --{option}.")
    return float(search[name])


def _numbers(mean: float, stdev: float, interval: tuple[float, float]) -> str:
    return f"mean {mean:,.1f} fps  stdev {stdev:,.2f} fps  95 % {interval[0]:,.1f} to {interval[1]:,.1f} fps"
