"""Train: what is pressed trains and is in view, and the form stays as it was left.

In a classroom another browser sees a training and cannot stop it; whoever started it and the server's owner can.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from benchmarks import served
from tests.browser.charts import choose
from tests.until import until
from transformer_viz import app_folders, locks
from transformer_viz.training.recipes import recipe_for
from transformer_viz.views.server.jobs import Job, Visitor
from transformer_viz.views.server.visitors import COOKIE

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser 0")]


@pytest.fixture
def training() -> Iterator[Job]:
    """A training that says it runs, where the server looks for it; nobody trains."""
    name = f"of-a-test-{os.getpid()}"
    job = Job(folder=app_folders.trained() / ".jobs" / name, recipe=recipe_for("reverse"), started=9e9)
    job.folder.mkdir(parents=True)
    (job.folder / "state").write_text("running")
    try:
        with locks.hold_lock(job.folder / "lock"):
            yield job
    finally:
        shutil.rmtree(job.folder)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server of which nobody is the owner just for being on this machine, and a file with what its terminal shows."""
    output = tmp_path_factory.mktemp("shared") / "output"
    with served.server(environment={app_folders.SHARED_VARIABLE: "1"}, output=output) as running:
        yield running.url, output


def begun_by(job: Job, token: str) -> None:
    data = {"recipe": job.recipe.to_json(), "started": job.started, "mark": Visitor(token).mark}
    (job.folder / "job.json").write_text(json.dumps(data))


def watched(page: Page, server: str, job: Job) -> Locator:
    """The button that stops it, once the page shows how far it is."""
    page.goto(f"{server}/train?job={job.name}")
    expect(page.get_by_text(f"step 0 of {job.recipe.steps:,}")).to_be_visible()
    return page.get_by_role("button", name="Stop and keep")


@pytest.mark.slow
def test_only_its_starter_and_the_owner_can_stop_a_training(browser: Browser, shared: tuple[str, Path], training: Job) -> None:
    server, output = shared
    (secret,) = re.findall(r"[?]owner=(\S+)", output.read_text())
    with ExitStack() as stack:
        pages = [stack.enter_context(browser.new_context()).new_page() for _ in range(3)]
        starter, stranger, owner = pages
        starter.goto(f"{server}/train")
        (token,) = [cookie.get("value", "") for cookie in starter.context.cookies() if cookie.get("name") == COOKIE]
        begun_by(training, token)
        owner.goto(f"{server}/train?owner={secret}&task=copy")
        expect(owner).to_have_url(re.compile(r"/train\?task=copy"))
        stranger.goto(f"{server}/train?owner={secret}&task=copy")
        expect(stranger.get_by_text("works once")).to_be_visible()
        for page in pages:
            stop = watched(page, server, training)
            if page is stranger:
                expect(page.get_by_text("Started in another browser")).to_be_visible()
                expect(stop).to_have_count(0)
            else:
                stop.click()
                request = training.folder / "request"
                until(request.exists)
                assert request.read_text() == "stop"
                request.unlink()
            assert "transformer_viz" not in page.evaluate("document.cookie")
            assert token not in page.content() + page.url
            assert secret not in page.content() + page.url


@pytest.fixture
def emptied() -> Iterator[None]:
    """What a test has trained goes when it ends."""
    before = names_of_jobs()
    yield
    for name in names_of_jobs() - before:
        until(lambda name=name: not locks.is_locked(app_folders.trained() / ".jobs" / name / "lock"))
        shutil.rmtree(app_folders.trained() / ".jobs" / name, ignore_errors=True)
        shutil.rmtree(app_folders.trained() / name, ignore_errors=True)


def names_of_jobs() -> set[str]:
    return {file.parent.name for file in (app_folders.trained() / ".jobs").glob("*/job.json")}


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1280, 720), (390, 844)])
def test_a_preset_trains_on_one_click(page: Page, server: str, emptied: None, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"{server}/train")
    page.get_by_role("button", name="Two sentences, ten seconds").click()
    progress = page.get_by_text(re.compile(r"step \d+ of 60"))
    expect(progress).to_be_in_viewport()
    expect(page.get_by_role("button", name="Start training")).to_be_hidden()
    expect(page.get_by_text("step 60 of 60")).to_be_in_viewport()
    expect(page.get_by_role("button", name="Open in Explore")).to_be_visible()


def test_other_pages_say_that_a_training_runs(page: Page, server: str, training: Job) -> None:
    page.goto(f"{server}/masks")
    link = page.get_by_role("link", name=f"{training.name} is learning")
    expect(link).to_be_visible()
    link.click()
    expect(page).to_have_url(re.compile("/train"))
    expect(link).to_have_count(0)


@pytest.mark.slow
def test_the_form_is_as_it_was_after_another_page(page: Page, server: str) -> None:
    page.goto(f"{server}/train")
    page.get_by_text("A training of your own", exact=True).click()
    choose(page, "Task", "dates")
    choose(page, "Variant", "post-norm")
    page.get_by_text("Advanced: all settings").click()
    steps = page.get_by_role("spinbutton", name="Steps", exact=True)
    steps.fill("123")
    steps.press("Enter")
    expect(page).to_have_url(re.compile("train_steps=123"))
    for title, seen in (("Masks", ".st-key-lab-header"), ("Train", ".st-key-train_task")):
        page.locator(".st-key-pages").get_by_role("link", name=title).click()
        expect(page.locator(seen)).to_be_visible()
    expect(steps).to_have_value("123")
    for label, value in (("Task", "dates"), ("Variant", "post-norm")):
        expect(page.get_by_role("combobox", name=label, exact=True)).to_have_value(value)
    expect(page.get_by_role("button", name="Start training")).to_be_visible()
