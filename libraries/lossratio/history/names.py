"""Names of tests in a history: a test that was renamed, or whose file was moved, has its present name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from glob import escape
from typing import Any

from lossratio.history.annotations import KnownChange
from lossratio.history.devices import in_order


@dataclass(frozen=True)
class Names:
    """The present names of a history's tests."""

    now: dict[tuple[str, str], str] = field(default_factory=dict)
    """The present name, by testbed and earlier name."""

    def followed(self, changes: Sequence[KnownChange]) -> tuple[KnownChange, ...]:
        """Known changes; changes with earlier names are repeated with the present names."""
        more = [
            change.model_copy(update={"test": escape(name), "testbed": escape(testbed)})
            for (testbed, earlier), name in self.now.items()
            for change in changes
            if _means(change, testbed, earlier) and not _means(change, testbed, name)
        ]
        return (*changes, *more)


def _means(change: KnownChange, testbed: str, test: str) -> bool:
    return fnmatchcase(testbed, change.testbed) and fnmatchcase(test, change.test)


def with_names_now(table: Any, pairs: Iterable[tuple[str, str]]) -> tuple[Any, Names]:
    """A table of entries with the present names of their tests, sorted by these names.

    Args:
        table: The entries.
        pairs: Pairs of an earlier name and the present name, given by the user.
    """
    same = dict(pairs)
    if not same:
        return table, Names()
    keys = list(zip(*(table.column(name).to_pylist() for name in ("testbed", "test")), strict=True))
    now = {key: _last(same, key[1]) for key in dict.fromkeys(keys) if key[1] in same}
    column = table.schema.get_field_index("test")
    tests = [now.get(key, key[1]) for key in keys]
    renamed = table.set_column(column, table.schema.field(column), [tests])
    return in_order(renamed), Names(now)


def _last(same: dict[str, str], test: str) -> str:
    """The present name of a test, which may have been renamed more than once."""
    seen = {test}
    while test in same and same[test] not in seen:
        test = same[test]
        seen.add(test)
    return test
