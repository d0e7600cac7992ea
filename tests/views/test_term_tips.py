"""Terms in a sentence, and what they mean, as markup: what a run or a model says stays a text."""

import streamlit as st

from transformer_viz.views.components import term_tips


def test_a_term_is_marked_where_it_stands_first():
    marked = term_tips.mark((("code", "head"), ("plain", "a head of layer 1, headless; rows, a row, head 2")))
    assert [text for style, text in marked if style == "term"] == ["head", "layer", "row"]
    assert "".join(text for _, text in marked) == "heada head of layer 1, headless; rows, a row, head 2"
    assert marked[0] == ("code", "head")
    # Both words have one meaning, which is told once.
    assert [text for style, text in term_tips.mark("row and query, key and column") if style == "term"] == ["row", "key"]


def test_texts_are_no_markup(monkeypatch):
    sent: list[str] = []
    monkeypatch.setattr(st, "html", sent.append)
    term_tips.show((("plain", "<b>"), ("code", "&"), ("strong", "</p>"), ("term", "mask")))
    assert sent[0].startswith(
        '<p class="told">&lt;b&gt;<code>&amp;</code><b>&lt;/p&gt;</b><dfn tabindex="0" aria-description="Mask: '
    )
