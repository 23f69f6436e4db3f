"""Sessions on the nodes of a testbed over SSH: commands, files, and long-lived processes that exchange lines."""

import lazy_loader

# Imported when somebody asks for a name: the process that carries a local testbed needs none of them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
