"""Names of tests in a history: earlier versions used the name that Robot Framework gave a test in one run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from glob import escape
from typing import Any

from lossratio.history.annotations import KnownChange
from lossratio.history.devices import in_order
from lossratio.results import fitting


@dataclass(frozen=True)
class Names:
    """The present names of a history's tests."""

    now: dict[tuple[str, str], str] = field(default_factory=dict)
    """The present name, by testbed and earlier name."""
    problems: tuple[str, ...] = ()
    """Earlier names that may mean several tests."""

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


def with_names_now(table: Any, same: Iterable[tuple[str, str]]) -> tuple[Any, Names]:
    """A table of entries with the present names of their tests, sorted by these names.

    Args:
        table: The entries.
        same: Pairs of an earlier name and the present name, given by the user.
    """
    rows = list(
        zip(
            *(table.column(name).to_pylist() for name in ("testbed", "test", "long_name")),
            strict=True,
        )
    )
    names = _names(rows, dict(same))
    if not names.now:
        return table, names
    tests = [names.now.get((testbed, test), test) for testbed, test, _ in rows]
    column = table.schema.get_field_index("test")
    renamed = table.set_column(column, table.schema.field(column), [tests])
    return in_order(renamed), names


def _names(rows: Iterable[tuple[str, str, str | None]], same: dict[str, str]) -> Names:
    identities: dict[str, list[str]] = {}
    earlier: dict[str, list[str]] = {}
    for testbed, test, long_name in dict.fromkeys(rows):
        (earlier if long_name is None else identities).setdefault(testbed, []).append(test)
    now: dict[tuple[str, str], str] = {}
    several: dict[str, list[str]] = {}

    for testbed in dict.fromkeys((*earlier, *identities)):
        old, new = earlier.get(testbed, []), identities.get(testbed, [])
        open_names = [test for test in old if test not in same and test not in new]
        for test, fits in fitting(open_names, [_last(same, name) for name in new]).items():
            if len(fits) == 1:
                now[testbed, test] = fits[0]
            else:
                several[test] = fits

        # If a test's file was moved, a name that the user declares as renamed may also come from this version.
        now |= {(testbed, test): _last(same, test) for test in (*old, *new) if test in same}

    return Names(now, tuple(_ambiguous(several)))


def _last(same: dict[str, str], test: str) -> str:
    """The present name of a test, which may have been renamed more than once."""
    seen = {test}
    while test in same and same[test] not in seen:
        test = same[test]
        seen.add(test)
    return test


def _ambiguous(several: dict[str, list[str]]) -> Iterable[str]:
    for test, fits in list(several.items())[:1]:
        yield (
            f"{len(several)} names of tests from earlier versions may mean several tests now. Their results are "
            f"separate series: {test} may be {' or '.join(fits)}. To join them, write into annotations.yaml: same: "
            f"[[{test}, {fits[0]}]]"
        )
