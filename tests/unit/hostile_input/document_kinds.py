"""Every kind of file that lossratio reads: a valid document of each, how it is read, and how it is used afterwards."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lossratio.errors import ReservationError
from lossratio.measurements.throughput.goals import GoalSet, load_goals
from lossratio.mlrsearch import MLRsearch
from lossratio.report import render
from lossratio.report.history.annotations import KnownChanges, load_known_changes
from lossratio.report.history.series import SeriesKey
from lossratio.report.run import Run, read_run
from lossratio.results.findings import message
from lossratio.runs.builds import BuildRecord
from lossratio.runs.job import load_job
from lossratio.runs.record import read_record
from lossratio.testbed.reservation.keeper.record import RecordError, described, parsed
from lossratio.topology import Topology, load_topology
from lossratio.topology.model import draw_topology
from lossratio.traffic import TrafficProfile, load_profile
from lossratio.traffic.configuration import PortPair, TrafficPort, make_configuration
from lossratio.trials.digest import add_digest


@dataclass(frozen=True)
class Kind:
    """A kind of file."""

    name: str
    """What it is called, with the ending of its files."""
    text: str
    """A valid document."""
    read: Callable[[Path], Any]
    """Reads a file of this kind."""
    work: Callable[[Any], object] = lambda content: None
    """Does with what was read what is done with it before any machine is touched."""
    seal: Callable[[bytes], bytes] = lambda document: document
    """Makes digests fit what is in a document, so that readers look at all of it."""

    def use(self, path: Path) -> None:
        """Reads a file, and works with what is in it."""
        self.work(self.read(path))


TOPOLOGY = """\
format: lossratio-topology/1
name: lab7
testbed: lab
nics: {Intel-E810CQ: {max_frame_rate: 50 Mpps, max_bit_rate: 90 Gbps}}
reservation: {name: testbed, lease: 1 min, directory: /var/tmp/lossratio}
nodes:
  TG:
    type: TG
    host: 192.0.2.1
    port: 22
    username: tester
    key_file: ~/.ssh/id_ed25519
    sudo: true
    connect_timeout: 10 s
    generator: {kind: trex, directory: /opt/trex, max_rate: 10 Mpps, cores: [{threads: [2, 3]}],
                master_core: 0, latency_core: 1, arguments: [--mbuf-factor, "2"]}
    interfaces:
      port0: &port {name: eth1, link: left, speed: 10 Gbps, mac_address: "02:00:00:00:00:01", model: Intel-E810CQ}
      port1: {<<: *port, name: eth2, link: right}
  DUT1:
    type: DUT
    host: "2001:db8::2"
    uio_driver: vfio-pci
    interfaces:
      east: {pci_address: "0000:3b:00.0", link: right, driver: vfio-pci, other: {slot: 3}}
      west: {name: eth1, link: left}
"""

CSIT_TOPOLOGY = """\
metadata: {version: 0.1, tags: [hw, 3-node]}
nodes:
  TG:
    type: TG
    subtype: TREX
    host: 192.0.2.1
    arch: x86_64
    port: 22
    username: testuser
    password: not-a-secret
    interfaces:
      port0: {mac_address: "02:00:00:00:00:01", pci_address: "0000:18:00.0", link: link1, driver: i40e}
      port1: {mac_address: "02:00:00:00:00:02", pci_address: "0000:18:00.1", link: link2, driver: i40e}
      port2: {mac_address: "02:00:00:00:00:03", pci_address: "0000:18:00.2", link: nowhere, driver: i40e}
  DUT1:
    type: DUT
    host: 192.0.2.2
    uio_driver: vfio-pci
    honeycomb: {user: admin, passwd: admin, port: 8183}
    interfaces:
      port1: {mac_address: "02:00:00:00:01:01", pci_address: "0000:18:00.0", link: link1, model: Intel-X710}
      port2: {mac_address: "02:00:00:00:01:02", pci_address: "0000:18:00.1", link: link2, model: Intel-X710}
"""

PROFILE = """\
format: lossratio-traffic-profile/1
name: mine
load_share: 1.0
ipv4: {source: {first: 1}, destination: {first: 1}, ttl: 64}
dot1q: {id: 10, priority: 3}
vxlan:
  vni: 7
  source_port: {first: 49152, count: 16}
  inner:
    ipv6: {source: {first: 1, count: 10}, destination: {first: 1, count: 254, order: random}, hop_limit: 9}
    udp: {}
reverse: {load_share: 0.5, frame_size: mixed, headers: {ipv4: {}, tcp: {source_port: {first: 1, count: 3}}}}
mixes: {mixed: {300: 3, 1518: 1}}
seed: 5
"""

GOALS = """\
format: lossratio-goals/1
goals:
  strict: {loss_ratio: 0.001 %, exceed_ratio: 0, final_trial_duration: 1 s, duration_sum: 21 s, width: 0.5 %,
           initial_trial_duration: 500 ms}
  half: {loss_ratio: 0.5}
"""

JOB = """\
format: lossratio-job/1
name: nightly
topologies: [lab.yaml]
tests: [{suites: [suite.robot], include: [ndrpdr], frame_sizes: [64B, IMIX], cores: [1, 2], testbeds: [lab7]}]
variables: {GOALS: quick}
"""

ANNOTATIONS = """\
changes:
  - {date: 2026-08-01, note: New kernel, testbed: "lab*", test: "*", quantity: NDR}
  - {date: 2026-08-02T00:00:00Z, note: New cards}
"""


def _read_job(path: Path) -> Any:
    # Beside a device, these files would be in /dev.
    if os.path.isfile(path):
        (path.parent / "lab.yaml").write_text(TOPOLOGY)
        (path.parent / "suite.robot").touch()
    return load_job(path)


def _work_with_topology(topology: Topology) -> None:
    draw_topology(topology, topology.paths(1))
    json.dumps(topology.model_dump(mode="json"), allow_nan=False).encode()


def _work_with_profile(profile: TrafficProfile) -> None:
    pairs = [PortPair(TrafficPort("port0", "tg0"), TrafficPort("port1", "tg1"))]
    json.dumps(asdict(make_configuration(profile, pairs, settle_time=0.0)), allow_nan=False).encode()
    json.dumps(profile.description_in_full(), allow_nan=False).encode()


def _work_with_goals(goals: GoalSet) -> None:
    MLRsearch(goals.goals, 1000.0, 1e6).next_trial()


def _work_with_changes(changes: KnownChanges) -> None:
    day = datetime(2026, 8, 1, tzinfo=timezone.utc)
    for change in changes.followed:
        change.explains(SeriesKey("lab7", "test", "NDR"), day, day)


def yaml_kinds() -> tuple[Kind, ...]:
    """The kinds of files that people write."""
    return (
        Kind("topology.yaml", TOPOLOGY, load_topology, _work_with_topology),
        Kind("csit-topology.yaml", CSIT_TOPOLOGY, load_topology, _work_with_topology),
        Kind("profile.yaml", PROFILE, lambda path: load_profile(path, frame_size=570), _work_with_profile),
        Kind("goals.yaml", GOALS, load_goals, _work_with_goals),
        Kind("job.yaml", JOB, _read_job),
        Kind("annotations.yaml", ANNOTATIONS, load_known_changes, _work_with_changes),
    )


JOURNAL = """\
{"format": "lossratio-journal/6", "created": "2026-08-01T12:00:00.000Z", "search": {"max_load": 5, "goals": []}}
{"input": {"duration": 1.0, "load": 1000.0}, "output": {"loss_ratio": 0.0}, "time": "2026-08-01T12:00:01.000Z"}
{"input": {"duration": 1.0, "load": 2000.0}, "output": {"loss_ratio": 0.5, "effective_duration": 1.0, "elapsed": 1.5, \
"sent_frames": 4000, "lost_frames": 2000, "unsent_frames": 0, "repeats": 1, "repairs": ["x"], "directions": [\
{"name": "a>b", "intended_frames": 2000, "sent_frames": 2000, "received_frames": 1000, \
"unsent_frames": 0, "elapsed_s": 1.0, "lateness_s": 0.1}]}, \
"purpose": "half of it"}
{"verification": {"time": "2026-08-01T12:00:03.000Z"}}
"""

RUN = """\
{"version": "0.1.0", "topology_file": "/lab.yaml", "topology": {"name": "lab7"}, "suites": ["/suite"], "job": null, \
"sources": {"/suite": "00"}, "include": ["64b"], "robot_options": ["--name", "x"], "kernels": {"TG": "6.1"}}
"""

RESERVATION = """\
{"granted": 5, "lease": {"version": 3, "ticket": 5, "token": "0123456789abcdef", "owner": "alice@ci3", \
"process": 4711, "purpose": "nightly", "started": "2026-03-01T22:00:04Z", "expires": 160.5}}
"""

BUILDS = """\
{"format": "lossratio-builds/3", "asked": {"tests": ["x"]}}
{"build": "A", "directory": "001-A", "measured": {"values": {"x NDR": [1000.0, 1000.0, 0.0]}}}
{"build": "B", "directory": "002-B", "measured": null}
"""


def _in_directory(path: Path, name: str) -> Path:
    directory = path.with_suffix("")
    directory.mkdir(exist_ok=True)
    (directory / name).write_bytes(path.read_bytes())
    return directory


def _read_builds(path: Path) -> BuildRecord:
    return BuildRecord(_in_directory(path, "measurements.jsonl"), {"tests": ["x"]})


def _result() -> str:
    """The result of a search, without its digest."""
    from report_examples import throughput

    return throughput(trials=6).model_dump_json() + "\n"


def _read_reservation(path: Path) -> dict[str, Any]:
    try:
        return parsed(path.read_bytes())
    except RecordError as error:
        raise ReservationError(f"{path}: {error}") from error


def _work_with_reservation(record: dict[str, Any]) -> None:
    json.dumps(described(record["lease"]), allow_nan=False).encode()


def _read_run(folder: str) -> Callable[[Path], Run]:
    def read(path: Path) -> Run:
        directory = _in_directory(path, path.name)
        (directory / folder).mkdir(exist_ok=True)
        (directory / path.name).replace(directory / folder / path.name)
        return read_run(directory)

    return read


def _work_with_run(run: Run) -> None:
    for report_format in ("md", "csv", "json", "html"):
        render(report_format, [run]).encode()
    for result in run.results:
        message(result).encode()


def _chained(document: bytes) -> bytes:
    lines, digest = [], ""
    for line in document.splitlines():
        sealed, digest = add_digest(line, digest)
        lines.append(sealed)
    return b"\n".join([*lines, b""])


def _signed(document: bytes) -> bytes:
    return add_digest(document.rstrip(b"\n"))[0] + b"\n"


def json_kinds() -> tuple[Kind, ...]:
    """The kinds of files that lossratio writes."""
    return (
        Kind("trials.jsonl", JOURNAL, _read_run("trials"), _work_with_run, _chained),
        Kind("result.json", _result(), _read_run("results"), _work_with_run, _signed),
        Kind("run.json", RUN, lambda path: read_record(_in_directory(path, "run.json"))),
        Kind("builds.jsonl", BUILDS, _read_builds),
        Kind("reservation.json", RESERVATION, _read_reservation, _work_with_reservation),
    )


def all_kinds() -> tuple[Kind, ...]:
    """All kinds of files."""
    return (*yaml_kinds(), *json_kinds())
