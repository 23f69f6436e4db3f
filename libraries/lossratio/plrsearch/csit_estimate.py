"""What FD.io CSIT's code reports."""

from dataclasses import dataclass

from lossratio.trials import Frames, Observed


@dataclass(frozen=True)
class CsitEstimate(Observed):
    """What FD.io CSIT's code reports for the same trials: its own fitting functions, Monte Carlo and averages."""

    trials: Frames
    """Number of trials on which the estimate is based: all but the last trial."""
    mean_per_interface_fps: float
    """Middle of exp(mean of the load's logarithm -/+ its standard deviation). Both functions have half the weight."""
    stdev_per_interface_fps: float
    """Half the distance between these two loads."""
    stretch_mean_per_interface_fps: float
    """Exponential of the logarithm's mean under its stretch function."""
    erf_mean_per_interface_fps: float
    """The same under its erf function."""
    samples: Frames
    """Samples of each integration, for each function; the seed is 0 each time."""

    def __str__(self) -> str:
        """The estimate in one line."""
        return (
            f"{self.mean_per_interface_fps:,.1f} fps, standard deviation {self.stdev_per_interface_fps:,.4g} fps "
            f"(stretch {self.stretch_mean_per_interface_fps:,.1f}, erf {self.erf_mean_per_interface_fps:,.1f}; "
            f"{self.trials} trials, {self.samples:,} samples)"
        )
