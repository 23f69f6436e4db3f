"""Packaging: `lossratio` is in `libraries`; `resources`, `topologies` and `tests/performance` are linked into it."""

import gzip
import os
import re
import tarfile
from pathlib import Path

from setuptools import find_namespace_packages, setup
from setuptools.command.sdist import sdist

REPOSITORY = "https://github.com/OWNER/robotframework-lossratio"
"""Where the project is published: the one place to fill in before a release."""

TREE = f"{REPOSITORY}/blob/main"
RAW = REPOSITORY.replace("github.com", "raw.githubusercontent.com") + "/main"


def readme_for_pypi() -> str:
    """The README, whose picture and links lead into the repository."""
    text = Path("README.rst").read_text(encoding="utf-8")
    text = re.sub(r"(?<=\.\. image:: )(?=docs/)", f"{RAW}/", text)
    return re.sub(r"(?<=<)(?=[\w./-]+>`_)", f"{TREE}/", text)


class Sdist(sdist):
    """A source distribution whose bytes depend on its content only: files in order, without user and time."""

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, *args, **kwargs):
        """Writes the archive; setuptools calls it."""
        time = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
        name = f"{base_name}.tar.gz"
        with (
            open(name, "wb") as file,
            gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=time) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path in sorted(path for path in Path(base_dir).rglob("*") if path.is_file()):
                entry = archive.gettarinfo(path)
                entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime = 0, 0, "", "", time
                entry.mode = 0o755 if entry.mode & 0o100 else 0o644
                # Files that are linked into the package are hard links here: each is whole in the archive.
                entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.stat().st_size
                with path.open("rb") as content:
                    archive.addfile(entry, content)
        return name


# A wheel has the modes of its files, so that they must not differ from user to user.
os.umask(0o022)
setup(
    cmdclass={"sdist": Sdist},
    long_description=readme_for_pypi(),
    long_description_content_type="text/x-rst",
    project_urls={
        "Source": REPOSITORY,
        "Documentation": f"{TREE}/docs/index.md",
        "Changelog": f"{TREE}/CHANGELOG.md",
        "Issues": f"{REPOSITORY}/issues",
    },
    package_dir={"": "libraries"},
    py_modules=["LossRatio"],
    # Folders of data count as packages, too: setuptools warns of each that is none.
    packages=find_namespace_packages("libraries", include=["lossratio", "lossratio.*"]),
    package_data={
        "lossratio": [
            "*.pyi",
            "py.typed",
            "resources/*.resource",
            "resources/*.yaml",
            "resources/grafana-dashboard.json",
            "resources/traffic_profiles/*.yaml",
            "suites/*.robot",
            "topologies/*.yaml",
            "topologies/examples/*.yaml",
        ],
        "lossratio.bpf": ["*.h"],
        "lossratio.commands": ["*.robot"],
        "lossratio.dashboard": ["*.jinja", "*.js"],
        "lossratio.drawing": ["templates/*.jinja"],
        "lossratio.dut": ["*.pyi"],
        "lossratio.dut.xdp.device": ["*.c", "*.o"],
        "lossratio.history": ["*.sql"],
        "lossratio.measurements": ["*.pyi"],
        "lossratio.measurements.latency": ["*.jinja"],
        "lossratio.measurements.rfc2544": ["*.jinja"],
        "lossratio.measurements.throughput": ["*.jinja"],
        "lossratio.runs": ["*.yaml"],
        "lossratio.agent.afpacket": ["*.c", "*.o"],
        "lossratio.agent.xdp": ["*.c", "*.h", "*.o"],
    },
)
