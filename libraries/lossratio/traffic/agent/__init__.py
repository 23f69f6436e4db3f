# SPDX-License-Identifier: Apache-2.0
"""The traffic agent: the program that runs on the TG node.

The node needs nothing but Python 3.8 or later (and what the generators need: numpy for `afpacket`). The controller
sends this package to the node as `lossratio_agent`, so the package imports no other part of lossratio. Programs of
added generators import the names below from it.
"""

from .core.configuration import Configuration, Direction
from .core.generator import Generator
from .core.plan import Answer, Plan
from .core.protocol import AgentError, Message

__all__ = ["AgentError", "Answer", "Configuration", "Direction", "Generator", "Message", "Plan"]
