"""The files for CI systems: valid, and their shell lines run as they stand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from command_server import client
from nightly_examples import ROOT

from lossratio.results.run_directory import RunDirectory
from lossratio.runs.job import load_job
from lossratio.version import __version__

pytestmark = pytest.mark.whole

GITHUB = ROOT / "ci" / "github" / "nightly.yml"
GITLAB = ROOT / "ci" / "gitlab" / "nightly.gitlab-ci.yml"
MERGE_REQUEST = ROOT / "ci" / "gitlab" / "merge-request.gitlab-ci.yml"
WORKFLOWS = ROOT / ".github" / "workflows"
RELEASE = WORKFLOWS / "release.yml"
ON_CHANGES = [WORKFLOWS / "tests.yml", WORKFLOWS / "docs.yml"]
ACTION = ROOT / "action.yml"
CONTAINER = ROOT / "ci" / "container" / "Containerfile"
IGNORED = ROOT / "ci" / "container" / "Containerfile.dockerignore"
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
JENKINS = ROOT / "ci" / "jenkins" / "Jenkinsfile"
SMALL_JOB = """format: lossratio-job/1
name: nightly
topologies: [simulated]
tests:
- {suites: [../tests/performance/linux_bridge.robot], include: [mrr], frame_sizes: [64B]}
"""


@pytest.mark.parametrize(
    ("files", "schema"),
    [
        ([GITHUB, RELEASE, *ON_CHANGES], ["vendor.github-workflows"]),
        ([GITLAB, MERGE_REQUEST], ["vendor.gitlab-ci", "--data-transform", "gitlab-ci"]),
        ([ACTION], ["vendor.github-actions"]),
        ([ROOT / ".readthedocs.yaml"], ["vendor.readthedocs"]),
        ([ROOT / "CITATION.cff"], ["vendor.citation-file-format", "--force-filetype", "yaml"]),
        (FORMS, ["vendor.github-issue-forms"]),
    ],
    ids=["github", "gitlab", "action", "readthedocs", "citation", "issue forms"],
)
def test_files_are_valid_by_their_systems_schema(files, schema):
    assert files
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", *schema, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hooks_before_a_commit_run_what_make_lint_runs():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    tools = {Path(hook["entry"].split()[0]).name for hook in repository["hooks"]}
    lint = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
    assert tools - {"python"} == set(re.findall(r"\.venv/bin/(\w+)", lint)) - {"robot"}


def test_testbeds_that_are_written_down_are_those_of_the_job():
    names = {testbed.topology.name for testbed in load_job(ROOT / "ci" / "nightly.yaml").testbeds}
    gitlab = yaml.safe_load(GITLAB.read_text())["night"]["parallel"]["matrix"]
    assert {entry["TESTBED"] for entry in gitlab} == names
    github = yaml.safe_load(GITHUB.read_text())["jobs"]["night"]["strategy"]["matrix"]["include"]
    assert {entry["testbed"] for entry in github} == names
    assert set(re.findall(r"testbed: '(\w+)'", JENKINS.read_text())) == names


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where a server runs commands of `lossratio`; all that they import once takes longer than the commands."""
    address = tmp_path_factory.mktemp("server") / "socket"
    command = [sys.executable, str(ROOT / "tests" / "unit" / "runs" / "command_server.py"), str(address)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "ready\n"
        yield address
        server.terminate()


@pytest.fixture
def checkout(tmp_path, address):
    """A checkout of the project with a job that takes little time, and where to find `lossratio`."""
    for name in ("ci", "tests/performance"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "ci" / "nightly.yaml").write_text(SMALL_JOB)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    program = tmp_path / ".venv" / "bin" / "lossratio"
    program.write_text(client(address))
    program.chmod(0o755)
    return tmp_path


def stands_in(checkout, lines):
    """Puts something else in the place of `lossratio`, as only what the scripts make of it matters."""
    (checkout / ".venv" / "bin" / "lossratio").write_text(f"#!/bin/sh\n{lines}\n")


def shell(checkout, lines, **environment):
    given = {
        **os.environ,
        "PATH": f"{checkout / '.venv' / 'bin'}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(checkout / "state"),
        "XDG_CACHE_HOME": str(checkout / "cache"),
        "JOB": "ci/nightly.yaml",
        "OUTPUT": "results/night",
        "TESTBED": "simulated",
        "TOPOLOGY": "simulated",
        "PAUSE": "0",
        **environment,
    }
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", lines],
        cwd=checkout,
        env=given,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_shell_lines_for_github_run_as_they_stand(checkout):
    jobs = yaml.safe_load(GITHUB.read_text())["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"] if "run" in step and step["name"] != "Install"]
    summary = checkout / "GITHUB_STEP_SUMMARY"
    assert not any("${{" in step["run"] for step in steps)
    for step in steps:
        done = shell(checkout, step["run"], GITHUB_STEP_SUMMARY=str(summary))
        assert done.returncode == 0, done.stdout + done.stderr
    assert "64B-1c-eth-l2bdbase-mrr" in summary.read_text()


def test_the_shell_lines_for_gitlab_run_as_they_stand(checkout):
    pipeline = yaml.safe_load(GITLAB.read_text())
    done = shell(checkout, "\n".join(pipeline["night"]["script"]))
    assert done.returncode == 0, done.stdout + done.stderr
    for path in (*pipeline["night"]["artifacts"]["paths"], pipeline["night"]["artifacts"]["reports"]["junit"]):
        assert (checkout / path).exists()


def test_the_shell_lines_for_jenkins_run_as_they_stand(checkout):
    lines = re.findall(r"sh\(script: '([^']+)'", JENKINS.read_text())
    assert len(lines) == 2
    for line in lines:
        done = shell(checkout, line)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (checkout / "results" / "night" / "junit.xml").exists()


def test_the_morning_compares_with_the_nights_before_and_reports_the_trend(checkout):
    archive = str(checkout / "archive")
    for _ in range(2):
        for script in ("ci/night", "ci/morning"):
            done = shell(checkout, script, RESULTS=archive)
            assert done.returncode == 0, done.stdout + done.stderr
    summary = (checkout / "results" / "night" / "summary.md").read_text()
    assert "64B-1c-eth-l2bdbase-mrr" in summary
    assert "1 series of 2 results" in summary
    assert (checkout / "results" / "night" / "trend.html").exists()


def test_files_of_an_earlier_night_are_kept_and_not_taken_for_tonight(checkout):
    left = checkout / "results" / "night" / "output.xml"
    left.parent.mkdir(parents=True)
    left.write_text("the night before")
    stands_in(checkout, 'echo "$@" >>asked')
    assert shell(checkout, "ci/night").returncode == 0
    assert (checkout / "asked").read_text().startswith("run --topology")
    (kept,) = (checkout / "results").glob("night-before-*/output.xml")
    assert kept.read_text() == "the night before"


@pytest.mark.parametrize(
    ("failing", "status"), [("report", 1), ("archive fetch", 2), ("archive send", 69), ("trend", 1), ("trend", 2)]
)
def test_a_morning_that_could_not_do_all_says_so_by_its_exit_status(checkout, failing, status):
    (checkout / "results" / "night" / "results").mkdir(parents=True)
    stands_in(checkout, f'case "$1 $2" in {failing.replace(" ", "?")}*) exit {status} ;; esac')
    done = shell(checkout, "ci/morning", RESULTS="s3://bucket")
    assert done.returncode == status
    assert f"ci/morning: exit status {status} of: lossratio {failing}" in done.stderr


@pytest.mark.parametrize(
    ("trend", "status"), [("echo worse; exit 3", 3), ("echo too few; exit 4", 0), ("echo no value; exit 1", 1)]
)
def test_a_morning_alarms_on_what_got_worse_and_not_on_too_few_results(checkout, trend, status):
    (checkout / "results" / "night" / "results").mkdir(parents=True)
    stands_in(checkout, f"case $1 in trend) {trend} ;; esac")
    assert shell(checkout, "ci/morning", RESULTS="s3://bucket").returncode == status


def test_a_morning_sends_alerts_only_where_there_is_a_file_of_them(checkout):
    (checkout / "results" / "night" / "results").mkdir(parents=True)
    stands_in(checkout, 'case $1 in trend) echo "$@" >>asked ;; esac')
    shell(checkout, "ci/morning", RESULTS="s3://bucket")
    shell(checkout, "ci/morning", RESULTS="s3://bucket", ALERTS="my alerts.yaml")
    without, with_alerts = (checkout / "asked").read_text().splitlines()
    assert "--alert" not in without
    assert "--alert my alerts.yaml --html" in with_alerts


def test_the_summary_has_trend_and_comparison_first_each_in_a_form_that_markdown_shows(checkout):
    (checkout / "results" / "night" / "results").mkdir(parents=True)
    stands_in(
        checkout,
        """case $1 in
        report) [ "$4" = junit ] || echo "# the night" >results/night/summary.md ;;
        archive) [ "$2" != fetch ] || echo a-night ;;
        compare) echo "| $* |"; exit 3 ;;
        trend) echo "regression: a  b" ;;
        esac""",
    )
    shell(checkout, "ci/morning", RESULTS="s3://bucket")
    lines = [line for line in (checkout / "results" / "night" / "summary.md").read_text().splitlines() if line]
    assert lines[:4] == ["## Trend", "```text", "regression: a  b", "```"]
    assert lines[4] == "## Compared with the nights before"
    assert lines[5].endswith("results/night --format md |")
    assert lines[6] == "# the night"


def test_gitlab_reports_a_regression_of_the_morning(checkout):
    stands_in(checkout, "case $1 in run) mkdir -p results/night/results ;; trend) exit 3 ;; esac")
    script = "\n".join(yaml.safe_load(GITLAB.read_text())["night"]["script"])
    assert shell(checkout, script, RESULTS="s3://bucket").returncode == 3


def test_a_testbed_that_is_not_available_is_tried_again_and_has_its_own_exit_status(checkout):
    stands_in(checkout, 'echo "$@" >>asked\nexit 75')
    assert shell(checkout, "ci/night", ATTEMPTS="3").returncode == 75
    assert len((checkout / "asked").read_text().splitlines()) == 3


def test_a_night_whose_infrastructure_failed_is_resumed(checkout):
    stands_in(
        checkout,
        "mkdir -p results/night && touch results/night/output.xml\n"
        'echo "$@" >>asked\n'
        "[ -e again ] && exit 0\n"
        "touch again\n"
        "exit 69",
    )
    assert shell(checkout, "ci/night").returncode == 0
    run, resumed = (checkout / "asked").read_text().splitlines()
    assert run.startswith("run --topology simulated --job ci/nightly.yaml")
    assert resumed.startswith("run --resume results/night")


def test_a_night_that_asks_first_takes_what_is_usual_from_the_archive(checkout):
    stands_in(checkout, 'echo "$@" >>asked')
    assert shell(checkout, "ci/night", NIGHTLY="as_before", RESULTS="s3://bucket").returncode == 0
    fetched, run = (checkout / "asked").read_text().splitlines()
    assert fetched.startswith("archive fetch results/night-hints --results s3://bucket --testbed simulated")
    assert run.endswith("--variable NIGHTLY:as_before --variable HINTS:results/night-hints")


def test_a_night_that_cannot_learn_what_is_usual_measures_nothing(checkout):
    stands_in(checkout, 'echo "$@" >>asked\nexit 69')
    assert shell(checkout, "ci/night", NIGHTLY="as_before", RESULTS="s3://bucket").returncode == 69
    assert len((checkout / "asked").read_text().splitlines()) == 1


def test_a_failed_test_is_not_tried_again(checkout):
    stands_in(checkout, 'echo "$@" >>asked\nexit 3')
    assert shell(checkout, "ci/night").returncode == 3
    assert len((checkout / "asked").read_text().splitlines()) == 1


def test_a_night_without_results_has_no_morning(checkout):
    done = shell(checkout, "ci/morning")
    assert (done.returncode, done.stdout) == (0, "Nothing was measured.\n")
    assert not RunDirectory(Path(checkout / "results" / "night")).has_files


def test_a_night_in_which_every_test_failed_before_it_measured_anything_has_a_morning(checkout):
    (checkout / "results" / "night").mkdir(parents=True)
    (checkout / "results" / "night" / "failures.jsonl").write_text('{"test": "A.B", "message": "no link"}\n')
    done = shell(checkout, "ci/morning")
    assert done.returncode == 1
    assert "A.B" in (checkout / "results" / "night" / "summary.md").read_text()
    assert 'classname="A" name="B"' in (checkout / "results" / "night" / "junit.xml").read_text()


SHELL_SCRIPTS = (
    "ci/night",
    "ci/morning",
    "tools/system-packages",
    "tools/virtual-environment",
    "tools/release-check",
    ".ci/run",
)


def shell_parts():
    """Every piece of shell that is shipped: its place, its text, and the shell that runs it."""
    for name in SHELL_SCRIPTS:
        text = (ROOT / name).read_text()
        yield name, text, "bash" if "bash" in text.splitlines()[0] else "sh"
    for path in (*sorted((ROOT / "ci" / "github").glob("*.yml")), ROOT / "action.yml"):
        data = yaml.safe_load(path.read_text())
        for job in data.get("jobs", {"action": data.get("runs")}).values():
            for number, step in enumerate(job["steps"]):
                if "run" in step:
                    yield f"{path.name} {step.get('name', number)}", step["run"], "bash"
    for path in sorted((ROOT / "ci" / "gitlab").glob("*.yml")):
        pipeline = yaml.safe_load(path.read_text())
        for name, job in pipeline.items():
            lines = [*job.get("before_script", []), *job.get("script", [])] if isinstance(job, dict) else []
            if lines:
                yield f"{path.name} {name}", "\n".join(lines), "bash"
    for number, line in enumerate(re.findall(r"sh(?:\(script:)? '([^']+)'", JENKINS.read_text())):
        yield f"Jenkinsfile {number}", line, "sh"
    for number, line in enumerate(re.findall(r"^RUN ((?:.*\\\n)*.*)$", CONTAINER.read_text(), re.MULTILINE)):
        yield f"Containerfile {number}", line, "sh"


@pytest.mark.parametrize(("text", "kind"), [pytest.param(text, kind, id=name) for name, text, kind in shell_parts()])
def test_shell_has_no_fault_that_shellcheck_knows(text, kind):
    program = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        pytest.skip("shellcheck is not installed: make environment")
    # Variables of the environment (SC2153), some of which are lists of words (SC2086).
    command = [program, "--shell", kind, "--severity", "info", "--exclude", "SC2086,SC2153", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_file_for_other_systems_has_a_test_that_loads_it():
    loaded = {GITHUB, RELEASE, *ON_CHANGES, GITLAB, MERGE_REQUEST, JENKINS, CONTAINER, IGNORED, ACTION, *FORMS}
    loaded |= {ROOT / "ci" / "nightly.yaml", ROOT / ".github" / "pull_request_template.md"}
    # Only people read the others.
    loaded |= {ROOT / ".github" / "SECURITY.md", ROOT / ".github" / "CODE_OF_CONDUCT.md"}
    loaded |= {ROOT / name for name in SHELL_SCRIPTS}
    there = {path for name in ("ci", ".github") for path in (ROOT / name).rglob("*") if path.is_file()}
    assert there <= loaded


def test_the_template_of_pull_requests_asks_for_what_the_project_has():
    text = (ROOT / ".github" / "pull_request_template.md").read_text()
    targets = set(re.findall(r"`make (\w+)`", text))
    assert targets
    assert all(re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE) for target in targets)
    assert all((ROOT / name).is_dir() for name in re.findall(r"`([\w.]+)/`", text))


def test_actions_of_others_are_pinned_by_their_digest():
    files = [GITHUB, RELEASE, ACTION, *ON_CHANGES]
    used = re.findall(r"uses: (\S+)(.*)", "".join(file.read_text() for file in files))
    assert used
    assert [name for name, version in used if not re.search(r"@[0-9a-f]{40}$", name) or " # v" not in version] == []


def test_nothing_is_published_before_all_tests_have_passed():
    jobs = yaml.safe_load(RELEASE.read_text())["jobs"]
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}
    assert [step["run"] for step in jobs["test"]["steps"] if "run" in step] == ["make whole"]
    workflows = [RELEASE, *ON_CHANGES]
    targets = re.findall(r"run: make ([\w-]+)", "".join(file.read_text() for file in workflows))
    assert {"test", "docs", "release-check"} <= set(targets)
    assert all(re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE) for target in targets)


def test_a_tag_that_is_not_the_version_is_refused(checkout):
    (check,) = [
        step["run"] for step in yaml.safe_load(RELEASE.read_text())["jobs"]["build"]["steps"][:3] if "run" in step
    ]
    version = checkout / "libraries" / "lossratio" / "version.py"
    version.parent.mkdir(parents=True)
    shutil.copy(ROOT / "libraries" / "lossratio" / "version.py", version)
    assert shell(checkout, check, GITHUB_REF_NAME=f"v{__version__}").returncode == 0
    assert shell(checkout, check, GITHUB_REF_NAME="v9.9.9").returncode != 0


@pytest.mark.whole
def test_the_image_is_built_from_what_a_wheel_is_built_from_and_nothing_else():
    (copied,) = re.findall(r"^COPY (\S+) ", CONTAINER.read_text(), re.MULTILINE)
    lines = [line for line in IGNORED.read_text().splitlines() if not line.startswith("#")]
    assert (copied, lines[0]) == (".", "*")
    kept = {line[1:] for line in lines if line.startswith("!")}
    links = {
        os.path.relpath(path.resolve(), ROOT)
        for path in (ROOT / "libraries" / "lossratio").iterdir()
        if path.is_symlink()
    }
    assert kept == links | {"libraries", "setup.py", "pyproject.toml", "README.rst", "LICENSE", "LICENSES"}


@pytest.fixture
def builds(checkout, address):
    """A project that is not ours: nothing of lossratio is in it. Its `python3` notes what is installed."""
    shutil.rmtree(checkout)
    (checkout / "bin").mkdir(parents=True)
    tool = checkout / "bin" / "python3"
    program = client(address).replace("'", "'\\''")
    tool.write_text(
        "#!/bin/sh\n"
        '[ "$2" = venv ] || { echo "$@" >>installed; exit; }\n'
        'mkdir -p "$3/bin"\n'
        'cp "$0" "$3/bin/python"\n'
        f"printf '%s' '{program}' >\"$3/bin/lossratio\"\n"
        'chmod +x "$3/bin/lossratio"\n'
    )
    tool.chmod(0o755)
    return checkout


MEASURED = {
    "SUITES": "linux_bridge",
    "TOPOLOGY": "simulated",
    "SET_UP": "echo $REVISION >>built",
    "PATH": f"bin:{os.environ['PATH']}",
}


def test_the_template_for_merge_requests_works_in_a_project_that_is_not_ours(builds):
    job = yaml.safe_load(MERGE_REQUEST.read_text())["throughput"]
    given = {**job["variables"], **MEASURED, "CI_MERGE_REQUEST_DIFF_BASE_SHA": "base", "CI_COMMIT_SHA": "head"}
    # Of a suite's three tests one is enough here.
    script = "\n".join([*job["before_script"], *job["script"]]).replace("$SUITES", "--include mrrAND64b $SUITES")
    done = shell(builds, script, **{name: str(value) for name, value in given.items()})
    assert done.returncode == 0, done.stdout + done.stderr
    assert (builds / "installed").read_text() == "-m pip install --quiet robotframework-lossratio\n"
    assert set((builds / "built").read_text().split()) == {"base", "head"}
    assert all((builds / path).exists() for path in job["artifacts"]["paths"])


def test_the_action_compares_two_builds_and_gives_the_verdict(builds):
    action = yaml.safe_load(ACTION.read_text())
    given = {name: str(each.get("default", "")) for name, each in action["inputs"].items()}
    given |= {"set-up-a": "echo a >>built", "set-up-b": "echo b >>built", "test": "64B*mrr"}
    # So that few measurements decide.
    given |= {"least-change": "20", "certainty": "90"}
    given |= {"suites": MEASURED["SUITES"], "topology": MEASURED["TOPOLOGY"]}
    known = {f"inputs.{name}": value for name, value in given.items()} | {"github.action_path": "lossratio-action"}
    files = {name: str(builds / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for step in [step for step in action["runs"]["steps"] if "if" not in step]:
        values = {name: known[text.strip("${} ")] if "${{" in text else text for name, text in step["env"].items()}
        done = shell(builds, step["run"], **files, **values, RUNNER_TEMP=str(builds / "temp"), PATH=MEASURED["PATH"])
        assert done.returncode == 0, done.stdout + done.stderr
        if (builds / "GITHUB_OUTPUT").exists():
            lines = (builds / "GITHUB_OUTPUT").read_text().splitlines()
            known |= {f"steps.compare.outputs.{name}": value for name, value in (line.split("=", 1) for line in lines)}
    assert known["steps.compare.outputs.status"] == "0"
    assert (builds / "installed").read_text() == "-m pip install --quiet lossratio-action\n"
    assert set((builds / "built").read_text().split()) == {"a", "b"}
    assert "mrr" in (builds / "GITHUB_STEP_SUMMARY").read_text()
