"""The German grammar: translations against lists, alignments against the lexicon, refusals, what training never sees."""

from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests import made_grammar
from transformer_viz.errors import InputError
from transformer_viz.grammar import draw, read, tree_pair
from transformer_viz.grammar.tree import Tree
from transformer_viz.tasks.german import German
from transformer_viz.tasks.translation import spelling

HERE = Path(__file__).parent
TASK = German()
RULES = TASK.rules
# Function words that templates write themselves, by hand: what each English one may be aligned with.
SAID_BY_TEMPLATES = {
    "not": {"nicht", "kein", "keine", "keinen"},
    "did": {"habe", "hast", "hat", "haben", "habt", "bin", "bist", "ist", "sind", "seid"},
    "and": {"und"},
    "but": {"aber"},
    "because": {"weil"},
    "if": {"wenn"},
    "that": {"dass"},
    "whether": {"ob"},
    "there": {"es"},
    "very": {"sehr"},
    "to": {"nach", "vor"},
    "in": {"in"},
    "at": {"um"},
    "half": {"halb"},
    "a": {"Viertel"},
    "quarter": {"Viertel"},
    "past": {"nach"},
    "o'clock": {"Uhr"},
    "who": {"wer", "wen", "wem"},
    "what": {"was"},
    "where": {"wo", "wohin"},
    "cannot": {"kann", "kannst", "können", "könnt"},
    ",": {","},
    "?": {"?"},
}


def lines(name: str) -> list[tuple[str, str]]:
    text = (HERE / name).read_text(encoding="utf-8")
    found = [line.split(" | ") for line in text.splitlines() if not line.startswith("#")]
    return [(german, english) for german, english in found]


@pytest.mark.parametrize(("name", "least"), [("german_by_hand.txt", 200), ("german_sentences.txt", 500)])
def test_translations_are_those_of_the_list(name, least):
    """One was written by hand without the rules, the other was drawn by them and read line by line."""
    listed = lines(name)
    assert len(listed) >= least
    found = {german: TASK.reference(german) for german, _ in listed}
    assert found == dict(listed)
    assert {TASK.remark(TASK.read(german)) for german, _ in listed} == {""}


@pytest.mark.parametrize(
    "german", ["wo bleibt Lena?", "wo ist Lena geblieben?", "was hast du?", "was hatte der König gestern?"]
)
def test_what_a_question_makes_of_a_verb_is_not_translated_word_by_word(german):
    """*What keeps her? What has become of her? What is wrong with you?*"""
    assert TASK.reference(german) == "" and TASK.remark(TASK.read(german))


def test_questions_with_the_same_words_that_mean_what_they_say_are_read():
    asked = {"wo wohnt Lena?": "where does Lena live?", "wer bleibt in Berlin?": "who stays in Berlin?"}
    asked |= {"hast du einen Hund?": "do you have a dog?", "was kaufst du?": "what do you buy?"}
    assert {german: TASK.reference(german) for german in asked} == asked


@pytest.mark.parametrize(
    "german", ["Haben Sie den Hund gesehen?", "ich sehe Sie", "wir helfen Ihnen", "der König sieht Ihren Hund"]
)
def test_the_polite_you_is_refused_and_not_read_as_they(german):
    with pytest.raises(InputError, match="with a capital is the polite form of you, which this model does not know"):
        TASK.read(german)


@pytest.mark.parametrize("german", ["Sie haben den Hund gesehen", "haben sie den Hund gesehen?", "HABEN SIE DEN HUND GESEHEN?"])
def test_they_and_she_are_read_as_ever(german):
    assert TASK.read(german)


def test_the_world_is_large_enough():
    assert len({lexeme.name for lexemes in RULES.lexemes.values() for lexeme in lexemes}) >= 250
    assert len(TASK.source_vocabulary.symbols) >= 500
    assert len(TASK.sources) >= 20
    # Spelling without capitals and in plain letters decides between no two words.
    assert max(Counter(map(spelling, TASK.source_vocabulary.symbols)).values()) == 1


def _translations() -> set[tuple[str, str]]:
    """Words of both languages that some line of the lexicon has together."""
    found = set()
    for lexeme in [lexeme for lexemes in RULES.lexemes.values() for lexeme in lexemes]:
        sides = [{word.text for form in forms for word in form.words} for forms in lexeme.forms]
        found |= {(german, english) for german in sides[0] for english in sides[1]}
    return found


@pytest.mark.parametrize("n", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_every_english_word_is_aligned_with_a_german_word_that_it_translates_or_with_none(n):
    """And the other way round: each German word of content has English words, and they are its own."""
    known, rng = _translations(), np.random.default_rng(n)
    content = {symbol: {word.text for lexeme in RULES.lexemes[symbol] for form in lexeme.forms[0] for word in form.words}
               for symbol in ("NOUN", "NAME", "ADJ", "NUM")}  # fmt: skip
    of_content = set[str]().union(*content.values()) - {"weiß"}
    kinds, n_seen = list(RULES.kinds), 0
    while n_seen < n:
        tree = draw(RULES, kinds[n_seen % len(kinds)], rng)
        pair = None if tree is None else tree_pair(RULES, tree)
        if pair is None:
            continue
        n_seen += 1
        words: dict[int, list[str]] = {}
        assert len(pair.alignment) == len(pair.target)
        for english, place in zip(pair.target, pair.alignment, strict=True):
            if place is None:
                continue
            german = pair.source[place]
            is_known = (german, english.replace("an", "a", 1) if english == "an" else english) in known
            assert is_known or german in SAID_BY_TEMPLATES.get(english, ()), (pair.source, german, english)
            words.setdefault(place, []).append(english)
        for place, german in enumerate(pair.source):
            if german in of_content:
                assert words.get(place), (pair.source, german)


def test_what_is_drawn_is_read_back_alike_and_in_one_way_alone():
    rng = np.random.default_rng(3)
    for kind in RULES.kinds:
        n_seen = 0
        while n_seen < 4:
            tree = draw(RULES, kind, rng)
            pair = None if tree is None else tree_pair(RULES, tree)
            if pair is None:
                continue
            n_seen += 1
            again = [found for tree in read(RULES, pair.source) if (found := tree_pair(RULES, tree))]
            assert {(found.target, found.alignment) for found in again} == {(pair.target, pair.alignment)}, pair
            assert {found.combinations for found in again} == {pair.combinations}, pair


def test_english_that_is_easily_wrong():
    """Nobody says "must not" of what need not be, "a uncle", "breads", "I see me" or "two bread"."""
    rng = np.random.default_rng(11)
    texts = [text for kind in TASK.sources for text in TASK.sample(kind, None, 8, rng)]
    english = [f" {TASK.reference(text)} " for text in texts]
    for wrong in (" must ", " breads ", " waters ", " I see me ", " drive by ", " can not ", " a bread ", " a parents "):
        assert not [line for line in english if wrong in line]
    for line in english:
        words = line.split()
        for word, following in pairwise(words):
            assert word != "a" or following[0] not in "aeiou", line
            assert word != "an" or following[0] in "aeiou", line
    assert TASK.reference("du musst nicht arbeiten") == "you do not have to work"
    for outside in ("ich sehe mich", "wir sehen uns", "das ist ein Brote"):
        with suppress(InputError):
            assert TASK.answer(TASK.read(outside)) is None


def test_alignment_of_a_sentence_by_hand():
    """Guards keys that are one off, and a verb in two places that is aligned as one."""
    symbols = TASK.read("gestern habe ich den alten Film gesehen")
    assert TASK.alignment(symbols, 8) == [1, 3, 7, 4, 5, 6, None, None]
    symbols = TASK.read("ich stehe um sieben Uhr auf")
    assert TASK.answer(symbols) == ["I", "get", "up", "at", "seven", "o'clock"]
    assert TASK.alignment(symbols, 7) == [1, 2, 6, 3, 4, 5, None]
    symbols = TASK.read("den Hund sieht der König")
    assert TASK.alignment(symbols, 6) == [4, 5, 3, 1, 2, None]


def test_spelling_without_capitals_dots_and_sharp_s():
    for text in ("Ich moechte ein Bier.", "ich MÖCHTE ein bier", "ich mochte ein Bier", " ich möchte  ein Bier ! "):
        assert TASK.read(text) == ["ich", "möchte", "ein", "Bier"]
    assert TASK.read("ICH WEISS, DASS DAS HAUS WEISS IST") == TASK.read("ich weiß, dass das Haus weiß ist")
    # The sentences of a published toy.
    assert TASK.reference("ich mochte ein Bier") == "I would like a beer"
    assert TASK.reference("ich mochte ein Cola") == "I would like a coke"


def test_an_unknown_word_is_refused_by_its_name_with_the_nearest():
    unknown = "is no word that this model knows"
    for word, said in (
        ("Komputer", f"'Komputer' {unknown}.*Computer"),
        ("Xylophon", f"'Xylophon' {unknown}"),
        ("<unk>", "'<unk>'"),
    ):
        with pytest.raises(InputError, match=said):
            TASK.read(f"der {word} ist neu")


def test_what_is_no_sentence_of_the_grammar_has_no_answer_and_it_is_said():
    for text in ("gestern hat den Hund der König gesehen", "Hund der schläft", "ich habe Computern"):
        symbols = TASK.read(text)
        assert TASK.answer(symbols) is None
        assert TASK.alignment(symbols, 3) == [None] * 3
        assert "no sentence of the grammar" in TASK.remark(symbols)
    assert TASK.remark(TASK.read("der Hund schläft")) == ""


def test_a_sentence_with_two_readings_has_no_answer_and_it_is_said(monkeypatch):
    rules = made_grammar.grammar()
    monkeypatch.setattr(German, "rules", rules)
    task = German()
    assert task.answer(task.read("ana ve luna")) is None
    assert "in two ways" in task.remark(task.read("ana ve luna"))
    assert task.answer(task.read("ana duerme")) == ["ana", "dort"]


def test_held_out_combinations_are_never_trained_on():
    rng = np.random.default_rng(8)
    trained = [text for kind in TASK.sources for text in TASK.sample(kind, None, 20, rng, "train")]
    assert {TASK.held_out_as(text) for text in trained} == {None}
    assert max(len(TASK.read(text)) for text in trained) <= TASK.trained_words
    drawn = [text for kind in TASK.sources for text in TASK.sample(kind, None, 5, rng, "held-out")]
    assert {TASK.held_out_as(text) for text in drawn} == {"combination", "sentence"}
    for kind, why in (("nested", {"nested", "longer"}), ("longer", {"longer"})):
        assert {TASK.held_out_as(text) for text in TASK.sample(kind, None, 8, rng)} <= why
    # A combination is held out in every sentence that has it, whatever stands around it.
    pairs = {pair for text in trained for pair in (TASK.reading(TASK.read(text)) or pytest.fail(text)).combinations}
    held = [pair for text in drawn if TASK.held_out_as(text) == "combination"
            for pair in (TASK.reading(TASK.read(text)) or pytest.fail(text)).combinations]  # fmt: skip
    assert len(pairs) > 200
    assert any(pair not in pairs for pair in held)


def test_no_template_is_without_use():
    """Each template is drawn or has the weight 0, which is for reading alone."""
    rng = np.random.default_rng(2)
    unused = {id(template): template for templates in RULES.templates.values() for template in templates if template.weight}
    for kind in list(RULES.kinds) * 300:
        below = [tree] if (tree := draw(RULES, kind, rng)) else []
        while below:
            top = below.pop()
            unused.pop(id(top.template), None)
            below += [child for child in top.children.values() if isinstance(child, Tree)]
        if not unused:
            return
    pytest.fail(f"never drawn: {list(unused.values())}")
