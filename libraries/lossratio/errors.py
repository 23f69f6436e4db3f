"""The errors that lossratio raises on purpose. Each message says what failed, where, and what to do."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager


class LossRatioError(Exception):
    """Base of all errors that lossratio raises on purpose."""


class TopologyError(LossRatioError):
    """A topology file cannot be read, or does not describe a usable testbed."""


class NotMeasuredHereError(TopologyError):
    """A test needs more than the testbed has: cores, DUTs, links, or ports of a NIC model. Nothing has failed.

    Robot Framework skips the test, with the message as the reason.
    """

    ROBOT_SKIP_EXECUTION = True
    ROBOT_SUPPRESS_NAME = True


class NodeError(LossRatioError):
    """A node cannot be reached over SSH, or a command on it failed."""


class TrafficError(LossRatioError):
    """The traffic agent or its generator failed, or a trial's counters cannot be trusted."""


class ProfileError(TrafficError):
    """A traffic profile cannot be read, or describes no frames."""


class TesterError(TrafficError):
    """The TG changed during a trial. The trial's counters say nothing about the SUT."""

    __test__ = False


class StarvedGeneratorError(TesterError):
    """Frames of the smallest load were not sent, or the generator dropped them. This says nothing about the SUT."""


class LinkError(TrafficError):
    """A link between two nodes failed. The trial's counters say nothing about the SUT."""


class DutError(LossRatioError):
    """A DUT cannot be set up, or does not forward test traffic as it should."""


class SearchError(LossRatioError):
    """A search has arguments that make no sense, or a journal that cannot be used."""


class UnknownArgumentError(SearchError):
    """A keyword was called with an argument that it does not have."""


class DoubtError(LossRatioError):
    """There are doubts about a result, and the test requires a result without doubts."""


class ReportError(LossRatioError):
    """A result cannot be written, read or shown."""


class NewerFileError(LossRatioError):
    """A newer version of lossratio wrote a file, and this version cannot read it. The file is not damaged."""


class DamagedFileError(LossRatioError):
    """A journal or a result is damaged.

    Attributes:
        damage: The file and its damage, without the advice on what to do.
    """

    def __init__(self, damage: str, advice: str = "") -> None:
        super().__init__(f"{damage} {advice}".rstrip())
        self.damage = damage


class ReservationError(LossRatioError):
    """A testbed is reserved by another run, or a reservation was lost."""


class StorageError(LossRatioError):
    """Results cannot be written to the controller's disk."""


FREE_SPACE = "Free some space"
"""The beginning of a way out, if the disk is full."""

# Table: what to do first, by the error of the system.
_REMEDIES = {
    errno.ENOSPC: FREE_SPACE,
    errno.EDQUOT: FREE_SPACE,
    errno.EISDIR: "Choose a name that no directory has",
    errno.ENOTDIR: "Choose a place that is not below a file",
    errno.ENAMETOOLONG: "Choose a shorter name",
    errno.EACCES: "Get permission to write there",
    errno.EPERM: "Get permission to write there",
    errno.EROFS: "Make the file system writable",
    errno.EBUSY: "Choose another place",
    errno.ELOOP: "Choose another place",
    errno.ENOENT: "Choose another place",
    errno.ENXIO: "Choose another place",
}


def remedy_for(error: BaseException) -> str | None:
    """What to do first after an error of the system, without a full stop; None: that is not known."""
    return _REMEDIES.get(getattr(error, "errno", None) or 0)


@contextmanager
def storing(
    what: str, way_out: str = "", *, error: type[LossRatioError] = StorageError
) -> Iterator[None]:
    """Turns an error of this machine's disk into an error that says what cannot be done, and why.

    Args:
        what: What the block does, e.g. ``write a.json``.
        way_out: A sentence that says what to do. If the disk is not full, other words replace *Free some space*.
        error: The class to raise.

    Raises:
        LossRatioError: Of the class `error`, if an OSError ends the block.
    """
    try:
        yield
    except OSError as cause:
        told = way_out.replace(FREE_SPACE, remedy_for(cause) or FREE_SPACE)
        raise error(f"Cannot {what}: {cause.strerror}. {told}".rstrip()) from cause


class ArchiveError(LossRatioError):
    """The archive of results cannot be reached, written or read."""


class JobError(LossRatioError):
    """A job file, or a run that it requests, cannot be used."""


class BuildError(LossRatioError):
    """A build cannot be set up or measured. Its `status` (`ExitStatus`) is the command's exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class RegressionError(AssertionError):
    """A value has regressed. Robot Framework shows the error's text as the message of the failed test."""
