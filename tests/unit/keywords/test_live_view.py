"""The console while a measurement runs: a line that moves, lines for stages, and the command that goes on with it."""

from __future__ import annotations

import errno
import io
import os
import pty
import subprocess
import sys
import termios
from types import SimpleNamespace

import pytest
from robot_runs import ROOT, SIMULATED, write_suite
from waiting import PATIENCE

from lossratio.measurements import OneLine, Progress, Stages, live_on
from lossratio.measurements.progress import status_line
from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, Forecast, GoalBounds, MLRsearch, RelevantBounds
from lossratio.runs.console import Console
from lossratio.trials import TrialInput, TrialOutput, TrialResult

WIDTHS = (80, 100, 120, 200)


def progress(goals=(NDR, PDR), loss_ratio=0.0012, unsent=None, following=True, proved=(1_198_765.0, None)):
    return Progress(
        number=12,
        trial=TrialResult(TrialInput(1.0, 1_234_567.0), TrialOutput(loss_ratio, unsent_frames=unsent)),
        bounds=tuple(
            GoalBounds(goal, RelevantBounds(*proved), RelevantBounds(1_198_765.0, 1_234_567.0)) for goal in goals
        ),
        time_left=Forecast(80.0, 60.0, 150.0),
        purpose="NDR: prove the lower bound in 21 s; expected to be one",
        rule="proof",
        elapsed=20.0,
        following=TrialInput(10.0, 1_200_000.0) if following else None,
        aim="proving NDR",
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("goals", [(), (NDR,), (NDR, PDR), (NDR, PDR, RFC2544, TST009)], ids=len)
def test_the_line_fits_and_shows_the_trial_and_the_time_left(width, goals):
    line = status_line(progress(goals), 5.0, width, (2_400_000, 2_388_000))
    assert len(line) <= width
    # 12 trials took 20 s, so 80 s are 48 trials.
    assert line.startswith("trial 13 of about 60")
    assert "1min 15s left" in line


def test_a_wide_line_says_what_is_being_proved_where_and_for_how_long():
    assert status_line(progress(), 5.0, 200, (2_400_000, 2_388_000)) == (
        "trial 13 of about 60, proving NDR: 1.2000 Mfps, 5.0 of 10 s  2.4M sent, 0.5 % not back  "
        "NDR ~1.199-1.235M  PDR ~1.199-1.235M  1min 15s left (55s to 2min 25s)"
    )


def test_a_narrow_line_keeps_the_bounds():
    assert status_line(progress(), 5.0, 80) == (
        "trial 13 of about 60  NDR ~1.199-1.235M  PDR ~1.199-1.235M  1min 15s left"
    )


def test_nothing_moves_after_the_last_trial():
    assert status_line(progress(following=False), 1.0, 80) == ""


@pytest.mark.parametrize("width", WIDTHS)
def test_a_terminal_has_one_line_and_keeps_nothing_of_it(width):
    screen, now = io.StringIO(), [0.0]
    terminal = OneLine(screen, lambda: width, lambda: now[0])
    terminal.tick()
    terminal.show(progress())
    terminal.see(2_400_000, 2_388_000)
    now[0] = 4.0
    terminal.tick()
    # The next trial begins with nothing.
    terminal.show(progress())
    terminal.close()
    text = screen.getvalue()
    assert "\n" not in text
    *_, early, late, fresh, last = text.split("\r\x1b[K")
    assert (early, late, last) == (
        status_line(progress(), 0.0, width - 1),
        status_line(progress(), 4.0, width - 1, (2_400_000, 2_388_000)),
        "",
    )
    assert fresh == early


def test_a_terminal_keeps_a_line_for_each_trial_with_its_rule_if_asked():
    terminal = OneLine(io.StringIO(), lambda: 200, lambda: 0.0, verbose=True)
    terminal.show(progress())
    kept, moving = terminal._stream.getvalue().split("\n")
    assert kept.endswith("1min 20s left  proof")
    assert moving.startswith("trial 13")


def test_a_warning_during_a_trial_stands_above_the_line(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "__stderr__", screen)
    monkeypatch.setattr("lossratio.measurements.live_view._TICK", PATIENCE)
    warning = SimpleNamespace(level="WARN", message="The clock was set.")
    with OneLine(screen, lambda: 100, lambda: 0.0).moving() as line:
        line.show(progress())
        Console().message(warning)
        text = screen.getvalue()
    Console().message(warning)
    line = status_line(progress(), 0.0, 99)
    assert text == f"\r\x1b[K{line}\r\x1b[KWarning: The clock was set.\n\r\x1b[K{line}"
    assert screen.getvalue() == f"{text}\r\x1b[KWarning: The clock was set.\n"


@pytest.fixture
def terminal():
    """Both ends of a terminal of 40 columns."""
    main, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 40))
    with os.fdopen(end, "w") as stream:
        yield main, stream
    os.close(main)


def test_the_line_fits_its_terminal_although_standard_output_is_elsewhere(terminal, monkeypatch):
    main, stream = terminal
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "__stdout__", io.StringIO())
    with live_on(stream, pytest.fail) as show:
        show(progress())
        shown = os.read(main, 4096).decode().removeprefix("\r\x1b[K")
    assert shown.startswith("trial 13 of about 60")
    assert len(shown) < 40


def test_a_terminal_that_erases_no_line_gets_a_line_for_each_stage(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    said = []
    with live_on(terminal[1], said.append) as show:
        show(progress())
    assert said == [progress().line()]


def test_elsewhere_a_line_tells_of_each_stage_and_at_least_one_each_minute():
    said, now = [], [100.0]
    stages = Stages(said.append, lambda: now[0])
    for seconds, proved, is_told in (
        (0, (None, None), True),
        (30, (None, None), False),
        (61, (None, None), True),
        (62, (1_198_765.0, 1_234_567.0), True),
        (63, (1_198_765.0, 1_234_567.0), False),
    ):
        now[0] = 100.0 + seconds
        before = len(said)
        stages.show(progress(proved=proved))
        assert (len(said) > before) == is_told, seconds


def test_elsewhere_each_trial_has_its_line_if_asked():
    said = []
    stages = Stages(said.append, lambda: 0.0, verbose=True)
    stages.show(progress())
    stages.show(progress())
    assert len(said) == 2


def run_robot(tmp_path, *options):
    """Runs a search with quick goals on a terminal of 80 columns, and returns what it showed."""
    file = write_suite(
        tmp_path, "One\n    Find NDR And PDR    64B\n", settings="Suite Setup    Set Up Testbed    ${TOPOLOGY}"
    )
    command = [
        sys.executable,
        "-m",
        "robot",
        "--pythonpath",
        str(ROOT / "libraries"),
        "--variable",
        f"TOPOLOGY:{SIMULATED}",
    ]
    command += ["--variable", "GOALS:quick", "--outputdir", str(tmp_path / "out"), *options, str(file)]
    main, end = pty.openpty()
    done = subprocess.Popen(command, stdout=end, stderr=end, env={**os.environ, "COLUMNS": "80", "TERM": "xterm"})
    os.close(end)
    shown = b""
    try:
        while block := os.read(main, 1 << 16):
            shown += block
    except OSError:
        # The other end is closed.
        pass
    finally:
        os.close(main)
    assert done.wait(PATIENCE) == 0
    return shown.decode()


@pytest.mark.whole
def test_where_nobody_reads_the_console_any_more_the_run_goes_on(tmp_path):
    file = write_suite(tmp_path, "One\n    Measure MRR    64B    trials=2\n")
    reader, writer = os.pipe()
    os.close(reader)
    command = [
        sys.executable,
        "-m",
        "lossratio",
        "run",
        "--topology",
        SIMULATED,
        file,
        "--",
        "--outputdir",
        tmp_path / "out",
    ]
    paths = {**os.environ, "PYTHONPATH": f"{ROOT / 'libraries'}"}
    done = subprocess.run(
        list(map(str, command)), stdout=writer, stderr=subprocess.PIPE, text=True, check=False, env=paths
    )
    os.close(writer)
    assert done.returncode == 0
    assert done.stderr.endswith("lossratio run: 1 of 1 test passed. Exit status 0.\n")
    assert (tmp_path / "out" / "lossratio.html").exists()


def test_a_terminal_that_is_gone_fails_no_measurement():
    class Gone(io.StringIO):
        def flush(self):
            raise OSError(errno.EIO, "Input/output error")

    with OneLine(Gone(), columns=lambda: 80).moving() as terminal:
        terminal.show(progress())


@pytest.mark.whole
def test_robot_on_a_terminal_shows_a_line_that_fits_and_nothing_of_it_when_quiet(tmp_path):
    lines = [line for line in run_robot(tmp_path).split("\r\x1b[K") if line.startswith("trial ")]
    assert len(lines) >= 5
    assert all("QUICK_" in line for line in lines)
    assert all(len(line) < 80 for line in lines)
    assert "trial " not in run_robot(tmp_path, "--console", "quiet")


def test_the_next_trial_is_the_one_that_follows():
    from lossratio.measurements.throughput.measure import Throughput
    from lossratio.measurements.throughput.request import SearchRequest
    from lossratio.traffic import load_profile

    controller = MLRsearch([NDR], 1e4, 1e6)
    result = TrialResult(controller.next_trial(), TrialOutput(0.0, elapsed=1.25))
    controller.record(result)
    shown = Throughput().progress(
        SearchRequest(goals=[NDR], profile=load_profile("ethip4-udp", frame_size=64)), controller, result
    )
    assert shown.elapsed == 1.25
    assert shown.following == controller.next_trial()
