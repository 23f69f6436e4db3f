"""Records of a tester's self-tests: a file that topology files name in the field ``self_test`` of the generator."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import yaml

from lossratio.errors import TopologyError
from lossratio.testbed.testbed import TestbedRequest
from lossratio.topology import FileModel, FrameRate, Topology
from lossratio.traffic import TrafficProfile
from lossratio.yaml_file import load_yaml_file

FORMAT: Literal["lossratio-self-test/1"] = "lossratio-self-test/1"
"""Format of the records that this version writes."""


class TesterLimit(FileModel):
    """The largest load at which a tester sent and received all frames."""

    __test__ = False

    frame_size: int | str
    """Frame size in bytes, or the name of a mix of sizes."""
    bidirectional: bool
    """Whether both ports transmitted."""
    max_load: FrameRate
    """The load of each transmitting interface, in frames per second."""
    links: int = 1
    """Number of parallel links in the self-test."""
    profile: str
    """The traffic profile of the self-test."""
    measured: str
    """Time of the self-test, RFC 3339."""

    @property
    def key(self) -> tuple[str, bool, int]:
        """The values that identify a limit: a later limit with the same key replaces this one."""
        return str(self.frame_size), self.bidirectional, self.links

    def is_for(self, profile: TrafficProfile, links: int) -> bool:
        """Whether its self-test had the same frame sizes, and as many directions and links."""
        same_size = str(self.frame_size).casefold() == str(profile.frame_size).casefold()
        return same_size and self.bidirectional == profile.bidirectional and self.links == links


class SelfTestRecord(FileModel):
    """The limits of one tester, by frame size, number of directions and number of links."""

    format: Literal["lossratio-self-test/1"] = FORMAT
    """Format of the file."""
    generator: str
    """Kind of the generator."""
    limits: tuple[TesterLimit, ...] = ()
    """The limits."""

    def limit_for(self, profile: TrafficProfile, links: int) -> TesterLimit | None:
        """The limit for such frames over this number of links; None: there is none."""
        return next((limit for limit in self.limits if limit.is_for(profile, links)), None)

    def with_limit(self, limit: TesterLimit) -> SelfTestRecord:
        """The record with one more limit, which replaces an earlier limit with the same key."""
        others = [other for other in self.limits if other.key != limit.key]
        return self.model_copy(update={"limits": (*others, limit)})


def read_record(file: Path) -> SelfTestRecord:
    """Reads a record.

    Raises:
        TopologyError: If the file is no record.
    """
    return load_yaml_file(file, SelfTestRecord, TopologyError)


def write_limit(file: Path, generator: str, limit: TesterLimit) -> None:
    """Writes a limit into a record. A record that does not exist is made.

    Raises:
        TopologyError: If the file is no record, is the record of another generator, or cannot be written.
    """
    record = read_record(file) if file.exists() else SelfTestRecord(generator=generator)
    if record.generator != generator:
        raise TopologyError(
            f"{file} is about the generator {record.generator}, and this one is {generator}. Name another file."
        )
    data = record.with_limit(limit).model_dump(mode="json")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    except OSError as error:
        raise TopologyError(f"Cannot write {file}: {error.strerror}.") from error


def recorded_limit(request: TestbedRequest, profile: TrafficProfile) -> TesterLimit | None:
    """The limit that the self-test of a testbed's tester found with such frames; None: there is no such limit.

    Raises:
        TopologyError: If the topology names a file that is no record, or the record of another generator.
    """
    record = own_record(request.topology, request.file)
    return None if record is None else record.limit_for(profile, request.links)


def own_record(topology: Topology, topology_file: Path) -> SelfTestRecord | None:
    """The record that a topology file names for its generator; None: it names none.

    Raises:
        TopologyError: If it names a file that is no record, or the record of another generator.
    """
    generator = topology.nodes[topology.tg_name].generator
    if generator is None or generator.self_test is None:
        return None
    file = topology_file.parent / generator.self_test
    record = read_record(file)
    if record.generator != generator.kind:
        raise TopologyError(
            f"{topology_file}: the generator is {generator.kind}, and its self_test, {file}, is about "
            f"{record.generator}. Test this one: lossratio self-test."
        )
    return record
