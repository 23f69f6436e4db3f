from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from lossratio.commands.night import csit_coverage_command
from lossratio.errors import JobError
from lossratio.runs import csit_coverage
from lossratio.shipped import SUITES

JOBS = """
jobs:
  csit-vpp-perf-ndrpdr-weekly-master-{node-arch}:
    test-type: ndrpdr
    framesize: [64, ]
    core: [1, 2, 4]
    node-arch:
      - 2n-one: 2n-one-vpp
      - 2n-asked
  csit-vpp-perf-soak-{stream}-{node-arch}:
    stream: ["2602", "2606"]
    test-type: soak
    framesize: [64, ]
    core: [1, ]
    node-arch:
      - 2n-one: 2n-one-soak
"""
GROUPS = """
test-groups:
  l2-sm:
    - eth-l2bdbasemaclrn
    - eth-nobody-has-this
  ip6-sm:
    - ethip6-ip6base
"""
TESTBED = """
test-sets:
  2n-one-vpp:
    infra:
      100ge2p1e810cq: [avf, vfio-pci]
    tests:
      - l2-sm
      - ip6-sm:
          framesize:
            - 78
            - 1518: [1, 2]
            - imix: [8]
          infra:
            200ge2p1cx7veat: [mlx5_core]
  2n-one-soak:
    infra:
      100ge2p1e810cq: [avf]
    tests: [l2-sm]
"""
WEEKLY = "csit-vpp-perf-ndrpdr-weekly-master-2n-one"


@pytest.fixture
def specifications(tmp_path: Path) -> Path:
    for name, text in {"jobs": JOBS, "test_groups": GROUPS, "ts_2n-one": TESTBED}.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def _covered(specifications: Path, pattern: str = "*", suites: tuple[str, ...] = ("vpp_l2bd", "vpp_ip6")):
    return csit_coverage(specifications, tuple(SUITES.path(name) for name in suites), pattern)


def test_a_job_has_each_suite_on_each_driver_in_each_size_with_each_number_of_cores(specifications):
    coverage = _covered(specifications)
    assert {job: len(tests) for job, tests in coverage.jobs.items()} == {
        "csit-vpp-perf-ndrpdr-weekly-master-2n-one": 2 * 2 * 3 + 6,
        "csit-vpp-perf-soak-2602-2n-one": 2,
        "csit-vpp-perf-soak-2606-2n-one": 2,
    }


def test_the_innermost_sizes_cores_and_cards_count(specifications):
    (tests,) = _covered(specifications, WEEKLY).jobs.values()
    ip6 = {test.id for test in tests if test.suite == "ethip6-ip6base"}
    assert ip6 == {
        f"200ge2p1cx7veat-mlx5-ethip6-ip6base-ndrpdr.{point}-mlx5-ethip6-ip6base-ndrpdr"
        for point in ("78b-1c", "78b-2c", "78b-4c", "1518b-1c", "1518b-2c", "imix-8c")
    }


def test_a_suite_is_ours_with_its_type_of_test_and_its_kind_of_dut(specifications):
    coverage = _covered(specifications)
    ours = {(test.suite, test.test_type) for tests in coverage.jobs.values() for test in tests if coverage.has(test)}
    assert ours == {("eth-l2bdbasemaclrn", "ndrpdr"), ("eth-l2bdbasemaclrn", "soak"), ("ethip6-ip6base", "ndrpdr")}
    bridge = _covered(specifications, suites=("linux_bridge",))
    assert not any(bridge.covered(tests) for tests in bridge.jobs.values())


def test_a_later_group_replaces_what_an_earlier_one_said_of_a_suite_on_a_driver(specifications):
    path = specifications / "ts_2n-one.yaml"
    path.write_text(path.read_text().replace("tests: [l2-sm]", "tests: [l2-sm, l2-sm: {framesize: [imix]}]"))
    (tests,) = _covered(specifications, "csit-vpp-perf-soak-2602-2n-one").jobs.values()
    assert {test.frame_size for test in tests} == {"imix"}


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("ts_2n-one", "- l2-sm", "- l2-mn", r"weekly-master-2n-one needs l2-mn, .* Did you mean 'l2-sm'\?"),
        ("jobs", "2n-one: 2n-one-vpp", "2n-one: 2n-one-vp", "needs 2n-one-vp, which no file describes"),
        ("jobs", "framesize: [64, ]\n    core: [1, 2, 4]", "core: [1, 2, 4]", "group l2-sm has no framesize"),
        ("jobs", "core: [1, 2, 4]", "core: 1", r"jobs\.yaml:\d+: .*core"),
        ("jobs", "jobs:", "job:", "has no job of CSIT"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_what_is_wrong(specifications, file, old, new, message):
    path = specifications / f"{file}.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(JobError, match=message):
        _covered(specifications)


def test_a_pattern_without_a_job_is_an_error_with_the_jobs_there_are(specifications):
    with pytest.raises(JobError, match=r"No job is called .*-daily-"):
        _covered(specifications, "*-daily-*")


@pytest.mark.long
def test_the_command_prints_jobs_and_missing_suites_or_the_ids_of_the_tests(specifications):
    result = CliRunner().invoke(csit_coverage_command, [str(specifications), "--job", WEEKLY])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[1].split() == [WEEKLY, "18", "12", "66.7%"]
    assert result.output.splitlines()[-1].split() == ["6", "vpp", "eth-nobody-has-this-ndrpdr"]
    lines = (
        CliRunner().invoke(csit_coverage_command, [str(specifications), "--job", WEEKLY, "--ids"]).output.splitlines()
    )
    assert len(lines) == 18
    assert sum(line.startswith("+") for line in lines) == 12
    assert f"- {WEEKLY} 100ge2p1e810cq-eth-nobody-has-this-ndrpdr.64b-1c-eth-nobody-has-this-ndrpdr" in lines
