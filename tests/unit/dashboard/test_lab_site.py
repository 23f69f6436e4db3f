"""The site over a history: its slices, bad input, and what is written, served and kept."""

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from dataclasses import replace
from datetime import timedelta
from queue import Queue

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from history_examples import START, entry, nightly
from waiting import PATIENCE

from lossratio.commands.trend import site as command
from lossratio.dashboard import SiteRequest, serve_site, write_site
from lossratio.errors import ReportError, StorageError
from lossratio.history import History, TrendRequest, analyse, describe_trend
from lossratio.history.result_readings import Reading


def slice_of(folder, name):
    """The data in a slice, as the page gets it."""
    text = (folder / "data" / f"{name}.js").read_text("ascii")
    given, data = re.fullmatch(r'lossratio\.take\("(.*?)",(.*)\);\n', text).groups()
    assert given == name
    return json.loads(data)


def slices_of(folder, kind):
    return [slice_of(folder, path.stem) for path in sorted((folder / "data").glob(f"{kind}-*.js"))]


@pytest.fixture
def history(tmp_path):
    history = History(tmp_path / "history")
    for day in range(8):
        value = 1e6 + 100 * (day % 3) if day < 5 else 9e5
        history.add([nightly(day, value), nightly(day, 2e6, testbed="lab-2")])
    return history


@pytest.mark.whole
def test_a_full_disk_is_named_with_the_way_out(history, tmp_path, monkeypatch):
    def write(path, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("lossratio.dashboard.site._write", write)
    said = r"site: No space left on device\. Free some space, and repeat the command\.$"
    with pytest.raises(StorageError, match=said):
        write_site(history, tmp_path / "site", SiteRequest("lab"))


@pytest.mark.whole
def test_the_site_has_the_verdicts_of_trend(history, tmp_path):
    (history.path / "annotations.yaml").write_text(
        "changes:\n  - {date: 2026-01-06, note: new kernel, testbed: lab-2}\n"
    )
    site = write_site(history, tmp_path / "site", SiteRequest("lab"))
    analysis = analyse(history, TrendRequest())
    assert (site.results, site.series, site.alarms, site.problems) == (16, 2, 1, ())
    shown = {data["testbed"]: data["series"][0] for data in slices_of(tmp_path / "site", "test")}
    for trend in analysis.trends:
        series = shown[trend.series.key.testbed]
        assert (series["verdict"], series["text"]) == (trend.verdict.value, describe_trend(trend))
        assert [step[2] for step in series["steps"]] == [step.mean for step in trend.steps]
        assert [point[1] for point in series["points"]] == trend.series.values.tolist()
    assert [step[:2] for step in shown["lab-1"]["steps"]] == [[0, 4], [5, 7]]
    assert shown["lab-2"]["notes"] == [["2026-01-06", "new kernel"]]
    index = slice_of(tmp_path / "site", "index")
    assert [row[5][0][15] for row in index["tests"]] == [describe_trend(analysis.trends[0]), ""]


@pytest.mark.whole
def test_a_test_has_its_telemetry_over_nights(history, tmp_path):
    write_site(history, tmp_path / "without", SiteRequest("lab"))
    assert [data["telemetry"] for data in slices_of(tmp_path / "without", "test")] == [[], []]
    for day in range(8, 10):
        clocks = Reading("clocks per packet", "DUT1 ip4-lookup", 30.0 + day, "cycles")
        history.add([replace(nightly(day, 9e5), readings=(clocks,))])
    write_site(history, tmp_path / "site", SiteRequest("lab"))
    shown = {data["testbed"]: data["telemetry"] for data in slices_of(tmp_path / "site", "test")}
    times = [int((START + timedelta(days=day)).timestamp()) for day in (8, 9)]
    assert shown == {"lab-1": [["clocks per packet", "DUT1 ip4-lookup", "cycles", times, [38.0, 39.0]]], "lab-2": []}


@pytest.mark.whole
def test_two_bands_are_two_levels_and_no_steps(tmp_path):
    history = History(tmp_path / "history")
    randomness = np.random.default_rng(1)
    levels = np.where(randomness.random(40) < 0.4, 1.1e6, 1e6)
    for day, value in enumerate(randomness.normal(levels, 2e3).tolist()):
        history.add([nightly(day, value)])
    write_site(history, tmp_path / "site", SiteRequest("lab"))
    (trend,) = analyse(history, TrendRequest()).trends
    (test,) = slices_of(tmp_path / "site", "test")
    assert trend.bands is not None
    assert test["series"][0]["steps"] == [[step.first, step.last, *step.levels] for step in trend.steps]
    assert len(test["series"][0]["steps"][0]) == 4
    assert "two bands" in slice_of(tmp_path / "site", "index")["tests"][0][5][0][15]


@pytest.mark.whole
def test_results_of_another_meaning_are_shown_and_marked(tmp_path):
    history = History(tmp_path / "history")
    for day in range(6):
        history.add([nightly(day, 1e6, measured_as="new" if day > 1 else "old", generator="trex")])
    write_site(history, tmp_path / "site", SiteRequest("lab"))
    (test,) = slices_of(tmp_path / "site", "test")
    assert len(test["series"][0]["points"]) == 6
    assert test["series"][0]["alike"] == [2, 3, 4, 5]
    (newest,) = slices_of(tmp_path / "site", "newest")
    assert len(newest["rows"]) == 4


def test_rates_are_per_interface_and_have_the_factor_of_the_aggregate_beside_them(tmp_path):
    history = History(tmp_path / "history")
    history.add([nightly(day, 2e6, aggregate_factor=2.0) for day in range(3)])
    write_site(history, tmp_path / "site", SiteRequest("lab"))
    (test,) = slices_of(tmp_path / "site", "test")
    (series,) = test["series"]
    assert (series["factor"], [point[1] for point in series["points"]]) == (2.0, [1e6] * 3)
    for run in slices_of(tmp_path / "site", "job"):
        assert [(row[8], row[-1]) for row in run["rows"]] == [(1e6, 2.0)]


def test_two_runs_of_one_name_are_two_runs(tmp_path):
    history = History(tmp_path / "history")
    for hour in (0, 5):
        began = START + timedelta(hours=hour)
        history.add([nightly(hour / 24, 1e6, run="nightly", run_started=began)])
    write_site(history, tmp_path / "site", SiteRequest("lab", runs="https://lab/runs/{run}/page.html"))
    jobs = slice_of(tmp_path / "site", "jobs")["rows"]
    assert [(job[2], job[5], job[10]) for job in jobs] == [("nightly", 1, "https://lab/runs/nightly/page.html")] * 2
    assert len({job[0] for job in jobs}) == 2
    assert len(slices_of(tmp_path / "site", "job")) == 2


def test_a_history_of_an_earlier_version_has_runs_by_day(tmp_path):
    history = History(tmp_path / "history")
    history.add([entry(0, 1e6), entry(0.1, 2e6, quantity="MRR"), entry(1, 1e6)])
    for path in history.path.rglob("*.parquet"):
        table = pq.ParquetFile(path).read()
        pq.write_table(table.drop(["run", "run_started", "tags", "frame_size_bytes", "build", "latency"]), path)
    write_site(history, tmp_path / "site", SiteRequest("lab"))
    jobs = slice_of(tmp_path / "site", "jobs")
    assert [(job[2], job[5]) for job in jobs["rows"]] == [(None, 1), (None, 2)]
    assert jobs["builds"] == [None]


def test_the_run_in_the_archive_is_linked(tmp_path):
    archive = tmp_path / "archive"
    history = History(archive / "history")
    history.add([nightly(0, 1e6)])
    packed = archive / "runs" / "testbed=lab-1" / "date=2026-01-01" / "030000-abc.tar.gz"
    packed.parent.mkdir(parents=True)
    packed.touch()
    write_site(history, tmp_path / "site", SiteRequest("lab"))
    (job,) = slice_of(tmp_path / "site", "jobs")["rows"]
    assert job[10] == "../archive/runs/testbed%3Dlab-1/date%3D2026-01-01/030000-abc.tar.gz"


@pytest.mark.whole
def test_damaged_and_newer_files_are_named_and_the_rest_is_shown(history, tmp_path):
    first, *_, last = sorted(history.path.rglob("*.parquet"))
    first.write_bytes(first.read_bytes()[:100])
    pq.write_table(pa.table({"test": ["a"], "colour": ["red"]}), last.with_name("newer.parquet"))
    answer = CliRunner().invoke(command, [str(history.path), "--output", str(tmp_path / "site")])
    assert answer.exit_code == 0, answer.output
    assert f"Not read: {first} is damaged" in answer.output
    assert "newer.parquet is left out: it was written by a newer version" in answer.output
    assert "15 results in 2 series" in answer.output
    assert len(slice_of(tmp_path / "site", "index")["problems"]) == 2


@pytest.mark.whole
@pytest.mark.parametrize("has_folder", [True, False])
def test_no_results_at_all_are_one_line_and_an_earlier_site_stays(history, tmp_path, has_folder):
    write_site(history, tmp_path / "site", SiteRequest("lab"))
    before = (tmp_path / "site" / "index.html").read_bytes()
    empty = tmp_path / "empty"
    if has_folder:
        empty.mkdir()
    with pytest.raises(ReportError, match="empty is not a history: it has no files like") as error:
        write_site(History(empty), tmp_path / "site", SiteRequest("lab"))
    assert "\n" not in str(error.value)
    assert (tmp_path / "site" / "index.html").read_bytes() == before


def test_nothing_in_a_name_can_end_a_script_or_leave_the_folder(tmp_path):
    evil = "</script><script>alert(1)</script>../../\u2028"
    history = History(tmp_path / "history")
    history.add([nightly(0, 1e6, test=f"Suite.{evil}", run=evil, build=evil, tags=(evil,), testbed=evil)])
    write_site(history, tmp_path / "site", SiteRequest(evil))
    for path in (tmp_path / "site" / "data").iterdir():
        assert re.fullmatch(r"[a-z0-9-]+\.js", path.name)
        assert "<" not in path.read_text("ascii")
    assert "<script>alert" not in (tmp_path / "site" / "index.html").read_text()


@pytest.mark.whole
def test_a_second_build_writes_what_changed_and_removes_what_is_gone(history, tmp_path):
    folder = tmp_path / "site"
    write_site(history, folder, SiteRequest("lab"))
    index = (folder / "data" / "index.js").read_text()
    again = write_site(history, folder, SiteRequest("lab"))
    # The time when it was made may have passed a minute: then index and page differ.
    assert again.written == (0 if (folder / "data" / "index.js").read_text() == index else 2)
    for path in history.path.rglob("testbed=lab-2/*/*.parquet"):
        path.unlink()
    write_site(history, folder, SiteRequest("lab"))
    assert [data["testbed"] for data in slices_of(folder, "test")] == ["lab-1"]
    assert len(slices_of(folder, "newest")) == 1


@pytest.mark.parametrize("name", ["index.html", "data/own.js"])
def test_a_folder_with_something_else_is_kept(history, tmp_path, name):
    own = tmp_path / "site" / name
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    with pytest.raises(ReportError, match="Name another folder with --output"):
        write_site(history, tmp_path / "site", SiteRequest("lab"))
    assert own.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["h"], "--output, or serve it with --serve"),
        (["h", "--output", "o", "--runs", "javascript:alert(1)"], "begins with http://"),
        (["s3://bucket/a", "--add", "run", "--output", "o"], "lossratio archive send"),
        (["h", "--output", "o", "--port", "70000"], "70000"),
    ],
)
def test_wrong_options_say_what_is_right(arguments, words):
    answer = CliRunner().invoke(command, arguments)
    assert answer.exit_code == 2
    assert words in " ".join(answer.output.split())


def test_a_port_that_is_taken_is_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ReportError, match=r"cannot be used: .* Choose another one, or leave out --port"):
            serve_site(tmp_path, taken.getsockname()[1], print)


@pytest.mark.whole
def test_a_look_at_the_site_ends_with_ctrl_c_and_leaves_nothing(history, tmp_path):
    command = [sys.executable, "-m", "lossratio", "archive", "site", str(history.path), "--serve"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as run:
        assert "16 results in 2 series" in run.stdout.readline()
        address = run.stdout.readline().split()[0]
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:  # noqa: S310
            assert b"lossratio archive site" in answer.read()
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=PATIENCE)
    assert (run.returncode, errors) == (0, "")
    assert not list(tmp_path.glob("lossratio-site-*"))


@pytest.mark.whole
def test_a_site_is_served_to_this_machine_read_only(history, tmp_path):
    write_site(history, tmp_path / "site", SiteRequest("lab"))
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "site" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "site" / "folder").symlink_to(tmp_path)
    addresses = Queue()
    threading.Thread(target=serve_site, args=(tmp_path / "site", 0, addresses.put), daemon=True).start()
    address = addresses.get(timeout=PATIENCE)
    assert address.startswith("http://127.0.0.1:")

    def status(path, **options):
        request = urllib.request.Request(address + path, **options)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    assert status("") == (200, (tmp_path / "site" / "index.html").read_bytes())
    assert status("data/index.js?v=1")[0] == 200
    assert status("data/")[0] == 404
    assert status("../secret")[0] == 404
    assert status("link")[0] == 404
    assert status("folder/secret")[0] == 404
    assert status("folder/site/index.html")[0] == 404
    assert status("%00")[0] == 404
    assert status("x" * 5000)[0] == 404
    assert status("", method="PUT", data=b"x")[0] == 501
    assert status("", headers={"Host": "evil.example"})[0] == 403
    assert status("data/index.js", headers={"Origin": "http://evil.example"})[0] == 403
