"""Builds that are exchanged while the testbed stays open: trials of both in turns."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from types import SimpleNamespace

import pytest
from patches_examples import write_lab

from lossratio.errors import BuildError
from lossratio.results import Ends
from lossratio.runs.builds import InPlace, TrialBench
from lossratio.trials.counters import output_from_counters


@pytest.fixture
def ab(lossratio, tmp_path):
    def run(topology, a, b, *more):
        builds = ["--set-up-a", a, "--set-up-b", b, "--topology", topology, "--output", tmp_path / "ab"]
        return lossratio("builds", "ab", *builds, *more)

    return run


def test_the_testbed_stays_and_a_build_is_set_up_once_for_its_trials_in_a_row(ab, tmp_path):
    done = ab(write_lab(tmp_path), "echo A >> log", "echo B >> log", "--in-place", "64B")
    assert done.status == 0
    assert "B is the same as A" in done.out
    measured = [line.split()[1] for line in done.out.splitlines() if line.endswith(" fps")]
    # Each pair has both, in an order that is drawn.
    pairs = [set(measured[place : place + 2]) for place in range(0, len(measured), 2)]
    assert pairs == [{"A", "B"}] * 8
    assert (tmp_path / "log").read_text().split() == [build for build, _ in groupby(measured)]


@pytest.mark.parametrize("more", [(), ("--in-place", "64B", "linux_bridge")])
def test_there_are_suites_or_trials(ab, tmp_path, more):
    done = ab(write_lab(tmp_path), "true", "true", *more)
    assert done.status == 2
    assert "Name suites to measure, or a frame size with --in-place" in done.err


def test_an_option_without_a_value_is_a_mistake(ab, tmp_path):
    done = ab(write_lab(tmp_path), "true", "true", "--in-place", "64B", "--option", "police")
    assert "--option police: write it as NAME=VALUE" in done.err


def test_what_the_generator_cannot_send_says_nothing_about_a_build(tmp_path):
    topology = write_lab(tmp_path)
    text = topology.read_text().replace("capacity: 150 kfps", "capacity: 900 kfps")
    topology.write_text(text)
    bench = TrialBench(InPlace(topology, "64B", "ethip4-udp", None, {}, 800e3, 0.1), print)
    bench.set_up("true", "A")
    with pytest.raises(BuildError, match=r"could not send and receive 800\.00 kfps.*Set a --max-load"):
        bench.measure(tmp_path)
    bench.close()


def test_frames_that_the_generator_dropped_say_nothing_about_a_build(tmp_path):
    bench = TrialBench(InPlace(write_lab(tmp_path), "64B", "ethip4-udp", None, {}, 100e3, 0.1), print)
    bench.set_up("true", "A")
    measurer = bench._ready.measurer

    def drop(trial):
        output = measurer.measure(trial)
        ways = [replace(way, received_frames=way.sent_frames - 9, generator_drop_frames=9) for way in output.directions]
        return output_from_counters(trial, ways, elapsed=output.elapsed)

    bench._ready = replace(bench._ready, measurer=SimpleNamespace(measure=drop))
    with pytest.raises(BuildError, match="the build lost nothing of what it received"):
        bench.measure(tmp_path)
    bench.close()


def test_trials_in_which_the_machine_stalled_do_not_count(monkeypatch, tmp_path):
    bench = TrialBench(InPlace(write_lab(tmp_path), "64B", "ethip4-udp", None, {}, None, 0.1), print)
    values = []
    for stalled in (0.0, 0.5, 0.99):
        rates = iter([100e3, 80e3, 99e3, 80e3, 98e3, 80e3, 97e3, 80e3, 96e3, 80e3 * (1.0 - stalled)])
        monkeypatch.setattr(
            bench, "_forwarding_rate", lambda name, rates=rates: Ends(rate := next(rates), rate + 1e3, 0.0)
        )
        values += bench.measure(tmp_path).values.values()
    # Both directions of the mean of the better half.
    assert values == [(2 * 98e3, 2 * 99e3, 0.0)] * 3
