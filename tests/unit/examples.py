"""The examples on pages of the documentation, which tests execute as they stand there."""

from __future__ import annotations

import re


def examples_in(text: str, language: str) -> list[str]:
    """The fenced examples of a page in a language, in the page's order.

    Args:
        text: The page, in Markdown.
        language: What stands behind the opening fence, e.g. ``yaml``.
    """
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
