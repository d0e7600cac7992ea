"""What was guessed of a step, and what came."""

import pytest

from transformer_viz import Trace, decode, load_checkpoint
from transformer_viz.analysis.guesses import Guess, is_right, outcome_words, question_words, tally_words
from transformer_viz.analysis.sentences import plain
from transformer_viz.trace.hidden_answer import hide_answer


@pytest.fixture(scope="module")
def run() -> Trace:
    return decode(load_checkpoint("reverse", "cpu"), "hello")


def token(step: int, token: str) -> Guess:
    return Guess(step=step, kind="cross", layer=1, head=0, token=token)


def key(step: int, key: int) -> Guess:
    return Guess(step=step, kind="cross", layer=1, head=0, key=key)


def test_a_token_is_right_if_it_was_written_and_a_key_if_the_head_looks_there_most(run: Trace) -> None:
    assert [is_right(run, token(t, "l")) for t in range(6)] == [False, True, True, False, False, False]
    rows = run.cross.weights[1, 0].tolist()
    for t, row in enumerate(rows):
        assert [is_right(run, key(t, k)) for k in range(7)] == [weight == max(row) for weight in row]
    assert not is_right(hide_answer(run, 2), key(2, 0))


def test_what_came_stands_beside_what_was_guessed(run: Trace) -> None:
    part = hide_answer(run, 2)
    looks = "layer 2 head 1 looks over 99 % at `l` (token 5)."
    assert plain(outcome_words(part, "cross", 1, 0, 1, None)) == f"At step 2 the model wrote `l`, and {looks}"
    assert plain(outcome_words(part, "cross", 1, 0, 1, token(1, "e"))) == f"You guessed `e`; the model wrote `l`, and {looks}"
    assert (
        plain(outcome_words(part, "cross", 0, 2, 1, key(1, 2)))
        == f"You guessed `e` (token 3); the model wrote `l`, and {looks}"
    )
    assert plain(outcome_words(part, "encoder", 0, 0, 1, None)) == "At step 2 the model wrote `l`."
    assert [tally_words(part, guesses) for guesses in ([], [token(0, "o")], [token(0, "o"), key(1, 2)])] == [
        "",
        "1 of 1 guess right",
        "1 of 2 guesses right",
    ]


def test_the_question_says_what_is_known_and_nothing_more(run: Trace) -> None:
    for t in range(6):
        asked = question_words(hide_answer(run, t), "cross", 1, 0, t)
        known = f"having written `{'olleh'[:t]}`" if t else "having written nothing yet"
        wanted = f"Step {t + 1} of 6: {known}, where does layer 2 head 1 look, and what does the model write?"
        assert plain(asked) == wanted
        assert (
            plain(question_words(hide_answer(run, t), "encoder", 0, 0, t))
            == f"Step {t + 1} of 6: {known}, what does the model write?"
        )
    assert plain(question_words(hide_answer(run, 6), "cross", 1, 0, 6)) == "All steps are revealed."
