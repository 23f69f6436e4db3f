"""The public names, listed once: type checkers read them here, and the room imports each on first use."""

from .catalogue import (
    Catalogue as Catalogue,
    SuiteExpander as SuiteExpander,
    twin_tags as twin_tags,
    value_of as value_of,
)
from .course import measured as measured
from .library import LossRatio as LossRatio
from .measurements import measurement_keyword as measurement_keyword
from .variables import problem_with_variable as problem_with_variable
