"""A model whose loading never ends: other visitors are answered, and its own is told when its time is over."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.needs import needs
from tests.tiny_models import BERT, GPT2, MARIAN
from tests.until import until
from tests.views.test_models_view import words
from tests.views.viewer import has_viewer
from transformer_viz import load_model, readers
from transformer_viz.server_settings import Limits
from transformer_viz.views.cache import long_jobs, model_list
from transformer_viz.views.cache.job_queue import GRACE, JobQueue

pytestmark = [needs("transformers"), pytest.mark.usefixtures("models")]
LIMITS = Limits(run_seconds=3)
SAID = "was not loaded in time: a run may take 3 s here (TRANSFORMER_VIZ_MAX_RUN_SECONDS)"


class Endless:
    """`load_named`, which never returns for one model: it says something whenever it is let, or nothing at all."""

    def __init__(self) -> None:
        self.clock, self.says = 0.0, True
        self.steps, self.ended, self.asked = threading.Semaphore(0), threading.Event(), list[str]()
        self.queue = JobQueue(LIMITS, now=lambda: self.clock)

    def __call__(self, name: str, device: str, say: Callable[[str, float | None], None]) -> Any:
        self.asked.append(name)
        if name != GPT2:
            return load_model(name, device)
        try:
            while True:
                assert self.steps.acquire(timeout=60)
                if self.says:
                    say("making its modules", None)
        finally:
            self.ended.set()


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endless]:
    endless = Endless()
    monkeypatch.setattr(readers, "load_named", endless)
    monkeypatch.setattr(model_list, "loaded", type(model_list.loaded)(1e9))
    monkeypatch.setattr(long_jobs, "loading_queue", lambda: endless.queue)
    monkeypatch.setattr(long_jobs, "queue", lambda: JobQueue(LIMITS))
    # The page that waits is drawn at once, as of a large model.
    monkeypatch.setattr(model_list, "LARGE", 1)
    for name in ("FIRST_WAIT", "POLL"):
        monkeypatch.setattr(long_jobs, name, 0.01)
    model_list.refused.clear()
    yield endless
    endless.says, endless.clock = True, 1e9
    endless.steps.release(10_000)
    until(endless.ended.is_set)
    model_list.refused.clear()


def test_its_time_is_over_and_the_next_model_is_loaded(start, endless):
    """Where the loading says something: then it ends itself."""
    mine, other = start(checkpoint=GPT2, text="The house"), start(checkpoint=MARIAN, text="The house")
    assert not has_viewer(mine) and has_viewer(start(text="hello")), "what is there already is answered meanwhile"
    assert "1 run before yours" in words(other)
    endless.clock = LIMITS.run_seconds + 1
    endless.steps.release()
    until(endless.ended.is_set)
    assert f"{GPT2} {SAID}" in words(mine.run())
    until(lambda: has_viewer(other.run()))
    assert endless.asked == [GPT2, MARIAN]


def test_one_that_hears_nothing_is_left_behind(start, endless):
    endless.says = False
    mine, other = start(checkpoint=GPT2, text="The house"), start(checkpoint=BERT, text="The house")
    endless.clock = LIMITS.run_seconds + GRACE + 1
    until(lambda: has_viewer(other.run()))
    assert f"{GPT2} {SAID}" in words(mine.run())
    assert not endless.ended.is_set()
