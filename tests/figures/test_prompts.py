"""Runs of models that are not ours: a prompt that was given, and an encoder alone with mask tokens."""

from dataclasses import replace

import numpy as np

from tests.sentences import step_sentence
from tests.trace import planted
from transformer_viz import Trace, figures
from transformer_viz.export.content import default_step, view
from transformer_viz.export.saving import file_name
from transformer_viz.export.strips import legend, output_strip, source_strip, strip_labels
from transformer_viz.figures.theme import token_label
from transformer_viz.numbers_in_words import probability_words
from transformer_viz.sentences.correctness import answer, hypothesis_answer
from transformer_viz.sentences.run_sentences import plain
from transformer_viz.terms import row_labels
from transformer_viz.text_display import display_token
from transformer_viz.trace.steps import Fill

PROMPTED = planted.run((1, 5, 6))
"""`<s>`, `a`, `�` and `�` are given; `a`, `b`, `c` are written."""


def masked() -> Trace:
    """An encoder alone with a mask token in its second place."""
    weights = np.eye(3, dtype=np.float32)[[1, 2, 0]][None, None]
    trace = Trace.from_arrays(encoder=weights, source_tokens=["[CLS]", "[MASK]", "x"])
    fill = Fill(place=1, candidates=((" a", 0.5), (" a", 0.25), ("b", 0.125)), candidate_ids=(7, 8, 9))
    return replace(trace, fills=(fill,), source_ids=(1, 2, 3))


def said(trace: Trace, step: int) -> str:
    kind = trace.kinds[0]
    return plain(step_sentence(trace, kind, 0, 0, step))


def test_given_steps_say_so_and_what_the_model_would_have_written() -> None:
    guess, probability = PROMPTED.steps[1].candidates[0]
    words = said(PROMPTED, 1)
    assert words.startswith("Step 2 of 6: having read `<s>␣a`, layer 1 head 1 looks")
    assert (
        f"; next comes `�`, which was given. The model's own guess: `{guess}` (probability {probability_words(probability)})."
        in words
    )
    assert "the model writes" not in words
    after = said(PROMPTED, 3)
    assert "having read `<s>␣a␣�␣�`" in after and "the model writes `a` (probability" in after


def test_given_tokens_are_marked_in_the_strip_with_their_ids() -> None:
    cells = output_strip(PROMPTED)
    assert ["given" in cell["class"] for cell in cells] == [True] * 3 + [False] * 3
    assert [cell["title"].split(",")[0] for cell in cells[1:4]] == ["step 2: � (id 3)", "step 3: � (id 4)", "step 4: a (id 1)"]
    assert all("tint" in cell for cell in cells[3:]) and not any("tint" in cell for cell in cells[:3])
    assert source_strip(PROMPTED) == []
    assert answer(PROMPTED) is None and hypothesis_answer(planted.search(), 0) is None
    assert "letter" not in legend(PROMPTED, "decoder") and "given" in legend(PROMPTED, "decoder")


def test_one_steps_through_the_tokens_of_an_encoder_alone() -> None:
    trace = planted.filled()
    assert trace.rows == trace.source_tokens and not trace.writes
    assert trace.is_stepped("encoder")
    assert source_strip(trace) == []
    assert [cell["title"] for cell in output_strip(trace)] == [
        f"token {place}: {display_token(token)} (id {number})"
        for place, (token, number) in enumerate(zip(trace.source_tokens, trace.source_ids or (), strict=True), start=1)
    ]
    assert strip_labels(trace)["slider"] == "Token"
    assert default_step(trace) == 2
    assert file_name(trace, "png", view(trace)).endswith("-encoder-layer1-head1-token3.png")
    beside = planted.run((1, 2), has_source=True)
    assert beside.rows == beside.target_tokens
    assert [beside.is_stepped(kind) for kind in ("encoder", "decoder", "cross")] == [False, True, True]


def test_an_encoder_alone_is_gone_through_token_by_token() -> None:
    trace = masked()
    figure = figures.player(trace, "encoder", step=1)
    assert len(figure.frames) == len(trace.rows) == 3
    (row,) = [data for data in figure.data if data.type == "scatter" and data.mode == "lines"]
    assert row.y == (0.5, 0.5, 1.5, 1.5, 0.5)
    whole = [np.asarray(frame.data[0].z) for frame in figure.frames]
    assert all(np.array_equal(each, np.eye(3)[[1, 2, 0]]) for each in whole)
    assert said(trace, 0) == "The encoder alone, token 1 of 3: layer 1 head 1, `[CLS]` looks 100 % at `[MASK]` (token 2)."
    assert said(trace, 1).endswith("Its first guess here: `␣a` (probability 50 %).")
    assert default_step(trace) == 1


def test_guesses_at_a_mask_token_are_bars_there_and_nowhere_else() -> None:
    figure = figures.player(masked(), "encoder", step=1)
    bar = figure.data[-1]
    assert bar.x == (0.5, 0.25, 0.125)
    assert [words for words, _ in bar.customdata] == ["␣a (id 7)", "␣a (id 8)", "b (id 9)"]
    assert [frame.data[-1].x for frame in figure.frames] == [(), (0.5, 0.25, 0.125), ()]
    # Equal labels, and one of them stands out.
    first, second, third = bar.marker.color
    assert first != second == third


def test_a_token_that_only_its_id_tells_stands_out_alone() -> None:
    trace = planted.run((3,), prompt=(0, 1))
    bar = figures.player(trace, "decoder", step=1).data[-1]
    own = [words.endswith("(id 3)") for words, _ in bar.customdata]
    assert sum(own) == 1
    assert [colour == bar.marker.color[own.index(True)] for colour in bar.marker.color] == own


def test_a_tree_begins_with_what_was_read_last() -> None:
    tree = figures.search_tree(planted.search())
    texts = [text for data in tree.data if data.text for text in data.text]
    assert token_label("<start>") not in texts and "�" in texts


def test_a_model_that_begins_with_its_padding_still_writes_there() -> None:
    assert row_labels(("<pad>", "a", "<pad>"), ("a", "b", "c")) == ["1·<pad>→a", "2·a→b", "3·<pad>"]
