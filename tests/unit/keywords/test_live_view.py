"""The console while a measurement runs: rows that fit, a line that moves, and the command that goes on with it."""

from __future__ import annotations

import errno
import io
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from robot.run import RobotFramework
from robot_runs import ROOT, SIMULATED, write_suite

from lossratio.keywords.live_view import Terminal, resuming_command
from lossratio.measurements import Progress, heading, status_line
from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, Forecast, GoalBounds, MLRsearch, RelevantBounds
from lossratio.trials import TrialInput, TrialOutput, TrialResult

WIDTHS = (80, 100, 120, 200)


def progress(goals=(NDR, PDR), loss_ratio=0.0012, unsent=None, following=True):
    return Progress(
        number=12,
        trial=TrialResult(TrialInput(1.0, 1_234_567.0), TrialOutput(loss_ratio, unsent_frames=unsent)),
        bounds=tuple(
            GoalBounds(goal, RelevantBounds(1_198_765.0, None), RelevantBounds(1_198_765.0, 1_234_567.0))
            for goal in goals
        ),
        time_left=Forecast(80.0, 60.0, 150.0),
        purpose="NDR: prove the lower bound in 21 s; expected to be one",
        rule="proof",
        elapsed=20.0,
        following=TrialInput(10.0, 1_200_000.0) if following else None,
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("goals", [(), (NDR,), (NDR, PDR), (NDR, PDR, RFC2544, TST009)], ids=len)
@pytest.mark.parametrize("unsent", [None, 123_456])
@pytest.mark.parametrize("verbose", [False, True])
def test_a_row_fits_with_the_bounds_of_each_goal(width, goals, unsent, verbose):
    row = progress(goals, unsent=unsent).row(width, verbose=verbose)
    assert len(row) <= width
    assert row.split()[:4] == ["12", "1.2346", "Mfps", "1"]
    shown = [str(goal) for goal in goals if f"{goal} ~" in row]
    assert len(shown) == len(goals) or f"+{len(goals) - len(shown)}" in row
    assert len(shown) >= min(2, len(goals))


def test_a_wide_row_has_whole_bounds_and_says_why_the_trial_was_chosen_if_asked():
    row = progress().row(200)
    assert row.endswith("PDR ~1.1988 to 1.2346 Mfps")
    assert progress().row(200, verbose=True).startswith(f"{row}  ")
    assert "proof  NDR: prove the lower bound in 21 s" in progress().row(200, verbose=True)
    assert "NDR ~1.199-1.235M" in progress().row(80)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_moving_line_fits_and_shows_trial_bar_and_time_left(width):
    begun, later = (status_line(progress(), seconds, width) for seconds in (0.0, 5.0))
    assert max(len(begun), len(later)) <= width
    assert "20 %" in begun
    assert "25 %" in later
    assert "trial 13: 1.2000 Mfps, 5.0 of 10 s" in later
    assert "1min 15s left (55s to 2min 25s)" in later


@pytest.mark.parametrize("width", WIDTHS)
def test_the_moving_line_shows_the_frames_of_the_running_trial(width):
    line = status_line(progress(), 5.0, width, (2_400_000, 2_388_000))
    assert len(line) <= width
    assert "5.0 of 10 s  2.4M sent, 0.5 % not back  1min 15s left" in line
    assert ("(55s to 2min 25s)" in line) == (width > 80)
    terminal = Terminal(io.StringIO(), lambda: width, lambda: 0.0)
    terminal.show(progress())
    terminal.see(2_400_000, 2_388_000)
    terminal.tick()
    assert "2.4M sent, 0.5 % not back" in terminal._stream.getvalue()
    # The next trial begins with nothing.
    terminal.show(progress())
    assert "sent" not in terminal._stream.getvalue().rpartition("\r")[2]


def test_nothing_moves_after_the_last_trial():
    assert status_line(progress(following=False), 1.0, 80) == ""


@pytest.mark.parametrize("width", WIDTHS)
def test_a_terminal_gets_one_row_for_each_trial(width):
    screen, now = io.StringIO(), [0.0]
    terminal = Terminal(screen, lambda: width, lambda: now[0])
    terminal.tick()
    terminal.show(progress())
    now[0] = 4.0
    terminal.tick()
    terminal.show(progress())
    terminal.close()
    text = screen.getvalue()
    rows = text.split("\n")
    visible = [row.rpartition("\x1b[K")[2] for row in rows]
    assert visible == [heading(width - 1), *[progress().row(width - 1)] * 2, ""]
    assert "4.0 of 10 s" in text
    assert all(len(part) < width for row in rows for part in row.split("\r\x1b[K"))


def test_a_terminal_says_why_a_trial_was_chosen_if_asked():
    for verbose in (False, True):
        terminal = Terminal(io.StringIO(), lambda: 200, lambda: 0.0, verbose=verbose)
        terminal.show(progress())
        assert ("proof  NDR: prove" in terminal._stream.getvalue()) == verbose


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
    done = subprocess.Popen(command, stdout=end, stderr=end, env={**os.environ, "COLUMNS": "80"})
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
    assert done.wait(60) == 0
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
    assert (done.returncode, done.stderr) == (0, "lossratio run: 1 of 1 test passed. Exit status 0.\n")
    assert (tmp_path / "out" / "lossratio.html").exists()


def test_a_terminal_that_is_gone_fails_no_measurement():
    class Gone(io.StringIO):
        def flush(self):
            raise OSError(errno.EIO, "Input/output error")

    with Terminal(Gone(), columns=lambda: 80).moving() as terminal:
        terminal.show(progress())


@pytest.mark.whole
def test_robot_on_a_terminal_shows_rows_that_fit_and_nothing_of_them_when_quiet(tmp_path):
    rows = [line for line in run_robot(tmp_path).split("\r\n") if re.search(r"kfps +0\.5 s", line)]
    assert len(rows) >= 5
    assert all(row.count("QUICK_") >= 2 for row in rows)
    assert all(len(row.rpartition("\x1b[K")[2]) < 80 for row in rows)
    assert "kfps" not in run_robot(tmp_path, "--console", "quiet")


def test_the_command_that_goes_on_is_exact():
    words = ["/venv/bin/robot", "--include", "64B", "my suite.robot"]
    assert resuming_command(words, Path("out")) == "robot --variable RESUME:out --include 64B 'my suite.robot'"
    words[0] = "/lib/robot/__main__.py"
    assert resuming_command(words, Path("out")).startswith("python -m robot --variable RESUME:out --include")
    assert resuming_command(["/venv/bin/lossratio", "run"], Path("out")) is None


@pytest.mark.parametrize(
    "earlier",
    [
        ["--variable", "RESUME:first"],
        ["-v", "resume:first"],
        ["-vRESUME:first"],
        ["--variable=RESUME:first"],
        ["--Variable", "RE_SUME:first", "--variable", "RESUME:second"],
    ],
)
def test_a_run_that_was_resumed_goes_on_from_itself(earlier):
    words = ["robot", "--variable", "GOALS:quick", *earlier, "-v", "TOPOLOGY:lab.yaml", "suite.robot"]
    command = shlex.split(resuming_command(words, Path("out")))
    options, _ = RobotFramework().parse_arguments(command[1:])
    assert options["variable"] == ["RESUME:out", "GOALS:quick", "TOPOLOGY:lab.yaml"]


@pytest.mark.parametrize("by", [["--argumentfile", "{}"], ["-A{}"], ["--ArgumentFile={}"]])
def test_a_run_that_an_argument_file_resumed_goes_on_from_itself(tmp_path, by):
    file = tmp_path / "options.args"
    file.write_text("# of the lab\n--variable RESUME:first\n-v TOPOLOGY:lab.yaml\nsuite.robot\n")
    words = ["robot", "--variable", "GOALS:quick", *(word.format(file) for word in by)]
    options, sources = RobotFramework().parse_arguments(shlex.split(resuming_command(words, Path("out")))[1:])
    assert options["variable"] == ["RESUME:out", "GOALS:quick", "TOPOLOGY:lab.yaml"]
    assert sources == ["suite.robot"]


def test_an_argument_file_that_resumes_nothing_keeps_its_name(tmp_path):
    file = tmp_path / "options.args"
    file.write_text("-v TOPOLOGY:lab.yaml\n")
    command = shlex.split(resuming_command(["robot", "-A", str(file), "suite.robot"], Path("out")))
    assert command == ["robot", "--variable", "RESUME:out", "-A", str(file), "suite.robot"]


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
