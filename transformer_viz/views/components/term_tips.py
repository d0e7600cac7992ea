"""Terms where they stand: a dotted line below, and what they mean on hover, focus and tap, in the words of the glossary, with
the way to the step of a lesson that explains them.

What they mean is an attribute, which `term_tips.css` shows: no text of the sentence that a screen reader says at each step.
"""

import re
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from typing import Any

import streamlit as st

from transformer_viz import language
from transformer_viz.language import later, say
from transformer_viz.sentences.run_sentences import Piece
from transformer_viz.views.glossary import TERMS
from transformer_viz.views.state import lesson_place

_NAMES = {
    **{name: name for name in ("token", "layer", "head", "query", "key", "weight", "mask", "right token")},
    **{name: name for name in ("encoder self-attention", "decoder self-attention", "cross-attention")},
    **{later("row"): "query", later("column"): "key", later("looks"): "weight", later("masked"): "mask"},
    later("heads"): "head",
}
"""The terms that one meets first, as they stand in a sentence, and as the glossary has them."""
_PLAIN = {
    "row": later("One line of the map: where the model looked for one token. It adds up to 1"),
    "column": later("One token that can be looked at: each cell says how much its row looked there"),
}
"""What they mean where a plain word stands: the glossary's own words would be more terms."""
STYLE = Path(__file__).with_name("term_tips.css").read_text(encoding="utf-8")
"""Wherever terms stand: of a component, and of the page."""
_TAGS = {"code": "code", "strong": "b"}


def mark(sentence: str | Sequence[Piece], told: Collection[str] = ()) -> list[tuple[str, str]]:
    """The pieces of a sentence; in its plain words each term is a piece of style `term` where it stands first.

    Args:
        sentence: words, or pieces.
        told: terms that are told elsewhere on the screen.
    """
    names = _names(language.current())
    marked, met = list[tuple[str, str]](), {*told}
    for style, text in [("plain", sentence)] if isinstance(sentence, str) else sentence:
        # Every second part is a term.
        for place, part in enumerate(_split(text, language.current()) if style == "plain" else [text]):
            is_first = place % 2 == 1 and names[part] not in met
            if is_first:
                met.add(names[part])
            if part:
                marked.append(("term" if is_first else style, part))
    return marked


@lru_cache(maxsize=4096)
def _split(text: str, now: str) -> tuple[str, ...]:
    """Sentences of a run share most of their words."""
    return tuple(_term(now).split(text))


@cache
def _names(now: str) -> dict[str, str]:
    """The terms as they stand in a sentence of a language, and as the glossary has them."""
    with language.speaking(now):
        return {say(word): name for word, name in _NAMES.items()}


@cache
def _term(now: str) -> re.Pattern[str]:
    # Chinese has no blanks between words.
    edge = r"\b" if now == language.ENGLISH else ""
    return re.compile(rf"{edge}({'|'.join(map(re.escape, sorted(_names(now), key=len, reverse=True)))}){edge}")


def show(sentence: Sequence[tuple[str, str]], **looks: Any) -> None:
    """The pieces of a sentence, of which some may be terms, in small letters as a caption."""
    st.html(f'<p class="told">{"".join(_element(*piece) for piece in sentence)}</p>', **looks)


def meanings() -> dict[str, dict[str, Any]]:
    """The meaning of each term, as it stands in a sentence; and the step of a `lesson` that explains it, if one does."""
    return _meanings(language.current())


@cache
def _meanings(now: str) -> dict[str, dict[str, Any]]:
    by_word: dict[str, dict[str, Any]] = {}
    for english, name in _NAMES.items():
        word, is_plain = say(english), english in _PLAIN
        term, sentence = (word, _PLAIN[english]) if is_plain else (say(name), TERMS[name].sentence)
        by_word[word] = {"means": say("{term}: {sentence}.", term=term.capitalize(), sentence=say(sentence))}
        if (place := lesson_place.explaining(name)) is not None:
            words = say("Lesson: {title}, card {number} ›", title=place.lesson.title, number=place.number + 1)
            # From every page to the first one: the address of a page has no folder below that one.
            by_word[word]["lesson"] = {"href": f"./?{lesson_place.KEY}={place.word}", "words": words}
    return by_word


def _element(style: str, text: str) -> str:
    if style == "term":
        meaning, link = meanings()[text], ""
        if lesson := meaning.get("lesson"):
            leads = f'aria-label="{escape(lesson["words"])}" data-means="{escape(meaning["means"])}"'
            link = f'<a href="{escape(lesson["href"])}" target="_self" {leads}></a>'
        return f'<dfn tabindex="0" aria-description="{escape(meaning["means"])}">{escape(text)}{link}</dfn>'
    tag = _TAGS.get(style)
    return f"<{tag}>{escape(text)}</{tag}>" if tag else escape(text)
