"""What stands beside an output: right, wrong, unfinished or not known, what was expected, and where it first differs."""

from collections.abc import Callable
from typing import Any

import pytest

import transformer_viz as tv
from transformer_viz.commands.decode import summary
from transformer_viz.sentences.correctness import TEACHER_FORCING, answer, answer_words, hypothesis_answer
from transformer_viz.sentences.run_sentences import plain
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import END, PAD, START

Run = Callable[..., Trace]


def of(make_run: Run, written: str, expected: str | None, *, finished: str = "end", **changes: Any) -> Trace:
    """A run that wrote these letters."""
    output = (*written, *([END] if finished == "end" else []))
    known = {} if expected is None else {"expected": expected, "expected_tokens": (*expected, END)}
    given = {
        "output_tokens": output,
        "target_tokens": (START, *output[:-1]),
        "text": written,
        "steps": (),
        "finished": finished,
    }
    return make_run(3, len(output), **given, **known, **changes)


@pytest.mark.parametrize(
    ("written", "expected", "finished", "words", "step"),
    [
        ("olleh", "olleh", "end", "right", None),
        ("", "", "end", "right", None),
        ("oleh", "olleh", "end", "wrong, expected `olleh`, differs from step 3 on", 2),
        ("xlleh", "olleh", "end", "wrong, expected `olleh`, differs from step 1 on", 0),
        ("olle", "olleh", "end", "wrong, expected `olleh`, differs from step 5 on", 4),
        ("ollehh", "olleh", "end", "wrong, expected `olleh`, differs from step 6 on", 5),
        ("a", "", "end", "wrong, expected nothing, differs from step 1 on", 0),
        ("oll", "olleh", "length", "unfinished, right so far", None),
        ("olleh", "olleh", "length", "unfinished, right so far", None),
        ("olx", "olleh", "length", "wrong, expected `olleh`, differs from step 3 on", 2),
        ("ollehh", "olleh", "length", "wrong, expected `olleh`, differs from step 6 on", 5),
        ("olleh", None, "end", "not known whether it is right", None),
        ("oll", None, "length", "not known whether it is right", None),
    ],
)
def test_the_words(make_run: Run, written: str, expected: str | None, finished: str, words: str, step: int | None) -> None:
    trace = of(make_run, written, expected, finished=finished)
    assert plain(answer_words(trace)) == words
    assert trace.first_wrong_step == step
    assert words.startswith(str(answer(trace)))
    known = summary(trace)
    assert (known["right"], known["first_wrong_step"]) == (trace.is_right, step)
    assert known["right"] is (None if expected is None else words == "right")


def test_an_end_before_all_is_read_is_wrong_though_no_answer_is_known(make_run: Run) -> None:
    """The alignment has step 3 read the last of three letters, and there the run ends."""
    short = of(make_run, "ab", None, alignment=(1, 2, 3))
    assert (short.is_right, short.first_wrong_step) == (False, 2)
    assert plain(answer_words(short)) == "wrong, ends before `x` (token 4) is read"
    for right_place in ((1, 2, None), (1, 2, 4), (1, 2, 0)):  # none, and the frame's own tokens
        assert of(make_run, "ab", None, alignment=right_place).is_right is None
    assert of(make_run, "abc", None, alignment=(1, 2, 3), finished="length").is_right is None


def test_padding_is_no_part_of_an_output(make_run: Run) -> None:
    output = (*"ab", END, PAD, PAD)
    given = {"output_tokens": output, "target_tokens": (START, *output[:-1]), "steps": ()}
    right = make_run(3, 5, **given, text="ab", expected="ab", expected_tokens=(*"ab", END))
    assert plain(answer_words(right)) == "right"
    wrong = make_run(3, 5, **given, text="ab", expected="abc", expected_tokens=(*"abc", END))
    assert plain(answer_words(wrong)) == "wrong, expected `abc`, differs from step 3 on"


def test_tokens_that_were_given_are_not_judged(make_run: Run) -> None:
    forced = of(make_run, "ab", "cd", made_by={"strategy": TEACHER_FORCING})
    elsewhere = of(make_run, "ab", "cd", finished="given")
    for trace in (forced, elsewhere):
        assert answer(trace) is None
        assert answer_words(trace) == ()


def test_hypotheses_are_judged_by_their_tokens(tiny) -> None:
    trace = tv.decode(tiny, "hello", strategy="beam", beam_size=5)
    assert trace.search is not None
    found = [hypothesis_answer(trace, number) for number in range(len(trace.search.nodes))]
    assert found == [answer(trace.at_node(number)) for number in range(len(trace.search.nodes))]
    assert len(set(found)) > 1


def test_the_phrase_that_loses_three_characters() -> None:
    trace = tv.decode(tv.load_checkpoint("pinyin", device="cpu"), "我们明天去北京看朋友")
    assert len(trace.output_tokens) - 1 < 10
    assert plain(answer_words(trace)) == "wrong, ends before `看` (token 9) is read"
