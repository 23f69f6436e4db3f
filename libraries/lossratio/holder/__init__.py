"""The process that carries a local testbed's network namespaces, with a real sshd in each.

It starts in a few milliseconds, as it loads nothing but the standard library.
"""

from lossratio.holder.plan import LinkEnd, Plan, Tools
from lossratio.holder.servers import ADDRESS

__all__ = [
    "ADDRESS",
    "LinkEnd",
    "Plan",
    "Tools",
]
