"""What every task promises, whichever it is: a new task in the folder is tested by being there."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from transformer_viz import tasks
from transformer_viz.errors import InputError
from transformer_viz.tasks.task import Task
from transformer_viz.vocabulary import UNKNOWN


@pytest.fixture(scope="module", params=tasks.names())
def task(request) -> Task:
    return tasks.make_task(request.param)


@pytest.fixture(scope="module")
def judged(task) -> list[tuple[str, str]]:
    """Of every source and length."""
    return list(task.judged(max(60, task.least_samples()), 1))


def test_options_make_it_again(task):
    with_vocabularies = tasks.make_task(task.name, task.options(), (task.source_vocabulary, task.target_vocabulary))
    for again in (tasks.make_task(task.name, task.options()), with_vocabularies):
        assert again.options() == task.options()
        assert again.source_vocabulary == task.source_vocabulary
        assert again.target_vocabulary == task.target_vocabulary


def test_examples_can_be_read(task):
    assert task.examples()
    for shown in task.examples():
        symbols = task.read(shown.text)
        assert 1 <= len(symbols) <= task.max_length
        assert shown.note
        assert set(task.answer(symbols) or []) <= {*task.target_vocabulary.symbols, UNKNOWN}
        assert len(task.answer(symbols) or []) <= task.max_target_length


def test_samples_are_readable_and_have_answers_and_a_seed_draws_them_again(task):
    for source in (*task.sources, *task.training_sources):
        drawn, again = (task.sample(source, None, 12, np.random.default_rng(3)) for _ in range(2))
        assert len(drawn) == 12 and drawn == again
        for text in drawn:
            symbols = task.symbols(text)
            answer = task.answer(symbols)
            assert answer is not None, text
            assert len(symbols) <= task.max_length
            assert len(answer) <= task.max_target_length
            assert task.read(text) == symbols
            assert task.join(answer) == task.reference(text)
            alignment = task.alignment(symbols, len(answer) + 1)
            assert len(alignment) == len(answer) + 1
            assert alignment[-1] is None
            assert all(key is None or 1 <= key <= len(symbols) for key in alignment)
    length = task.evaluated_lengths[len(task.evaluated_lengths) // 2]
    assert all(len(task.symbols(text)) == length for text in task.sample(task.sources[0], length, 5, np.random.default_rng(0)))


def test_a_sign_that_cannot_be_seen_is_never_said_as_an_escape(task):
    """Some tasks set words apart at it, and some know no x."""
    for sign, name in (("\u200b", "ZERO WIDTH SPACE"), ("\xa0", "NO-BREAK SPACE"), ("\t", "tab")):
        for read in (task.read, task.read_target):
            words = _refusal(read, f"x{sign}x")
            assert "\\" not in words and sign not in words
            assert not words or name in words or "Character 1" in words or f"x{sign}x".split() == ["x", "x"]


def _refusal(read: Callable[[str], object], text: str) -> str:
    try:
        read(text)
    except InputError as error:
        return str(error)
    return ""


def test_a_true_answer_can_be_given_as_a_target(task, judged):
    """Of the longest sources too: an answer may be longer than what the model reads as a source."""
    for _, text in judged:
        answer = task.answer(task.symbols(text))
        if answer and UNKNOWN not in answer:
            assert list(task.read_target(task.join(answer))) == list(answer), text


def test_what_is_judged_was_never_trained_on(task, judged):
    """The two sides of the split, by surface string; tasks that say that they keep nothing apart have both sides alike."""
    assert judged == list(task.judged(max(60, task.least_samples()), 1))
    if task.held_out_share == 0:
        return
    texts = {text for _, text in judged}
    assert len(texts) >= 5
    assert all(task.is_held_out(text) for text in texts)
    rng = np.random.default_rng(1)
    count = max(5, 100 // len(task.sources))
    trained = {text for source in task.sources for text in task.sample(source, None, count, rng, "train")}
    assert len(trained) >= 30
    assert not trained & texts
    assert not any(task.is_held_out(text) for text in trained)


@given(st.text())
@example("")
@example("   ")
@example("\u202e")
@example("\x1b[31m")
@example("☃" * 700)
@settings(max_examples=20)
def test_any_text_is_read_or_refused_in_a_printable_line(task, text):
    refusal = _refusal(task.read, text)
    assert refusal.isprintable()
    if not refusal:
        assert 1 <= len(task.read(text)) <= task.max_length
        assert {*task.read(text)} <= {*task.source_vocabulary.symbols, UNKNOWN}
