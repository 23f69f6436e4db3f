"""All tests of RFC 2544 on a simulated device that has a queue, a recovery time and a downtime; and their report."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest
from measurement_examples import SIMULATED, place
from rfc2544_examples import DEVICE, PROFILES, REQUEST

from lossratio.errors import DutError, SearchError, StorageError
from lossratio.measurements.rfc2544 import (
    FULL,
    QUICK,
    Rfc2544Request,
    Rfc2544Run,
    Rfc2544Test,
    forecast_of,
    rfc2544_report,
    run_rfc2544,
    write_rfc2544_report,
)
from lossratio.measurements.rfc2544.differences import differences_of, verdict_of
from lossratio.mlrsearch import PDR, Forecast
from lossratio.results import Outcome
from lossratio.testbed import open_testbed
from lossratio.topology import TrexGenerator, XdpGenerator


def fail():
    raise DutError("the socket does not answer")


@pytest.fixture(scope="module")
def testbed():
    with open_testbed(DEVICE) as testbed:
        yield testbed


@pytest.fixture(scope="module")
def whole(testbed, tmp_path_factory):
    """A run, and all that was announced meanwhile."""
    heard = []
    run = run_rfc2544(
        testbed,
        REQUEST,
        place(tmp_path_factory.mktemp("run"), "all"),
        on_forecast=lambda number, forecast: heard.append((number, forecast)),
        on_progress=lambda progress: heard.append(progress.line()),
        on_part=heard.append,
    )
    return run, heard


@pytest.fixture(scope="module")
def report(whole):
    return rfc2544_report(whole[0])


def result_of(run, test, frame_size="64B"):
    (part,) = [part for part in run.of(test) if part.frame_size == frame_size]
    return part.result


def test_each_test_is_made_at_each_frame_size_and_the_reset_at_the_smallest(whole):
    run, heard = whole
    assert [(part.frame_size, part.test.value) for part in run.parts] == [
        *(("64B", test.value) for test in Rfc2544Test),
        *(("1518B", test.value) for test in Rfc2544Test if test is not Rfc2544Test.RESET),
    ]
    assert run.problems == ()
    assert {part.result.outcome for part in run.parts} == {Outcome.MEASURED}
    assert [part for part in heard if part in run.parts] == list(run.parts)


def test_the_forecast_is_announced_first_and_holds_what_was_measured(whole):
    run, heard = whole
    number, forecast = heard[0]
    assert number == len(run.parts)
    measured = sum(trial.elapsed_s for part in run.parts for trial in part.result.trials)
    assert forecast.low <= measured <= forecast.high
    assert forecast == run.forecast


def test_the_results_are_those_of_the_device(whole):
    run, _ = whole
    throughput = result_of(run, Rfc2544Test.THROUGHPUT).goals[0].result.conditional_throughput
    # The queue of both directions together lets a short trial pass 1000 frames more.
    assert throughput.aggregate_fps == pytest.approx(150e3 + 1000 / 0.5, rel=0.01)
    bursts = result_of(run, Rfc2544Test.BACK_TO_BACK).back_to_back
    assert bursts.average_frames == pytest.approx(1000 / (2 - 150e3 / 400e3), abs=2)
    assert result_of(run, Rfc2544Test.RECOVERY).recovery.average_s == pytest.approx(0.5, abs=1e-3)
    assert result_of(run, Rfc2544Test.RESET).reset.average_s == pytest.approx(0.3, abs=1e-3)
    loss = result_of(run, Rfc2544Test.FRAME_LOSS).frame_loss.loads[0]
    assert loss.frame_loss_ratio == pytest.approx(1 - (150e3 * 0.5 + 1000) / (2 * 400e3 * 0.5), abs=1e-3)


def test_the_page_has_a_chapter_for_each_test_and_needs_no_network(report):
    titles = re.findall("<h2[^>]*>([^<]+)</h2>", report.html)
    assert titles == [
        "Throughput (section 26.1)",
        "Latency (section 26.2)",
        "Frame loss rate (section 26.3)",
        "Back-to-back frames (section 26.4, RFC 9004)",
        "System recovery (section 26.5)",
        "Reset (section 26.6, RFC 6201)",
        "Conditions",
        "Differences from RFC 2544",
        "Results in words",
    ]
    assert "<script" not in report.html
    assert not re.search(r'(?:src|href)="(?!#)', report.html)
    assert "@page { size: A4" in report.html
    assert "Tests without a result" not in report.html


def test_the_tables_have_a_row_for_each_frame_size(report):
    for cell in ("1,488,095", "81,274", "Ethernet", "300.02 ms", "software reset of the devices"):
        assert f">{cell}</td>" in report.html, cell
    rows = re.findall(r"<tr><td>(64B|1518B)</td>", report.html)
    assert rows.count("64B") > rows.count("1518B") >= 4


def test_the_single_frame_is_one_of_the_tagged_frames(whole, report):
    run, _ = whole
    directions = [one for at_load in result_of(run, Rfc2544Test.LATENCY).latency for one in at_load.directions]
    assert all(one.least_us <= one.middle_us <= one.most_us for one in directions)
    middle = sum(one.middle_us for one in directions) / len(directions)
    assert f'<td class="number">{middle:,.1f}</td>' in report.html


def test_the_graphs_have_the_lines_and_the_axes_of_the_rfc(report):
    graphs = re.findall("<svg.*?</svg>", report.html, flags=re.DOTALL)
    throughput, loss = (re.findall("<text[^>]*>([^<]*)</text>", graph) for graph in graphs)
    assert {"frame size, bytes (a mix is at its average)", "theoretical maximum of the links", "throughput"} <= set(
        throughput
    )
    assert {"throughput, 64 B", "throughput, 1518 B"} <= set(re.findall("<title>([^<:]*):", graphs[0]))
    assert (loss.count("0"), loss.count("100")) == (2, 2)
    assert {"64B", "1518B"} <= set(loss)


def test_json_and_csv_have_all_values(whole, report):
    run, _ = whole
    data = json.loads(report.json)
    assert data["format"] == "lossratio-rfc2544/2"
    assert [part["test"] for part in data["parts"]] == [part.test.value for part in run.parts]
    assert len(data["differences"]) == len(differences_of(run))
    rows = {(row["frame_size"], row["test"]): row for row in csv.DictReader(io.StringIO(report.csv))}
    assert len(rows) == len(run.parts)
    recovery = rows["1518B", "recovery"]
    assert (float(recovery["value"]), recovery["unit"]) == (pytest.approx(0.5, abs=1e-3), "s")


def test_json_and_csv_have_latency_and_frame_loss(whole, report):
    rows = [row for row in csv.DictReader(io.StringIO(report.csv)) if row["frame_size"] == "64B"]
    values = {row["quantity"]: (float(row["value"]), row["unit"]) for row in rows if row["value"]}
    assert {row["quantity"]: row["unit"] for row in rows if not row["value"]} == {"latency": "", "frame loss rate": ""}
    directions = [one for at in result_of(whole[0], Rfc2544Test.LATENCY).latency for one in at.directions]
    assert values["latency, most"] == (max(one.most_us for one in directions), "us")
    loss = result_of(whole[0], Rfc2544Test.FRAME_LOSS).frame_loss.loads[0].frame_loss_ratio
    assert values["frame loss rate at 100 % of the maximum load"] == (pytest.approx(100 * loss), "%")
    (latency,) = (part for part in json.loads(report.json)["parts"][:6] if part["test"] == "latency")
    assert "latency, average" in {value["quantity"] for value in latency["values"]}


def test_doubts_and_frames_that_were_not_sent_are_in_all_three_formats(whole):
    run, _ = whole
    (number,) = (
        number
        for number, part in enumerate(run.parts)
        if (part.frame_size, part.test) == ("64B", Rfc2544Test.FRAME_LOSS)
    )
    loss = run.parts[number].result
    counts = {"directions": (), "sent_frames": 600_000, "unsent_frames": 200_000, "lost_frames": 400_000}
    starved = loss.trials[0].model_copy(update={**counts, "late_frames": 1})
    result = loss.model_copy(update={"trials": (starved, *loss.trials[1:])})
    parts = [*run.parts]
    parts[number] = replace(parts[number], result=result)
    report = rfc2544_report(replace(run, parts=tuple(parts)))
    missing = "200,000 frames unsent, 1 frame only late"
    assert f"<td>{missing}</td>" in report.html
    assert "Doubt: unsent frames: the generator left 25 % of the frames unsent" in report.html
    rows = [row for row in csv.DictReader(io.StringIO(report.csv)) if row["test"] == "frame loss"]
    said = {(row["frame_size"], row["doubts"]) for row in rows}
    assert said == {("64B", "unsent frames; late frames"), ("1518B", "")}
    (most,) = (row for row in rows if "at 100 %" in row["quantity"] and row["frame_size"] == "64B")
    assert most["reason"] == missing
    doubts = [[doubt["kind"] for doubt in part["doubts"]] for part in json.loads(report.json)["parts"]]
    assert doubts[number] == ["unsent frames", "late frames"]
    assert sum("unsent frames" in kinds for kinds in doubts) == 1


def changed(run, **conditions):
    """The run with other conditions in each result."""
    parts = [
        replace(
            part,
            result=part.result.model_copy(update={"conditions": part.result.conditions.model_copy(update=conditions)}),
        )
        for part in run.parts
    ]
    return replace(run, parts=tuple(parts))


def instead_of(run):
    """What a run did instead of each requirement that it did not meet."""
    return {item.text: item.instead for item in differences_of(run)}


@pytest.mark.parametrize(
    ("dut", "instead"),
    [
        ({"kind": "vpp", "is_router": True}, None),
        ({"kind": "frr", "is_router": True, "learned_routes": 2}, "routes are learned once"),
    ],
)
def test_routing_updates_concern_devices_that_learn_routes(whole, dut, instead):
    found = instead_of(changed(whole[0], duts={"DUT1": dut}))
    assert found.get("a routing update before each trial") == instead


def test_the_theoretical_limit_is_met_only_if_the_speed_of_the_links_is_known(whole):
    parts = [
        replace(part, result=part.result.model_copy(update={"max_load": load}))
        for part in whole[0].parts
        if (load := part.result.max_load.model_copy(update={"theoretical_maximum": None}))
    ]
    run = replace(whole[0], parts=tuple(parts))
    text = "with the theoretical limit"
    assert (text in instead_of(whole[0]), text in instead_of(run)) == (False, True)
    assert "load, % of the maximum load<" in rfc2544_report(run).html


def test_what_the_results_do_not_show_is_different(whole):
    # A simulated generator examines no frames.
    assert "only test frames count; their length, order, duplicates and gaps are reported" in instead_of(whole[0])
    loss = next(part for part in whole[0].parts if part.test is Rfc2544Test.FRAME_LOSS)
    cut_off = loss.result.frame_loss.model_copy(update={"is_complete": False})
    part = replace(loss, result=loss.result.model_copy(update={"frame_loss": cut_off}))
    found = instead_of(replace(whole[0], parts=(part,)))
    assert "from the maximum rate down to two trials without loss" in found
    assert found["throughput"] == "this test has no result in this run"


def test_a_run_without_a_result_complies_with_nothing():
    begun = datetime.now(timezone.utc)
    run = Rfc2544Run(SimpleNamespace(), {}, begun, begun, Forecast(0.0, 0.0, 0.0), parts=())
    assert verdict_of(differences_of(run)) == "not compliant"


def test_the_maximum_rate_is_that_of_the_medium_and_not_of_the_tester(whole):
    text = "the maximum rate is the theoretical one of the medium"
    at_most = []
    for part in whole[0].parts:
        load = part.result.max_load
        load = load.model_copy(update={"rate": load.theoretical_maximum})
        at_most.append(replace(part, result=part.result.model_copy(update={"max_load": load})))
    run = replace(whole[0], parts=tuple(at_most))
    assert (text in instead_of(whole[0]), text in instead_of(run)) == (True, False)


def scaled(rate, share):
    return rate.model_copy(update={"per_interface_fps": share * rate.per_interface_fps})


@pytest.mark.parametrize(
    ("changes", "most", "is_found"),
    [
        ({}, 1.0, True),
        ({"regular": False, "reason": "unsent frames, not lost ones, made the upper bound"}, 1.0, False),
        ({"regular": False, "reason": "the maximum load is a lower bound"}, 1.0, False),
        ({"regular": False, "reason": "the maximum load is a lower bound"}, 0.0, True),
    ],
)
def test_a_throughput_is_found_if_it_is_regular_or_the_rate_of_the_medium(whole, changes, most, is_found):
    parts = []
    for part in whole[0].parts:
        result = part.result
        if part.test is Rfc2544Test.THROUGHPUT:
            (one,) = result.goals
            one = one.model_copy(update={"result": one.result.model_copy(update=changes)})
            medium = scaled(result.max_load.theoretical_maximum, most)
            load = result.max_load.model_copy(update={"theoretical_maximum": medium})
            result = result.model_copy(update={"goals": (one,), "max_load": load})
        parts.append(replace(part, result=result))
    instead = instead_of(replace(whole[0], parts=tuple(parts))).get("throughput of each frame size")
    if is_found:
        assert instead is None
    else:
        assert instead == f"not found for 64B: {changes['reason']}; 1518B: {changes['reason']}"


def test_a_full_run_has_the_defaults_of_all_requests():
    request = Rfc2544Request(PROFILES).request_for(Rfc2544Test.RESET, PROFILES[0], 1e5)
    assert (request.repeats, request.lead, request.limit) == (5, 15.0, 10.0)
    quick = replace(REQUEST, settings={**QUICK, Rfc2544Test.RESET: {"lead": "2 s"}})
    assert quick.request_for(Rfc2544Test.RESET, PROFILES[0], 1e5).lead == 2.0


def test_a_quick_run_is_not_compliant_and_says_where(whole):
    differences = differences_of(whole[0])
    found = {(item.section, item.text, item.instead) for item in differences}
    assert ("26.2", "at least 20 repeats", "2") in found
    assert ("RFC 9004, 6.2", "settle time of 2 s, or as long as the burst", "0.1 s") in found
    assert ("9.1", "64, 128, 256, 512, 1024, 1280 and 1518 bytes", "64B, 1518B") in found
    assert ("24", "final trials of 60 s for the throughput", "0.5 s") in found
    goal = "goal QUICK_NDR: up to 50 % of trials may lose frames (RFC 9971)"
    assert ("26.1", "throughput: the highest rate at which no frame is lost", goal) in found
    assert verdict_of(differences) == "not compliant"


@pytest.mark.whole
def test_a_full_run_is_conditionally_compliant_except_for_its_frame_sizes(testbed, tmp_path):
    tests = tuple(test for test in Rfc2544Test if test is not Rfc2544Test.LATENCY)
    run = run_rfc2544(testbed, Rfc2544Request(PROFILES[:1], tests, FULL), place(tmp_path))
    differences = differences_of(run)
    assert verdict_of(differences) == "conditionally compliant, as far as the results show"
    different = {item.section for item in differences}
    assert {"9.1", "11, 12", "26.2"} <= different
    assert not different & {"24", "26.4", "26.5", "RFC 9004, 6.2", "RFC 6201, 4"}
    # Only one load of 10 % lost nothing, and there is no smaller one.
    (item,) = (item for item in differences if item.section == "26.3")
    assert item.instead == "it ended at the smallest load, before two trials in a row lost nothing"


@pytest.mark.whole
def test_a_run_that_was_interrupted_continues_in_the_middle(testbed, tmp_path):
    first = []

    def stop(part):
        first.append(part)
        if len(first) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_rfc2544(testbed, REQUEST, place(tmp_path), on_part=stop)
    measured, parts = [], []
    run = run_rfc2544(
        testbed,
        REQUEST,
        place(tmp_path, resume=tmp_path),
        on_progress=lambda progress: measured.append(len(parts)),
        on_part=parts.append,
    )
    assert min(measured) == 3
    latency = [result_of(run, Rfc2544Test.LATENCY), first[1].result]
    assert latency[0] == latency[1]
    assert [part.result.trials for part in run.parts[:3]] == [part.result.trials for part in first]


@pytest.mark.whole
def test_a_test_that_fails_does_not_end_the_others_and_is_in_the_report(testbed, tmp_path):
    run = run_rfc2544(testbed, replace(REQUEST, profiles=PROFILES[:1], reset=fail), place(tmp_path))
    assert run.problems == ("64B reset: the socket does not answer",)
    assert sum(part.result is None for part in run.parts) == 1
    report = rfc2544_report(run)
    assert "Tests without a result" in report.html
    assert "no result: the socket does not answer" in report.html
    assert "failed" in report.csv


def test_where_the_throughput_is_not_known_what_needs_it_is_not_measured(testbed, tmp_path):
    slow = replace(REQUEST, profiles=PROFILES[:1], max_load=100e3)
    with open_testbed(SIMULATED, dut="linux_bridge", options={"police": "1 kfps"}) as policed:
        run = run_rfc2544(policed, slow, place(tmp_path))
    results = {part.test.value: part.result is not None for part in run.parts}
    assert results["throughput"]
    assert results["frame loss"]
    assert not any(results[test] for test in ("latency", "back-to-back", "recovery", "reset"))
    assert any(
        problem.startswith("64B latency: This test needs the throughput without loss of 64B frames, but")
        for problem in run.problems
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"profiles": []}, "at least one frame size"),
        ({"profiles": PROFILES[::-1]}, "from the smallest to the largest, not 1518, 64"),
        ({"profiles": PROFILES[:1] * 2}, "each frame size once"),
        ({"settings": {Rfc2544Test.THROUGHPUT: {"goals": (PDR,)}}}, "allows no loss, but the goal PDR does"),
    ],
)
def test_a_request_that_makes_no_sense_measures_nothing(testbed, tmp_path, change, problem):
    with pytest.raises(SearchError, match=problem):
        run_rfc2544(testbed, replace(REQUEST, **change), place(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("generator", "problem"),
    [
        (TrexGenerator(kind="trex"), "trex cannot .* for recovery and reset.*throughput    latency    frame loss"),
        (XdpGenerator(kind="xdp"), "xdp cannot .* for reset.*back-to-back    recovery"),
    ],
)
def test_a_test_that_the_generator_cannot_do_is_refused_before_anything_is_measured(tmp_path, generator, problem):
    testbed = SimpleNamespace(request=SimpleNamespace(topology=SimpleNamespace(generator=generator)), duts=())
    with pytest.raises(SearchError, match=problem):
        run_rfc2544(testbed, REQUEST, place(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_full_time_is_some_hours_for_each_frame_size(testbed):
    forecast = forecast_of(testbed, Rfc2544Request(PROFILES[:1]))
    assert 1 < forecast.seconds / 3600 < 4


def test_the_report_is_written_as_three_files_or_is_one_error(whole, tmp_path):
    run, _ = whole
    paths = write_rfc2544_report(run, tmp_path / "new")
    assert sorted(path.name for path in paths) == ["rfc2544.csv", "rfc2544.html", "rfc2544.json"]
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"Cannot write the report .*rfc2544\.html"):
        write_rfc2544_report(run, tmp_path / "file")
