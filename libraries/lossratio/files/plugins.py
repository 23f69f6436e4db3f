"""Plug-ins: what other packages add by entry points, such as kinds of DUT and generators.

A plug-in is loaded when its name is asked for. So a broken plug-in is an error only for the people who use it. The
module also says how to install lossratio's own optional packages, its *extras*.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from lossratio.errors import LossRatioError
from lossratio.values import names_near

PluginT = TypeVar("PluginT")

_DISTRIBUTION = "robotframework-lossratio"


def how_to_install(extra: str) -> str:
    """The command that installs an extra, for messages: first for an installed lossratio, then for a clone.

    Args:
        extra: A name of the optional dependencies in ``pyproject.toml``, e.g. ``history``.
    """
    return f"pip install '{_DISTRIBUTION}[{extra}]' (in a clone: pip install '.[{extra}]')"


def how_to_install_package(name: str, pip: str = "pip") -> str:
    """The command that installs another package of the project, for messages: as `how_to_install`.

    Args:
        name: The package's name after ``lossratio-``, which is also its folder, e.g. ``study``.
        pip: How to call pip.
    """
    return f"{pip} install lossratio-{name} (in a clone: {pip} install ./{name})"


def not_installed(what: str, name: str, package: str) -> str:
    """The message that a plug-in, such as a ``command``, is in another package of the project: `package`, as above."""
    return (
        f"The {what} {name!r} belongs to lossratio-{package}, which is not installed: "
        f"{how_to_install_package(package)}."
    )


@dataclass(frozen=True)
class PluginGroup:
    """A group of entry points."""

    name: str
    """The group's name, e.g. ``lossratio.dut``."""
    what: str
    """What a plug-in of the group is, for messages, e.g. ``kind of DUT``."""
    error: type[LossRatioError]
    """The class of errors that the group raises."""
    base: str
    """The public name of the class that plug-ins belong to, or are subclasses of, e.g. ``lossratio.dut.Dut``."""
    own: tuple[EntryPoint, ...] = ()
    """Entry points of lossratio itself. A checkout that is not installed has them, too."""

    def names(self) -> tuple[str, ...]:
        """Names of all plug-ins, in alphabetical order; reading them loads no plug-in."""
        return tuple(sorted({entry.name for entry in self._entries()}))

    def added(self) -> tuple[EntryPoint, ...]:
        """The entry points of other packages, by package and name; reading them loads no plug-in."""
        return tuple(sorted(_installed(self.name, tuple(sys.path)), key=_package_and_name))

    def find(self, name: str) -> EntryPoint:
        """The entry point with a name.

        Raises:
            LossRatioError: Of the group's class (`error`), if this name has no entry point, or several.
        """
        entries = {entry.value: entry for entry in self._entries() if entry.name == name}
        if not entries:
            raise self.error(self.unknown(name, self.names()))
        if len(entries) > 1:
            packages = ", ".join(
                f"{value} ({distribution_of(entry)})" for value, entry in entries.items()
            )
            raise self.error(
                f"Several packages have a {self.what} {name!r}: {packages}. Uninstall all but one."
            )
        (entry,) = entries.values()
        return entry

    def load(self, name: str) -> object:
        """Imports a plug-in.

        Raises:
            LossRatioError: Of the group's class (`error`), if `find` raises it, or the plug-in cannot be imported.
        """
        entry = self.find(name)
        try:
            return entry.load()
        # Importing other people's code may raise anything.
        except Exception as cause:
            raise self.broken(
                entry, f"cannot be loaded: {type(cause).__name__}: {cause}"
            ) from cause

    def load_class(self, name: str, base: type[PluginT]) -> type[PluginT]:
        """Imports a plug-in that is a class, a subclass of the group's `base`.

        Raises:
            LossRatioError: Of the group's class (`error`), as in `load`; or if the plug-in is not such a class, or
                lacks methods.
        """
        loaded = self.load(name)
        if not (isinstance(loaded, type) and issubclass(loaded, base)):
            raise self.broken(self.find(name), f"is not a subclass of {self.base}")
        self.check_methods(name, loaded)
        return loaded

    def load_object(self, name: str, base: type[PluginT]) -> PluginT:
        """Imports a plug-in that is an object of the group's `base`.

        Raises:
            LossRatioError: Of the group's class (`error`), as in `load`; or if the plug-in is not such an object.
        """
        loaded = self.load(name)
        if not isinstance(loaded, base):
            raise self.broken(self.find(name), f"is not a {self.base}")
        return loaded

    def check_methods(self, name: str, loaded: object) -> None:
        """Makes sure that a plug-in has all methods that its base requires.

        Raises:
            LossRatioError: Of the group's class (`error`), if it lacks a method.
        """
        missing = ", ".join(sorted(getattr(loaded, "__abstractmethods__", ())))
        if missing:
            raise self.broken(self.find(name), f"lacks what every {self.what} has: {missing}")

    def broken(self, entry: EntryPoint, problem: str) -> LossRatioError:
        """The error for an unfit plug-in. It names the distribution; `problem` is the rest of the sentence."""
        return self.error(
            f"The {self.what} {entry.name!r} of {distribution_of(entry)} ({entry.value}) {problem}."
        )

    def unknown(self, name: str, names: Sequence[str]) -> str:
        """The message that no plug-in has a name. It lists the names of the plug-ins, and suggests the nearest one."""
        return (
            f"There is no {self.what} {name!r}. Choose one of these: {names_near(str(name), names)}"
        )

    def _entries(self) -> tuple[EntryPoint, ...]:
        return (*self.own, *_installed(self.name, tuple(sys.path)))


def plugin_group(
    name: str,
    *,
    what: str,
    error: type[LossRatioError],
    base: str,
    room: str,
    own: Mapping[str, str],
) -> PluginGroup:
    """Declares a group, with lossratio's own plug-ins.

    Args:
        name: See `PluginGroup`, also for `what`, `error` and `base`.
        what: Likewise.
        error: Likewise.
        base: Likewise.
        room: The package that has lossratio's own plug-ins, e.g. ``lossratio.dut``.
        own: The place of each plug-in in that package, by name, e.g. ``{"ovs": "ovs:OpenVswitch"}``.
    """
    entries = (EntryPoint(key, f"{room}.{place}", name) for key, place in own.items())
    return PluginGroup(name, what, error, base, tuple(entries))


def _package_and_name(entry: EntryPoint) -> tuple[str, str]:
    return distribution_of(entry), entry.name


@cache
def _installed(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    # This call reads a file of each package on the path, which takes 10 ms.
    return tuple(entry_points(group=group))


def distribution_of(entry: EntryPoint) -> str:
    """Name and version of the distribution that an entry point belongs to, e.g. ``our-duts 1.0``."""
    if entry.dist is None:
        return "lossratio"
    return f"{entry.dist.name} {entry.dist.version}"
