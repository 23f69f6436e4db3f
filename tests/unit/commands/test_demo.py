"""`lossratio demo` in an empty folder ends with a number, its truth and a page."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from lossratio.commands.main import commands
from lossratio.runs import RunOutcome
from lossratio.values.exit_status import ExitStatus


@pytest.mark.whole
def test_where_no_testbed_can_be_built_the_demo_is_simulated_and_says_why(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lossratio.testbed.local.why_unavailable", lambda: "not installed: sshd")
    done = CliRunner().invoke(commands, ["demo"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Simulated instead of real: not installed: sshd\n")
    *_, truth, ndr, pdr, way_on = done.output.splitlines()
    assert truth == "The true limits of the simulated policer (50,000 frames/s and a burst of 1,000 frames):"
    assert "NDR  51,000 fps per interface: between the bounds" in ndr
    assert "PDR  51,256 fps per interface: between the bounds" in pdr
    assert Path("results/demo/lossratio.html").stat().st_size > 10_000
    assert way_on == "Next, your own network: lossratio between CLIENT SERVER"


@pytest.mark.parametrize("status", [ExitStatus.FAILED, ExitStatus.INFRASTRUCTURE, ExitStatus.UNAVAILABLE])
def test_where_the_machine_is_too_busy_the_demo_sends_less_and_says_why(status, tmp_path, monkeypatch):
    asked = []

    def run(request):
        asked.append((request.job.name, str(request.topologies[0])))
        return RunOutcome(status, error="local is not fit now.") if len(asked) == 1 else RunOutcome(ExitStatus.PASSED)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lossratio.testbed.local.why_unavailable", lambda: None)
    monkeypatch.setattr("lossratio.runs.run", run)
    done = CliRunner().invoke(commands, ["demo"])
    assert (done.exit_code, asked) == (0, [("demo.yaml", "local"), ("demo-busy.yaml", "local")])
    assert "Measuring again with a lower limit: local is not fit now." in done.output
    assert "Simulated" not in done.output


def test_where_the_machine_is_too_busy_for_less_traffic_the_demo_is_simulated_and_says_why(tmp_path, monkeypatch):
    asked = []

    def run(request):
        asked.append((request.job.name, str(request.topologies[0])))
        if len(asked) == 3:
            return RunOutcome(ExitStatus.PASSED)
        return RunOutcome(ExitStatus.INFRASTRUCTURE, error=f"local is not fit for {request.job.stem}.")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lossratio.testbed.local.why_unavailable", lambda: None)
    monkeypatch.setattr("lossratio.runs.run", run)
    done = CliRunner().invoke(commands, ["demo"])
    assert asked == [("demo.yaml", "local"), ("demo-busy.yaml", "local"), ("demo.yaml", "simulated")]
    assert "Simulated instead of real: local is not fit for demo-busy." in done.output


@pytest.mark.parametrize(("is_regular", "jobs"), [(True, ["demo"]), (False, ["demo", "demo-busy"])])
def test_where_a_number_is_irregular_the_demo_sends_less_and_says_why(is_regular, jobs, tmp_path, monkeypatch):
    asked = []

    def run(request):
        asked.append(request)
        return RunOutcome(ExitStatus.PASSED, tmp_path / "results")

    reason = None if is_regular else "unsent frames, not lost ones, made the upper bound"
    goal = SimpleNamespace(goal=SimpleNamespace(name="NDR"), result=SimpleNamespace(regular=is_regular, reason=reason))
    found = SimpleNamespace(results=lambda: (SimpleNamespace(goals=(goal,), conditions=None),))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lossratio.testbed.local.why_unavailable", lambda: None)
    monkeypatch.setattr("lossratio.runs.run", run)
    monkeypatch.setattr("lossratio.results.RunDirectory", lambda directory: found)
    done = CliRunner().invoke(commands, ["demo"])
    assert done.exit_code == 0
    assert [request.job.stem for request in asked] == jobs
    said = "Measuring again with a lower limit: NDR is irregular: unsent frames, not lost ones, made the upper bound."
    assert (said in " ".join(done.output.split())) is not is_regular
    # A first search that the machine prolongs ends after minutes; the second one has the time that it needs.
    assert [request.test_timeout is None for request in asked] == [False, True][: len(jobs)]


@pytest.mark.parametrize("status", [ExitStatus.BAD_INPUT, ExitStatus.INTERRUPTED])
def test_a_demo_that_is_stopped_or_cannot_write_is_not_simulated(status, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lossratio.testbed.local.why_unavailable", lambda: None)
    monkeypatch.setattr("lossratio.runs.run", lambda request: RunOutcome(status, error="stopped"))
    done = CliRunner().invoke(commands, ["demo"])
    assert done.exit_code == status
    assert "Simulated" not in done.output


def test_a_demo_that_is_stopped_shows_what_is_kept_and_how_to_go_on(lossratio, monkeypatch):
    stopped = RunOutcome(ExitStatus.INTERRUPTED, Path("results/my demo"))
    monkeypatch.setattr("lossratio.testbed.local.why_unavailable", lambda: None)
    monkeypatch.setattr("lossratio.runs.run", lambda request: stopped)
    shown = "All trials are kept in results/my demo. To continue: lossratio run --resume 'results/my demo'\n"
    assert lossratio("demo") == (ExitStatus.INTERRUPTED, "", shown)


@pytest.mark.parametrize("output", ["/proc/nope", "file", "file/x"])
def test_a_directory_that_takes_no_files_is_refused_before_a_testbed_is_built(output, lossratio, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr("lossratio.testbed.local.why_unavailable", lambda: pytest.fail("looked for a testbed"))
    status, out, err = lossratio("demo", "--output", output)
    assert (status, out) == (ExitStatus.BAD_INPUT, "")
    assert err.startswith(f"Error: {output}: ")
    assert err.endswith(". Choose another directory: --output DIR.\n")


def test_a_full_disk_stays_a_failure_of_the_infrastructure(lossratio, monkeypatch):
    def full(**settings):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    status, _, err = lossratio("demo")
    assert status == ExitStatus.INFRASTRUCTURE
    assert err == "Error: results: No space left on device. Choose another directory: --output DIR.\n"
