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
from lossratio.testbed.loads import SelfTestRecord, TesterLimit, load_limits, load_range, read_record
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile

CABLE = ROOT / "topologies" / "local-cable.yaml"
BRIEF = SearchGoal(0.0, 0.0, 0.1, 0.2, 0.1, 0.1, name="tester")


def limit(max_load=123e3, frame_size=64, bidirectional=True, links=1):
    return TesterLimit(
        frame_size=frame_size,
        bidirectional=bidirectional,
        links=links,
        max_load=max_load,
        profile="ethip4-udp",
        measured="2026-08-01T12:00:00+00:00",
    )


def simulated(directory, *limits, generator="simulated"):
    """A simulated testbed whose tester was tested."""
    for limit in limits:
        limit.write(directory / "self-test.yaml", generator)
    text = SIMULATED.read_text().replace("max_rate: 400 kfps", "max_rate: 400 kfps, self_test: self-test.yaml")
    (directory / "topology.yaml").write_text(text)
    return open_testbed(directory / "topology.yaml")


@pytest.fixture(scope="module")
def state_home():
    with own_state():
        yield


def test_a_record_has_one_limit_for_the_same_frames(tmp_path):
    file = tmp_path / "new" / "self-test.yaml"
    again = (limit(2.5e3, "imix_V4_1"), limit(3e3, "IMIX_v4_1"))
    for one_limit in (limit(1e3), limit(2e3, bidirectional=False), *again, limit(4e3)):
        one_limit.write(file, "afpacket")
    record = read_record(file)
    assert [limit.max_load for limit in record.limits] == [2e3, 3e3, 4e3]
    assert record.limit_for(PROFILE, 1).max_load == 4e3
    assert record.limit_for(load_profile("ethip4-ip4base", frame_size=64), 1).max_load == 4e3
    assert record.limit_for(load_profile("ethip4-udp", frame_size="imix_v4_1"), 1).max_load == 3e3
    assert record.limit_for(load_profile("ethip4-udp", frame_size=64, bidirectional=False), 1).max_load == 2e3
    assert record.limit_for(load_profile("ethip4-udp", frame_size=1518), 1) is None
    assert SelfTestRecord.model_validate(record.model_dump()) == record


def test_a_limit_of_one_link_is_none_of_two():
    record = SelfTestRecord(generator="afpacket", limits=(limit(4e3), limit(1e3, links=2)))
    assert [record.limit_for(PROFILE, links).max_load for links in (1, 2)] == [4e3, 1e3]


def test_a_record_is_of_one_generator(tmp_path):
    file = tmp_path / "self-test.yaml"
    limit().write(file, "trex")
    with pytest.raises(TopologyError, match="is about the generator trex, but this one is afpacket"):
        limit().write(file, "afpacket")


def test_the_limit_is_the_maximum_load_where_none_is_given(tmp_path):
    testbed = simulated(tmp_path, limit())
    loads = load_range(load_limits(testbed, PROFILE), min_load=None, max_load=None)
    assert (loads.max_load, loads.origin) == (123e3, LoadOrigin.GENERATOR)
    assert loads.remarks == ()


def test_a_larger_maximum_load_is_remarked(tmp_path):
    loads = load_range(load_limits(simulated(tmp_path, limit()), PROFILE), min_load=None, max_load=200e3)
    (remark,) = (note.text for note in loads.remarks)
    assert "the maximum load (200.00 kfps) is above what the generator can send" in remark
    assert "self-test" in remark


def test_a_limit_with_other_frames_changes_nothing(tmp_path):
    limits = load_limits(simulated(tmp_path, limit(frame_size=1518)), PROFILE)
    assert [limit.load for limit in limits if limit.origin is LoadOrigin.GENERATOR] == [400e3]


def test_the_record_of_another_generator_is_refused(tmp_path):
    with pytest.raises(TopologyError, match=r"the generator is simulated, but its self_test, .*, is about afpacket"):
        load_limits(simulated(tmp_path, limit(), generator="afpacket"), PROFILE)


def test_a_record_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(TopologyError, match=r"Cannot read .*self-test.yaml"):
        load_limits(simulated(tmp_path), PROFILE)


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
    def test_over_a_cable_it_finds_and_records_a_limit(self, tmp_path):
        file = tmp_path / "cable.yaml"
        file.write_text(CABLE.read_text().replace("name: local-cable", f"name: cable-{os.getpid()}"))
        testbed = open_testbed(file)
        record = tmp_path / "self-test.yaml"
        try:
            request = SelfTestRequest(profile=PROFILE, max_load=2000.0, record=record, goals=[BRIEF])
            test = find_tester_limit(testbed, request, place(tmp_path))
        finally:
            testbed.close()
        assert 0 < test.limit.max_load <= 2000.0
        assert read_record(record).limits == (test.limit,)
        assert "the tester sends and receives all of " in str(test)
