"""The errors that lossratio raises on purpose: each says what failed, where, and what to do."""


class LossRatioError(Exception):
    """Base of all errors that lossratio raises on purpose."""


class TopologyError(LossRatioError):
    """A topology file cannot be read, or does not describe a usable testbed."""


class NodeError(LossRatioError):
    """A node cannot be reached over SSH, or a command on it failed."""


class TrafficError(LossRatioError):
    """The traffic agent or its generator failed, or a trial's counters cannot be trusted."""


class TesterError(TrafficError):
    """The TG changed while it measured: what was counted says nothing about the SUT."""

    __test__ = False


class LinkError(TrafficError):
    """A link between two nodes failed: what was counted says nothing about the SUT."""


class DutError(LossRatioError):
    """A DUT cannot be set up, or does not forward what it was set up to forward."""


class SearchError(LossRatioError):
    """A search was asked for with values that make no sense, or its journal cannot be used."""


class ReportError(LossRatioError):
    """A result cannot be written, read or shown."""


class ReservationError(LossRatioError):
    """A testbed is reserved by somebody else, or a reservation was lost."""


class StorageError(LossRatioError):
    """A disk of the controller does not take what was measured."""


class ArchiveError(LossRatioError):
    """The archive of results cannot be reached, or does not take or give what it should."""


class JobError(LossRatioError):
    """A job file, or what a night is to run, cannot be used."""


class BuildError(LossRatioError):
    """A build cannot be set up or measured.

    Attributes:
        status: The exit status that it means for a command.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class RegressionError(AssertionError):
    """A value has regressed; Robot Framework shows the message as that of a failed test."""
