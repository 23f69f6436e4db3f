"""MLRsearch (RFC 9971): goals, load classification, search results, and the controller that chooses trials."""

import lazy_loader

# Imported when somebody asks for a name: a run needs a part of the room only.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
