"""Sentences above the picture and above the tiles, and what is said of guesses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.sentences import step_sentence
from transformer_viz import Trace, decode, load_checkpoint
from transformer_viz.analysis import alignment
from transformer_viz.sentences.grade_sentences import grades_sentence
from transformer_viz.sentences.guesses import Guess, is_right, outcome_words, question_words, tally_words
from transformer_viz.sentences.run_sentences import plain
from transformer_viz.trace.hidden_answer import hide_answer
from transformer_viz.trace.steps import Step

MIRROR = (5, 4, 3, 2, 1, None)
Run = Callable[..., Trace]


def hello(make_run: Run, weights: np.ndarray, output: str = "olleh") -> Trace:
    """`hello` read with these weights of cross-attention, and what was written."""
    tokens = (*output, "<end>")
    steps = tuple(Step(token=x, probability=0.9991, log_probability=-0.0009, rank=0, candidates=((x, 0.9991),)) for x in tokens)
    read: dict[str, Any] = {"source": "hello", "source_tokens": ("<start>", *"hello", "<end>")}
    written: dict[str, Any] = {"output_tokens": tokens, "target_tokens": ("<start>", *output), "steps": steps, "text": output}
    answer: dict[str, Any] = {"expected": "olleh", "expected_tokens": (*"olleh", "<end>")}
    return make_run(5, 6, MIRROR, cross=weights, **read, **written, **answer)


def test_the_sentence_of_the_design(make_run: Run) -> None:
    weights = np.zeros((1, 2, 6, 7), dtype=np.float32)
    weights[0, 1, 2, 3], weights[0, 1, 2, 4] = 0.96, 0.04
    said = plain(step_sentence(hello(make_run, weights), "cross", 0, 1, 2))
    looks = "Step 3 of 6: having written `ol`, layer 1 head 2 looks 96 % at `l` (token 4)"
    assert said == f"{looks} and the model writes `l` (probability over 99 %)."
    assert "may look at nothing" in plain(step_sentence(hello(make_run, weights), "cross", 0, 0, 1))


def test_a_wrong_letter_says_which_is_right_unless_the_answer_is_hidden(make_run: Run) -> None:
    wrong = hello(make_run, np.full((1, 2, 6, 7), 1 / 7, dtype=np.float32), "oxleh")
    assert "writes `x`" in plain(step_sentence(wrong, "cross", 0, 0, 1))
    assert "The right token: `l`." in plain(step_sentence(wrong, "cross", 0, 0, 1))
    assert "right token" not in plain(step_sentence(wrong, "cross", 0, 0, 1, with_answer=False))
    assert "right token" not in plain(step_sentence(wrong, "cross", 0, 0, 2))


def test_the_best_head_and_its_baselines(make_run: Run, on: Callable[..., np.ndarray]) -> None:
    cross = np.stack([np.full((6, 7), 1 / 7, dtype=np.float32), (0.9 * on(MIRROR, 7) + 0.1 / 7).astype(np.float32)])[None]
    run, untrained = make_run(5, 6, MIRROR, cross=cross), make_run(5, 6, MIRROR)
    both = plain(grades_sentence(alignment(run, untrained)))
    words = "Layer 1 head 2 of cross-attention is best: 91 % of its weight is on the right token, which is the largest at 100 %"
    assert both == f"{words} of the steps. Uniform attention would have 14 % there, an untrained model 14 %."
    assert plain(grades_sentence(alignment(run))).endswith("Uniform attention would have 14 % there.")
    for run in (make_run(5, 6), make_run(5, 6, attentions={})):
        assert "No step of this run has a known right token" in plain(grades_sentence(alignment(run)))


@pytest.fixture(scope="module")
def reversed_hello() -> Trace:
    return decode(load_checkpoint("reverse", "cpu"), "hello")


def token(step: int, token: str) -> Guess:
    return Guess(step=step, kind="cross", layer=1, head=0, token=token)


def key(step: int, key: int) -> Guess:
    return Guess(step=step, kind="cross", layer=1, head=0, key=key)


def test_a_token_is_right_if_it_was_written_and_a_key_if_the_head_looks_there_most(reversed_hello: Trace) -> None:
    run = reversed_hello
    assert [is_right(run, token(t, "l")) for t in range(6)] == [False, True, True, False, False, False]
    for t, row in enumerate(run.cross.weights[1, 0].tolist()):
        assert [is_right(run, key(t, k)) for k in range(7)] == [weight == max(row) for weight in row]
    assert not is_right(hide_answer(run, 2), key(2, 0))


def test_what_came_stands_beside_what_was_guessed(reversed_hello: Trace) -> None:
    part, looks = hide_answer(reversed_hello, 2), "layer 2 head 1 looks over 99 % at `l` (token 5)."
    said = [plain(outcome_words(part, "cross", 1, 0, 1, guess)) for guess in (None, token(1, "e"), key(1, 2))]
    before = ("At step 2", "You guessed `e`;", "You guessed `e` (token 3);")
    assert said == [f"{words} the model wrote `l`, and {looks}" for words in before]
    tallies = [tally_words(part, guesses) for guesses in ([], [token(0, "o")], [token(0, "o"), key(1, 2)])]
    assert tallies == ["", "1 of 1 guess right", "1 of 2 guesses right"]


def test_the_question_says_what_is_known_and_nothing_more(reversed_hello: Trace) -> None:
    for t in range(6):
        known = f"having written `{'olleh'[:t]}`" if t else "having written nothing yet"
        wanted = f"Step {t + 1} of 6: {known}, where does layer 2 head 1 look, and what does the model write?"
        assert plain(question_words(hide_answer(reversed_hello, t), "cross", 1, 0, t)) == wanted
    assert plain(question_words(hide_answer(reversed_hello, 6), "cross", 1, 0, 6)) == "All steps are revealed."
