"""A run by words: where words begin, and pooled weights against plain loops."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.made_runs import run, runs
from tests.sentences import step_sentence
from transformer_viz.analysis.word_pooling import Words, by_words, has_pieces, is_by_words, step_of_tokens, step_of_words
from transformer_viz.analysis.word_starts import groups, word_starts
from transformer_viz.errors import OptionError
from transformer_viz.figures import candidates
from transformer_viz.figures.theme import THEMES
from transformer_viz.sentences.run_sentences import plain
from transformer_viz.terms import KINDS
from transformer_viz.trace.steps import Fill
from transformer_viz.trace.trace import Trace

PIECES = (
    *" the house un relat ed <s> </s> [MASK] . , ' 's ## ##ing <0xE4> <0xBD><0xA0> <0xE5><0xA5> <0xBD>".split(" "),
    *"你 好 吗 م ر حبا ُ 👩 \u200d 👍 🏽".split(" "),
)
LABELS = st.sampled_from(["", " ", "  ", "\n", *PIECES, *(f" {piece}" for piece in PIECES[1:])])

# A bar stands before each token, two where a word begins. The words are those that a reader of the language would count.
SPLIT = {
    "SentencePiece and byte-level BPE": "‖The‖ house‖ Fr|ance‖,‖ un|relat|ed‖</s>",
    "a point and an apostrophe inside": "‖don|'|t‖ say‖ 3|.|5‖.|",
    "a quote at the end is apart": "‖dogs‖'‖ bone",
    "WordPiece": "‖[CLS]‖un|##relat|##ed‖.‖ho|##me‖[MASK]‖[SEP]",
    "a heading is no WordPiece": "‖##‖ the‖ house",
    "Chinese": "‖ ‖你‖好吗‖。".replace("‖你", "|你"),
    "Chinese in bytes": "‖<0xE4><0xBD>|<0xA0>‖<0xE5><0xA5>|<0xBD>‖你",
    "Chinese beside letters": "‖the‖你‖house",
    "Arabic, and a mark": "‖مر|حبا‖ بك|ُم‖،‖ نعم",
    "Thai": "‖หมาย‖เลข‖ สวัส",
    "Korean has spaces": "‖안녕|하세요‖ 세|계",
    "emoji": "‖👩|\u200d|👧‖👍|🏽‖x",
    "an emoji in bytes": "‖ <0xF0><0x9F>|<0x98>|<0x80>‖ ok",
    "indented lines": "‖\n‖   | return‖ x|_|1‖(‖y‖):",
    "special tokens within": "‖<|im_start|>‖user‖\n‖<|im_end|>",
}


def split(marked: str) -> tuple[list[str], list[bool]]:
    """Labels, and which begin a word, of a marked text. A bar within `<| |>` is none."""
    marked = marked.replace("<|", "\0").replace("|>", "\1").strip("|")
    labels, starts = [], []
    for part in marked.replace("|", "‖|").split("‖")[1:]:
        starts.append(not part.startswith("|"))
        labels.append(part.removeprefix("|").replace("\0", "<|").replace("\1", "|>"))
    return labels, starts


@pytest.mark.parametrize("name", SPLIT)
def test_where_words_begin(name: str) -> None:
    labels, starts = split(SPLIT[name])
    assert word_starts(labels) == starts


def test_words_without_pieces_are_each_their_own() -> None:
    assert word_starts(["das", "Haus", "."], are_words=True) == [True] * 3
    assert word_starts(["n", "i"]) == [True, False]


@given(st.lists(LABELS, max_size=12), st.booleans())
def test_any_labels_have_an_answer_each(labels: list[str], are_words: bool) -> None:
    """The words hold every token once, in order."""
    starts = word_starts(labels, are_words=are_words)
    assert len(starts) == len(labels)
    assert [place for word in groups(starts) for place in word] == [*range(len(labels))]


def looped(trace: Trace, kind: Any) -> np.ndarray:
    """Keys summed, queries averaged, cell by cell."""
    words = Words(trace)
    rows = words.source if kind == "encoder" else words.rows
    columns = words.columns if kind == "decoder" else words.source
    whole = trace.attentions[kind].weights
    found = np.zeros((*whole.shape[:2], len(rows), len(columns)))
    for layer, head in np.ndindex(*whole.shape[:2]):
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                found[layer, head, i, j] = sum(float(whole[layer, head, q, k]) for q in row for k in column) / len(row)
    return found


def labelled(trace: Trace, labels: list[str]) -> Trace:
    """The run with such labels, as many as it needs, written one after the other."""

    def some(n: int, first: int = 0) -> tuple[str, ...]:
        return tuple(labels[(first + place) % len(labels)] for place in range(n))

    written = some(len(trace.output_tokens), 1)
    return replace(
        trace, source_tokens=some(len(trace.source_tokens)), target_tokens=some(len(trace.target_tokens)), output_tokens=written
    )


@given(runs(), st.lists(LABELS, min_size=1, max_size=9))
def test_weights_and_masks_are_those_of_plain_loops(run: Trace, labels: list[str]) -> None:
    """Any labels, any masks; each row has the sum that the mean of its pieces' rows has."""
    trace = labelled(run, labels)
    pooled = by_words(trace)
    words = Words(trace)
    for kind in trace.kinds:
        weights = pooled.attentions[kind].weights
        np.testing.assert_allclose(weights, looped(trace, kind), atol=1e-6)
        rows = words.source if kind == "encoder" else words.rows
        columns = words.columns if kind == "decoder" else words.source
        for (i, row), (j, column) in ((a, b) for a in enumerate(rows) for b in enumerate(columns)):
            cells = trace.attentions[kind].reasons[..., row[0] : row[-1] + 1, column[0] : column[-1] + 1]
            flat = cells.reshape(*cells.shape[:-2], -1)
            together = np.bitwise_or.reduce(flat, -1)
            np.testing.assert_array_equal(
                pooled.attentions[kind].reasons[..., i, j], np.where((flat == 0).any(-1), 0, together)
            )
    if trace.target_tokens:
        last = words.rows[-1][-1]
        assert last == trace.n_steps - 1
        assert [place for word in words.columns for place in word] == [*range(trace.n_steps)], "every key is in one word"
        assert [place for word in words.rows for place in word] == [*range(words.rows[0][0], trace.n_steps)]


def test_rows_of_a_softmax_add_up_to_one() -> None:
    """In single precision, and for 60 tokens in half."""
    for dtype in (np.float32, np.float16):
        weights = np.random.default_rng(0).dirichlet(np.ones(60), (2, 3, 60)).astype(dtype)
        trace = Trace.from_arrays(encoder=weights, source_tokens=[" a", "b", ",", " c", "d"] * 12, normalised=False)
        pooled = by_words(trace).encoder.weights
        assert pooled is not None and pooled.dtype == np.float32 and pooled.shape == (2, 3, 36, 36)
        sums = weights.astype(np.float64).sum(-1)
        by_word = [sums[..., word].mean(-1) for word in Words(trace).source]
        np.testing.assert_allclose(pooled.sum(-1, dtype=np.float64), np.stack(by_word, -1), atol=1e-6)


def prompted(pieces: list[str], **more: Any) -> Trace:
    """A run of a decoder without an encoder that wrote all but the first token."""
    n = len(pieces) - 1
    weights = np.tril(np.ones((1, 1, n, n))) / np.arange(1, n + 1)[:, None]
    p = [0.5] * n
    run = Trace.from_arrays(
        decoder=weights, masks={"decoder": "causal"}, target_tokens=pieces[:-1], output_tokens=pieces[1:], probabilities=p
    )
    return replace(run, **more)


def test_a_row_belongs_to_the_word_that_it_writes() -> None:
    """Four words are read and four written; the rest of the first word is written by no row."""
    pooled = by_words(prompted(["Trans", "form", "ers", " are", " un", "believ", "able", "</s>"], n_given=3, source="x"))
    assert pooled.target_tokens == ("Transformers", "are", "unbelievable")
    assert pooled.output_tokens == ("are", "unbelievable", "</s>")
    assert pooled.n_given == 1
    assert [step.log_probability for step in pooled.steps] == pytest.approx([math.log(0.5) * n for n in (1, 3, 1)])
    # Row `unbelievable` is the mean of rows that read ` are`, ` un`, `believ`: of 4, 5 and 6 keys 3 are of the first word.
    assert pooled.decoder.weights[0, 0, 1] == pytest.approx(
        [(3 / 4 + 3 / 5 + 3 / 6) / 3, (1 / 4 + 1 / 5 + 1 / 6) / 3, (1 / 5 + 2 / 6) / 3]
    )
    assert pooled.decoder.mask.tolist() == [[False, True, True], [False, False, False], [False, False, False]]


def test_a_word_that_the_limit_cut_keeps_its_last_piece_apart() -> None:
    pooled = by_words(prompted([" the", " un", "believ", "able"]))
    assert (pooled.target_tokens, pooled.output_tokens) == (("the", "unbeliev"), ("unbeliev", "able"))


def test_steps_of_words_and_of_tokens() -> None:
    """There and back; a row that belongs to no word goes to the first."""
    trace = prompted(["Trans", "form", " are", " un", "able", "</s>"])
    assert [step_of_words(trace, step) for step in range(5)] == [0, 0, 1, 1, 2]
    assert [step_of_tokens(trace, word) for word in range(3)] == [1, 2, 4]
    assert step_of_tokens(trace, 99) == 4


@pytest.mark.parametrize("ids", [{}, {"token_id": 3, "candidate_ids": (3, 4, 5)}])
def test_what_a_single_piece_said_stays(ids: dict[str, Any]) -> None:
    """Candidates and rank of a word of one piece, among which it stands as the word that it is; a fill at its place."""
    trace = prompted(["a", "b", " c", " d"])
    step = replace(trace.steps[1], candidates=((" c", 0.5), (" e", 0.2), ("f", 0.1)), rank=0, **ids)
    pooled = by_words(replace(trace, steps=(trace.steps[0], step, trace.steps[2])))
    assert pooled.steps[0].candidates == (("c", 0.5), (" e", 0.2), ("f", 0.1))
    assert pooled.steps[0].token == pooled.output_tokens[0] == "c"
    assert len(candidates.at_step(pooled.steps[0], THEMES["light"])["y"]) == 3, "the word is none of its own beside them"
    weights = np.full((1, 1, 4, 4), 0.25)
    read = Trace.from_arrays(encoder=weights, source_tokens=["[CLS]", "ho", "##use", "[MASK]"])
    filled = by_words(replace(read, fills=(Fill(place=3, candidates=(("x", 0.5),)),)))
    assert (filled.source_tokens, filled.fills[0].place) == (("[CLS]", "house", "[MASK]"), 2)


def test_when_there_is_something_to_pool() -> None:
    trace = prompted(["a", "b", " c", " d"])
    assert has_pieces(trace) and not has_pieces(by_words(trace)) and is_by_words(by_words(trace))
    assert not has_pieces(prompted([" a", " b", " c"])), "words already"
    assert not has_pieces(prompted(["a", "b"])), "one word has no map"
    assert not has_pieces(prompted(["<start>", "a", "b", "c", "<end>"])), "nor has one between special tokens"
    assert has_pieces(prompted(["<start>", "a", " ", "c", "<end>"]))
    with pytest.raises(OptionError, match="by words already"):
        by_words(by_words(trace))


def test_a_run_whose_labels_are_words_knows_it_by_its_texts() -> None:
    """BERT without a `##`: spaces stand in the text only."""
    trace = replace(run(0, 1, 1, 3, 3, KINDS), source_tokens=("the", "house", "."), source="The house.")
    assert by_words(trace).source_tokens == ("the", "house", ".")
    assert by_words(replace(trace, source="thehouse.")).source_tokens == ("thehouse", ".")


def test_the_sentence_has_the_spaces_of_the_text_and_no_others() -> None:
    tokens = ("It", " trans", "lates", ",", " aren", "'t", " it", "?")
    weights = np.tril(np.ones((7, 7)))
    trace = Trace.from_arrays(
        decoder=weights / weights.sum(-1, keepdims=True), target_tokens=tokens[:-1], output_tokens=tokens[1:]
    )
    prompted = by_words(replace(trace, source="It translates", text=", aren't it?", n_given=2))
    assert prompted.output_tokens == ("translates", ",", "aren't", "it", "?")
    said = [plain(step_sentence(prompted, "decoder", 0, 0, step)) for step in (1, 4)]
    assert "having read `It␣translates`, " in said[0]
    assert "having read `It␣translates,␣aren't␣it`, " in said[1]
    written = by_words(replace(trace, text="translates, aren't it?"))
    assert "having written `translates,␣aren't␣it`, " in plain(step_sentence(written, "decoder", 0, 0, 4))
    unknown = replace(prompted, source="", text="")
    assert "having read `It␣translates␣,␣aren't␣it`, " in plain(step_sentence(unknown, "decoder", 0, 0, 4))
