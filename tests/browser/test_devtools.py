"""The few commands with which the benchmarks drive Chromium do what a person would."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from benchmarks import served
from benchmarks.devtools import Chromium, Page

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><title>here</title><input aria-label="box" value="before"><button>press</button><script>
  window.heard = [];
  const [box, button] = document.querySelectorAll('input, button');
  box.addEventListener('keydown', (event) => heard.push([event.key, event.isTrusted, box.value]));
  button.addEventListener('click', (event) => heard.push(['click', event.isTrusted]));
  setTimeout(() => { window.later = 1; }, 200);
</script>"""


@pytest.fixture(scope="module")
def running(chromium: str) -> Iterator[Chromium]:
    with Chromium(chromium, served.FLAGS) as running:
        yield running


def opened(running: Chromium, *scripts: str) -> Page:
    page = running.new_page(*scripts)
    page.goto(f"data:text/html,{quote(PAGE)}")
    page.wait("document.title === 'here' && window.heard")
    return page


def test_typing_keys_and_clicks_are_those_of_a_person(running: Chromium) -> None:
    page = opened(running)
    page.fill("input[aria-label=box]", 'a "b" é 🙂')
    page.press("Enter")
    page.click("document.querySelector('button')")
    assert page.value("heard") == [["Enter", True, 'a "b" é 🙂'], ["click", True]]
    page.close()


def test_values_promises_and_errors_come_back(running: Chromium) -> None:
    page = opened(running, "window.first = document.title;")
    assert page.value("[innerWidth, innerHeight, first, document.hasFocus()]") == [1440, 900, "", True]
    assert page.call("async (a, b) => ({ sum: a + b.c })", 1, {"c": 2}) == {"sum": 3}
    assert page.value("undefined") is None
    page.wait("window.later")
    with pytest.raises(RuntimeError, match="nothing here"):
        page.value("(() => { throw new Error('nothing here'); })()")
    page.close()


def test_a_page_knows_nothing_of_another(running: Chromium) -> None:
    first, second = (opened(running) for _ in range(2))
    first.run("window.mine = 1; document.title = 'mine';")
    assert (first.value("mine"), second.value("window.mine"), second.value("document.title")) == (1, None, "here")
    first.close()
    assert second.value("document.title") == "here"
    second.close()
