"""A long run in a real browser: its tokens appear, another visitor waits in line, Stop keeps what there is."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import transformer_viz as tv
from benchmarks import served
from tests.browser.charts import wait_until_drawn

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SLOW = """
from pathlib import Path
from tests.until import until
from tests.needs import slow
from transformer_viz.views.cache import computing, runs

plain, let_go = runs.decode, Path({folder!r})

def slow(model, text, *, on_token, **options):
    def wait(written):
        until(lambda: (let_go / text).stat().st_size >= written.n_steps)
        return on_token(written)
    return plain(model, text, on_token=wait, **options)

if computing.QUICK:
    computing.QUICK, runs.decode = 0.0, slow
"""
"""Before the app's own lines: every run is a long one, and each of its tokens waits until a file is as long."""
FIRST, SECOND = "hello", "abc"


class Tokens:
    """Lets tokens go on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for text in (FIRST, SECOND):
            self.up_to(text, 0)

    def up_to(self, text: str, n: int) -> None:
        (self.folder / text).write_bytes(bytes(n))


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path)


@pytest.fixture
def url(tokens: Tokens, tmp_path: Path) -> Iterator[str]:
    script = tmp_path / "slow.py"
    own = (served.ROOT / "app.py").read_text(encoding="utf-8")
    script.write_text(SLOW.format(folder=str(tmp_path)) + own, encoding="utf-8")
    with served.server(script) as running:
        yield running.url
        for text in (FIRST, SECOND):
            tokens.up_to(text, 1000)


def test_a_long_run_is_watched_stopped_and_waited_for(page: Page, another: Page, url: str, tokens: Tokens) -> None:
    page.goto(f"{url}/?text={FIRST}")
    run = page.locator(".st-key-long-job")
    expect(run).to_contain_text("Reading the text")
    tokens.up_to(FIRST, 2)
    expect(run).to_contain_text("2 tokens · ")
    whole = tv.decode(tv.load_checkpoint("reverse"), FIRST)
    expect(run.get_by_test_id("stText")).to_have_text(whole.text[:2])
    another.goto(f"{url}/?text={SECOND}")
    waiting = another.locator(".st-key-long-job")
    expect(waiting).to_contain_text("2nd in line; 1 run before yours")
    # The page answers while it writes.
    page.get_by_role("button", name="Glossary").click()
    expect(page.get_by_text("The unit that the model reads and writes")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Stop")).to_be_disabled()
    tokens.up_to(FIRST, 3)
    wait_until_drawn(page)
    expect(page.locator("[data-part=output] .token")).to_have_text(list(whole.output_tokens[:3]))
    expect(page.locator(".stMain")).to_contain_text("Stopped after 3 tokens.")
    expect(waiting).to_contain_text("Reading the text")
    tokens.up_to(SECOND, 1000)
    wait_until_drawn(another)
    own = tv.decode(tv.load_checkpoint("reverse"), SECOND)
    expect(another.locator("[data-part=output] .token")).to_have_text(list(own.output_tokens))
    # It is written from its beginning.
    page.get_by_role("button", name="Write it again, to its end").click()
    tokens.up_to(FIRST, 1000)
    expect(page.locator("[data-part=output] .token")).to_have_text(list(whole.output_tokens))
