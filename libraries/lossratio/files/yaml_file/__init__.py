"""YAML files as pydantic models, with errors that name the file, the line and the field. A file may be hostile."""

from lossratio.files.yaml_file.loading import (
    describe_problem as describe_problem,
    load_yaml_file as load_yaml_file,
)
from lossratio.files.yaml_file.nodes import Location as Location, Problem as Problem
from lossratio.files.yaml_file.words import plain_words as plain_words
