"""Robot Framework keywords; import them with ``Library    lossratio.keywords.LossRatio``."""

from lossratio.keywords.catalogue import Catalogue
from lossratio.keywords.library import LossRatio

__all__ = [
    "Catalogue",
    "LossRatio",
]
