"""A real server and a real headless Chromium, one of each for all tests here, which run in one process.

They end with the last of these tests (`scope="package"`): as long as Playwright is there, its event loop runs, and another test
of the same process could not start one.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, ViewportSize, expect, sync_playwright

from benchmarks import served
from benchmarks.bursts import LISTEN
from tests import inside, tiny_models
from tests.needs import skip_without
from tests.surveys.made import survey
from transformer_viz.app_folders import SURVEYS_VARIABLE

# A busy machine may be slow; what is asserted is that things happen, not how fast.
PATIENCE_MS = 60_000
SIZE: ViewportSize = {"width": 1440, "height": 900}
# Most of what Chromium draws, it draws for things that fade and slide.
LOOKS: dict[str, Any] = {"color_scheme": "light", "reduced_motion": "reduce", "forced_colors": "none"}
expect.set_options(timeout=PATIENCE_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under pytest-xdist two processes, each with a server and a Chromium, begin with them: the largest groups come first."""
    files = sorted({item.path for item in items if item.get_closest_marker("browser")})
    for item in items:
        if item.get_closest_marker("browser") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(f"browser {files.index(item.path) % 2}"))


@pytest.fixture(scope="session")
def chromium() -> str:
    skip_without("chromium")
    skip_without("fonts-dejavu-core")
    found = served.chromium()
    assert found
    return found


@pytest.fixture(scope="package")
def surveys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two surveys, as the server lists it."""
    folder = tmp_path_factory.mktemp("surveys")
    for seed, name in enumerate(("one", "two")):
        (folder / name).mkdir()
        (folder / name / "summary.json").write_text(survey(seed).to_json(), encoding="utf-8")
    return folder


@pytest.fixture(scope="package")
def server(surveys: Path) -> Iterator[str]:
    with served.server(environment={SURVEYS_VARIABLE: str(surveys)}) as running:
        yield running.url


@pytest.fixture(scope="package")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_deep(tiny_models.save(tmp_path_factory.mktemp("models")))


@pytest.fixture(scope="package")
def url(models: Path) -> Iterator[str]:
    """Another server, which finds tiny models of transformers too; tests that ask for it are in one process."""
    with served.server(environment={"TRANSFORMER_VIZ_MODELS": str(models)}) as running:
        yield running.url


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    skip_without("libatomic1")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=served.FLAGS)
        yield browser
        browser.close()


def _tab(browser: Browser) -> Page:
    # Playwright waits for conditions by `eval`, which the content policy forbids; test_policy.py has the pages under it.
    page = browser.new_context(viewport=SIZE, bypass_csp=True, **LOOKS).new_page()
    page.add_init_script(LISTEN)
    put_question_away(page)
    page.set_default_timeout(PATIENCE_MS)
    return page


def put_question_away(page: Page) -> None:
    """A first visitor is asked something; test_first_contact.py has that."""
    ((name, value),) = inside.WITHOUT_A_QUESTION.items()
    page.context.add_cookies([{"name": name, "value": value, "domain": "localhost", "path": "/"}])


@pytest.fixture(scope="package")
def tabs(browser: Browser) -> Iterator[list[Page]]:
    """The only pages of two browsers. A page whose scripts are loaded opens the app again in a third of the time."""
    pages = [_tab(browser), _tab(browser)]
    yield pages
    for page in pages:
        page.context.close()


@pytest.fixture
def page(tabs: list[Page]) -> Iterator[Page]:
    """A page that knows nothing of the tests before; it fails its test at the end if a script failed or a request left."""
    with _watched(tabs[0]) as page:
        yield page
        _forget(page)


@pytest.fixture
def another(tabs: list[Page]) -> Iterator[Page]:
    """A page, likewise, of a browser that knows nothing of the first."""
    with _watched(tabs[1]) as page:
        yield page
        _forget(page)


@pytest.fixture
def new_page(browser: Browser) -> Iterator[Page]:
    """A page, likewise, of a browser that has loaded nothing before."""
    with _watched(_tab(browser)) as page:
        yield page
        page.context.close()


@contextmanager
def _watched(page: Page) -> Generator[Page]:
    strayed: list[str] = []
    errors: list[str] = []

    def on_request(request: Request) -> None:
        if not _is_here(request.url):
            strayed.append(request.url)

    def on_error(error: Error) -> None:
        errors.append(str(error))

    page.on("request", on_request)
    page.on("pageerror", on_error)
    try:
        yield page
    finally:
        page.remove_listener("request", on_request)
        page.remove_listener("pageerror", on_error)
    assert not strayed, f"requests left the machine: {strayed}"
    assert not errors, f"scripts failed: {errors}"


def _forget(page: Page) -> None:
    if page.url != "about:blank":
        page.evaluate("() => [localStorage, sessionStorage].forEach((one) => one.clear())")
    page.goto("about:blank")
    page.context.clear_cookies()
    put_question_away(page)
    page.context.clear_permissions()
    page.set_viewport_size(SIZE)
    page.emulate_media(media="null", **LOOKS)


def _is_here(url: str) -> bool:
    return url.startswith(("http://localhost:", "ws://localhost:", "data:", "blob:"))


@pytest.fixture(scope="package")
def offline(browser: Browser) -> Iterator[Page]:
    """The only page of a browser without a network."""
    page = browser.new_context(offline=True, **LOOKS).new_page()
    page.set_default_timeout(PATIENCE_MS)
    yield page
    page.context.close()


@pytest.fixture
def open_page(offline: Page, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """`open_page(html, width=…, scheme=…)`: from disk, offline; fails at the end if a script failed or anything was asked for.

    There is one such page: the next takes its place. `lacks` is part of the address of a file that the page may miss.
    """
    page, errors, missing = offline, [], ["nothing"]

    def on_request(request: Request) -> None:
        if not request.url.startswith((tmp_path.as_uri(), "data:", "blob:", "about:")):
            errors.append(f"asks for {request.url}")

    def on_message(message: ConsoleMessage) -> None:
        if message.type == "error" and missing[-1] not in message.location.get("url", ""):
            errors.append(message.text)

    def on_error(error: Error) -> None:
        errors.append(str(error))

    def show(content: str, width: int = 1440, height: int = 900, scheme: Any = "light", lacks: str = "nothing") -> Page:
        missing.append(lacks)
        file = tmp_path / "run.html"
        file.write_text(content, encoding="utf-8")
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        # Or a place in the address of the page before would be taken for one in this.
        page.goto("about:blank")
        page.goto(file.as_uri())
        return page

    hears: dict[Any, Callable[..., None]] = {"request": on_request, "console": on_message, "pageerror": on_error}
    for event, hear in hears.items():
        page.on(event, hear)
    yield show
    for event, hear in hears.items():
        page.remove_listener(event, hear)
    _forget(page)
    assert not errors
