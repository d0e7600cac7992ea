"""The rules on a small grammar of Spanish and French: reading, drawing, alignment, and files that are not as they must be."""

from itertools import product

import numpy as np
import pytest

from tests import made_grammar
from transformer_viz.errors import FileError
from transformer_viz.grammar import draw, read, tree_pair

RULES = made_grammar.grammar()


def pairs(text: str):
    return [pair for tree in read(RULES, text.split()) if (pair := tree_pair(RULES, tree))]


def test_words_are_said_in_the_order_of_the_other_language():
    (pair,) = pairs("la casa roja duerme")
    assert pair.target == ("la", "maison", "rouge", "dort")
    assert pair.alignment == (0, 1, 2, 3)
    assert pair.combinations == {("rojo", "casa")}
    (pair,) = pairs("la casa negra ve el perro")
    assert pair.target == ("la", "maison", "noire", "voit", "le", "chien")


def test_what_does_not_agree_is_not_read():
    for text in ("el casa duerme", "la casa rojo duerme", "el perro ven ana", "el perro duerme ana", "perro", ""):
        assert not pairs(text), text


def test_two_readings_are_found():
    assert {pair.target for pair in pairs("ana ve luna")} == {("ana", "voit", "luna"), ("luna", "voit", "ana")}


def test_every_sentence_that_is_read_can_be_drawn_and_none_else():
    """By trying all sentences of up to four words: the two ways to use the rules agree."""
    words = ["el", "la", "perro", "casa", "roja", "negra", "duerme", "ana", "luna"]
    possible = {" ".join(several) for n in range(1, 5) for several in product(words, repeat=n)}
    readable = {text for text in possible if pairs(text)}
    rng, drawn = np.random.default_rng(0), set()
    for _ in range(2_000):
        tree = draw(RULES, "short", rng)
        if tree and (pair := tree_pair(RULES, tree)):
            drawn.add(" ".join(pair.source))
    assert drawn == readable
    assert len(drawn) == 5


def test_weights_decide_how_often_a_word_is_drawn():
    rng, n_black, n = np.random.default_rng(1), 0, 0
    while n < 600:
        tree = draw(RULES, "short", rng)
        pair = None if tree is None else tree_pair(RULES, tree)
        if pair and "casa" in pair.source:
            n, n_black = n + 1, n_black + ("negra" in pair.source)
    assert 0.60 < n_black / n < 0.73


@pytest.mark.parametrize(
    ("lexicon", "templates", "words"),
    [
        ("paradigm one\n  {1} {2}\nwords A one one\n  a | b", "", "line 4"),
        ("words A nothing nothing\n  a | b", "", "line 2"),
        ("paradigm one\n  {2}\nwords A one one\n  a | b", "", "fewer columns than its paradigm"),
        (made_grammar.LEXICON, "SENT = NAME", "line 1.*the sign > between source and target is missing"),
        (made_grammar.LEXICON, "SENT = NAME > NOUN", "right of the sign > and not left of it"),
        (made_grammar.LEXICON, "SENT = NOTHING > NOTHING", "NOTHING is neither a word class of the lexicon nor a phrase"),
        (made_grammar.LEXICON, "SENT[x = NAME > NAME", "line 1"),
    ],
)
def test_a_line_that_is_not_as_it_must_be_is_named(lexicon, templates, words):
    with pytest.raises(FileError, match=words):
        made_grammar.grammar(lexicon, templates)
