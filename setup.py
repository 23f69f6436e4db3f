"""Packaging: `lossratio` is in `libraries`; `resources`, `topologies` and `tests/performance` are linked into it."""

from setuptools import find_namespace_packages, setup

setup(
    package_dir={"": "libraries"},
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
        "lossratio.dashboard": ["*.jinja", "*.js"],
        "lossratio.drawing": ["templates/*.jinja"],
        "lossratio.dut": ["*.pyi"],
        "lossratio.measurements": ["*.pyi"],
        "lossratio.measurements.latency": ["*.jinja"],
        "lossratio.measurements.rfc2544": ["*.jinja"],
        "lossratio.measurements.throughput": ["*.jinja"],
    },
)
