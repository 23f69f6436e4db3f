"""A parameter of a kind is declared once, in its request; everything else follows."""

from __future__ import annotations

import re
import runpy
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import pytest
from measurement_examples import PROFILE, place, policed
from pydantic import Field
from robot import running
from robot.libdocpkg.robotbuilder import KeywordDocBuilder

from lossratio.errors import SearchError
from lossratio.keywords import measurement_keyword
from lossratio.measurements import Request, WarmUp, measure, open_testbed
from lossratio.measurements.confirmation import ConfirmationRequest
from lossratio.measurements.mrr import MaximumReceiveRate, MrrRequest
from lossratio.measurements.open_testbed import measured_kinds
from lossratio.measurements.soak import SoakRequest
from lossratio.measurements.throughput import SearchRequest
from lossratio.plrsearch import LikelihoodName
from lossratio.results.kinds import built_in_kinds
from lossratio.trials import Integrity, read_journal
from lossratio.values.quantities import Duration
from lossratio.values.records import docstrings_of_fields

ROOT = Path(__file__).parents[3]


class PausingRequest(MrrRequest):
    """Measures the maximum receive rate with a pause, and returns the result."""

    pause: Annotated[Duration, Field(gt=0.0, le=10.0)] = 0.5
    """Seconds without traffic after each trial (an example)."""


class Pausing(MaximumReceiveRate):
    request = PausingRequest


def test_a_new_parameter_is_declared_in_one_place(tmp_path):
    request = PausingRequest(profile=PROFILE, pause="2 s", trials=1)
    assert request.pause == 2.0
    # Files: the unit is at the end of the name.
    assert request.settings.pause_s == 2.0
    others = MrrRequest(profile=PROFILE, trials=1).inputs()["settings"]
    assert request.inputs()["settings"] == {**others, "pause_s": 2.0}
    # The check.
    with pytest.raises(
        SearchError,
        match=r"pause must be above 0 s and at most 10 s, not 11 s\. The documentation of 'pause' says: Seconds",
    ):
        request.but(pause=11.0)
    # The keyword: type, default, documentation.
    keyword = measurement_keyword("Measure With Pauses", Pausing)
    assert keyword.robot_types["pause"] is timedelta
    assert "| ``pause`` | Seconds without traffic after each trial (an example). |" in keyword.__doc__
    library = running.TestLibrary.from_class(type("Library", (), {"measure": keyword}))
    (described,) = KeywordDocBuilder().build_keywords(library)
    assert str(described.args).endswith("pause: timedelta = 0:00:00.500000, bidirectional: bool = None")
    # The journal.
    with policed(police="50 kfps") as testbed:
        where = place(tmp_path)
        measure(Pausing(), testbed, request, where)
    journal = read_journal(where.directory.journal_path(where.test.full_name))
    assert journal.search["settings"]["pause_s"] == 2.0


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"trials": True}, "trials must be a whole number, not True"),
        ({"trials": 2.0}, "trials must be a whole number, not 2"),
        ({"trial_duration": "soon"}, "trial_duration: .*'soon' is not a positive duration|trial_duration: .*soon"),
        ({"max_load": "fast"}, "max_load: .*'fast' is not a frame rate"),
        ({"max_load": float("nan")}, "max_load: nan is not a frame rate"),
        ({"trails": 3}, "MrrRequest has no 'trails'; it has profile, max_load"),
        ({"rest": -1.0}, "rest must be at least 0 s and at most 1 h, not -1 s"),
    ],
)
def test_a_value_that_makes_no_sense_is_one_sentence_with_its_field(change, problem):
    with pytest.raises(SearchError, match=problem):
        MrrRequest(profile=PROFILE, **change)


def test_a_missing_field_is_named_with_its_description():
    about = "The documentation of 'load' says: The load per interface that is confirmed."
    with pytest.raises(SearchError, match=rf"^load is missing\. {re.escape(about)}$"):
        ConfirmationRequest(profile=PROFILE)


@pytest.mark.parametrize(
    ("request_class", "name"),
    [
        (kind.request, name)
        for kind in built_in_kinds()
        for name in ("trial_duration", "duration", "limit", "lead", "settle", "ramp", "rest")
        if name in kind.request.model_fields
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_no_trial_is_longer_than_a_week_and_no_wait_before_it_longer_than_an_hour(request_class, name):
    hour_or_week = "7 days" if name in {"trial_duration", "duration", "limit"} else "1 h"
    with pytest.raises(SearchError, match=rf"\b{name} must be .* and at most {hour_or_week}, not 604,801 s"):
        request_class(**{name: 604_801.0})


def test_no_warm_up_is_longer_than_a_week():
    with pytest.raises(SearchError, match="warm_up_duration must be above 0 s and at most 7 days, not 8 days"):
        SearchRequest(profile=PROFILE, warm_up_duration=8 * 86_400.0)
    with pytest.raises(SearchError, match="warm_up must be above 0 s and at most 7 days, not 604,801 s"):
        WarmUp(duration=604_801.0, profile=PROFILE)


def test_all_wrong_fields_are_named_at_once():
    wrong = r"trial_duration must be above 0 s and at most 7 days, not 0 s\..*trials must be at least 1"
    with pytest.raises(SearchError, match=wrong):
        MrrRequest(profile=PROFILE, trials=0, trial_duration=0.0)


def test_every_field_of_a_request_says_what_it_is():
    requests = {kind.request for kind in built_in_kinds() if hasattr(kind, "request")}
    assert len(requests) >= 7
    for request in {Request, *requests}:
        described = docstrings_of_fields(request)
        assert request.model_fields.keys() <= described.keys()
        # Errors quote these words to users, who do not read the library.
        assert not [name for name in request.model_fields if "`lossratio." in described[name]], request


def test_a_wrong_value_is_answered_with_what_the_field_is_described_as():
    class Described(MrrRequest):
        rounds: int = Field(default=1, ge=1, description="How often all trials are repeated.")

    about = "The documentation of 'rounds' says: How often all trials are repeated."
    with pytest.raises(SearchError, match=rf"rounds must be at least 1, not 0\. {re.escape(about)}"):
        Described(profile=PROFILE, rounds=0)


def test_the_page_for_scripts_has_a_row_for_each_kind():
    written = runpy.run_path(str(ROOT / "docs" / "kinds.py"))
    page = written["PAGE"].read_text()
    assert page == written["page"](page), "run docs/kinds.py"
    assert [kind.name for kind in built_in_kinds() if f"| `{kind.method}` |" not in page] == []


def test_every_kind_has_a_method_of_an_open_testbed():
    kinds = built_in_kinds()
    assert len(kinds) >= 14
    assert [kind.name for kind in kinds if kind.method not in measured_kinds()] == []


def test_the_stub_for_editors_is_that_of_the_requests(tmp_path):
    written = runpy.run_path(str(ROOT / "docs" / "stub.py"))["stub"]()
    assert Path(open_testbed.__file__).with_suffix(".pyi").read_text() == written, "run docs/stub.py"


def test_a_member_of_an_enumeration_is_also_read_from_its_value():
    request = SoakRequest(profile=PROFILE, integrity="off", likelihood="poisson")
    assert request.integrity is Integrity.OFF
    assert request.likelihood is LikelihoodName.POISSON
