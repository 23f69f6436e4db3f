"""Parses a declarative Python file."""

from __future__ import annotations

import ast

from lossratio.traffic.foreign.packets import ForeignFieldError


def parsed(text: str) -> ast.Module:
    """The statements of a file, or of an expression.

    Raises:
        ForeignFieldError: If it is not Python 3.
    """
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        way_out = "Name a file in Python 3, whose expressions are not nested too deeply"
        raise ForeignFieldError(
            "the file", f"it is not Python 3: {getattr(error, 'msg', error)}", line, way_out
        ) from error


def as_read(target: ast.expr) -> ast.expr:
    """A target of an assignment as an expression."""
    return ast.parse(ast.unparse(target), mode="eval").body
