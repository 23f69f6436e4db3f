"""A mistake that is put into a copy of the library."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutation:
    """A mistake."""

    name: str
    """What is wrong with it, in words."""
    file: str
    """The file, below ``libraries/lossratio``."""
    old: str
    """The right text."""
    new: str
    """The wrong one."""
    tests: tuple[str, ...]
    """Test files, or single tests, below ``tests/unit``: at least one test must fail."""

    def text_in(self, root: Path) -> str:
        """The whole file with the mistake.

        Raises:
            LookupError: If the right text is not there, or more than once.
        """
        path = root / "libraries" / "lossratio" / self.file
        text = path.read_text() if path.exists() else ""
        if text.count(self.old) != 1:
            raise LookupError(f"{self.name}: {self.file} has {text.count(self.old)} times: {self.old}")
        return text.replace(self.old, self.new)
