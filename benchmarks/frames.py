"""Is a look that travels smooth? `python -m benchmarks.frames [--steps 10]`.

Steps on through a word of 13 letters. For 800 ms after each press it counts the frames that were drawn, and notes the longest
time between two, and the tasks that kept the browser for more than 50 ms.
"""

import argparse
import json
from contextlib import ExitStack
from statistics import median
from typing import Any

from playwright.sync_api import Page, sync_playwright

from benchmarks import served

PATH = "/?text=thirteenlette&step=1"
_WITHIN_MS = 800
_WATCH = """() => {
  window.tasks = [];
  new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((one) => [one.startTime, one.duration])))
    .observe({ type: 'longtask' });
}"""
_STEP = """(within) => new Promise((done) => {
  const from = performance.now(), frames = [];
  const look = (now) => {
    frames.push(now);
    if (performance.now() - from < within) return requestAnimationFrame(look);
    // A task is told of when it has ended.
    return setTimeout(() => done({
      frames: frames.length, longest: Math.max(...frames.slice(1).map((one, place) => one - frames[place])),
      tasks: window.tasks.filter(([start]) => start >= from).map(([, duration]) => Math.round(duration)),
    }), 100);
  };
  requestAnimationFrame(look);
  document.querySelector('[data-part=next]').click();
})"""


def steps(page: Page, n: int) -> list[dict[str, Any]]:
    """What was seen of each of so many steps, of a page that is open and at rest."""
    page.evaluate(_WATCH)
    found = []
    for _ in range(n):
        found.append(page.evaluate(_STEP, _WITHIN_MS))
        page.wait_for_timeout(700)
    return found


def main() -> None:
    """Prints each step, and the median of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10)
    n = parser.parse_args().steps
    with ExitStack() as stack:
        server = stack.enter_context(served.server())
        browser = stack.enter_context(sync_playwright()).chromium.launch(executable_path=served.chromium(), args=served.FLAGS)
        page = browser.new_context(
            bypass_csp=True, viewport={"width": 1280, "height": 720}, reduced_motion="no-preference"
        ).new_page()
        page.goto(server.url + PATH)
        page.locator(".viewer [data-part=focus] .main-svg").first.wait_for()
        page.wait_for_timeout(3000)
        found = steps(page, n)
        for step in found:
            print(json.dumps(step))
        a_second = [step["frames"] * 1000 / _WITHIN_MS for step in found]
        tasks = [task for step in found for task in step["tasks"]]
        print(f"{median(a_second):.0f} frames a second (at least {min(a_second):.0f}); {len(tasks)} tasks over 50 ms {tasks}")


if __name__ == "__main__":
    main()
