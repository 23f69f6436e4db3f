"""The command ``lossratio archive replay``: the result of a search, computed again from its journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lossratio.commands.parameters import argument, command, say
from lossratio.errors import SearchError
from lossratio.files import shown_name
from lossratio.values import as_sentence, is_number, range_in_words, shown_value, trials_counted

if TYPE_CHECKING:
    from lossratio.mlrsearch import SearchResult
    from lossratio.plrsearch import (
        CountedLoad,
        CsitSearch,
        FunctionEstimate,
        PoissonEstimate,
        SearchByCounts,
    )
    from lossratio.trials import JournalContents


_MOST_NAMED = 5


@command()
def replay(journal: Path = argument()) -> None:
    """Compute the result of a search again from the trials in its JOURNAL.

    A search for conditional throughput has bounds and a conditional throughput for each goal. A soak test has a
    critical load. Loads are per transmitting interface.
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
    # Everything is computed before anything is shown, because a wrong header may only show in the estimate.
    if contents.search.get("algorithm") == "MLRsearch":
        from lossratio.measurements.throughput import replayed

        lines = list(_describe_search(replayed(contents, f"The journal {journal}").result()))
    else:
        lines = list(_describe_critical_load(replayed_load(contents, journal)))
    for note in _notes_on(contents):
        say(f"Note: {note}", err=True)
    say("\n".join(lines))


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


def replayed_load(journal: JournalContents, path: Path) -> CountedLoad:
    """The critical load from the journal of a soak test, by the search that chose its trials.

    Raises:
        SearchError: If the journal's header does not have a setting of the search, or has an unknown likelihood.
    """
    from lossratio.plrsearch import (
        TIME_FOR_RARE,
        CsitSearch,
        LikelihoodName,
        SearchByCounts,
        SelectionName,
    )

    search = journal.search
    given = search.get("settings")
    settings: Mapping[str, Any] = given if isinstance(given, dict) else {}
    names = ("target_loss_ratio", "min_load_fps", "max_load_fps")
    target, min_load, max_load = (_number(search, name, path) for name in names)
    if settings.get("rarest_s") is None:
        timeout = _number(settings, "timeout_s", path)
    else:
        timeout = TIME_FOR_RARE * _number(settings, "rarest_s", path)

    likelihood = settings.get("likelihood", LikelihoodName.LINE.value)
    if likelihood not in [known.value for known in LikelihoodName]:
        raise SearchError(
            f"The header of the journal {path} has the likelihood {shown_value(likelihood)}, which this version does "
            "not know. Use the version of lossratio that wrote the journal."
        )

    again: SearchByCounts | CsitSearch
    if settings.get("selection") == SelectionName.CSIT.value:
        again = CsitSearch(target, min_load, max_load, timeout=timeout)
    else:
        again = SearchByCounts(
            target,
            min_load,
            max_load,
            timeout=timeout,
            precision=settings.get("precision_ratio"),
            likelihood=LikelihoodName(likelihood),
            duration=settings.get("trial_duration_s"),
            warm_start=settings.get("warm_start_per_interface_fps", ()),
        )

    warm_ups = 0 if settings.get("warm_up_duration_s") is None else 1
    for trial in journal.results[warm_ups:]:
        again.next_trial()
        again.record(trial)
    again.next_trial()
    return again.result()


def _number(header: Mapping[str, Any], name: str, path: Path) -> float:
    """A number in the header of a journal."""
    if not is_number(header.get(name)):
        raise SearchError(
            f"The journal {path} belongs neither to a search for conditional throughput nor to a soak test: its "
            f"header lacks the number {name}. Name another journal."
        )
    return float(header[name])


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


def _rate(rate: float | None) -> str:
    if rate is None:
        return "none"
    return f"{rate:,.1f} fps"


def _numbers(found: FunctionEstimate | PoissonEstimate) -> str:
    low, high = found.interval(0.95)
    return f"mean {_rate(found.mean)}  stdev {found.stdev:,.2f} fps  95 % {low:,.1f} to {high:,.1f} fps"
