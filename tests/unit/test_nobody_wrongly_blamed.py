"""A perfect SUT behind a tester that fails in many ways: no sentence, doubt or status blames the SUT."""

from __future__ import annotations

import html
import re

import pytest
from measurement_examples import PROFILE, place
from perfect_sut import INJECTORS, PerfectTestbed

from lossratio.errors import LossRatioError, TrafficError
from lossratio.exit_status import FailureKind, kind_of_error
from lossratio.measurements.back_to_back import BackToBack
from lossratio.measurements.confirmation import Confirmation
from lossratio.measurements.frame_loss import FrameLossRate
from lossratio.measurements.measure import measure
from lossratio.measurements.mrr import MaximumReceiveRate
from lossratio.measurements.recovery import Recovery
from lossratio.measurements.soak import Soak
from lossratio.measurements.throughput import Throughput
from lossratio.measurements.throughput.goals import NdrPdrGoals
from lossratio.mlrsearch import NDR, PDR
from lossratio.report.listener import ReportFormat, render
from lossratio.report.run import read_run
from lossratio.results.doubts import DoubtKind
from lossratio.results.findings import message
from lossratio.results.kinds import built_in_kinds

KINDS = {
    "NDR and PDR": (Throughput, {"goals": (NDR, PDR)}),
    "quick": (Throughput, {"goals": NdrPdrGoals.quick.value}),
    "MRR": (MaximumReceiveRate, {}),
    "frame loss": (FrameLossRate, {"trial_duration": 5.0}),
    "back-to-back": (BackToBack, {"throughput": 3e5, "repeats": 3}),
    "recovery": (Recovery, {"throughput": 2e5, "duration": 10.0, "repeats": 3}),
    "soak": (Soak, {"timeout": 60.0}),
    "confirmation": (Confirmation, {"load": 1e5, "loss_ratio": 1e-4}),
}
NOT_HERE = {
    "connection_capacity": "opens connections, which this tester does not",
    "connection_mrr": "opens connections, which this tester does not",
    "connection_rate": "opens connections, which this tester does not",
    "connection_soak": "opens connections, which this tester does not",
    "connection_teardown": "opens connections, which this tester does not",
    "latency": "says nothing about losses",
    "reconfiguration": "needs traffic between trials, which no simulated testbed has",
    "reset": "loses frames on purpose: the reset is the SUT's",
}
"""Kinds that cannot be measured on a perfect SUT whose tester fails, and why."""
ABOUT_THE_TESTER = {
    DoubtKind.UNSENT,
    DoubtKind.FULL_RINGS,
    DoubtKind.GENERATOR_DROPS,
    DoubtKind.GENERATOR_STALLS,
    DoubtKind.LATE_FRAMES,
}
FORMATS = (ReportFormat.HTML, ReportFormat.MARKDOWN, ReportFormat.JUNIT, ReportFormat.CSV, ReportFormat.OPENMETRICS)
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
    r"SUT configuration",
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
    cls, asked = KINDS[kind]
    failure = None
    try:
        measure(
            cls(), PerfectTestbed(directory, injector), cls.request(profile=PROFILE, **asked), place(directory / "run")
        )
    except LossRatioError as error:
        failure = error
    return failure, read_run(directory / "run")


@pytest.mark.rotated
@pytest.mark.long
@pytest.mark.parametrize("injector", INJECTORS, ids=lambda injector: injector.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_a_perfect_sut_is_not_blamed_for_what_its_tester_did(tmp_path, kind, injector):
    failure, run = measured(kind, tmp_path, injector)
    if failure is not None:
        assert isinstance(failure, TrafficError)
        assert kind_of_error(failure, FailureKind.TEST) is FailureKind.INFRASTRUCTURE
        assert blaming(str(failure)) == []
    (doubts,) = run.doubts
    assert [doubt for doubt in doubts if doubt.kind not in ABOUT_THE_TESTER] == []
    texts = {"message": message(run.results[0]), "doubts": "\n".join(map(str, doubts))}
    for report_format in FORMATS:
        report = render(report_format, [run])
        texts[report_format.value] = visible(report) if report_format is ReportFormat.HTML else report
    assert {name: said for name, text in texts.items() if (said := blaming(text))} == {}


def test_every_kind_is_here_or_says_why_not():
    here = {kind.name for kind, _ in KINDS.values()}
    assert {kind.name for kind in built_in_kinds()} - here == NOT_HERE.keys()


def test_a_sentence_about_the_sut_is_found():
    assert blaming("2 trials of 3. It forwards less: the SUT gets slower\n") == ["the SUT gets slower"]
