"""Makes a release of this checkout, whose version and changelog are written: the address, then a commit and a tag.

``release.py OWNER/REPOSITORY`` says where the project is published; later releases know it. ``release.py --check`` only
reports whether version, changelog, citation and addresses agree. To publish, push the tag.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETUP = ROOT / "setup.py"
REPOSITORY = re.compile(r'(?<=^REPOSITORY = "https://github\.com/).+(?="$)', re.MULTILINE)
OWN_ACTION = re.compile(r"(?<=uses: )\S+(?=@main)")
"""This project's action in an example of a page: the owner and the repository."""


def facts() -> tuple[str, str, str]:
    """The version, and the newest version of the changelog with its date."""
    (version,) = re.findall(r'^__version__ = "(.*)"$', (ROOT / "libraries/lossratio/version.py").read_text(), re.M)
    newest, date = re.findall(r"^## (\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)[0]
    return version, newest, date


def problems() -> list[str]:
    """Disagreements between the files, each as a sentence."""
    version, newest, date = facts()
    found = [] if newest == version else [f"The version is {version}; the changelog's newest is {newest}."]
    citation = (ROOT / "CITATION.cff").read_text().splitlines()
    lines = (f"version: {version}", f"date-released: {date}")
    found += [f"CITATION.cff lacks the line {line!r}." for line in lines if line not in citation]
    (repository,) = REPOSITORY.findall(SETUP.read_text())
    for page in pages():
        found += [
            f"{page.relative_to(ROOT)}: the repository is {repository} in setup.py, and {other} here."
            for other in OWN_ACTION.findall(page.read_text())
            if other != repository
        ]
    return found


def pages() -> list[Path]:
    """The pages of the documentation."""
    return sorted((ROOT / "docs").rglob("*.md"))


def release(repository: str = "") -> None:
    """Writes the address of the project, commits it, and tags the commit.

    Args:
        repository: Where it is published: the owner and the repository. Empty: where `setup.py` says.

    Raises:
        SystemExit: If a release is not possible; then nothing is written.
    """
    found = problems()
    left = [path.name for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    if left:
        found.append(f"changelog.d still has {', '.join(sorted(left))}: move them into the section in CHANGELOG.md.")
    if not repository and "OWNER" in SETUP.read_text():
        found.append("Say where the project is published: make release REPOSITORY=somebody/robotframework-lossratio.")
    if found:
        raise SystemExit("\n".join(found))

    version = facts()[0]
    if repository:
        SETUP.write_text(REPOSITORY.sub(repository, SETUP.read_text()))
        for page in pages():
            if OWN_ACTION.search(page.read_text()):
                page.write_text(OWN_ACTION.sub(repository, page.read_text()))
    for command in (
        ["commit", "--all", "--allow-empty", "--message", f"project: release {version}"],
        ["tag", "--annotate", f"v{version}", "--message", version],
    ):
        subprocess.run(["git", *command], cwd=ROOT, check=True)
    print(f"Look at it: git show v{version}. Check it: make release-check. Publish it: git push origin main v{version}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        found = problems()
        print("\n".join(found) or "They agree.")
        sys.exit(bool(found))
    release(*sys.argv[1:])
