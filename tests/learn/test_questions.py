"""Each kind of question on planted runs, of which one sees the answer, and on real ones."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from transformer_viz import Trace, attribute, decode, decode_forced, inspect_head, load_checkpoint
from transformer_viz.errors import LessonError
from transformer_viz.learn.lesson import QUESTIONS, Ask
from transformer_viz.learn.questions import CAUSE, COVERS, KINDS_OF_QUESTION, NotAsked, Question, Spot, question
from transformer_viz.model.mistakes import MISTAKES
from transformer_viz.trace.attribution import Attribution

SPOT = Spot("cross", 0, 0, 0)
SOURCE, TARGET, OUTPUT = ["<start>", "a", "b", "c", "<end>"], ["<start>", "c", "b"], ["c", "b", "a"]


def planted(rows: Any, heads: Any = (), **more: Any) -> Trace:
    """A run whose cross-attention has these rows; `heads` are further heads of the layer."""
    weights = np.array([[rows, *heads]], dtype=np.float32)
    tokens: Any = {"source_tokens": SOURCE, "target_tokens": TARGET[: len(rows)], "output_tokens": OUTPUT[: len(rows)]}
    return Trace.from_arrays(cross=weights, normalised=False, **{**tokens, **more})


def asked(trace: Trace, kind: str, spot: Spot = SPOT, **more: Any) -> Question:
    made = question(trace, Ask(kind=kind, **more), spot)
    assert isinstance(made, Question), made.why
    return made


def right(made: Question) -> list[str]:
    return [made.options[place] for place in sorted(made.right)]


def test_every_kind_that_a_lesson_may_name_is_there() -> None:
    assert tuple(KINDS_OF_QUESTION) == QUESTIONS and {*COVERS} == {*QUESTIONS}


# ---- looks-most, and the rule of what is near


def test_the_largest_weight_is_right_and_what_is_within_five_hundredths() -> None:
    made = asked(planted([[0.1, 0.6, 0.1, 0.1, 0.1]]), "looks-most")
    assert right(made) == ["2·a"] and made.is_right([1]) and not made.is_right([2]) and "`2·a` 60 %" in made.why
    made = asked(planted([[0.0, 0.42, 0.38, 0.1, 0.1]]), "looks-most")
    assert right(made) == ["2·a", "3·b"]
    assert made.is_right([1]) and made.is_right([2]) and not made.is_right([1, 2])


@pytest.mark.parametrize("row", [[0.1, 0.4, 0.34, 0.05, 0.05], [0.1, 0.4, 0.31, 0.05, 0.05], [0.2] * 5, [0.0] * 5])
def test_what_is_blurred_and_where_all_are_right_or_none_nothing_is_asked(row: list[float]) -> None:
    made = question(planted([row]), Ask(kind="looks-most"), SPOT)
    assert isinstance(made, NotAsked) and ("too close" in made.why) == (max(row) != 0.2)


def test_the_lesson_or_the_focus_says_which_head_and_row() -> None:
    other = np.eye(5)[[3, 4]]
    trace = planted(np.eye(5)[[1, 2]], [other])
    assert right(asked(trace, "looks-most", head="cross.1.2", row=2)) == ["5·<end>"]
    assert right(asked(trace, "looks-most", Spot("cross", 0, 1, 0))) == ["4·c"]
    assert asked(trace, "looks-most", words="In my words?").text == "In my words?"


def test_a_run_without_the_row_or_the_head_says_so() -> None:
    trace = planted(np.eye(5)[[1, 2]])
    wrong: dict[str, Any] = {
        "no row 3": {"row": 3},
        "no head L1 H2": {"head": "cross.1.2"},
        "no decoder": {"head": "decoder.1.1"},
    }
    for words, more in wrong.items():
        made = question(trace, Ask(kind="looks-most", **more), SPOT)
        assert isinstance(made, NotAsked) and words in made.why


def test_of_a_long_row_some_keys_are_offered_the_right_one_among_them() -> None:
    source = ["<start>", *"abcdefghijklmnopqrstuvwxyz", "<end>"]
    row = np.full(28, 0.01)
    row[17] = 0.73
    trace = Trace.from_arrays(cross=row[None], source_tokens=source, target_tokens=["<start>"], normalised=False)
    made = asked(trace, "looks-most")
    assert right(made) == ["18·q"] and len(made.options) <= 14


# ---- masked


def test_masked_keys_are_all_to_be_named() -> None:
    n = len(TARGET)
    trace = Trace.from_arrays(
        decoder=np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None], target_tokens=TARGET, masks={"decoder": "causal"}
    )
    made = asked(trace, "masked", Spot("decoder", 0, 0, 0))
    # What the decoder has not read yet would tell what it writes.
    assert right(made) == ["2·?", "3·?"] and made.is_several and made.is_right([2, 1]) and not made.is_right([1])
    assert "in the future" in made.why
    made = asked(trace, "masked", Spot("decoder", 0, 0, 2))
    assert right(made) == ["none of them"]


# ---- writes


def test_what_is_written_and_what_tempts() -> None:
    trace = decode(load_checkpoint("reverse", "cpu"), "garden")
    for step, token in enumerate(["n", "e", "d", "r", "a", "g", "<end>"]):
        made = asked(trace, "writes", replace(SPOT, row=step))
        assert right(made) == [token] and len(set(made.options)) == len(made.options) >= 3
    assert "g" in asked(trace, "writes").options, "the first letter of the source is what one is tempted to say"
    assert isinstance(question(trace, Ask(kind="writes"), replace(SPOT, row=7)), NotAsked)


def test_a_wrong_output_is_still_what_the_model_writes() -> None:
    trace = decode(load_checkpoint("reverse-small", "cpu"), "thisqaipa")
    made = asked(trace, "writes", replace(SPOT, row=4))
    assert right(made) == ["q"] and "The task asks" not in made.why
    made = asked(trace, "writes", replace(SPOT, row=5))
    assert right(made) == ["a"] and "s" in made.options and "The task asks for `s`" in made.why


def test_a_letter_that_occurs_twice_is_one_answer() -> None:
    """Each letter of the source is an answer, also one that no list offers; what is not copied is not answered there."""
    trace = decode(load_checkpoint("reverse", "cpu"), "reversethis")
    made = asked(trace, "writes", replace(SPOT, row=0))
    assert len(made.columns) == len(trace.source_tokens) and made.columns[0] is None
    answers = [made.answers[number] for number in made.columns[1:-1] if number is not None]
    assert "".join(answers) == "reversethis" and len(made.answers) > len(made.options)
    assert made.columns[6] == made.columns[11] and made.is_right([made.columns[6] or 0])
    digits = decode(load_checkpoint("numbers", "cpu"), "dreiundzwanzig")
    assert asked(digits, "writes", replace(SPOT, row=0)).columns == ()


def test_each_column_of_a_row_is_an_answer() -> None:
    made = asked(planted([[0.1, 0.6, 0.1, 0.1, 0.1]]), "looks-most")
    assert [made.answers[number or 0] for number in made.columns] == ["1·<start>", "2·a", "3·b", "4·c", "5·<end>"]
    assert made.is_of_row and made.it == "`2·a` 60 %"


# ---- number


def test_a_weight_within_its_tolerance() -> None:
    made = asked(planted([[0.1, 0.6, 0.1, 0.1, 0.1]]), "number", column=2, tolerance=0.05)
    assert made.is_right(0.65) and made.is_right(0.55) and not made.is_right(0.66) and not made.options
    with pytest.raises(LessonError, match="5 columns"):
        question(planted([[1, 0, 0, 0, 0]]), Ask(kind="number", column=6), SPOT)


def test_the_numbers_of_a_head_come_from_those_that_are_given() -> None:
    model = load_checkpoint("reverse", "cpu")
    trace, spot = decode(model, "reversethis"), Spot("cross", 0, 1, 1)
    trace = trace.with_inside(inspect_head(model, trace, "cross.1.2", 1))
    [head] = trace.insides
    assert head.scores is not None
    weight = asked(trace, "number", spot, number="softmax")
    assert weight.number == pytest.approx(
        float(np.exp(head.scores - head.scores.max()).max() / np.exp(head.scores - head.scores.max()).sum()), abs=1e-5
    )
    key = int(head.weights.argmax())
    assert asked(trace, "number", spot, number="score").number == pytest.approx(
        float(head.query @ head.keys[key]) / np.sqrt(len(head.query)), abs=1e-3
    )
    assert f"is {head.query @ head.keys[key]:.2f}" in asked(trace, "number", spot, number="score").text
    by_hand = asked(trace, "number", spot, number="softmax", column=12)
    assert f"`12·s` {head.scores[11]:.2f}" in by_hand.text and by_hand.number == pytest.approx(float(head.weights[11]))
    assert asked(trace, "number", spot, number="output").number == pytest.approx(
        float(head.weights @ head.values[:, 0]), abs=1e-4
    )
    assert asked(trace, "number", spot, number="probability").number == trace.steps[1].probability
    assert isinstance(question(trace, Ask(kind="number", number="score"), replace(spot, row=2)), NotAsked), "of another row"


# ---- matters-most


def caused(losses: list[float]) -> Trace:
    trace = planted([[0.1, 0.6, 0.1, 0.1, 0.1]])
    values = np.array([losses], dtype=np.float64)
    return trace.with_attribution(Attribution("occlusion", "cross", values, mode="word", unit="nats"))


def test_what_matters_is_not_where_the_head_looks() -> None:
    made = asked(caused([0, 0.1, 0, 3.0, 0]), "matters-most")
    assert right(made) == ["4·c"] and "2·a" in made.options, "where attention is largest is the best wrong answer"
    assert "looks most at `2·a`" in made.why and "3.00 nats" in made.why
    assert "looks there too" in asked(caused([0, 3.0, 0, 0.1, 0]), "matters-most").why
    assert right(asked(caused([0, 2.95, 0, 3.0, 0]), "matters-most")) == ["2·a", "4·c"]
    for losses in ([0, 2.75, 0, 3.0, 0], [0, 0.05, 0, 0, 0]):
        assert isinstance(question(caused(losses), Ask(kind="matters-most"), SPOT), NotAsked)
    assert isinstance(question(planted([[0, 1, 0, 0, 0]]), Ask(kind="matters-most"), SPOT), NotAsked)


def test_the_cause_of_a_real_run_is_that_of_the_measure() -> None:
    model = load_checkpoint("reverse", "cpu")
    trace = decode(model, "garden")
    trace = trace.with_attribution(attribute(model, trace, "occlusion"))
    made = asked(trace, "matters-most", Spot("cross", 1, 1, 2))
    assert right(made) == ["5·d"] and trace.attributions[CAUSE].values[2].argmax() == 4


# ---- heads-by, aligns


def test_heads_are_ordered_by_a_measure() -> None:
    sharp, wide = np.eye(5)[[1, 2, 3]], np.full((3, 5), 0.2)
    middle = (sharp + wide) / 2
    made = asked(planted(middle, [wide, sharp]), "heads-by", by="entropy")
    assert right(made) == ["L1 H2 > L1 H1 > L1 H3"] and len(made.options) == 6
    assert isinstance(question(planted(wide, [wide, sharp]), Ask(kind="heads-by"), SPOT), NotAsked)
    with pytest.raises(LessonError, match="is not a measure"):
        question(planted(middle, [wide, sharp]), Ask(kind="heads-by", by="beauty"), SPOT)


def test_the_head_that_looks_at_the_right_token_aligns() -> None:
    on, off = np.eye(5)[[3, 2, 1]], np.eye(5)[[0, 0, 4]]
    made = asked(planted(off, [on, off, off], alignment=[3, 2, 1]), "aligns")
    assert right(made) == ["L1 H2"] and len(made.options) == 4
    # One that is neither right nor clearly wrong is not among the options.
    blurred = 0.92 * on + 0.08 * off
    assert "L1 H1" not in asked(planted(blurred, [on, off, off], alignment=[3, 2, 1]), "aligns").options
    for heads in ([on, on], [off, off]):
        assert isinstance(question(planted(heads[0], heads[1:]), Ask(kind="aligns"), SPOT), NotAsked), "no right token is known"
    assert isinstance(question(planted(on, [on], alignment=[3, 2, 1]), Ask(kind="aligns"), SPOT), NotAsked)


# ---- greedy-or-beam


@cache
def searched(text: str) -> Trace:
    return decode(load_checkpoint("reverse-small", "cpu"), text, strategy="beam", beam_size=5)


def test_greedy_or_beam_by_the_totals() -> None:
    trace = searched("thisqaipa")
    made, greedy = asked(trace, "greedy-or-beam"), decode(load_checkpoint("reverse-small", "cpu"), "thisqaipa")
    total = sum(step.log_probability for step in greedy.steps)
    assert trace.search is not None and trace.search.nodes[trace.search.best[0]].total > total
    assert made.right == {1} and f"only −{abs(total):.2f}" in made.why and "step 6" in made.why
    same = searched("abcdefghijkl")
    assert same.text == "lkjihgfedcba" and asked(same, "greedy-or-beam").right == {0}
    assert isinstance(question(greedy, Ask(kind="greedy-or-beam"), SPOT), NotAsked)


# ---- mistake


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_known_by_its_mask(name: str) -> None:
    model = load_checkpoint("reverse", "cpu")
    long, short = decode_forced(model, ["abcde", "ab"], mistake=name)
    made = asked(short, "mistake")
    assert right(made) == [MISTAKES[name].title] and MISTAKES[name].title in made.it and MISTAKES[name].title not in made.why
    alone = question(
        long if not MISTAKES[name].needs_padding else decode_forced(model, ["abcde"], mistake=name)[0],
        Ask(kind="mistake"),
        SPOT,
    )
    assert isinstance(alone, NotAsked) == MISTAKES[name].needs_padding, "without padding most mistakes change no mask"
    assert isinstance(question(decode_forced(model, ["abcde", "ab"])[1], Ask(kind="mistake"), SPOT), NotAsked)


# ---- on real runs


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("text", ["garden", "a", "aaaa", "Mississippi 2026!"])
@pytest.mark.parametrize("kind", QUESTIONS)
def test_any_question_of_any_run_is_fair_or_says_why_not(kind: str, text: str, language: str) -> None:
    model = load_checkpoint("reverse", "cpu")
    trace = decode(model, text)
    for row in range(trace.n_steps + 1):
        made = question(trace, Ask(kind=kind), Spot("decoder", 1, 0, row), language)
        if isinstance(made, Question):
            assert made.why and (made.number is not None or 1 <= len(made.right) < len(made.options))
            assert all(0 <= place < len(made.options) for place in made.right)
        else:
            assert made.why
