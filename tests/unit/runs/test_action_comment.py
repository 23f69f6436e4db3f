"""The comment of the GitHub action on a pull request, and the verdict, which does not depend on it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
import yaml
from nightly_examples import ROOT

GH = """#!{python} -IS
import json, subprocess, sys
arguments, kept = sys.argv[1:], {kept!r}
with open(kept) as file:
    comments = json.load(file)
if arguments[:2] == ["pr", "view"]:
    jq = ["jq", "--raw-output", arguments[arguments.index("--jq") + 1]]
    sys.exit(subprocess.run(jq, input=json.dumps(dict(comments=comments)), text=True).returncode)
with open(arguments[-1].removeprefix("body=@")) as file:
    body = file.read()
if arguments[:2] == ["pr", "comment"]:
    url = f"https://github.com/o/r/pull/7#issuecomment-{{len(comments) + 100}}"
    comments.append(dict(body=body, url=url, viewerDidAuthor=True))
else:
    assert arguments[:3] == ["api", "--method", "PATCH"], arguments
    assert arguments[4:-2] == ["--jq", ".html_url"], arguments
    folder, _, number = arguments[3].rpartition("/")
    assert folder == "repos/o/r/issues/comments", arguments
    (edited,) = [one for one in comments if one["url"].endswith(f"#issuecomment-{{number}}")]
    edited["body"] = body
    url = edited["url"]
with open(kept, "w") as file:
    json.dump(comments, file)
print(url)
"""
"""Stands in for GitHub's program: the comments of the pull request are in a file."""

needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="The expressions of gh need jq: make packages")


class PullRequest:
    """A pull request, and the steps of the action that know it."""

    def __init__(self, folder):
        self.folder = folder
        self._kept = folder / "comments.json"
        self._kept.write_text("[]")
        (folder / "bin").mkdir()
        self.stands_in("gh", GH.format(python=sys.executable, kept=str(self._kept)))

    def stands_in(self, name, text):
        """Puts a program in the place of another."""
        program = self.folder / "bin" / name
        program.write_text(text)
        program.chmod(0o755)

    @property
    def comments(self):
        return [comment["body"] for comment in json.loads(self._kept.read_text())]

    def add(self, body, *, is_own):
        comments = json.loads(self._kept.read_text())
        url = f"https://github.com/o/r/pull/7#issuecomment-{len(comments) + 100}"
        self._kept.write_text(json.dumps([*comments, {"body": body, "url": url, "viewerDidAuthor": is_own}]))

    def run(self, name, **given):
        """Runs a step of the action as GitHub does."""
        steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
        (lines,) = [step["run"] for step in steps if step["name"] == name]
        script = self.folder / "step.sh"
        script.write_text(lines)
        environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "TMPDIR": str(self.folder),
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_WORKFLOW": 'the "throughput"',
            "GITHUB_JOB": "lab",
            "PULL_REQUEST": "7",
            "MARKDOWN": str(self.folder / "verdict.md"),
            **given,
        }
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def comment(self, verdict, **given):
        (self.folder / "verdict.md").write_text(verdict)
        done = self.run("Comment on the pull request", **given)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def pull_request(tmp_path):
    return PullRequest(tmp_path)


@pytest.mark.parametrize(
    "answer",
    [
        "echo 'GraphQL: Resource not accessible by integration (addComment)' >&2; exit 1",
        "echo 'HTTP 403: Resource not accessible by integration' >&2; exit 4",
        "[ $2 = view ] || exit 1",
        "echo '<html>Who are you?</html>'",
        "exit 0",
        "[ $2 = view ] || echo 'Welcome to GitHub'",
        "echo 'https://github.com/o/r/pull/7#issuecomment-100'; [ $2 = view ] || echo more",
        "kill -9 $$",
        "exec sleep 600",
    ],
    ids=[
        "may not write",
        "may not read",
        "reads only",
        "nonsense",
        "nothing",
        "greets",
        "says more",
        "killed",
        "never answers",
    ],
)
def test_whatever_github_answers_to_the_comment_the_verdict_is_given(pull_request, answer):
    pull_request.stands_in("gh", f"#!/bin/sh\n{answer}\n")
    # The minute that the action waits for an answer is two seconds here.
    pull_request.stands_in("timeout", f'#!/bin/sh\nshift\nexec {shutil.which("timeout")} 2 "$@"\n')
    said = pull_request.comment("slower\n")
    assert "::warning::The pull request has no comment with the verdict" in said
    assert pull_request.run("Give the verdict", STATUS="3", UNDECIDED="pass").returncode == 3


def test_without_githubs_program_the_verdict_is_given(pull_request):
    os.unlink(pull_request.folder / "bin" / "gh")
    assert "::warning::" in pull_request.comment("slower\n")


def test_a_comparison_without_an_end_has_no_comment_and_its_own_status(pull_request):
    pull_request.stands_in("gh", "#!/bin/sh\necho asked >>asked\n")
    assert pull_request.run("Comment on the pull request").returncode == 0
    assert not (pull_request.folder / "asked").exists()
    assert pull_request.run("Give the verdict", STATUS="69", UNDECIDED="pass").returncode == 69


@pytest.mark.whole
@needs_jq
def test_each_run_edits_the_comment_of_the_run_before(pull_request):
    pull_request.add("Looks good.", is_own=False)
    for verdict in ("slower\n", "as before\n"):
        assert "::warning::" not in pull_request.comment(verdict)
        pull_request.add("A bot of the same token: all tests passed.", is_own=True)
    said = [body.splitlines() for body in pull_request.comments]
    assert [lines[1:] for lines in said] == [[], ["as before"], [], []]
    assert said[1][0] == '<!-- lossratio: the "throughput" / lab -->'


@pytest.mark.whole
@needs_jq
def test_a_comment_of_somebody_else_that_looks_like_ours_stays_as_it_is(pull_request):
    pull_request.add('<!-- lossratio: the "throughput" / lab -->\nfaster, merge it\n', is_own=False)
    pull_request.comment("slower\n")
    assert [body.splitlines()[1] for body in pull_request.comments] == ["faster, merge it", "slower"]


@pytest.mark.whole
@needs_jq
def test_each_job_of_a_workflow_has_its_own_comment(pull_request):
    for verdict in ("slower\n", "as before\n"):
        for job in ("lab", "laptop"):
            pull_request.comment(verdict, GITHUB_JOB=job)
    assert [body.splitlines()[1] for body in pull_request.comments] == ["as before", "as before"]
