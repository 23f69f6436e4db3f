import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

pytestmark = pytest.mark.whole

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "docs" / "schema"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    directory = tmp_path_factory.mktemp("schema")
    subprocess.run([sys.executable, SCHEMAS / "export.py", directory], check=True)
    return {path.name: json.loads(path.read_text()) for path in directory.iterdir()}


def test_the_committed_schemas_are_current(exported):
    committed = {path.name: json.loads(path.read_text()) for path in SCHEMAS.glob("*.json")}
    assert committed == exported, "run 'python docs/schema/export.py'"


def test_tables_of_settings_are_those_of_the_models():
    spec = importlib.util.spec_from_file_location("export", SCHEMAS / "export.py")
    export = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(export)
    text = (ROOT / "docs" / "reference" / "topology.md").read_text()
    assert export.page(text) == text, "run 'python docs/schema/export.py'"


def test_every_schema_is_a_schema(exported):
    assert len(exported) == len(list(SCHEMAS.glob("*.json")))
    for schema in exported.values():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["title"].startswith("A lossratio ")


OURS = [
    *(("topology", path) for path in sorted((ROOT / "topologies").glob("*.yaml"))),
    *(("traffic-profile", path) for path in sorted((ROOT / "resources" / "traffic_profiles").glob("*.yaml"))),
]


def test_our_own_files_fit_their_schemas(exported):
    validators = {kind: jsonschema.Draft202012Validator(exported[f"{kind}.schema.json"]) for kind, _ in OURS}
    assert len(validators) == 2
    faults = {path.name: validators[kind].iter_errors(yaml.safe_load(path.read_text())) for kind, path in OURS}
    assert {name: problems for name, each in faults.items() if (problems := [error.message for error in each])} == {}


def test_the_topology_schema_refuses_unknown_fields(exported):
    data = yaml.safe_load((ROOT / "topologies" / "local.yaml").read_text())
    data["nodes"]["TG"]["passwort"] = "secret"
    assert not jsonschema.Draft202012Validator(exported["topology.schema.json"]).is_valid(data)
