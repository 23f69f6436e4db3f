"""Calls the hooks of a device: commands, and functions such as keywords."""

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lossratio.errors import DutError, NodeError
from lossratio.files import CallError, run_program, said_by, shown
from lossratio.nodes import CommandRunner
from lossratio.topology import Hook, Hooks
from lossratio.values import names_near

MOST_OUTPUT = 1_000_000
"""The maximum number of bytes of an answer; a longer answer is an error."""
_MOST_DIGITS = 20
_COUNTERS = ("received", "transmitted", "dropped", "details")
Counts = dict[str, dict[str, int]]


class HookCaller:
    """Calls the hooks of a device. Every failure is an error that names the device and the hook."""

    def __init__(self, name: str, hooks: Hooks, session: CommandRunner) -> None:
        self.name = name
        self._hooks = hooks
        self._session = session
        self._functions: dict[str, Callable[..., Any]] = {}

    def use(self, hook: str, function: Callable[..., Any]) -> None:
        """Uses a function as a hook from now on; a function for ``reconfigure`` gets the number of entries.

        Args:
            hook: Name of the hook, as in the topology file.
            function: The function that is called from now on, instead of the file's hook.

        Raises:
            DutError: If there is no such hook.
        """
        if hook not in Hooks.model_fields:
            raise DutError(
                f"There is no hook {hook!r}. The hooks are {names_near(hook, Hooks.model_fields)}"
            )
        self._functions[hook] = function

    def has(self, hook: str) -> bool:
        """Whether the device has a hook."""
        return hook in self._functions or getattr(self._hooks, hook) is not None

    def is_function(self, hook: str) -> bool:
        """Whether a function was given for a hook."""
        return hook in self._functions

    def describe(self) -> Any:
        """The device's description: values by name, the JSON that it gave, or text."""
        answer = self.call("describe")
        hook = None if self.is_function("describe") else self._hooks.describe
        if hook is None:
            return answer
        if not hook.values:
            return _json_in(answer) or answer.strip()
        return {name: self._value("describe", answer, place) for name, place in hook.values.items()}

    def counters(self) -> Counts:
        """The device's counters by field (``received``, ``transmitted``, ``dropped``, ``details``) and name.

        Raises:
            DutError: If the hook fails, or its answer is anything but numbers of frames by side.
        """
        answer = self.call("counters")
        hook = None if self.is_function("counters") else self._hooks.counters
        places = {} if hook is None else hook.places
        if isinstance(answer, str) and any(places.values()):
            answer = {
                field: {name: self._value("counters", answer, place) for name, place in own.items()}
                for field, own in places.items()
            }
        elif isinstance(answer, str):
            answer = _json_in(answer)

        if not isinstance(answer, Mapping) or not set(answer) <= set(_COUNTERS) or not answer:
            fields = ", ".join(_COUNTERS)
            raise self._error(
                "counters",
                f"the answer must be a mapping with one or more of {fields}, not {shown(answer)!r}",
            )

        counts: Counts = {field: {} for field in _COUNTERS}
        for field, values in answer.items():
            if not isinstance(values, Mapping):
                raise self._error("counters", f"{field!r} is not a mapping: {shown(values)!r}")
            for name, value in values.items():
                count = _count(value)
                if count is None:
                    raise self._error(
                        "counters", f"{field} {name} is not a number of frames: {shown(value)!r}"
                    )
                if field in ("received", "transmitted") and name not in ("west", "east"):
                    raise self._error(
                        "counters",
                        f"{field} has a value for {name!r}, which is not a side: give values for west and east",
                    )
                counts[field][str(name)] = count

        return counts

    def call(self, name: str, entries: int | None = None) -> Any:
        """Calls a hook, and returns the text that it gave, or the value of a function.

        The hook ``reconfigure`` needs the number of entries; no other hook takes one.

        Raises:
            DutError: If the device has no such hook, or its command failed.
        """
        function = self._functions.get(name)
        if function is not None:
            if entries is None:
                return function()
            return function(entries)

        hook: Hook | None = getattr(self._hooks, name)
        if hook is None:
            raise self._error(
                name,
                f"there is no such hook: add 'hooks: {{{name}: {{command: ...}}}}' to its node in the topology file",
            )
        words: Sequence[str] = hook.command
        if isinstance(hook.command, str):
            words = shlex.split(hook.command)
        return self._of_command(name, hook, tuple(_filled(word, entries) for word in words))

    def _of_command(self, name: str, hook: Hook, command: tuple[str, ...]) -> str:
        if hook.runs_on == "controller":
            try:
                here = run_program(command, stdin=b"", timeout=hook.timeout, most=MOST_OUTPUT)
            except CallError as error:
                raise self._error(name, f"{shlex.join(command)} {error}") from error
            status = here.returncode
            stdout, stderr = (
                output.decode(errors="replace") for output in (here.stdout, here.stderr)
            )
        else:
            try:
                # If there is input, the command is sent as it is: an appliance may not know an addition such as
                # '</dev/null'.
                done = self._session.run(
                    *command, timeout=hook.timeout, check=False, stdin="\n", most=MOST_OUTPUT
                )
            except NodeError as error:
                raise NodeError(f"{self.name}: the hook {name!r} failed: {error}") from error
            status = done.exit_status
            stdout = done.stdout
            stderr = done.stderr

        if status != 0:
            said = repr(shown(said_by(stdout, stderr)))
            raise self._error(
                name, f"{shlex.join(command)} ended with exit status {status}: {said}"
            )
        return stdout

    def _value(self, name: str, answer: str, place: str) -> Any:
        if place.startswith("/"):
            value: Any = _json_in(answer)
            if value is None:
                raise self._error(name, f"the answer is not JSON: {shown(answer)!r}")

            for step in place[1:].split("/"):
                key = step.replace("~1", "/").replace("~0", "~")
                try:
                    value = value[int(key)] if isinstance(value, list) else value[key]
                except (KeyError, IndexError, ValueError, TypeError):
                    raise self._error(
                        name, f"there is no {place} in the answer: {shown(answer)!r}"
                    ) from None

            return value

        match = re.search(place, answer, flags=re.MULTILINE)
        if match is None:
            raise self._error(name, f"nothing matches {place!r} in the answer: {shown(answer)!r}")
        return match.group(1)

    def _error(self, name: str, text: str) -> DutError:
        return DutError(f"{self.name}: the hook {name!r} failed: {text}.")


def _filled(text: str, entries: int | None) -> str:
    if entries is None:
        return text
    return text.replace("{entries}", str(entries))


def _json_in(text: str) -> Any:
    try:
        value = json.loads(text)
        # The kept answer must be JSON that every reader accepts: no infinity, no half of a surrogate pair.
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value


def _count(value: Any) -> int | None:
    """A number of frames of at most 64 bits; None: the value is not such a number."""
    if isinstance(value, bool):
        return None
    if not isinstance(value, int):
        text = str(value).strip()
        if len(text) > _MOST_DIGITS or not (text.isascii() and text.isdecimal()):
            return None
        value = int(text)
    return value if 0 <= value < 1 << 64 else None
