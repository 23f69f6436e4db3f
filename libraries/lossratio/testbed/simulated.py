"""The simulated testbed: a model of the SUT on a virtual clock, with the interface of a real testbed."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lossratio.errors import NotMeasuredHereError, TopologyError, TrafficError
from lossratio.results import (
    Conditions,
    NodeFacts,
    controller_facts,
    describe_testbed,
    trial_timing,
)
from lossratio.simulation import (
    Course,
    FrameFaults,
    SimulatedMeasurer,
    Sut,
    faults_from,
    simulated_latency,
    sut_from,
)
from lossratio.testbed.testbed import USUAL_TRIALS, Ready, Testbed, TestbedRequest, TrialSettings
from lossratio.topology import SimulatedGenerator
from lossratio.traffic import Answer, TrafficProfile, check_sends_streams
from lossratio.trials import START_TOLERANCE, Integrity, LatencyOutput, Step, TrialInput
from lossratio.values import shown_value

_FAULTS = "faults"
_VERSION = "version"
_LATENCY_RATE, _LATENCY_SHARE = 1000.0, 0.1
"""The maximum number of latency frames: per second in each direction, and as a share of a direction's frames."""


class SimulatedSource:
    """Latency trials and running traffic by a model; a `lossratio.testbed.testbed.TrafficSource`.

    On a virtual clock, traffic only flows while a caller waits with `wait`. The capacity is the number of frames per
    second that the SUT's queue serves; None: there is no queue. All directions may share the queue.
    """

    def __init__(
        self, measurer: SimulatedMeasurer, capacity: float | None, *, shared: bool, seed: int
    ) -> None:
        self._measurer = measurer
        self._capacity = capacity
        self._shared = shared
        self._rng = np.random.default_rng(seed)
        self._running: tuple[float, tuple[Course, ...]] | None = None

    def latency(self, load: float, duration: float) -> LatencyOutput:
        """Performs a trial, and draws random latencies for some of its frames."""
        directions = self._measurer.measure(TrialInput(duration, load)).directions
        at_queue = load * (len(directions) if self._shared else 1)
        latencies = []

        for direction in directions:
            sent = math.ceil(min(_LATENCY_RATE * duration, _LATENCY_SHARE * direction.sent_frames))
            received = int(
                self._rng.binomial(
                    sent, min(1.0, direction.received_frames / direction.sent_frames)
                )
            )
            counted = {"sent": sent, "received": received}
            latencies.append(
                simulated_latency(
                    direction.name, at_queue, self._capacity, **counted, rng=self._rng
                )
            )

        return LatencyOutput(directions, tuple(latencies))

    def now(self) -> float:
        """Seconds on the virtual clock."""
        return self._measurer.now

    def wait(self, seconds: float) -> None:
        """Advances the virtual clock, while running traffic flows."""
        if self._running is None or not seconds:
            self._measurer.now += seconds
        else:
            load, courses = self._running
            self._measurer.run(courses, Step(seconds, load))

    @property
    def minds_resets(self) -> bool:
        """Whether the model of the SUT has an outage after a reset; most models forward through it."""
        return self._measurer.minds_resets

    def reset(self) -> None:
        """Resets the SUT now, if its model reacts to resets."""
        self._measurer.reset_sut()

    def start_traffic(self, load: float, watch: bool = False) -> None:
        """See `lossratio.testbed.testbed.TrafficSource.start_traffic`; needs `watch`, as no time passes otherwise.

        Raises:
            TrafficError: Without `watch`.
        """
        if not watch:
            raise TrafficError(
                "On a simulated testbed no time passes between trials, and traffic cannot run between them. Use a "
                "local testbed."
            )
        self._running = load, self._measurer.courses()

    def stop_traffic(self, late_wait: float) -> Answer:
        """See `lossratio.testbed.testbed.TrafficSource.stop_traffic`.

        Raises:
            TrafficError: If no traffic flows.
        """
        if self._running is None or not self._running[1][0].sent:
            raise TrafficError("There is no traffic to stop.")
        (_, courses) = self._running
        self._running = None
        timelines = tuple(course.as_one_step() for course in courses)
        self._measurer.rest()
        directions = tuple(self._measurer.counters(timelines))
        late = {direction.name: (0,) for direction in directions}
        return Answer(directions, timelines=timelines, late_by_direction=late)


class SimulatedTestbed(Testbed):
    """A testbed without devices and frames.

    A kind of DUT with a known truth (such as a policer) has its own model, one for each direction. For all other kinds,
    the topology file gives the model of the SUT, and the traffic of all directions goes through it together.
    """

    def __init__(self, request: TestbedRequest) -> None:
        """Makes the model."""
        self.request = request
        self._is_closed = False
        topology = request.topology
        generator = topology.nodes[topology.tg_name].generator
        if not isinstance(generator, SimulatedGenerator):
            raise TopologyError(
                f"Topology {topology.name} has a real generator; a simulated testbed needs 'kind: simulated'."
            )
        if request.links > 1:
            raise NotMeasuredHereError(
                f"{request.file}: a simulated testbed has one link, but {request.links} parallel links were "
                "requested. Use a local testbed, such as the topology local-2links."
            )

        self.generator: SimulatedGenerator = generator
        known = None if request.dut is None else request.dut.options.modelled_as()
        self._has_known_truth = known is not None
        self._model = self._topology_model() if known is None else known

        try:
            # Results name the version of a model even if a kind of DUT has another model.
            for name in topology.dut_names:
                sut_of(topology.nodes[name].sut or self._model)
            self._sut, self._faults = sut_of(self._model)
        except ValueError as error:
            raise TopologyError(f"{request.file}: {error}") from error

        if request.dut is None:
            self._recovery_time = 0.0
        else:
            self._recovery_time = request.dut.options.recovery_time

    @contextmanager
    def ready_for(
        self, profile: TrafficProfile, settings: TrialSettings = USUAL_TRIALS
    ) -> Iterator[Ready]:
        """Yields a measurer on a virtual clock, which always starts from the same state.

        Raises:
            TrafficError: If the profile sends different loads in its directions, or the testbed was closed.
        """
        if self._is_closed:
            raise TrafficError(
                f"The testbed {self.request.topology.name} is closed. Measure inside its with block, or open it again."
            )
        check_sends_streams(self.request.topology, profile)
        if profile.load_factor != profile.transmitting_directions:
            raise TrafficError(
                f"Traffic profile {profile.name}: the simulated generator sends the same load in all directions. "
                "Measure this profile on a local testbed."
            )

        directions = profile.transmitting_directions
        overhead = (self.generator.overhead or 0.0) + settings.ramp
        faults = None if settings.integrity is Integrity.OFF else self._faults
        measurer = SimulatedMeasurer(
            [self._sut] * directions if self._has_known_truth else self._sut,
            seed=self.generator.seed,
            overhead=overhead,
            settle=max(self._recovery_time, settings.rest),
            max_rate=self.generator.max_rate,
            directions=directions,
            faults=faults,
        )
        source = SimulatedSource(
            measurer, self._capacity, shared=not self._has_known_truth, seed=self.generator.seed
        )
        conditions = self._conditions(profile).with_ramp(settings.ramp).with_rest(settings.rest)
        yield Ready(measurer, source, conditions)

    def close(self) -> None:
        """Ends its use. Like a real testbed, it measures nothing after that."""
        self._is_closed = True

    @property
    def _capacity(self) -> float | None:
        """Frames per second that the queue serves; None: there is none, as in a policer, or its limit is not known."""
        if self._has_known_truth:
            return None
        truth = self._sut.truth(loss_ratio=0.0, duration=1.0, exceed_ratio=0.5)
        if truth is not None and 0.0 < truth < math.inf:
            return truth
        return None

    def _conditions(self, profile: TrafficProfile) -> Conditions:
        topology = self.request.topology
        asked = {} if self.request.dut is None else self.request.dut.to_json()
        named = {} if self._version is None else {_VERSION: self._version}
        dut = {
            "simulated": True,
            **asked,
            **named,
            "model": {name: value for name, value in self._model.items() if name != _VERSION},
            "model_per_direction": self._has_known_truth,
        }

        load = profile.described_load(
            [("port0", "port1")], encapsulation_overhead=self.request.encapsulation_overhead
        )
        timing = trial_timing(
            learning="never",
            wait_before_s=0.0,
            wait_after_s=0.0,
            recovery_s=self._recovery_time,
            tolerance_s=START_TOLERANCE,
            negative_loss="does not happen",
        )

        # Record: all that a result says of its testbed.
        return Conditions(
            testbed=describe_testbed(topology, str(self.request.file), self.request.paths),
            nodes={name: NodeFacts() for name in topology.nodes},
            controller=controller_facts(),
            generator=self.generator.model_dump(mode="json"),
            duts=dict.fromkeys(topology.dut_names, dut),
            traffic=profile.described(),
            load=load,
            timing=timing,
            device=self.request.device,
        )

    @property
    def _version(self) -> str | None:
        """Version of the device that the models in the topology file represent."""
        topology = self.request.topology
        models = (topology.nodes[name].sut or {} for name in topology.dut_names)
        return next((model[_VERSION] for model in models if _VERSION in model), None)

    def _topology_model(self) -> dict[str, Any]:
        topology = self.request.topology
        models = (topology.nodes[name].sut for name in topology.dut_names)
        if (model := next((own for own in models if own is not None), None)) is not None:
            return model
        raise TopologyError(
            f"{self.request.file}: no DUT has a 'sut', the model to simulate, and this suite's kind of DUT has none. "
            "Add 'sut: {model: sharp_knee, capacity: 150 kfps}' to a DUT."
        )


def sut_of(model: dict[str, Any]) -> tuple[Sut, FrameFaults | None]:
    """The model of the SUT that a topology file describes, and how it damages frames; None: it damages none.

    Raises:
        ValueError: If the model is wrong, or if its version is a number.
    """
    version = model.get(_VERSION, "")
    if not isinstance(version, str):
        raise ValueError(
            f"version: must be text, not {shown_value(version)}. Put it in quotes, because YAML reads 26.10 as the "
            "number 26.1."
        )
    rest = {name: value for name, value in model.items() if name not in (_FAULTS, _VERSION)}
    return sut_from(rest), faults_from(model[_FAULTS]) if _FAULTS in model else None
