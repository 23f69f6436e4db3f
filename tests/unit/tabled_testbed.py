"""A simulated black box with a table of `flow_tables`, behind the interface of a testbed."""

from __future__ import annotations

from types import SimpleNamespace

from measurement_examples import SIMULATED, InFrontOfTestbed

from lossratio.agent.core.pacing import frames_within
from lossratio.testbed.opening import open_testbed
from lossratio.trials import DirectionCounters, output_from_counters


class TabledTestbed(InFrontOfTestbed):
    """A simulated black box with such a table, and a hook that resets it, behind the interface of a testbed."""

    def __init__(self, device, directory):
        file = directory / "tabled.yaml"
        model = "model: connection_table, rate: 1 Mcps"
        file.write_text(SIMULATED.read_text().replace("model: sharp_knee, capacity: 150 kfps", model))
        super().__init__(open_testbed(file, dut="black_box"))
        self.device = device
        self.now = 0.0
        self.trials = []
        self._opened = []
        box = SimpleNamespace(node_name="BOX")
        self.duts = (SimpleNamespace(hop=box, kind="black_box", connections=None, resets=True),)

    def measure(self, trial):
        self.trials.append(trial)
        self.device.reset()
        self.now += 0.1
        count = frames_within(trial.duration, trial.load)
        if trial.exchange.answers == "opened":
            arrived = [(key, self._west(key, trial.load)) for key in range(count)]
            self._opened = [(key, outside) for key, outside in arrived if outside is not None]
        answered = [self._is_answered(key, outside, trial) for key, outside in self._opened]
        unanswered = answered.count(False) if trial.exchange.answers == "opened" else 0
        counters = DirectionCounters(
            "port0>port1",
            intended_frames=count,
            sent_frames=count,
            received_frames=answered.count(True),
            unanswered_frames=unanswered,
            left_frames=(len(self._opened), answered.count(True)) if trial.exchange.answers == "opened" else (),
            # The last one leaves before the duration is over.
            elapsed_s=(count - 0.5) / trial.load,
        )
        return output_from_counters(trial, [counters], elapsed=trial.duration)

    def _west(self, key, load):
        self.now += 1.0 / load
        return self.device.west(key, self.now)

    def _is_answered(self, key, outside, trial):
        self.now += 1.0 / trial.load
        if trial.exchange.answers == "unasked":
            outside = ("elsewhere", outside)
            key = outside
        return self.device.east(outside, self.now) == key
