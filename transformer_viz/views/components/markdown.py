"""Escapes text that must be shown literally where Streamlit reads Markdown: errors, labels, captions."""

from transformer_viz.analysis.sentences import Sentence
from transformer_viz.text_display import display_text

_ESCAPES = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]()<>#+-.!|~$:&^=\"'@/"})


def literal(text: str) -> str:
    """`text` with every mark escaped, so that `**a**`, `$x$`, `:red[x]` and `<b>` show as typed."""
    return text.translate(_ESCAPES)


def sentence(text: str) -> str:
    """`literal`, without a line break between a number and its %."""
    return literal(text.replace(" %", "\u00a0%"))


def of_run(text: str) -> str:
    """A text of a run, its spaces to be seen; `(empty)` where there is none."""
    return literal(display_text(text)) or "(empty)"


def said(sentence: Sentence) -> str:
    """A sentence; what is strong in it, and pieces of the run, are bold."""
    return "".join(literal(text) if style == "plain" else f"**{literal(text)}**" for style, text in sentence)
