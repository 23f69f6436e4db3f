"""Robot Framework keywords; import them with ``Library    lossratio.keywords.LossRatio``."""

from lossratio.keywords.catalogue import Catalogue, SuiteExpander
from lossratio.keywords.library import LossRatio
from lossratio.keywords.measurements import measurement_keyword
from lossratio.keywords.measuring import measured

__all__ = ["Catalogue", "LossRatio", "SuiteExpander", "measured", "measurement_keyword"]
