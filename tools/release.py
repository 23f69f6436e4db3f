"""Makes a release of this checkout: version, changelog, citation, then a commit and a tag. To publish, push the tag.

``release.py 0.3.0`` writes them; ``release.py --check`` only reports whether they agree.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION = ROOT / "libraries" / "lossratio" / "version.py"
CHANGELOG = ROOT / "CHANGELOG.md"
CITATION = ROOT / "CITATION.cff"
FRAGMENTS = ROOT / "changelog.d"
VERSION_LINE = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)
REPOSITORY = re.compile(r'^REPOSITORY = "https://github\.com/(.+)"$', re.MULTILINE)
OWN_ACTION = re.compile(r"(?<=uses: )\S+(?=@main)")
"""This project's action in an example of a page: the owner and the repository."""
HEADING = re.compile(r"^## (\d+\.\d+\.\d+) - (not released yet|\d{4}-\d\d-\d\d)$", re.MULTILINE)


def problems() -> list[str]:
    """Disagreements between the files, each as a sentence."""
    (version,) = VERSION_LINE.findall(VERSION.read_text())
    headings = HEADING.findall(CHANGELOG.read_text())
    released = [(number, date) for number, date in headings if date != "not released yet"]
    found = (
        [] if released[0][0] == version else [f"The version is {version}; the changelog's newest is {released[0][0]}."]
    )
    for field, value in (("version", version), ("date-released", released[0][1])):
        if not re.search(rf"^{field}: [\"']?{re.escape(value)}[\"']?$", CITATION.read_text(), re.MULTILINE):
            found.append(f"CITATION.cff: {field} is not {value}.")

    (repository,) = REPOSITORY.findall((ROOT / "setup.py").read_text())
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


def release(version: str) -> None:
    """Writes version, changelog and citation, commits them, and tags the commit.

    Raises:
        SystemExit: If a release is not possible; then nothing is written.
    """
    changelog = CHANGELOG.read_text()
    if HEADING.findall(changelog)[0] != (version, "not released yet"):
        raise SystemExit(f"CHANGELOG.md does not begin with '## {version} - not released yet'.")
    if "OWNER" in (ROOT / "setup.py").read_text():
        raise SystemExit("setup.py: fill in REPOSITORY, where the project is published.")
    today = datetime.now(timezone.utc).date().isoformat()
    fragments = sorted(path for path in FRAGMENTS.glob("*.md") if path.name != "README.md")
    items = (textwrap.indent(path.read_text().strip(), "  ").removeprefix("  ") for path in fragments)
    notes = "\n### Every change\n\n" + "".join(f"- {item}\n" for item in items)
    begin, later, earlier = changelog.partition(f"\n## {HEADING.findall(changelog)[1][0]} - ")
    begin = begin.replace(f"## {version} - not released yet", f"## {version} - {today}").rstrip() + "\n" + notes
    CHANGELOG.write_text(begin + later + earlier)
    VERSION.write_text(VERSION_LINE.sub(f'__version__ = "{version}"', VERSION.read_text()))
    cited = re.sub(r"^version: .*$", f"version: {version}", CITATION.read_text(), flags=re.MULTILINE)
    CITATION.write_text(re.sub(r"^date-released: .*$", f"date-released: {today}", cited, flags=re.MULTILINE))
    (repository,) = REPOSITORY.findall((ROOT / "setup.py").read_text())
    for page in pages():
        if OWN_ACTION.search(page.read_text()):
            page.write_text(OWN_ACTION.sub(repository, page.read_text()))
    for path in fragments:
        path.unlink()
    for command in (
        ["add", "--all"],
        ["commit", "-m", f"project: release {version}"],
        ["tag", "-a", f"v{version}", "-m", version],
    ):
        subprocess.run(["git", *command], cwd=ROOT, check=True)
    print(f"Look at it: git show v{version}. Check it: make release-check. Publish it: git push origin main v{version}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        found = problems()
        print("\n".join(found) or "They agree.")
        sys.exit(bool(found))
    release(sys.argv[1])
