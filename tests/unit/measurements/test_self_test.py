"""The self-test of the tester: what it finds over a cable, and what becomes of it."""

import os

import pytest
from local_testbeds import LOCAL, needs_testbed, own_state
from measurement_examples import PROFILE, ROOT, SIMULATED, place, policed

from lossratio.commands.main import main
from lossratio.errors import TopologyError
from lossratio.measurements.self_test import SelfTestRequest, find_tester_limit
from lossratio.mlrsearch import SearchGoal
from lossratio.results.conditions import LoadOrigin
from lossratio.testbed.loads import load_limits, load_range
from lossratio.testbed.opening import open_testbed

CABLE = ROOT / "topologies" / "local-cable.yaml"
BRIEF = SearchGoal(0.0, 0.0, 0.1, 0.2, 0.1, 0.1, name="tester")


@pytest.fixture(scope="module")
def state_home():
    with own_state():
        yield


@pytest.mark.parametrize(("asked", "remarked"), [(None, []), (500e3, ["the maximum load (500.00 kfps) is above what"])])
def test_the_rate_in_the_topology_file_is_the_maximum_load_and_a_larger_one_is_remarked(asked, remarked):
    with open_testbed(SIMULATED) as testbed:
        loads = load_range(load_limits(testbed, PROFILE), min_load=None, max_load=asked)
    if asked is None:
        assert (loads.max_load, loads.origin) == (400e3, LoadOrigin.GENERATOR)
    assert [note.text[: len(remarked[0])] for note in loads.remarks] == remarked


def test_a_simulated_tester_is_not_tested(tmp_path):
    with pytest.raises(TopologyError, match="a simulated tester needs no self-test"):
        find_tester_limit(policed(police="10 kfps"), SelfTestRequest(profile=PROFILE), place(tmp_path))


def test_results_have_no_place_in_a_file(lossratio, tmp_path):
    (tmp_path / "file").touch()
    expected = "Error: file: Not a directory. Choose another directory: --output DIR.\n"
    assert lossratio("lab", "self-test", "local-cable", "--output", "file") == (2, "", expected)


def test_with_a_device_in_between_the_command_touches_nothing(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["lossratio", "lab", "self-test", str(LOCAL)])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "local.yaml: DUT1 is between the TG's ports" in capsys.readouterr().err


@pytest.mark.netns
@needs_testbed
@pytest.mark.usefixtures("state_home")
class TestOnARealTestbed:
    def test_over_a_cable_it_finds_a_limit(self, tmp_path):
        file = tmp_path / "cable.yaml"
        file.write_text(CABLE.read_text().replace("name: local-cable", f"name: cable-{os.getpid()}"))
        testbed = open_testbed(file)
        try:
            request = SelfTestRequest(profile=PROFILE, max_load=2000.0, goals=[BRIEF])
            test = find_tester_limit(testbed, request, place(tmp_path))
        finally:
            testbed.close()
        assert 0 < test.max_load <= 2000.0
        assert "the tester sends and receives all of " in str(test)
