"""What there is on this machine: input files, files that come with lossratio, other packages and programs.

Each name is imported on first use: commands that read no file must start fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
