"""Mask tokens of an encoder alone: buttons that put one in place of a word, and that fill one with a candidate."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from transformer_viz.analysis.word_starts import groups, word_starts
from transformer_viz.language import say
from transformer_viz.terms import place_words
from transformer_viz.trace.trace import Trace
from transformer_viz.views.components import screen
from transformer_viz.views.components.markdown import of_run

if TYPE_CHECKING:
    from transformer_viz.decoding.tokenizer import Tokenizer
    from transformer_viz.loaded_model import LoadedModel

_MOST_WORDS, _MOST_FILLS, _MOST_UNDONE = 60, 8, 50
_MOST_CANDIDATES = {False: 6, True: 3}
"""The most candidates in a row or two, by whether they are for a phone."""


def spelt(model: "LoadedModel") -> str | None:
    """The mask token as it is typed; None for a model that writes, and for one that has none."""
    number = None if model.network.kind.writes else model.tokenizer.mask_id
    return None if number is None else model.tokenizer.source_labels([number])[0]


def popover(model: "LoadedModel") -> None:
    """Buttons that put the mask token in place of a word, for who does not know how it is spelt."""
    if (mask_token := spelt(model)) is None:
        return
    text = st.session_state.text
    with st.popover(
        say("Mask a word"),
        icon=":material/ink_eraser:",
        help=say("Ask what may stand there; or type {mask_token}", mask_token=of_run(mask_token)),
    ):
        with st.container(horizontal=True):
            for begin, end in words(text, mask_token)[:_MOST_WORDS]:
                changed = text[:begin] + mask_token + text[end:]
                st.button(of_run(text[begin:end]), key=f"mask-{begin}", on_click=_put, args=(changed,))
        added = f"{text.rstrip()} {mask_token}".lstrip()
        st.button(
            say("{mask_token} at the end", mask_token=of_run(mask_token)),
            key="mask-end",
            on_click=_put,
            args=(added,),
            type="tertiary",
        )


def show(trace: Trace, model: "LoadedModel") -> None:
    """For each mask token of the run a row of buttons: what may stand there, most probable first."""
    ids, mask_token = trace.source_ids, spelt(model)
    if mask_token is None or ids is None or trace.source.count(mask_token) != len(trace.fills):
        return
    with st.container(key="fills", gap="xsmall"):
        for number, fill in enumerate(trace.fills[:_MOST_FILLS]):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.caption(say("At {place} may stand", place=place_words(fill.place)), width="content")
                both = zip(fill.candidates, fill.candidate_ids, strict=True)
                # A special token spells nothing.
                best = [each for each in both if model.tokenizer.text([each[1]])][: _MOST_CANDIDATES[screen.is_narrow()]]
                for rank, ((token, p), other) in enumerate(best):
                    changed = filled(model.tokenizer, trace.source, ids, mask_token, number, other)
                    words, key = f"{of_run(token)} {p:.2g}", f"fill-{number}-{rank}"
                    st.button(words, key=key, help=say("Put it in (id {other})", other=other), on_click=_put, args=(changed,))
        # A way back, as long as nothing else was typed.
        steps = st.session_state.get("before_masks", ())
        if steps and steps[-1][0] == st.session_state.text:
            st.button(
                say("Back"), key="fills-back", help=say("The text as it was before"), icon=":material/undo:", on_click=_go_back
            )


def filled(tokenizer: "Tokenizer", text: str, ids: Sequence[int], mask_token: str, number: int, token: int) -> str:
    """A text with one of its mask tokens, counted from 0, replaced by another token: a piece that goes on with the word before
    it is joined to that.

    Args:
        tokenizer: of the model.
        text: with mask tokens.
        ids: of the text, as the model reads it.
        mask_token: as it is typed.
        number: which of the mask tokens.
        token: the id of what takes its place.
    """
    parts = text.split(mask_token)
    before, after = mask_token.join(parts[: number + 1]), mask_token.join(parts[number + 1 :])
    read = ids[: [at for at, each in enumerate(ids) if each == tokenizer.mask_id][number]]
    known = tokenizer.text(read)
    added = tokenizer.text([*read, token])
    if not known or not added.startswith(known):
        return before + tokenizer.text([token]).strip() + after
    return before.rstrip(" ") + added.removeprefix(known) + after


def words(text: str, mask_token: str) -> list[tuple[int, int]]:
    """Finds where each word of a text begins and ends, mask tokens and punctuation left out."""
    found, begin = [], 0
    for part in text.split(mask_token):
        for places in groups(word_starts(list(part))):
            word = part[places[0] : places[-1] + 1]
            if any(map(str.isalnum, word)):
                first = begin + places[0] + len(word) - len(word.lstrip())
                found.append((first, first + len(word.strip())))
        begin += len(part) + len(mask_token)
    return found


def _put(text: str) -> None:
    state = st.session_state
    state.before_masks = [*state.get("before_masks", ())[1 - _MOST_UNDONE :], (text, state.text)]
    state.text = text


def _go_back() -> None:
    state = st.session_state
    *state.before_masks, (_, state.text) = state.before_masks
