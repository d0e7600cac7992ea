"""Long runs on the pages: what is seen while one waits and writes, Stop, another text, and that quick ones have none of it."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button

import transformer_viz as tv
from tests.until import until
from tests.views.drawn import pictures
from tests.views.widgets import link_of, seen, widgets
from transformer_viz.checkpoints import load_checkpoint
from transformer_viz.errors import DeviceError
from transformer_viz.mask_checks.result import MaskReport
from transformer_viz.server_settings import Limits
from transformer_viz.trace.trace import Trace
from transformer_viz.views.cache import computing, long_jobs, runs
from transformer_viz.views.cache.job_queue import Job, JobQueue
from transformer_viz.views.cache.store import store
from transformer_viz.views.masks import certificate_tab

Start = Callable[..., AppTest]
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
        if self.n_before(job) == 0:
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
    until(lambda: queue.is_idle)


@pytest.fixture
def whole(own_folder: Path) -> Trace:
    return tv.decode(load_checkpoint(str(own_folder / "reverse")), TEXT)


def words(at: AppTest) -> str:
    assert not at.exception
    kinds = ("markdown", "caption", "text", "info", "warning", "error")
    return "\n".join(str(getattr(element, "value", "")) for kind in kinds for element in at.get(kind)).replace("\\", "")


def output(at: AppTest) -> list[str]:
    """The tokens of the player's strip."""
    (player,) = (json.loads(widget.node.proto.json) for widget in widgets(at) if widget.key == "player")
    return [token["text"] for token in player["output"]]


def written(at: AppTest, n: int) -> None:
    """The page's run has written so many tokens."""
    until(
        lambda: at.session_state["long_job"].progress is not None and at.session_state["long_job"].progress.written.n_steps == n
    )


def finished(at: AppTest) -> AppTest:
    """The page after its runs, which need nobody any more, and may have ended before the page began to watch them."""
    while "long_job" in at.session_state:
        run = at.session_state["long_job"]
        until(lambda run=run: run.state == "done")
        at.run()
    return at


def write_again(at: AppTest) -> Button:
    """The button that writes a stopped text to its end."""
    (button,) = (button for button in at.button if button.label == "Write it again, to its end")
    return button


def test_tokens_appear_and_then_the_page(start: Start, slow: Slow, whole: Trace) -> None:
    at = start(text=TEXT)
    assert "Reading the text" in words(at) and not pictures(at)
    slow.tokens.release(2)
    written(at, 2)
    said = words(at.run())
    assert "2 tokens" in said and "a second" in said and not pictures(at)
    assert at.text[0].value == load_checkpoint("reverse").tokenizer.text(_ids(whole)[:2])
    slow.tokens.release(1000)
    finished(at)
    assert pictures(at) and output(at) == [*whole.output_tokens]
    assert not [button for button in at.button if (button.key or "").startswith("long-job")]
    assert slow.texts == [TEXT], "it is decoded once"


def test_stopped_it_is_shown_as_far_as_it_is_and_goes_on(start: Start, slow: Slow, whole: Trace) -> None:
    at = start(text=TEXT)
    slow.tokens.release(2)
    written(at, 2)
    at.button(key="long-job-stop").click().run()
    slow.tokens.release(1)
    finished(at)
    assert "Stopped after 3 tokens." in words(at)
    assert int(at.session_state["step"]) <= 3 and pictures(at)
    # It stays so, on this page and after another click, and is not decoded again.
    at.run()
    assert "Stopped after 3 tokens." in words(at) and slow.texts == [TEXT]
    write_again(at).click().run()
    slow.tokens.release(1000)
    finished(at)
    assert "Stopped after" not in words(at)
    assert output(at) == [*whole.output_tokens]


def test_one_that_takes_too_long_is_shown_as_far_as_it_is(
    start: Start, slow: Slow, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [0.0]
    monkeypatch.setattr(queue, "now", lambda: seconds[0])
    at = start(text=TEXT)
    slow.tokens.release(1)
    written(at, 1)
    seconds[0] = queue.limits.run_seconds + 1
    at.run()
    slow.tokens.release(1)
    finished(at)
    assert "Stopped after 2 tokens, since a run may take 300 s here (TRANSFORMER_VIZ_MAX_RUN_SECONDS)." in words(at)
    assert pictures(at) and len(output(at)) == 2


def test_two_wait_for_each_other_and_see_their_own(start: Start, slow: Slow) -> None:
    first, second = start(text="hello"), start(text="abc")
    until(lambda: slow.texts == ["hello"])
    assert "2nd in line; 1 run before yours" in words(second.run())
    slow.tokens.release(1)
    written(first, 1)
    first.run()
    assert "1 token" in words(first)
    slow.tokens.release(1000)
    finished(first)
    finished(second)
    for at, text in ((first, "hello"), (second, "abc")):
        assert at.session_state["text"] == text
        assert output(at) == [*tv.decode(load_checkpoint("reverse"), text).output_tokens]
        assert link_of(at)["text"] == text


def test_a_check_says_how_far_it_is_and_is_cancelled(
    start: Start, queue: JobQueue, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, shares = threading.Semaphore(0), list[float]()

    def check(*given: Any, on_progress: Callable[[float], None], **options: Any) -> MaskReport:
        for share in (0.25, 0.5) if not shares else ():
            on_progress(share)
            shares.append(share)
            assert go_on.acquire(timeout=PATIENT)
        return tv.check_masks(*given, **options)

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
    until(lambda: queue.is_idle)
    assert shares == [0.25], "its work has ended"
    at.button(key="long-job-again").click().run()
    finished(at)
    assert at.success[0].value.startswith("Sound")


def test_a_check_that_takes_too_long_is_ended_in_a_sentence(
    start: Start, queue: JobQueue, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, seconds = threading.Event(), threading.Event(), [0.0]

    def check(*_: Any, on_progress: Callable[[float], None], **__: Any) -> None:
        begun.set()
        assert go_on.wait(PATIENT)
        on_progress(0.5)

    monkeypatch.setattr(queue, "now", lambda: seconds[0])
    monkeypatch.setattr(computing, "QUICK", 1e7)
    monkeypatch.setattr(certificate_tab, "check_masks", check)
    at = start("masks", sources="hello", masks_tab="Certificate", certificate="true")
    assert begun.wait(PATIENT)
    seconds[0] = queue.limits.run_seconds + 1
    at.run()
    go_on.set()
    assert "ended at 50 %, since a run may take 300 s here (TRANSFORMER_VIZ_MAX_RUN_SECONDS)" in words(finished(at))


def test_another_text_takes_the_place_of_the_former(start: Start, slow: Slow) -> None:
    at = start(text="hello")
    former = at.session_state["long_job"]
    at.text_input(key="text").set_value("abc").run()
    assert former.is_cancelled
    slow.tokens.release(1000)
    finished(at)
    assert slow.texts == ["hello", "abc"]
    assert at.session_state["text"] == "abc" and pictures(at)


def test_who_leaves_the_line_may_come_back(start: Start, slow: Slow) -> None:
    first, second = start(text="hello"), start(text="abc")
    until(lambda: slow.texts == ["hello"])
    second.button(key="long-job-stop").click().run()
    assert first.session_state["long_job"].state == "running"
    assert second.session_state["long_job"].is_cancelled and not second.get("text")
    second.button(key="long-job-again").click().run()
    assert "2nd in line" in words(second)
    slow.tokens.release(1000)
    finished(second)
    assert pictures(second)


def test_another_page_frees_the_place(start: Start, visit: Callable[[AppTest, str], AppTest], slow: Slow) -> None:
    at = start(text="hello")
    run = at.session_state["long_job"]
    visit(at, "train")
    assert run.is_cancelled and "long_job" not in at.session_state


def test_what_fails_in_the_thread_is_said_on_the_page(
    start: Start, queue: JobQueue, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise DeviceError("cpu ran out of memory. Shorten the text.")

    monkeypatch.setattr(runs, "decode", fail)
    monkeypatch.setattr(long_jobs, "FIRST_WAIT", PATIENT)
    at = start(text=TEXT)
    assert "cpu ran out of memory. Shorten the text." in words(at)


@pytest.mark.parametrize("page", [None, "masks", "compare"])
def test_quick_runs_are_no_jobs(start: Start, folder: Path, page: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> JobQueue:
        raise AssertionError("a quick run waits")

    monkeypatch.setattr(long_jobs, "queue", nobody)
    at = start(page)
    assert not at.exception and pictures(at)


@pytest.mark.parametrize("page", [None, "masks", "compare"])
def test_every_page_shows_the_same_as_long_jobs(
    start: Start, queue: Prompt, own_folder: Path, page: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = finished(start(page))
    assert not at.exception and pictures(at)
    monkeypatch.setattr(computing, "QUICK", 1e9)
    store.results.clear()
    again = start(page)
    for what in ("values", "charts"):
        assert seen(again)[what] == seen(at)[what]
    assert queue.n_submitted > 0


def _ids(trace: Trace) -> list[int]:
    return load_checkpoint("reverse").tokenizer.ids_of("output", trace.output_tokens)
