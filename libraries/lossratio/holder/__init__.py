"""The process that carries a local testbed's network namespaces, with a real sshd in each.

It starts in a few milliseconds, as it loads nothing but the standard library.
"""

from lossratio.holder.plan import ADDRESS, LinkEnd, Plan, Tools

__all__ = [
    "ADDRESS",
    "LinkEnd",
    "Plan",
    "Tools",
]
