"""Robot Framework keywords; import them with ``Library    LossRatio``.

The long name ``lossratio.keywords.LossRatio`` means the same library.

Each name is imported on first use: the library needs every kind of measurement, and a package that adds a kind may
import this module.
"""

import gc

import lazy_loader

_public_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "keywords":
        # Robot Framework asks for this name when a suite imports this module as a library.
        from lossratio.keywords.wrong_import import WrongImport

        return WrongImport
    # The library makes hundreds of classes. To look for garbage among them takes a quarter of the import.
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        return _public_name(name)
    finally:
        if is_enabled:
            # Nor are they ever garbage: otherwise the next look for garbage would begin with them.
            gc.freeze()
            gc.enable()
