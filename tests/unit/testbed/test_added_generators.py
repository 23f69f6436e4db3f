"""Generators of other packages, installed as the reader of the how-to would install them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from examples import examples_in
from local_testbeds import local_topology, needs_testbed, own_state
from measurement_examples import PROFILE, place

import lossratio.agent
from lossratio import load_profile, open_testbed
from lossratio.commands.main import main
from lossratio.errors import SearchError, TopologyError, TrafficError
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.measurements.rfc2544 import Rfc2544Request, run_rfc2544
from lossratio.topology import SimulatedGenerator, TrexGenerator, load_topology
from lossratio.traffic import Generator, check_early_verdicts, load_generator

TEXT = (Path(__file__).parents[3] / "docs" / "how-to" / "add-a-generator.md").read_text()
OWN = "{kind: afpacket, max_rate: 200 kfps, catch_up: 5 ms}"
BROKEN = """
from lossratio.topology import RealGenerator
from lossratio.traffic import AfPacket, Generator

class Settings(RealGenerator):
    pass

class NoMethods(Generator):
    settings_type = Settings

class NoSettings:
    pass

class NoGenerator:
    settings_type = Settings

class NoProgram(AfPacket):
    settings_type = Settings
    program = "no_such_program"

    def ready(self):
        return {}

class BrokenProgram(NoProgram):
    program = "broken_program"
"""


def example(language):
    return examples_in(TEXT, language)


@pytest.fixture
def install(install_package):
    """Installs a package: its modules, and the entry points of its generators."""

    def install(name, entry_points, **modules):
        install_package(name, {"lossratio.generator": entry_points}, **modules)

    return install


@pytest.fixture
def our_generators(install):
    controller, program = example("python")
    group, entry = example("toml")[0].strip().splitlines()
    assert group == '[project.entry-points."lossratio.generator"]'
    install("our_generators", [entry.replace('"', "")], our_generators=controller, our_generators_program=program)


@pytest.fixture
def broken(install):
    targets = {
        "absent": "no_such_module:Any",
        "unreadable": "unreadable:Any",
        "no_methods": "broken_generators:NoMethods",
        "no_settings": "broken_generators:NoSettings",
        "no_generator": "broken_generators:NoGenerator",
        "no_program": "broken_generators:NoProgram",
        "broken_program": "broken_generators:BrokenProgram",
    }
    entries = [f"{name} = {target}" for name, target in targets.items()]
    program = "from lossratio_agent import Nothing"
    install("broken_generators", entries, broken_generators=BROKEN, unreadable="class", broken_program=program)
    return targets


def topology(directory, generator, name="added"):
    file = local_topology(directory, name)
    assert OWN in file.read_text()
    file.write_text(file.read_text().replace(OWN, generator))
    return file


def test_its_settings_are_fields_of_the_topology_file(our_generators, tmp_path):
    (line,) = example("yaml")
    settings = load_topology(topology(tmp_path, line.removeprefix("generator: ").strip())).nodes["TG"].generator
    assert (settings.kind, settings.most, settings.python) == ("plain", 2000.0, "python3")
    assert settings.model_dump(exclude_unset=True) == {"kind": "plain", "most": 2000.0}


def test_a_wrong_setting_is_refused_with_file_line_and_field(our_generators, tmp_path):
    file = topology(tmp_path, "\n      kind: plain\n      most: lots\n      mast: 1 kfps")
    with pytest.raises(TopologyError) as raised:
        load_topology(file)
    first, second = str(raised.value).splitlines()
    assert re.search(rf"{file}:13: nodes\.TG\.generator\.most: .*'lots'", first)
    assert f"{file}:14: nodes.TG.generator.mast: unknown field" in second


def test_an_unknown_generator_is_refused_with_those_that_there_are(our_generators, tmp_path):
    with pytest.raises(
        TopologyError, match=r"afpacket, auto, otg, plain, simulated, trex, xdp\. Did you mean 'plain'\?"
    ):
        load_topology(topology(tmp_path, "{kind: plane, most: 1}"))


def test_a_generator_of_another_package_of_ours_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("lossratio.files.plugins._installed", lambda group, path: ())
    text = "the generator 'otg' belongs to lossratio-otg, which is not installed: pip install lossratio-otg "
    with pytest.raises(TopologyError, match=text):
        load_topology(topology(tmp_path, "{kind: otg}"))


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("absent", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("unreadable", "cannot be loaded: SyntaxError"),
        ("no_methods", "lacks what every generator has: needs, ready"),
        ("no_settings", "has no 'settings_type' that is a subclass of lossratio.topology.RealGenerator"),
    ],
)
def test_a_broken_package_is_one_error_that_names_the_distribution(broken, tmp_path, kind, problem):
    file = topology(tmp_path, f"{{kind: {kind}}}")
    with pytest.raises(TopologyError) as raised:
        load_topology(file)
    (line,) = str(raised.value).splitlines()
    generator = f"the generator {kind!r} of broken_generators 1.0 ({broken[kind]})"
    assert line.startswith(f"{file}:11: nodes.TG.generator: {generator} {problem}")


def test_a_class_that_is_no_generator_is_refused_before_any_node_is_reached(broken, tmp_path, capsys, monkeypatch):
    file = topology(tmp_path, "{kind: no_generator}")
    problem = "'no_generator' of broken_generators 1.0 (broken_generators:NoGenerator) is not a subclass of"
    with pytest.raises(TopologyError, match=re.escape(problem)):
        open_testbed(file, dut="linux_bridge")
    monkeypatch.setattr(sys, "argv", ["lossratio", "check", str(file)])
    with pytest.raises(SystemExit):
        main()
    assert f"{file}:11: nodes.TG.generator: The generator {problem}" in capsys.readouterr().err


def test_other_testbeds_work_beside_a_broken_package(broken, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["lossratio", "check", str(local_topology(tmp_path, "well"))])
    main()
    assert "generator: afpacket, maximum load 200.00 kfps" in capsys.readouterr().out


def test_a_second_package_with_the_same_generator_is_refused(our_generators, install):
    install("other_generators", ["plain = others:Plain", "afpacket = others:AfPacket"])
    with pytest.raises(TopologyError, match=r"Several packages have a generator 'plain': .*\(our_generators 1\.0\)"):
        load_generator("plain")
    with pytest.raises(TopologyError, match=r"'afpacket': .*\(lossratio\), .*\(other_generators 1\.0\)"):
        load_generator("afpacket")


def test_every_method_of_a_generator_is_in_the_table():
    documented = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", TEXT, flags=re.MULTILINE))))
    own = {name for name in vars(Generator) if not name.startswith("_")} - {"configure"}
    assert own <= documented


@pytest.fixture(scope="module")
def state_home():
    with own_state():
        yield


@pytest.mark.netns
@needs_testbed
def test_a_generator_of_another_package_measures(our_generators, state_home, tmp_path):
    file = topology(tmp_path, "{kind: plain, most: 3 kfps}")
    request = MrrRequest(profile=PROFILE, max_load=2e3, trials=2, trial_duration=0.1)
    with open_testbed(file, dut="linux_bridge") as testbed:
        result = measure_mrr(testbed, request, place(tmp_path / "results"))
    ways = [direction for trial in result.trials for direction in trial.directions]
    assert [direction.intended_frames for direction in ways] == [200] * 4
    assert [direction.received_frames for direction in ways] == [direction.sent_frames for direction in ways]
    generator = result.conditions.generator
    assert (generator["kind"], generator["most"]) == ("plain", 3000.0)
    assert (generator["generator"], generator["version"]) == ("plain", "our_generators 1.0")


@pytest.mark.whole
def test_the_example_has_types(our_generators, tmp_path):
    """The agent's package has another name on the node."""
    site = tmp_path / "site-packages"
    (site / "lossratio_agent").symlink_to(Path(lossratio.agent.__file__).parent)
    files = [str(site / f"our_generators{name}.py") for name in ("", "_program")]
    options = ("--strict", "--implicit-reexport", "--follow-imports=silent", f"--cache-dir={tmp_path}")
    command = [sys.executable, "-m", "mypy", *options, *files]
    paths = os.pathsep.join((str(site), str(Path(lossratio.__file__).parents[1])))
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MYPYPATH": paths}, check=False)
    assert done.stdout.startswith("Success"), done.stdout


@pytest.mark.netns
@needs_testbed
@pytest.mark.parametrize(
    ("generator", "package", "problem"),
    [
        ("{kind: plain, most: 1 Mfps}", "our_generators", "Python sends at most 100,000 frames per second"),
        ("{kind: no_program}", "broken", "there is no Python module 'no_such_program'"),
        ("{kind: broken_program}", "broken", "program of generator broken_program cannot be used .* 'Nothing'"),
    ],
)
def test_a_program_that_cannot_run_is_an_error_of_the_traffic(
    request, state_home, tmp_path, generator, package, problem
):
    request.getfixturevalue(package)
    profile = load_profile("ethip4-udp", frame_size=64)
    with (
        open_testbed(topology(tmp_path, generator), dut="linux_bridge") as testbed,
        pytest.raises(TrafficError, match=problem),
        testbed.ready_for(profile),
    ):
        pass


def test_a_generator_that_nobody_watches_is_refused_for_early_verdicts():
    with pytest.raises(TrafficError, match=r"generator trex cannot end a trial early.*Measure with early_verdict=off"):
        check_early_verdicts(TrexGenerator.model_construct(kind="trex"))
    check_early_verdicts(SimulatedGenerator(kind="simulated"))


def test_rfc_2544_asks_the_class_what_its_program_can_do(install, tmp_path):
    steps = "class NoSteps(AfPacket):\n    settings_type = Settings\n    runs_schedules = False\n"
    install("no_steps", ["no_steps = no_steps:NoSteps"], no_steps=BROKEN + steps)
    loaded = load_topology(topology(tmp_path, "{kind: no_steps}"))
    testbed = SimpleNamespace(request=SimpleNamespace(topology=loaded), duts=())
    with pytest.raises(
        SearchError, match=r"generator no_steps cannot tell when frames are lost, which is needed for recovery\."
    ):
        run_rfc2544(testbed, Rfc2544Request([PROFILE]), place(tmp_path))
