"""A perfect SUT behind a tester that fails in many ways: no sentence, doubt or status blames the SUT."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from io import StringIO
from itertools import cycle

import pytest
from measurement_examples import PROFILE, place
from perfect_sut import (
    INJECTORS,
    PerfectTestbed,
    drops_always,
    drops_only_one_way,
    held_up,
    held_up_a_little,
    held_up_for_long,
)

from lossratio.drawing import trial_hint
from lossratio.drawing.plot import LOSSY, mark_of
from lossratio.errors import DutError, LossRatioError, TrafficError
from lossratio.measurements import OneLine
from lossratio.measurements.connections import OpeningRequest
from lossratio.measurements.latency.measure import (
    Latency,
    LatencyPoint,
    LatencyRequest,
    add_latency,
    measure_latency,
    points_of,
)
from lossratio.measurements.measure import measure
from lossratio.measurements.reconfiguration import Reconfiguration, measure_reconfiguration_loss
from lossratio.measurements.telemetry import TelemetryRequest, measure_telemetry
from lossratio.measurements.throughput.goals import NdrPdrGoals
from lossratio.measurements.throughput.limits import LATE_LIMIT
from lossratio.mlrsearch import NDR, PDR
from lossratio.report import render
from lossratio.report.comparison import compare, comparison_table
from lossratio.report.history import History, TrendRequest, add_runs, analyse, trend_cases, trend_page, trend_text
from lossratio.report.run import read_run
from lossratio.results.findings import findings_of, message
from lossratio.results.kinds import built_in_kinds, kind_of
from lossratio.results.note import NoteKind
from lossratio.results.trials import trials_in_words
from lossratio.traffic import load_profile
from lossratio.values.exit_status import FailureKind, kind_of_error

CONNECTIONS = load_profile("ethip4-udp-connections", frame_size=100)
ASKED = {
    "throughput": 2e5,
    "timeout": 60.0,
    "load": 1e5,
    "loss_ratio": 1e-4,
    "repeats": 3,
    "reset": lambda: None,
    "hitless": True,
    "lead": 1.0,
    "limit": 1.0,
    "points": (LatencyPoint(3e5), LatencyPoint(1e5)),
    "reconfigure": lambda: None,
    "connections": 5000,
    "most": 20_000,
}
"""What is asked for, where a kind of measurement has such a field; the rest are defaults."""
OTHERWISE = {"frame_loss": {"trial_duration": 5.0}, "back_to_back": {"throughput": 3e5}, "recovery": {"duration": 10.0}}
GOALS = {
    "NDR and PDR": (NDR, PDR),
    "quick": NdrPdrGoals.quick.value,
    **{
        f"goals {width:.0%} wide": tuple(replace(goal, width=width) for goal in (NDR, PDR))
        for width in (0.01, 0.02, 0.05)
    },
}
"""Goals of searches for throughput, with fine grids of loads and with coarse ones."""
THEN = "quick, with latency and telemetry"
"""A quick search, and the trials after it."""
KINDS = [*(kind.name for kind in built_in_kinds() if kind.name != "throughput"), "NDR and PDR", THEN]
WIDER = [goals for goals in GOALS if goals not in (*KINDS, "quick")]
"""Goals with which each injector is tried once, as they differ only in their grids of loads."""
CASES = [(kind, injector) for injector in INJECTORS for kind in KINDS]
CASES += [(WIDER[number % len(WIDER)], injector) for number, injector in enumerate(INJECTORS)]


def request_for(kind, goals):
    """The request of a kind of measurement for the perfect testbed."""
    fields = kind.request.model_fields
    opens = issubclass(kind.request, OpeningRequest)
    asked = {name: value for name, value in ASKED.items() if name in fields}
    if opens:
        asked |= {"profile": CONNECTIONS, "max_load": 20_000.0}
        asked.pop("load", None)
    else:
        asked["profile"] = PROFILE
    if goals is not None:
        asked["goals"] = goals
    return kind.request(**{**asked, **OTHERWISE.get(kind.name, {})})


def perform(name, testbed, where, show):
    """Measures, by the way that the kind has, and shows the progress."""
    if name == THEN:
        search_and_ask(testbed, where, show)
        return
    kind = kind_of("throughput" if name in GOALS else name)
    request = request_for(kind, GOALS.get(name))
    if isinstance(kind, Latency):
        measure_latency(testbed, request, where, show)
    elif isinstance(kind, Reconfiguration):
        measure_reconfiguration_loss(testbed, request, where, show)
    else:
        if issubclass(kind.request, OpeningRequest):
            testbed.keep_connections()
        measure(kind, testbed, request, where, show)


def search_and_ask(testbed, where, show):
    """Searches, and measures latency and telemetry at what the search found, if it found anything."""
    kind = kind_of("throughput")
    result = measure(kind, testbed, request_for(kind, GOALS["quick"]), where, show)
    report = result.goal_to_follow(None)
    bound, _ = report.bounds
    if bound is None:
        return
    latency = LatencyRequest(profile=PROFILE, points=points_of(result))
    result = add_latency(testbed, latency, where, result, show)
    load = bound.per_interface_fps
    telemetry = TelemetryRequest(profile=PROFILE, load=load, goal=report.goal.name)
    trial = measure_telemetry(testbed, telemetry)
    where.directory.write(result.model_copy(update={"telemetry": (trial,)}))


GOOD_NIGHTS, BAD_NIGHTS = 5, 3
"""Nights of a trend, and the last ones, in which the tester is spoilt."""
LATE = (held_up, held_up_a_little, held_up_for_long)
ABOUT_THE_TESTER = {
    NoteKind.UNSENT,
    NoteKind.FULL_RINGS,
    NoteKind.GENERATOR_DROPS,
    NoteKind.GENERATOR_STALLS,
    NoteKind.LATE_FRAMES,
}
FORMATS = ("html", "md", "junit", "csv", "openmetrics")
TRUE = (
    r"the SUT may forward more",
    r"the SUT did not lose them",
    r"not the SUT's",
    r"never reached the SUT",
    r"too little evidence about the SUT",
    r"(shows?|says?|prove) nothing about the (SUT|device)",
    r"it is not known whether the SUT remembers a loss",
    r"trials are too few to show how often the SUT loses more",
    r"it is not known when the SUT recovered",
    r"no evidence about the SUT",
    r"frames that the device did not lose are missing",
    # The names of things, and what RFC 2544 asks for.
    r"wait for the DUT to restabili[sz]e",
    r"software reset of the devices",
    r"SUT configuration",
    r'^lossratio_\w+\{device="',
    r'^<property name="device" value="',
    r"^\W*DUT\d*(\.port\d)?\W*$",
    r"A SUT that forwards every frame",
)
"""Sentences that name the SUT and are true of one that loses nothing."""
NAMED = re.compile(r"\b(SUTs?|DUT\d*s?|devices?)\b")


def sentences(text):
    return [part.strip() for part in re.split(r"\n|(?<=[.:;])\s+", text)]


UNEXPLAINED = re.compile(
    r"\bloss (?:at least )?(?!0 %)[\d.e-]+ %"
    r"|(?:% of the|\d|:) (?:frames|connections)(?: sent)? are lost\b(?! at a time)"
    r"|\bframes are lost for\b"
)
CAUSE = re.compile(r"unsent|late|dropped by the generator|set aside")


def without_cause(text):
    """The lines of a text that say how much was lost, and do not say that the SUT did not lose it."""
    return [line for line in text.splitlines() if UNEXPLAINED.search(line) and not CAUSE.search(line)]


def check_losses(run, texts):
    """Checks that each loss that is told or drawn has a cause that is not the SUT."""
    trials = [trial for result in run.results for trial in result.trials]
    told = {name: texts[name] for name in texts if name.startswith("message")}
    told["trials"] = "\n".join(trials_in_words(result.trials) for result in run.results)
    told["hints"] = "\n".join(map(trial_hint, trials))
    assert {name: said for name, text in told.items() if (said := without_cause(text))} == {}
    assert {mark for _, mark in LOSSY}.isdisjoint(map(mark_of, trials))


def visible(page):
    without_code = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "\n", without_code))


def blaming(text):
    """The sentences of a text that name the SUT and are not known to be true."""
    named = filter(NAMED.search, sentences(text))
    return [sentence for sentence in named if not any(re.search(known, sentence) for known in TRUE)]


def measured(kind, directory, injector, seed=1):
    """The failure of a measurement, if it fails, its run, if it leaves one, and what its console shows."""
    failure = None
    shown = StringIO()
    console = OneLine(shown, columns=lambda: 250, clock=lambda: 0.0)

    def show(progress):
        console.show(progress)
        shown.write(f"{progress.line()}\n")

    try:
        perform(kind, PerfectTestbed(directory, injector, seed), place(directory / "run"), show)
    except LossRatioError as error:
        failure = error
    return failure, read_run(directory / "run"), shown.getvalue()


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """Gives the run of a kind of measurement whose tester does all that it should."""
    runs = {}

    def run_of(kind):
        if kind not in runs:
            directory = tmp_path_factory.mktemp("clean")
            failure, runs[kind], _ = measured(kind, directory, None)
            assert failure is None
        return runs[kind]

    return run_of


@pytest.fixture(scope="module")
def good_nights(tmp_path_factory):
    """Gives the directories of some nights of a kind of measurement whose tester does all that it should."""
    nights = {}

    def of_kind(kind):
        if kind not in nights:
            nights[kind] = [tmp_path_factory.mktemp("night") for _ in range(GOOD_NIGHTS)]
            for night, directory in enumerate(nights[kind]):
                measured(kind, directory, None, seed=night)
        return nights[kind]

    return of_kind


def texts_of(run, before):
    """All that is said about a run: by itself, compared with the run before, and as the newest of several nights."""
    texts = {f"message {number}": message(result) for number, result in enumerate(run.results)}
    texts["doubts"] = "\n".join(str(doubt) for doubts in run.doubts for doubt in doubts)
    for report_format in FORMATS:
        report = render(report_format, [run])
        texts[report_format] = visible(report) if report_format == "html" else report
    compared = compare([before], [run])
    texts["compare"] = comparison_table(compared)
    return texts, compared


@pytest.mark.whole
@pytest.mark.parametrize(("kind", "injector"), CASES, ids=lambda part: getattr(part, "__name__", None))
def test_a_perfect_sut_is_not_blamed_for_what_its_tester_did(tmp_path, clean, kind, injector):
    failure, run, console = measured(kind, tmp_path, injector)
    assert blaming(console) == []
    if failure is not None and injector in LATE:
        # Late frames count as lost (RFC 2544, section 23), whoever held them: a search may find no load.
        assert not isinstance(failure, DutError)
        assert blaming(str(failure)) == []
    elif failure is not None:
        assert isinstance(failure, TrafficError)
        assert kind_of_error(failure, FailureKind.TEST) is FailureKind.INFRASTRUCTURE
        assert blaming(str(failure)) == []
    if not run.results:
        # Nothing was measured, and the error is all that is said.
        assert failure is not None
        return
    assert [doubt for doubts in run.doubts for doubt in doubts if doubt.kind not in ABOUT_THE_TESTER] == []
    texts, compared = texts_of(run, clean(kind))
    assert {name: said for name, text in texts.items() if (said := blaming(text))} == {}
    assert (*compared.worse, *compared.broken) == ()
    if kind != "latency":
        check_losses(run, texts)


@pytest.mark.whole
def test_late_frames_after_a_search_are_in_the_records_of_their_trials(tmp_path):
    _, run, console = measured(THEN, tmp_path, held_up_for_long)
    (result,) = run.results
    (doubts,) = run.doubts
    late = [at_load.late_frames for at_load in result.latency] + [trial.late_frames for trial in result.telemetry]
    assert any(late)
    assert re.search(r"of the frames are missing \([\d,]+ late\)", " ".join(console.split()))
    assert "after the search, they came back" in "\n".join(str(doubt) for doubt in doubts)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("kind", "injector"),
    zip(cycle(("mrr", "quick", "quick", "mrr")), INJECTORS),
    ids=lambda part: getattr(part, "__name__", None),
)
def test_a_perfect_sut_is_not_blamed_by_the_trend_of_several_nights(tmp_path, good_nights, kind, injector):
    bad_nights = [tmp_path / f"bad-{night}" for night in range(BAD_NIGHTS)]
    for night, directory in enumerate(bad_nights):
        directory.mkdir()
        measured(kind, directory, injector, seed=night)
    history = History(tmp_path / "history")
    nights = [directory / "run" for directory in (*good_nights(kind), *bad_nights)]
    texts = {"nights": "\n".join(add_runs(history, nights))}
    analysis = analyse(history, TrendRequest(readings=True))
    texts["trend"] = trend_text(analysis)
    texts["page"] = visible(trend_page(analysis, "lab"))
    texts["cases"] = "\n".join(f"{case.message}\n{case.output}" for case in trend_cases(analysis))
    good, bad = ([read_run(night) for night in some] for some in (nights[:GOOD_NIGHTS], nights[GOOD_NIGHTS:]))
    texts["compare"] = comparison_table(compare(good, bad))
    texts["compare the other way round"] = comparison_table(compare(bad, good))
    assert {name: said for name, text in texts.items() if (said := blaming(text))} == {}
    assert analysis.alarms == ()
    first_lines = {texts[name].splitlines()[0] for name in ("trend", "compare", "compare the other way round")}
    assert [line for line in first_lines if re.search(r"worse|better|any more", line)] == []


def test_drops_of_the_generator_are_no_loss_beside_a_reset(tmp_path):
    _, run, _ = measured("reset", tmp_path, drops_always)
    assert NoteKind.LOSS_BESIDE_RESET not in [doubt.kind for doubts in run.doubts for doubt in doubts]


def test_a_test_without_a_value_because_of_its_tester_is_no_regression(tmp_path, clean):
    _, run, _ = measured("recovery", tmp_path, drops_only_one_way)
    (finding,) = findings_of(run.results)
    assert finding.value is None
    recovered = compare([clean("recovery")], [run])
    assert (*recovered.worse, *recovered.broken) == ()


def test_a_sut_whose_last_frames_were_late_is_not_said_to_have_lost_them(tmp_path):
    _, run, _ = measured("recovery", tmp_path, held_up)
    (finding,) = findings_of(run.results)
    assert "frames were only late, not lost, so it is not known when the SUT recovered" in finding.reason


def test_frames_that_the_generator_dropped_are_named_where_a_maximum_receive_rate_has_a_loss(tmp_path):
    _, run, _ = measured("mrr", tmp_path, drops_always)
    (result,) = run.results
    dropped = sum(trial.missing.generator_drops for trial in result.trials)
    said = f"of {dropped:,} missing frames: {dropped:,} frames dropped by the generator"
    assert f"loss                    1 % of the frames sent; {said}" in message(result)


def test_a_sentence_about_the_sut_is_found():
    assert blaming("2 trials of 3. It forwards less: the SUT gets slower\n") == ["the SUT gets slower"]


def test_a_loss_without_a_cause_is_found():
    said = "trial 1: loss 0 %\ntrial 2: loss 3.1 %, rule: look\ntrial 3: loss 2 %, 5 frames unsent"
    assert without_cause(said) == ["trial 2: loss 3.1 %, rule: look"]


def held_up_at_high_loads(moment, counters):
    """Of loads above 200,000 frames/s, 3 % of the frames come back too late."""
    if moment.trial.load <= 2e5:
        return counters
    late = round(0.03 * counters.sent_frames)
    moment.late += late
    return replace(counters, received_frames=counters.sent_frames - late)


@pytest.mark.whole
def test_late_frames_bound_no_throughput(tmp_path):
    _, run, console = measured("quick", tmp_path, held_up_at_high_loads)
    for finding in findings_of(run.results):
        assert finding.reason == LATE_LIMIT
        assert finding.is_at_limit
        assert 0.9 * 2e5 < finding.lower_bound.per_interface_fps <= 2e5 < finding.upper_bound.per_interface_fps
    assert LATE_LIMIT in message(run.results[0])
    assert blaming(console) == []
