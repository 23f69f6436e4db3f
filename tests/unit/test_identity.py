"""What a suite is called by where its file is, and by what its author has given: no run is needed to know it."""

from __future__ import annotations

import os
import shutil

import pytest
from robot import running

from lossratio.results.identity import identity_of, namesakes_of, suite_identity

TESTS = "*** Test Cases ***\nA Test\n    No Operation\n"


@pytest.fixture
def project(tmp_path):
    """The folder of a project."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    return folder


def suite(path, **metadata):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"Metadata    {name}    {value}\n" for name, value in metadata.items())
    path.write_text("*** Settings ***\n" + "".join(lines) + TESTS)
    return path


def give_id(folder, name, spelling="Id"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.robot").write_text(f"*** Settings ***\nMetadata    {spelling}    {name}\n")


def names_in(*paths):
    """The identities of the tests in files and folders, as Robot Framework reads them."""
    root = running.TestSuite.from_file_system(*paths)
    return sorted(identity_of(test) for test in root.all_tests)


def test_an_id_of_a_folder_reaches_its_suites(project):
    give_id(project / "moved" / "core", "Tests.Core")
    suite(project / "moved" / "core" / "ip4.robot")
    suite(project / "moved" / "core" / "vlan" / "ip6.robot")
    assert names_in(project) == ["Tests.Core.Ip4.A Test", "Tests.Core.Vlan.Ip6.A Test"]


def test_an_id_of_a_folder_counts_however_its_suite_is_named(project):
    give_id(project / "core", "Tests.Core", spelling="ID")
    file = suite(project / "core" / "ip4.robot")
    assert names_in(file) == names_in(project / "core") == names_in(project) == ["Tests.Core.Ip4.A Test"]


def test_the_innermost_id_of_a_folder_counts_and_a_suite_has_the_last_word(project):
    give_id(project / "core", "Outer")
    give_id(project / "core" / "vlan", "Inner")
    suite(project / "core" / "vlan" / "ip4.robot")
    suite(project / "core" / "vlan" / "ip6.robot", Id="Own")
    assert names_in(project) == ["Inner.Ip4.A Test", "Own.A Test"]


def test_an_id_of_the_folder_of_the_project_counts_and_one_above_does_not(project):
    give_id(project.parent, "Above")
    file = suite(project / "core" / "ip4.robot")
    assert names_in(file) == ["Core.Ip4.A Test"]
    give_id(project, "Lab")
    assert names_in(file) == ["Lab.Core.Ip4.A Test"]


def test_a_folder_whose_settings_have_no_id_is_called_by_its_path(project):
    (project / "core").mkdir()
    (project / "core" / "__init__.robot").write_text("*** Settings ***\nMetadata    Owner    Ann\nName    Kernel\n")
    file = suite(project / "core" / "ip4.robot")
    assert names_in(file) == names_in(project) == ["Core.Ip4.A Test"]


def test_a_variation_follows_the_id_of_a_folder(project):
    give_id(project / "core", "Tests.Core")
    file = suite(project / "core" / "ip4.robot")
    assert suite_identity(file, {"Variation": "Intel-X710"}, "Ip4") == "Tests.Core.Ip4.Intel-X710"


def test_a_project_that_moves_keeps_its_names(project, tmp_path):
    suite(project / "mit leerzeichen" / "größe 1.robot")
    before = names_in(project)
    moved = tmp_path / "elsewhere" / "by another name"
    shutil.move(project, moved)
    assert names_in(moved) == before == ["Mit Leerzeichen.Größe 1.A Test"]


def test_a_link_to_a_suite_is_the_suite(project, tmp_path):
    file = suite(project / "core" / "ip4.robot")
    link = tmp_path / "link.robot"
    link.symlink_to(file)
    folder = tmp_path / "linked"
    folder.symlink_to(project / "core")
    assert names_in(link) == names_in(folder) == names_in(file) == ["Core.Ip4.A Test"]


def test_a_path_that_is_relative_is_the_same_suite(project, monkeypatch):
    file = suite(project / "core" / "ip4.robot")
    monkeypatch.chdir(project / "core")
    assert suite_identity(os.path.relpath(file), {}, "Ip4") == "Core.Ip4"


def test_numbers_that_order_files_are_no_part_of_names(project):
    file = suite(project / "02__core" / "01__ip4.robot")
    assert names_in(file) == ["Core.Ip4.A Test"]


def test_files_whose_names_differ_in_what_is_no_part_of_a_name_are_namesakes(project, tmp_path):
    file = suite(project / "01__core" / "01__ip4.robot")
    other = suite(project / "02__core" / "IP4.robot")
    again = suite(project / "01__core" / "2__ip4.robot")
    suite(project / "core" / "ip6.robot")
    suite(project / "01__core" / "ip4.resource")
    suite(project / "03__core" / "ip4.robot", Id="Own")
    give_id(project / "04__core", "Own")
    suite(project / "04__core" / "ip4.robot")
    (project / "05__core").symlink_to(project / "01__core")
    assert namesakes_of(file) == [again]
    renamed = suite(project / "02__core" / "1__ip4.robot")
    assert namesakes_of(file) == [again, renamed]
    assert namesakes_of(other) == []


@pytest.mark.parametrize("where", [".", "..", "core", "/"])
@pytest.mark.parametrize("is_project", [True, False])
def test_a_name_does_not_depend_on_where_robot_framework_is_called(tmp_path, monkeypatch, where, is_project):
    folder = tmp_path / "project"
    file = suite(folder / "tests" / "core" / "ip4.robot")
    if is_project:
        (folder / "robot.toml").touch()
    (folder / "core").mkdir()
    monkeypatch.chdir(folder / where)
    expected = ["Tests.Core.Ip4.A Test" if is_project else "Core.Ip4.A Test"]
    for path in (file, file.parent, folder / "tests", folder):
        assert names_in(path) == names_in(os.path.relpath(path)) == expected


def test_a_folder_above_the_suites_does_not_rename_them_where_there_is_no_project(tmp_path):
    file = suite(tmp_path / "a" / "core" / "ip4.robot")
    before = names_in(file)
    suite(tmp_path / "a" / "all.robot")
    (tmp_path / "a" / "__init__.robot").touch()
    assert names_in(file) == before == ["Core.Ip4.A Test"]
