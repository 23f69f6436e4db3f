"""What Robot Framework finds for ``Library    lossratio``: the way to the keyword library."""


class WrongImport:
    """A library that cannot be made. Without it, Robot Framework would take the Python API's functions for keywords."""

    def __init__(self, *_arguments: object, **_named: object) -> None:
        raise ImportError(
            "'lossratio' is the Python API. The keyword library is: Library    LossRatio"
        )
