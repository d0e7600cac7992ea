"""`python -m benchmarks.one_master.bursts [--bursts 400] [--delay 0] [--seed 1]`: does the design lose a press?"""

import argparse
import json
import random
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import Error, Page, TimeoutError, sync_playwright

from benchmarks import served
from benchmarks.slow_line import slow_line

SCRIPT = Path(__file__).with_name("app.py")
SAID = """() => {
  const host = document.querySelector('.st-key-viewer [data-testid=stBidiComponentIsolated]');
  return JSON.parse(host.shadowRoot.querySelector('.said').textContent);
}"""
ADDRESS = {"text": "hello", "kind": "cross", "step": 0, "pin": "", "model": "one", "tab": "first"}


def state(page: Page) -> dict:
    """What picture, server and address say."""
    picture = page.evaluate(SAID)
    server = json.loads(page.locator("[data-testid=stText]", has_text="server").inner_text().removeprefix("server "))
    said = dict(parse_qsl(urlsplit(page.url).query))
    address = {name: type(value)(said.get(name, value)) for name, value in ADDRESS.items()}
    return {"picture": picture, "server": server, "address": address}


def rest(page: Page) -> None:
    """Until Streamlit runs no script, and the picture has its run's numbers."""
    page.wait_for_function(
        f"""() => {{
          try {{
            const said = ({SAID})(), app = document.querySelector('[data-testid=stApp]');
            return said.run && said.numbers === said.run && app.dataset.testScriptState === 'notRunning';
          }} catch {{ return false; }}
        }}""",
        timeout=20_000,
    )


def settle(page: Page) -> dict:
    """The state, once it stays what it is."""
    before, since, end = None, time.monotonic(), time.monotonic() + 30
    while time.monotonic() < end:
        try:
            rest(page)
        except TimeoutError:
            print(
                "no rest:",
                page.url,
                page.evaluate(f"() => {{ try {{ return ({SAID})(); }} catch (error) {{ return String(error); }} }}"),
            )
            return {}
        try:
            now = state(page)
        except Error:  # it is drawn meanwhile
            now = None
        if now != before or now is None:
            before, since = now, time.monotonic()
        elif time.monotonic() - since > 0.7:
            return now
        page.wait_for_timeout(60)
    return before or {}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bursts", type=int, default=40)
    parser.add_argument("--delay", type=float, default=0, help="milliseconds of the line, each way")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    dice, presses, wrong = random.Random(options.seed), 0, []
    with ExitStack() as stack:
        server = stack.enter_context(served.server(SCRIPT))
        url = stack.enter_context(slow_line(server.url, options.delay))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=served.chromium(), args=served.FLAGS)
        page = browser.new_page(viewport={"width": 1200, "height": 1200})
        page.on("pageerror", lambda error: print("script failed:", error))
        page.goto(url)
        settle(page)
        want: dict[str, Any] = {**ADDRESS, "file": None}
        draft = None
        for burst in range(options.bursts):
            done = []
            for _ in range(dice.randint(2, 8)):
                # Streamlit forgets a box of its own whose answer is under way where another page is opened.
                is_under_way = any(name in ("model", "tab", "upload") for name, _ in done)
                # A step or a pin that is pressed while a text is read is one of the run before: it is left out.
                of_run = [] if any(name in ("text", "model") for name, _ in done) else ["step", "step", "key", "pin", "pin"]
                what = dice.choice([*of_run, "kind", "kind", "text", "draft", "model", "tab", "switch", "upload"])
                presses += 1
                if what == "switch" and is_under_way:
                    settle(page)
                if what == "step":
                    value = dice.randrange(6)
                    page.locator(f".step-{value}").click()
                    want["step"] = value
                elif what == "key":
                    page.locator(".kind-cross").press("ArrowRight")
                    want["step"] = min(5, want["step"] + 1)
                elif what == "kind":
                    value = dice.choice(["encoder", "decoder", "cross"])
                    page.locator(f".kind-{value}").click()
                    want["kind"] = value
                elif what == "pin":
                    value = dice.choice(["1,1", "2,3", "4,5"])
                    page.locator(f"[class='pin-{value}']").click()
                    want["pin"] = "" if want["pin"] == value else value
                elif what in ("text", "draft"):
                    value = "".join(dice.choice("abcdef") for _ in range(5))
                    page.locator(".text").fill(value)
                    draft = value
                    if what == "text":
                        page.locator(".text").press("Enter")
                        want |= {"text": value, "step": 0, "pin": ""}
                        draft = None
                elif what == "model":
                    value = dice.choice(["one", "two"])
                    if value != want["model"]:
                        page.get_by_text(value, exact=True).first.click()
                        want |= {"model": value, "step": 0, "pin": ""}
                elif what == "tab":
                    value = dice.choice(["first", "slow", "third"])
                    page.get_by_role("tab", name=value).click()
                    want["tab"] = value
                elif what == "switch":
                    page.get_by_role("link", name="Other").click()
                    page.get_by_text("another page").wait_for()
                    page.wait_for_timeout(dice.choice([0, 100]))
                    if dice.random() < 0.5:
                        page.go_back()
                    else:
                        page.get_by_role("link", name="Explore").click()
                    page.locator(".text").wait_for()
                    want["file"] = None
                else:
                    name = f"{dice.randrange(1000)}.txt"
                    page.locator("input[type=file]").set_input_files({"name": name, "mimeType": "text/plain", "buffer": b"x"})
                    page.get_by_text(name, exact=True).first.wait_for()
                    want["file"] = name
                done.append((what, want.get(what.replace("key", "step"))))
                page.wait_for_timeout(dice.choice([0, 20, 125, 250, 500]))
            found = settle(page)
            bad = differences(found, want, draft, page)
            if burst % 10 == 9:
                page.goto(page.url)
                draft, want["file"] = None, None
                bad += [f"after reload {one}" for one in differences(settle(page), want, draft, page)]
            if bad:
                wrong.append(burst)
                print(f"burst {burst}: {'; '.join(bad)}\n    {done}", flush=True)
                if found:
                    want |= found["server"]
        browser.close()
    print(json.dumps({"bursts": options.bursts, "delay": options.delay, "presses": presses, "wrong": len(wrong)}))
    return bool(wrong)


def differences(found: dict, want: dict, draft: str | None, page: Page) -> list[str]:
    """Where picture, server, address or box are not what was pressed last."""
    if not found:
        return ["no rest"]
    bad = []
    for name in ("text", "kind", "step", "pin", "model", "tab"):
        for where in ("picture", "server", "address"):
            if name in found[where] and found[where][name] != want[name]:
                bad.append(f"{where} {name} {found[where][name]!r}, pressed {want[name]!r}")
    if found["server"]["file"] != want["file"]:
        bad.append(f"file {found['server']['file']!r}, given {want['file']!r}")
    box = page.locator(".text").input_value()
    if box != (want["text"] if draft is None else draft):
        bad.append(f"box {box!r}, typed {draft!r}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
