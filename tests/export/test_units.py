"""A model of words is not said to look at letters, nor one of letters at tokens: in no figure, sentence or page."""

import json

import pytest

from tests.figures.conftest import build
from tests.sentences import step_sentence
from transformer_viz import figures
from transformer_viz.export.strips import legend
from transformer_viz.sentences.run_sentences import plain
from transformer_viz.trace.hidden_answer import hide_answer
from transformer_viz.trace.trace import Trace
from transformer_viz.vocabulary import unit

WORDS = ("<start>", *(f"{i}un" for i in range(9)), "<end>")


def words() -> Trace:
    output = (*(f"{i}ex" for i in range(6)), "<end>")
    read = {"source_tokens": WORDS, "target_tokens": ("<start>", *output[:-1])}
    return build(**read, output_tokens=output, source="", text="", steps=())


def said(trace: Trace) -> str:
    """All that is written on pictures and around them."""
    draw = (figures.attention, figures.player, figures.mosaic, figures.mask)
    drawn = [each(trace, kind) for each in draw for kind in trace.kinds]
    around = [
        *(plain(step_sentence(trace, kind, 1, 1, t)) for kind in trace.kinds for t in range(trace.n_steps)),
        *(legend(trace, kind) for kind in trace.kinds),
    ]
    return "\n".join([*(json.dumps(figure.to_plotly_json()["layout"], default=str) for figure in drawn), *around])


def test_words_are_never_called_letters():
    text = said(words())
    assert "letter" not in text
    assert "key: the source token looked at" in text
    assert "key: the written token looked at" in text
    assert "query: the token that looks" in text


@pytest.mark.parametrize(
    ("tokens", "name"),
    [
        (("<start>", "a", "␣", "<end>"), "letter"),
        (("a", "汉", "<pad>"), "letter"),
        (("a", "2", "!"), "letter"),
        (("2", "0", "-"), "token"),
        (("a", "ab"), "token"),
        (("[CLS]", "a"), "token"),
        (("<start>", "<end>"), "token"),
        ((), "token"),
    ],
)
def test_what_one_of_them_is_called(tokens, name):
    assert unit(tokens) == name


def test_a_ring_is_named_where_one_is_drawn() -> None:
    """Of a hidden answer, and of a run whose answer nobody knows, there is none."""
    run = build()
    assert any(key is not None for key in run.alignment) and "ring = " in legend(run, "cross")
    assert "ring = " not in legend(hide_answer(run, 0), "cross")
    assert "ring = " not in legend(run, "decoder")
