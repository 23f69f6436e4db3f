"""A generator of lossratio stands in one list; its settings and its program are found by its name."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from lossratio import agent
from lossratio.agent.core.generator import make_generator
from lossratio.agent.core.protocol import AgentError
from lossratio.topology import GENERATORS, generator_settings
from lossratio.traffic import load_generator

NO_TRAFFIC = SimpleNamespace(directions=())


def test_the_settings_of_each_generator_are_those_that_its_class_names():
    kinds = [entry.name for entry in GENERATORS.own]
    assert len(kinds) > 3
    for kind in kinds:
        assert load_generator(kind).settings_type is generator_settings()[kind]


def test_each_program_of_the_agent_is_that_of_a_generator():
    folders = {path.parent.name for path in Path(agent.__path__[0]).glob("*/__init__.py")} - {"core"}
    assert folders == {entry.name for entry in GENERATORS.own} - {"auto"}


def test_the_agent_finds_a_new_program_by_its_folder(tmp_path, monkeypatch):
    program = tmp_path / "example"
    program.mkdir()
    (program / "__init__.py").write_text("def make_generator(configuration, options):\n    return options\n")
    monkeypatch.setattr(agent, "__path__", [*agent.__path__, str(tmp_path)])
    assert make_generator("example", NO_TRAFFIC, {"made": True}) == {"made": True}


@pytest.mark.parametrize("name", ["pktgen", "core", "core.generator", "server", ""])
def test_the_agent_refuses_what_is_no_program_of_a_generator(name):
    with pytest.raises(AgentError, match="has no program for a generator") as caught:
        make_generator(name, NO_TRAFFIC, {})
    assert caught.value.kind == "unsupported"
