"""Chromium without a window, over the pipe of its DevTools protocol: for benchmarks and tests of pages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
"""The browser's program; None: there is none."""

_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
_READY = """new Promise(done => {
    const look = () => document.documentElement.dataset.ready === undefined ? setTimeout(look, 10)
        : requestAnimationFrame(() => setTimeout(() => done(performance.now() / 1000)));
    look();
})"""


@dataclass
class Browser:
    """A running browser with one page."""

    commands: int
    """File descriptor for commands."""
    answers: Any
    """File for answers."""
    session: str = ""
    """The session of the page; empty: none yet."""
    faults: list[str] = field(default_factory=list)
    """Errors on the page's console, and exceptions of its scripts."""
    _last: int = 0

    def open(self, page: Path, *, width: int = 1200, height: int = 1000, fragment: str = "") -> float:
        """Opens a page of ours, in a tab of its own.

        Args:
            page: The file.
            width: Width of the window, pixels.
            height: Height of the window.
            fragment: The part of the address after ``#``.

        Returns:
            The seconds until the page was there and drawn for the first time.
        """
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.size(width, height)
        self.send("Runtime.enable")
        self.send("Page.enable")
        self.send("Page.navigate", url=page.resolve().as_uri() + (f"#{fragment}" if fragment else ""))
        self.run("new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))")
        return float(self.run(_READY))

    def size(self, width: int, height: int) -> None:
        """Changes the size of the page, in pixels."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def run(self, script: str) -> Any:
        """Runs an expression in the page.

        Returns:
            Its value, or that of its promise.

        Raises:
            RuntimeError: If the expression fails.
        """
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def send(self, method: str, **params: object) -> Any:
        """Sends a command of the protocol, and waits for its answer.

        Raises:
            RuntimeError: If the browser refuses the command, or ends.
        """
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self.session and not method.startswith("Target."):
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._next())
            if answer.get("method") == "Runtime.exceptionThrown":
                self.faults.append(json.dumps(answer["params"]["exceptionDetails"]))
            elif answer.get("method") == "Runtime.consoleAPICalled" and answer["params"]["type"] == "error":
                self.faults.append(json.dumps(answer["params"]["args"]))
            elif answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self) -> bytes:
        text = bytearray()
        while not text.endswith(b"\0"):
            part = self.answers.read1(1 << 20) if not self._rest else self._rest
            self._rest = b""
            if not part:
                raise RuntimeError("The browser ended.")
            before, end, self._rest = part.partition(b"\0")
            text += before + end
        return bytes(text[:-1])

    _rest: bytes = b""


@contextmanager
def browser() -> Iterator[Browser]:
    """Starts a browser, and ends it.

    Raises:
        FileNotFoundError: If there is no Chromium.
    """
    if CHROMIUM is None:
        raise FileNotFoundError("There is no Chromium here: install it.")
    from_us, commands = os.pipe()
    answers, from_browser = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The browser has commands and answers as its files 3 and 4.
        script = f'exec "$0" "$@" 3<&{from_us} 4>&{from_browser}'
        process = subprocess.Popen(
            ["bash", "-c", script, CHROMIUM, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(from_us, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(from_browser)
        try:
            with os.fdopen(answers, "rb") as file:
                yield Browser(commands, file)
        finally:
            os.close(commands)
            process.terminate()
            process.wait(30)
