"""All tests of RFC 2544 over frame sizes, and their report in the form that the RFC asks for."""

import lazy_loader

# Imported when somebody asks for a name: the report is written by few runs.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
