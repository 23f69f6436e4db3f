"""A real Prometheus takes the metrics of a run, answers all that the dashboard asks, and raises the alerts."""

import json
import re
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest
import yaml
from ports import free_port
from test_metrics import a_run, a_search_with_loads
from waiting import wait_until

from lossratio.report.metrics import openmetrics_report
from lossratio.report.run import Run

RESOURCES = Path(__file__).parents[3] / "resources"
RULES = RESOURCES / "prometheus-rules.yaml"
METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

pytestmark = [pytest.mark.skipif(shutil.which("prometheus") is None, reason="no Prometheus is installed")]


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """A Prometheus that has scraped two runs, as a function that asks it."""
    path = tmp_path_factory.mktemp("prometheus")
    text = openmetrics_report([a_run(path), Run(path / "other", (a_search_with_loads(),))]).encode()

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", METRICS)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *arguments):
            """Is silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    jobs = [{"job_name": "lossratio", "static_configs": [{"targets": [f"127.0.0.1:{server.server_port}"]}]}]
    often = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config = path / "prometheus.yml"
    config.write_text(yaml.safe_dump({"global": often, "rule_files": [str(RULES)], "scrape_configs": jobs}))
    address = f"127.0.0.1:{free_port()}"
    options = [f"--config.file={config}", f"--storage.tsdb.path={path / 'data'}", f"--web.listen-address={address}"]
    log = (path / "log").open("wb")
    prometheus = subprocess.Popen(["prometheus", *options], stdout=log, stderr=log)

    def answer(what):
        try:
            with urlopen(f"http://{address}/api/v1/{what}") as response:
                return json.load(response)["data"]
        except OSError:
            assert prometheus.poll() is None, (path / "log").read_text()
            return {}

    try:
        wait_until(lambda: answer("query?query=lossratio_measured").get("result"))
        yield answer
    finally:
        prometheus.kill()
        prometheus.wait()
        server.shutdown()
        server.server_close()


def test_the_rules_of_alerts_are_in_order():
    done = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 rules found" in done.stdout


@pytest.mark.whole
def test_every_panel_of_the_dashboard_has_an_answer(ask):
    panels = json.loads((RESOURCES / "grafana-dashboard.json").read_text())["panels"]
    asked = {panel["title"]: target["expr"] for panel in panels for target in panel["targets"]}
    empty = [
        title
        for title, query in asked.items()
        if not ask(f"query?query={quote(re.sub(r'[$](testbed|test|quantity)', '.*', query))}")["result"]
    ]
    assert empty == []


@pytest.mark.whole
def test_a_test_without_a_value_a_doubt_and_an_old_result_are_alerts(ask):
    def raised():
        return {
            (alert["labels"]["alertname"], alert["labels"].get("test"))
            for alert in ask("alerts").get("alerts", ())
            if alert["state"] == "firing"
        }

    wait_until(lambda: {name for name, _ in raised()} >= {"LossratioNotMeasured", "LossratioOld"})
    assert ("LossratioNotMeasured", 'a "b"\n{c},\\d=') in raised()
