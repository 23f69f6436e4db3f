import json
import os
import shutil
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from history_examples import entry

from lossratio.commands.trend import ack, trend
from lossratio.report.history.alerts import Alert, Alerts
from lossratio.report.history.store import History

STEADY = [100e3, 100.2e3, 99.9e3, 100.1e3, 99.8e3, 100.0e3, 100.1e3, 99.9e3]
FALLEN = [*STEADY, 90e3, 90.1e3]
_, _, PAGE = (
    (Path(__file__).parents[3] / "docs" / "how-to" / "watch-a-trend.md").read_text().partition("## Get an alert")
)


@pytest.fixture
def night(tmp_path):
    """Adds results to a history, and reports its trend with the alerts of a file."""

    def run(values, *alerts, text=None):
        history = tmp_path / "history"
        entries = [entry(day, value, outcome="measured" if value else "failed") for day, value in enumerate(values)]
        History(history).add(entries)
        file = tmp_path / "alerts.yaml"
        patient = [{"timeout": 600.0, **alert} for alert in alerts]
        file.write_text(text or json.dumps({"alerts": patient}))
        return CliRunner().invoke(trend, [str(history), f"--alert={file}"])

    return run


@pytest.fixture
def webhook():
    """A web server that keeps what is posted; its answer can be changed."""
    posted = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append((self.path, dict(self.headers), json.loads(body)))
            self.send_response(server.answer)
            self.end_headers()

        def log_message(self, *arguments):
            """Is silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.answer, server.posted = 200, posted
    server.url = f"http://127.0.0.1:{server.server_port}/hook"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def command(path, name="note", **fields):
    """An alert that adds its input to a file."""
    code = f"import sys; open({str(path)!r}, 'a').write(sys.stdin.read())"
    return {"name": name, "command": [sys.executable, "-c", code], **fields}


@pytest.mark.whole
def test_a_command_gets_what_changed_and_where(night, tmp_path):
    answer = night(FALLEN, command(tmp_path / "sent"))
    assert answer.exit_code == 3
    assert answer.stderr == "Alert 'note' was sent: 1 change.\n"
    what, where, newest = (tmp_path / "sent").read_text().splitlines()
    assert what.startswith(
        "What: regression: Suite.64B-ndrpdr, NDR, on lab-1: 100.00 kfps to 90.050 kfps (-9.95 %) since"
    )
    assert where == "Where: testbed lab-1, test Suite.64B-ndrpdr, NDR"
    assert newest == "Newest result: 2026-01-10 03:00 UTC"


@pytest.mark.whole
def test_the_next_night_sends_no_second_alert_for_the_same_change(night, tmp_path):
    sent = tmp_path / "sent"
    night(FALLEN, command(sent))
    once = sent.read_text()
    for values in ([*FALLEN, 90.2e3], [*FALLEN, 90.2e3, 89.9e3]):
        answer = night(values, command(sent))
        assert (answer.exit_code, answer.stderr) == (3, "")
    assert sent.read_text() == once
    answer = night([*FALLEN, 90.2e3, 89.9e3, None], command(sent))
    assert "no value any more" in sent.read_text().removeprefix(once)
    twice = sent.read_text()
    night([*FALLEN, 90.2e3, 89.9e3, None, 90e3, 80e3, 80.1e3], command(sent))
    assert "90.050 kfps to" not in sent.read_text().removeprefix(twice)
    assert "since 2026-01-15" in sent.read_text().removeprefix(twice)


@pytest.mark.whole
def test_who_explained_an_alarm_and_why_goes_to_those_who_got_the_alarm_and_to_nobody_else(night, tmp_path):
    sent, other = tmp_path / "sent", tmp_path / "other"
    night(FALLEN, command(sent), command(other, name="other", quantity="PDR"))
    alarm = sent.read_text()
    words = [str(tmp_path / "history"), "new kernel", "--by=ann", f"--alert={tmp_path / 'alerts.yaml'}"]
    answer = CliRunner().invoke(ack, words)
    assert answer.stderr == "Alert 'note' was sent: 1 change.\n"
    explained = sent.read_text().removeprefix(alarm)
    assert explained.startswith("What: known change: Suite.64B-ndrpdr, NDR, on lab-1: ")
    assert "known: new kernel (ann)" in explained
    answer = night([*FALLEN, 90.2e3], command(sent), command(other, name="other", quantity="PDR"))
    assert (answer.exit_code, answer.stderr, other.exists()) == (0, "", False)


@pytest.mark.whole
def test_an_alert_that_failed_is_one_line_and_is_tried_again(night, tmp_path):
    broken = {"name": "note", "command": "sh -c 'echo no such list >&2; exit 4'"}
    answer = night(FALLEN, broken, command(tmp_path / "other", name="other"))
    assert answer.exit_code == 3
    assert answer.stdout.startswith("1 of 1 series got worse and did not recover: ")
    first, second = answer.stderr.splitlines()
    assert first == (
        "Alert 'note' was not sent and will be tried again next time: sh ended with exit status 4: no such list."
    )
    assert second == "Alert 'other' was sent: 1 change."
    answer = night(FALLEN, command(tmp_path / "sent"), command(tmp_path / "other", name="other"))
    assert answer.stderr == "Alert 'note' was sent: 1 change.\n"


@pytest.mark.whole
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["/no/such/program"], "/no/such/program cannot be run on this machine: No such file or directory"),
        ([sys.executable, "-c", "import time; time.sleep(60)"], "took longer than 0.5 s"),
    ],
)
def test_a_command_that_is_missing_or_hangs_is_one_line(night, words, problem):
    answer = night(FALLEN, {"name": "note", "command": words, "timeout": 0.5})
    assert answer.exit_code == 3
    assert problem in answer.stderr
    assert answer.stderr.count("\n") == 1


@pytest.mark.whole
def test_steady_trends_and_other_testbeds_send_nothing(night, tmp_path):
    assert night(STEADY, command(tmp_path / "sent")).exit_code == 0
    assert night(FALLEN, command(tmp_path / "sent", testbed="lab-2")).exit_code == 3
    assert not (tmp_path / "sent").exists()


@pytest.mark.whole
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (200, "Alert 'chat' was sent: 1 change.\n"),
        (503, "Alert 'chat' was not sent and will be tried again next time: sh ended with exit status 22: curl: (22)"),
    ],
)
def test_curl_as_in_the_how_to_posts_text_and_data(night, webhook, monkeypatch, status, said):
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    webhook.answer = status
    monkeypatch.setenv("CHAT_URL", webhook.url)
    answer = night(FALLEN, alert_of_the_how_to("chat"))
    assert answer.exit_code == 3
    assert answer.stderr.startswith(said)
    assert answer.stderr.count("\n") == 1
    ((_, headers, body),) = webhook.posted
    assert headers["Content-Type"] == "application/json"
    assert body["text"].startswith("What: regression: Suite.64B-ndrpdr, NDR, on lab-1: ")
    (changed,) = body["trends"]
    assert (changed["testbed"], changed["verdict"]) == ("lab-1", "regression")
    assert changed["change"]["ratio"] == pytest.approx(-0.0995, abs=1e-4)
    assert changed["change"]["began"] == "2026-01-09T03:00:00+00:00"


@pytest.mark.whole
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("alerts: []", r"alerts\.yaml:1: alerts: there is no alert"),
        ("alerts:\n- {name: a}", r"alerts\.0\.command"),
        ("alerts:\n- {name: a, command: ''}", r"alerts\.0\.command"),
        ("alerts:\n- {name: a, command: ' '}", r"alerts\.0\.command"),
        ("alerts:\n- {name: a, command: '\"x'}", "no closing quotation"),
        ("alerts:\n- {name: a, command: x, webhook: {url: 'http://h'}}", r"alerts\.0\.webhook: unknown field"),
        # The list itself is right, and "str" is no field of the file.
        (
            "alerts:\n- {name: a, command: [{a: 1}]}",
            r"^[^:]*:2: alerts\.0\.command\.0: must be text, not fields[^\n]*$",
        ),
        (
            "alerts:\n- {name: a, command: x, colour: red}",
            r"alerts\.yaml:2: alerts\.0\.colour: unknown field\. The fields here are command, ",
        ),
        ("alerts:\n- {name: a, command: x}\n- {name: a, command: y}", "another alert is called 'a'"),
    ],
)
def test_a_wrong_file_is_an_error_before_anything_is_read(night, text, problem):
    answer = night(FALLEN, text=text)
    assert answer.stdout == ""
    with pytest.raises(type(answer.exception), match=f"(?s){problem}"):
        raise answer.exception


def test_a_broken_memory_is_an_error_that_says_what_to_do(night, tmp_path):
    (tmp_path / "alerts.sent.json").write_text("{}")
    answer = night(FALLEN, command(tmp_path / "sent"))
    assert "alerts.sent.json is not a file of sent alerts. Remove it" in str(answer.exception)
    assert not (tmp_path / "sent").exists()


@pytest.mark.whole
def test_a_memory_that_cannot_be_written_hides_no_result(night, tmp_path):
    text = json.dumps({"memory": "no/such/folder/memory.json", "alerts": [command(tmp_path / "sent")]})
    answer = night(FALLEN, text=text)
    assert answer.exit_code == 3
    assert (
        "cannot be written (No such file or directory), and the next night will send this alert again" in answer.stderr
    )


def test_the_file_in_the_how_to_can_be_read(tmp_path):
    file = tmp_path / "alerts.yaml"
    file.write_text(example("yaml"))
    assert [alert.name for alert in Alerts.load(file).alerts] == ["chat", "mail", "pager", "team"]


def example(language):
    return PAGE.split(f"```{language}\n")[1].split("```")[0]


def alert_of_the_how_to(name):
    return next(alert for alert in yaml.safe_load(example("yaml"))["alerts"] if alert["name"] == name)


def test_the_page_has_every_field_of_an_alert():
    assert [name for name in Alert.model_fields if f"`{name}" not in PAGE] == []


@pytest.mark.whole
@pytest.mark.parametrize(("status", "said"), [(200, "was sent: 1 change"), (403, "was not sent and will be tried")])
def test_apprise_as_in_the_how_to_gets_the_text(night, webhook, monkeypatch, status, said):
    pytest.importorskip("apprise")
    webhook.answer = status
    monkeypatch.setenv("APPRISE_URLS", webhook.url.replace("http://", "json://lab:s3cret@").replace("/hook", "/t0ken"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    answer = night(FALLEN, alert_of_the_how_to("team"))
    assert f"Alert 'team' {said}" in answer.stderr
    assert "s3cret" not in answer.output
    assert "t0ken" not in answer.output
    ((path, _, body),) = webhook.posted
    assert path == "/t0ken"
    assert body["title"] == "lossratio"
    assert "What: regression: " in body["message"]
