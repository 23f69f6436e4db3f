"""Sessions on the nodes of a testbed over SSH: commands, files, and long-lived processes that speak in lines."""

from lossratio.ssh.connection import Credentials
from lossratio.ssh.process import NodeProcess
from lossratio.ssh.session import CommandResult, NodeSession

__all__ = ["CommandResult", "Credentials", "NodeProcess", "NodeSession"]
