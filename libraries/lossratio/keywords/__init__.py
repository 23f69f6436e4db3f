"""Robot Framework keywords; import them with ``Library    lossratio.keywords.LossRatio``."""

from lossratio.keywords.catalogue import Catalogue as Catalogue, SuiteExpander as SuiteExpander
from lossratio.keywords.library import LossRatio as LossRatio
from lossratio.keywords.measurements import measurement_keyword as measurement_keyword
from lossratio.keywords.session import measured as measured
