"""Writes the JSON Schemas of lossratio's files, beside this program or into the directory that it is given."""

import sys
from pathlib import Path

from lossratio.measurements.throughput.goals import GoalFile
from lossratio.results.schema import file_schema, result_schema
from lossratio.runs.job import JobFile
from lossratio.topology import Topology
from lossratio.traffic.profile import ProfileFile


def main() -> None:
    """Writes all schemas."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    schemas = {
        "result": result_schema(),
        "goals": file_schema("A lossratio file of search goals", GoalFile),
        "job": file_schema("A lossratio job", JobFile),
        "topology": file_schema("A lossratio topology", Topology),
        "traffic-profile": file_schema("A lossratio traffic profile", ProfileFile),
    }
    for name, text in schemas.items():
        (directory / f"{name}.schema.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
