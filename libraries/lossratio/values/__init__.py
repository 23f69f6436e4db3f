"""What values may be: units, quantities, records of files, arguments, words for what is wrong, exit statuses.

Each name is imported on first use: commands that read no file must start fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
