"""What lost frames have in common: faults of known cause are named, and of overloaded devices nothing is said."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from lossy_devices import MIX, STREAMS, Lab, both, every, none, of_flows, overloaded, policer, spec

from lossratio.agent.core.frames_spec import SteppingField
from lossratio.results.loss_places import loss_places
from lossratio.results.loss_tests import Effect
from lossratio.results.loss_words import flows_in_words
from lossratio.results.losses import LEVEL
from lossratio.trials import Losses, read_counts

LOADS = (50e3, 25e3, 12e3, 30e3, 18e3, 15e3)
QUEUE = set(np.random.default_rng(5).permutation(254)[:32].tolist())


def places_of(frames, device, *, loads=LOADS, duration=0.5, other=none, sample=None):
    lab = Lab(frames, seed=1, sample=sample)
    for load in loads:
        lab.trial(load, duration, device(lab.order) if device.__name__ == "device" else device, other)
    return loss_places(lab.trials)


def at_random(ratio):
    return lambda numbers, load, random: random.random(len(numbers)) < ratio


def of_size(size, ratio=1.0):
    def device(order):
        places = len(order.pattern)
        return lambda numbers, load, random: (
            (order.pattern[numbers % places] == size) & (random.random(len(numbers)) < ratio)
        )

    return device


def of_size_in(flows, size, ratio=1.0):
    """Frames of a size in some flows."""

    def device(order):
        in_flows, in_size = of_flows(flows, ratio)(order), of_size(size)(order)
        return lambda numbers, load, random: in_flows(numbers, load, random) & in_size(numbers, load, random)

    return device


def after_start(numbers, load):
    """When frames are sent, in seconds after the trial's start."""
    return (numbers - numbers[0]) / load


def hashed(queue, queues):
    """The flows of a queue by the hash of network cards."""
    lab = Lab(spec(254))
    lab.trial(1e3, 1.0, lambda numbers, load, random: numbers == numbers[0])
    hashes = read_counts(lab.trials[0].directions[0].losses.flow_hashes)
    return {flow for flow, value in enumerate(hashes) if value % queues == queue}


def of_class(*streams, ratio=1.0):
    """Frames of some of the streams of `STREAMS`."""
    order = STREAMS.order.streams
    return lambda numbers, load, random: (
        np.isin(np.array(order)[numbers % len(order)], streams) & (random.random(len(numbers)) < ratio)
    )


PORTS = (
    SteppingField(offset=30, width=4, first=0xC6120001, count=120),
    SteppingField(offset=36, width=2, first=53, count=3, values=(443, 53, 8080)),
)
HALF = set(np.random.default_rng(7).permutation(254)[:127].tolist())
QUARTER = set(np.random.default_rng(9).permutation(254)[:61].tolist())
AS_ONE_OF_8 = "are of 32 of 254 flows (numbers 3, 4, 17, ...)"
FAULTS = {
    "a queue": (
        spec(254),
        of_flows(QUEUE),
        {},
        f"All lost frames {AS_ONE_OF_8}; these lose every frame, all others none",
    ),
    "a queue, of a sample": (
        spec(254),
        of_flows(QUEUE),
        {"sample": 8000},
        f"All lost frames (of those examined) {AS_ONE_OF_8}; these lose every frame, all others none",
    ),
    "a queue, where trials see a fifth of the flows": (
        spec(254),
        of_flows(QUEUE),
        {"loads": (4e3, 3.5e3, 100.0, 100.0, 100.0)},
        f"All lost frames {AS_ONE_OF_8}; these lose every frame, all others none",
    ),
    "half of a queue": (spec(254), of_flows(QUEUE, 0.5), {}, f"All lost frames {AS_ONE_OF_8}; these lose 49"),
    "a queue by its hash": (
        spec(254),
        of_flows(hashed(3, 8)),
        {},
        "flows: queue 3 of 8, by the hash of addresses and ports that network cards use (RSS); these",
    ),
    "flows that follow each other": (
        spec(254),
        of_flows(set(range(34, 63)), 0.5),
        {},
        "are of 29 of 254 flows (numbers 34 to 62); these lose ",
    ),
    "half of the flows": (
        spec(254),
        of_flows(HALF),
        {},
        "are of 127 of 254 flows (numbers 0, 1, 2, ...); these lose every frame",
    ),
    "half of the frames of a quarter of the flows": (
        spec(254),
        of_flows(QUARTER, 0.5),
        {},
        "are of 61 of 254 flows (numbers 5, 13, 14, ...); these lose 5",
    ),
    "few frames of a quarter of the flows": (
        spec(254),
        of_flows(QUARTER, 0.08),
        {"duration": 0.3},
        "are of 61 of 254 flows (numbers 5, 13, 14, ...); these lose ",
    ),
    "half of the frames of a flow": (
        spec(8),
        of_flows({5}, 0.5),
        {},
        "All lost frames are of 1 of 8 flows (number 5); these lose ",
    ),
    "large frames of a flow": (
        spec(16, MIX),
        of_size_in({9}, 1518),
        {},
        "One frame in 192 is lost, always the same number of frames apart, at any load",
    ),
    "some large frames of a flow": (
        spec(16, MIX),
        of_size_in({9}, 1518, 0.5),
        {},
        "All lost frames are of 1 of 16 flows (number 9); these lose 4.138 % of their frames, all others none",
    ),
    "middle frames of a quarter of the flows": (
        spec(254, MIX),
        of_size_in(QUARTER, 570, 0.3),
        {},
        "All lost frames are of 570 B; these lose 7.216 % of their frames, all others none",
    ),
    "a flow": (
        spec(8),
        of_flows({5}),
        {},
        "All lost frames are of 1 of 8 flows (number 5); these lose every frame, all others none. "
        "That is also one frame in 8",
    ),
    "a remainder": (
        spec(254),
        of_flows({flow for flow in range(254) if flow % 8 == 3}),
        {},
        "flows: every flow whose number is 3 modulo 8; these lose every frame",
    ),
    "a port": (
        spec(fields=PORTS),
        of_flows({flow for flow in range(120) if flow % 3 == 1}),
        {},
        "flows: those with UDP destination port 53; these lose every frame",
    ),
    "a size": (
        spec(254, MIX),
        of_size(1518),
        {},
        "All lost frames are of 1,518 B; these lose every frame, all others none",
    ),
    "a part of a size": (spec(254, MIX), of_size(1518, 0.4), {}, "All lost frames are of 1,518 B; these lose 40"),
    "a stream": (
        STREAMS,
        of_class(0),
        {},
        "All lost frames are of stream voice; these lose every frame, all others none",
    ),
    "a tenth of a stream": (STREAMS, of_class(2, ratio=0.1), {}, "All lost frames are of stream data; these lose "),
    "a class of two streams": (
        STREAMS,
        of_class(0, 1, ratio=0.5),
        {},
        "All lost frames are of those with VLAN priority 5; these lose ",
    ),
    "every seventh frame": (
        spec(254),
        every(7),
        {},
        "One frame in 7 is lost, always the same number of frames apart, at any load",
    ),
    "the end": (
        spec(254),
        lambda numbers, load, random: numbers >= numbers[-1] - 299,
        {},
        "All lost frames are the last 300 frames of each trial",
    ),
    "the beginning": (
        spec(254),
        lambda numbers, load, random: numbers - numbers[0] < 170,
        {},
        "All lost frames are the first 170 frames of each trial",
    ),
    "the first milliseconds": (
        spec(254),
        lambda numbers, load, random: after_start(numbers, load) < 5e-3,
        {},
        "All lost frames are those of the first 5 ms of each trial",
    ),
    "the first frame of flows": (
        spec(254),
        lambda numbers, load, random: numbers - numbers[0] < 254,
        {},
        "All lost frames are the first frame of each of the 254 flows",
    ),
    "a pause": (
        spec(254),
        lambda numbers, load, random: abs(after_start(numbers, load) - 0.225) < 0.025,
        {"loads": (12e3, 20e3, 15e3, 11e3), "duration": 1.0},
        "All lost frames are from 4 pauses of about 50",
    ),
    "pauses": (
        spec(254),
        lambda numbers, load, random: (after_start(numbers, load) + 0.33) % 1.0 < 0.05,
        {"loads": (12e3, 20e3), "duration": 5.0},
        "All lost frames are from 10 pauses of about 50 to 50.1 ms, one every 1 s: no frame came back during a pause",
    ),
    "a direction": (spec(254), at_random(0.01), {}, "All lost frames are of the direction port0>port1, which loses 1"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault):
    frames, device, options, sentence = FAULTS[fault]
    found = places_of(frames, device, **options)
    first = found.patterns[0]
    assert sentence in first.sentence
    assert first.chance < LEVEL
    assert first.explained_ratio > 0.99
    assert found.nothing_in == ()


def test_several_patterns_are_named_in_the_order_of_what_they_explain():
    lab = Lab(spec(254, MIX), seed=1)
    sizes = of_size(1518)(lab.order)
    flows = of_flows(QUEUE)(lab.order)
    for load in LOADS:
        lab.trial(load, 0.5, both(sizes, flows))
    found = loss_places(lab.trials)
    assert [pattern.kind for pattern in found.patterns] == ["flows", "sizes"]
    assert found.patterns[0].explained_ratio > found.patterns[1].explained_ratio
    assert [pattern.trials for pattern in found.patterns] == [len(LOADS)] * 2


def test_a_fault_is_named_behind_the_overload_of_other_trials():
    frames = spec(254)
    queue = of_flows(QUEUE)
    overload = overloaded(40e3, lambda capacity: policer(capacity, 100.0))
    lab = Lab(frames, seed=1)
    device = both(queue(lab.order), overload)
    for load in LOADS:
        lab.trial(load, 0.5, device)
    assert "of 32 of 254 flows" in loss_places(lab.trials).patterns[0].sentence


def test_of_losses_without_a_pattern_the_questions_are_said_that_had_an_answer():
    lab = Lab(spec(254, MIX), seed=1)
    for load in LOADS:
        lab.trial(load, 0.5, at_random(0.02), at_random(0.02))
    found = loss_places(lab.trials, LOADS)
    assert found.patterns == ()
    assert {one.name for one in found.nothing_in} == {"direction", "flow", "size"}
    (sentence,) = found.sentences
    assert sentence.startswith("No pattern in ")
    assert sentence.endswith(" % would have been seen")


def test_an_outage_of_a_reset_is_not_called_a_loss_without_a_pattern():
    lab = Lab(spec(254), seed=1)

    def outage(numbers, load, random):
        return abs(after_start(numbers, load) - 2.0) < 1.0

    for load in LOADS:
        lab.trial(load, 5.0, outage, outage)
    found = loss_places(lab.trials)
    assert found.located_frames > 1000
    assert found.sentences == ()


def test_of_few_lost_frames_nothing_is_said():
    found = places_of(spec(254), at_random(1e-4), other=at_random(1e-4))
    assert found.located_frames > 0
    assert found.sentences == ()


def test_a_device_that_loses_nothing_has_no_places():
    assert places_of(spec(254), none) is None


def test_late_frames_were_not_lost():
    lab = Lab(spec(8))
    lab.trial(1e4, 0.5, of_flows({3})(lab.order))
    late = [trial.model_copy(update={"late_frames": 5}) for trial in lab.trials]
    assert loss_places(late) is None


def test_a_trial_whose_frames_were_only_unsent_says_nothing_of_places():
    lab = Lab(spec(254), seed=1)
    for load in LOADS:
        lab.trial(load, 0.5, of_flows(QUEUE)(lab.order))
    lab.trial(10e3, 0.5, none)
    starved = lab.trials[-1].model_copy(update={"loss_ratio": 2e-4, "unsent_frames": 1})
    assert loss_places([*lab.trials[:-1], starved]) == loss_places(lab.trials)


@pytest.mark.parametrize("flows", [2, 8, 16, 64])
def test_every_nth_frame_at_one_load_is_no_flow(flows):
    lab = Lab(spec(flows))
    for _ in range(6):
        lab.trial(20e3, 0.512, every(flows))
    assert "flows" not in [pattern.kind for pattern in loss_places(lab.trials).patterns]


@pytest.mark.parametrize(("period", "count"), [(10, 1), (20, 2), (20, 3), (48, 1), (192, 1), (96, 5)])
@pytest.mark.parametrize("flows", [8, 16, 64, 254])
def test_a_counter_of_the_device_makes_no_flows(flows, period, count):
    """It loses the same flows again and again in each trial, at any load, and looks at none of them."""
    found = places_of(spec(flows, MIX), lambda numbers, load, random: numbers % period < count)
    per_trial = places_of(spec(flows, MIX), every(period, count))
    for places in (found, per_trial):
        assert not {"flows"} & {pattern.kind for pattern in places.patterns if "every frame" not in pattern.sentence}


def spread(period, count):
    """Loses as many of each period, as evenly spread as possible."""
    return lambda numbers, load, random: numbers * count % period < count


REGULAR = {
    "a run": (8, every(38, 7), 0.0, "7 of every 38 frames are lost, always at the same places"),
    "spread": (8, spread(16, 3), 0.0, "3 of every 16 frames are lost, always at the same places"),
    "spread over many": (24, spread(54, 11), 0.0, "11 of every 54 frames are lost, always at the same places"),
    "with a few others": (12, every(10), 5e-4, "One frame in 10 is lost, always the same number of frames apart (9"),
}


@pytest.mark.parametrize("name", REGULAR)
def test_a_regular_loss_is_no_flow_where_its_period_and_the_flows_share_a_factor(name):
    flows, device, others, words = REGULAR[name]
    lab = Lab(spec(flows), seed=1)
    for _ in range(4):
        lab.trial(8e3, 0.9, both(device, at_random(others)))
    patterns = loss_places(lab.trials).patterns
    assert [pattern.kind for pattern in patterns] == ["every_nth"]
    assert words in patterns[0].sentence


def test_flows_that_a_counter_thins_out_are_flows():
    """What one of two frames of a few flows has in common is the flows, however regular it is."""
    lab = Lab(spec(16), seed=1)
    for _ in range(4):
        lab.trial(8e3, 0.9, lambda numbers, load, random: np.isin(numbers % 32, [2, 4, 12]))
    assert "are of 3 of 16 flows (numbers 2, 4, 12); these lose 50 %" in loss_places(lab.trials).patterns[0].sentence


RATES = {"6,000 and 5,400": (6000, 5400, "port1>port0 loses 3"), "6,000 and 1,500": (6000, 1500, "port1>port0 loses 8")}


@pytest.mark.parametrize("rates", RATES)
def test_a_direction_that_loses_more_is_named_with_both_shares(rates):
    *limits, words = RATES[rates]
    lab = Lab(spec(254), seed=3)
    for _ in range(3):
        lab.trial(8e3, 0.5, *(policer(rate, 20.0) for rate in limits))
    places = loss_places(lab.trials)
    (pattern,) = (one for one in places.patterns if one.kind == "direction")
    assert pattern.direction is None
    assert words in pattern.sentence
    assert all("(at 8.0000 kfps; chance: " in sentence for sentence in places.sentences)
    assert "port0>port1 2" in pattern.sentence
    difference = pattern.loss_ratio - pattern.others_loss_ratio
    assert pattern.least_difference - 1e-9 <= difference <= pattern.most_difference + 1e-9


def test_flows_of_one_queue_that_lose_a_part_are_named_from_one_load():
    lab = Lab(spec(254), seed=3)
    odd = of_flows(set(range(1, 254, 2)), 0.31)(lab.order)
    for _ in range(3):
        lab.trial(8e3, 0.5, odd)
    first = loss_places(lab.trials).patterns[0]
    assert "127 of 254 flows: every flow whose number is 1 modulo 2; these lose 3" in first.sentence


def test_losses_that_begin_inside_of_trials_are_told_from_the_loads_that_decide():
    """A heavy overload, in which they begin at once, outvotes nothing."""
    lab = Lab(spec(254), seed=3)
    lab.trial(40e3, 0.5, at_random(0.7))

    def bucket(numbers, load, random):
        return (after_start(numbers, load) > 0.4) & (random.random(len(numbers)) < 0.05)

    for load in (8e3, 8.1e3, 8e3, 8.2e3, 8.1e3):
        lab.trial(load, 0.5, bucket)
    (pattern,) = (one for one in loss_places(lab.trials, (8e3, 8.1e3)).patterns if one.kind == "end")
    told = "Losses begin after 0.4 s of 0.5 s at 8.2000 kfps: no frame is lost before that, and 5.122 % after it"
    assert pattern.sentence == told


def test_losses_of_one_direction_that_begin_at_once_are_not_said_to_begin_later():
    lab = Lab(spec(254), seed=3)

    def bucket(numbers, load, random):
        return (after_start(numbers, load) > 0.25) & (random.random(len(numbers)) < 0.2)

    for _ in range(5):
        lab.trial(8e3, 0.5, bucket, at_random(0.02))
    (pattern,) = (one for one in loss_places(lab.trials).patterns if one.kind == "end")
    assert re.match(r"The last 50 % of each trial loses \S+ % of the frames, the rest ", pattern.sentence)


def test_losses_that_begin_at_other_times_at_other_loads_are_told_too():
    """A bucket is empty sooner at a higher load: no part of the time has all losses of each load, and only these."""
    lab = Lab(spec(254), seed=3)
    empty = {8e3: 0.43, 8.1e3: 0.34}

    def bucket(numbers, load, random):
        return (after_start(numbers, load) > empty[load]) & (random.random(len(numbers)) < 0.05)

    for load in (8e3, 8.1e3) * 4:
        lab.trial(load, 0.5, bucket, bucket)
    (pattern,) = (one for one in loss_places(lab.trials, empty).patterns if one.kind == "end")
    assert re.match(r"Losses begin after 0\.3|The last \d+ % of each trial loses ", pattern.sentence)
    assert pattern.explained_ratio > 0.7


def test_at_one_load_a_regular_loss_is_told_with_both_causes():
    lab = Lab(spec(254), seed=3)
    for _ in range(3):
        lab.trial(8e3, 0.5, every(7))
    (pattern,) = (one for one in loss_places(lab.trials).patterns if one.kind == "every_nth")
    assert "by a counter, or by a constant capacity" in pattern.sentence


def test_frames_that_the_generator_dropped_or_that_its_bursts_cost_are_no_losses_of_the_device():
    lab = Lab(spec(254), seed=1)
    for load in LOADS:
        lab.trial(load, 0.5, of_flows(QUEUE)(lab.order))
    for changes in ({"generator_drop_frames": 5}, {"lateness_s": 1.0}):
        trials = [
            trial.model_copy(update={"directions": tuple(replace(way, **changes) for way in trial.directions)})
            for trial in lab.trials
        ]
        assert loss_places(trials) is None


def test_few_flows_have_a_name_by_chance():
    def name(flows, members):
        is_member = np.isin(np.arange(flows), members)
        effect = Effect(is_member, 1.0, 1.0, 0.0, 1.0, is_clear=True)
        return flows_in_words(effect, Losses(100, 10, 1.0, 100, flows=flows))

    assert name(254, range(1, 254, 2)) == "127 of 254 flows: every flow whose number is 1 modulo 2"
    assert name(8, [5]) == "1 of 8 flows (number 5)"


def dies_after(trials):
    """A device that forwards everything in the first trials, and nothing in later ones."""
    left = iter([False] * trials)
    return lambda numbers, load, random: np.full(len(numbers), next(left, True))


def test_trials_without_any_frame_have_lost_neither_their_first_nor_their_last_frames():
    places = places_of(spec(254), dies_after(2))
    assert {"beginning", "end"}.isdisjoint(pattern.kind for pattern in places.patterns)


def test_four_bursts_of_a_few_lengths_are_no_pauses():
    lengths = iter((0.040, 0.047, 0.044, 0.041))

    def burst(numbers, load, random):
        times = after_start(numbers, load)
        return (times >= 0.2) & (times < 0.2 + next(lengths))

    assert places_of(spec(254), burst, loads=(8e3,) * 4, duration=1.0).patterns == ()
