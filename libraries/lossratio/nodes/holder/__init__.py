"""The process that carries a local testbed's network namespaces, with an SSH server for each.

It starts in a few milliseconds, because it only loads the standard library.
"""

from lossratio.nodes.holder.plan import ADDRESS, LinkEnd, Plan, Tools
