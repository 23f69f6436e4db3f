"""Executes the cells of `first-result.ipynb`, and writes their outputs into it: run it where a change shows in them.

python docs/how-to/execute_notebook.py
"""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).with_name("first-result.ipynb")

_FORMS = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells, which run one after the other in the notebook's folder."""
    names: dict[str, Any] = {}
    number = 0
    before = Path.cwd()
    os.chdir(NOTEBOOK.parent)
    try:
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                number += 1
                cell["execution_count"] = number
                cell["outputs"] = _outputs("".join(cell["source"]), names, number)
    finally:
        os.chdir(before)
    return notebook


def _outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    *statements, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        exec(source, names)  # noqa: S102 - it is our own notebook
        return []
    exec(compile(ast.Module(statements, []), "cell", "exec"), names)  # noqa: S102
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307 - it is our own notebook
    if value is None:
        return []
    data = {form: getattr(value, method)() for form, method in _FORMS.items() if hasattr(value, method)}
    data["text/plain"] = repr(value) if len(repr(value)) < 2000 else f"<{type(value).__name__}>"
    return [{"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}]


if __name__ == "__main__":
    NOTEBOOK.write_text(json.dumps(executed(json.loads(NOTEBOOK.read_text())), indent=1) + "\n")
