"""Word reversal: reading, joining, the true answer, the true alignment, and what a person is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_viz import tasks
from transformer_viz.errors import ConfigError, InputError
from transformer_viz.tasks.letters import LOWER_CASE, PRINTABLE_ASCII
from transformer_viz.tasks.reverse import Reverse
from transformer_viz.text_display import character_words, quote_text

TASK = Reverse()
texts = st.text(st.sampled_from(PRINTABLE_ASCII), min_size=1, max_size=32)


def test_the_worked_example():
    symbols = TASK.read("hello")
    framed = TASK.frame(symbols)
    assert framed == ["<start>", "h", "e", "l", "l", "o", "<end>"]
    assert TASK.answer(symbols) == ["o", "l", "l", "e", "h"]
    assert TASK.alignment(symbols, 6) == [5, 4, 3, 2, 1, None]
    assert TASK.symbol_indices(framed) == [None, 0, 1, 2, 3, 4, None]
    assert TASK.symbol_indices([*framed, "<pad>", "<pad>"]) == [None, 0, 1, 2, 3, 4, None, None, None]
    assert [framed[key] for key in TASK.alignment(symbols, 6) if key is not None] == TASK.answer(symbols)


@given(texts, st.integers(0, 40))
def test_reading_reversing_and_aligning_are_consistent(text, n_steps):
    """The true key of every step holds the true symbol, whatever the text; steps beyond the answer have none."""
    symbols = TASK.read(text)
    assert TASK.join(symbols) == text
    answer = TASK.answer(symbols)
    assert TASK.answer(answer) == symbols
    assert TASK.join([*answer, "<end>"]) == text[::-1]
    framed = TASK.frame(symbols)
    alignment = TASK.alignment(symbols, n_steps)
    assert len(alignment) == n_steps
    for t, key in enumerate(alignment):
        assert (key is None) == (t >= len(text))
        if key is not None:
            assert framed[key] == answer[t]
            assert TASK.symbol_indices(framed)[key] == len(text) - 1 - t
    assert TASK.source_vocabulary.decode(TASK.source_vocabulary.encode(framed)) == framed


def test_special_words_in_the_text_are_letters():
    """Guards a `<pad>` that a person types and that becomes the token."""
    symbols = TASK.read("<pad><end>")
    assert len(symbols) == 10
    assert TASK.join(TASK.answer(symbols)) == ">dne<>dap<"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", ["empty", "1 to 32"]),
        ("abcé", ["Character 4", "é", "U+00E9", "printable ASCII"]),
        ("hi 😀", ["Character 4", "U+1F600", "GRINNING FACE"]),
        ("e\u0301", ["Character 2", "combining", "U+0301"]),
        ("ab\u202ecd", ["Character 3", "RIGHT-TO-LEFT OVERRIDE", "U+202E"]),
        ("שלום", ["Character 1", "U+05E9"]),
        ("a\x00", ["Character 2 is a control character (U+0000)"]),
        ("\x1b[31m", ["Character 1", "U+001B"]),
        ("a\tb", ["Character 2 is a tab, which"]),
        ("a\n", ["Character 2 is a line break, which"]),
        ("a\r\nb", ["Character 2 is a line break, which"]),
        ("a\xa0b", ["Character 2", "NO-BREAK SPACE", "U+00A0"]),
        ("\u200b", ["Character 1", "ZERO WIDTH SPACE", "U+200B"]),
        ("\ud800", ["Character 1", "U+D800"]),
        ("a" * 33, ["33", "at most 32", "Take 1 out"]),
        ("a" * 100_000, ["100000", "32"]),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_unreadable_texts_are_told_what_where_and_what_is_possible(text, named):
    with pytest.raises(InputError) as caught:
        TASK.read(text)
    message = str(caught.value)
    for part in named:
        assert part in message
    assert message.isprintable(), "a control or direction character acts on the message"


def test_what_is_safe_to_show_is_shown_and_what_cannot_be_seen_is_named():
    assert character_words("é") == "“é” (LATIN SMALL LETTER E WITH ACUTE, U+00E9)"
    assert "\u202e" not in character_words("\u202e")
    assert [character_words(sign) for sign in " \t\n"] == ["a space", "a tab", "a line break"]
    assert quote_text("a\u200bb\tc") == "'a[ZERO WIDTH SPACE (U+200B)]b[tab]c'"
    assert quote_text("it's") == repr("it's")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"alphabet": ""}, ["alphabet=''"]),
        ({"alphabet": "aba"}, ["alphabet='aba'", "once"]),
        ({"max_length": 0}, ["max_length=0", "1 to 510"]),
        ({"max_length": 511}, ["max_length=511", "510"]),
        ({"trained_lengths": [0, 3]}, ["trained_lengths=[0, 3]", "1 to 32"]),
        ({"trained_lengths": [1, 33]}, ["trained_lengths=[1, 33]", "32"]),
        ({"trained_lengths": [1, 2, 3]}, ["trained_lengths=[1, 2, 3]"]),
        ({"colour": "red"}, ["colour"]),
        (["alphabet"], ["options"]),
    ],
    ids=str,
)
def test_impossible_options_are_config_errors(options, named):
    """A checkpoint's config.json is a stranger's: whatever stands there must end in one clear error."""
    with pytest.raises(ConfigError) as caught:
        tasks.make_task("reverse", options)
    for part in named:
        assert part in str(caught.value)


def test_registry():
    assert "reverse" in tasks.names()
    with pytest.raises(ConfigError, match=r"'nope'.*reverse"):
        tasks.make_task("nope")


def test_a_small_alphabet_has_examples_too():
    assert [e.text for e in Reverse("xyz", 5, (1, 5)).examples()] == ["xyz"]
    assert {e.text for e in Reverse(LOWER_CASE, 9, (1, 9)).examples()} == {"aaaaaaaa"}
    assert {e.text for e in Reverse(LOWER_CASE).examples()} == {"reversethis", "aaaaaaaa"}
    assert "a to z" in Reverse(LOWER_CASE).possible()
    with pytest.raises(InputError, match=r"3 symbols: x, y, z"):
        Reverse("xyz").read("a")
