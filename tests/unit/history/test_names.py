"""A test that was renamed has one series, if the user says so."""

import pytest
from click.testing import CliRunner
from history_examples import nightly

from lossratio.commands.trend import trend
from lossratio.report.history.store import History

pytestmark = pytest.mark.whole

NOW = "Tests.Core.Ip4.64B-ndrpdr"
BEFORE = "Tests.Edge.Ip4.64B-ndrpdr"


def said(path, *, value=lambda night: 100e3, notes=""):
    """A trend of forty nights, of which the first twenty have another name."""
    history = History(path)
    for night in range(40):
        history.add([nightly(night, value(night) + night % 3, test=BEFORE if night < 20 else NOW)])
    (path / "annotations.yaml").write_text(f"same:\n  - [{BEFORE}, {NOW}]\n{notes}")
    return CliRunner().invoke(trend, [str(path)])


def test_forty_nights_with_a_rename_are_one_series(tmp_path):
    answer = said(tmp_path)
    assert answer.exit_code == 0, answer.output
    assert "1 series of 40 results: 1 steady" in answer.output


def test_a_series_that_ends_names_the_one_that_measures_the_same_since(tmp_path):
    history = History(tmp_path)
    names = [BEFORE] * 20 + [NOW] * 20
    history.add([nightly(night, 100e3 + night % 3, test=test, measured_as="ip4") for night, test in enumerate(names)])
    history.add([nightly(night, 100e3 + night % 3, test="Other", measured_as="ip6") for night in range(40)])
    answer = CliRunner().invoke(trend, [str(tmp_path)])
    ends = f"{BEFORE}, NDR, on lab-1: ends on 2026-01-20; {NOW}, which measures the same, begins later."
    assert (answer.output.count(ends), answer.output.count("ends on")) == (1, 1), answer.output


@pytest.mark.parametrize(("notes", "status"), [("", 3), ("a new compiler", 0)])
def test_an_acknowledgement_of_an_earlier_name_holds_for_the_name_now(tmp_path, notes, status):
    changes = f"changes:\n  - {{date: 2026-02-04, note: {notes}, test: {BEFORE}}}\n" if notes else ""
    answer = said(tmp_path, value=lambda night: 100e3 if night < 34 else 80e3, notes=changes)
    assert answer.exit_code == status, answer.output
