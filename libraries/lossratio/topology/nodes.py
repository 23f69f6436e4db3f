"""The nodes of a testbed: how to reach them, and their interfaces."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue, model_validator

from lossratio.topology.generators import Generator
from lossratio.topology.quantities import (
    BitRate,
    DriverName,
    Duration,
    FileModel,
    HostName,
    InterfaceName,
    Label,
    UserName,
)


class NodeType(str, Enum):
    """What a node is there for."""

    TG = "TG"
    DUT = "DUT"


class Interface(FileModel):
    """A node's interface that test traffic goes through."""

    link: Label | None = None
    """Name of the link it is on; the interface with the same link is the other end. Without one it is not used."""
    name: InterfaceName | None = None
    """Name of the Linux interface."""
    mac_address: str | None = Field(default=None, pattern="^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$")
    """MAC address; where missing, the node is asked for it."""
    pci_address: str | None = Field(default=None, pattern=r"^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$")
    """PCI address, for devices and generators that take the interface from the kernel."""
    model: Label | None = None
    """NIC model, e.g. ``Intel-E810CQ``."""
    driver: DriverName | None = None
    """Driver that the device or generator expects."""
    speed: BitRate | None = None
    """Speed of the link, bits per second in each direction."""
    other: dict[str, JsonValue] = Field(default_factory=dict)
    """What else is known about it; it is carried along into results."""


class Node(FileModel):
    """A machine (or namespace) of the testbed, and how to reach it by SSH."""

    type: NodeType
    """TG (traffic generator) or DUT (device under test)."""
    host: HostName | None = None
    """Host name or address of its sshd."""
    port: int = Field(default=22, ge=1, le=65535)
    """TCP port of its sshd."""
    username: UserName | None = None
    """User to log in as; where missing, the user who runs the suite."""
    key_file: Path | None = None
    """Private key to log in with; where missing, the SSH agent and the user's default keys are tried."""
    sudo: bool = False
    """Whether commands need ``sudo -n`` in front of them there."""
    host_key: str | None = None
    """The node's public host key, as a line ``ssh-ed25519 AAAA...``."""
    known_hosts: Path | None = None
    """File with the node's host key, where it is not in the user's known_hosts."""
    connect_timeout: Duration = 10.0
    """Seconds that a log-in may take."""
    arch: Label | None = None
    """Architecture of its CPUs, e.g. ``x86_64``."""
    model: Label | None = None
    """Model of the machine."""
    uio_driver: DriverName | None = None
    """Driver that PCI devices are bound to for a DUT that takes them from the kernel, e.g. ``vfio-pci``."""
    generator: Generator | None = None
    """The traffic generator, on a TG."""
    sut: dict[str, Any] | None = None
    """The model of the SUT (``model: ...`` and its parameters), on a DUT of a simulated testbed."""
    interfaces: dict[Label, Interface] = Field(min_length=1)
    """Interfaces by port name."""
    other: dict[str, JsonValue] = Field(default_factory=dict)
    """What else is known about it; it is carried along into results."""

    @model_validator(mode="before")
    @classmethod
    def _no_passwords(cls, data: Any) -> Any:
        for field in ("password", "passphrase"):
            if isinstance(data, dict) and field in data:
                raise ValueError(
                    f"has a {field}, which does not belong into a file; "
                    "use a key, or the environment variable LOSSRATIO_PASSWORD"
                )
        return data
