"""The controller's side of generators whose programs are parts of the agent, and the choice between them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lossratio.agent import Configuration, why_not_in_kernel
from lossratio.bpf import LEAST_KERNEL
from lossratio.errors import TrafficError
from lossratio.nodes import NodeSession
from lossratio.topology import AfPacketGenerator, AutoGenerator, Port, XdpGenerator
from lossratio.traffic.client import AgentClient, AgentRefusalError
from lossratio.traffic.generators.base import Generator, SettingsT

IMPOSSIBLE = frozenset({"bpf", "no_xdp", "unsupported"})
"""Kinds of the agent's refusals that mean that a TG cannot send and receive with XDP programs."""
_OF_SENDERS = frozenset({"cpus", "cpus_per_direction", "cpu_share"})
_OPTIONS = _OF_SENDERS | {"catch_up", "device_cpus"}

_PYTHON = "import sys; sys.exit(sys.version_info < (3, 8))"
_NUMPY = "import numpy"
_KERNEL = "import os, sys; sys.exit(tuple(map(int, os.uname().release.split('-')[0].split('.')[:2])) < ({}, {}))"
_RIGHTS = (
    "import os, sys; whole = ['0', '0', '4294967295'];"
    "sys.exit(os.geteuid() != 0 or open('/proc/self/uid_map').read().split() != whole)"
)
_MAY_BE_PADDED = (
    "Frames of this traffic profile come back shorter than the smallest Ethernet frame. Links may pad them, and the "
    "generator xdp does not recognize padded frames"
)


class _OfAgent(Generator[SettingsT]):
    ends_trials_early = True
    sends_streams = True

    @classmethod
    def needs(cls, settings: SettingsT, session: NodeSession) -> Iterator[str]:
        """Python."""
        if session.run(settings.python, "-c", _PYTHON, check=False).exit_status != 0:
            yield f"{settings.python} is not Python 3.8 or later"

    @classmethod
    def choices(
        cls, settings: SettingsT, session: NodeSession, ports: Sequence[Port], cpus: int
    ) -> Iterator[str]:
        """What it does without if this Python has no numpy."""
        # Another status means that there is no Python.
        if session.run(settings.python, "-c", _NUMPY, check=False).exit_status == 1:
            yield (
                f"{settings.python} has no numpy (Debian package python3-numpy): lost frames are not located, and "
                "packet sockets send less, examine no frames, and measure no latency"
            )

    def ready(self) -> Mapping[str, Any]:
        options: dict[str, Any] = {name: value for name, value in self.settings if name in _OPTIONS}
        options["device_cpus"] = (*options.get("device_cpus", ()), *self.node.device_cpus) or None
        return {name: value for name, value in options.items() if value is not None}


class AfPacket(_OfAgent[AfPacketGenerator]):
    """Plain Linux packet sockets."""

    settings_type = AfPacketGenerator
    follows_growth = True


class _InKernel(_OfAgent[SettingsT]):
    locates_running_losses = False

    def _configure_either(
        self, agent: AgentClient, configuration: Configuration, reason: str | None
    ) -> Mapping[str, Any]:
        """The generator inside the kernel; or packet sockets, for a reason, or because the TG cannot have it."""
        options = self.ready()
        if reason is None:
            try:
                facts = agent.configure(configuration, generator="xdp", options=options)
                return {"kind": "xdp", **facts}
            except AgentRefusalError as error:
                if error.kind not in IMPOSSIBLE:
                    raise
                reason = str(error)

        options = {name: value for name, value in options.items() if name not in _OF_SENDERS}
        facts = agent.configure(configuration, generator="afpacket", options=options)
        return {"kind": "afpacket", **facts, "instead_of_xdp_because": reason}


class Xdp(_InKernel[XdpGenerator]):
    """XDP programs that send and receive."""

    settings_type = XdpGenerator

    @classmethod
    def needs(cls, settings: XdpGenerator, session: NodeSession) -> Iterator[str]:
        """Python, Linux 5.18 and root."""
        lacking = list(super().needs(settings, session))
        if lacking:
            yield from lacking
            return
        if (
            session.run(
                settings.python, "-c", _KERNEL.format(*LEAST_KERNEL), check=False
            ).exit_status
            != 0
        ):
            least = ".".join(map(str, LEAST_KERNEL))
            yield f"its kernel is older than Linux {least}, the first that sends live frames: use 'kind: afpacket'"
        if session.run(settings.python, "-c", _RIGHTS, check=False).exit_status != 0:
            yield "XDP programs need root outside of user namespaces (CAP_BPF): use 'sudo: true', or 'kind: afpacket'"

    def configure(self, agent: AgentClient, configuration: Configuration) -> Mapping[str, Any]:
        """See `Generator.configure`. Its programs know the frames that come back by their lengths.

        Connections that it cannot open are opened by packet sockets; ``instead_of_xdp_because`` in the answer says why.

        Raises:
            TrafficError: If links may pad frames on the way, or as for `Generator.configure`.
        """
        if configuration.connects:
            return self._configure_either(agent, configuration, why_not_in_kernel(configuration))
        if any(direction.may_be_padded for direction in configuration.directions):
            raise TrafficError(
                f"{_MAY_BE_PADDED}. Use larger frames, 'kind: afpacket' or 'kind: auto'."
            )
        return super().configure(agent, configuration)


class Auto(_InKernel[AutoGenerator]):
    """XDP programs if possible, otherwise plain Linux packet sockets; the result says which."""

    settings_type = AutoGenerator
    locates_running_losses = follows_growth = True

    def configure(self, agent: AgentClient, configuration: Configuration) -> Mapping[str, Any]:
        """See `Generator.configure`. ``instead_of_xdp_because`` in the answer says why it is the embedded generator."""
        reason = None
        if configuration.connects:
            reason = why_not_in_kernel(configuration)
        elif configuration.watches:
            reason = (
                "frames that arrive inside the kernel have no time stamps, but only these tell when running "
                "traffic loses frames"
            )
        elif any(direction.may_be_padded for direction in configuration.directions):
            reason = _MAY_BE_PADDED
        elif any(direction.growth for direction in configuration.directions):
            reason = "frames that come back longer or shorter are not recognized inside the kernel"
        return self._configure_either(agent, configuration, reason)
