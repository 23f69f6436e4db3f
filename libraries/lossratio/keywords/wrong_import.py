"""Robot Framework finds this module for ``Library    lossratio``. The error shows the way to the keyword library."""

from robot.errors import DataError


class WrongImport:
    """A library whose import fails. Otherwise, Robot Framework would take the Python API's functions for keywords."""

    def __init__(self, *_arguments: object, **_named: object) -> None:
        # For its own errors, Robot Framework shows only the message, without a traceback.
        raise DataError(
            "This name belongs to the Python API. The keyword library is: Library    LossRatio"
        )
