"""Escapes text that must be shown literally where Streamlit reads Markdown: errors, labels, captions."""

import re

from transformer_viz.language import say
from transformer_viz.sentences.run_sentences import Sentence
from transformer_viz.text_display import display_text

_ESCAPES = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]()<>#+-.!|~$:&^=\"'@/"})

APART = ":small[]"
"""An empty text in Streamlit's Markdown; it ends the piece of text before it."""
# Links, icons and arrows are also looked for in the pieces of text that are left once everything escaped has been read.
_MADE_OF_TEXT = re.compile(
    r"(?<=:)(?=\S) | (?<=www)(?=\.) | (?<=@) | (?<=-)(?=[->](?:\s|$)) | (?<=<)(?=->?(?:\s|$)) | (?<=[<>~])(?==(?:\s|$))",
    re.IGNORECASE | re.VERBOSE,
)


def literal(text: str) -> str:
    """Escapes every mark of `text`, so that `**a**`, `$x$`, `:red[x]`, `<b>` and `www.a.b` show as typed, and lead nowhere."""
    return APART.join(piece.translate(_ESCAPES) for piece in _MADE_OF_TEXT.split(text))


def sentence(text: str) -> str:
    """`literal`, without a line break between a number and its %."""
    return literal(text.replace(" %", "\u00a0%"))


def of_run(text: str) -> str:
    """A text of a run, its spaces to be seen; `(empty)` where there is none."""
    return literal(display_text(text)) or say("(empty)")


def said(sentence: Sentence) -> str:
    """A sentence; what is strong in it, and pieces of the run, are bold."""
    return "".join(literal(text) if style == "plain" else f"**{literal(text)}**" for style, text in sentence)
