"""Test traffic: frame profiles, generators, the agent on the TG, and the measurer that requests trials from it."""

import lazy_loader

# Imported when somebody asks for a name: a run needs a part of the room only.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
