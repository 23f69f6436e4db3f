"""A perfect SUT behind a tester that fails in many ways: no sentence, doubt or status blames the SUT."""

from __future__ import annotations

import html
import re
from dataclasses import replace

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

from lossratio.errors import DutError, LossRatioError, TrafficError
from lossratio.exit_status import FailureKind, kind_of_error
from lossratio.measurements.connections import OpeningRequest
from lossratio.measurements.latency.measure import Latency, LatencyPoint, measure_latency
from lossratio.measurements.measure import measure
from lossratio.measurements.reconfiguration import Reconfiguration, measure_reconfiguration_loss
from lossratio.measurements.throughput.goals import NdrPdrGoals
from lossratio.mlrsearch import NDR, PDR
from lossratio.report import render
from lossratio.report.comparison import compare, comparison_table
from lossratio.report.run import read_run
from lossratio.results.doubts import DoubtKind
from lossratio.results.findings import findings_of, message
from lossratio.results.kinds import built_in_kinds, kind_of
from lossratio.traffic import load_profile

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
KINDS = [*(kind.name for kind in built_in_kinds() if kind.name != "throughput"), *GOALS]


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


def perform(name, testbed, where):
    """Measures, by the way that the kind has."""
    kind = kind_of("throughput" if name in GOALS else name)
    request = request_for(kind, GOALS.get(name))
    if isinstance(kind, Latency):
        return measure_latency(testbed, request, where)
    if isinstance(kind, Reconfiguration):
        return measure_reconfiguration_loss(testbed, request, where)
    if issubclass(kind.request, OpeningRequest):
        testbed.keep_connections()
    return measure(kind, testbed, request, where)


LATE = (held_up, held_up_a_little, held_up_for_long)
ABOUT_THE_TESTER = {
    DoubtKind.UNSENT,
    DoubtKind.FULL_RINGS,
    DoubtKind.GENERATOR_DROPS,
    DoubtKind.GENERATOR_STALLS,
    DoubtKind.LATE_FRAMES,
}
FORMATS = ("html", "md", "junit", "csv", "openmetrics")
TRUE = (
    r"the SUT may forward more",
    r"the SUT did not lose them",
    r"not the SUT's",
    r"not the device",
    r"never reached the SUT",
    r"too little evidence about the SUT",
    r"shows? nothing about the SUT",
    r"no trial after a long rest asked whether the SUT remembers a loss",
    r"whether the SUT remembers a loss is not known",
    r"trials are too few to show how often the SUT loses more",
    r"nobody knows when the SUT recovered",
    r"no evidence about the SUT",
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


def visible(page):
    without_code = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "\n", without_code))


def blaming(text):
    """The sentences of a text that name the SUT and are not known to be true."""
    named = filter(NAMED.search, sentences(text))
    return [sentence for sentence in named if not any(re.search(known, sentence) for known in TRUE)]


def measured(kind, directory, injector):
    """The failure of a measurement, if it fails, and its run, if it leaves one."""
    failure = None
    try:
        perform(kind, PerfectTestbed(directory, injector), place(directory / "run"))
    except LossRatioError as error:
        failure = error
    return failure, read_run(directory / "run")


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """Gives the run of a kind of measurement whose tester does all that it should."""
    runs = {}

    def run_of(kind):
        if kind not in runs:
            directory = tmp_path_factory.mktemp("clean")
            failure, runs[kind] = measured(kind, directory, None)
            assert failure is None
        return runs[kind]

    return run_of


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


@pytest.mark.rotated
@pytest.mark.long
@pytest.mark.parametrize("injector", INJECTORS, ids=lambda injector: injector.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_a_perfect_sut_is_not_blamed_for_what_its_tester_did(tmp_path, clean, kind, injector):
    failure, run = measured(kind, tmp_path, injector)
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
    assert compared.regressions == ()


def test_drops_of_the_generator_are_no_loss_beside_a_reset(tmp_path):
    _, run = measured("reset", tmp_path, drops_always)
    assert DoubtKind.LOSS_BESIDE_RESET not in [doubt.kind for doubts in run.doubts for doubt in doubts]


def test_a_test_without_a_value_because_of_its_tester_is_no_regression(tmp_path, clean):
    _, run = measured("recovery", tmp_path, drops_only_one_way)
    (finding,) = findings_of(run.results)
    assert finding.value is None
    assert compare([clean("recovery")], [run]).regressions == ()


def test_a_sentence_about_the_sut_is_found():
    assert blaming("2 trials of 3. It forwards less: the SUT gets slower\n") == ["the SUT gets slower"]
