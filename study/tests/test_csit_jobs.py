from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from robot.api import TestSuite as Suite

from lossratio.errors import JobError
from lossratio.files.shipped import SUITES
from lossratio_study import csit_coverage as coverages, csit_suites
from lossratio_study.csit_coverage import CoverageVerdict, csit_coverage, csit_coverage_command

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


SUITE = """*** Settings ***
| Force Tags | 2_NODE_SINGLE_LINK_TOPO | PERFTEST | NDRPDR | NIC_Intel-X710 | {tags}
| ... | {name}

*** Variables ***
| ${{nic_pfs}}= | 2
| ${{overhead}}= | ${{{overhead}}}
| ${{n_routes}}= | ${{254}}
| ${{traffic_profile}}= | trex-stl-{profile}

*** Keywords ***
| Local Template
| | Given Set Max Rate And Jumbo
| | And {keyword}
| | Then Find NDR and PDR intervals using optimized search

*** Test Cases ***
| 64B-1c-{name}-ndrpdr
| | frame_size=${{64}} | phy_cores=${{1}}
"""
BRIDGE = {
    "name": "eth-l2bdbasemaclrn",
    "tags": "BASE | ETH | L2BDMACLRN | L2BDBASE",
    "profile": "ethip4-ip4src${n_routes}",
    "keyword": "Initialize L2 bridge domain",
}
ROUTER = {
    "name": "ethip6-ip6base",
    "tags": "BASE | ETH | IP6FWD | IP6BASE",
    "profile": "ethip6-ip6src253",
    "keyword": "Initialize IPv6 Forwarding | count=${n_routes}",
}


@pytest.fixture
def specifications(tmp_path: Path) -> Path:
    files = tmp_path / "resources" / "job_specifications"
    files.mkdir(parents=True)
    for name, text in {"jobs": JOBS, "test_groups": GROUPS, "ts_2n-one": TESTBED}.items():
        (files / f"{name}.yaml").write_text(text)
    return files


@pytest.fixture
def clone(specifications: Path) -> Path:
    root = specifications.parents[1]
    for suite in (BRIDGE, ROUTER):
        write_suite(root, **suite)
    return root


def write_suite(root: Path, *, prefix: str = "2n1l-", dut: str = "vpp", **words: str) -> None:
    path = root / "tests" / dut / "perf" / f"{prefix}10ge2p1x710-{words['name']}-ndrpdr.robot"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SUITE.format(**{"overhead": 0, **words}))


def verdicts(coverage) -> dict[str, CoverageVerdict]:
    (tests,) = coverage.jobs.values()
    return {f"{test.suite}.{test.frame_size}-{test.cores}": judged.verdict for test, judged in tests.items()}


def differences(clone: Path, suite: str) -> dict[str, tuple[str, str]]:
    (tests,) = _covered(clone, WEEKLY).jobs.values()
    (found,) = {
        tuple(judged.differences.items()) for test, judged in tests.items() if test.suite == suite and test.cores == "1"
    }
    return dict(found)


def _covered(specifications: Path, pattern: str = "*", suites: tuple[str, ...] = ("vpp_l2bd", "vpp_ip6")):
    return csit_coverage(specifications, tuple(SUITES.path(name) for name in suites), pattern)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b"traffic_profile", b"profile", r"does not set the variable 'traffic_profile', as suites of CSIT do"),
        (b"${overhead}=", b"${over}=", r"does not set the variable 'overhead'"),
        (b"${nic_pfs}= | 2", b"${nic_pfs}= | two", r"the variable 'nic_pfs' must be a whole number, not 'two'"),
        (b"64B", b"\xff4B", r"is not a suite of Robot Framework: byte \d+ is not valid UTF-8"),
    ],
)
def test_a_damaged_suite_of_csit_is_named(clone, old, new, problem):
    (file,) = clone.glob("tests/vpp/perf/*l2bd*.robot")
    file.write_bytes(file.read_bytes().replace(old, new))
    with pytest.raises(JobError, match=problem) as told:
        _covered(clone, WEEKLY)
    assert str(file) in str(told.value)


def test_a_job_has_each_suite_on_each_driver_in_each_size_with_each_number_of_cores(specifications):
    coverage = _covered(specifications)
    assert {job: len(tests) for job, tests in coverage.jobs.items()} == {
        "csit-vpp-perf-ndrpdr-weekly-master-2n-one": 2 * 2 * 3 + 6,
        "csit-vpp-perf-soak-2602-2n-one": 2,
        "csit-vpp-perf-soak-2606-2n-one": 2,
    }


def test_a_job_that_a_change_to_vpp_starts_tests_vpp(specifications):
    (specifications / "jobs.yaml").write_text(JOBS.replace("csit-vpp-perf-ndrpdr-weekly", "vpp-csit-verify-perf"))
    (tests,) = _covered(specifications, "vpp-csit-*").jobs.values()
    assert {test.dut for test in tests} == {"vpp"}


def test_the_innermost_sizes_cores_and_cards_count(specifications):
    (tests,) = _covered(specifications, WEEKLY).jobs.values()
    ip6 = {test.id for test in tests if test.suite == "ethip6-ip6base"}
    assert ip6 == {
        f"200ge2p1cx7veat-mlx5-ethip6-ip6base-ndrpdr.{point}-mlx5-ethip6-ip6base-ndrpdr"
        for point in ("78b-1c", "78b-2c", "78b-4c", "1518b-1c", "1518b-2c", "imix-8c")
    }


def test_a_suite_is_ours_with_its_type_of_test(specifications):
    coverage = _covered(specifications)
    ours = {
        (test.suite, test.test_type)
        for tests in coverage.jobs.values()
        for test, judged in tests.items()
        if judged.verdict is not CoverageVerdict.MISSING
    }
    assert ours == {("eth-l2bdbasemaclrn", "ndrpdr"), ("eth-l2bdbasemaclrn", "soak"), ("ethip6-ip6base", "ndrpdr")}


def test_a_suite_of_this_name_for_another_kind_of_dut_is_not_ours(specifications, tmp_path):
    text = SUITES.path("vpp_ip6").read_text()
    assert text.count("    vpp    ") == 1
    suite = tmp_path / "ovs_ip6.robot"
    suite.write_text(text.replace("    vpp    ", "    ovs    "))
    coverage = csit_coverage(specifications, (suite,), "*")
    assert {judged.verdict for tests in coverage.jobs.values() for judged in tests.values()} == {
        CoverageVerdict.MISSING
    }


@pytest.mark.whole
def test_a_test_with_the_same_frames_setup_and_tags_is_the_same(clone):
    same = {name for name, verdict in verdicts(_covered(clone, WEEKLY)).items() if verdict is CoverageVerdict.SAME}
    assert same == {
        *(f"eth-l2bdbasemaclrn.64-{cores}" for cores in (1, 2, 4)),
        *(f"ethip6-ip6base.78-{cores}" for cores in (1, 2, 4)),
        *(f"ethip6-ip6base.1518-{cores}" for cores in (1, 2)),
    }


def test_a_number_of_cores_that_no_suite_has_is_a_difference(clone):
    coverage = _covered(clone, WEEKLY)
    (tests,) = coverage.jobs.values()
    (judged,) = (judged for test, judged in tests.items() if test.cores == "8")
    assert (judged.verdict, judged.differences) == (CoverageVerdict.NAME_ONLY, {"cores": ("8", "no")})


@pytest.mark.whole
@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"keyword": "Initialize L2 cross connect"}, {"forwarding": ("l2xc", "l2bd")}),
        (
            {"keyword": BRIDGE["keyword"] + "\n| | And Drop every second frame"},
            {"keyword Drop every second frame": ("unknown", "no")},
        ),
        ({"profile": "ethip4-ip4src7"}, {"frames": ("IPv4 61: 7 src", "IPv4 61: 254 src")}),
        ({"profile": "eth-new"}, {"frames": ("trex-stl-eth-new", "IPv4 61: 254 src")}),
        ({"tags": "BASE | ETH | L2BDMACLRN | L2BDBASE | DOCKER"}, {"tags": ("docker", "no")}),
        ({"overhead": "50"}, {"overhead": ("50", "0")}),
    ],
)
def test_what_differs_is_named_with_both_values(clone, change, difference):
    write_suite(clone, **{**BRIDGE, **change})
    assert differences(clone, "eth-l2bdbasemaclrn") == difference


def bridge_of_vlans(clone, overhead: str):
    """A suite of CSIT whose profile leaves four bytes free with each frame here."""
    name = "dot1q-l2bdbasemaclrn"
    groups = clone / "resources" / "job_specifications" / "test_groups.yaml"
    groups.write_text(groups.read_text().replace("eth-nobody-has-this", name))
    tagged = {
        "keyword": "Initialize L2 bridge domain\n| | And Initialize layer dot1q",
        "profile": "dot1qip4-vlan1ip4src254ip4dst254",
        "overhead": overhead,
    }
    write_suite(clone, **{**BRIDGE, **tagged, "name": name, "tags": "DOT1Q | BASE"})


def judged_of(coverage):
    (tests,) = coverage.jobs.values()
    judged = [judged for test, judged in tests.items() if test.suite == "dot1q-l2bdbasemaclrn"]
    verdicts = {one.verdict for one in judged}
    return verdicts, {frozenset(one.differences) for one in judged}


@pytest.mark.parametrize(
    ("overhead", "verdict", "different"),
    [("4", CoverageVerdict.SAME, set()), ("8", CoverageVerdict.NAME_ONLY, {"overhead"})],
)
def test_what_a_profile_leaves_free_with_each_frame_is_overhead_in_csit(clone, overhead, verdict, different):
    bridge_of_vlans(clone, overhead)
    assert judged_of(_covered(clone, WEEKLY, ("vpp_l2bd_dot1q",))) == ({verdict}, {frozenset(different)})


def test_a_difference_that_a_suite_declares_is_no_name_only(clone, tmp_path):
    bridge_of_vlans(clone, "8")
    text = SUITES.path("vpp_l2bd_dot1q").read_text()
    declares = tmp_path / "vpp_l2bd_dot1q.robot"
    declares.write_text(text.replace("Metadata ", "Metadata    Differs From CSIT    overhead\nMetadata ", 1))
    coverage = csit_coverage(clone, (declares,), WEEKLY)
    assert judged_of(coverage) == ({CoverageVerdict.DIFFERS}, {frozenset({"overhead"})})


@pytest.mark.whole
@pytest.mark.parametrize("dut", ["calicovpp", "zvpp"])
def test_a_suite_of_that_name_for_another_kind_of_dut_changes_nothing(clone, dut):
    write_suite(clone, dut=dut, **{**BRIDGE, "keyword": "Initialize L2 cross connect"})
    assert differences(clone, "eth-l2bdbasemaclrn") == {}


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_suites_with_a_name_the_one_for_so_many_nodes_counts(clone, first):
    name = "dot1q-l2bdbasemaclrn"
    for path in (clone / "resources" / "job_specifications").glob("*.yaml"):
        path.write_text(path.read_text().replace("2n-one", "3n-one").replace("eth-nobody-has-this", name))
    between = "Initialize L2 bridge domains with VLAN dot1q sub-interfaces in circular topology"
    three = {"keyword": between, "overhead": "4", "name": name, "tags": "DOT1Q | BASE", "prefix": ""}
    write_suite(clone, **{**BRIDGE, **three})
    suites = ("vpp_l2bd_dot1q", "vpp_l2bd_dot1q_between")
    coverage = _covered(clone, WEEKLY.replace("2n", "3n"), suites if first == 0 else suites[::-1])
    assert {verdicts(coverage)[f"{name}.64-{cores}"] for cores in (1, 2, 4)} == {CoverageVerdict.SAME}


@pytest.mark.whole
def test_a_suite_for_one_device_differs_from_one_for_two(clone):
    three = clone / "resources" / "job_specifications"
    for path in three.glob("*.yaml"):
        path.write_text(path.read_text().replace("2n-one", "3n-one"))
    write_suite(clone, prefix="", **BRIDGE)
    coverage = csit_coverage(clone, (SUITES.path("vpp_l2bd"),), WEEKLY.replace("2n", "3n"))
    assert CoverageVerdict.SAME in verdicts(coverage).values()


@pytest.mark.whole
def test_every_declared_difference_is_about_something(tmp_path):
    # What a suite declares is an aspect that the table of set-ups, or the comparison itself, can name.
    words = yaml.safe_load((Path(csit_suites.__file__).parent / "csit_setups.yaml").read_text())
    aspects = {aspect for table in ("keywords", "options") for said in words[table].values() for aspect in said}
    declared = {
        part.strip()
        for name in SUITES.names()
        for part in Suite.from_file_system(SUITES.path(name)).metadata.get("Differs From CSIT", "").split(",")
    }
    assert declared - {""} <= {*aspects, "frames", "ports", "nodes", "overhead", "frame size", "cores"}
    assert {"frames", "routes", "overhead"} <= declared


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


@pytest.mark.whole
def test_the_command_prints_jobs_and_what_differs_or_the_ids_of_the_tests(clone, monkeypatch):
    # Both times the same comparison.
    monkeypatch.setattr(coverages, "csit_coverage", cache(csit_coverage))
    result = CliRunner().invoke(csit_coverage_command, [str(clone), "--job", WEEKLY])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].split() == ["Job", "Tests", "same", "differs", "name", "only", "not", "here"]
    assert lines[1].split() == [WEEKLY, "18", "11", "0", "1", "6"]
    assert lines[3] == "The same test: 11 of 18, 61.1 %."
    assert [line.split(maxsplit=1) for line in lines[-2:]] == [
        ["6", "eth-nobody-has-this-ndrpdr: not here"],
        ["1", "ethip6-ip6base-ndrpdr: cores: 8 / no"],
    ]
    ids = CliRunner().invoke(csit_coverage_command, [str(clone), "--job", WEEKLY, "--ids"]).output.splitlines()
    assert Counter(line[0] for line in ids) == {"=": 11, "?": 1, "-": 6}
    assert f"- {WEEKLY} 100ge2p1e810cq-eth-nobody-has-this-ndrpdr.64b-1c-eth-nobody-has-this-ndrpdr" in ids


@pytest.mark.whole
def test_without_the_suites_the_command_says_that_names_were_compared(specifications):
    output = CliRunner().invoke(csit_coverage_command, [str(specifications), "--job", WEEKLY]).output
    assert "same" not in output.splitlines()[0]
    assert "Only names were compared: name a clone of CSIT's repository" in output
    assert output.splitlines()[1].split() == [WEEKLY, "18", "12", "6"]
