"""The folders of PLRsearch: each imports the faces of those before it, and the modules beside them only faces."""

import ast
from pathlib import Path

import pytest

import lossratio.plrsearch

ROOM = Path(lossratio.plrsearch.__file__).parent
FOLDERS = ("model", "likelihood", "quadrature", "variation", "estimate")


@pytest.mark.whole
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_imports_the_faces_of_the_folders_before_it(folder):
    allowed = {f"lossratio.plrsearch.{earlier}" for earlier in FOLDERS[: FOLDERS.index(folder)]}
    own = f"lossratio.plrsearch.{folder}"
    for path in (ROOM / folder).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("lossratio.plrsearch"):
                is_own = node.module == own or node.module.startswith(f"{own}.")
                assert is_own or node.module in allowed, f"{path.name}:{node.lineno} imports {node.module}"


def test_each_folder_is_in_the_order():
    assert {path.parent.name for path in ROOM.glob("*/__init__.py")} == set(FOLDERS)


def test_modules_beside_the_folders_import_their_faces():
    beside = list(ROOM.glob("*.py"))
    allowed = {f"lossratio.plrsearch.{name}" for name in (*FOLDERS, *(path.stem for path in beside))}
    for path in beside:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("lossratio.plrsearch"):
                assert node.module in allowed, f"{path.name}:{node.lineno} imports {node.module}"
