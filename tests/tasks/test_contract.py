"""What every task promises, whichever it is: a new task in the folder is tested by being there."""

from collections.abc import Callable

import numpy as np
import pytest

from transformer_viz import tasks
from transformer_viz.errors import InputError
from transformer_viz.tasks.task import Task
from transformer_viz.vocabulary import UNKNOWN


@pytest.fixture(scope="module", params=tasks.names())
def task(request) -> Task:
    return tasks.make_task(request.param)


def test_options_make_it_again(task):
    for again in (tasks.make_task(task.name, task.options()), _with_vocabularies(task)):
        assert again.options() == task.options()
        assert again.source_vocabulary == task.source_vocabulary
        assert again.target_vocabulary == task.target_vocabulary


def test_examples_can_be_read(task):
    assert task.examples()
    for example in task.examples():
        symbols = task.read(example.text)
        assert 1 <= len(symbols) <= task.max_length
        assert example.note
        assert set(task.answer(symbols) or []) <= {*task.target_vocabulary.symbols, UNKNOWN}
        assert len(task.answer(symbols) or []) <= task.max_target_length


def test_samples_are_readable_and_have_answers(task):
    rng = np.random.default_rng(0)
    for source in (*task.sources, *task.training_sources):
        drawn = task.sample(source, None, 40, rng)
        assert len(drawn) == 40
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
    assert all(len(task.symbols(text)) == length for text in task.sample(task.sources[0], length, 5, rng))


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


def test_a_true_answer_can_be_given_as_a_target(task):
    """Of the longest sources too: an answer may be longer than what the model reads as a source."""
    rng = np.random.default_rng(5)
    for length in (task.evaluated_lengths[0], task.evaluated_lengths[-1]):
        for text in task.sample(task.sources[0], length, 3, rng):
            answer = task.answer(task.symbols(text))
            if answer and UNKNOWN not in answer:
                assert list(task.read_target(task.join(answer))) == list(answer), text


def test_the_same_seed_draws_the_same(task):
    for source in (*task.sources, *task.training_sources):
        one, other = (task.sample(source, None, 9, np.random.default_rng(3)) for _ in range(2))
        assert one == other
    n = max(100, task.least_samples())
    assert list(task.judged(n, 1)) == list(task.judged(n, 1))


def test_what_is_judged_was_never_trained_on(task):
    """The two sides of the split, by surface string; tasks that say that they keep nothing apart have both sides alike."""
    if task.held_out_share == 0:
        return
    judged = {text for _, text in task.judged(300, 0)}
    assert len(judged) >= 5
    assert all(task.is_held_out(text) for text in judged)
    rng = np.random.default_rng(1)
    count = max(30, 300 // len(task.sources))
    trained = {text for source in task.sources for text in task.sample(source, None, count, rng, "train")}
    assert len(trained) >= 30
    assert not trained & judged
    assert not any(task.is_held_out(text) for text in trained)


def test_least_samples_is_enough(task):
    assert list(task.judged(max(200, task.least_samples()), 0))


def test_unreadable_texts_are_refused_in_a_printable_line(task):
    for text in ("", "   ", "\u202e", "\x1b[31m", "☃" * 700):
        if text == "   " and " " in task.source_vocabulary:
            continue  # spaces are letters like any other there
        with pytest.raises(InputError) as caught:
            task.read(text)
        assert str(caught.value).isprintable()


def _with_vocabularies(task: Task) -> Task:
    return tasks.make_task(task.name, task.options(), (task.source_vocabulary, task.target_vocabulary))
