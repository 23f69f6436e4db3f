"""SUTs with a known truth, and a measurer that performs trials on them on a virtual clock.

A model is an immutable value, e.g. `Policer(rate=50e3, burst=1000)`. `SimulatedMeasurer` starts it. Its `truth` is the
result of a perfect search.
"""

from lossratio.simulation.constant_capacity import (
    BackgroundLoss,
    Buffer,
    ConnectionTable,
    ConstantLoss,
    LossInversion,
    Policer,
    SharpKnee,
    SmoothKnee,
)
from lossratio.simulation.losses import Course, LocatingSut, Loss
from lossratio.simulation.measurer import (
    FrameFaults,
    SimulatedMeasurer,
    faults_from,
    simulated_latency,
)
from lossratio.simulation.recorded import Recorded, Replay, counted, record_of
from lossratio.simulation.registry import SUT_MODELS, sut_from
from lossratio.simulation.sut import GRACEFUL, Overload, RunningSut, Sut, Traffic, WithoutTruth
from lossratio.simulation.varying_capacity import (
    CapacityDrift,
    CapacityStep,
    Device,
    PerformanceSpectrum,
    RareStalls,
    TwoStates,
)
