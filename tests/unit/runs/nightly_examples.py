"""Suites, topologies and jobs that the tests of nightlies share."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]
SIMULATED = ROOT / "topologies" / "simulated.yaml"
SUITE = """*** Settings ***
Metadata         Frame Sizes    64B 1518B
Resource         lossratio/resources/performance.resource
Suite Setup      Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge    police=50 kfps
Suite Teardown   Tear Down Testbed
Test Tags        ${FRAME_SIZE}    ${CORES}c

*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-ndrpdr
    [Tags]    ndrpdr
    Find NDR And PDR    ${FRAME_SIZE}
${FRAME_SIZE}-${CORES}c-eth-mrr
    [Tags]    mrr
    Measure MRR    ${FRAME_SIZE}    trials=4    trial_duration=500 ms
${FRAME_SIZE}-${CORES}c-eth-soak
    [Tags]    soak
    Find Critical Load    ${FRAME_SIZE}    timeout=10 min
"""


def write_job(directory: Path, tests: str, *, names: tuple[str, ...] = ("one",), more: str = "") -> Path:
    """Writes a job file with simulated testbeds of these names, and a suite, into a directory."""
    (directory / "bridge.robot").write_text(SUITE)
    for name in names:
        text = SIMULATED.read_text().replace("name: simulated", f"name: {name}")
        (directory / f"{name}.yaml").write_text(text)
    topologies = ", ".join(f"{name}.yaml" for name in names)
    job = directory / "nightly.yaml"
    job.write_text(f"format: lossratio-job/1\nname: nightly\ntopologies: [{topologies}]\n{more}tests:\n{tests}")
    return job
