"""SUTs with a known truth, and a measurer that performs trials on them on a virtual clock.

A model is an immutable value, e.g. `Policer(rate=50e3, burst=1000)`. `SimulatedMeasurer` starts it. Its `truth` is the
result of a perfect search.
"""

from lossratio.simulation.buckets import Buffer, Policer
from lossratio.simulation.constant_loss import BackgroundLoss, ConstantLoss, LossInversion
from lossratio.simulation.knees import SharpKnee, SmoothKnee
from lossratio.simulation.latency import LATENCY_RATE, LATENCY_SHARE, simulated_latency
from lossratio.simulation.measurer import FrameFaults, SimulatedMeasurer, faults_from
from lossratio.simulation.registry import SUT_MODELS, sut_from
from lossratio.simulation.sut import GRACEFUL, Overload, RunningSut, Sut, Traffic
from lossratio.simulation.varying_capacity import (
    CapacityDrift,
    CapacityStep,
    PerformanceSpectrum,
    RareStalls,
    TwoStates,
)

__all__ = [
    "GRACEFUL",
    "LATENCY_RATE",
    "LATENCY_SHARE",
    "SUT_MODELS",
    "BackgroundLoss",
    "Buffer",
    "CapacityDrift",
    "CapacityStep",
    "ConstantLoss",
    "FrameFaults",
    "LossInversion",
    "Overload",
    "PerformanceSpectrum",
    "Policer",
    "RareStalls",
    "RunningSut",
    "SharpKnee",
    "SimulatedMeasurer",
    "SmoothKnee",
    "Sut",
    "Traffic",
    "TwoStates",
    "faults_from",
    "simulated_latency",
    "sut_from",
]
