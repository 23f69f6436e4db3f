"""The topology file: nodes, how to reach them, their interfaces, and the links between them.

Field names come from FD.io CSIT's topology files wherever both mean the same.
"""

import lazy_loader

# Imported when somebody asks for a name: a run needs a part of the room only.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
