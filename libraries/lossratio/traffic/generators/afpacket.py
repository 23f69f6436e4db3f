"""The embedded generator on the controller's side: its program is a part of the agent."""

from collections.abc import Iterator, Mapping
from typing import Any

from lossratio.nodes import NodeSession
from lossratio.topology import AfPacketGenerator
from lossratio.traffic.generators.base import Generator

_VERSIONS = "import sys, numpy; print('.'.join(map(str, sys.version_info[:3])), numpy.__version__)"


class AfPacket(Generator[AfPacketGenerator]):
    """Plain Linux packet sockets."""

    settings_type = AfPacketGenerator
    ends_trials_early = True
    follows_growth = True

    @classmethod
    def needs(cls, settings: AfPacketGenerator, session: NodeSession) -> Iterator[str]:
        """Python with numpy."""
        result = session.run(settings.python, "-c", _VERSIONS, check=False)
        if result.exit_status != 0:
            last = (result.stderr.strip().splitlines() or [f"exit status {result.exit_status}"])[-1]
            yield f"{settings.python} with numpy is missing (Debian package python3-numpy): {last}"

    def ready(self) -> Mapping[str, Any]:
        """See `Generator.ready`; nothing is started for it."""
        options = {"catch_up": self.settings.catch_up, "device_cpus": self.node.device_cpus or None}
        return {name: value for name, value in options.items() if value is not None}
