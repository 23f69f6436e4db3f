"""Robot Framework keywords; import them with ``Library    lossratio.keywords.LossRatio``."""

from lossratio.keywords.library import LossRatio

__all__ = ["LossRatio"]
