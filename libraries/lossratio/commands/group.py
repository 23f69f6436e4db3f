"""A group of commands whose modules are imported when they are used: each needs other, and mostly heavy, libraries."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class CommandGroup(click.Group):
    """Commands of its own, and others by the names of their modules."""

    def __init__(self, *arguments: Any, places: Mapping[str, str], **options: Any) -> None:
        """Notes where commands are.

        Args:
            arguments: For `click.Group`.
            places: The module and the attribute of each command, separated by a colon, by the command's name.
            options: For `click.Group`.
        """
        super().__init__(*arguments, **options)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See `click.Group.list_commands`."""
        return sorted({*super().list_commands(ctx), *self._places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See `click.Group.get_command`."""
        if cmd_name not in self._places:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._places[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command
