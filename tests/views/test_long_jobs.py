"""Long runs on the pages: what is seen while one waits and writes, Stop, another text, and that quick ones have none of it."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import transformer_viz as tv
from tests.until import until
from tests.views.drawn import finished, said
from tests.views.viewer import content, enter, has_viewer, viewer
from tests.views.widgets import link_of, seen
from transformer_viz.checkpoints import load_checkpoint
from transformer_viz.errors import DeviceError
from transformer_viz.mask_checks.result import MaskReport
from transformer_viz.server_settings import Limits
from transformer_viz.trace.trace import Trace
from transformer_viz.views.cache import computing, long_jobs, runs
from transformer_viz.views.cache.job_queue import Job, JobQueue
from transformer_viz.views.cache.store import store
from transformer_viz.views.masks import certificate_tab

PATIENT = 60
TEXT = "hello"


class Slow:
    """`decode`, whose every token waits until it is let go on."""

    def __init__(self) -> None:
        self.tokens = threading.Semaphore(0)
        self.texts: list[str] = []

    def __call__(self, model: Any, text: str, *, on_token: Any = None, **options: Any) -> Trace:
        self.texts.append(text)

        def slow(written: Any) -> Any:
            assert self.tokens.acquire(timeout=PATIENT)
            return on_token(written)

        return tv.decode(model, text, on_token=slow, **options)


class Prompt(JobQueue):
    """However busy the machine is: a run before which there is no other is at work at once, and no page is forgotten."""

    def __init__(self) -> None:
        super().__init__(Limits(), now=lambda: 0.0)
        self.n_submitted = 0

    def submit(self, key: Any, work: Callable[[Job], Any], late_error: Exception | None = None) -> Job:
        job = super().submit(key, work, late_error)
        self.n_submitted += 1
        if job.n_before == 0:
            until(lambda: job.state != "waiting")
        return job


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Prompt:
    """Every run is a long one, and the line is empty."""
    queue = Prompt()
    monkeypatch.setattr(long_jobs, "queue", lambda: queue)
    monkeypatch.setattr(computing, "QUICK", 0.0)
    for name in ("FIRST_WAIT", "POLL"):
        monkeypatch.setattr(long_jobs, name, 0.01)
    return queue


@pytest.fixture
def slow(queue: JobQueue, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    slow = Slow()
    monkeypatch.setattr(runs, "decode", slow)
    yield slow
    slow.tokens.release(10_000)
    until(lambda: not queue.jobs)


@pytest.fixture
def whole(own_folder: Path) -> Trace:
    return tv.decode(load_checkpoint(str(own_folder / "reverse")), TEXT)


def output(at: AppTest) -> list[str]:
    """The tokens of the picture's strip."""
    return [token["text"] for token in content(at)["output"]]


def written(at: AppTest, n: int) -> None:
    """The page's run has written so many tokens."""
    job = at.session_state["long_job"]
    until(lambda: job.progress is not None and job.progress.written.n_steps == n)


def test_tokens_appear_and_then_the_page(start, slow, whole):
    at = start(text=TEXT)
    assert "Reading the text" in said(at) and not has_viewer(at)
    slow.tokens.release(2)
    written(at, 2)
    words = said(at.run())
    assert "2 tokens" in words and "a second" in words and not has_viewer(at)
    tokenizer = load_checkpoint("reverse").tokenizer
    assert at.text[0].value == tokenizer.text(tokenizer.ids_of("output", whole.output_tokens)[:2])
    slow.tokens.release(1000)
    finished(at)
    assert output(at) == [*whole.output_tokens]
    assert not [button for button in at.button if (button.key or "").startswith("long-job")]
    assert slow.texts == [TEXT], "it is decoded once"


def test_what_stands_around_a_page_that_waits_is_drawn(start, slow):
    at = start(lesson="map.2", text=TEXT, lines="all")
    assert "Reading the text" in said(at) and not has_viewer(at)
    assert link_of(at) == {"lesson": "map.2", "text": TEXT, "lines": "all"}, "the address is kept"
    ways = {button.key for button in at.button}
    assert {"lesson-back", "lesson-hint"} <= ways, "the card has its ways on"
    slow.tokens.release(1000)
    finished(at)
    assert link_of(at)["text"] == TEXT and link_of(at)["lines"] == "all"
    assert "✓" not in said(at), "what was drawn late was not done by anybody"


def test_stopped_it_is_shown_as_far_as_it_is_and_goes_on(start, slow, whole):
    at = start(text=TEXT)
    slow.tokens.release(2)
    written(at, 2)
    at.button(key="long-job-stop").click().run()
    slow.tokens.release(1)
    finished(at)
    assert "Stopped after 3 tokens." in said(at)
    assert len(output(at)) == 3 and viewer(at)["start"]["step"] < 3
    # It stays so, on this page and after another click, and is not decoded again.
    at.run()
    assert "Stopped after 3 tokens." in said(at) and slow.texts == [TEXT]
    (again,) = (button for button in at.button if button.label == "Write it again, to its end")
    again.click().run()
    slow.tokens.release(1000)
    finished(at)
    assert "Stopped after" not in said(at)
    assert output(at) == [*whole.output_tokens]


def test_one_that_takes_too_long_is_shown_as_far_as_it_is(start, slow, queue, monkeypatch):
    seconds = [0.0]
    monkeypatch.setattr(queue, "now", lambda: seconds[0])
    at = start(text=TEXT)
    slow.tokens.release(1)
    written(at, 1)
    seconds[0] = queue.limits.run_seconds + 1
    at.run()
    slow.tokens.release(1)
    finished(at)
    assert "Stopped after 2 tokens, since a run may take 300 s here (TRANSFORMER_VIZ_MAX_RUN_SECONDS)." in said(at)
    assert len(output(at)) == 2


def test_two_wait_for_each_other_and_see_their_own(start, slow):
    first, second = start(text="hello"), start(text="abc")
    until(lambda: slow.texts == ["hello"])
    assert "2nd in line; 1 run before yours" in said(second.run())
    slow.tokens.release(1)
    written(first, 1)
    first.run()
    assert "1 token" in said(first)
    slow.tokens.release(1000)
    finished(first)
    finished(second)
    for at, text in ((first, "hello"), (second, "abc")):
        assert at.session_state["text"] == text
        assert output(at) == [*tv.decode(load_checkpoint("reverse"), text).output_tokens]
        assert link_of(at)["text"] == text


@pytest.mark.slow
def test_a_check_says_how_far_it_is_and_is_cancelled(start, queue, own_folder, monkeypatch):
    go_on, shares = threading.Semaphore(0), list[float]()

    def check(*given: Any, on_progress: Callable[[float], None], **options: Any) -> MaskReport:
        for share in (0.25, 0.5) if not shares else ():
            on_progress(share)
            shares.append(share)
            assert go_on.acquire(timeout=PATIENT)
        return tv.check_masks(*given, replacements=1, **options)

    monkeypatch.setattr(computing, "QUICK", 1e7)
    monkeypatch.setattr(certificate_tab, "check_masks", check)
    at = start("masks", sources="hello", masks_tab="Certificate", certificate="true")
    run = at.session_state["long_job"]
    until(lambda: shares == [0.25])
    (bar,) = at.run().get("progress")
    assert bar.proto.text.replace("\\", "") == "Replacing what must not be seen: 25 %"
    at.button(key="long-job-stop").click().run()
    assert run.is_cancelled and not at.get("progress")
    go_on.release(1)
    until(lambda: not queue.jobs)
    assert shares == [0.25], "its work has ended"
    at.button(key="long-job-again").click().run()
    finished(at)
    assert at.success[0].value.startswith("Sound")


def test_another_text_and_another_page_free_the_place(start, visit, slow):
    at = start(text="hello")
    run = at.session_state["long_job"]
    enter(at, "abc")
    other = at.session_state["long_job"]
    assert run.is_cancelled and not other.is_cancelled
    visit(at, "train")
    assert other.is_cancelled and "long_job" not in at.session_state


def test_what_fails_in_the_thread_is_said_on_the_page(start, queue, own_folder, monkeypatch):
    def fail(*_: Any, **__: Any) -> None:
        raise DeviceError("cpu ran out of memory. Shorten the text.")

    monkeypatch.setattr(runs, "decode", fail)
    monkeypatch.setattr(long_jobs, "FIRST_WAIT", PATIENT)
    at = start(text=TEXT)
    assert "cpu ran out of memory. Shorten the text." in said(at)


@pytest.mark.parametrize("page", [None, "compare"])
def test_quick_runs_are_no_jobs(start, folder, page, monkeypatch):
    def nobody() -> JobQueue:
        raise AssertionError("a quick run waits")

    monkeypatch.setattr(long_jobs, "queue", nobody)
    at = start(page)
    assert has_viewer(at)


@pytest.mark.parametrize("page", [None, "compare"])
def test_every_page_shows_the_same_as_long_jobs(start, queue, own_folder, page, monkeypatch):
    at = finished(start(page))
    assert has_viewer(at)
    monkeypatch.setattr(computing, "QUICK", 1e9)
    store.results.clear()
    again = start(page)
    for what in ("values", "charts", "viewer"):
        assert seen(again).get(what) == seen(at).get(what)
    assert queue.n_submitted > 0
