"""A test has one series, whatever earlier versions called it."""

import pytest
from click.testing import CliRunner
from history_examples import entry, nightly

from lossratio.commands.trend import ack, trend
from lossratio.history.store import History

pytestmark = pytest.mark.whole

NOW = "Tests.Core.Ip4.64B-ndrpdr"
EARLIER = ("Ip4.64B-ndrpdr", "Core.Ip4.64B-ndrpdr", "Ip4 & Ip6.Ip4.64B-ndrpdr", "Night.Ip4.64B-ndrpdr")
LONG = "Ip4 & Ip6 & Nat.Ip4.64B-ndrpdr"


def forty_nights(path, value=lambda night: 100e3 + night % 3, change=20):
    """Nights of an earlier version, called in four ways, and from the night of the change on those of this one."""
    history = History(path)
    for night in range(40):
        named = {"test": EARLIER[night % 4]} if night < change else {"test": NOW, "long_name": LONG}
        history.add([nightly(night, value(night), **named)])
    return str(path)


def said(*arguments, command=trend):
    return CliRunner().invoke(command, [*map(str, arguments)])


def test_forty_nights_with_renames_are_one_series(tmp_path):
    answer = said(forty_nights(tmp_path))
    assert answer.exit_code == 0, answer.output
    assert "1 series of 40 results: 1 steady" in answer.output


def test_a_fall_in_the_night_of_the_change_is_one_alarm_and_its_acknowledgement_is_kept(tmp_path):
    history = forty_nights(tmp_path, lambda night: 100e3 + night % 3 if night < 36 else 80e3 + night % 3, change=36)
    answer = said(history)
    assert answer.exit_code == 3
    assert answer.output.count("regression: ") == 1
    assert said(history, "a new compiler", "--by=ann", command=ack).exit_code == 0
    assert said(history).exit_code == 0


def test_an_acknowledgement_of_an_earlier_name_holds_for_the_name_now(tmp_path):
    history = forty_nights(tmp_path, lambda night: 100e3 + night % 3 if night < 34 else 80e3 + night % 3, change=36)
    assert said(history).exit_code == 3
    note = {"date": "2026-02-04", "note": "a new compiler", "test": EARLIER[34 % 4]}
    (tmp_path / "annotations.yaml").write_text(f"changes:\n  - {note}\n")
    assert said(history).exit_code == 0


def test_a_name_that_may_mean_two_tests_is_said_once_and_joined_by_a_line(tmp_path):
    history = History(tmp_path)
    for night in range(30):
        if night < 15:
            history.add([nightly(night, 100e3, test="Ip4.64B-ndrpdr")])
        else:
            both = ((NOW, 100e3), ("Tests.Edge.Ip4.64B-ndrpdr", 50e3))
            history.add([nightly(night, value, test=test, long_name=LONG) for test, value in both])
    answer = said(tmp_path)
    assert "3 series of 45 results" in answer.output
    assert answer.output.count("Ip4.64B-ndrpdr may be Tests.") == 1
    (tmp_path / "annotations.yaml").write_text(f"same:\n  - [Ip4.64B-ndrpdr, {NOW}]\n")
    answer = said(tmp_path)
    assert "2 series of 45 results" in answer.output
    assert "may be" not in answer.output


@pytest.mark.parametrize("other", ["Ip6.64B-ndrpdr", "Ip4.IMIX-ndrpdr", "MyIp4.64B-ndrpdr"])
def test_other_tests_stay_other_tests(tmp_path, other):
    history = History(tmp_path)
    for night in range(10):
        history.add([entry(night, 100e3, test=other), nightly(night, 100e3, test=NOW, long_name=LONG)])
    assert "2 series of 20 results" in said(tmp_path).output
