"""SUTs with a known truth, and a measurer that performs trials on them on a virtual clock.

A model is an immutable value, e.g. `Policer(rate=50e3, burst=1000)`. `SimulatedMeasurer` starts it. Its `truth` is the
result of a perfect search.
"""

from lossratio.simulation.constant_capacity import (
    BackgroundLoss as BackgroundLoss,
    Buffer as Buffer,
    ConnectionTable as ConnectionTable,
    ConstantLoss as ConstantLoss,
    LossInversion as LossInversion,
    Policer as Policer,
    SharpKnee as SharpKnee,
    SmoothKnee as SmoothKnee,
)
from lossratio.simulation.losses import Course as Course, LocatingSut as LocatingSut, Loss as Loss
from lossratio.simulation.measurer import (
    LATENCY_RATE as LATENCY_RATE,
    LATENCY_SHARE as LATENCY_SHARE,
    FrameFaults as FrameFaults,
    SimulatedMeasurer as SimulatedMeasurer,
    faults_from as faults_from,
    simulated_latency as simulated_latency,
)
from lossratio.simulation.recorded import Recorded as Recorded
from lossratio.simulation.registry import SUT_MODELS as SUT_MODELS, sut_from as sut_from
from lossratio.simulation.sut import (
    GRACEFUL as GRACEFUL,
    Overload as Overload,
    RunningSut as RunningSut,
    Sut as Sut,
    Traffic as Traffic,
    WithoutTruth as WithoutTruth,
)
from lossratio.simulation.varying_capacity import (
    CapacityDrift as CapacityDrift,
    CapacityStep as CapacityStep,
    Device as Device,
    PerformanceSpectrum as PerformanceSpectrum,
    RareStalls as RareStalls,
    TwoStates as TwoStates,
)
