"""Conclusions from the trials of a search: bounds, goal results, the generator's limits, and contradictions.

A controller knows only loss ratios. They include frames that the generator could not send, and frames that came back
and were dropped in the generator. So before a goal result is reported, its bounds are judged again without such frames.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from lossratio import results
from lossratio.errors import SearchError, StarvedGeneratorError
from lossratio.measurements.latency.result import LatencyAtLoad, latency_contradictions
from lossratio.measurements.telemetry import TelemetryTrial
from lossratio.measurements.throughput.result import (
    Goal,
    GoalOutcome,
    GoalReport,
    GoalsResult,
    LossyShare,
    ZoneOfChance,
    describe_goal,
    outcome_of,
    search_goal,
)
from lossratio.mlrsearch import (
    ENOUGH,
    FEWER_AGAIN,
    LARGEST_SHARE,
    LONG_REST,
    Bound,
    Criterion,
    Evidence,
    GoalBounds,
    GoalResult,
    IrregularReason,
    LevelLoss,
    LossUnit,
    MLRsearch,
    RestAnswer,
    SearchGoal,
    evidence_of,
    failed_since_loss,
    fewer_after_rest,
    goal_result,
    rest_answers,
    zone_in,
)
from lossratio.records import Rate
from lossratio.trials import (
    Addition,
    Integrity,
    JournalContents,
    JournalEntry,
    MissingFrames,
    TrialResult,
    loss_ratio_without_tester,
    missing_frames,
    sut_loss_ratio,
)
from lossratio.units import format_frame_rate, format_ratio
from lossratio.wrong_values import in_words

ALGORITHM = "MLRsearch"
"""The search algorithm whose bounds follow from the trials alone, as RFC 9971 defines them."""
GENERATOR_LIMIT = "the generator's limit, not the SUT's"
"""The reason for a result whose upper bound is due to frames that the generator could not send, or dropped itself."""
LATE_LIMIT = "late frames, not lost ones, made the upper bound; a longer wait (settle of the generator) would tell"
"""The reason for a result whose upper bound is due to frames that came back after the wait."""
EARLY_VERDICT = "early_verdict"
"""The setting of searches whose trials end as soon as their verdict is certain; other searches do not have it."""
MEMORY_REST = "memory_rest_s"
"""The setting of the rest before the trial at the end of a search that asks whether the SUT then passes more."""
MEMORY_SHARE = "memory_share"
"""The setting of the largest share of the search's time that this rest may take; None: any share."""
END_AT_COIN = "end_at_coin"
"""The setting of searches that give up a goal if only chance would decide; other searches do not have it."""
NIGHTLY = "nightly"
"""The setting of searches that ask first whether the SUT is as before; other searches do not have it."""
_RATES = ("relevant_lower_bound", "relevant_upper_bound", "conditional_throughput")
_ALSO_DUE_TO_OTHERS = (
    IrregularReason.MAX_LOAD_IS_LOWER_BOUND,
    IrregularReason.MIN_LOAD_IS_UPPER_BOUND,
)


ResultT = TypeVar("ResultT", bound=GoalsResult)


class BoundsSoFar:
    """Follows the bounds of a search, trial by trial."""

    def __init__(self, goals: Iterable[SearchGoal]) -> None:
        self._evidence = [
            (
                goal,
                evidence_of(goal),
                Evidence(Criterion.make(goal, goal.first_duration, goal.first_duration)),
            )
            for goal in goals
        ]

    def add(self, trial: TrialResult) -> tuple[GoalBounds, ...]:
        """Adds a trial that counts; the bounds of each goal after it, in the order of the goals."""
        for goal, proof, sign in self._evidence:
            seen = goal.seen(trial)
            proof.add(seen)
            sign.add(seen)
        return tuple(
            GoalBounds(goal, proof.relevant_bounds(), sign.relevant_bounds())
            for goal, proof, sign in self._evidence
        )


def bounds_history(result: GoalsResult) -> dict[int, tuple[GoalBounds, ...]]:
    """The bounds of all goals of a result after each trial that counts, by the trial's number."""
    so_far = BoundsSoFar(search_goal(report.goal) for report in result.goals)
    evidence = (trial for trial in result.trials if trial.is_evidence)
    return {trial.number: so_far.add(trial.as_result()) for trial in evidence}


def warm_ups_in(settings: Mapping[str, Any]) -> int:
    """Number of warm-up trials at the beginning, by the settings in a journal or a result."""
    if settings.get("warm_up_duration_s") is None:
        return 0
    return 1


def search_fields(
    run: results.TestRun,
    max_load: results.MaxLoad,
    search: Mapping[str, Any],
    found: Mapping[SearchGoal, GoalResult],
    entries: Sequence[JournalEntry],
) -> dict[str, Any]:
    """The fields of the result of a search, in which the generator's limits are marked as such.

    The search is described by the header of its journal, with ``settings`` and ``min_load_fps``. The results of the
    goals are ignored if the run has an error.
    """
    settings = search["settings"]
    warm_ups = warm_ups_in(settings)
    if settings.get(EARLY_VERDICT):
        run = replace(run, conditions=results.with_early_verdicts(run.conditions))
    evidence = [entry.result for entry in entries[warm_ups:]]
    if run.error is None and MEMORY_REST in settings:
        bounds = [
            (result.relevant_upper_bound, result.goal.loss_ratio) for result in found.values()
        ]
        run = replace(run, remarks=(*run.remarks, *_remark_on_rest(evidence, bounds)))

    def rate(load: float | None) -> Rate | None:
        if load is None:
            return None
        return run.conditions.rate(load)

    outcomes: list[GoalOutcome | None] = []
    for result in found.values() if run.error is None else ():
        reason = judge(result, evidence, max_load_origin=max_load.origin)
        zone = zone_in(
            result.goal, evidence, search["min_load_fps"], max_load.rate.per_interface_fps
        )
        shares = tuple(
            LossyShare(**vars(one) | {"load": rate(one.load)})
            for one in (zone.shares if zone else ())
        )
        outcomes.append(
            GoalOutcome(
                regular=reason is None,
                reason=reason,
                **{name: rate(getattr(result, name)) for name in _RATES},
                zone=ZoneOfChance(shares=shares) if shares else None,
            )
        )
    goals = tuple(
        GoalReport(goal=describe_goal(goal), result=outcome)
        for goal, outcome in zip_longest(found, outcomes)
    )
    # Record: the fields of a result.
    return {
        **run.stated(),
        "outcome": results.Outcome.FAILED if run.error is not None else outcome_of(outcomes),
        "trials": results.describe_trials(entries, warm_ups=warm_ups),
        "algorithm": ALGORITHM,
        "settings": dict(settings),
        "min_load": run.conditions.rate(search["min_load_fps"]),
        "max_load": max_load,
        "goals": goals,
    }


def rest_answers_in(
    evidence: Sequence[TrialResult], bounds: Iterable[tuple[float | None, float]]
) -> dict[float, RestAnswer]:
    """What the trials after a rest say for each goal, by its upper bound (None: there is none) and loss ratio."""
    upper, allowed = max(
        ((upper, allowed) for upper, allowed in bounds if upper is not None), default=(None, 0.0)
    )
    if upper is None:
        return {}
    return rest_answers(evidence, upper, allowed)


_ABOUT_REST = ("after a rest", "remembers a loss", "passes less")
"""Words, at least one of which is in each remark on trials after a rest."""


def is_about_rest(remark: str) -> bool:
    """Whether a remark is about trials after a rest, or about something that only such trials would show."""
    return any(words in remark for words in _ABOUT_REST)


def _remark_on_rest(
    evidence: Sequence[TrialResult], bounds: Sequence[tuple[float | None, float]]
) -> Iterator[str]:
    """What the trials after a rest looked for, unless they cause a doubt."""
    yield from _remark_on_less(evidence, min((allowed for _, allowed in bounds), default=0.0))
    upper = max((upper for upper, _ in bounds if upper is not None), default=0.0)
    asked = [trial for trial in evidence if trial.input.rest and trial.load >= upper]
    if not asked:
        yield from _remark_without_rest(evidence, upper)
        return

    answers = rest_answers_in(evidence, bounds)
    remembered, easy, hard = (
        [load for load, answer in answers.items() if answer is wanted]
        for wanted in (RestAnswer.REMEMBERED, RestAnswer.EASY, RestAnswer.HARD)
    )
    if len(remembered) >= ENOUGH:
        return

    first = asked[0]
    rest = f"after a rest of {first.input.rest:g} s"
    no_memory = (
        "nothing shows that the SUT remembers a loss; this cannot show a memory of more than "
        f"{first.input.rest:g} s"
    )
    if remembered:
        loads = "1 load" if len(remembered) == 1 else f"{len(remembered)} loads"
        yield (
            f"above the bounds, trials at {loads} passed {rest} and failed right after a loss: too few to say that "
            f"the SUT remembers a loss; memory_rest={first.input.rest:g} s would test further"
        )
    elif easy:
        yield (
            f"whole trials of {first.duration:g} s above the bounds, at up to {format_frame_rate(max(easy))} per "
            f"interface, passed {rest}, and likewise right after a loss: {no_memory}"
        )
    elif hard:
        yield (
            f"a whole trial of {first.duration:g} s above the bounds, at {format_frame_rate(first.load)} per interface "
            f"{rest}, lost {format_ratio(sut_loss_ratio(first))}: {no_memory}"
        )
    else:
        yield (
            f"it is not known whether the SUT remembers a loss: no trial {rest} gave an answer, because the "
            "generator sent too little or the search ended earlier"
        )


def _remark_without_rest(evidence: Sequence[TrialResult], upper: float) -> Iterator[str]:
    """What is known of a memory of loss without a trial after a rest above the bounds; nothing for a quick search."""
    failed = failed_since_loss(evidence, upper, LONG_REST)
    if failed is None:
        if LARGEST_SHARE * sum(trial.elapsed for trial in evidence) >= LONG_REST:
            yield (
                "no trial after a long rest tested whether the SUT remembers a loss for longer than the rest "
                f"between trials; memory_rest={LONG_REST:g} s would test it"
            )
        return
    yield (
        f"after {LONG_REST:g} s without loss or longer, a trial of {failed.duration:g} s above the bounds, at "
        f"{format_frame_rate(failed.load)} per interface, lost {format_ratio(sut_loss_ratio(failed))}, as in the "
        "search: nothing shows that the SUT remembers a loss"
    )


def _remark_on_less(evidence: Sequence[TrialResult], allowed: float) -> Iterator[str]:
    """What the first trial of a search shows, if it asked whether the SUT passes less after a rest."""
    first = next(iter(evidence), None)
    found = fewer_after_rest(evidence, allowed)
    if len(found) >= FEWER_AGAIN or first is None or not first.input.rest:
        return

    trial = (
        f"the first trial, of {first.duration:g} s at {format_frame_rate(first.load)} per interface, after a rest of "
        f"{first.input.rest:g} s, "
    )
    again = [result for result in evidence if result.input.rest and result.load == first.load]
    lost = f"{trial}lost {format_ratio(sut_loss_ratio(first))}, and the same load passed right after that"
    if found and len(again) >= FEWER_AGAIN:
        yield (
            f"{lost}; after another rest this did not happen again, so nothing shows that the SUT passes less after a "
            "rest"
        )
    elif found:
        yield f"{lost}; the search was too short to test this again, and it may be chance"
    elif sut_loss_ratio(first) <= allowed:
        yield f"{trial}passed: nothing shows that the SUT passes less after a rest"


def level_in_words(level: LevelLoss) -> str:
    """A loss that is the same at any load, as a sentence without a full stop."""
    what, lost = {
        LossUnit.SHARE: ("share of the frames", format_ratio(level.lost)),
        LossUnit.SECONDS: ("loss in time", f"the frames of {level.lost * 1e3:.3g} ms"),
        LossUnit.FRAMES: ("number of frames", f"{level.lost:,.0f} per interface"),
    }[level.unit]
    return (
        f"each trial loses the same {what}, {lost}, at each of {level.loads} loads from "
        f"{format_frame_rate(level.lowest)} to {format_frame_rate(level.highest)} per interface"
    )


class _Searched(BaseModel):
    """What the header of a journal says of a search."""

    goals: tuple[Goal, ...]
    min_load_fps: float
    max_load_fps: float
    timeout_s: float | None = None
    warm_up_duration_s: float | None = None
    memory_rest_s: float = 0.0
    memory_share: float | None = None


def replayed(journal: JournalContents, name: str = "The journal") -> MLRsearch:
    """The search of a journal after its trials.

    Raises:
        SearchError: If it does not say what was searched for.
    """
    given = journal.search.get("settings")
    settings: Mapping[str, Any] = given if isinstance(given, dict) else {}
    try:
        searched = _Searched.model_validate({**journal.search, **settings})
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        lacking = "what its goals are" if field == "goals" else field
        raise SearchError(
            f"{name} does not say {lacking}: {in_words(error.errors()[0])}."
        ) from error

    # Record: the search as described by the header of its journal.
    controller = MLRsearch(
        [search_goal(goal) for goal in searched.goals],
        searched.min_load_fps,
        searched.max_load_fps,
        timeout=searched.timeout_s,
        warm_up_duration=searched.warm_up_duration_s,
        fail_fast=settings.get("fail_fast") is not False,
        early_verdict=settings.get(EARLY_VERDICT) is True,
        end_at_coin=settings.get(END_AT_COIN) is True,
        memory_rest=searched.memory_rest_s,
        memory_share=math.inf if searched.memory_share is None else searched.memory_share,
    )
    for trial in journal.results:
        controller.record(trial)
    return controller


class _About(BaseModel):
    """What the header of a journal says of the result besides the search."""

    test: results.TestIdentity
    conditions: results.Conditions
    remarks: tuple[str, ...]
    max_load: results.MaxLoad


def judge(
    result: GoalResult, trials: Sequence[TrialResult], *, max_load_origin: results.LoadOrigin
) -> str | None:
    """Decides why a goal result is irregular; None: it is regular.

    A goal result is the generator's limit in two cases. Either its relevant upper bound is an upper bound only because
    of frames that the generator did not send, or dropped when they came back; or even the maximum load is a lower
    bound, and the generator cannot send more. If only late frames make the upper bound, it is not known whether the SUT
    forwards more: a search counts them as lost, but they were not.
    """
    limit = _limit_of_others(result, trials, max_load_origin)
    if limit is None:
        return None if result.reason is None else str(result.reason)
    if result.reason is None or result.reason in _ALSO_DUE_TO_OTHERS:
        return limit
    return f"{limit}; {result.reason}"


def is_generators_limit(reason: str | None) -> bool:
    """Whether the reason of an irregular goal result is, at least in part, that the generator made the upper bound."""
    return reason is not None and reason.startswith(GENERATOR_LIMIT)


def is_least(reason: str | None) -> bool:
    """Whether an irregular goal result was limited, at least in part, by something other than the SUT."""
    return reason is not None and reason.startswith((GENERATOR_LIMIT, LATE_LIMIT))


def is_bound_of_others(trials: Iterable[results.Trial], bound: Rate | None, goal: Goal) -> bool:
    """Whether most trials that lost too much at an upper bound did so through frames that the SUT did not lose.

    Args:
        trials: The trials of the search.
        bound: The upper bound; None: there is none.
        goal: The goal that it is a bound of.
    """
    if bound is None:
        return False
    searched = search_goal(goal)
    at_bound = [
        searched.seen(trial.as_result())
        for trial in trials
        if trial.is_evidence and trial.load_per_interface_fps == bound.per_interface_fps
    ]
    failed = [trial for trial in at_bound if trial.loss_ratio > goal.loss_ratio]
    by_others = [trial for trial in failed if sut_loss_ratio(trial) <= goal.loss_ratio]
    return 2 * len(by_others) > len(failed)


def _limit_of_others(
    result: GoalResult, trials: Sequence[TrialResult], max_load_origin: results.LoadOrigin
) -> str | None:
    """What other than the SUT bounded a result from above; None: nothing did."""
    if result.reason is IrregularReason.MAX_LOAD_IS_LOWER_BOUND:
        return GENERATOR_LIMIT if max_load_origin is results.LoadOrigin.GENERATOR else None

    upper = result.relevant_upper_bound
    seen = [result.goal.seen(trial) for trial in trials]
    if upper is None or not _is_upper_bound(upper, result.goal, seen):
        return None

    for limit, kept in ((GENERATOR_LIMIT, _without_generators_faults), (LATE_LIMIT, of_sut)):
        there = [kept(trial) if trial.load == upper else trial for trial in seen]
        if there != seen and not _is_upper_bound(upper, result.goal, there):
            return limit
    return None


def _is_upper_bound(load: float, goal: SearchGoal, trials: Iterable[TrialResult]) -> bool:
    evidence = evidence_of(goal)
    for trial in trials:
        evidence.add(trial)
    return evidence.bound(load) is Bound.UPPER


def _without_generators_faults(trial: TrialResult) -> TrialResult:
    """The trial as if its load had been what was sent, and the generator had counted all frames that came back."""
    missing = missing_frames(trial.output)
    if missing is None or not missing.by_tester:
        return trial
    return _with_loss_ratio(trial, loss_ratio_without_tester(trial))


def of_sut(trial: TrialResult) -> TrialResult:
    """The trial as if, in addition, the late frames had come back in time."""
    missing = missing_frames(trial.output)
    if missing is None or not missing.late:
        return _without_generators_faults(trial)
    return _with_loss_ratio(trial, sut_loss_ratio(trial))


def _without_late_frames(trial: TrialResult) -> TrialResult:
    """The trial as if late frames had not been looked for."""
    return replace(trial, output=replace(trial.output, late_frames=None))


def _with_loss_ratio(trial: TrialResult, loss_ratio: float) -> TrialResult:
    return replace(trial, output=replace(trial.output, loss_ratio=loss_ratio, sent_frames=None))


def check_generator(
    trial: TrialResult, goals: Iterable[SearchGoal], *, is_one_enough: bool
) -> None:
    """Makes sure that the generator is not the reason why a trial at the smallest load of a search fails.

    Raises:
        StarvedGeneratorError: If it is: without the frames that it did not send, or dropped, the
            trial would not fail for any goal.
    """
    failed = []
    for goal in goals:
        seen = goal.seen(trial)
        if loss_ratio_without_tester(seen) > goal.loss_ratio:
            # The SUT does not meet this goal, whatever the generator does.
            return
        failed.append(seen.loss_ratio > goal.loss_ratio)
    if not (any(failed) if is_one_enough else all(failed)):
        return

    output = trial.output
    missing = missing_frames(output) or MissingFrames()
    unsent = missing.unsent + missing.refused
    dropped = missing.generator_drops
    late = max((direction.lateness_s or 0.0 for direction in output.directions), default=0.0)
    faults = []
    if unsent:
        wanted = (output.sent_frames or 0) + unsent
        faults.append(f"it could not send {unsent:,} of {wanted:,} frames")
    if dropped:
        faults.append(f"it dropped {dropped:,} frames that came back")
    if late:
        faults.append(f"it was late by up to {late * 1e3:.3g} ms")

    raise StarvedGeneratorError(
        "No load was found because of the generator, not the device. At the smallest load of the search, "
        f"{format_frame_rate(trial.load)} per interface: {', '.join(faults)}. Look for other work on the TG, or "
        "reserve CPUs for the generator. A resumed run measures such trials again."
    )


class SearchKind(results.Kind[ResultT]):
    """What all searches with goals share, as far as their journals and results show it."""

    def warm_ups(self, settings: Mapping[str, Any]) -> int:
        """1 if the settings have a warm-up, otherwise 0."""
        return warm_ups_in(settings)

    def contradictions(self, result: ResultT, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Contradictions in the result of a search, whose bounds and verdicts must follow from its trials."""
        least = result.min_load.per_interface_fps
        most = result.max_load.rate.per_interface_fps
        for place, trial in enumerate(trials, start=1):
            if (
                not least * (1.0 - results.ROUNDING)
                <= trial.load
                <= most * (1.0 + results.ROUNDING)
            ):
                yield f"trial {place}: its load of {trial.load!r} is outside of the search's {least!r} to {most!r}"

        evidence = trials[warm_ups_in(result.settings) :]
        uncounted = [
            replace(trial, output=replace(trial.output, lost_frames=None, directions=()))
            for trial in evidence
        ]
        for report in result.goals if result.algorithm == ALGORITHM else ():
            said = report.result
            name = report.goal.name
            searched = search_goal(report.goal)
            if said is None:
                continue
            if report.is_as_before:
                # It follows from earlier results.
                found = [field for field in _RATES if getattr(said, field) is not None]
                yield from (f"goal {name}: has {field}, and there was no search" for field in found)
                continue

            made = goal_result(searched, evidence, min_load=least, max_load=most)
            for field in _RATES:
                rate, load = getattr(said, field), getattr(made, field)
                given = None if rate is None else rate.per_interface_fps
                if not results.same_value(given, load):
                    yield f"goal {name}: {field}.per_interface_fps is {given!r}, and the trials make {load!r}"

            # Earlier versions called a trial lossy if it lacked frames that were not sent.
            ways = [evidence]
            if searched.stream is None:
                ways.append(uncounted)
            zones = [said.zone, *(zone_in(searched, way, least, most) for way in ways)]
            counts, *made_counts = (
                [
                    (share.trials, share.lossy, share.longest_run)
                    for share in (zone.shares if zone else ())
                ]
                for zone in zones
            )
            if said.zone is not None and counts not in made_counts:
                yield f"goal {name}: its zone of chance does not follow from the trials"
            # Earlier versions called a result regular if late frames made the upper bound.
            ways = [evidence, [_without_late_frames(trial) for trial in evidence]]
            reasons = [judge(made, way, max_load_origin=result.max_load.origin) for way in ways]
            reason = reasons[0]
            if said.regular not in [one is None for one in reasons]:
                yield f"goal {name}: regular is {said.regular}, but the trials give {not said.regular}"
            # The trials do not show why a search ended early.
            elif made.reason is not IrregularReason.STOPPED_EARLY and said.reason not in reasons:
                yield f"goal {name}: reason is {said.reason!r}, but the trials give {reason!r}"

        for spread in result.spread:
            throughput = next(
                (report.throughput for report in result.goals if report.goal.name == spread.goal),
                None,
            )
            if not results.same_value(
                spread.values_fps[-1], None if throughput is None else throughput.per_interface_fps
            ):
                yield f"spread of {spread.goal}: its last value is not the conditional throughput that was found"

        for place, at_load in enumerate(result.latency):
            yield from latency_contradictions(at_load, f"latency[{place}]")

    def follows_from_trials(self, result: ResultT) -> bool:
        """Whether the result, apart from latency and telemetry, follows from this search alone."""
        asks = NIGHTLY in result.settings
        return result.algorithm == ALGORITHM and not (result.spread or asks)

    def with_additions(self, result: ResultT, additions: Sequence[Addition]) -> ResultT | None:
        """A result with the latency and telemetry from its journal; None: it has parts that are not in the journal.

        A later measurement of latency replaces an earlier one, while every telemetry is kept. If the result has more
        than the journal, because an earlier version wrote that, nothing proves the additional parts.
        """
        latency: dict[int, dict[Any, LatencyAtLoad]] = {}
        telemetry: dict[int, TelemetryTrial] = {}
        try:
            for addition in additions:
                text = json.dumps(addition.found)
                if addition.part == "latency":
                    at_load = LatencyAtLoad.model_validate_json(text, strict=True)
                    latency.setdefault(addition.measurement, {})[addition.request["number"]] = (
                        at_load
                    )
                elif addition.part == "telemetry":
                    telemetry[addition.measurement] = TelemetryTrial.model_validate_json(
                        text, strict=True
                    )
        except (ValueError, KeyError):
            return None

        measured = [
            tuple(latency[number][place] for place in sorted(latency[number]))
            for number in sorted(latency)
        ]
        trials = tuple(telemetry[number] for number in sorted(telemetry))
        is_known = not result.latency or result.latency in measured
        if not is_known or result.telemetry != trials[: len(result.telemetry)]:
            return None

        newest = result.latency or next(reversed(measured), ())
        return result.model_copy(update={"latency": newest, "telemetry": trials})

    def rebuilt(self, journal: JournalContents) -> ResultT | None:
        """The result of a finished search, from its journal alone, with latency and telemetry.

        It ends with its last trial. None: the search is not finished, or the journal does not describe its test.
        """
        try:
            about = _About.model_validate_json(json.dumps(journal.about), strict=True)
            # Python 3.10 cannot read the letter Z.
            created = datetime.fromisoformat(journal.created.replace("Z", "+00:00"))
            controller = replayed(journal)
        except (ValueError, SearchError):
            return None

        if NIGHTLY in (journal.search.get("settings") or {}):
            # Whether there was a search follows from earlier results, too.
            return None
        # With this setting, the last trial may have ended the measurement, which its counts alone do not show.
        is_checked = journal.search.get("integrity") == Integrity.FAIL.value
        if is_checked or not journal.entries or controller.next_trial() is not None:
            return None

        ended = created + timedelta(seconds=sum(trial.elapsed for trial in journal.results))
        run = results.TestRun(about.test, created, ended, about.conditions, about.remarks)
        fields = search_fields(
            run, about.max_load, journal.search, controller.result(), journal.entries
        )
        return self.with_additions(self.result(**fields), journal.additions)

    def search_of(self, result: ResultT) -> Mapping[str, Any]:
        """Goals, settings and minimum load."""
        goals = [report.goal.model_dump(mode="json") for report in result.goals]
        return {
            "goals": goals,
            "settings": result.settings,
            "min_load_fps": result.min_load.per_interface_fps,
        }

    def known_so_far(self, journal: JournalContents) -> Iterator[str]:
        """The bounds of each goal."""
        try:
            goals = [
                search_goal(Goal.model_validate(fields))
                for fields in journal.search.get("goals", ())
            ]
        except (ValidationError, SearchError):
            return
        so_far = BoundsSoFar(goals)
        warm_ups = warm_ups_in(journal.search.get("settings") or {})
        bounds = [so_far.add(result) for result in journal.results[warm_ups:]]
        for goal_bounds in bounds[-1] if bounds else ():
            interval = results.format_interval(goal_bounds.leaning.lower, goal_bounds.leaning.upper)
            yield f"{goal_bounds.goal}: so far {interval} per interface, not proved"
