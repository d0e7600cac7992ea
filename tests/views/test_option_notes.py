"""Notes below the options of a box: what a name or a file says stays a text in a string of a style."""

import streamlit as st

from transformer_viz.views.components import option_notes


def test_no_sign_ends_the_string_or_the_style(monkeypatch):
    sent: list[str] = []
    monkeypatch.setattr(st, "html", sent.append)
    option_notes.show('a "box"', ['"; } </style><script>\\\n', "", "für Ä, x-y."])
    (css,) = sent
    assert css.count("<") == 2 and css.startswith("<style>") and css.endswith("</style>")
    assert 'content: "\\22 \\3b  \\7d  \\3c \\2f style\\3e \\3c script\\3e \\5c \\a ";' in css
    assert 'content: "für Ä, x-y.";' in css and 'data-key="1"' not in css
