"""Packaging: `lossratio` lives under `libraries`, its Robot resources under `resources` (linked into the package)."""

from setuptools import find_packages, setup

setup(
    package_dir={"": "libraries"},
    packages=find_packages("libraries"),
    package_data={
        "lossratio": [
            "py.typed",
            "resources/*.resource",
            "resources/traffic_profiles/*.yaml",
        ],
        "lossratio.drawing": ["templates/*.jinja"],
        "lossratio.measurements.latency": ["*.jinja"],
        "lossratio.measurements.rfc2544": ["*.jinja"],
        "lossratio.measurements.throughput": ["*.jinja"],
    },
)
