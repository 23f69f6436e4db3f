"""The base of all groups of keywords, and the tags by which editors and the page of keywords list them."""

from typing import ClassVar, TypeVar

from lossratio.keywords.session import Session

LibraryT = TypeVar("LibraryT", bound=type)

_MEASURING = ("find_", "measure_", "confirm_", "run_")
"""How the names of measuring keywords begin."""


class Keywords:
    """The base of every group of keywords, with the suite's session."""

    group: ClassVar[str] = "Testbed"
    """The tag of the group's keywords in the documentation, unless they measure or check."""

    unusable: ClassVar[tuple[str, ...]] = ()
    """The reasons why kinds of measurement in other packages have no keyword."""

    def __init__(self, session: Session) -> None:
        self.session = session


def with_tags_of_groups(library: LibraryT) -> LibraryT:
    """Tags each untagged keyword with its group, because editors and the page of keywords list keywords by tag."""
    for name in dir(library):
        method = getattr(library, name)
        if not hasattr(method, "robot_name") or method.robot_tags:
            continue
        owner = next(base for base in library.__mro__ if name in vars(base))
        if "_should_" in name:
            group = "Check"
        elif name.startswith(_MEASURING):
            group = "Measurement"
        else:
            group = str(vars(owner).get("group", Keywords.group))
        method.robot_tags = (group,)
    return library
