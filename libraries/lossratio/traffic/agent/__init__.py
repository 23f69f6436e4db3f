# SPDX-License-Identifier: Apache-2.0
"""The traffic agent: the program that runs on the TG node.

It needs nothing there but Python 3.8 or later (and what its generators need: numpy for `afpacket`). The controller's
side sends this package there as `lossratio_agent`, so it imports nothing of ours from outside the package. Programs of
added generators import the names below from it.
"""

from .core.configuration import Configuration, Direction
from .core.generator import Generator
from .core.protocol import AgentError, Message

__all__ = ["AgentError", "Configuration", "Direction", "Generator", "Message"]
