"""Sessions on the nodes of a testbed over SSH: commands, files, and long-lived processes that speak in lines."""

from lossratio.ssh.connection import NO_CREDENTIALS, Credentials
from lossratio.ssh.process import NodeProcess
from lossratio.ssh.pulse import Pulse
from lossratio.ssh.session import CommandResult, NodeSession

__all__ = ["NO_CREDENTIALS", "CommandResult", "Credentials", "NodeProcess", "NodeSession", "Pulse"]
