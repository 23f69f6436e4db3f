"""The command ``lossratio archive replay``: the result of a search, computed again from its journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lossratio.commands.parameters import FRAME_RATE, RATIO, OneOf, argument, command, option
from lossratio.errors import SearchError
from lossratio.input_file import shown_name
from lossratio.units import as_sentence, range_in_words, trials_counted

if TYPE_CHECKING:
    from lossratio.mlrsearch import SearchResult
    from lossratio.plrsearch import (
        CountedLoad,
        CsitSearch,
        FunctionEstimate,
        LikelihoodName,
        PoissonEstimate,
        SearchByCounts,
    )
    from lossratio.trials import JournalContents


_MOST_NAMED = 5


@dataclass(frozen=True)
class Asked:
    """The settings of an estimate, which replace those of the journal's search; loads in frames per second."""

    target_loss_ratio: float | None = option(
        "Find the critical load at this loss ratio, e.g. 1e-7 or 0.1 %. Default: the soak test's.",
        metavar="RATIO",
        type=RATIO,
    )
    min_load: float | None = option(
        "Smallest critical load. Default: the search's.", metavar="RATE", type=FRAME_RATE
    )
    max_load: float | None = option(
        "Largest critical load. Default: the search's.", metavar="RATE", type=FRAME_RATE
    )
    likelihood: str | None = option(
        "The model of the estimate beside the verified load. Default: as in the search.",
        type=OneOf(["line", "poisson"]),
    )


@command()
def replay(journal: Path = argument(), *, asked: Asked) -> None:
    """Compute the result of a search again from the trials in its JOURNAL.

    A search for conditional throughput has bounds and a conditional throughput for each goal. A soak test has a
    critical load. With --target-loss-ratio, the command says what the trials of any journal show about it.
    Loads are per transmitting interface.
    """
    from lossratio.trials import read_journal

    if journal.suffix == ".json":
        trials = journal.parent.parent / "trials" / f"{journal.stem}.jsonl"
        if trials.exists():
            raise click.UsageError(
                f"{shown_name(journal)} is a result, not a journal. Name its journal: {shown_name(trials)}"
            )
    if journal.is_dir():
        raise click.UsageError(_journals_in(journal))
    contents = read_journal(journal)
    is_throughput = contents.search.get("algorithm") == "MLRsearch"
    options = [name for name, value in vars(asked).items() if value is not None]
    if is_throughput and options and asked.target_loss_ratio is None:
        raise click.UsageError(
            f"--{options[0].replace('_', '-')} applies to a critical load: also give --target-loss-ratio."
        )

    # Everything is computed before anything is shown, because a wrong option may only show in the estimate.
    lines: list[str] = []
    if is_throughput:
        from lossratio.measurements.throughput import replayed

        lines += _describe_search(replayed(contents, f"The journal {journal}").result())
    if not is_throughput or asked.target_loss_ratio is not None:
        lines += _describe_critical_load(replayed_load(contents, journal, asked))
    for note in _notes_on(contents):
        click.echo(f"Note: {note}", err=True)
    click.echo("\n".join(lines))


def _notes_on(contents: JournalContents) -> Iterator[str]:
    """The trials of a journal that are not used, with the reasons."""
    if contents.unproved:
        number = len(contents.unproved)
        last = "its last trial is" if number == 1 else f"its last {number:,} trials are"
        yield f"{last} left out because the devices were not checked afterwards"
    if contents.withdrawn:
        # This import loads many modules that most journals do not need.
        from lossratio.results import withdrawn_in_words

        yield from withdrawn_in_words(contents)


def _journals_in(directory: Path) -> str:
    """The journals to name instead of a directory."""
    journals = sorted([*directory.glob("trials/*.jsonl"), *directory.glob("*.jsonl")])
    if not journals:
        return f"{shown_name(directory)} is a directory without journals (trials/*.jsonl). Name the journal of a test."
    names = ", ".join(shown_name(path) for path in journals[:_MOST_NAMED])
    rest = len(journals) - _MOST_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    return f"{shown_name(directory)} is a directory. Name one of its journals: {names}{more}."


def replayed_load(journal: JournalContents, path: Path, asked: Asked) -> CountedLoad:
    """The critical load from the trials of any journal. Only a soak test's journal has a target loss ratio of its own.

    Raises:
        SearchError: If a figure that the estimate needs is neither in the options nor in the journal, or trials have
            early verdicts.
    """
    from lossratio.plrsearch import LikelihoodName, load_by_counts

    search = journal.search
    settings: Mapping[str, Any] = (
        search["settings"] if isinstance(search.get("settings"), dict) else {}
    )
    if any(trial.is_early for trial in journal.results):
        raise SearchError(
            f"The journal {path} has trials with early verdicts. Their loss is not known, so no critical load can "
            "be estimated from them. Use a journal that was measured with early_verdict=off."
        )

    target = _option_or_journal(asked.target_loss_ratio, search, "target_loss_ratio", path)
    min_load = _option_or_journal(asked.min_load, search, "min_load_fps", path)
    max_load = _option_or_journal(asked.max_load, search, "max_load_fps", path)
    likelihood = asked.likelihood or settings.get("likelihood", LikelihoodName.LINE)
    warm_ups = 0 if settings.get("warm_up_duration_s") is None else 1
    is_same = (asked.target_loss_ratio, asked.min_load, asked.max_load) == (None, None, None)
    if is_same and "timeout_s" in settings:
        again = _searched(settings, (target, min_load, max_load), LikelihoodName(likelihood))
        for trial in journal.results[warm_ups:]:
            again.next_trial()
            again.record(trial)
        again.next_trial()
        return again.result()

    return load_by_counts(
        journal.results[warm_ups:],
        target_loss_ratio=target,
        min_load=min_load,
        max_load=max_load,
        likelihood=LikelihoodName(likelihood),
    )


def _searched(
    settings: Mapping[str, Any], limits: tuple[float, float, float], likelihood: LikelihoodName
) -> SearchByCounts | CsitSearch:
    """The search of a soak test, before its first trial."""
    from lossratio.plrsearch import TIME_FOR_RARE, CsitSearch, SearchByCounts, SelectionName

    rarest = settings.get("rarest_s")
    seconds = settings["timeout_s"] if rarest is None else TIME_FOR_RARE * rarest
    if settings.get("selection") == SelectionName.CSIT.value:
        return CsitSearch(*limits, timeout=seconds)
    return SearchByCounts(
        *limits,
        timeout=seconds,
        precision=settings.get("precision_ratio"),
        likelihood=likelihood,
        duration=settings.get("trial_duration_s"),
        warm_start=settings.get("warm_start_per_interface_fps", ()),
    )


def _describe_search(result: SearchResult) -> Iterator[str]:
    end = "finished" if result.finished else "not finished"
    yield f"Search with {trials_counted(result.trials)} in {result.elapsed:,.1f} s, {end}; per interface:"
    width = max(len(str(goal)) for goal in result)
    for goal, outcome in result.items():
        throughput = outcome.conditional_throughput
        bounds = range_in_words(
            _rate(outcome.relevant_lower_bound), _rate(outcome.relevant_upper_bound)
        )

        yield (
            f"  {goal!s:<{width}}  conditional throughput {_rate(throughput)}  bounds {bounds}  "
            f"{'regular' if outcome.reason is None else f'irregular: {outcome.reason}'}"
        )


def _describe_critical_load(found: CountedLoad) -> Iterator[str]:
    from lossratio.plrsearch import target_in_words

    yield f"Critical load ({target_in_words(found.target, found.trial_s, found.long_s)}); per interface:"
    if found.verified is not None:
        yield f"  verified      {_rate(found.verified)}"
    yield f"  contradicted  {_rate(found.contradicted)}"
    yield f"  by a line     {_rate(found.line)}"
    if found.model is not None:
        for function in found.model.functions:
            yield f"  {function.function.name:<13} {_numbers(function)}"
        yield f"  {'PLRsearch':<13} {_numbers(found.model)}"
    yield f"Counted frames: {found.statement}."
    yield from (f"{as_sentence(sentence)}." for sentence in found.sentences)
    if found.reason is not None:
        yield f"Do not rely on the load: {found.reason}."


def _option_or_journal(
    option: float | None, search: Mapping[str, Any], name: str, path: Path
) -> float:
    if option is not None:
        return option
    if not isinstance(search.get(name), (int, float)):
        way_out = f"give it with --{name.removesuffix('_fps').replace('_', '-')}"
        raise SearchError(f"The journal {path} does not have {name}: {way_out}.")
    return float(search[name])


def _rate(rate: float | None) -> str:
    if rate is None:
        return "none"
    return f"{rate:,.1f} fps"


def _numbers(found: FunctionEstimate | PoissonEstimate) -> str:
    low, high = found.interval(0.95)
    return f"mean {_rate(found.mean)}  stdev {found.stdev:,.2f} fps  95 % {low:,.1f} to {high:,.1f} fps"
