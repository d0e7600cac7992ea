"""Chromium, driven with a handful of commands of its DevTools protocol.

A browser under test tells of each request, each message of a socket, each script. Writing that down and reading it takes an
eighth of the time of a first visit on two cores (docs/performance.md), and nobody who uses the app has it. Here nothing is
asked for but what a measurement needs. Tests, where time does not count, have Playwright.
"""

import itertools
import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

PATIENCE_S = 120
_PORT_FILE = "DevToolsActivePort"
_POLL_S = 0.05
_KEYS = {"Enter": {"code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}}


class Chromium:
    """A browser of its own, with a new profile; a context manager that ends it."""

    def __init__(self, program: str, flags: Sequence[str]) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        asked = [program, *flags, "--remote-debugging-port=0", f"--user-data-dir={self._profile.name}", "about:blank"]
        self._process = subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._numbers = itertools.count(1)
        self._open = ExitStack()
        self._socket = self._open.enter_context(connect(self._address(), max_size=None, compression=None, open_timeout=60))
        self.version = str(self.send("Browser.getVersion")["product"]).split("/")[-1]

    def __enter__(self) -> "Chromium":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self._process.kill()
        self._process.wait()
        self._profile.cleanup()

    def _address(self) -> str:
        file, end = Path(self._profile.name) / _PORT_FILE, time.monotonic() + 60
        while time.monotonic() < end:
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
            if len(lines) == 2:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            time.sleep(_POLL_S)
        raise TimeoutError("Chromium said within a minute at no port that it listens")

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """One command and its answer; what else the browser says is passed over.

        Raises:
            RuntimeError: the browser refuses it.
        """
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        self._socket.send(json.dumps(command))
        while True:
            answer = json.loads(self._socket.recv(timeout=PATIENCE_S))
            if answer.get("id") == number:
                break
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error'].get('message')}")
        return answer.get("result", {})

    def new_page(self, *scripts: str, width: int = 1440, height: int = 900) -> "Page":
        """A page of a context of its own: another person's browser, with nothing cached. `scripts` run before the page's."""
        return Page(self, scripts, width, height)


class Page:
    """One page. Expressions and functions are JavaScript; what they give comes back as JSON."""

    def __init__(self, browser: Chromium, scripts: tuple[str, ...], width: int, height: int) -> None:
        self._browser = browser
        self._context = browser.send("Target.createBrowserContext")["browserContextId"]
        target = browser.send("Target.createTarget", url="about:blank", browserContextId=self._context)["targetId"]
        self._session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._send("Emulation.setDeviceMetricsOverride", **size)
        self._send("Emulation.setFocusEmulationEnabled", enabled=True)
        self._send("Page.enable")
        for script in scripts:
            self._send("Page.addScriptToEvaluateOnNewDocument", source=script)

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **parameters)

    def goto(self, url: str) -> None:
        """Begins to load it."""
        self._send("Page.navigate", url=url)

    def value(self, expression: str) -> Any:
        """Of an expression, once it has it where that is a promise.

        Raises:
            RuntimeError: it throws.
        """
        found = self._send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"].get("exception", {}).get("description", found)))
        return found["result"].get("value")

    def call(self, function: str, *arguments: Any) -> Any:
        """What a function gives for these arguments."""
        return self.value(f"({function})({', '.join(map(json.dumps, arguments))})")

    def run(self, script: str) -> None:
        """A whole script, for what it does."""
        self._send("Runtime.evaluate", expression=script)

    def wait(self, condition: str) -> None:
        """Until an expression holds; while the page is not there yet it does not.

        Raises:
            TimeoutError: not within two minutes.
        """
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                if self.value(f"Boolean({condition})"):
                    return
            except RuntimeError:
                pass
            time.sleep(_POLL_S)
        raise TimeoutError(f"not within {PATIENCE_S} s: {condition}")

    def press(self, key: str) -> None:
        """A key, down and up."""
        for kind in ("keyDown", "keyUp"):
            self._send("Input.dispatchKeyEvent", type=kind, key=key, **_KEYS[key])

    def fill(self, selector: str, text: str) -> None:
        """Puts a text in place of what a box holds, and leaves the box with the focus."""
        self.call("(selector) => { const box = document.querySelector(selector); box.focus(); box.select(); }", selector)
        self._send("Input.insertText", text=text)

    def click(self, element: str) -> None:
        """The middle of an element, given as an expression."""
        x, y = self.value(
            f"(() => {{ const box = ({element}).getBoundingClientRect();"
            " return [box.left + box.width / 2, box.top + box.height / 2]; })()"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self._send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def close(self) -> None:
        """Ends the page and its context."""
        self._browser.send("Target.disposeBrowserContext", browserContextId=self._context)
